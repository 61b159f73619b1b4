"""Strandline's own JSONL: one event a line, made by the public constructors. `docs/transcripts.md` has the table."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from strandline.codec import encode_body
from strandline.errors import InvalidInputError
from strandline.limits import EVENT_BYTES_MAX, JSON_DEPTH_MAX, KEY_CHARS_MAX
from strandline.model import constructors
from strandline.model.event import EventKind, NewEvent
from strandline.transcripts.keys import KeyChain
from strandline.transcripts.lines import Line

_RECORD: Final = msgspec.json.Decoder(dict[str, object])
_COMMON: Final = frozenset({"key", "actor", "audience", "refs", "thread"})
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_RFC_3339: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)", re.ASCII)


@dataclass(frozen=True, slots=True)
class _Shape:
    """How records of one kind are read: the constructor, and the fields that it takes besides the common ones."""

    construct: Callable[..., NewEvent]
    required: tuple[str, ...]
    optional: tuple[str, ...] = ()


_SHAPES: Final = {
    EventKind.MESSAGE: _Shape(constructors.message, ("role", "text")),
    EventKind.THINKING: _Shape(constructors.thinking, ("text",)),
    EventKind.TOOL_CALL: _Shape(constructors.tool_call, ("call_id", "tool", "input")),
    EventKind.TOOL_RESULT: _Shape(constructors.tool_result, ("call_id", "content"), ("is_error",)),
    EventKind.ABANDONED: _Shape(constructors.abandoned, ("call_id",), ("text",)),
    EventKind.CONSTRAINT: _Shape(constructors.constraint, ("subject", "text")),
    EventKind.LIFT_CONSTRAINT: _Shape(constructors.lift_constraint, ("subject",), ("text",)),
    EventKind.APPROVAL: _Shape(
        constructors.approval, ("subject", "text", "granter"), ("scope", "expires_at", "single_use")
    ),
    EventKind.REVOKE: _Shape(constructors.revoke, ("subject",), ("text",)),
    EventKind.DECISION: _Shape(constructors.decision, ("text",), ("subject",)),
    EventKind.ISSUE: _Shape(constructors.issue, ("subject", "text")),
    EventKind.RESOLVE: _Shape(constructors.resolve, ("subject",), ("text",)),
    EventKind.ARTIFACT: _Shape(constructors.artifact, ("subject", "handle"), ("text",)),
    EventKind.RELEASE_ARTIFACT: _Shape(constructors.release_artifact, ("subject",), ("text",)),
    EventKind.FAILED_ATTEMPT: _Shape(constructors.failed_attempt, ("text",), ("subject",)),
    EventKind.PIN: _Shape(constructors.pin, ("ref",), ("text",)),
    EventKind.UNPIN: _Shape(constructors.unpin, ("ref",), ("text",)),
    EventKind.NOTE: _Shape(constructors.note, ("text",)),
}
_MAY_BE_NULL: Final = {"input", "content"}  # any JSON value; elsewhere null says that the field is absent
_NAMES_A_CALL: Final = {EventKind.TOOL_RESULT, EventKind.ABANDONED}


class JsonlReader:
    """Reads the records of our own JSONL; it remembers the calls and keys so far.

    An event without a key is named by the records before it. A record that is refused leaves no trace.
    """

    def __init__(self, digest: Callable[[bytes], str]) -> None:
        self._keys = KeyChain("line", digest)
        self._calls: set[str] = set()
        self._taken: set[str] = set()

    def read(self, line: Line) -> tuple[NewEvent]:
        """Return the event of one record.

        Raises:
            ImportFormatError: it is damaged, its key repeats, or it answers a call that no earlier record made.
        """
        event = read_event(line)
        if event.key in self._taken:
            raise line.fault(f"the key {event.key!r} repeats")
        call_id = event.envelope.call_id
        if call_id is not None and event.kind is not EventKind.TOOL_CALL and call_id not in self._calls:
            what = "result" if event.kind is EventKind.TOOL_RESULT else "abandoned event"
            raise line.fault(f"orphan {what}: no earlier call has the id {call_id!r}")
        if call_id is not None:
            self._calls.add(call_id)
        key = self._keys.next(line.data)
        if event.key is None:
            return (replace(event, key=key),)
        self._taken.add(event.key)
        return (event,)


def read_event(line: Line) -> NewEvent:
    """Return the event that one line states.

    Raises:
        ImportFormatError: it states none; with line and byte.
    """
    fields = line.decode(_RECORD)
    if line.stand_ins is not None:
        raise line.fault("an unpaired surrogate escape, which UTF-8 can't hold", line.stand_ins.first)
    line.check_names()
    kind = _kind(line, fields.pop("kind", None))
    shape = _SHAPES[kind]
    known = _COMMON.union(shape.required, shape.optional, ("at",))
    for name in fields:
        if name not in known:
            raise line.fault(f"kind {kind.value!r} has no field {name!r}")
    fields = {name: value for name, value in fields.items() if value is not None or name in _MAY_BE_NULL}
    for name in shape.required:
        if name not in fields:
            raise line.fault(f"kind {kind.value!r} needs the field {name!r}")
    source_at = fields.pop("at", None)
    if source_at is not None:
        _time(line, "at", source_at)
    if "expires_at" in fields:
        fields["expires_us"] = (_time(line, "expires_at", fields.pop("expires_at")) - _EPOCH) // timedelta(
            microseconds=1
        )
    try:
        event = shape.construct(**fields)
        _check_limits(line, event)
    except InvalidInputError as error:
        raise line.fault(error.message) from error
    if isinstance(source_at, str):
        event = replace(event, envelope=event.envelope._replace(source_at=source_at))
    return event


def _kind(line: Line, value: object) -> EventKind:
    if value is None:
        raise line.fault("the field 'kind' is missing")
    try:
        if not isinstance(value, str):
            raise ValueError
        kind = EventKind(value)
    except ValueError:
        raise line.fault(f"kind {value!r} is none of {', '.join(_SHAPES)}") from None
    if kind not in _SHAPES:
        raise line.fault(f"an event of kind {kind.value!r} is only written when its action is run, and is not imported")
    return kind


def _time(line: Line, name: str, value: object) -> datetime:
    if isinstance(value, str) and _RFC_3339.fullmatch(value):
        try:
            return msgspec.convert(value, datetime)
        except msgspec.ValidationError:
            pass
    raise line.fault(f"{name} {value!r} is no RFC 3339 time such as 2026-01-31T12:00:00Z")


def _check_limits(line: Line, event: NewEvent) -> None:
    if event.key is not None and len(event.key) > KEY_CHARS_MAX:
        raise line.fault(f"a key of {len(event.key)} characters, at most {KEY_CHARS_MAX} are allowed")
    if len(line.data) <= EVENT_BYTES_MAX // 2 and line.data.count(b"{") + line.data.count(b"[") <= JSON_DEPTH_MAX:
        return
    _, body = encode_body(event)
    if len(body) > EVENT_BYTES_MAX:
        raise line.fault(f"an event of {len(body)} bytes, at most {EVENT_BYTES_MAX} are allowed")
