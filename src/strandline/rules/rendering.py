"""A context as provider messages (C18): no orphan result, no unanswered call, no thinking (I8)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from copy import deepcopy
from itertools import takewhile

from strandline.model.context import ContextPart, PartKind
from strandline.model.event import Envelope, EventKind, Role, SourceEvent

Message = dict[str, object]

OUTCOME_UNKNOWN = "[outcome unknown: no result of this call was recorded]"
WIRE_NAME_CHARS_MAX = 64
_NOT_ON_THE_WIRE = re.compile(r"[^a-zA-Z0-9_-]")
_AS_IT_STANDS = {EventKind.TOOL_CALL, EventKind.THINKING}
_SAID_BY_AGENT = {EventKind.DECISION, EventKind.FAILED_ATTEMPT}


def summary_texts(parts: Sequence[ContextPart]) -> list[str]:
    """Return the texts of the summary's parts, the stable prefix first; [] where there is no summary."""
    return [part.text for part in parts if part.kind not in (PartKind.RETRIEVED, PartKind.EVENT)]


def quoted_texts(parts: Sequence[ContextPart]) -> list[str]:
    """Return the texts of what was retrieved: quotes with a label, never calls or results of their own (C19)."""
    return [part.text for part in parts if part.kind is PartKind.RETRIEVED]


def segment_label(from_seq: int, through_seq: int) -> str:
    """Return the line that a segment begins with, so that a model knows what it reads."""
    return f"Summary of events {from_seq} to {through_seq}:\n"


def to_anthropic(parts: Sequence[ContextPart]) -> list[Message]:
    """Return messages for the Anthropic Messages API: roles alternate, results follow their calls at once."""
    messages: list[Message] = []
    texts = [*summary_texts(parts), *quoted_texts(parts)]
    if texts:
        _say(messages, "user", [_text_block(text) for text in texts])
    for group in _turns(parts):
        if isinstance(group, SourceEvent):
            role = "assistant" if _is_assistant(group) else "user"
            _say(messages, role, _anthropic_blocks(group))
            continue
        calls, results = group
        _say(messages, "assistant", [_tool_use(call, name) for name, call in calls])
        _say(messages, "user", [_tool_result(name, results.get(call.seq)) for name, call in calls])
    if messages and messages[0]["role"] == "assistant":
        messages.insert(0, {"role": "user", "content": [_text_block("(the conversation begins with the agent)")]})
    return messages


def to_openai(parts: Sequence[ContextPart]) -> list[Message]:
    """Return messages for OpenAI's chat completions: each call of an assistant message is answered right behind it."""
    messages: list[Message] = []
    texts = summary_texts(parts)
    if texts:
        messages.append({"role": "user", "content": "\n\n".join(texts)})
    messages += ({"role": "user", "content": text} for text in quoted_texts(parts))  # beside the anchors, not in them
    for group in _turns(parts):
        if isinstance(group, SourceEvent):
            role = _openai_role(group)
            content = group.text if role == Role.SYSTEM else plain_text(group)  # the role says it: no prefix
            messages.append({"role": role, "content": content})
            continue
        calls, results = group
        messages.append(
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": name,
                        "type": "function",
                        "function": {"name": wire_name(call.tool or ""), "arguments": _to_json(_asked(call))},
                    }
                    for name, call in calls
                ],
            }
        )
        for name, call in calls:
            result = results.get(call.seq)
            content = OUTCOME_UNKNOWN if result is None else result.text
            messages.append({"role": "tool", "tool_call_id": name, "content": content})
    return messages


def plain_text(event: SourceEvent) -> str:
    """Return an event as text, with what it is where its voice does not say so."""
    envelope = Envelope(role=event.role, late=event.late, call_id=event.call_id, subject=event.subject)
    return shown_text(event.kind, event.text, envelope, event.call_seq)


def shown_text(kind: EventKind, text: str, envelope: Envelope, call_seq: int | None) -> str:
    """Return the text of an event, with what it is where its voice does not say so."""
    if kind is EventKind.MESSAGE:
        return f"[system] {text}" if envelope.role is Role.SYSTEM else text
    if kind in _AS_IT_STANDS or (kind is EventKind.TOOL_RESULT and not envelope.late):
        return text
    if kind is EventKind.TOOL_RESULT:
        return f"[late result of call {envelope.call_id} made at event {call_seq}] {text}"
    subject = f" {envelope.subject}" if envelope.subject else ""
    return f"[{kind}{subject}] {text}".rstrip()


_Calls = tuple[list[tuple[str, SourceEvent]], dict[int, SourceEvent]]


