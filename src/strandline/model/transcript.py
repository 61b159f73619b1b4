"""What reading a transcript yields, record by record (C2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from strandline.model.event import NewEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRestart:
    """A point after which no result of an earlier call can come: each open call is abandoned there (I8)."""

    key: str
    thread: str | None = None  # only calls of this lane; None: all


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignText:
    """A summary that another tool wrote into the transcript: kept for comparison, never an event."""

    key: str
    text: str
    detail: Mapping[str, object] = field(default_factory=dict)


TranscriptItem = NewEvent | SessionRestart | ForeignText


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """What an import did. `lines_skipped` counts, by type, the records that are no events."""

    format: str
    lines: int
    events_imported: int
    events_known: int  # already there under their key
    foreign_summaries: int
    calls_abandoned: int
    lines_skipped: Mapping[str, int]
    revision: int
