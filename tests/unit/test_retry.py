"""Law (C14): each failure class has one answer, and every way of trying again has a bound (I22).

Checked by a table over all classes and attempt numbers, and by the bounds of the wait over generated jitter.
"""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.errors import (
    MalformedDraftError,
    OutcomeUnknownError,
    SchemaVersionError,
    StaleRevisionError,
    StoreUnavailableError,
    SummarizerError,
    TransientSummarizerError,
)
from strandline.limits import ATTEMPTS_MAX, HALVINGS_MAX, LEASE_TTL_S, RETRY_AFTER_CAP_S, RETRY_BASE_S, RETRY_CAP_S
from strandline.model.candidate import CandidateState, FailureClass, Verdict, Violation
from strandline.model.outcome import CompactionResult
from strandline.rules.ladder import AS_ASKED, LAST_RESORT, Form, same_fact
from strandline.rules.retry import (
    Again,
    GiveUp,
    ReadBack,
    Rebuild,
    Reform,
    backoff_s,
    classify,
    decide,
)

jitters = st.floats(0, 1, exclude_max=True)


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (TransientSummarizerError("rate limit", retry_after_s=3.0), FailureClass.TRANSIENT),
        (TimeoutError(), FailureClass.TRANSIENT),
        (ConnectionError(), FailureClass.TRANSIENT),
        (ConnectionResetError(), FailureClass.TRANSIENT),
        (BrokenPipeError(), FailureClass.TRANSIENT),
        (MalformedDraftError(), FailureClass.MALFORMED),
        (SummarizerError(), FailureClass.MALFORMED),
        (KeyError("choices"), FailureClass.MALFORMED),
        (StoreUnavailableError(), FailureClass.STORAGE),
        (SchemaVersionError(found=2, known=1), FailureClass.STORAGE),
        (OutcomeUnknownError(), FailureClass.STORAGE),
        (StaleRevisionError(expected=1, actual=2), FailureClass.CONFLICT),
    ],
)
def test_each_error_has_its_class(error, failure):
    assert classify(error) is failure


@pytest.mark.parametrize("attempt", range(1, ATTEMPTS_MAX + 2))
@pytest.mark.parametrize("failure", [FailureClass.TRANSIENT, FailureClass.CONFLICT, FailureClass.STORAGE])
def test_each_class_has_its_answer(failure, attempt):
    decision = decide(failure, attempt=attempt, retry_after_s=None, jitter=0.5)
    last = attempt >= ATTEMPTS_MAX
    expected = {
        FailureClass.TRANSIENT: GiveUp(candidate_state=CandidateState.PENDING, result=CompactionResult.DEAD_LETTER)
        if last
        else Again(delay_s=0.5 * min(RETRY_CAP_S, RETRY_BASE_S * 2 ** (attempt - 1))),
        FailureClass.CONFLICT: Rebuild(),
        FailureClass.STORAGE: ReadBack(),
    }
    assert decision == expected[failure]


REJECTED = GiveUp(candidate_state=CandidateState.REJECTED, result=CompactionResult.REJECTED)
QUARANTINED = GiveUp(candidate_state=CandidateState.QUARANTINED, result=CompactionResult.QUARANTINED)


def ladder(failure, **options):
    """Walk down from the form that was asked for, one bad draft after the other; return what was decided."""
    form, attempt, decisions = AS_ASKED, 1, []
    while not decisions or not isinstance(decisions[-1], GiveUp):
        decision = decide(failure, attempt=attempt, form=form, **options)
        decisions.append(decision)
        form, attempt = (decision.form, 1) if isinstance(decision, Reform) else (form, attempt + 1)
    return decisions


def reform(ended, form):
    return Reform(candidate_state=ended.candidate_state, form=form)


@pytest.mark.parametrize("can_fall_back", [True, False])
def test_a_malformed_draft_is_told_then_in_smaller_parts_then_rejected(can_fall_back):
    assert ladder(FailureClass.MALFORMED, can_fall_back=can_fall_back) == [
        Again(delay_s=0.0),
        reform(REJECTED, Form(halvings=1)),
        REJECTED,
    ]


