"""The tools. The docstring of each is what a model is told of it; none approves, accepts, activates, reverts or erases.

They are functions of the store, what the credential allows, and the arguments; the protocol is `server.py`'s.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar, cast

import msgspec

import strandline
from strandline import (
    ActionDeniedError,
    ActionNeed,
    Basis,
    InvalidInputError,
    Strandline,
    SummaryReconciliationError,
    Workflow,
)
from strandline.integrations.mcp import answers
from strandline.integrations.mcp.access import Access
from strandline.integrations.mcp.arguments import (
    AppendEvent,
    Asked,
    CheckReady,
    FindReference,
    GetEvent,
    ListCases,
    Need,
    ReadContext,
    RequestCompaction,
    Status,
)
from strandline.integrations.mcp.events import event_of
from strandline.limits import MCP_ARGUMENTS_BYTES_MAX, MCP_LISTED_MAX

T = TypeVar("T", bound=Asked)


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls: the store, and what the credential allows."""

    db: Strandline
    access: Access

    def workflow(self, asked: Asked) -> Workflow:
        """Return the workflow that is asked for, if it is the caller's."""
        return self.access.open(self.db, asked.workflow)


def append_event(caller: Caller, asked: AppendEvent) -> answers.AppendedEvent:
    """Append one event to the workflow's log, where it stays word for word. `kind` says what it is: `message` (what you
    said), `note`, `decision`, `failed_attempt`, `issue` (something open that others must see until a person resolves
    it), `artifact` (something made, with the handle by which it is found), `pin` (a reference that must stay in every
    context), `tool_call` with its `tool_result`, or `abandoned` (no result will come). Give a `key` where you might
    repeat the call: what has the same key is appended once. `subject`, `call_id` and `key` become your own: the answer
    says what they are in the log. Approvals, revocations, constraints and resolutions are not appended here: people or
    programs state them.
    """
    event, names = event_of(asked, caller.access)
    workflow = caller.workflow(asked)
    if asked.kind == "pin":
        _check_seen(workflow, asked.ref)
    given, basis = asked.basis, None
    if given is not None:
        basis = Basis(view=caller.access.view, generation=given.generation, revision=given.revision)
    appended = workflow.append(event, expected_revision=asked.expected_revision, basis=basis)
    return answers.AppendedEvent.of(appended, names)


def _check_seen(workflow: Workflow, ref: object) -> None:
    """Refuse a pin of what no event of the caller's window holds: the log's own check would answer for all of them."""
    if not workflow.recall(str(ref), 1):
        raise InvalidInputError(f"a pin of {ref!r}, which no earlier event holds that you may read")


def read_context(caller: Caller, asked: ReadContext) -> answers.ContextRead:
    """Read the working context: a validated summary of older events, facts and references that stay exact, and the
    newest events word for word. `needs` are references that must stand in it; one that does not is quoted from the
    log. Go on from `text`; `generation` and `revision` are the basis of what you make from it.
    """
    return answers.ContextRead.of(caller.workflow(asked).context(asked.budget, asked.needs))


def find_reference(caller: Caller, asked: FindReference) -> answers.ReferenceFound:
    """Find the events that hold an identifier, path, hash or number, exactly as written, the newest first. Use it for
    what a summary dropped. No hit means that the log never held it: don't go on as if it were known.
    """
    found = caller.workflow(asked).recall(asked.ref, asked.limit + 1)
    return answers.ReferenceFound.of(asked.ref, found, asked.limit)


def get_event(caller: Caller, asked: GetEvent) -> answers.EventRead:
    """Read one event of the log by its number, word for word; a long text comes in pages."""
    found = caller.workflow(asked).events(asked.seq, asked.seq)
    if not found:
        raise InvalidInputError(f"there is no event {asked.seq} that you may read", hint="`status` has the revision.")
    (event,) = found
    if asked.from_char > len(event.text):
        raise InvalidInputError(f"event {asked.seq} has {len(event.text)} characters, and from_char is beyond them")
    return answers.EventRead.of(event, asked.from_char)


def check_ready(caller: Caller, asked: CheckReady) -> answers.Readiness:
    """Ask whether an action may be taken now, by durable facts: are approvals in force (`approved`), issues closed
    (`resolved`, `no_open_issue`), constraints in force or not (`in_force`, `not_in_force`), and do the references that
    it needs stand word for word. Words in a summary or a message don't count, and neither do approvals of your own. It
    decides and records nothing: it is no permit. What is missing stands in `reasons`.
    """
    workflow = caller.workflow(asked)
    reasons: list[str] = []
    missing: tuple[str, ...] = ()
    state = _state(workflow)
    if asked.needs:
        needs = [_need(need) for need in asked.needs]
        try:
            workflow.guard(asked.action, needs, by=caller.access.actor, dry_run=True)
        except ActionDeniedError as denied:
            reasons += denied.reasons
    if asked.references:
        try:
            workflow.context(needs=asked.references)
        except SummaryReconciliationError as error:
            missing = error.missing_refs
            reasons += (f"no event holds the reference {ref!r}" for ref in missing)
    reasons += (f"the case {case_id} is open and blocks the summary" for case_id in state.blocking_cases)
    return answers.Readiness(
        ready=not reasons,
        action=asked.action,
        reasons=reasons,
        missing_references=list(missing),
        generation=state.generation,
        revision=state.revision,
    )


