"""What the checker knows of a workflow: its own fold of log and lineage, made without the engine's rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from strandline.codec import decode_event, decode_sightings
from strandline.model.action import Permit
from strandline.model.effect import Effect
from strandline.model.event import Event, StoredEvent
from strandline.model.ids import EVERYONE
from strandline.model.lineage import MOVES, AbandonedRange, LineageEntry, LineageKind, WorkflowHead
from strandline.model.view import ViewHead

_NO_DIGEST = b""  # what is decoded here was checked by the engine, and is checked again by `verify` at the end


@dataclass(frozen=True, slots=True)
class Moment:
    """A state of a workflow between two commits, as far as a context shows it."""

    commit: int  # that made it
    revision: int
    views: dict[str, ViewHead]
    left: tuple[AbandonedRange, ...]


@dataclass(slots=True)
class Known:
    """One workflow as it was after the last commit."""

    head: WorkflowHead = field(default_factory=WorkflowHead)
    events: list[StoredEvent] = field(default_factory=list)  # inherited ones, too
    lineage: list[LineageEntry] = field(default_factory=list)
    views: dict[str, ViewHead] = field(default_factory=dict)
    left: tuple[AbandonedRange, ...] = ()
    blocked: frozenset[tuple[str, int]] = frozenset()  # views and summaries under an open blocking case
    effects: dict[str, Effect] = field(default_factory=dict)
    permits: dict[str, Permit] = field(default_factory=dict)
    moments: list[Moment] = field(default_factory=list)
    commit_of: dict[int, int] = field(default_factory=dict)  # event -> the commit that made it

    def copied(self) -> Known:
        """Return the same, to go on from."""
        return Known(
            self.head,
            self.events.copy(),
            self.lineage.copy(),
            self.views,
            self.left,
            self.blocked,
            self.effects,
            self.permits,
            self.moments.copy(),
            {},
        )

    def live(self, through: int, view: ViewHead | None = None) -> Iterator[Event]:
        """Yield the events through a seq that no rewind left and that the view may read."""
        return live_events(self.events, self.left, through, view)

    def move_of(self, view: str, before: int) -> int:
        """Return the last entry before one of the lineage that moved the pointer of a view."""
        moves = (entry.lineage_seq for entry in self.lineage if entry.view == view and entry.kind in MOVES)
        return max((seq for seq in moves if seq < before), default=0)

    def gate(self, name: str, before: int) -> int | None:
        """Return the checkpoint that a recovery before this entry must restore; None: it must replay (I15)."""
        passing = 0
        for made in self.lineage:
            if made.kind is not LineageKind.CHECKPOINT or made.name != name or made.lineage_seq >= before:
                continue
            if made.view is not None:
                passes = made.lineage_seq > self.move_of(made.view, before)
            else:
                passes = not is_left(self.left_by(made), made.revision)
            if passes and not self._restored_over(name, made.lineage_seq, before):
                passing = max(passing, made.lineage_seq)
        return passing or None

    def left_by(self, made: LineageEntry) -> tuple[AbandonedRange, ...]:
        """Return what was left since an entry was made."""
        return tuple(left for left in self.left if left.branch > int(str(made.detail.get("branch", 0))))

    def _restored_over(self, name: str, seq: int, before: int) -> bool:
        return any(
            seq < entry.lineage_seq < before and entry.restored_seq is not None and entry.restored_seq < seq
            for entry in self.lineage
            if entry.name == name and entry.kind in (LineageKind.RESTORE, LineageKind.REWIND)
        )


def live_events(
    events: list[StoredEvent], left: tuple[AbandonedRange, ...], through: int, view: ViewHead | None = None
) -> Iterator[Event]:
    """Yield the events through a seq that no rewind left and that the view may read."""
    for stored in events:
        if stored.seq > through:
            return
        if left and is_left(left, stored.seq):
            continue
        event = decoded(stored)
        if view is None or reads(view, event.audience):
            yield event


def reads(view: ViewHead, audience: str) -> bool:
    """Tell whether a view may read what is for an audience (I21)."""
    return view.audiences is None or audience == EVERYONE or audience in view.audiences


def is_left(left: Iterable[AbandonedRange], seq: int) -> bool:
    """Tell whether a rewind left an event."""
    return any(one.from_seq <= seq <= one.through_seq for one in left)


@lru_cache(maxsize=4096)
def decoded(stored: StoredEvent) -> Event:
    """Return an event as it can be read."""
    return decode_event(stored, _NO_DIGEST, "simulated")


@lru_cache(maxsize=4096)
def sighted(sightings: bytes) -> frozenset[int]:
    """Return the references that stand in an event."""
    return frozenset(ref_id for ref_id, _ in decode_sightings(sightings))
