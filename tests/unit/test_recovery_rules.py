"""Law (I15, I16): recovery takes the checkpoint only when it is newer, and the agent goes on only from what is whole.

The gate is checked by a truth table over all combinations of its arguments, written out apart from the code; the resume
rule by one case per reason, by their order, and by properties over generated texts.
"""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.errors import CompactionLineageError, LastKnown, SummaryReconciliationError
from strandline.model.recovery import ReconciliationReason, RecoveryTarget, ResumePoint, SummaryAtRecovery
from strandline.rules.recovery import missing_dependencies, recover, resume_from_checkpoint, select_recovery_target
from strandline.rules.verbatim import stands_verbatim

REFUSED = "refused"
LAST = 10

#   checkpoint_seq, compaction_in_flight, taken_in_flight -> answer, with the last committed compaction at LAST
TABLE = {
    (None, False, False): RecoveryTarget.REPLAY,
    (None, True, False): REFUSED,
    (LAST - 1, False, False): RecoveryTarget.REPLAY,
    (LAST - 1, True, False): REFUSED,
    (LAST, False, False): RecoveryTarget.REPLAY,
    (LAST, True, False): REFUSED,
    (LAST + 1, False, False): RecoveryTarget.CHECKPOINT,
    (LAST + 1, True, False): RecoveryTarget.CHECKPOINT,
    (None, False, True): REFUSED,
    (None, True, True): REFUSED,
    (LAST - 1, False, True): REFUSED,
    (LAST - 1, True, True): REFUSED,
    (LAST, False, True): REFUSED,
    (LAST, True, True): REFUSED,
    (LAST + 1, False, True): REFUSED,
    (LAST + 1, True, True): REFUSED,
}


def test_the_table_is_whole():
    assert set(TABLE) == set(itertools.product((None, LAST - 1, LAST, LAST + 1), (False, True), (False, True)))


@pytest.mark.parametrize(("arguments", "answer"), TABLE.items())
def test_the_gate_answers_by_the_table(arguments, answer):
    checkpoint_seq, in_flight, taken_in_flight = arguments
    if answer is REFUSED:
        with pytest.raises(CompactionLineageError) as refusal:
            select_recovery_target(checkpoint_seq, LAST, in_flight, checkpoint_taken_in_flight=taken_in_flight)
        assert refusal.value.checkpoint_seq == checkpoint_seq
        assert refusal.value.last_pointer_move == LAST
    else:
        assert (
            select_recovery_target(checkpoint_seq, LAST, in_flight, checkpoint_taken_in_flight=taken_in_flight)
            is answer
        )


@pytest.mark.parametrize(("arguments", "answer"), TABLE.items())
def test_recover_calls_exactly_what_the_gate_answers(arguments, answer):
    checkpoint_seq, in_flight, taken_in_flight = arguments
    called = []

    def restore():
        called.append(RecoveryTarget.CHECKPOINT)
        return "restored"

    def replay():
        called.append(RecoveryTarget.REPLAY)
        return "replayed"

    if answer is REFUSED:
        with pytest.raises(CompactionLineageError):
            recover(checkpoint_seq, LAST, in_flight, restore, replay, checkpoint_taken_in_flight=taken_in_flight)
        assert called == []
    else:
        result = recover(checkpoint_seq, LAST, in_flight, restore, replay, checkpoint_taken_in_flight=taken_in_flight)
        assert called == [answer]
        assert result == {RecoveryTarget.CHECKPOINT: "restored", RecoveryTarget.REPLAY: "replayed"}[answer]


@given(st.none() | st.integers(0, 50), st.integers(0, 50), st.booleans())
def test_the_gate_looks_at_the_order_only(checkpoint_seq, last, in_flight):
    newer = checkpoint_seq is not None and checkpoint_seq > last
    try:
        answer = select_recovery_target(checkpoint_seq, last, in_flight)
    except CompactionLineageError:
        answer = REFUSED
    assert answer == (RecoveryTarget.CHECKPOINT if newer else REFUSED if in_flight else RecoveryTarget.REPLAY)


def test_a_checkpoint_before_any_compaction_is_newer_than_none():
    assert select_recovery_target(1, 0, False) is RecoveryTarget.CHECKPOINT
    assert select_recovery_target(0, 0, False) is RecoveryTarget.REPLAY


def test_the_refusals_say_what_and_what_to_do():
    with pytest.raises(CompactionLineageError, match=r"lineage_seq 3 is not newer .* lineage_seq 4.*fence it"):
        select_recovery_target(3, 4, True)
    with pytest.raises(CompactionLineageError, match=r"^no checkpoint is newer .* lineage_seq 4.*fence it"):
        select_recovery_target(None, 4, True)
    with pytest.raises(CompactionLineageError, match=r"lineage_seq 9 was taken while .*; restore another"):
        select_recovery_target(9, 4, False, checkpoint_taken_in_flight=True)


def test_what_a_function_raises_is_passed_on_and_the_other_is_not_tried():
    called = []

    def fail():
        raise OSError("disk")

    with pytest.raises(OSError, match="disk"):
        recover(5, 4, False, fail, lambda: called.append("replay"))
    with pytest.raises(OSError, match="disk"):
        recover(4, 4, False, lambda: called.append("restore"), fail)
    assert called == []


# ------------------------------------------------------------------------------------------------ resume