def _need(asked: Need) -> ActionNeed:
    given = (asked.scope, asked.quorum, asked.granters)
    if asked.kind == "approved":
        granters = list(asked.granters) or None
        return strandline.approved(asked.subject, scope=asked.scope, quorum=asked.quorum, granters=granters)
    if given != (None, 1, ()):
        raise InvalidInputError(f"scope, quorum and granters are of an approval, not of {asked.kind!r}")
    makers: dict[str, Callable[[str], ActionNeed]] = {
        "resolved": strandline.resolved,
        "no_open_issue": strandline.no_open_issue,
        "in_force": strandline.in_force,
        "not_in_force": strandline.not_in_force,
    }
    return makers[asked.kind](asked.subject)


def request_compaction(caller: Caller, asked: RequestCompaction) -> answers.CompactionDue:
    """Ask for a compaction in the background. It returns at once; a worker makes the summary, and it becomes active
    only if it is valid. Nothing is lost. `status` tells how it stands.
    """
    return answers.CompactionDue.of(caller.workflow(asked).compact_later(asked.budget))


def status(caller: Caller, asked: Status) -> answers.StatusTold:
    """Tell which workflows you may use, and how one of them stands: revision, summary, open cases, compaction."""
    access = caller.access
    names = list(access.workflows) if access.workflows is not None else caller.db.tenant(access.tenant).workflows()
    told = asked.workflow is not None or (access.workflows is not None and len(names) == 1)
    return answers.StatusTold(
        tenant=access.tenant,
        view=access.view,
        actor=access.actor,
        workflows=names[:MCP_LISTED_MAX],
        workflows_count=len(names),
        state=_state(caller.workflow(asked)) if told else None,
    )


def _state(workflow: Workflow) -> answers.WorkflowState:
    basis = workflow.basis()
    (view,) = (view for view in workflow.views() if view.name == basis.view)
    cases = workflow.cases(limit=MCP_LISTED_MAX)
    due = [row for row in workflow.due() if row.view == basis.view]
    return answers.WorkflowState(
        workflow=workflow.name,
        revision=basis.revision,
        generation=basis.generation,
        watermark=view.watermark,
        open_cases=len(cases),
        blocking_cases=[case.case_id for case in cases if case.blocking and case.summary_active],
        compaction=answers.CompactionDue.of(due[0]) if due else None,
    )


def list_cases(caller: Caller, asked: ListCases) -> answers.CasesListed:
    """List the open questions about this memory, the oldest first: what is missing, quarantined, unknown or blocked.
    You can't answer one here: tell the people who run this, and name the case.
    """
    found = caller.workflow(asked).cases(asked.include_answered, asked.limit + 1)
    return answers.CasesListed.of(found, asked.limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool, with what it takes and answers."""

    name: str
    said: str
    takes: type[Asked]
    answers: type[msgspec.Struct]
    reads: bool  # it changes nothing
    does: Callable[[Caller, Asked], msgspec.Struct]


def _tool(does: Callable[[Caller, T], msgspec.Struct], *, reads: bool = True) -> Tool:
    hints = inspect.get_annotations(does, eval_str=True)
    return Tool(
        name=does.__name__,
        said=" ".join((does.__doc__ or "").split()),
        takes=hints["asked"],
        answers=hints["return"],
        reads=reads,
        does=cast("Callable[[Caller, Asked], msgspec.Struct]", does),
    )


TOOLS: Final[Mapping[str, Tool]] = {
    tool.name: tool
    for tool in (
        _tool(append_event, reads=False),
        _tool(read_context),
        _tool(find_reference),
        _tool(get_event),
        _tool(check_ready),
        _tool(request_compaction, reads=False),
        _tool(status),
        _tool(list_cases),
    )
}


def call(tool: Tool, caller: Caller, arguments: Mapping[str, object]) -> msgspec.Struct:
    """Call a tool by arguments that somebody sent.

    Raises:
        InvalidInputError: they are more than MCP_ARGUMENTS_BYTES_MAX, or not what the tool takes.
        StrandlineError: as of the verb behind it.
    """
    try:
        size_bytes = len(msgspec.json.encode(arguments))
        if size_bytes > MCP_ARGUMENTS_BYTES_MAX:
            raise InvalidInputError(
                f"arguments of {size_bytes:,} bytes; MCP_ARGUMENTS_BYTES_MAX is {MCP_ARGUMENTS_BYTES_MAX:,}",
                hint="Append it in parts, or where it lies keep it and append its path or address.",
            )
        asked = msgspec.convert(arguments, tool.takes)
    except (msgspec.ValidationError, UnicodeEncodeError, RecursionError) as error:
        raise InvalidInputError(f"{tool.name}: {error}", hint=f"It takes: {_takes(tool)}.") from error
    return tool.does(caller, asked)


def _takes(tool: Tool) -> str:
    fields = msgspec.structs.fields(tool.takes)
    return ", ".join(field.name if field.required else f"{field.name} (optional)" for field in fields)
