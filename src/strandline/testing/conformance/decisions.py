"""What is decided beside the log: cases, effects, permits. Each is settled once, from what its owner knows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from strandline.model.action import PermitState
from strandline.model.case import CaseKind, CaseState
from strandline.ports import Store
from strandline.testing.conformance.base import REFUSALS, StoreLaws
from strandline.testing.conformance.stage import SCOPE, append
from strandline.testing.values import make_case, make_permit


class DecisionLaws(StoreLaws):
    """Laws of `CaseFacet` and `PermitFacet`; those of effects are `EffectLaws`."""

    # ------------------------------------------------------------------------------------------ cases

    def test_a_case_comes_back_whole(self, store: Store) -> None:
        """C21: with what it asks, by its id, by its identity while it is open, and in the order of opening."""
        first = make_case("b", generation=3, summary_no=2)
        second = replace(make_case("a", kind=CaseKind.DEAD_LETTER), opened_us=first.opened_us + 1, subject="job-9")
        with store.write(SCOPE) as tx:
            append(tx)
            tx.cases.add(second)
            tx.cases.add(first)
        with store.read(SCOPE) as tx:
            assert list(tx.cases.all()) == [first, second]
            assert [tx.cases.get(case.case_id) for case in (first, second)] == [first, second]
            assert tx.cases.get("c") is None
            assert tx.cases.open_one(first.identity) == first
            assert tx.cases.open_one("another question") is None

    def test_a_question_is_open_once(self, store: Store) -> None:
        """I11: another case of the same identity can't stand beside it; once it is answered, one can."""
        first = make_case("a")
        second = replace(make_case("b"), identity=first.identity)
        with store.write(SCOPE) as tx:
            append(tx)
            tx.cases.add(first)
        with pytest.raises(REFUSALS), store.write(SCOPE) as tx:
            tx.cases.add(second)
        with store.write(SCOPE) as tx:
            assert tx.cases.settle(replace(first, state=CaseState.ANSWERED))
            assert tx.cases.count_of(first.identity) == 1
            assert tx.cases.open_one(first.identity) is None
            tx.cases.add(second)
            assert tx.cases.count_of(first.identity) == 2
            assert tx.cases.open_one(first.identity) == second

    def test_the_first_answer_wins(self, store: Store) -> None:
        """I11: a second one changes nothing, whoever gives it."""
        case = make_case("a")
        answered = replace(case, state=CaseState.ANSWERED, answer="abandon", by="dana", answered_us=9, answered_seq=1)
        with store.write(SCOPE) as tx:
            append(tx)
            tx.cases.add(case)
            assert tx.cases.settle(answered)
            assert not tx.cases.settle(replace(answered, answer="replay_from_exact", by="lee"))
            assert not tx.cases.settle(replace(answered, case_id="b"))
        with store.read(SCOPE) as tx:
            assert list(tx.cases.all()) == [answered]

    @pytest.mark.parametrize("kind", CaseKind)
    def test_the_oldest_blocking_case_of_a_summary(self, store: Store, kind: CaseKind) -> None:
        """I11: of this view and this summary, open, and of a kind that blocks."""
        first = make_case("b", kind=kind, summary_no=2)
        second = replace(make_case("a", kind=kind, summary_no=2), opened_us=first.opened_us + 1)
        with store.write(SCOPE) as tx:
            append(tx)
            tx.cases.add(second)
            tx.cases.add(first)
            assert tx.cases.blocking("main", 2) == (first if first.blocking else None)
            assert tx.cases.blocking("main", 1) is None
            assert tx.cases.blocking("other", 2) is None
            assert tx.cases.settle(replace(first, state=CaseState.ANSWERED))
            assert tx.cases.blocking("main", 2) == (second if first.blocking else None)

    def test_cases_of_a_kind_and_a_state(self, store: Store) -> None:
        """Recovery and compaction ask for a few among many: in the order of opening; and how many there are in all."""
        first = make_case("c", kind=CaseKind.QUARANTINED)
        later = replace(make_case("a", kind=CaseKind.QUARANTINED), opened_us=first.opened_us + 1)
        other = make_case("b", kind=CaseKind.DEAD_LETTER)
        with store.write(SCOPE) as tx:
            append(tx)
            for case in (later, other, first):
                tx.cases.add(case)
            assert tx.cases.of_kind(CaseKind.QUARANTINED, CaseState.OPEN) == [first, later]
            answered = replace(first, state=CaseState.ANSWERED)
            assert tx.cases.settle(answered)
        with store.read(SCOPE) as tx:
            assert tx.cases.of_kind(CaseKind.QUARANTINED, CaseState.OPEN) == [later]
            assert tx.cases.of_kind(CaseKind.QUARANTINED, CaseState.ANSWERED) == [answered]
            assert tx.cases.of_kind(CaseKind.REGRESSION, CaseState.OPEN) == []
            assert tx.cases.count() == 3

    # ------------------------------------------------------------------------------------------ permits

    def test_a_decision_comes_back_whole(self, store: Store) -> None:
        """C24: by its id, and in the order of decisions; a denial too."""
        first = make_permit("b")
        second = replace(
            make_permit("a", PermitState.DENIED), decided_us=first.decided_us + 1, reasons=("nobody did",), facts=()
        )
        with store.write(SCOPE) as tx:
            append(tx)
            tx.permits.add(second)
            tx.permits.add(first)
        with store.read(SCOPE) as tx:
            assert list(tx.permits.all()) == [first, second]
            assert [tx.permits.get(permit.permit_id) for permit in (first, second)] == [first, second]
            assert tx.permits.get("c") is None

    def test_a_decision_is_made_once(self, store: Store) -> None:
        """I20: an id has one row."""
        with store.write(SCOPE) as tx:
            append(tx)
            tx.permits.add(make_permit("a"))
        with pytest.raises(REFUSALS), store.write(SCOPE) as tx:
            tx.permits.add(make_permit("a", PermitState.DENIED))

    def test_a_permit_is_consumed_once(self, store: Store) -> None:
        """I20: the second effect that brings it finds it consumed; a denial is never consumed."""
        permit, denial = make_permit("a"), make_permit("b", PermitState.DENIED)
        consumed = replace(permit, state=PermitState.CONSUMED, consumed_by="pay-1", consumed_us=9)
        with store.write(SCOPE) as tx:
            append(tx)
            tx.permits.add(permit)
            tx.permits.add(denial)
            assert tx.permits.settle(consumed, expected=PermitState.GRANTED)
            assert not tx.permits.settle(replace(consumed, consumed_by="pay-2"), expected=PermitState.GRANTED)
            granted = replace(denial, state=PermitState.CONSUMED)
            assert not tx.permits.settle(granted, expected=PermitState.GRANTED)
        with store.read(SCOPE) as tx:
            assert [tx.permits.get("a"), tx.permits.get("b")] == [consumed, denial]

    def test_an_approval_is_used_up_once(self, store: Store) -> None:
        """I20: the first permit has it; the same seq of another workflow is another approval."""
        with store.write(SCOPE) as tx:
            append(tx)
            assert tx.permits.used("release-42", 7) is None
            assert tx.permits.use("release-42", 7, "permit-1")
            assert not tx.permits.use("release-42", 7, "permit-2")
            assert tx.permits.use("fork", 7, "permit-2")
            assert tx.permits.use("release-42", 8, "permit-1")
        with store.read(SCOPE) as tx:
            assert [tx.permits.used("release-42", 7), tx.permits.used("fork", 7)] == ["permit-1", "permit-2"]
            assert tx.permits.used("release-42", 9) is None
            assert sorted(tx.permits.all_uses()) == [
                ("fork", 7, "permit-2"),
                ("release-42", 7, "permit-1"),
                ("release-42", 8, "permit-1"),
            ]
