"""Tool calls of a graph through the ledger of effects: each runs once, whatever dies (C23, I18), if it may (C24, I20).

The id of a call is the key of its effect. A call that is handed out again, by a graph that resumes, is answered with
what was recorded.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from langchain_core.messages import ToolCall, ToolMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.errors import GraphBubbleUp
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command

from strandline import (
    ActionDeniedError,
    ActionNeed,
    AsyncWorkflow,
    Basis,
    EffectCantTell,
    EffectDone,
    EffectFailedError,
    EffectNeverHappened,
    EffectOutcome,
    EffectOutcomeKind,
    InvalidInputError,
    KeyedProbe,
    Permit,
    Workflow,
)
from strandline.integrations.langgraph.asking import ask, check_alone, for_this_call, times_to_ask
from strandline.integrations.langgraph.marks import is_known
from strandline.integrations.langgraph.messages import LEDGER_MARK, storable_text

Answer = ToolMessage | Command[Any] | list[ToolMessage | Command[Any]]
Arguments = Mapping[str, object]
ProbeAnswer = EffectDone | EffectNeverHappened | EffectCantTell
ToolProbe = Callable[[Arguments], ProbeAnswer | Awaitable[ProbeAnswer]]
ToolSubject = Callable[[Arguments], str]

TELL: Final = "tell"
RAISE: Final = "raise"
_ANSWER: Final = "langgraph_answer"  # a block of a result: what a text can't say of an answer, serialised
_WAITS: Final = "[it waits for a person; it runs when it is resumed]"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolLedger:
    """How the tools of an agent are called.

    Args:
        agent: who calls.
        reads: the tools that change nothing outside: they run each time.
        probes: of some tools: tell, of the arguments, whether a call happened whose outcome is unknown.
        subjects: of some tools: what it is done to, of the arguments; two calls with one subject ask for the same.
        guards: of some tools: what must hold, so that they may run.
        asks: the guarded tools for which a person is asked, where an approval is missing.
        refusals: "tell": the model reads why a call was refused; "raise": the run ends with the error.
    """

    agent: str
    reads: Collection[str] = ()
    probes: Mapping[str, ToolProbe] = field(default_factory=dict)
    subjects: Mapping[str, ToolSubject] = field(default_factory=dict)
    guards: Mapping[str, Sequence[ActionNeed]] = field(default_factory=dict)
    asks: Collection[str] = ()
    refusals: str = TELL

    def __post_init__(self) -> None:
        if self.refusals not in (TELL, RAISE):
            raise InvalidInputError(f'refusals is "{TELL}" or "{RAISE}", not {self.refusals!r}')
        for name, given in (("reads", self.reads), ("asks", self.asks)):
            if isinstance(given, str):
                raise InvalidInputError(f"{name} is a collection of names, not the name {given!r}")
        for name in self.asks:
            if not times_to_ask(self.guards.get(name, ())):
                raise InvalidInputError(f"asks names {name!r}, whose guard needs no approval that a person could give")
        for name in self.reads:
            if name in self.guards or name in self.probes:
                raise InvalidInputError(f"the tool {name!r} only reads, and has a guard or a probe, which nothing asks")

    def call(
        self,
        workflow: Workflow,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Answer],
        basis: Basis | None,
    ) -> Answer:
        """Call a tool, or give the answer that is recorded.

        Args:
            workflow: the agent's memory.
            request: the call.
            handler: runs it.
            basis: the context from which it was decided on, where it is known.

        Raises:
            EffectUnknownError: it may have happened; a case is open, and nothing ran.
            IdempotencyConflictError: its id was used for another call; nothing ran.
            ActionDeniedError: it may not run, and refusals are raised.
        """
        if request.tool_call["name"] in self.reads:
            return handler(request)
        attempt = _Attempt(request.tool_call, workflow.name)

        def run() -> object:
            try:
                return attempt.recorded(handler(request))
            except GraphBubbleUp as waits:
                raise attempt.suspended(waits) from waits

        try:
            permit = self._permit(workflow, attempt, request.state, basis)
            return attempt.answer(workflow.effect(run=run, **self._asked(attempt, permit, basis)))
        except (ActionDeniedError, EffectFailedError) as refused:
            return self._refused(attempt, refused)

    async def acall(
        self,
        workflow: Workflow,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Awaitable[Answer]],
        basis: Basis | None,
    ) -> Answer:
        """Call a tool as `call` does, awaited in the event loop of the graph."""
        if request.tool_call["name"] in self.reads:
            return await handler(request)
        attempt, verbs = _Attempt(request.tool_call, workflow.name), AsyncWorkflow(workflow)

        async def run() -> object:
            try:
                return attempt.recorded(await handler(request))
            except GraphBubbleUp as waits:
                raise attempt.suspended(waits) from waits

        try:
            permit = await _in_thread(partial(self._permit, workflow, attempt, request.state, basis))
            return attempt.answer(await verbs.effect(run=run, **self._asked(attempt, permit, basis)))
        except (ActionDeniedError, EffectFailedError) as refused:
            return self._refused(attempt, refused)

    def _permit(self, workflow: Workflow, attempt: _Attempt, state: object, basis: Basis | None) -> Permit | None:
        """Ask whether a tool may run. None: nothing guards it; or it was asked for before, and the ledger knows."""
        needs, asked = self.guards.get(attempt.tool), 0
        if needs is None:
            return None
        if attempt.tool in self.asks:
            needs = for_this_call(needs, attempt.call)
        while True:
            try:
                return workflow.guard(attempt.tool, needs, by=self.agent, basis=basis)
            except ActionDeniedError as denied:
                if is_known(workflow, attempt.key):  # its own permit may have used the approval up
                    return None
                if attempt.tool not in self.asks or asked == times_to_ask(needs):
                    raise
                check_alone(attempt.call, state, denied)
                ask(workflow, attempt.call, needs, denied)
                asked += 1

    def _asked(self, attempt: _Attempt, permit: Permit | None, basis: Basis | None) -> dict[str, Any]:
        """Return the arguments of `effect`."""
        arguments = attempt.call["args"]
        probe, subject = self.probes.get(attempt.tool), self.subjects.get(attempt.tool)
        return {
            "key": attempt.key,
            "tool": attempt.tool,
            "args": arguments,
            "probe": None if probe is None else _probe(probe, arguments),
            "subject": None if subject is None else subject(arguments),
            "permit": permit,
            "basis": basis,
            "actor": self.agent,
        }

    def _refused(self, attempt: _Attempt, refused: ActionDeniedError | EffectFailedError) -> Answer:
        if attempt.waits is not None:
            raise attempt.waits
        if self.refusals == RAISE:
            raise refused
        if isinstance(refused, EffectFailedError):  # the ledger recorded it
            return attempt.message(str(refused), status="error", recorded=True)
        reasons = "; ".join(refused.reasons) or refused.message
        return attempt.message(f"{attempt.tool} was not permitted, and did not run: {reasons}", status="error")


def _probe(probe: ToolProbe, arguments: Arguments) -> KeyedProbe:
    """Return the probe of one call: it looks for what was asked for, under whatever key."""
    return KeyedProbe(lambda _: probe(arguments))


async def _in_thread(call: Callable[[], Permit | None]) -> Permit | None:
    import asyncio  # a tenth of the start-up time, which a blocking program can do without

    return await asyncio.to_thread(call)


class _Attempt:
    """One call of a tool: what came of it, for the log and for the graph."""

    def __init__(self, call: ToolCall, memory: str) -> None:
        key = call["id"]
        if not key:
            raise InvalidInputError(
                f"a call of the tool {call['name']!r} has no id, and can't be told from another one; it did not run",
                hint="Use a chat model whose tool calls have ids, or name the tool in reads.",
            )
        self.call = call
        self._memory = memory  # the workflow whose ledger records it
        self.key: str = key
        self.tool: str = call["name"]
        self.waits: GraphBubbleUp | None = None
        self._given: Answer | None = None

    def recorded(self, answer: Answer) -> object:
        """Return an answer as the log holds it: its content; what a content can't say stands beside it, serialised."""
        self._given = answer
        told = _message_in(answer, self.key)
        content = "" if told is None else told.content
        if told is answer and told.status == "success" and told.artifact is None:
            return storable_text(content) if isinstance(content, str) else content
        kind, data = JsonPlusSerializer().dumps_typed(answer)
        text = {"type": "text", "text": "" if told is None else storable_text(told.text)}
        return [text, {"type": _ANSWER, "text": "", "kind": kind, "data": base64.b64encode(data).decode()}]

    def suspended(self, waits: GraphBubbleUp) -> EffectFailedError:
        """Return the error that says that a tool waits for a person: it runs from its beginning when it is resumed."""
        self.waits = waits
        return EffectFailedError(_WAITS)

    def answer(self, outcome: EffectOutcome) -> Answer:
        """Return the answer of an effect, as the tool gave it."""
        if outcome.kind is EffectOutcomeKind.RAN and self._given is not None:
            return self._marked(self._given)
        result = outcome.result
        last = result[-1] if isinstance(result, list) and result else None
        if isinstance(last, dict) and last.get("type") == _ANSWER:
            given: Answer = JsonPlusSerializer().loads_typed((last["kind"], base64.b64decode(last["data"])))
            return self._marked(given)
        if isinstance(result, str) or (isinstance(result, list) and all(isinstance(one, str | dict) for one in result)):
            return self.message(result, recorded=True)
        return self.message(json.dumps(result, ensure_ascii=False), recorded=True)  # a probe's

    def message(
        self, content: str | list[str | dict[str, Any]], *, status: str = "success", recorded: bool = False
    ) -> ToolMessage:
        """Return a message that answers the call."""
        marks = {LEDGER_MARK: self._memory} if recorded else {}
        return ToolMessage(
            content=content, name=self.tool, tool_call_id=self.key, status=status, additional_kwargs=marks
        )

    def _marked(self, answer: Answer) -> Answer:
        """Return an answer whose message says that the ledger recorded it."""
        if isinstance(answer, list):
            return [self._marked(one) for one in answer]  # type: ignore[misc]  # one of a list is no list
        if isinstance(answer, ToolMessage):
            marks = {**answer.additional_kwargs, LEDGER_MARK: self._memory}
            return answer.model_copy(update={"additional_kwargs": marks})
        if not isinstance(answer.update, dict) or _message_in(answer, self.key) is None:
            return answer
        messages = [self._marked(one) if _answers(one, self.key) else one for one in answer.update["messages"]]
        return replace(answer, update={**answer.update, "messages": messages})


def _message_in(answer: Answer, call_id: str) -> ToolMessage | None:
    """Return the message with which an answer, whatever its form, answers a call."""
    if isinstance(answer, ToolMessage):
        return answer
    if isinstance(answer, list):
        return next((told for one in answer if (told := _message_in(one, call_id)) is not None), None)
    messages = answer.update.get("messages") if isinstance(answer.update, dict) else None
    return next((one for one in messages if _answers(one, call_id)), None) if isinstance(messages, list) else None


def _answers(message: object, call_id: str) -> bool:
    return isinstance(message, ToolMessage) and message.tool_call_id == call_id
