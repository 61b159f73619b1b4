"""A history of messages into the log, and the working context as messages."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pydantic_ai.messages import ModelMessage

from strandline import Context, EventKind, NewEvent, PartKind, Role, SourceEvent, Workflow
from strandline.integrations.agent_memory import AgentMemory, Recorded
from strandline.integrations.pydantic_ai.messages import (
    Json,
    Writer,
    calls_in,
    calls_of,
    dump,
    event_keys,
    kept,
    key_of,
    load,
    returns_in,
    returns_of,
    system_parts,
)
from strandline.limits import RECORD_PAGE_EVENTS

_SAID_BY_AGENT = {EventKind.DECISION, EventKind.FAILED_ATTEMPT}


def record(memory: AgentMemory, messages: Sequence[ModelMessage]) -> Recorded:
    """Append the messages behind the newest one that the log holds.

    Raises:
        InvalidInputError: a message can't be stored; nothing was written.
    """
    history = dump(messages)
    new = history[_known(memory, history) :]
    return memory.record(events_of(memory.workflow, history, new))


def events_of(workflow: Workflow, history: Sequence[Json], new: Sequence[Json]) -> list[NewEvent]:
    """Return the events of new messages, which end a history; calls that ran as effects are left to those."""
    ids = [str(part["tool_call_id"]) for message in new for _, part in (*calls_of(message), *returns_of(message))]
    effects = frozenset(effect.key for effect in workflow.effects(ids)) if ids else frozenset()
    writer = Writer(calls=calls_in(history), effects=effects)
    for message in new:
        writer.write(message)
    return writer.events


def _known(memory: AgentMemory, history: Sequence[Json]) -> int:
    """Return how many messages stand at or before the newest one of which the log holds an event."""
    last = len(history)
    while last > 0:
        first = max(0, last - RECORD_PAGE_EVENTS)
        page = history[first:last]
        places = {
            key: at for at, message in enumerate(page) for key in event_keys(key_of(message), len(message["parts"]))
        }
        found = memory.workflow.seqs_of(list(places))
        if found:
            return first + 1 + max(places[key] for key in found)
        last = first
    return 0


def assemble(context: Context, messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """Return a working context as messages: the summary as a user's, then each message of the tail, as it was.

    Events without a message are shown too: what a program stated, and calls of a run that died before it told of them.
    A message of which an event stands in the tail is shown whole. System prompts of messages that the summary speaks
    for go before it. The newest message of the run comes last, whatever was appended meanwhile.
    """
    history = dump(messages)
    shown = _Shown(history, messages)
    events = [part.event for part in context.parts if part.event is not None]
    for event in events:
        shown.learn(event)
    for event in events:
        shown.take(event)
    tail = shown.messages()
    texts = [part.text for part in context.parts if part.kind is not PartKind.EVENT]
    head = [part for message in shown.covered() for part in system_parts(message)]
    if texts:
        head.append({"part_kind": "user-prompt", "content": "\n\n".join(texts)})
    return [*(load([{"kind": "request", "parts": head}]) if head else []), *tail]


class _Shown:
    """The messages of a tail, in the order of its events."""

    def __init__(self, history: Sequence[Json], messages: Sequence[ModelMessage]) -> None:
        self._history = {key_of(message): message for message in history}
        self._kept: dict[str, Json] = {}  # by the log, of other runs
        self._objects = {key_of(message): given for message, given in zip(history, messages, strict=True)}
        self._newest = key_of(history[-1]) if history else ""
        self._calls = {call_id: key_of(made[0]) for call_id, made in calls_in(history).items()}
        self._returns = {call_id: key_of(message) for call_id, message in returns_in(history).items()}
        self._order: dict[str, ModelMessage] = {}
        self._tools: dict[str, str] = {}  # by the ids of calls

    def learn(self, event: SourceEvent) -> None:
        """Take note of the message that an event keeps: an effect's events, which it tells of, stand before it."""
        own = kept(event)
        if own is not None and own.message is not None:
            self._kept.setdefault(own.key, own.message)
            self._calls |= dict.fromkeys(calls_in([own.message]), own.key)
            self._returns |= dict.fromkeys(returns_in([own.message]), own.key)

    def take(self, event: SourceEvent) -> None:
        """Take the next event."""
        if event.kind is EventKind.TOOL_CALL:
            self._tools[event.call_id or ""] = event.tool or ""
        own = kept(event)
        key = own.key if own is not None else self._message_of(event)
        if key in self._order:
            return
        if key in self._objects:
            self._order[key] = self._objects[key]
        elif key in self._kept:
            self._order[key] = load([self._kept[key]])[0]
        elif own is None and (made := _message(event, self._tools.get(event.call_id or ""))) is not None:
            self._order[f"event:{event.seq}"] = load([made])[0]

    def messages(self) -> list[ModelMessage]:
        """Return them."""
        newest = self._objects.get(self._newest)
        self._order.pop(self._newest, None)
        return [*self._order.values(), *([newest] if newest is not None else [])]

    def covered(self) -> list[Json]:
        """Return the messages of the history that are not shown."""
        return [m for key, m in self._history.items() if key not in self._order and key != self._newest]

    def _message_of(self, event: SourceEvent) -> str:
        """Return the key of the message that tells of an effect's call or result; "": none does."""
        if event.kind is EventKind.TOOL_CALL:
            return self._calls.get(event.call_id or "", "")
        if event.kind is EventKind.TOOL_RESULT:
            return self._returns.get(event.call_id or "", "")
        return ""


def _message(event: SourceEvent, tool: str | None) -> Json | None:
    """Return a message that says what an event says of which the framework knows nothing."""
    if event.kind in (EventKind.THINKING, EventKind.ABANDONED):
        return None
    if event.kind is EventKind.TOOL_CALL:
        args = event.payload if isinstance(event.payload, dict) else json.dumps(event.payload)
        part = {"part_kind": "tool-call", "tool_name": tool, "args": args, "tool_call_id": event.call_id}
        return {"kind": "response", "parts": [part]}
    if event.kind is EventKind.TOOL_RESULT:
        if tool is None:
            said = f"[result of the earlier call {event.call_id}] {event.text}"
            return {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": said}]}
        named = {"tool_name": tool, "tool_call_id": event.call_id}
        return {"kind": "request", "parts": [{"part_kind": "tool-return", "content": event.text, **named}]}
    by_agent = event.role is Role.ASSISTANT or event.kind in _SAID_BY_AGENT
    subject = f" {event.subject}" if event.subject else ""
    said = event.text if event.kind is EventKind.MESSAGE else f"[{event.kind}{subject}] {event.text}".rstrip()
    if by_agent:
        return {"kind": "response", "parts": [{"part_kind": "text", "content": said}]}
    kind = "system-prompt" if event.role is Role.SYSTEM else "user-prompt"
    return {"kind": "request", "parts": [{"part_kind": kind, "content": said}]}
