"""One message of OpenAI's: what it states. `docs/transcripts.md` has the table."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Raw

from strandline.errors import ImportFormatError
from strandline.limits import JSON_DEPTH_MAX
from strandline.model.event import EventKind, Role
from strandline.transcripts.blocks import read_tool_result, read_tool_use
from strandline.transcripts.lines import Line, identifier
from strandline.transcripts.openai_records import CALL_TYPES, ITEM_TYPES, OUTPUT_TYPES
from strandline.transcripts.statements import (
    ABSENT,
    NOTHING,
    Heard,
    Said,
    Statement,
    actor_of,
    call_of,
    check_called,
    holds_text,
    message_of,
    read_record,
    result_of,
    thought_of,
    unread_of,
)


class _Message(msgspec.Struct, gc=False):
    """The members that are kept as they stand."""

    content: Raw = ABSENT
    refusal: Raw = ABSENT
    reasoning_content: Raw = ABSENT
    tool_calls: Raw = ABSENT
    function_call: Raw = ABSENT
    audio: Raw = ABSENT


class _Audio(msgspec.Struct, gc=False):
    transcript: Raw = ABSENT


class _Item(msgspec.Struct, gc=False):
    """Members of an item of the Responses API that bears no role."""

    output: Raw = ABSENT
    summary: Raw = ABSENT
    content: Raw = ABSENT


class _Thought(msgspec.Struct, gc=False):
    text: Raw = ABSENT


class _Call(msgspec.Struct, gc=False):
    id: object = None
    function: Raw = ABSENT
    custom: Raw = ABSENT


class _Called(msgspec.Struct, gc=False):
    name: object = None
    arguments: Raw = ABSENT
    input: Raw = ABSENT  # of a custom tool


_DICT: Final = msgspec.json.Decoder(dict[str, object])
_MESSAGE: Final = msgspec.json.Decoder(_Message)
_AUDIO: Final = msgspec.json.Decoder(_Audio)
_CALL: Final = msgspec.json.Decoder(_Call)
_CALLED: Final = msgspec.json.Decoder(_Called)
_PARTS: Final = msgspec.json.Decoder(list[Raw])
_STRING: Final = msgspec.json.Decoder(str)
_VALUE: Final = msgspec.json.Decoder()

_ITEM: Final = msgspec.json.Decoder(_Item)
_THOUGHT: Final = msgspec.json.Decoder(_Thought)

_ROLES: Final = {"user": Role.USER, "assistant": Role.ASSISTANT, "system": Role.SYSTEM, "developer": Role.SYSTEM}
_RESULTS: Final = {"tool": "tool_call_id", "function": "name"}  # and the member that names the call
_READ_OF_RESULT: Final = frozenset({"role", "name", "tool_call_id", "content"})  # the name is that of the call
_READ: Final = frozenset({"role", "name", *_Message.__struct_fields__}) - {"audio"}  # of which only a transcript is
_READ_OF_CALL: Final = frozenset({"call_id", "name", "arguments", "input"})
_READ_OF_OUTPUT: Final = frozenset({"call_id", "output"})
_READ_OF_REASONING: Final = frozenset({"summary", "content"})
_THOUGHTS: Final = frozenset({"thinking", "redacted_thinking"})
_PART_TEXTS: Final = {
    "text": "text",
    "input_text": "text",
    "output_text": "text",
    "refusal": "refusal",
    "thinking": "thinking",
}


def read_message(line: Line, heard: Heard) -> Said:
    """Return what a message states.

    Args:
        line: the record.
        heard: what the conversation said before it.

    Raises:
        ImportFormatError: it is damaged, or a result that no call asked for.
    """
    fields = read_record(line)
    item = fields.get("type")
    is_item = fields.get("role") is None and isinstance(item, str) and bool(item)
    role = "assistant" if is_item else identifier(line, fields.get("role"), "role")
    message = line.decode(_MESSAGE)
    read = _READ_OF_RESULT if role in _RESULTS else _READ
    if is_item:
        said, read = _item(line, str(item), fields, heard)
    elif role in _RESULTS:
        result = _result(line, fields.get(_RESULTS[role]), role, bytes(message.content), heard)
        said = Said(actor=role, role=None, statements=[result])
    elif role in _ROLES:
        said = Said(actor=actor_of(line, fields.get("name") or role, "name"), role=_ROLES[role], statements=[])
        _add_texts(line, message, said, heard)
        _add_calls(line, message, said)
    else:
        raise line.fault(f"role {role!r} is none of {', '.join((*_ROLES, *_RESULTS))}")
    if not said.statements and not said.skipped:
        said.skipped.append("empty_block")
    read |= {"type"} if item in ITEM_TYPES else set()
    said.skipped += unread_of(fields, read)
    return said


# ---------------------------------------------------------------------------------------------- texts


def _add_texts(line: Line, message: _Message, said: Said, heard: Heard) -> None:
    thought, content, refused = bytes(message.reasoning_content), bytes(message.content), bytes(message.refusal)
    if holds_text(line, thought, "reasoning_content"):
        said.statements.append(thought_of(line, thought))
    if content[:1] == b"[":
        for part in [bytes(raw) for raw in line.decode_part(content, _PARTS)]:
            stated = _part(line, part, heard)
            if stated is None:
                said.skipped.append("empty_block")
            else:
                said.statements.append(stated)
    elif holds_text(line, content, "content"):
        said.statements.append(message_of(line, content))
    if bytes(message.audio)[:1] == b"{":
        spoken = bytes(line.decode_part(message.audio, _AUDIO).transcript)
        if holds_text(line, spoken, "audio.transcript"):
            said.statements.append(message_of(line, spoken))
    if holds_text(line, refused, "refusal"):
        body = b'{"type":"refusal","refusal":' + line.as_it_stood(refused) + b"}"
        said.statements.append(Statement(EventKind.MESSAGE, body))


def _part(line: Line, part: bytes, heard: Heard) -> Statement | None:
    """Return what a part of a content states, one of Anthropic's too; None: nothing, it is empty."""
    block = line.decode_part(part, _VALUE)
    if not isinstance(block, dict):
        raise line.fault("a part of content is no object")
    kind = identifier(line, block.get("type"), "the type of a part of content")
    body = line.as_it_stood(part)
    if kind == "tool_use":
        return Statement(EventKind.TOOL_CALL, body, *read_tool_use(line, block))
    if kind == "tool_result":
        call_id, is_error = read_tool_result(line, block)
        check_called(line, call_id, heard)
        return Statement(EventKind.TOOL_RESULT, body, call_id, is_error=is_error)
    stated = Statement(EventKind.THINKING if kind in _THOUGHTS else EventKind.MESSAGE, body)
    if kind not in _PART_TEXTS:
        return stated
    text = block.get(_PART_TEXTS[kind])
    if not isinstance(text, str):
        raise line.fault(f"a {kind} part whose {_PART_TEXTS[kind]} is no string")
    return stated if text.strip() else None


