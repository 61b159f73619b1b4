"""Due compactions: a row per view, settled under its fence; and the sweep, in which tenants take turns."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Final

import pytest

from strandline.limits import DUE_DELAY_S_MAX, LEASE_TTL_S
from strandline.model.candidate import FailureClass
from strandline.model.due import DueCompaction, DueKey
from strandline.model.ids import DEFAULT_VIEW, Scope
from strandline.model.outcome import CompactionResult
from strandline.model.triggers import Triggers, Watch
from strandline.ports import Store
from strandline.testing.conformance.base import REFUSALS, StoreLaws
from strandline.testing.conformance.stage import SCOPE, append
from strandline.testing.fakes import START_US
from strandline.testing.values import make_due

SECOND: Final = 1_000_000
TTL_US: Final = int(LEASE_TTL_S) * SECOND
DELAY_US: Final = int(DUE_DELAY_S_MAX) * SECOND
LATER: Final = START_US + 60 * SECOND


def ask(store: Store, tenant: str, workflow: str, due: DueCompaction) -> None:
    """Let a compaction be due, in a transaction of its own."""
    with store.write(Scope(tenant=tenant, workflow=workflow)) as tx:
        append(tx)
        tx.due.add(due)


def leased(due: DueCompaction, until_us: int) -> DueCompaction:
    """Return the row as a worker holds it."""
    return replace(due, worker="w1", fence=due.fence + 1, runs=1, lease_until_us=until_us, due_us=until_us)


def places(keys: list[DueKey]) -> list[str]:
    """Return whose they are."""
    return [f"{key.tenant}/{key.workflow}" for key in keys]


class DueLaws(StoreLaws):
    """Laws of `DueFacet` and `Store.due`."""

    # ------------------------------------------------------------------------------------------ rows

    def test_a_due_compaction_comes_back_whole(self, store: Store) -> None:
        """DESIGN §3: the row is the job; every column is kept, one row per view."""
        first = make_due()
        second = DueCompaction(
            view="scout",
            revision=7,
            priority=9,
            budget=500,
            when_tokens=0,
            strict=True,
            asked_us=START_US,
            wanted_us=None,
            due_us=LATER,
            runs=3,
            worker="host:17",
            lease_until_us=LATER,
            fence=12,
            outcome=CompactionResult.POSTPONED,
            failure=FailureClass.TRANSIENT,
            failure_text="no answer within 240 s",
            case_id="c1",
            watch=Watch(
                triggers=Triggers(tokens=9_000, idle_s=30.0), budget=6_000, priority=7, events=3, since_us=LATER
            ),
        )
        with store.write(SCOPE) as tx:
            append(tx)
            tx.due.add(second)
            tx.due.add(first)
        with store.read(SCOPE) as tx:
            assert tx.due.all() == [first, second]
            assert [tx.due.get(view) for view in (DEFAULT_VIEW, "scout", "other")] == [first, second, None]

    def test_a_view_has_one_row(self, store: Store) -> None:
        """Asking again finds the row: a second can't stand beside it."""
        ask(store, SCOPE.tenant, SCOPE.workflow, make_due())
        with pytest.raises(REFUSALS), store.write(SCOPE) as tx:
            tx.due.add(make_due(priority=9))
        with store.read(SCOPE) as tx:
            assert tx.due.all() == [make_due()]

    def test_who_has_another_fence_settles_nothing(self, store: Store) -> None:
        """I6, C15: a worker whose row was taken over comes too late; and a fence never falls."""
        held = leased(make_due(), LATER)
        taken_over = replace(held, fence=2, worker="w2")
        with store.write(SCOPE) as tx:
            append(tx)
            tx.due.add(held)
            assert tx.due.settle(taken_over, fence=1)
            assert not tx.due.settle(replace(held, due_us=None), fence=1)
            assert not tx.due.settle(replace(held, due_us=None), fence=2)
            assert not tx.due.settle(replace(held, fence=3), fence=1)
            assert not tx.due.settle(replace(held, view="other"), fence=2)
        with store.read(SCOPE) as tx:
            assert tx.due.all() == [taken_over]

    def test_open_rows_are_counted_in_the_tenant(self, store: Store) -> None:
        """I22: those that are due or run, over all of its workflows, up to the limit; of no other tenant (I21)."""
        for number in range(3):
            ask(store, "acme", f"run-{number}", make_due())
        ask(store, "acme", "done", make_due(due_us=None))
        ask(store, "other", "run-1", make_due())
        with store.write(Scope(tenant="acme", workflow="run-9")) as tx:
            append(tx)
            assert tx.due.open_in_tenant(10) == 3
            tx.due.add(make_due())
            assert tx.due.open_in_tenant(10) == 4
            assert tx.due.open_in_tenant(2) == 2
            assert tx.due.settle(replace(make_due(), due_us=None), fence=0)
            assert tx.due.open_in_tenant(10) == 3

    def test_a_rollback_leaves_no_row(self, store: Store) -> None:
        """I22: nothing of a refused call stays."""
        with suppress(KeyError), store.write(SCOPE) as tx:
            append(tx)
            tx.due.add(make_due())
            raise KeyError
        assert store.due(LATER, 10, 10) == []
        with store.read(SCOPE) as tx:
            assert tx.due.all() == []

    # ------------------------------------------------------------------------------------------ the sweep

    def test_a_sweep_gives_what_is_due(self, store: Store) -> None:
        """With its key; not what is due later, and not what is settled."""
        ask(store, "acme", "now", make_due(priority=3))
        ask(store, "acme", "later", make_due(priority=3, due_us=LATER + 1))
        ask(store, "acme", "done", make_due(due_us=None))
        key = DueKey(tenant="acme", workflow="now", view=DEFAULT_VIEW, priority=3, due_us=START_US)
        assert store.due(LATER, 10, 10) == [key]
        assert places(store.due(LATER + 1, 10, 10)) == ["acme/now", "acme/later"]
        assert store.due(START_US - 1, 10, 10) == []
        assert store.due(LATER, 0, 10) == store.due(LATER, 10, 0) == []

    def test_higher_priority_first_then_the_oldest(self, store: Store) -> None:
        """Within a tenant; a priority whose rows are all due later holds nobody up."""
        for number, (priority, wait_s) in enumerate([(5, 3), (5, 1), (9, 2), (0, 0), (7, 1_000)]):
            ask(store, "acme", f"run-{number}", make_due(priority=priority, due_us=START_US + wait_s * SECOND))
        assert places(store.due(LATER, 10, 10)) == ["acme/run-2", "acme/run-1", "acme/run-0", "acme/run-3"]
        assert places(store.due(LATER, 2, 10)) == ["acme/run-2", "acme/run-1"]

    def test_no_tenant_waits_behind_the_backlog_of_another(self, store: Store) -> None:
        """Fairness: tenants take turns, whatever their backlog, age and priorities."""
        for number in range(9):
            ask(store, "big", f"run-{number}", make_due(priority=9, due_us=START_US + number))
        ask(store, "small", "one", make_due(priority=0, due_us=START_US + 50))
        ask(store, "small", "two", make_due(priority=0, due_us=START_US + 51))
        ask(store, "third", "one", make_due(due_us=START_US + 20))
        whole = ["big/run-0", "third/one", "small/one", "big/run-1", "small/two", "big/run-2", "big/run-3"]
        assert places(store.due(LATER, 7, 10)) == whole
        assert places(store.due(LATER, 3, 10)) == whole[:3]
        assert places(store.due(LATER, 100, 2)) == whole[:5]

    def test_who_has_waited_longest_takes_the_first_turn(self, store: Store) -> None:
        """Fairness: with more tenants than places none starves."""
        for number in range(6):
            ask(store, f"tenant-{number}", "run", make_due(due_us=START_US + (6 - number) * SECOND))
        assert places(store.due(LATER, 3, 10)) == ["tenant-5/run", "tenant-4/run", "tenant-3/run"]

    def test_what_a_worker_holds_is_left_out(self, store: Store) -> None:
        """C15: until its lease ends; then it is offered again."""
        ask(store, "acme", "run", leased(make_due(), LATER))
        assert store.due(LATER - 1, 10, 10) == []
        assert places(store.due(LATER, 10, 10)) == ["acme/run"]

    def test_a_clock_that_jumped_holds_nothing_for_ever(self, store: Store) -> None:
        """DESIGN §5: a lease further ahead than its TTL counts as expired, a time beyond any delay as past."""
        ask(store, "acme", "lease", leased(make_due(), LATER + TTL_US + 1))
        ask(store, "acme", "wait", make_due(due_us=LATER + DELAY_US + 1))
        ask(store, "other", "lease", leased(make_due(), LATER + TTL_US))
        ask(store, "other", "wait", make_due(due_us=LATER + DELAY_US))
        assert sorted(places(store.due(LATER, 10, 10))) == ["acme/lease", "acme/wait"]

    def test_a_sweep_sees_what_is_committed(self, store: Store) -> None:
        """I7: and nothing of a transaction that is open."""
        with store.write(SCOPE) as tx:
            append(tx)
            tx.due.add(make_due())
            assert store.due(LATER, 10, 10) == []
        assert places(store.due(LATER, 10, 10)) == [str(SCOPE)]
