"""What each tool answers, as the caller is told it: plain values, each list and text with its bound."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from strandline import Appended, Case, Context, DueCompaction, RecallHit, SourceEvent
from strandline.limits import MCP_HIT_CHARS, MCP_LISTED_MAX, MCP_PAGE_CHARS


class AppendedEvent(Struct, frozen=True, kw_only=True):
    """Where an event stands, and under which names: those that the caller gave are told apart from everybody else's."""

    seq: int
    revision: int
    added: bool  # False: it was there already, under its key
    key: str | None = None
    subject: str | None = None
    call_id: str | None = None

    @classmethod
    def of(cls, appended: Appended, names: dict[str, str]) -> AppendedEvent:
        """Tell of one event; `names` are those that it bears in the log."""
        return cls(seq=appended.seq, revision=appended.revision, added=bool(appended.added), **names)


class LeftOut(Struct, frozen=True, kw_only=True):
    """What a context leaves out, for its budget."""

    kind: str
    from_seq: int
    through_seq: int
    tokens: int


class OpenCallTold(Struct, frozen=True, kw_only=True):
    """A tool call that has no result yet."""

    call_id: str
    seq: int
    tool: str


class ContextRead(Struct, frozen=True, kw_only=True):
    """A working context: `text` is what to go on from. `generation` and `revision` are its basis."""

    text: str
    generation: int
    revision: int
    watermark: int  # the last event that the summary covers
    tokens: int
    budget: int
    rung: str  # `whole`, or how it was made to fit
    left_out: list[LeftOut]
    left_out_count: int
    open_calls: list[OpenCallTold]
    divergences: dict[str, str]  # needs that another reference meets
    case_id: str | None  # the open case under which its summary stands

    @classmethod
    def of(cls, read: Context) -> ContextRead:
        """Tell of a context."""
        return cls(
            text=read.text,
            generation=read.generation,
            revision=read.revision,
            watermark=read.watermark,
            tokens=read.tokens,
            budget=read.budget,
            rung=read.rung.value,
            left_out=[
                LeftOut(kind=left.kind.value, from_seq=left.from_seq, through_seq=left.through_seq, tokens=left.tokens)
                for left in read.omitted[:MCP_LISTED_MAX]
            ],
            left_out_count=len(read.omitted),
            open_calls=[
                OpenCallTold(call_id=call.call_id, seq=call.seq, tool=call.tool)
                for call in read.open_calls[:MCP_LISTED_MAX]
            ],
            divergences=dict(read.divergences),
            case_id=read.case_id,
        )


class Hit(Struct, frozen=True, kw_only=True):
    """An event that holds a reference, with the text around it; `get_event` has all of it."""

    seq: int
    kind: str
    actor: str
    text: str
    from_char: int
    chars: int  # of the whole text
    declared: bool
    abandoned: bool  # a rewind left it behind: it stands in no context any more


class ReferenceFound(Struct, frozen=True, kw_only=True):
    """The events that hold a reference, the newest first; none: it is not in the log, and was never known."""

    ref: str
    hits: list[Hit]
    more: bool
    instead: str | None  # the reference that was accepted in its place

    @classmethod
    def of(cls, ref: str, found: Sequence[RecallHit], limit: int) -> ReferenceFound:
        """Tell of the hits of a recall that asked for one more."""
        return cls(
            ref=ref,
            hits=[_hit(hit, ref) for hit in found[:limit]],
            more=len(found) > limit,
            instead=found[0].instead if found else None,
        )