# ---------------------------------------------------------------------------------------------- Responses API


def _item(line: Line, kind: str, fields: dict[str, object], heard: Heard) -> tuple[Said, frozenset[str]]:
    """Return what an item states that bears no role, and which of its members were read."""
    item = line.decode(_ITEM)
    if kind in CALL_TYPES:
        call_id = identifier(line, fields.get("call_id"), "the id of a tool call")
        stated = [_function(line, line.data, call_id)]
        return Said(actor="assistant", role=None, statements=stated), _READ_OF_CALL
    if kind in OUTPUT_TYPES:
        stated = [_result(line, fields.get("call_id"), kind, bytes(item.output), heard)]
        return Said(actor="tool", role=None, statements=stated), _READ_OF_OUTPUT
    if kind != "reasoning":
        raise line.fault(f"an item of the type {kind!r} is not read; those that are: {', '.join(sorted(ITEM_TYPES))}")
    stated = []
    for name, parts in (("summary", bytes(item.summary)), ("content", bytes(item.content))):
        if parts in NOTHING:
            continue
        if parts[:1] != b"[":
            raise line.fault(f"the {name} of a reasoning item is no list")
        for part in line.decode_part(parts, _PARTS):
            text = bytes(line.decode_part(part, _THOUGHT).text)
            if holds_text(line, text, f"a part of the {name}"):
                stated.append(thought_of(line, text))
    return Said(actor="assistant", role=None, statements=stated), _READ_OF_REASONING


# ---------------------------------------------------------------------------------------------- calls and results


def _add_calls(line: Line, message: _Message, said: Said) -> None:
    calls, called = bytes(message.tool_calls), bytes(message.function_call)
    if calls not in NOTHING:
        said.statements += (_call(line, call) for call in line.decode_part(calls, _PARTS))
    if called not in NOTHING:
        said.statements.append(_function(line, called, None))


def _call(line: Line, data: Raw) -> Statement:
    call = line.decode_part(data, _CALL)
    call_id = identifier(line, call.id, "the id of a tool call")
    called = next((bytes(kind) for kind in (call.function, call.custom) if bytes(kind) not in NOTHING), None)
    if called is None:
        raise line.fault("a tool call with neither function nor custom")
    return _function(line, called, call_id)


def _function(line: Line, data: bytes, call_id: str | None) -> Statement:
    """Return the call of a function; without an id, as in old files, it is known by the function's name."""
    called = line.decode_part(data, _CALLED)
    tool = identifier(line, called.name, "the name of a called function")
    given = next((bytes(kind) for kind in (called.arguments, called.input) if bytes(kind) not in NOTHING), None)
    if given is None:
        raise line.fault("a call without arguments")
    call_id = _id_of_function(tool) if call_id is None else call_id
    return call_of(line, call_id, tool, spelled_object(line, line.as_it_stood(given)))


def spelled_object(line: Line, text: bytes) -> bytes:
    """Return the object that a string spells, byte for byte; where it spells none, what was given.

    So the string can be had again: an input that is an object is its text, an input that is a string is the string.
    A string is no object also where it repeats a name, since then its text says more than the object.
    """
    if text[:1] != b'"':
        return text
    try:
        spelled = Line(line.number, line.start, _STRING.decode(text).encode(), ended=False)
        value = spelled.decode(_DICT)
        if spelled.data.count(b"{") + spelled.data.count(b"[") >= JSON_DEPTH_MAX:
            spelled.check_depth([value])
        spelled.check_names()
    except (msgspec.DecodeError, ImportFormatError, UnicodeError):
        return text  # broken JSON of a model, or an unpaired surrogate
    return spelled.as_it_stood(spelled.data)


def _result(line: Line, cited: object, role: str, content: bytes, heard: Heard) -> Statement:
    call_id = identifier(line, cited, _RESULTS.get(role, "call_id"))
    if role == "function":
        call_id = _id_of_function(call_id)
    check_called(line, call_id, heard)
    if not content:
        raise line.fault(f"a {role} message without content" if role in _RESULTS else f"a {role} without output")
    return result_of(line, call_id, content)


def _id_of_function(name: str) -> str:
    return f"function:{name}"
