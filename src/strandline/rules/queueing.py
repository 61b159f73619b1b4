"""What becomes of the row of a due compaction: when it is asked for, taken by a worker, and settled (DESIGN §3).

| the run ended | and then |
| --- | --- |
| activated, nothing to do | nothing is due; what was asked for meanwhile is due as it was wanted |
| transient, conflict, storage, an unknown error | due again after a backoff with full jitter; failed at DUE_RUNS_MAX |
| rejected, quarantined, dead letter, an error that repeats itself | failed: nothing is due, until it is asked for |
| an open case stands in the way | parked: due when the case is answered, and looked at after DUE_PARKED_S |
| another compaction holds the view, or the summarizer is left alone | due again behind that; it counts as no run |
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from strandline.errors import (
    ContextOverflowError,
    CorruptRecordError,
    InvalidInputError,
    SummarizerSetupError,
    TenantScopeError,
    UnreconciledSummaryError,
)
from strandline.limits import (
    DUE_BUSY_S,
    DUE_PARKED_S,
    DUE_RUNS_MAX,
    LEASE_TTL_S,
)
from strandline.model.candidate import FailureClass
from strandline.model.due import DueCompaction, DueResult
from strandline.model.outcome import CompactionOutcome, CompactionResult
from strandline.rules.retry import classify, postponed_s

_CLASSES = {
    CompactionResult.REJECTED: FailureClass.MALFORMED,
    CompactionResult.QUARANTINED: FailureClass.SEMANTIC,
    CompactionResult.DEAD_LETTER: FailureClass.TRANSIENT,
    CompactionResult.CONFLICT: FailureClass.CONFLICT,
}
_REPEATS_ITSELF = (ContextOverflowError, CorruptRecordError, InvalidInputError, SummarizerSetupError, TenantScopeError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What `compact_later` asks for."""

    view: str
    revision: int
    priority: int
    budget: int | None
    when_tokens: int | None
    strict: bool
    wanted_us: int


def ask(there: DueCompaction | None, wish: Wish, now_us: int) -> DueCompaction:
    """Return the row after it was asked for: the newest options and revision, the higher priority, the earlier time.

    While a worker runs it, it becomes due again after that run, unless nothing else is wanted than what that run took.
    A wait after a failure, or for a case, goes on.
    """
    if there is None or there.due_us is None:
        return DueCompaction(
            view=wish.view,
            revision=wish.revision,
            priority=wish.priority,
            budget=wish.budget,
            when_tokens=wish.when_tokens,
            strict=wish.strict,
            asked_us=now_us,
            wanted_us=wish.wanted_us,
            due_us=wish.wanted_us,
            fence=there.fence if there else 0,
            outcome=there.outcome if there else None,
            failure=there.failure if there else None,
            failure_text=there.failure_text if there else "",
            watch=there.watch if there else None,
        )
    asked = replace(
        there,
        revision=max(there.revision, wish.revision),
        priority=max(there.priority, wish.priority),
        budget=wish.budget,
        when_tokens=wish.when_tokens,
        strict=wish.strict,
    )
    if there.worker is not None and asked == replace(there, priority=asked.priority):
        return asked  # what the run took, or what was asked for since
    waits = there.worker is not None or there.runs > 0 or there.parked
    return replace(
        asked,
        wanted_us=wish.wanted_us if there.wanted_us is None else min(there.wanted_us, wish.wanted_us),
        due_us=there.due_us if waits else min(there.due_us, wish.wanted_us),
    )


