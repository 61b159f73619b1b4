"""Events as messages of providers, with the bytes that stand in the log (C2). `docs/transcripts.md` has the table.

What a provider has no shape for is told as text, as in a context: facts, notes, results that came late.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec
from msgspec import Raw

from strandline.codec import decode_json, read_body
from strandline.model.event import BodyFormat, Event, EventKind, Role
from strandline.rules.rendering import OUTCOME_UNKNOWN, shown_text
from strandline.transcripts.statements import quoted
from strandline.transcripts.structure import members, value_of
from strandline.transcripts.turns import Calls, turns

_TEXT_BLOCKS: Final = frozenset({"text", "input_text", "output_text"})
_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")  # what OpenAI takes as the name of a participant
_ONE_LINE: Final = bytes.maketrans(b"\r\n", b"  ")
_SAID_BY_AGENT: Final = (EventKind.DECISION, EventKind.FAILED_ATTEMPT)
Message = dict[str, object]


def openai_messages(events: Iterable[Event]) -> Iterator[Message]:
    """Yield messages for OpenAI's chat completions: each call is answered right behind its message."""
    for turn in turns(events):
        if isinstance(turn, Event):
            yield from _openai_said(turn)
            continue
        calls = [_openai_call(call) for call in turn.calls]
        yield {"role": "assistant", "content": None, "tool_calls": calls}
        for call in turn.calls:
            content = _openai_content(_answer(turn, call))
            yield {"role": "tool", "tool_call_id": call.envelope.call_id, "content": content}


def anthropic_messages(events: Iterable[Event]) -> Iterator[Message]:
    """Yield messages for Anthropic's Messages API: the results of one message stand in the next one."""
    for turn in turns(events):
        if isinstance(turn, Event):
            blocks = _blocks(turn)
            if blocks:
                yield {"role": _role(turn), "content": blocks}
            continue
        yield {"role": "assistant", "content": [_body(call) for call in turn.calls]}
        yield {"role": "user", "content": [_anthropic_result(turn, call) for call in turn.calls]}


def _openai_said(event: Event) -> Iterator[Message]:
    message: Message = {"role": _role(event)}
    if event.actor != message["role"] and _NAME.fullmatch(event.actor):
        message["name"] = event.actor
    if event.kind is EventKind.THINKING:
        thought = _only_text(event, "thinking")
        if thought is not None:
            yield message | {"content": None, "reasoning_content": thought}
            return
    text = _only_text(event, "text") if event.kind is EventKind.MESSAGE else None
    if text is not None:
        yield message | {"content": text}
    elif blocks := _blocks(event):
        yield message | {"content": blocks}


def _blocks(event: Event) -> list[object]:
    """Return an event as blocks of a content; [] where it says nothing."""
    if event.kind is EventKind.TOOL_RESULT:
        label = f"[result of call {event.envelope.call_id} made at event {event.call_seq}, which had ended]"
        return [_text_block(quoted(label)), *_content_blocks(_content(event))]
    if event.kind not in (EventKind.MESSAGE, EventKind.THINKING):
        text = read_body(event)[0]
        if event.kind is EventKind.ABANDONED and not text:
            return []
        return [_text_block(quoted(shown_text(event.kind, text, event.envelope, event.call_seq)))]
    name = "thinking" if event.kind is EventKind.THINKING else "text"
    only = _only_text(event, name)
    return [_body(event) if only is None else {"type": name, name: only}]


def _only_text(event: Event, name: str) -> Raw | None:
    """Return the text of an event as JSON spells it; None where its body is a block that says more."""
    body = _body(event)
    data = bytes(body)
    if data[:1] == b'"':
        return body
    if data[:1] != b"{":
        return Raw(quoted(data.decode()))
    text = value_of(data, f'"{name}"'.encode())
    kind = value_of(data, b'"type"')
    plain = text[:1] == b'"' and len(list(members(data))) == 2
    kinds = _TEXT_BLOCKS if name == "text" else (name,)
    return Raw(text) if plain and kind.strip(b'"').decode() in kinds else None


def _body(event: Event) -> Raw:
    """Return the body of an event as one JSON value, as it stands."""
    if event.body is None:  # it was erased: what stands in its place is told
        text = read_body(event)[0]
        call_id = event.envelope.call_id
        if event.kind is EventKind.TOOL_CALL:
            return Raw(
                msgspec.json.encode({"type": "tool_use", "id": call_id, "name": event.envelope.tool, "input": text})
            )
        if event.kind is EventKind.TOOL_RESULT:
            return Raw(msgspec.json.encode({"type": "tool_result", "tool_use_id": call_id, "content": text}))
        return Raw(quoted(text))
    if event.format is BodyFormat.TEXT:
        return Raw(quoted(event.body.decode()))
    return Raw(event.body.translate(_ONE_LINE))  # only between values: in a string a line feed is an escape


def _openai_call(call: Event) -> Message:
    given = value_of(bytes(_body(call)), b'"input"')
    arguments = Raw(given if given[:1] == b'"' else quoted(given.decode()))
    function = {"name": call.envelope.tool, "arguments": arguments}
    return {"id": call.envelope.call_id, "type": "function", "function": function}


def _answer(turn: Calls, call: Event) -> bytes:
    """Return the content of the answer to a call, as JSON spells it."""
    answer = turn.answers.get(call.seq)
    if answer is None:
        return quoted(OUTCOME_UNKNOWN)
    if answer.kind is EventKind.ABANDONED:
        return quoted(f"{OUTCOME_UNKNOWN} {read_body(answer)[0]}".rstrip())
    return _content(answer)


def _content(result: Event) -> bytes:
    return value_of(bytes(_body(result)), b'"content"') or b'""'


def _openai_content(content: bytes) -> object:
    """Return the content of a result: a string, or a list of texts; of anything else the text that spells it."""
    if content[:1] == b'"' or (content[:1] == b"[" and _are_texts(content)):
        return Raw(content)
    return Raw(quoted(content.decode()))


def _content_blocks(content: bytes) -> list[object]:
    if content[:1] == b"[" and _are_texts(content):
        return list(msgspec.json.decode(content, type=list[Raw]))
    return [_text_block(content if content[:1] == b'"' else quoted(content.decode()))]


def _are_texts(content: bytes) -> bool:
    blocks = decode_json(content)
    return bool(blocks) and all(isinstance(block, dict) and block.get("type") == "text" for block in blocks)


def _anthropic_result(turn: Calls, call: Event) -> object:
    answer = turn.answers.get(call.seq)
    if answer is not None and answer.kind is EventKind.TOOL_RESULT:
        return _body(answer)
    content = Raw(_answer(turn, call))
    return {"type": "tool_result", "tool_use_id": call.envelope.call_id, "content": content}


def _text_block(text: bytes) -> Message:
    return {"type": "text", "text": Raw(text)}


def _role(event: Event) -> str:
    if event.kind is EventKind.MESSAGE and event.envelope.role is not None:
        return event.envelope.role.value
    agent = event.kind is EventKind.THINKING or event.kind in _SAID_BY_AGENT
    return Role.ASSISTANT.value if agent else Role.USER.value
