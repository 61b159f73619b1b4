"""Threads on one store."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from strandline.model.ids import Scope
from strandline.ports import KeyTakenError, Store
from strandline.testing.conformance.base import StoreLaws
from strandline.testing.conformance.processes import append_one
from strandline.testing.conformance.stage import FAR, SCOPE, append, give_up, prepare
from strandline.testing.conformance.views import move
from strandline.testing.values import make_event

THREADS = 8
ROUNDS = 25


def at_once(work: Callable[[int], object], threads: int = THREADS) -> list[object]:
    """Run the work in threads that start together, and return what each gave; their errors are raised here."""
    gate = threading.Barrier(threads)

    def begin(number: int) -> object:
        gate.wait()
        return work(number)

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(begin, range(threads)))


class RaceLaws(StoreLaws):
    """Laws under concurrency."""

    def test_concurrent_writers_leave_no_gap_and_no_duplicate(self, store: Store) -> None:
        """I1, I2: head and events are read, changed and written under the head's lock: 0 events lost."""

        def work(number: int) -> None:
            for turn in range(ROUNDS):
                append_one(store, SCOPE, f"{number}/{turn}")

        at_once(work)
        with store.read(SCOPE) as tx:
            events = list(tx.log.read(1, FAR))
            assert [event.seq for event in events] == list(range(1, THREADS * ROUNDS + 1))
            assert {event.key for event in events} == {f"{n}/{turn}" for n in range(THREADS) for turn in range(ROUNDS)}
            assert tx.log.head().revision == tx.log.head().live_events == tx.log.count() == THREADS * ROUNDS
            assert tx.log.head().chain == events[-1].chain

    def test_rollbacks_among_the_writers_leave_no_gap(self, store: Store) -> None:
        """I1: every other transaction is given up after it has written."""

        def work(number: int) -> None:
            for turn in range(ROUNDS):
                with pytest.raises(RuntimeError):
                    give_up(store, SCOPE, f"given up {number}/{turn}")
                append_one(store, SCOPE, f"{number}/{turn}")

        at_once(work)
        with store.read(SCOPE) as tx:
            seqs = [event.seq for event in tx.log.read(1, FAR)]
            assert seqs == list(range(1, THREADS * ROUNDS + 1))
            assert tx.log.head().revision == tx.log.count() == THREADS * ROUNDS

    def test_readers_never_see_half_a_commit(self, store: Store) -> None:
        """I7: head, count and events agree in every snapshot, while others write two events at a time."""
        writers = 2

        def work(number: int) -> None:
            for turn in range(ROUNDS):
                if number < writers:
                    with store.write(SCOPE) as tx:
                        append(tx, 2, f"{number}/{turn}")
                    continue
                with store.read(SCOPE) as tx:
                    revision = tx.log.head().revision
                    assert revision % 2 == 0
                    assert tx.log.count() == revision
                    assert [event.seq for event in tx.log.read(1, FAR)] == list(range(1, revision + 1))
                    assert tx.log.head().revision == revision

        at_once(work, threads=writers + 3)
        with store.read(SCOPE) as tx:
            assert tx.log.count() == writers * ROUNDS * 2

    def test_one_of_many_takes_a_key(self, store: Store) -> None:
        """I3: the others get KeyTakenError, and add nothing."""

        def work(number: int) -> bool:
            try:
                with store.write(SCOPE) as tx:
                    head = tx.log.head()
                    tx.log.insert([make_event(head.revision + 1, key="the key", body=b"by %d" % number)])
                    tx.log.set_head(replace(head, revision=head.revision + 1))
            except KeyTakenError:
                return False
            return True

        assert sorted(map(bool, at_once(work))) == [False] * (THREADS - 1) + [True]
        with store.read(SCOPE) as tx:
            assert tx.log.head().revision == tx.log.count() == 1

    def test_one_of_many_moves_the_pointer(self, store: Store) -> None:
        """I6: of all who hold the same validated attempt one activates it; the generation is moved once."""
        with store.write(SCOPE) as tx:
            append(tx, 3)
            prepared = prepare(tx)

        def work(_: int) -> bool:
            with store.write(SCOPE) as tx:
                return move(tx, prepared)

        assert sorted(map(bool, at_once(work))) == [False] * (THREADS - 1) + [True]
        with store.read(SCOPE) as tx:
            assert tx.views.get("main") == prepared.moved

    def test_workflows_are_made_and_written_side_by_side(self, store: Store) -> None:
        """I1, I21: eight at once, each with its own seqs."""

        def work(number: int) -> None:
            scope = Scope(tenant=f"tenant-{number % 2}", workflow=f"workflow-{number}")
            for turn in range(ROUNDS):
                append_one(store, scope, str(turn))

        at_once(work)
        assert len(store.scopes()) == THREADS
        for scope in store.scopes():
            with store.read(scope) as tx:
                assert [event.key for event in tx.log.read(1, FAR)] == [str(turn) for turn in range(ROUNDS)]
