"""Contexts: what is handed to the model, with the provenance of every part (C18)."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from strandline.model.event import Basis, SourceEvent
from strandline.model.register import OpenCall
from strandline.model.summary import Summary


class PartKind(enum.StrEnum):
    """Where a part comes from; parts stand in this order, the stable prefix first."""

    SEGMENT = "segment"
    ANCHORS = "anchors"
    LEDGER = "ledger"
    RETRIEVED = "retrieved"  # looked up in the log, for it holds what is needed (C19)
    EVENT = "event"


class Rung(enum.StrEnum):
    """The rungs of the fallback ladder (C19), from best to worst; below the last the call is blocked."""

    WHOLE = "whole"  # summary and the whole tail
    RETRIEVED = "retrieved"  # with quotes of the events that hold what is needed
    WITHOUT_LEDGER = "without_ledger"
    SMALLER_WINDOW = "smaller_window"  # the oldest events of the tail are left out, and named


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """A stretch of an event's text, as it stands there: characters from_char to to_char, the last not included."""

    from_char: int
    to_char: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextPart:
    """One part of a context: which events it speaks for, and its text."""

    kind: PartKind
    from_seq: int
    through_seq: int
    tokens: int
    text: str
    event: SourceEvent | None = None
    since_checkpoint: bool = False  # set by recovery: came after the basis of the restored state (I16)
    excerpts: tuple[Excerpt, ...] = ()  # of a RETRIEVED part: what is quoted, without our labels


@dataclass(frozen=True, slots=True, kw_only=True)
class Omission:
    """Something that a rung leaves out: what, which events, how many tokens; RETRIEVED is the rest of an event."""

    kind: PartKind
    from_seq: int
    through_seq: int
    tokens: int
    reason: Rung


@dataclass(frozen=True, slots=True, kw_only=True)
class NeedCounts:
    """Where the needs of a context stand, and what it cost to look them up (C19)."""

    in_summary: int = 0
    in_tail: int = 0
    retrieved: int = 0
    lookups: int = 0  # references that were looked up in the log
    events: int = 0  # events that are quoted for them


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Events of a tail that were checked and counted, and that no context within the budget can hold."""

    from_seq: int
    through_seq: int
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextView:
    """One snapshot of a view: the summary and the tail behind it (I7)."""

    view: str
    generation: int
    revision: int
    watermark: int
    summary: Summary | None  # None: generation 0, the empty summary
    tail: tuple[SourceEvent, ...]
    gaps: tuple[Gap, ...] = ()  # between the events of `tail`
    open_calls: tuple[OpenCall, ...] = ()

    @property
    def basis(self) -> Basis:
        """What a state made from this snapshot is made from."""
        return Basis(view=self.view, generation=self.generation, revision=self.revision)

    @property
    def tail_tokens(self) -> int:
        """The tokens of the whole tail."""
        return sum(event.tokens for event in self.tail) + sum(gap.tokens for gap in self.gaps)