def test_a_semantic_failure_is_told_then_in_smaller_parts_then_the_last_resort_then_quarantined():
    """The same failing transformation is not repeated: each step asks for another thing."""
    told, smaller = Again(delay_s=0.0), reform(QUARANTINED, Form(halvings=1))
    assert ladder(FailureClass.SEMANTIC) == [told, smaller, QUARANTINED]
    assert ladder(FailureClass.SEMANTIC, can_fall_back=True) == [
        told,
        smaller,
        reform(QUARANTINED, LAST_RESORT),
        QUARANTINED,
    ]


@pytest.mark.parametrize("failure", [FailureClass.MALFORMED, FailureClass.SEMANTIC])
def test_who_makes_nothing_up_is_asked_once(failure):
    """What only computes gives the same draft again."""
    assert isinstance(decide(failure, attempt=1, form=LAST_RESORT, can_fall_back=True), GiveUp)


def test_a_prompt_that_is_too_long_is_halved_at_once_and_so_often():
    halved = [reform(REJECTED, Form(halvings=number)) for number in range(1, HALVINGS_MAX + 1)]
    assert ladder(FailureClass.MALFORMED, too_long=True) == [*halved, REJECTED]


def verdict(*facts):
    return Verdict(
        violations=tuple(Violation(failure=FailureClass.SEMANTIC, rule="r", detail="", fact=f) for f in facts)
    )


@pytest.mark.parametrize(
    ("verdicts", "fact"),
    [
        ([verdict("issue a")] * 2, None),
        ([verdict("issue a")] * 3, "issue a"),
        ([verdict("issue a"), verdict("issue a"), verdict("issue b")], None),
        ([verdict("issue b"), verdict("issue a", "issue b"), verdict("issue b", "issue a")], "issue b"),
        ([verdict("issue a")] * 3 + [verdict("")], None),
        ([verdict("")] * 3, None),
        ([], None),
    ],
)
def test_three_drafts_in_a_row_that_get_one_fact_wrong_name_it(verdicts, fact):
    """C14: three omissions of the same fact escalate."""
    assert same_fact(verdicts) == fact


@given(st.integers(1, 10_000), jitters)
def test_the_wait_is_full_jitter_below_the_cap(attempt, jitter):
    wait_s = backoff_s(attempt, retry_after_s=None, jitter=jitter)
    assert 0 <= wait_s <= RETRY_CAP_S
    assert wait_s == pytest.approx(jitter * backoff_s(attempt, retry_after_s=None, jitter=1.0))


def test_the_wait_doubles_up_to_the_cap():
    waits_s = [backoff_s(attempt, retry_after_s=None, jitter=1.0) for attempt in range(1, 12)]
    assert waits_s[:3] == [RETRY_BASE_S, 2 * RETRY_BASE_S, 4 * RETRY_BASE_S]
    assert waits_s == sorted(waits_s)
    assert waits_s[-1] == RETRY_CAP_S


@given(st.integers(1, 20), jitters, st.floats(allow_nan=True, allow_infinity=True))
def test_the_wait_that_was_asked_for_is_kept_up_to_its_cap(attempt, jitter, asked_s):
    wait_s = backoff_s(attempt, retry_after_s=asked_s, jitter=jitter)
    assert 0 <= wait_s <= max(RETRY_CAP_S, RETRY_AFTER_CAP_S)
    if not math.isnan(asked_s):
        assert wait_s >= min(asked_s, RETRY_AFTER_CAP_S)
    assert wait_s >= backoff_s(attempt, retry_after_s=None, jitter=jitter)


def test_decide_hands_on_the_wait_that_was_asked_for():
    decision = decide(FailureClass.TRANSIENT, attempt=1, retry_after_s=7.0, jitter=0.0)
    assert decision == Again(delay_s=7.0)
    assert decide(FailureClass.TRANSIENT, attempt=1, retry_after_s=1e9, jitter=0.0) == Again(delay_s=RETRY_AFTER_CAP_S)


def test_the_longest_wait_is_shorter_than_the_lease():
    assert max(RETRY_AFTER_CAP_S, RETRY_CAP_S) < LEASE_TTL_S
