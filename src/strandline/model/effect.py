"""Effects: tool calls with consequences outside (SPEC §2, I18, C23)."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass

from strandline.model.event import Basis


class EffectState(enum.StrEnum):
    """INTENDED → DONE | FAILED | UNKNOWN; UNKNOWN → DONE | FAILED | ABANDONED; FAILED → INTENDED, as a new attempt.

    FAILED: it did not happen and never will. ABANDONED: a controller gave it up; it is never run again.
    """

    INTENDED = "intended"
    DONE = "done"
    FAILED = "failed"
    UNKNOWN = "unknown"
    ABANDONED = "abandoned"


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """One row of the ledger of effects, which a workflow shares with its forks. Arguments and result stand in the log,
    in the events `call_seq` and `result_seq` of `workflow`.
    """

    key: str
    tool: str
    subject: str | None
    fingerprint: str  # keyed digest of tool and subject: what the same request in other words shares
    state: EffectState
    attempt: int  # from 1
    workflow: str
    call_seq: int
    intended_us: int
    result_seq: int | None = None
    settled_us: int | None = None
    basis: Basis | None = None
    permit_id: str | None = None
    actor: str = ""


@dataclass(frozen=True, slots=True)
class KeyedProbe:
    """A probe that is told, by its key, which effect it is asked about. So it may say of the same request under another
    key that it never happened; one that is not told can't (I18): it may have looked for its own.
    """

    look: Callable[[str], object]  # of the key; may be awaited


class EffectOutcomeKind(enum.StrEnum):
    """How a result was come by."""

    RAN = "ran"
    REPLAYED = "replayed"  # recorded before under this key
    PROBED = "probed"  # the outcome was unknown, and the probe told it
    LIKELY_REPEAT = "likely_repeat"  # recorded before under another key: the same request in other words


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectOutcome:
    """What an effect answers. On LIKELY_REPEAT `effect` is None if the log, and not the ledger, holds the earlier one.

    `call_seq` and `result_seq` are the events that hold request and result.
    """

    kind: EffectOutcomeKind
    key: str
    result: object
    call_seq: int
    result_seq: int
    effect: Effect | None
