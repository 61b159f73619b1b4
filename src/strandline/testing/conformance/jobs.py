"""Candidates and attempts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from strandline.model.candidate import (
    AttemptState,
    CandidateState,
    Draft,
    FailureClass,
    SegmentJob,
    Verdict,
    Violation,
)
from strandline.model.segment import SegmentHead
from strandline.ports import Store, Transaction
from strandline.testing.conformance.base import REFUSALS, StoreLaws
from strandline.testing.conformance.stage import SCOPE, append, lease, validate
from strandline.testing.values import make_attempt, make_candidate, make_digest, make_segment

RUNNING = make_attempt("attempt-1", "candidate-1")


def begin(tx: Transaction) -> None:
    """Write a candidate with one running attempt."""
    append(tx)
    lease(tx)
    tx.jobs.add_candidate(make_candidate("candidate-1"))
    tx.jobs.add_attempt(RUNNING)


class JobLaws(StoreLaws):
    """Laws of `JobFacet`."""

    def test_a_candidate_comes_back_with_its_provenance(self, store: Store) -> None:
        """SPEC §2: plan, recipe and all; a redelivered job finds its own row."""
        plain = make_candidate("candidate-1")
        kept: tuple[SegmentHead, ...] = (make_segment("old", 1, 4).head, make_segment("older", 5, 6).head)
        job = SegmentJob(from_seq=7, through_seq=9, level=2, depth=3, budget_tokens=64, from_segments=("old", "older"))
        rich = replace(
            plain,
            candidate_id="candidate-2",
            audience_version=3,
            plan=replace(plain.plan, base_generation=2, base_summary_no=5, kept=kept, jobs=(job, *plain.plan.jobs)),
            recipe=replace(plain.recipe, strict=True, partition=4),
            state=CandidateState.QUARANTINED,
            not_before_us=77,
        )
        with store.write(SCOPE) as tx:
            append(tx)
            lease(tx)
            tx.jobs.add_candidate(plain)
            tx.jobs.add_candidate(rich)
        with store.read(SCOPE) as tx:
            assert tx.jobs.candidate("candidate-1") == plain
            assert tx.jobs.candidate("candidate-2") == rich
            assert tx.jobs.candidate("candidate-3") is None
            assert sorted(tx.jobs.all_candidates(), key=lambda candidate: candidate.candidate_id) == [plain, rich]

    @pytest.mark.parametrize("state", list(CandidateState))
    def test_only_the_state_of_a_candidate_changes(self, store: Store, state: CandidateState) -> None:
        """I6: its provenance is fixed with its id."""
        candidate, other = make_candidate("candidate-1"), make_candidate("candidate-2")
        with store.write(SCOPE) as tx:
            append(tx)
            lease(tx)
            tx.jobs.add_candidate(candidate)
            tx.jobs.add_candidate(other)
        with store.write(SCOPE) as tx:
            tx.jobs.set_candidate_state("candidate-1", state)
        with store.read(SCOPE) as tx:
            assert tx.jobs.candidate("candidate-1") == replace(candidate, state=state)
            assert tx.jobs.candidate("candidate-2") == other

    def test_jobs_are_added_once(self, store: Store) -> None:
        """I6: a second row under the id of a candidate or an attempt is refused, and the first stays."""
        with store.write(SCOPE) as tx:
            begin(tx)
        with pytest.raises(REFUSALS), store.write(SCOPE) as tx:
            tx.jobs.add_candidate(make_candidate("candidate-1", watermark=9))
        with pytest.raises(REFUSALS), store.write(SCOPE) as tx:
            tx.jobs.add_attempt(replace(RUNNING, number=2))
        with store.read(SCOPE) as tx:
            assert list(tx.jobs.all_candidates()) == [make_candidate("candidate-1")]
            assert tx.jobs.attempts("candidate-1") == [RUNNING]

    def test_attempts_come_by_number(self, store: Store) -> None:
        """I22: whatever their ids and the order in which they were added, those of this candidate only."""
        numbers = {"c": 2, "a": 10, "b": 1}
        with store.write(SCOPE) as tx:
            append(tx)
            lease(tx)
            tx.jobs.add_candidate(make_candidate("candidate-1"))
            tx.jobs.add_candidate(make_candidate("candidate-2"))
            for attempt_id, number in numbers.items():
                tx.jobs.add_attempt(make_attempt(attempt_id, "candidate-1", number=number))
            tx.jobs.add_attempt(make_attempt("d", "candidate-2", number=3))
        with store.read(SCOPE) as tx:
            assert [attempt.attempt_id for attempt in tx.jobs.attempts("candidate-1")] == ["b", "c", "a"]
            assert [attempt.attempt_id for attempt in tx.jobs.attempts("candidate-2")] == ["d"]
            assert tx.jobs.attempts("candidate-3") == []

    def test_a_settled_attempt_comes_back_with_draft_and_verdict(self, store: Store) -> None:
        """I6: drafts in order, their digest, every violation, the failure's class and text."""
        violations = (
            Violation(failure=FailureClass.SEMANTIC, rule="omitted", detail="constraint 'no deploys'"),
            Violation(failure=FailureClass.MALFORMED, rule="empty", detail=""),
        )
        settled = replace(
            RUNNING,
            state=AttemptState.QUARANTINED,
            ended_us=5,
            failure=FailureClass.SEMANTIC,
            failure_text="an approval was changed",
            drafts=(Draft(text="one", finish="length", model="m-1"), Draft(text="two\x00é")),
            draft_digest=make_digest("drafts"),
            verdict=Verdict(violations=violations),
            summary_no=4,
        )
        with store.write(SCOPE) as tx:
            begin(tx)
        with store.write(SCOPE) as tx:
            assert tx.jobs.settle_attempt(settled, fence=1, expected=AttemptState.RUNNING)
        with store.read(SCOPE) as tx:
            assert tx.jobs.attempts("candidate-1") == [settled]

    def test_no_verdict_is_not_a_good_verdict(self, store: Store) -> None:
        """I5: an attempt that was never judged is told apart from one without violations."""
        passed = validate(make_attempt("attempt-2", "candidate-1", number=2))
        with store.write(SCOPE) as tx:
            begin(tx)
            tx.jobs.add_attempt(passed)
        with store.read(SCOPE) as tx:
            assert [attempt.verdict for attempt in tx.jobs.attempts("candidate-1")] == [None, Verdict()]

    @pytest.mark.parametrize(
        ("fence", "expected"), [(0, AttemptState.RUNNING), (2, AttemptState.RUNNING), (1, AttemptState.VALIDATED)]
    )
    def test_an_attempt_is_settled_by_its_owner_only(self, store: Store, fence: int, expected: AttemptState) -> None:
        """I6: under another fence, or from another state, nothing is stored."""
        with store.write(SCOPE) as tx:
            begin(tx)
        with store.write(SCOPE) as tx:
            assert not tx.jobs.settle_attempt(validate(RUNNING), fence=fence, expected=expected)
            assert not tx.jobs.settle_attempt(replace(RUNNING, attempt_id="nobody"), fence=1, expected=expected)
        with store.read(SCOPE) as tx:
            assert tx.jobs.attempts("candidate-1") == [RUNNING]

    def test_a_stored_draft_is_never_replaced(self, store: Store) -> None:
        """I6: write-once: not by a redelivery, nor by the owner itself in a later step."""
        first = validate(RUNNING, text="the first draft")
        with store.write(SCOPE) as tx:
            begin(tx)
            assert tx.jobs.settle_attempt(first, fence=1, expected=AttemptState.RUNNING)
        second = validate(RUNNING, text="the second draft")
        with store.write(SCOPE) as tx:
            assert not tx.jobs.settle_attempt(second, fence=1, expected=AttemptState.RUNNING)
            assert not tx.jobs.settle_attempt(second, fence=1, expected=AttemptState.VALIDATED)
        with store.read(SCOPE) as tx:
            assert tx.jobs.attempts("candidate-1") == [first]

    def test_a_validated_attempt_is_handed_to_a_new_owner(self, store: Store) -> None:
        """DESIGN §2: a redelivered job goes on with the draft that is there, under the new fence only."""
        validated = validate(RUNNING)
        handed = replace(validated, fence=2)
        with store.write(SCOPE) as tx:
            begin(tx)
            assert tx.jobs.settle_attempt(validated, fence=1, expected=AttemptState.RUNNING)
        with store.write(SCOPE) as tx:
            assert tx.jobs.settle_attempt(handed, fence=1, expected=AttemptState.VALIDATED)
            activated = replace(validated, state=AttemptState.ACTIVATED)
            assert not tx.jobs.settle_attempt(activated, fence=1, expected=AttemptState.VALIDATED)
        with store.read(SCOPE) as tx:
            assert tx.jobs.attempts("candidate-1") == [handed]
