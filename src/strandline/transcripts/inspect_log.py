"""Inspect's evaluation logs (the JSON form): each sample is a conversation."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Raw

from strandline.model.event import Role
from strandline.transcripts.conversations import Form
from strandline.transcripts.lines import Line, identifier
from strandline.transcripts.statements import (
    ABSENT,
    NOTHING,
    Heard,
    Said,
    Statement,
    call_of,
    check_called,
    holds_text,
    message_of,
    read_record,
    result_of,
    thought_of,
    unread_of,
)

_ROLES: Final = {"user": Role.USER, "assistant": Role.ASSISTANT, "system": Role.SYSTEM}
_READ: Final = frozenset({"id", "role", "content", "tool_calls", "tool_call_id", "function", "error"})


class _Message(msgspec.Struct, gc=False):
    content: Raw = ABSENT
    tool_calls: list[Raw] | None = None
    error: Raw = ABSENT


class _Call(msgspec.Struct, gc=False):
    id: object = None
    function: object = None
    arguments: Raw = ABSENT


class _Part(msgspec.Struct, gc=False):
    type: object = None
    text: Raw = ABSENT
    reasoning: Raw = ABSENT


_MESSAGE: Final = msgspec.json.Decoder(_Message)
_CALL: Final = msgspec.json.Decoder(_Call)
_PART: Final = msgspec.json.Decoder(_Part)
_PARTS: Final = msgspec.json.Decoder(list[Raw])


def read_message(line: Line, heard: Heard) -> Said:
    """Return what one message of a sample states.

    Raises:
        ImportFormatError: it is damaged, or a result that no call asked for.
    """
    fields = read_record(line)
    message = line.decode(_MESSAGE)
    role = identifier(line, fields.get("role"), "role")
    if role == "tool":
        return _result(line, fields, message, heard)
    if role not in _ROLES:
        raise line.fault(f"role {role!r} is none of {', '.join((*_ROLES, 'tool'))}")
    said = Said(actor=role, role=_ROLES[role], skipped=unread_of(fields, _READ))
    content = bytes(message.content)
    if content[:1] == b"[":
        stated = [_part(line, part) for part in line.decode_part(content, _PARTS)]
        said.statements += (statement for statement in stated if statement is not None)
    elif holds_text(line, content, "content"):
        said.statements.append(message_of(line, content))
    said.statements += (_call(line, call) for call in message.tool_calls or ())
    if not said.statements:
        said.skipped.append("empty_block")
    return said


def _part(line: Line, data: Raw) -> Statement | None:
    """Return what a part of a content states; None: nothing, it is empty."""
    part = line.decode_part(data, _PART)
    kind = identifier(line, part.type, "the type of a part of content")
    if kind == "text":
        return message_of(line, data) if holds_text(line, part.text, "the text of a part") else None
    if kind == "reasoning":
        return thought_of(line, part.reasoning) if holds_text(line, part.reasoning, "a reasoning") else None
    return message_of(line, data)


def _call(line: Line, data: Raw) -> Statement:
    call = line.decode_part(data, _CALL)
    call_id = identifier(line, call.id, "the id of a tool call")
    if call.arguments is ABSENT:
        raise line.fault("a tool call without arguments")
    return call_of(line, call_id, identifier(line, call.function, "the function of a tool call"), call.arguments)


def _result(line: Line, fields: dict[str, object], message: _Message, heard: Heard) -> Said:
    """A result; where the tool failed and said nothing, its error is what came."""
    call_id = identifier(line, fields.get("tool_call_id"), "tool_call_id")
    check_called(line, call_id, heard)
    failed = bytes(message.error) not in NOTHING
    content = message.error if failed and bytes(message.content) in (*NOTHING, b'""') else message.content
    if content is ABSENT:
        raise line.fault("a tool message without content")
    result = result_of(line, call_id, content, is_error=failed)
    return Said(actor="tool", statements=[result], skipped=unread_of(fields, _READ))


INSPECT: Final = Form(name="inspect", read=read_message, lists=(b'"messages"',), logs=b'"samples"')
