"""Ask a person whether a guarded tool may run: an interrupt of the graph, whose answer becomes a durable fact (C24).

The graph pauses before anything is intended. An approval is an event, for the one call, which uses it up; a refusal is
a decision. So an answer that was given survives whatever dies between it and the call.
"""

from __future__ import annotations

import hashlib
import json
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, TypedDict

from langchain_core.messages import AIMessage, ToolCall
from langgraph.config import get_config
from langgraph.types import interrupt

from strandline import ActionDeniedError, ActionNeed, NeedKind, Workflow, approval, decision
from strandline.integrations.langgraph.messages import KEY_PREFIX
from strandline.limits import TOOL_ANSWERS_MAX

ASKED: Final = "tool_approval"  # the type of the interrupt's value, as LangChain's own of one call has it
APPROVE: Final = "approve"
REJECT: Final = "reject"
_DIGEST_CHARS: Final = 16
_NO_ANSWER: Final = (
    "{answer} is no answer: it is a type, approve or reject, and by whom, as in "
    'Command(resume={{"type": "approve", "by": "…"}})'
)
_SENT: Final = "__pregel_push"  # LangGraph's own: how the path begins of a step that was sent one call


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
        replace(need, scope=_named(call)) if need.kind is NeedKind.APPROVED and need.scope is None else need
        for need in needs
    ]


def _named(call: ToolCall) -> str:
    """Return what names a call to those who approve: a model may use an id again, with other arguments."""
    arguments = json.dumps(call["args"], sort_keys=True, default=str)
    return f"{call['id']}:{hashlib.sha256(arguments.encode()).hexdigest()[:_DIGEST_CHARS]}"


def times_to_ask(needs: Sequence[ActionNeed]) -> int:
    """Return how many persons may have to be asked."""
    return sum(need.quorum for need in needs if need.kind is NeedKind.APPROVED)


def check_alone(call: ToolCall, state: object, denied: ActionDeniedError) -> None:
    """Refuse to ask for a call that shares its step with others.

    LangGraph hands the answers of a step to whoever asks next in it, and a call that was approved before asks no more:
    a refusal of the second call would be read as the answer to a third one, or an approval of the first as its own.

    Args:
        call: what is to run.
        state: of the graph, as its step sees it.
        denied: why it may not run yet.

    Raises:
        ActionDeniedError: it is not known that the step runs this call only.
    """
    path = get_config().get("metadata", {}).get("langgraph_path", ())
    if next(iter(path), None) == _SENT or _calls_beside(call, state) == 1:
        return
    reason = "a person can be asked only for one call at a time; call it alone"
    error = ActionDeniedError(f"{denied.message}; {reason}", action=call["name"], reasons=(*denied.reasons, reason))
    error.hint = (
        "Send each call to a step of its own, as `create_agent` does, where several are to be asked for at once."
    )
    raise error


def _calls_beside(call: ToolCall, state: object) -> int:
    """Return how many calls the message makes that makes this one; 0: the state holds no such message."""
    values = state.values() if isinstance(state, Mapping) else [state, *getattr(state, "__dict__", {}).values()]
    for messages in values:
        for said in reversed(messages) if isinstance(messages, list) else ():
            if isinstance(said, AIMessage) and any(made["id"] == call["id"] for made in said.tool_calls):
                return len(said.tool_calls)
    return 0


def ask(workflow: Workflow, call: ToolCall, needs: Sequence[ActionNeed], denied: ActionDeniedError) -> None:
    """Ask a person, and record the answer: what is approved stands in the log when this returns.

    Args:
        workflow: whose facts decide.
        call: what is to run.
        needs: what must hold for it, as of `for_this_call`.
        denied: why it may not run yet.

    Raises:
        GraphInterrupt: the graph waits; the step runs anew with the answer. After an answer that is none, or by nobody,
            it waits again, and the question says so: LangGraph keeps what a step was resumed with, so an error would
            come back with every later answer.
        ActionDeniedError: the person said no; or TOOL_ANSWERS_MAX times nobody said anything.
    """
    question = ToolQuestion(
        type=ASKED,
        tool_call_id=str(call["id"]),
        name=call["name"],
        args=call["args"],
        description="; ".join(denied.reasons),
    )
    kind, by, said = _answer(question, denied)
    key = f"{KEY_PREFIX}{ASKED}:{_named(call)}:{by}"
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


def _answer(question: ToolQuestion, denied: ActionDeniedError) -> tuple[str, str, str]:
    """Return what the answer says, by whom, and why; ask again where it is none."""
    asked = question["description"]
    for _ in range(TOOL_ANSWERS_MAX):
        answer: object = interrupt(question)
        given = answer if isinstance(answer, Mapping) else {}
        kind, by, said = given.get("type"), given.get("by"), given.get("message", "")
        if kind in (APPROVE, REJECT) and isinstance(by, str) and by.strip() and isinstance(said, str):
            return str(kind), by, said
        question = {**question, "description": f"{asked}; {_NO_ANSWER.format(answer=reprlib.repr(answer))}"}
    raise denied
