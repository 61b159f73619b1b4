"""Ask a person whether a guarded tool may run: an interrupt of the graph, whose answer becomes a durable fact (C24).

The graph pauses before anything is intended. An approval is an event, for the one call, which uses it up; a refusal is
a decision. So an answer that was given survives whatever dies between it and the call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, TypedDict

from langchain_core.messages import ToolCall
from langgraph.types import interrupt

from strandline import ActionDeniedError, ActionNeed, InvalidInputError, NeedKind, Workflow, approval, decision
from strandline.integrations.langgraph.messages import KEY_PREFIX

ASKED: Final = "tool_approval"  # the type of the interrupt's value, as LangChain's own of one call has it
APPROVE: Final = "approve"
REJECT: Final = "reject"


class ToolQuestion(TypedDict):
    """The value of the interrupt: which call, and why it may not run yet."""

    type: str
    tool_call_id: str
    name: str
    args: dict[str, object]
    description: str


def for_this_call(needs: Sequence[ActionNeed], call: ToolCall) -> list[ActionNeed]:
    """Return needs of which an approval counts that was given for this call, or for everything."""
    return [
        replace(need, scope=call["id"]) if need.kind is NeedKind.APPROVED and need.scope is None else need
        for need in needs
    ]


def times_to_ask(needs: Sequence[ActionNeed]) -> int:
    """Return how many persons may have to be asked."""
    return sum(need.quorum for need in needs if need.kind is NeedKind.APPROVED)


def ask(workflow: Workflow, call: ToolCall, needs: Sequence[ActionNeed], denied: ActionDeniedError) -> None:
    """Ask a person, and record the answer: what is approved stands in the log when this returns.

    Args:
        workflow: whose facts decide.
        call: what is to run.
        needs: what must hold for it, as of `for_this_call`.
        denied: why it may not run yet.

    Raises:
        GraphInterrupt: the graph waits; the step runs anew with the answer.
        ActionDeniedError: the person said no.
        InvalidInputError: an answer that is none, or by nobody; nothing was written.
    """
    question = ToolQuestion(
        type=ASKED,
        tool_call_id=str(call["id"]),
        name=call["name"],
        args=call["args"],
        description="; ".join(denied.reasons),
    )
    kind, by, said = _checked(interrupt(question), call)
    key = f"{KEY_PREFIX}{ASKED}:{call['id']}:{by}"
    told = f"{by} {'approved' if kind == APPROVE else 'refused'} the call {call['id']} of {call['name']}"
    told = f"{told}: {said}" if said else told
    if kind == REJECT:
        workflow.append(decision(told, subject=call["name"], actor=by, key=key))
        raise ActionDeniedError(f"{told}; it did not run", action=call["name"], reasons=(told,))
    workflow.append(
        [
            approval(need.subject, told, granter=by, scope=need.scope, single_use=True, key=f"{key}:{need.subject}")
            for need in needs
            if need.kind is NeedKind.APPROVED
        ]
    )


def _checked(answer: object, call: ToolCall) -> tuple[str, str, str]:
    """Return what an answer says, by whom, and why."""
    given = answer if isinstance(answer, Mapping) else {}
    kind, by, said = given.get("type"), given.get("by"), given.get("message", "")
    if kind in (APPROVE, REJECT) and isinstance(by, str) and by.strip() and isinstance(said, str):
        return str(kind), by, said
    raise InvalidInputError(
        f"whether {call['name']!r} may run is answered by a type, approve or reject, and by whom, not by {answer!r}; "
        "it did not run",
        hint='Resume with Command(resume={"type": "approve", "by": "…"}).',
    )