def _hit(hit: RecallHit, ref: str) -> Hit:
    begin = max(0, hit.text.find(ref) - (MCP_HIT_CHARS - len(ref)) // 2)
    return Hit(
        seq=hit.seq,
        kind=hit.kind.value,
        actor=hit.actor,
        text=hit.text[begin : begin + MCP_HIT_CHARS],
        from_char=begin,
        chars=len(hit.text),
        declared=hit.declared,
        abandoned=hit.abandoned,
    )


class EventRead(Struct, frozen=True, kw_only=True):
    """An event, word for word, a page of its text at once."""

    seq: int
    kind: str
    role: str | None
    actor: str
    text: str
    from_char: int
    chars: int  # of the whole text
    next_char: int | None  # where the next page begins; None: this one is the last
    subject: str | None
    call_id: str | None
    call_seq: int | None
    tool: str | None
    is_error: bool
    late: bool
    abandoned: bool
    references: list[str]
    references_count: int

    @classmethod
    def of(cls, event: SourceEvent, from_char: int) -> EventRead:
        """Tell of an event, from a place of its text on."""
        through = from_char + MCP_PAGE_CHARS
        references = [*event.declared, *event.extracted]
        return cls(
            seq=event.seq,
            kind=event.kind.value,
            role=event.role.value if event.role else None,
            actor=event.actor,
            text=event.text[from_char:through],
            from_char=from_char,
            chars=len(event.text),
            next_char=through if through < len(event.text) else None,
            subject=event.subject,
            call_id=event.call_id,
            call_seq=event.call_seq,
            tool=event.tool,
            is_error=event.is_error,
            late=event.late,
            abandoned=event.abandoned,
            references=references[:MCP_LISTED_MAX],
            references_count=len(references),
        )


class Readiness(Struct, frozen=True, kw_only=True):
    """Whether all that was asked for holds at this revision; it is no permit, and nothing was recorded."""

    ready: bool
    action: str
    reasons: list[str]  # one for each thing that is missing
    missing_references: list[str]
    generation: int
    revision: int


class CompactionDue(Struct, frozen=True, kw_only=True):
    """Where the view's compaction in the background stands."""

    view: str
    state: str  # `due`, `running`, `waits_for_case`, `settled`
    due_us: int | None
    runs: int  # begun since it was asked for
    outcome: str | None  # of the last run
    failure: str | None
    case_id: str | None

    @classmethod
    def of(cls, row: DueCompaction) -> CompactionDue:
        """Tell of a row."""
        state = "settled" if row.due_us is None else "due"
        state = "waits_for_case" if row.parked else "running" if row.worker is not None else state
        return cls(
            view=row.view,
            state=state,
            due_us=row.due_us,
            runs=row.runs,
            outcome=row.outcome.value if row.outcome else None,
            failure=row.failure.value if row.failure else None,
            case_id=row.case_id,
        )


class WorkflowState(Struct, frozen=True, kw_only=True):
    """How a workflow stands, as the caller's view sees it."""

    workflow: str
    revision: int
    generation: int
    watermark: int
    open_cases: int  # at most as many as `list_cases` lists
    blocking_cases: list[str]  # ids of those under which the summary that is active now is not compacted again
    compaction: CompactionDue | None  # None: none was ever asked for


class StatusTold(Struct, frozen=True, kw_only=True):
    """Whose memory the credential reaches, and how one workflow of it stands."""

    tenant: str
    view: str
    actor: str
    workflows: list[str]
    workflows_count: int
    state: WorkflowState | None  # None: no workflow is named, and there may be several


class CaseTold(Struct, frozen=True, kw_only=True):
    """An open question, or one that was answered."""

    case_id: str
    kind: str
    state: str
    blocking: bool
    escalated: bool
    view: str
    generation: int
    reason: str
    subject: str
    missing_refs: list[str]
    opened_us: int
    answer: str | None
    by: str | None
    why: str | None


class CasesListed(Struct, frozen=True, kw_only=True):
    """The cases; people or programs answer them, by the library or the command line."""

    cases: list[CaseTold]
    more: bool

    @classmethod
    def of(cls, found: Sequence[Case], limit: int) -> CasesListed:
        """Tell of the cases of a look that asked for one more."""
        return cls(cases=[_case(case) for case in found[:limit]], more=len(found) > limit)


def _case(case: Case) -> CaseTold:
    return CaseTold(
        case_id=case.case_id,
        kind=case.kind.value,
        state=case.state.value,
        blocking=case.blocking,
        escalated=case.escalated,
        view=case.view,
        generation=case.generation,
        reason=case.reason,
        subject=case.subject,
        missing_refs=list(case.missing_refs[:MCP_LISTED_MAX]),
        opened_us=case.opened_us,
        answer=case.answer,
        by=case.by,
        why=case.why,
    )
