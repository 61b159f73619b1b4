"""What a failed attempt leads to (C14): pure decisions that the engine obeys. Every way out has a bound (I22).

| failure | decision |
| --- | --- |
| transient | again after a delay, ATTEMPTS_MAX attempts in all, then dead letter; the candidate stays pending |
| the same in the background | no worker waits: the run is postponed, DUE_RUNS_MAX runs in all, then dead letter |
| malformed | again at once, told what was wrong; then in another form (`rules.ladder`); then rejected |
| semantic | the same, and behind the last form quarantined: the same transformation is not repeated blindly |
| conflict | rebuild the plan from the newest snapshot; the engine bounds it by REPLANS_MAX |
| storage | read the pointer and the candidate's state first, then decide anew (I19) |
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from strandline.errors import OutcomeUnknownError, StaleRevisionError, StoreUnavailableError, TransientSummarizerError
from strandline.limits import (
    ATTEMPTS_MAX,
    DUE_RETRY_BASE_S,
    DUE_RETRY_CAP_S,
    DUE_RUNS_MAX,
    RETRY_AFTER_CAP_S,
    RETRY_BASE_S,
    RETRY_CAP_S,
)
from strandline.model.candidate import CandidateState, FailureClass
from strandline.model.outcome import CompactionResult
from strandline.rules.ladder import AS_ASKED, Form, drafts_max, next_form


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """Make another attempt after the delay; it is told what was wrong with this one."""

    delay_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Reform:
    """Give this candidate up, in this state, and ask in another form: that is another candidate."""

    candidate_state: CandidateState
    form: Form


@dataclass(frozen=True, slots=True, kw_only=True)
class Postpone:
    """End this run; the store lets another one begin after the delay."""

    delay_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GiveUp:
    """Make no further attempt: the state that the candidate gets, and how the compaction ends.

    After a dead letter the candidate stays PENDING: nothing was wrong with the job, and the next call tries it again.
    """

    candidate_state: CandidateState
    result: CompactionResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuild:
    """Plan anew from the newest snapshot, or keep the tail: the world moved on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadBack:
    """Read the authoritative pointer and the candidate's state before anything is retried (I19)."""


_ENDED: Final = {
    FailureClass.MALFORMED: (CandidateState.REJECTED, CompactionResult.REJECTED),
    FailureClass.SEMANTIC: (CandidateState.QUARANTINED, CompactionResult.QUARANTINED),
}

RetryDecision = Again | Reform | Postpone | GiveUp | Rebuild | ReadBack


def classify(error: BaseException) -> FailureClass:
    """Return the failure class of what an attempt raised (C14).

    What no row of the table knows comes from a summarizer that broke: no usable draft, so malformed.
    """
    if isinstance(error, (StoreUnavailableError, OutcomeUnknownError)):
        return FailureClass.STORAGE
    if isinstance(error, StaleRevisionError):
        return FailureClass.CONFLICT
    if isinstance(error, (TransientSummarizerError, TimeoutError, ConnectionError)):
        return FailureClass.TRANSIENT
    return FailureClass.MALFORMED


def decide(
    failure: FailureClass,
    *,
    attempt: int,
    retry_after_s: float | None = None,
    jitter: float = 0.0,
    run: int | None = None,
    form: Form = AS_ASKED,
    too_long: bool = False,
    can_fall_back: bool = False,
) -> RetryDecision:
    """Say what follows a failed attempt (C14).

    Args:
        failure: the class of the failure.
        attempt: how many attempts in this form failed so, from 1: by a passing reason, or by a bad draft.
        retry_after_s: the wait that the other side asked for, in seconds; None, negative or NaN: none.
        jitter: a random number in [0, 1), from the Entropy port.
        run: the number of the run in the background, from 1; None: somebody waits for this compaction.
        form: in which the draft was asked for.
        too_long, can_fall_back: as of `next_form`.
    """
    if failure is FailureClass.CONFLICT:
        return Rebuild()
    if failure is FailureClass.STORAGE:
        return ReadBack()
    if failure is FailureClass.TRANSIENT:
        return _transient(attempt, retry_after_s, jitter, run)
    if attempt < drafts_max(form) and not too_long:
        return Again(delay_s=0.0)
    state, result = _ENDED[failure]
    another = next_form(form, failure, too_long=too_long, can_fall_back=can_fall_back)
    if another is None:
        return GiveUp(candidate_state=state, result=result)
    return Reform(candidate_state=state, form=another)


def failure_of(state: CandidateState) -> FailureClass | None:
    """Return the class of the failure by which a candidate ended; None: it ended by none."""
    return next((failure for failure, (ended, _) in _ENDED.items() if ended is state), None)


def _transient(attempt: int, retry_after_s: float | None, jitter: float, run: int | None) -> RetryDecision:
    if run is not None and run < DUE_RUNS_MAX:
        return Postpone(delay_s=postponed_s(run, retry_after_s=retry_after_s, jitter=jitter))
    if run is not None or attempt >= ATTEMPTS_MAX:
        return GiveUp(candidate_state=CandidateState.PENDING, result=CompactionResult.DEAD_LETTER)
    return Again(delay_s=backoff_s(attempt, retry_after_s=retry_after_s, jitter=jitter))


def backoff_s(
    attempt: int,
    *,
    retry_after_s: float | None,
    jitter: float,
    base_s: float = RETRY_BASE_S,
    cap_s: float = RETRY_CAP_S,
) -> float:
    """Return the seconds to wait after attempt number `attempt`: exponential with full jitter.

    jitter * min(cap_s, base_s * 2^(attempt - 1)), the "full jitter" of M. Brooker, Exponential Backoff And Jitter
    (AWS, 2015); never less than `retry_after_s`, which counts up to RETRY_AFTER_CAP_S.
    """
    doublings = min(max(attempt, 1) - 1, 62)
    wait_s = min(cap_s, math.ldexp(base_s, doublings)) * min(max(jitter, 0.0), 1.0)
    if retry_after_s is None or math.isnan(retry_after_s):
        return wait_s
    return max(wait_s, min(retry_after_s, RETRY_AFTER_CAP_S))


def postponed_s(run: int, *, retry_after_s: float | None = None, jitter: float = 0.0) -> float:
    """Return the seconds until a due compaction is run again, after its run number `run`; as `backoff_s`."""
    return backoff_s(run, retry_after_s=retry_after_s, jitter=jitter, base_s=DUE_RETRY_BASE_S, cap_s=DUE_RETRY_CAP_S)
