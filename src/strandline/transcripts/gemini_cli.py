"""Sessions of Gemini CLI: one document with a list of messages, in which calls stand with their results."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Raw

from strandline.model.event import EventKind, Role
from strandline.transcripts.conversations import Form
from strandline.transcripts.lines import Line, identifier
from strandline.transcripts.statements import (
    ABSENT,
    NOTHING,
    Heard,
    Said,
    Statement,
    call_of,
    holds_text,
    message_of,
    read_record,
    result_of,
    unread_of,
)

_ROLES: Final = {"user": Role.USER, "gemini": Role.ASSISTANT}
_FAILED: Final = frozenset({"error", "cancelled"})
_READ: Final = frozenset({"id", "timestamp", "type", "content", "thoughts", "toolCalls"})
_ANSWERS: Final = ("output", "error")  # the one member in which a tool of Gemini CLI answers


class _Message(msgspec.Struct, rename="camel", gc=False):
    content: Raw = ABSENT
    thoughts: list[Raw] | None = None
    tool_calls: list[Raw] | None = None


class _Thought(msgspec.Struct, gc=False):
    subject: Raw = ABSENT
    description: Raw = ABSENT


class _Call(msgspec.Struct, gc=False):
    id: object = None
    name: object = None
    args: Raw = ABSENT
    result: Raw = ABSENT
    status: object = None


class _Part(msgspec.Struct, rename="camel", gc=False):
    text: Raw = ABSENT
    function_response: Raw = ABSENT


class _Response(msgspec.Struct, gc=False):
    response: Raw = ABSENT


_MESSAGE: Final = msgspec.json.Decoder(_Message)
_THOUGHT: Final = msgspec.json.Decoder(_Thought)
_CALL: Final = msgspec.json.Decoder(_Call)
_PART: Final = msgspec.json.Decoder(_Part)
_RESPONSE: Final = msgspec.json.Decoder(_Response)
_PARTS: Final = msgspec.json.Decoder(list[Raw])
_MEMBERS: Final = msgspec.json.Decoder(dict[str, Raw])


def read_message(line: Line, heard: Heard) -> Said:
    """Return what one message states: thoughts, text, and calls, each with its result.

    Raises:
        ImportFormatError: it is damaged.
    """
    fields = read_record(line)
    kind = identifier(line, fields.get("type"), "type")
    if kind not in _ROLES:
        return Said(skipped=[kind])  # what the program tells its user
    message = line.decode(_MESSAGE)
    said = Said(actor=_ROLES[kind].value, role=_ROLES[kind], skipped=unread_of(fields, _READ))
    if fields.get("timestamp") is not None:
        said.source_at = identifier(line, fields["timestamp"], "timestamp")
    said.statements += (_thought(line, thought) for thought in message.thoughts or ())
    _add_texts(line, said, bytes(message.content))
    for number, call in enumerate(message.tool_calls or (), heard.asked + 1):
        said.statements += _call(line, call, number)
    return said


def _thought(line: Line, data: Raw) -> Statement:
    thought = line.decode_part(data, _THOUGHT)
    holds_text(line, thought.description, "the description of a thought")
    body = b'{"type":"thinking","thinking":' + (bytes(thought.description) or b'""')
    if thought.subject is not ABSENT:
        body += b',"subject":' + bytes(thought.subject)
    return Statement(EventKind.THINKING, line.as_it_stood(body + b"}"))


def _add_texts(line: Line, said: Said, content: bytes) -> None:
    parts = [content]
    if content[:1] == b"[":
        parts = [bytes(part) for part in line.decode_part(content, _PARTS)]
    stated = [statement for part in parts if (statement := _text(line, part)) is not None]
    said.statements += stated
    if not stated:
        said.skipped.append("empty_block")


def _text(line: Line, part: bytes) -> Statement | None:
    """Return the text of a part, or a part of another kind as it stood; None: it says nothing."""
    if part[:1] != b"{":
        return message_of(line, part) if holds_text(line, part, "content") else None
    text = line.decode_part(part, _PART).text
    if text is not ABSENT:
        return message_of(line, text) if holds_text(line, text, "the text of a part") else None
    return message_of(line, b'{"type":"part","part":' + part + b"}")


def _call(line: Line, data: Raw, number: int) -> list[Statement]:
    call = line.decode_part(data, _CALL)
    call_id = f"call:{number}" if call.id is None else identifier(line, call.id, "the id of a call")
    tool = identifier(line, call.name, "the name of a called tool")
    stated = [call_of(line, call_id, tool, bytes(call.args) or b"{}")]
    if bytes(call.result) not in (*NOTHING, b"[]"):
        content = _answer(line, bytes(call.result))
        stated.append(result_of(line, call_id, content, is_error=call.status in _FAILED, actor="tool"))
    return stated


def _answer(line: Line, result: bytes) -> bytes:
    """Return the text that a tool answered, where the result wraps nothing else; else the result as it stood."""
    parts = line.decode_part(result, _PARTS) if result[:1] == b"[" else [Raw(result)]
    if len(parts) != 1 or bytes(parts[0])[:1] != b"{":
        return result
    wrapped = line.decode_part(parts[0], _PART).function_response
    if bytes(wrapped)[:1] != b"{":
        return result
    response = bytes(line.decode_part(wrapped, _RESPONSE).response)
    members = line.decode_part(response, _MEMBERS) if response[:1] == b"{" else {}
    if len(members) == 1 and (name := next(iter(members))) in _ANSWERS:
        return bytes(members[name])
    return response or result


GEMINI_CLI: Final = Form(name="gemini_cli", read=read_message, lists=(b'"messages"',))
