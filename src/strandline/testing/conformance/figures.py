"""What the store says of itself (C27)."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from strandline.limits import LEASE_TTL_S
from strandline.model.candidate import AttemptState, FailureClass
from strandline.model.case import CaseKind, CaseState
from strandline.model.figures import MICROSECONDS, Figures
from strandline.model.ids import Scope
from strandline.model.lineage import LineageKind
from strandline.ports import Store
from strandline.testing.conformance.base import OpenStore, StoreLaws
from strandline.testing.conformance.stage import SCOPE, activate, append, lease, populate, record
from strandline.testing.fakes import START_US
from strandline.testing.values import make_attempt, make_candidate, make_case, make_dropped, make_due

NOW_US: Final = START_US + 3_600 * MICROSECONDS


def of(store: Store) -> Figures:
    """Return the tenant's figures, an hour after everything began."""
    return store.figures(SCOPE.tenant, NOW_US).of(SCOPE.tenant)


class FigureLaws(StoreLaws):
    """Laws about counts and ages."""

    def test_an_empty_store_has_no_figures(self, store: Store) -> None:
        """Nor has a tenant that is not there, or that was only read."""
        with store.read(SCOPE):
            pass
        assert store.figures(None, NOW_US).tenants == store.figures(SCOPE.tenant, NOW_US).tenants == ()
        assert store.figures(None, NOW_US).at_us == NOW_US

    def test_figures_count_logs_and_lineage(self, store: Store) -> None:
        """Events of all workflows; entries by kind, but for checkpoints, of which an agent makes one each turn."""
        for number, workflow in enumerate(("a", "b"), start=1):
            with store.write(replace(SCOPE, workflow=workflow)) as tx:
                append(tx, 2 * number)
                record(tx, LineageKind.CHECKPOINT, name="main")
                record(tx, LineageKind.RESTORE, name="main", restored_seq=1)
        found = of(store)
        assert (found.workflows, found.events, found.lineage) == (2, 6, {"restore": 2})

    def test_figures_count_attempts(self, store: Store) -> None:
        """By state and by class of failure; retries; those that came late; the age of the oldest that runs."""
        ended = (
            (1, AttemptState.FAILED, FailureClass.TRANSIENT),
            (2, AttemptState.FENCED, None),
            (3, AttemptState.QUARANTINED, FailureClass.SEMANTIC),
        )
        with store.write(SCOPE) as tx:
            tx.jobs.add_candidate(make_candidate("job"))
            begun = {}
            for number in range(1, 6):
                first = make_attempt(f"job.{number}", "job", fence=number)
                begun[number] = replace(first, number=number, started_us=START_US + number * MICROSECONDS)
                tx.jobs.add_attempt(begun[number])
            for number, state, failure in ended:
                settled = replace(begun[number], state=state, failure=failure)
                assert tx.jobs.settle_attempt(settled, fence=number, expected=AttemptState.RUNNING)
        found = of(store)
        assert found.attempts == {"running": 2, "failed": 1, "fenced": 1, "quarantined": 1}
        assert found.failures == {"transient": 1, "semantic": 1}
        assert (found.candidates, found.retries, found.attempts_started, found.stale) == (1, 4, 5, 1)
        assert found.running_age_s == 3_600 - 4

    def test_a_validated_attempt_is_stale_once_its_lease_is_gone(self, store: Store) -> None:
        """I6: while it holds the lease it may still be activated."""
        with store.write(SCOPE) as tx:
            tx.jobs.add_candidate(make_candidate("job"))
            begun = make_attempt("job.1", "job", fence=1)
            tx.jobs.add_attempt(begun)
            validated = replace(begun, state=AttemptState.VALIDATED)
            assert tx.jobs.settle_attempt(validated, fence=1, expected=AttemptState.RUNNING)
            tx.views.put(replace(lease(tx), lease_attempt="job.1"))
        assert of(store).stale == 0
        with store.write(SCOPE) as tx:
            view = tx.views.all()[0]
            tx.views.put(replace(view, fence=view.fence + 1, lease_attempt=None))
        assert of(store).stale == 1

    def test_figures_tell_live_leases_from_expired_ones(self, store: Store) -> None:
        """One further ahead than its TTL counts as expired."""
        longest = NOW_US + int(LEASE_TTL_S * MICROSECONDS)
        for number, until_us in enumerate((NOW_US + 1, longest, NOW_US, longest + 1)):
            with store.write(replace(SCOPE, workflow=f"w{number}")) as tx:
                tx.views.put(replace(lease(tx), lease_until_us=until_us))
        assert of(store).leases == {"live": 2, "expired": 2}

    def test_figures_count_due_compactions(self, store: Store) -> None:
        """Those that wait for a worker, for their time, and those that one runs; what is done does not count."""
        rows = (
            make_due(due_us=NOW_US - 40 * MICROSECONDS),
            make_due(due_us=NOW_US - 50 * MICROSECONDS),
            make_due(due_us=NOW_US + 1),
            replace(make_due(due_us=NOW_US - 90 * MICROSECONDS), worker="somebody", lease_until_us=NOW_US + 1),
            make_due(due_us=None),
        )
        for number, row in enumerate(rows):
            with store.write(replace(SCOPE, workflow=f"w{number}")) as tx:
                tx.due.add(row)
        found = of(store)
        assert found.due == {"due": 2, "later": 1, "running": 1}
        assert found.due_age_s == 50

    def test_figures_count_cases(self, store: Store) -> None:
        """All that were opened, those that are open, and how long the oldest of each kind has been."""
        kinds = (CaseKind.QUARANTINED, CaseKind.QUARANTINED, CaseKind.REGRESSION)
        with store.write(SCOPE) as tx:
            cases = [
                replace(make_case(f"case-{number}"), identity=f"question {number}", kind=kind)
                for number, kind in enumerate(kinds, start=1)
            ]
            for number, case in enumerate(cases, start=1):
                tx.cases.add(replace(case, opened_us=START_US + number * 600 * MICROSECONDS))
            assert tx.cases.settle(replace(cases[-1], state=CaseState.ANSWERED))
        found = of(store)
        assert found.cases_opened == {"quarantined": 2, "regression": 1}
        assert found.cases_open == {"quarantined": 2}
        assert found.cases_age_s == {"quarantined": 3_000}

    def test_figures_measure_active_summaries(self, store: Store) -> None:
        """Their tokens and manifests; one that another replaced counts only in what all segments were made from."""
        with store.write(SCOPE) as tx:
            append(tx, 3)
            first = activate(tx)
            append(tx, 3)
            second = activate(tx, [make_dropped(1, 1)])
        found = of(store)
        assert (found.summaries, found.summary_tokens) == (1, second.tokens)
        assert (found.manifest_refs, found.manifest_refs_max) == (second.dropped_count, second.dropped_count)
        assert found.depth_max == second.depth
        segments = [segment.head for summary in (first, second) for segment in summary.segments]
        assert found.segment_tokens == sum(head.tokens for head in segments)
        assert found.source_tokens == sum(head.source_tokens for head in segments)
        assert found.attempts == {"activated": 2}

    def test_a_tenant_has_its_own_figures_only(self, store: Store) -> None:
        """I21: what others do changes none of them; who operates the store sees all."""
        with store.write(SCOPE) as tx:
            populate(tx, "ours")
        alone = of(store)
        for name in ("umbrella", "acme_", "Acme", "acm"):
            with store.write(Scope(tenant=name, workflow=SCOPE.workflow)) as tx:
                populate(tx, "theirs")
                append(tx, 5)
        assert of(store) == alone
        assert [figures.tenant for figures in store.figures(SCOPE.tenant, NOW_US).tenants] == [SCOPE.tenant]
        assert store.figures(None, NOW_US).of("umbrella").events == alone.events + 5
        assert len(store.figures(None, NOW_US).tenants) == 5

    def test_a_restart_loses_no_figure(self, open_store: OpenStore) -> None:
        """C27: they are in the rows."""
        store = open_store()
        with store.write(SCOPE) as tx:
            populate(tx, "ours")
        before = of(store)
        assert before.attempts == {"activated": 1}
        store.close()
        if self.durable:
            again = open_store()
            assert of(again) == before
            again.close()
