"""Cases: open questions for the outer controller, and the answers that it may give (SPEC §2, I11, I17, C21)."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from strandline.errors import LastKnown
from strandline.model.outcome import ActedOn


class CaseKind(enum.StrEnum):
    """What the question is about."""

    MISSING_DEPENDENCY = "missing_dependency"
    GENERATION_MISMATCH = "generation_mismatch"
    CORRUPT_SUMMARY = "corrupt_summary"  # half-written, or not what was activated
    CHECKPOINT_DIGEST = "checkpoint_digest"
    LINEAGE_REFUSAL = "lineage_refusal"
    EFFECT_UNKNOWN = "effect_unknown"
    OPEN_CALL = "open_call"  # past its limits; it was closed (I8)
    QUARANTINED = "quarantined"
    DEAD_LETTER = "dead_letter"
    REGRESSION = "regression"
    UNFIT_SUMMARIZER = "unfit_summarizer"  # attempt after attempt got the same mandatory fact wrong
    BLOCKED_CONTEXT = "blocked_context"  # beyond the limits of retrieval (C19)
    FOREIGN_SUMMARY = "foreign_summary"  # another tool's, in the agent's context, is not true to the facts (I10)


BLOCKING: Final = frozenset(
    {
        CaseKind.MISSING_DEPENDENCY,
        CaseKind.GENERATION_MISMATCH,
        CaseKind.CORRUPT_SUMMARY,
        CaseKind.REGRESSION,
    }
)
"""A summary under an open case of these kinds is not compacted again (I11)."""


class CaseState(enum.StrEnum):
    """OPEN → ANSWERED; the first answer wins."""

    OPEN = "open"
    ANSWERED = "answered"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One open question. `view`, `generation` and `summary_no` name the summary that it is about.

    References stand in it by number: their texts stand in one erasable place (C31). What the last lines name is not
    stored: it is filled in when the case is read, and, but for `missing_refs`, of an open case only.
    """

    case_id: str
    identity: str  # of what it asks: the same question, asked again while it is open, finds this case
    kind: CaseKind
    state: CaseState
    view: str
    generation: int
    summary_no: int
    reason: str
    revision: int  # of the log when it was opened
    opened_us: int
    checkpoint_name: str | None = None
    checkpoint_seq: int | None = None
    checkpoint_turn: int | None = None
    missing_ids: tuple[int, ...] = ()
    last_known: LastKnown | None = None  # of the first of them
    subject: str = ""  # what else it names: an effect's key, a call's id, a candidate, an attempt
    detail: Mapping[str, object] = field(default_factory=dict)
    answer: str | None = None
    by: str | None = None
    why: str | None = None
    answered_us: int | None = None
    answered_seq: int | None = None  # lineage_seq of the answer
    missing_refs: tuple[str, ...] = ()
    logged: bool = False  # live events hold every one of them
    escalated: bool = False  # open for longer than CASE_ESCALATES_S
    summary_active: bool = False  # its summary is the one that the view has now: where it blocks, it blocks now
    compacted_since: bool = False  # dead_letter and quarantined: a later compaction was activated
    done: Mapping[str, object] = field(default_factory=dict, compare=False)  # what the answer did; `reconcile` says it
    acted_on: tuple[ActedOn, ...] = field(default=(), compare=False)  # where it went back: made from the bad one

    @property
    def blocking(self) -> bool:
        """Whether its summary is not compacted again while it is open (I11)."""
        return self.kind in BLOCKING


# ---------------------------------------------------------------------------------------------- answers


@dataclass(frozen=True, slots=True)
class ReplayFromExact:
    """Go on from what the log holds verbatim: the ordinary way out (I17).

    A missing reference is pinned; a corrupt or bad summary gives way to the newest verified generation before it; a
    damaged checkpoint is passed over; an effect takes the result that the log holds.
    """


@dataclass(frozen=True, slots=True)
class AcceptDivergence:
    """Accept `new_ref`, which an event holds, in the place of `old_ref`: as a new fact, by name (I17)."""

    old_ref: str
    new_ref: str


@dataclass(frozen=True, slots=True)
class ReplayFromCheckpoint:
    """Go back to a checkpoint, by its lineage_seq: on a new branch, which a rewind to its revision makes (I17)."""

    checkpoint_seq: int


@dataclass(frozen=True, slots=True)
class Abandon:
    """Close the case and change nothing else; an effect of unknown outcome is given up, and never run again."""


@dataclass(frozen=True, slots=True)
class Retry:
    """Try it again: what was drafted for a quarantined candidate, in whatever form, is asked for anew; what ran in the
    background is due at once. The drafts that failed are kept.
    """


@dataclass(frozen=True, slots=True)
class EffectDone:
    """The effect happened, with this result (a JSON value). What a probe says, or an answer to its case (I18)."""

    result: object = None


@dataclass(frozen=True, slots=True)
class EffectNeverHappened:
    """The effect did not happen and never will: only this permits a run. What a probe says, or an answer (I18)."""


@dataclass(frozen=True, slots=True)
class EffectCantTell:
    """What a probe says when it can't tell: a case is opened (I18)."""


CaseAnswer = (
    ReplayFromExact | AcceptDivergence | ReplayFromCheckpoint | Abandon | Retry | EffectDone | EffectNeverHappened
)

ANSWER_NAMES: Final[Mapping[type, str]] = {
    ReplayFromExact: "replay_from_exact",
    AcceptDivergence: "accept_divergence",
    ReplayFromCheckpoint: "replay_from_checkpoint",
    Abandon: "abandon",
    Retry: "retry",
    EffectDone: "effect_done",
    EffectNeverHappened: "effect_never_happened",
}
"""What each answer is called, in the case and in the lineage."""

ProbeAnswer = EffectDone | EffectNeverHappened | EffectCantTell