def point(*, summary="default", **changes):
    given_summary = SummaryAtRecovery(
        generation=4, complete=True, reaches_seq=180, text="bucket-7f3a is in use", tail_text="wrote /srv/app.py"
    )
    values = {
        "generation": 4,
        "turn": 17,
        "last_durable_seq": 180,
        "summary": given_summary if summary == "default" else summary,
        "state_text": '{"token": "tok_99"}',
        "last_known": {},
    }
    return ResumePoint(**{**values, **changes})


def summary(**changes):
    values = {"generation": 4, "complete": True, "reaches_seq": 180, "text": "bucket-7f3a", "tail_text": ""}
    return SummaryAtRecovery(**{**values, **changes})


def refusal(checkpoint, needs=()):
    with pytest.raises(SummaryReconciliationError) as caught:
        resume_from_checkpoint(checkpoint, needs)
    return caught.value


def test_a_whole_checkpoint_is_handed_back_as_it_is():
    checkpoint = point()
    assert resume_from_checkpoint(checkpoint, []) is checkpoint
    assert resume_from_checkpoint(checkpoint, ["bucket-7f3a", "/srv/app.py", "tok_99"]) is checkpoint


@pytest.mark.parametrize(
    ("checkpoint", "reason"),
    [
        (point(summary=None), ReconciliationReason.NO_SUMMARY),
        (point(summary=summary(generation=5)), ReconciliationReason.GENERATION_MISMATCH),
        (point(summary=summary(generation=3)), ReconciliationReason.GENERATION_MISMATCH),
        (point(summary=summary(complete=False)), ReconciliationReason.HALF_WRITTEN),
        (point(summary=summary(reaches_seq=179)), ReconciliationReason.BEHIND_CHECKPOINT),
        # where several apply, the first asked is the reason
        (point(summary=summary(generation=5, complete=False, reaches_seq=1)), ReconciliationReason.GENERATION_MISMATCH),
        (point(summary=summary(complete=False, reaches_seq=1)), ReconciliationReason.HALF_WRITTEN),
    ],
)
def test_each_reason_is_told(checkpoint, reason):
    error = refusal(checkpoint, ["nowhere-1"])
    assert error.reason == reason
    assert error.checkpoint_turn == 17
    assert error.missing_refs == ()
    assert error.missing_ref is None
    assert error.summary_generation == (checkpoint.summary.generation if checkpoint.summary else None)
    assert "turn 17" in error.message
    assert "generation 4" in error.message


@pytest.mark.parametrize("reaches_seq", [180, 181])
def test_a_summary_that_reaches_the_last_durable_event_will_do(reaches_seq):
    checkpoint = point(summary=summary(reaches_seq=reaches_seq))
    assert resume_from_checkpoint(checkpoint, []) is checkpoint


def test_missing_dependencies_are_told_in_the_order_asked():
    known = {
        "zeta-1": LastKnown(seq=31, generation_dropped=4, event_kind="tool_result"),
        "alpha-2": LastKnown(seq=8, generation_dropped=None, event_kind="message"),
    }
    error = refusal(point(last_known=known), ["zeta-1", "bucket-7f3a", "alpha-2", "zeta-1"])
    assert error.reason == ReconciliationReason.DEPENDENCY_NOT_VERBATIM
    assert error.missing_refs == ("zeta-1", "alpha-2")
    assert error.missing_ref == "zeta-1"
    assert error.last_known == known["zeta-1"]
    assert error.summary_generation == 4
    for part in ("generation 4", "turn 17", "'zeta-1'", "event 31", "tool_result", "1 more", "recall"):
        assert part in error.message


def test_a_dependency_that_no_event_holds_has_no_last_known():
    error = refusal(point(), ["zeta-1"])
    assert error.last_known is None
    assert "no event is known to hold it" in error.message


@pytest.mark.parametrize("need", ["bucket-7f3", "bucket-7f3aa", "/srv/app", "tok_9", "BUCKET-7F3A", ""])
def test_a_part_of_a_token_does_not_stand(need):
    assert refusal(point(), [need]).missing_refs == (need,)


def test_each_text_is_looked_at_by_itself():
    torn = point(summary=summary(text="made bucket-", tail_text="7f3a"), state_text="")
    assert refusal(torn, ["bucket-7f3a"]).missing_refs == ("bucket-7f3a",)


tokens = st.sampled_from(["a-1", "b-2", "c-3", "d-4", "a-11"])
texts = st.lists(tokens, max_size=4).map(" ".join)


@given(st.lists(tokens), texts, texts, texts)
def test_missing_is_what_no_text_holds(needs, text, tail, state):
    where = (text, tail, state)
    missing = missing_dependencies(iter(needs), *where)
    expected = [ref for ref in needs if not any(stands_verbatim(ref, text) for text in where)]
    assert missing == tuple(dict.fromkeys(expected))


@given(st.lists(tokens), texts, texts, texts)
def test_resume_refuses_exactly_when_something_is_missing(needs, text, tail, state):
    checkpoint = point(summary=summary(text=text, tail_text=tail), state_text=state)
    missing = missing_dependencies(needs, text, tail, state)
    if missing:
        assert refusal(checkpoint, needs).missing_refs == missing
    else:
        assert resume_from_checkpoint(checkpoint, needs) is checkpoint


def test_without_texts_everything_is_missing():
    assert missing_dependencies(["a-1"]) == ("a-1",)
