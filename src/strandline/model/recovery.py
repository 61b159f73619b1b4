"""Recovery: what it decides, what it hands back, why it refuses (I15, I16)."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from strandline.errors import LastKnown


class RecoveryKind(enum.StrEnum):
    """How recovery goes on."""

    RESTORE = "restore"
    REPLAY = "replay"


class RecoveryTarget(enum.StrEnum):
    """What the pure gate answers (DESIGN §4)."""

    CHECKPOINT = "checkpoint"
    REPLAY = "replay"


class ReconciliationReason(enum.StrEnum):
    """Why recovery fails closed."""

    NOTHING_RECORDED = "nothing_recorded"
    NO_SUMMARY = "no_summary"
    GENERATION_MISMATCH = "generation_mismatch"
    HALF_WRITTEN = "half_written"
    CORRUPT_SUMMARY = "corrupt_summary"
    CHECKPOINT_DIGEST = "checkpoint_digest"
    CHECKPOINT_ERASED = "checkpoint_erased"  # its state held what an erasure took away (C31)
    BEHIND_CHECKPOINT = "behind_checkpoint"
    DEPENDENCY_NOT_VERBATIM = "dependency_not_verbatim"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveredExternal:
    """Where the state of the checkpoint lives, and whether its bytes were loaded and are those that were registered."""

    address: str
    digest: str
    verified: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryAtRecovery:
    """The active summary as recovery finds it: what the pure rules look at."""

    generation: int
    complete: bool
    reaches_seq: int  # the last seq that it speaks for, with its tail
    text: str
    tail_text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumePoint:
    """A checkpoint together with the summary that it would resume on: the input of `resume_from_checkpoint`."""

    generation: int
    turn: int | None  # None: there is no checkpoint, the summary is replayed
    last_durable_seq: int
    summary: SummaryAtRecovery | None
    state_text: str = ""
    last_known: Mapping[str, LastKnown] = field(default_factory=dict)
