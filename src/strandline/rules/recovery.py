"""Recovery's three pure decisions: which target, whether the agent may go on from it, and both in order (I15, I16).

They see numbers and texts only, and no wall clock. The engine asks them with what it read in one transaction; a foreign
checkpointer (LangGraph and others) may ask them with its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from strandline.errors import CompactionLineageError, LastKnown, SummaryReconciliationError
from strandline.model.recovery import ReconciliationReason, RecoveryTarget, ResumePoint
from strandline.rules.verbatim import stands_verbatim

T = TypeVar("T")
UNHELD: Final = "Correct the need, or get the value from where it comes from and append it as an event."
"""What to do about a need that no event holds: nothing can be recalled, and a pin would be made up."""


def select_recovery_target(
    checkpoint_seq: int | None,
    last_committed_compaction_seq: int,
    compaction_in_flight: bool,
    *,
    checkpoint_taken_in_flight: bool = False,
) -> RecoveryTarget:
    """Choose between the checkpoint and a replay, by their places in the lineage (I15, DESIGN §4).

    A checkpoint that is newer than the last committed compaction is the target. Equal is not newer: it may hold the
    working context of before. Otherwise recovery replays from the compaction's own durable output, unless a compaction
    is in flight, whose output would be neither.

    Args:
        checkpoint_seq: lineage_seq of the checkpoint; None: there is none.
        last_committed_compaction_seq: lineage_seq of the last entry that moved the pointer; 0: there is none.
        compaction_in_flight: whether a compaction is in flight now. Fence it first, then ask.
        checkpoint_taken_in_flight: whether one was in flight when the checkpoint was taken: it may hold half of it.
            Foreign checkpoints only; Strandline's own can't be torn.

    Raises:
        CompactionLineageError: the checkpoint was taken while a compaction was in flight; or it is not newer, and a
            compaction is in flight.
    """
    if checkpoint_taken_in_flight:
        raise CompactionLineageError(
            f"{_named(checkpoint_seq)} was taken while a compaction was in flight, so it may hold half of it; "
            "restore another checkpoint, or recover by replay",
            checkpoint_seq=checkpoint_seq,
            last_pointer_move=last_committed_compaction_seq,
        )
    if checkpoint_seq is not None and checkpoint_seq > last_committed_compaction_seq:
        return RecoveryTarget.CHECKPOINT
    if compaction_in_flight:
        older = "no checkpoint is newer" if checkpoint_seq is None else f"{_named(checkpoint_seq)} is not newer"
        raise CompactionLineageError(
            f"{older} than the last committed compaction at lineage_seq {last_committed_compaction_seq}, and another "
            "compaction is in flight; fence it, then recover",
            checkpoint_seq=checkpoint_seq,
            last_pointer_move=last_committed_compaction_seq,
        )
    return RecoveryTarget.REPLAY


def resume_from_checkpoint(checkpoint: ResumePoint, next_turn_deps: Iterable[str]) -> ResumePoint:
    """Return the checkpoint when the agent may go on from it, and fail closed when it may not (I16).

    The summary must be there, of the checkpoint's generation, complete, and reach the checkpoint's last durable event;
    each dependency of the next turn must stand verbatim in the summary, its tail or the checkpoint's own state.
    They are asked in this order, and the first that fails is the reason.

    Args:
        checkpoint: the checkpoint together with the active summary.
        next_turn_deps: references that the next turn needs.

    Raises:
        SummaryReconciliationError: with `reason`, and for a missing dependency `missing_refs` in the order asked and
            `last_known` of the first of them (None: no event holds it).
    """
    summary = checkpoint.summary
    if summary is None:
        raise _refusal(checkpoint, ReconciliationReason.NO_SUMMARY, "there is no summary to resume on")
    if summary.generation != checkpoint.generation:
        raise _refusal(
            checkpoint,
            ReconciliationReason.GENERATION_MISMATCH,
            f"the active summary is of generation {summary.generation}",
        )
    if not summary.complete:
        raise _refusal(checkpoint, ReconciliationReason.HALF_WRITTEN, "its summary is half-written")
    if summary.reaches_seq < checkpoint.last_durable_seq:
        raise _refusal(
            checkpoint,
            ReconciliationReason.BEHIND_CHECKPOINT,
            f"its summary and tail reach event {summary.reaches_seq}, but the checkpoint's last durable event is "
            f"{checkpoint.last_durable_seq}",
        )
    missing = missing_dependencies(next_turn_deps, summary.text, summary.tail_text, checkpoint.state_text)
    if missing:
        last_known = checkpoint.last_known.get(missing[0])
        raise _refusal(
            checkpoint,
            ReconciliationReason.DEPENDENCY_NOT_VERBATIM,
            _missing_text(missing, last_known),
            missing_refs=missing,
            last_known=last_known,
            hint=UNHELD if last_known is None else None,
        )
    return checkpoint


def recover(
    checkpoint_seq: int | None,
    last_committed_compaction_seq: int,
    compaction_in_flight: bool,
    restore_fn: Callable[[], T],
    replay_fn: Callable[[], T],
    *,
    checkpoint_taken_in_flight: bool = False,
) -> T:
    """Decide by `select_recovery_target`, then call exactly one of the two functions and return what it returns.

    Neither is called when the decision raises; what they raise is passed on, and the other one is not tried.

    Raises:
        CompactionLineageError: as `select_recovery_target`.
    """
    target = select_recovery_target(
        checkpoint_seq,
        last_committed_compaction_seq,
        compaction_in_flight,
        checkpoint_taken_in_flight=checkpoint_taken_in_flight,
    )
    return restore_fn() if target is RecoveryTarget.CHECKPOINT else replay_fn()


def missing_dependencies(needs: Iterable[str], *texts: str) -> tuple[str, ...]:
    """Return the needs that stand verbatim in none of the texts, each once, in the order asked (`rules.verbatim`).

    Each text is looked at by itself: what only their concatenation holds is missing.
    """
    return tuple(ref for ref in dict.fromkeys(needs) if not any(stands_verbatim(ref, text) for text in texts))


def _refusal(
    checkpoint: ResumePoint,
    reason: ReconciliationReason,
    what: str,
    *,
    missing_refs: tuple[str, ...] = (),
    last_known: LastKnown | None = None,
    hint: str | None = None,
) -> SummaryReconciliationError:
    summary = checkpoint.summary
    turn = "" if checkpoint.turn is None else f" at turn {checkpoint.turn}"
    todo = _WHAT_TO_DO[reason] if hint is None else "don't make it up"
    return SummaryReconciliationError(
        f"can't resume{turn} on generation {checkpoint.generation}: {what}; {todo}",
        summary_generation=None if summary is None else summary.generation,
        checkpoint_turn=checkpoint.turn,
        reason=reason,
        missing_refs=missing_refs,
        last_known=last_known,
        hint=hint,
    )


_WHAT_TO_DO = {
    ReconciliationReason.NO_SUMMARY: "recover by replay, or restore a checkpoint that has one",
    ReconciliationReason.GENERATION_MISMATCH: "recover by replay from the active summary and its tail",
    ReconciliationReason.HALF_WRITTEN: "recover by replay from the newest verified generation",
    ReconciliationReason.BEHIND_CHECKPOINT: "read the missing events out of the log, or recover by replay",
    ReconciliationReason.DEPENDENCY_NOT_VERBATIM: ("look the verbatim event up with recall; don't derive it anew"),
}


def _missing_text(missing: tuple[str, ...], last_known: LastKnown | None) -> str:
    others = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
    if last_known is None:
        seen = "no event is known to hold it"
    else:
        dropped = last_known.generation_dropped
        seen = f"last known at event {last_known.seq} ({last_known.event_kind})" + (
            f", dropped by generation {dropped}" if dropped is not None else ""
        )
    return (
        f"the next turn needs {missing[0]!r}{others}, which stands verbatim in neither summary, tail nor state; {seen}"
    )


def _named(checkpoint_seq: int | None) -> str:
    return "the checkpoint" if checkpoint_seq is None else f"the checkpoint at lineage_seq {checkpoint_seq}"