def take(row: DueCompaction, worker: str, now_us: int) -> DueCompaction:
    """Return the row after a worker took it: under a new fence, and offered again when its lease ends."""
    until = now_us + int(LEASE_TTL_S * 1_000_000)
    return replace(
        row,
        wanted_us=None,
        runs=row.runs + 1,
        fence=row.fence + 1,
        worker=worker,
        lease_until_us=until,
        due_us=until,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a run ended."""

    result: DueResult
    delay_s: float = 0.0
    outcome: CompactionResult | None = None
    failure: FailureClass | None = None
    text: str = ""
    case_id: str | None = None


def ending_of(outcome: CompactionOutcome, *, runs: int, jitter: float) -> Ending:
    """Say what follows a compaction that ended.

    Args:
        outcome: of the compaction.
        runs: how many were begun since it was asked for.
        jitter: a random number in [0, 1), from the Entropy port.
    """
    kind = outcome.outcome
    if kind in (CompactionResult.ACTIVATED, CompactionResult.NOTHING_TO_DO):
        return Ending(result=DueResult.DONE, outcome=kind, text=outcome.reason)
    if kind is CompactionResult.POSTPONED and outcome.again_after_s is None:
        return Ending(result=DueResult.BUSY, delay_s=DUE_BUSY_S, outcome=kind, text=outcome.reason)
    if kind is CompactionResult.POSTPONED and not outcome.attempts:
        silent = FailureClass.TRANSIENT
        delay_s = outcome.again_after_s or DUE_BUSY_S
        return Ending(result=DueResult.BUSY, delay_s=delay_s, outcome=kind, failure=silent, text=outcome.reason)
    if kind is CompactionResult.POSTPONED or kind is CompactionResult.CONFLICT:
        failure = _CLASSES.get(kind, FailureClass.TRANSIENT)
        again = _again(failure, outcome.reason, runs=runs, jitter=jitter)
        delay_s = again.delay_s if outcome.again_after_s is None else outcome.again_after_s
        return replace(again, outcome=kind, delay_s=delay_s)
    return Ending(
        result=DueResult.FAILED,
        outcome=kind,
        failure=_CLASSES[kind],
        text=outcome.reason,
        case_id=outcome.case_id,
    )


def ending_by(error: Exception, *, runs: int, jitter: float) -> Ending:
    """Say what follows a compaction that raised; arguments as those of `ending_of`."""
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, UnreconciledSummaryError):
        return Ending(result=DueResult.PARKED, delay_s=DUE_PARKED_S, text=text, case_id=error.case_id)
    if isinstance(error, _REPEATS_ITSELF):
        return Ending(result=DueResult.FAILED, text=text)
    return _again(classify(error), text, runs=runs, jitter=jitter)


def _again(failure: FailureClass, text: str, *, runs: int, jitter: float) -> Ending:
    if runs >= DUE_RUNS_MAX:
        return Ending(result=DueResult.FAILED, failure=failure, text=f"{text} (run {runs} of DUE_RUNS_MAX)")
    return Ending(result=DueResult.AGAIN, delay_s=postponed_s(runs, jitter=jitter), failure=failure, text=text)


def died_too_often(row: DueCompaction) -> Ending | None:
    """Return how a row ends whose last worker died within run DUE_RUNS_MAX: what kills who runs it, kills the next."""
    if row.worker is None or row.runs < DUE_RUNS_MAX:
        return None
    text = f"worker {row.worker!r} ended within run {row.runs} without a word, as others before (DUE_RUNS_MAX)"
    return Ending(result=DueResult.FAILED, failure=FailureClass.TRANSIENT, text=text)


def busy_us(lease_until_us: int, now_us: int) -> int:
    """Return when a view is looked at again that another compaction holds."""
    return min(lease_until_us, now_us + int(DUE_BUSY_S * 1_000_000))


def settle(row: DueCompaction, ending: Ending, now_us: int) -> DueCompaction:
    """Return the row after the run of its worker ended."""
    free = replace(
        row,
        worker=None,
        lease_until_us=0,
        outcome=ending.outcome,
        failure=ending.failure,
        failure_text=ending.text if ending.failure or ending.result not in (DueResult.DONE, DueResult.BUSY) else "",
        case_id=ending.case_id,
    )
    later_us = now_us + int(ending.delay_s * 1_000_000)
    if ending.result is DueResult.BUSY:
        return replace(free, runs=row.runs - 1, due_us=later_us, outcome=None)
    if ending.result in (DueResult.AGAIN, DueResult.PARKED):
        return replace(free, due_us=later_us)
    if row.wanted_us is None:
        return replace(free, due_us=None)
    return replace(free, due_us=max(now_us, row.wanted_us), asked_us=min(now_us, row.wanted_us), runs=0, case_id=None)


def give_back(row: DueCompaction, now_us: int) -> DueCompaction:
    """Return the row after its worker was told to stop: it is due at once, and the run counts as none."""
    return replace(row, worker=None, lease_until_us=0, runs=row.runs - 1, due_us=now_us)
