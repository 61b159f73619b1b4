"""What reading a transcript yields, record by record, and what writing one takes (C2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from strandline.model.event import Event, NewEvent

IMPORT_ACTOR: Final = "import"  # states what an import itself adds: what opens a conversation, what was left out


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRestart:
    """A point after which no result of an earlier call can come: each open call is abandoned there (I8)."""

    key: str
    thread: str | None = None  # only calls of this lane; None: all
    opens: int | None = None  # the conversation that begins here, counted from 1 in its file


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignText:
    """A summary that another tool wrote into the transcript: kept for comparison, never an event."""

    key: str
    text: str
    detail: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportStart:
    """Where an import begins to read: at the file's start, or behind the newest record that the log holds."""

    line: int = 0  # lines before it
    byte: int = 0
    key: str | None = None  # of the record before it, as later ones name their parent
    seq: int = 0  # of the last event of that record


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """What a salvaging import left out, and why."""

    line: int  # where it begins: line from 1,
    byte: int  # byte from 0 in the file
    size_bytes: int
    reason: str


TranscriptItem = NewEvent | SessionRestart | ForeignText


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """What an import did to one workflow. `lines`, `lines_skipped` and what was left out speak of the whole file."""

    workflow: str
    format: str
    lines: int
    events_imported: int
    events_known: int  # already there under their key
    foreign_summaries: int
    calls_abandoned: int
    lines_skipped: Mapping[str, int]  # by type, what became no event
    revision: int
    left_out: Sequence[LeftOut] = ()  # by a salvage: the first IMPORT_LEFT_OUT_LISTED_MAX, in file order
    left_out_count: int = 0
    unfinished_bytes: int = 0  # of a last line that is still being written; a live import leaves it for the next one


class ExportedEvent(NamedTuple):
    """An event of the log on its way into a file, with its declared references."""

    event: Event
    declared: tuple[str, ...] = ()
    abandoned: bool = False  # by a rewind: it stands in no context any more (C22)
