"""What a record of OpenAI's messages is: a message, a response around one, or a conversation around a list of them."""

from __future__ import annotations

from typing import Final, Literal

from strandline.transcripts.lines import Line, check_utf8
from strandline.transcripts.structure import member, members, skip_blank, value_end, values

Kind = Literal["message", "conversation"]

LISTS: Final = (b'"messages"', b'"traj"')  # members that hold the messages of a conversation
_MARKS: Final = ((b'"role"', b'"'), (b'"choices"', b"["))  # how a member of a message or response begins
CALL_TYPES: Final = frozenset({"function_call", "custom_tool_call"})
OUTPUT_TYPES: Final = frozenset({"function_call_output", "custom_tool_call_output"})
ITEM_TYPES: Final = frozenset({"message", "reasoning"}) | CALL_TYPES | OUTPUT_TYPES  # of the Responses API
_ITEM_MARKS: Final = tuple(f'"{name}"'.encode() for name in sorted(ITEM_TYPES - {"message"}))
_KINDRED: Final = (b'"chat.completion.chunk"', b'"custom_id"')


def kind_of(data: bytes, at: int = 0) -> Kind | None:
    """Tell what the record is that begins at a place, as far as it can be followed; None: neither."""
    if data[at : at + 1] != b"{":
        return None
    for name, value in members(data, at):
        sign = data[value : value + 1]
        if name in LISTS and sign == b"[":
            first = skip_blank(data, value + 1)
            return "conversation" if data[first : first + 1] == b"]" or kind_of(data, first) == "message" else None
        if (name, sign) in _MARKS or (name == b'"type"' and data.startswith(_ITEM_MARKS, value)):
            return "message"
    return None


def name_kindred(data: bytes, at: int = 0) -> str | None:
    """Name a record that is kindred to OpenAI's messages and is not read, and say what to do; None: it is none."""
    if data[at : at + 1] != b"{" or not any(mark in data for mark in _KINDRED):
        return None
    names = dict(members(data, at))
    if data.startswith(b'"chat.completion.chunk"', names.get(b'"object"', len(data))):
        return "a streamed piece of a response (chat.completion.chunk); write the message that the pieces make"
    if b'"custom_id"' in names and (b'"body"' in names or b'"response"' in names):
        return "a record of a batch (custom_id); write what stands in its body, one a line"
    return None


def only_choice(line: Line) -> Line:
    """Return the message of a response, or the record itself."""
    kindred = name_kindred(line.data, skip_blank(line.data, 0))
    if kindred is not None:
        raise line.fault(kindred)
    at = member(line.data, b'"choices"')
    if at is None:
        return line
    choices = list(line.parts(values(line.data, at + 1).spans)) if line.data[at : at + 1] == b"[" else []
    if len(choices) != 1:
        raise line.fault(f"a response with {len(choices)} choices; which of them was taken is not told")
    choice = choices[0]
    at = member(choice.data, b'"message"')
    end = None if at is None else value_end(choice.data, at)
    if at is None or end is None:
        raise line.fault("a choice without a message")
    return next(choice.parts([(at, end)]))


def system_of(line: Line) -> list[Line]:
    """Return the system prompt that stands beside the messages of a conversation, as a message."""
    at = member(line.data, b'"system"')
    end = None if at is None or line.data[at : at + 1] not in (b'"', b"[") else value_end(line.data, at)
    if at is None or end is None:
        return []
    (prompt,) = line.parts([(at, end)])
    message = Line(prompt.number, prompt.start, b'{"role":"system","content":' + prompt.data + b"}", ended=False)
    message.size_bytes = prompt.size_bytes
    check_utf8(message)
    return [message]
