"""Which answers fit which case, and the policy that comes with Strandline (I11, I17, C21)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from strandline.errors import InvalidInputError
from strandline.model.case import (
    ANSWER_NAMES,
    Abandon,
    AcceptDivergence,
    Case,
    CaseAnswer,
    CaseKind,
    EffectDone,
    EffectNeverHappened,
    ReplayFromCheckpoint,
    ReplayFromExact,
    Retry,
)

_REPLAYS: Final = (ReplayFromExact, ReplayFromCheckpoint, Abandon)
FITTING: Final[Mapping[CaseKind, tuple[type, ...]]] = {
    CaseKind.MISSING_DEPENDENCY: (ReplayFromExact, AcceptDivergence, ReplayFromCheckpoint, Abandon),
    CaseKind.GENERATION_MISMATCH: _REPLAYS,
    CaseKind.CORRUPT_SUMMARY: _REPLAYS,
    CaseKind.CHECKPOINT_DIGEST: _REPLAYS,
    CaseKind.LINEAGE_REFUSAL: _REPLAYS,
    CaseKind.REGRESSION: _REPLAYS,
    CaseKind.EFFECT_UNKNOWN: (EffectDone, EffectNeverHappened, ReplayFromExact, Abandon),
    CaseKind.OPEN_CALL: (Abandon,),
    CaseKind.QUARANTINED: (Abandon, Retry),
    CaseKind.DEAD_LETTER: (Abandon, Retry),
    CaseKind.UNFIT_SUMMARIZER: (Abandon,),
    CaseKind.BLOCKED_CONTEXT: (Abandon,),
    CaseKind.FOREIGN_SUMMARY: (Abandon,),
}
"""The answers that fit each kind; the ordinary one first."""

TYPED: Final[Mapping[type, str]] = {
    ReplayFromExact: "replay-from-exact",
    AcceptDivergence: "accept-divergence OLD NEW",
    ReplayFromCheckpoint: "replay-from-checkpoint ID",
    Abandon: "abandon",
    Retry: "retry",
    EffectDone: "effect-done JSON",
    EffectNeverHappened: "effect-never-happened",
}
"""What each answer is on the command line."""


def typed(kind: CaseKind) -> str:
    """Return the answers that fit a kind, as they are typed."""
    return ", ".join(TYPED[answer] for answer in FITTING[kind])


def check_fits(case: Case, answer: CaseAnswer) -> None:
    """Refuse an answer that does not fit the kind of a case.

    Raises:
        InvalidInputError: it does not; the message names those that do.
    """
    fitting = FITTING[case.kind]
    if type(answer) not in fitting:
        raise InvalidInputError(
            f"{_shown(answer)} is no answer to a case of kind {case.kind}; these are: "
            f"{', '.join(f'{kind.__name__} ({TYPED[kind]})' for kind in fitting)}"
        )
    if isinstance(answer, AcceptDivergence):
        if answer.old_ref not in case.missing_refs:
            raise InvalidInputError(
                f"the case {case.case_id} is not about {answer.old_ref!r}; it misses "
                f"{', '.join(map(repr, case.missing_refs))}"
            )
        if answer.old_ref == answer.new_ref:
            raise InvalidInputError(f"{answer.new_ref!r} in the place of itself is no divergence")


def check_answer(answer: object) -> None:
    """Refuse what is no answer at all.

    Raises:
        InvalidInputError: it is none, or one of its fields is of another type.
    """
    if type(answer) not in ANSWER_NAMES:
        raise InvalidInputError(
            f"{_shown(answer)} is no answer; these are: {', '.join(kind.__name__ for kind in ANSWER_NAMES)}"
        )
    if isinstance(answer, AcceptDivergence):
        for ref in (answer.old_ref, answer.new_ref):
            if not isinstance(ref, str) or not ref:
                raise InvalidInputError(f"AcceptDivergence takes two references: texts that are not empty, not {ref!r}")
    if isinstance(answer, ReplayFromCheckpoint):
        seq = answer.checkpoint_seq
        if isinstance(seq, bool) or not isinstance(seq, int) or seq < 1:
            raise InvalidInputError(f"ReplayFromCheckpoint takes the lineage_seq of a checkpoint, not {seq!r}")


def _shown(answer: object) -> str:
    return answer.__name__ if isinstance(answer, type) else type(answer).__name__


class ReplayWhenLogged:
    """The controller that goes on from the log where it can (C21): a missing reference that live events hold verbatim
    is replayed from there. It leaves every other case open.
    """

    name = "policy:replay-when-logged"

    def decide(self, case: Case) -> CaseAnswer | None:
        """Return ReplayFromExact for a missing dependency whose every reference the log holds, else None."""
        if case.kind is CaseKind.MISSING_DEPENDENCY and case.missing_refs and case.logged:
            return ReplayFromExact()
        return None
