"""The tables of one workflow."""

from __future__ import annotations

from typing import Any

from strandline.model.action import Permit
from strandline.model.candidate import Attempt, Candidate
from strandline.model.case import Case
from strandline.model.checkpoint import Checkpoint
from strandline.model.cooldown import Cooldown
from strandline.model.due import DueCompaction
from strandline.model.effect import Effect
from strandline.model.erasure import Reader
from strandline.model.event import StoredEvent
from strandline.model.lineage import AbandonedRange, LineageEntry, LineageKind, WorkflowHead
from strandline.model.outcome import ForeignSummary
from strandline.model.register import Fact
from strandline.model.segment import Segment
from strandline.model.state import StateLine, StateNode, StateRow
from strandline.model.summary import DroppedRef, Summary
from strandline.model.view import ViewHead
from strandline.stores.memory.tables import ONLY, Moment, Table

_RECOVERIES = {LineageKind.RESTORE, LineageKind.REPLAY}
_GONE_BACK = {LineageKind.RESTORE, LineageKind.REWIND}
_NO_MOVES = {LineageKind.CHECKPOINT, *_RECOVERIES}


class Tables:
    """What is kept of one workflow, and by what it is looked up."""

    def __init__(self) -> None:
        self.head: Table[int, WorkflowHead] = Table("workflow")
        self.event_count: Table[int, int] = Table("event_count")
        self.events: Table[int, StoredEvent] = Table("event", log=lambda event: ONLY, by_key=lambda event: event.key)
        self.refs: Table[int, tuple[int, str | None]] = Table("ref", text=lambda row: row[1])
        self.sightings: Table[tuple[int, int], tuple[int, int, bool]] = Table("event_ref", ref=lambda row: row[1])
        self.facts: Table[tuple[int, int], Fact] = Table(
            "register_fact", about=lambda fact: (fact.key.kind, fact.key.subject)
        )
        self.standing: Table[int, dict[tuple[int, int], Fact]] = Table("standing")
        self.search_marks: Table[int, tuple[int, int] | None] = Table("search_mark")
        self.postings: Table[tuple[str, int], tuple[str, int, int] | None] = Table(
            "search_posting", word=lambda row: row and row[0]
        )
        self.views: Table[str, ViewHead] = Table("view_head")
        self.candidates: Table[str, Candidate] = Table("candidate")
        self.attempts: Table[str, Attempt] = Table("attempt", candidate=lambda attempt: attempt.candidate_id)
        self.segments: Table[str, Segment] = Table("segment")
        self.summaries: Table[int, Summary] = Table("summary", summary_id=lambda summary: summary.summary_id)
        self.changes: Table[int, dict[int, DroppedRef]] = Table("dropped_ref")
        self.foreign: Table[str, ForeignSummary] = Table("foreign_summary")
        self.lineage: Table[int, LineageEntry] = Table(
            "lineage",
            order=lambda entry: ONLY,
            op_key=lambda entry: entry.op_key,
            checkpoint=lambda entry: (entry.name, entry.view is None) if entry.kind is LineageKind.CHECKPOINT else None,
            restored=lambda entry: entry.name if entry.kind in _GONE_BACK else None,
            recovered=lambda entry: ONLY if entry.name is not None and entry.kind in _RECOVERIES else None,
            moved=lambda entry: (entry.view, entry.generation) if entry.kind not in _NO_MOVES else None,
            kind=lambda entry: entry.kind,
        )
        self.checkpoints: Table[int, Checkpoint] = Table("checkpoint")
        self.abandoned: Table[int, AbandonedRange] = Table("abandoned_range")
        self.cases: Table[str, Case] = Table(
            "case_file",
            identity=lambda case: case.identity,
            kind=lambda case: case.kind,
            names=lambda case: (case.view, case.summary_no) if case.blocking else None,
        )
        self.effects: Table[str, Effect] = Table("effect", fingerprint=lambda effect: effect.fingerprint)
        self.permits: Table[str, Permit] = Table("permit")
        self.approval_uses: Table[tuple[str, int], tuple[str, int, str]] = Table("approval_use")
        self.due: Table[str, DueCompaction] = Table("due_compaction")
        self.cooldowns: Table[str, Cooldown] = Table("cooldown")
        self.readers: Table[str, Reader] = Table("reader_watermark")
        self.state_lines: Table[int, StateLine] = Table("state_line")
        self.state_names: Table[str, int] = Table("state_line name")
        self.states: Table[int, StateRow] = Table("saved_state", named=lambda row: (row.line, row.state_id))
        self.state_places: Table[int, tuple[int, int]] = Table(
            "saved_state position", all=lambda row: ONLY, line=lambda row: row[0]
        )
        self.nodes: Table[int, StateNode | None] = Table("state_node", digest=lambda node: node and node.digest)

    def copied(self) -> Tables:
        """Return tables with the same rows; what is written to one is not in the other."""
        copy = Tables.__new__(Tables)
        tables: dict[str, Table[Any, Any]] = vars(self)
        vars(copy).update({name: table.copied() for name, table in tables.items()})
        return copy


class Facet:
    """A way into the tables, at one moment."""

    def __init__(self, tables: Tables, moment: Moment) -> None:
        self._tables = tables
        self._moment = moment
