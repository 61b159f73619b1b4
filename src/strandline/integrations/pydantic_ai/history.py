"""A history of messages into the log, and the working context as messages."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Final

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelRequestPart, SystemPromptPart, UserPromptPart

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
)

_PAGE: Final = 16  # messages that are serialized and looked up at once, from the end of a history
_SAID_BY_AGENT = {EventKind.DECISION, EventKind.FAILED_ATTEMPT}


def record(memory: AgentMemory, messages: Sequence[ModelMessage]) -> Recorded:
    """Append the messages behind the newest one that the log holds; only those are serialized, and a page before them.

    Raises:
        InvalidInputError: a message can't be stored; nothing was written.
    """
    end: list[Json] = []
    for page in _pages_backwards(messages):
        end = [*page, *end]
        places = {
            key: at for at, message in enumerate(page) for key in event_keys(key_of(message), len(message["parts"]))
        }
        found = memory.workflow.seqs_of(list(places))
        if found:
            new = end[1 + max(places[key] for key in found) :]
            break
    else:
        new = end
    return memory.record(events_of(memory.workflow, end, new))


def _pages_backwards(messages: Sequence[ModelMessage]) -> Iterator[list[Json]]:
    for last in range(len(messages), 0, -_PAGE):
        yield dump(messages[max(0, last - _PAGE) : last])


def events_of(workflow: Workflow, history: Sequence[Json], new: Sequence[Json]) -> list[NewEvent]:
    """Return the events of new messages, which end a history; calls that ran as effects are left to those."""
    ids = [str(part["tool_call_id"]) for message in new for _, part in (*calls_of(message), *returns_of(message))]
    effects = frozenset(effect.key for effect in workflow.effects(ids)) if ids else frozenset()
    writer = Writer(calls=calls_in(history), effects=effects)
    for message in new:
        writer.write(message)
    return writer.events


def assemble(context: Context, messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """Return a working context as messages: the summary as a user's, then each message of the tail, as it was.

    Events without a message are shown too: what a program stated, and calls of a run that died before it told of them.
    A message of which an event stands in the tail is shown whole. System prompts of messages that the summary speaks
    for go before it. The newest message of the run comes last, whatever was appended meanwhile.
    """
    events = [part.event for part in context.parts if part.event is not None]
    shown = _Shown(events, messages)
    for event in events:
        shown.take(event)
    head: list[ModelRequestPart] = list(shown.covered_prompts(messages))
    texts = [part.text for part in context.parts if part.kind is not PartKind.EVENT]
    if texts:
        head.append(UserPromptPart("\n\n".join(texts)))
    return [*([ModelRequest(parts=head)] if head else []), *shown.messages(messages)]


class _Shown:
    """The messages of a tail, in the order of its events.

    A message is looked for in the run's history, from its end until a page of which nothing stands in the tail; else
    the log has it.
    """

    def __init__(self, events: Sequence[SourceEvent], messages: Sequence[ModelMessage]) -> None:
        self._kept: dict[str, Json] = {}  # by the log
        self._objects: dict[str, ModelMessage] = {}  # by the history
        self._calls: dict[str, str] = {}  # keys of messages, by the calls that they make
        self._returns: dict[str, str] = {}
        self._order: dict[str, ModelMessage] = {}
        self._tools: dict[str, str] = {}  # by the ids of calls
        for event in events:
            own = kept(event)
            if own is not None and own.message is not None:
                self._kept.setdefault(own.key, own.message)
                self._tell(own.key, own.message)
        here = {own.key for own in map(kept, events) if own is not None}
        asked = {event.call_id for event in events if event.call_id is not None}
        last = len(messages)
        for page in _pages_backwards(messages):
            keys = [key_of(message) for message in page]
            self._objects |= zip(keys, messages[last - len(page) : last], strict=True)
            for key, message in zip(keys, page, strict=True):
                self._tell(key, message)
            last -= len(page)
            if here.isdisjoint(keys) and asked.isdisjoint((*calls_in(page), *returns_in(page))):
                break

    def _tell(self, key: str, message: Json) -> None:
        """Take note of which calls a message tells of: the events of an effect stand before it."""
        for call_id in calls_in([message]):
            self._calls.setdefault(call_id, key)
        for call_id in returns_in([message]):
            self._returns.setdefault(call_id, key)

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
        elif (made := _message(event, self._tools.get(event.call_id or ""))) is not None:
            self._order[f"event:{event.seq}"] = load([made])[0]

    def messages(self, messages: Sequence[ModelMessage]) -> list[ModelMessage]:
        """Return them, the newest of the history last."""
        newest = list(messages[-1:])
        return [*(one for one in self._order.values() if one is not (newest and newest[0])), *newest]

    def covered_prompts(self, messages: Sequence[ModelMessage]) -> Iterator[SystemPromptPart]:
        """Yield the system prompts of messages of the history that are not shown."""
        here = {id(message) for message in (*self._order.values(), *messages[-1:])}
        for message in messages:
            if isinstance(message, ModelRequest) and id(message) not in here:
                yield from (part for part in message.parts if isinstance(part, SystemPromptPart))

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