def _turns(parts: Sequence[ContextPart]) -> Iterator[SourceEvent | _Calls]:
    """Yield events that are said, and groups of calls with their results.

    Calls that follow each other are one group; each result is moved up behind its group, where providers want it.
    """
    events = _prompt_first([p.event for p in parts if p.kind is PartKind.EVENT and p.event is not None])
    calls_here = {event.seq for event in events if event.kind is EventKind.TOOL_CALL}
    results: dict[int, SourceEvent] = {}
    for event in events:
        if _answers(event, calls_here) and event.call_seq is not None:
            results.setdefault(event.call_seq, event)
    used: set[str] = set()
    group: list[tuple[str, SourceEvent]] = []
    answered = {result.seq for result in results.values()}
    for event in events:
        if event.kind is EventKind.TOOL_CALL:
            group.append((_unique(event.call_id or "call", used), event))
            continue
        if event.kind in (EventKind.THINKING, EventKind.ABANDONED):
            continue
        if group:
            yield group, results
            group = []
        if event.seq not in answered:
            yield event
    if group:
        yield group, results


def _prompt_first(events: list[SourceEvent]) -> list[SourceEvent]:
    """Move system prompts before the notes that open a log: providers want them first, and a note is no user's turn."""
    opening = list(takewhile(lambda event: event.kind is EventKind.NOTE or event.role is Role.SYSTEM, events))
    return [*sorted(opening, key=lambda event: event.kind is EventKind.NOTE), *events[len(opening) :]]


def _answers(event: SourceEvent, calls_here: set[int]) -> bool:
    return event.kind is EventKind.TOOL_RESULT and not event.late and event.call_seq in calls_here


def _unique(call_id: str, used: set[str]) -> str:
    """Return an id that providers take. Ids recur in a log, but not within one request: a later one gets a number."""
    name = base = wire_name(call_id)
    number = 1
    while name in used:
        number += 1
        name = f"{base[: WIRE_NAME_CHARS_MAX - 8]}_{number}"
    used.add(name)
    return name


def wire_name(name: str) -> str:
    """Return a tool's name or a call's id in the letters that providers take, at most WIRE_NAME_CHARS_MAX."""
    return _NOT_ON_THE_WIRE.sub("_", name)[:WIRE_NAME_CHARS_MAX] or "unknown"


def _is_assistant(event: SourceEvent) -> bool:
    return event.role is Role.ASSISTANT or (event.role is None and event.kind in _SAID_BY_AGENT)


def _openai_role(event: SourceEvent) -> str:
    if event.kind is EventKind.MESSAGE and event.role is not None:
        return event.role.value
    return "assistant" if _is_assistant(event) else "user"


def _say(messages: list[Message], role: str, blocks: list[Message]) -> None:
    """Add blocks, to the last message when it has the same role."""
    if messages and messages[-1]["role"] == role:
        content = messages[-1]["content"]
        if isinstance(content, list):
            content.extend(blocks)
            return
    messages.append({"role": role, "content": list(blocks)})


def _text_block(text: str) -> Message:
    return {"type": "text", "text": text}


def _anthropic_blocks(event: SourceEvent) -> list[Message]:
    if event.kind is EventKind.MESSAGE and isinstance(event.payload, dict) and _is_result_block(event.payload):
        return [deepcopy(event.payload)]  # an image or a document, as it stood; other blocks as text
    return [_text_block(plain_text(event))]


def _asked(call: SourceEvent) -> object:
    """Return the arguments of a call; of an erased one none: no provider takes `null` (C31)."""
    return {} if call.erased else call.payload


def _tool_use(call: SourceEvent, name: str) -> Message:
    asked = deepcopy(_asked(call))
    arguments = asked if isinstance(asked, dict) else {"input": asked}
    return {"type": "tool_use", "id": name, "name": wire_name(call.tool or ""), "input": arguments}


def _tool_result(name: str, result: SourceEvent | None) -> Message:
    if result is None:
        return {"type": "tool_result", "tool_use_id": name, "content": OUTCOME_UNKNOWN}
    content = deepcopy(result.payload) if _is_result_content(result.payload) else result.text
    block: Message = {"type": "tool_result", "tool_use_id": name, "content": content}
    return block | {"is_error": True} if result.is_error else block


def _is_result_content(payload: object) -> bool:
    """Tell whether a result's content is blocks that the Messages API takes as they stand."""
    return isinstance(payload, list) and bool(payload) and all(_is_result_block(block) for block in payload)


def _is_result_block(block: object) -> bool:
    if not isinstance(block, dict):
        return False
    if block.get("type") == "text":
        return isinstance(block.get("text"), str) and bool(block["text"].strip())
    return block.get("type") in ("image", "document") and isinstance(block.get("source"), dict)


def _to_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
