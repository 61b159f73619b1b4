"""What one record of a transcript states, before it is named and becomes events."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import msgspec
from msgspec import Raw

from strandline.limits import JSON_DEPTH_MAX, NAME_CHARS_MAX
from strandline.model.event import EventKind, Role
from strandline.transcripts.lines import Line, identifier

ABSENT: Final = Raw(b"")
NOTHING: Final = (b"", b"null")

_DICT: Final = msgspec.json.Decoder(dict[str, object])
_STRING: Final = msgspec.json.Decoder(str)


class Statement(NamedTuple):
    """What becomes one event."""

    kind: EventKind
    body: bytes
    call_id: str | None = None
    tool: str | None = None
    is_error: bool = False
    actor: str | None = None  # where it is not the record's


@dataclass(slots=True, kw_only=True)
class Said:
    """What one record states, in the order in which a model says it: thought, text, calls."""

    actor: str = ""
    role: Role | None = None  # of the messages among the statements
    statements: list[Statement] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)  # what becomes no event
    source_at: str | None = None
    restarts: bool = False  # before what it states, no result of an earlier call can come (I8)
    foreign: str | None = None  # a summary that another tool wrote
    detail: Mapping[str, object] = field(default_factory=dict)  # what that tool says of it


@dataclass(slots=True)
class Heard:
    """What a conversation said before the record that is read."""

    calls: set[str] = field(default_factory=set)  # their ids
    asked: int = 0  # how many calls: for the ids of those that bear none
    waits_for: str | None = None  # the newest call, as long as nothing answered it
    alone: bool = True  # the call of each result stands in the conversation; else it may stand in a log


def actor_of(line: Line, value: object, name: str) -> str:
    """Return a name that becomes an actor.

    Raises:
        ImportFormatError: it is missing, or too long.
    """
    actor = identifier(line, value, name)
    if len(actor) > NAME_CHARS_MAX:
        raise line.fault(f"{name} has {len(actor)} characters, at most {NAME_CHARS_MAX} are allowed")
    return actor


def read_record(line: Line) -> dict[str, object]:
    """Return the members of a record that can be told apart and stored.

    Raises:
        ImportFormatError: it is damaged, nested too deep, or holds a name twice in one object.
    """
    members = line.decode(_DICT)
    if line.data.count(b"{") + line.data.count(b"[") > JSON_DEPTH_MAX:
        line.check_depth(members)
    line.check_names()
    return members


def holds_text(line: Line, value: bytes | Raw, name: str) -> bool:
    """Tell whether a member is a string that says something.

    Raises:
        ImportFormatError: it is something else than a string.
    """
    value = bytes(value)
    if value in NOTHING:
        return False
    if value[:1] != b'"':
        raise line.fault("content is neither a string nor a list" if name == "content" else f"{name} is no string")
    return bool(line.decode_part(value, _STRING).strip())


def stored_text(line: Line, text: str, name: str) -> str:
    """Return a text that is to be stored decoded.

    Raises:
        ImportFormatError: UTF-8 can't hold it.
    """
    if line.stand_ins is not None and line.stand_ins.stand_in(text):
        raise line.fault(f"{name} holds an unpaired surrogate escape, which UTF-8 can't hold", line.stand_ins.first)
    return text


def unread_of(fields: Mapping[str, object], read: Container[str]) -> list[str]:
    """Return how members are counted that hold something and become no event."""
    unread = (name for name, value in fields.items() if name not in read and value not in (None, "", [], {}))
    return [f"message.{name[:NAME_CHARS_MAX]}" for name in unread]


def message_of(line: Line, text: bytes | Raw) -> Statement:
    """Return a message of a string or a block, as it stood."""
    return Statement(EventKind.MESSAGE, line.as_it_stood(bytes(text)))


def thought_of(line: Line, text: bytes | Raw) -> Statement:
    """Return a thought of a string."""
    body = b'{"type":"thinking","thinking":' + line.as_it_stood(bytes(text)) + b"}"
    return Statement(EventKind.THINKING, body)


def call_of(line: Line, call_id: str, tool: str, given: bytes | Raw) -> Statement:
    """Return a call whose input is a value as it stood."""
    body = b'{"type":"tool_use","id":' + quoted(call_id) + b',"name":' + quoted(tool) + b',"input":'
    return Statement(EventKind.TOOL_CALL, body + line.as_it_stood(bytes(given)) + b"}", call_id, tool)


def result_of(
    line: Line, call_id: str, content: bytes | Raw, *, is_error: bool = False, actor: str | None = None
) -> Statement:
    """Return a result whose content is a value as it stood."""
    body = b'{"type":"tool_result","tool_use_id":' + quoted(call_id) + b',"content":'
    body += line.as_it_stood(bytes(content)) + (b',"is_error":true}' if is_error else b"}")
    return Statement(EventKind.TOOL_RESULT, body, call_id, None, is_error, actor)


def check_called(line: Line, call_id: str, heard: Heard) -> None:
    """Refuse a result that no call asked for."""
    if heard.alone and call_id not in heard.calls:
        raise line.fault(f"orphan result: no earlier call of the conversation has the id {call_id!r}")


def quoted(text: str) -> bytes:
    """Return a text as JSON spells it."""
    return msgspec.json.encode(text)
