"""What a record of OpenAI's messages is: a message, a response around one, or a conversation around a list of them."""

from __future__ import annotations

import json
from typing import Final, Literal

import msgspec

from strandline.limits import IMPORT_OPENING_CHARS_MAX
from strandline.transcripts.lines import Line, check_utf8
from strandline.transcripts.structure import members, skip_blank, value_end, values

Kind = Literal["message", "conversation"]

_LIST_NAMES: Final = ("messages", "traj")
_LISTS: Final = tuple(f'"{name}"'.encode() for name in _LIST_NAMES)
_MARKS: Final = ((b'"role"', b'"'), (b'"choices"', b"["))  # how a member of a message or response begins
_FIELDS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


def kind_of(data: bytes, at: int = 0) -> Kind | None:
    """Tell what the record is that begins at a place, as far as it can be followed; None: neither."""
    if data[at : at + 1] != b"{":
        return None
    for name, value in members(data, at):
        sign = data[value : value + 1]
        if name in _LISTS and sign == b"[":
            return "conversation" if kind_of(data, skip_blank(data, value + 1)) == "message" else None
        if (name, sign) in _MARKS:
            return "message"
    return None


def list_of_messages(data: bytes) -> int | None:
    """Return where the list of messages of a conversation begins, or None where the record is no conversation."""
    if data.lstrip()[:1] != b"{":
        return None
    return next((at for name, at in members(data) if name in _LISTS and data[at : at + 1] == b"["), None)


def only_choice(line: Line) -> Line:
    """Return the message of a response, or the record itself."""
    at = _member(line, b'"choices"')
    if at is None:
        return line
    choices = list(line.parts(values(line.data, at + 1).spans)) if line.data[at : at + 1] == b"[" else []
    if len(choices) != 1:
        raise line.fault(f"a response with {len(choices)} choices; which of them was taken is not told")
    choice = choices[0]
    at = _member(choice, b'"message"')
    end = None if at is None else value_end(choice.data, at)
    if at is None or end is None:
        raise line.fault("a choice without a message")
    return next(choice.parts([(at, end)]))


def _member(line: Line, wanted: bytes) -> int | None:
    """Return where the value of a member begins."""
    return next((at for name, at in members(line.data) if name == wanted), None)


def fields_of(line: Line, data: bytes, start: int, end: int | None = None) -> dict[str, str]:
    """Return the fields of a conversation but its list of messages: what identifies it as text, "" for the others.

    Args:
        start, end: of the list; without an end only the fields before it count.
    """
    rest = b"}" if end is None else data[end:]
    record = Line(line.number, line.start, data[:start] + b"[]" + rest, ended=line.ended)
    check_utf8(record)
    fields = record.decode(_FIELDS)
    names = [name for name, _ in members(record.data)]
    if len(set(names)) < len(names):
        raise line.fault("a field of the conversation stands twice")
    return {name: _shown(record, name, bytes(value)) for name, value in fields.items() if name not in _LIST_NAMES}


def _shown(record: Line, name: str, value: bytes) -> str:
    """Return a number, a truth or a short string as the opening note tells it; "" for anything else."""
    if value[:1] in (b"[", b"{") or value == b"null" or len(value) > IMPORT_OPENING_CHARS_MAX:
        return ""
    if record.stand_ins is not None and record.stand_ins.stand_in(name + value.decode()):
        return ""
    return json.dumps(json.loads(value), ensure_ascii=False) if value[:1] == b'"' else value.decode()
