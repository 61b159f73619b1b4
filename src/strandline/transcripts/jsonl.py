"""Strandline's own JSONL: one event a line, made by the public constructors. `docs/transcripts.md` has the table."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec
from msgspec import Raw

from strandline.codec import encode_body
from strandline.errors import InvalidInputError
from strandline.limits import EVENT_BYTES_MAX, JSON_DEPTH_MAX, KEY_CHARS_MAX
from strandline.model import constructors
from strandline.model.event import Envelope, EventKind, NewEvent, Role
from strandline.transcripts.keys import KeyChain
from strandline.transcripts.lines import Line, Tally
from strandline.transcripts.statements import ABSENT


class _Envelope(msgspec.Struct, forbid_unknown_fields=True):
    """The fields of an `Envelope` but `late`, which an append finds out."""

    role: str | None = None
    thread: str | None = None
    call_id: str | None = None
    tool: str | None = None
    is_error: bool = False
    subject: str | None = None
    granter: str | None = None
    scope: str | None = None
    expires_us: int | None = None
    source_at: str | None = None
    parent: str | None = None
    message_id: str | None = None
    single_use: bool = False


class _Exact(msgspec.Struct, forbid_unknown_fields=True):
    """An event with its envelope and body as they stood in a log."""

    kind: str
    envelope: _Envelope
    text: str | None = None
    body: Raw = ABSENT
    spelled: str | None = None  # a body of several lines, which one line of a file can't hold as it stood
    key: str | None = None
    actor: str = ""
    audience: str | None = None
    refs: tuple[str, ...] = ()
    abandoned: bool = False


_EXACT: Final = msgspec.json.Decoder(_Exact)
_VALUE: Final = msgspec.json.Decoder()
_ONLY_TRUE_THERE: Final = frozenset({EventKind.EFFECT, EventKind.DIVERGENCE})  # elsewhere a note tells of it
_RECORD: Final = msgspec.json.Decoder(dict[str, object])
_COMMON: Final = frozenset({"key", "actor", "audience", "refs", "thread"})
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_RFC_3339: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Shape:
    """How records of one kind are read: the constructor, and the fields that it takes besides the common ones."""

    construct: Callable[..., NewEvent]
    required: tuple[str, ...]
    optional: tuple[str, ...] = ()

    @property
    def fields(self) -> tuple[str, ...]:
        """All of them."""
        return (*self.required, *self.optional)


SHAPES: Final = {
    EventKind.MESSAGE: Shape(constructors.message, ("role", "text")),
    EventKind.THINKING: Shape(constructors.thinking, ("text",)),
    EventKind.TOOL_CALL: Shape(constructors.tool_call, ("call_id", "tool", "input")),
    EventKind.TOOL_RESULT: Shape(constructors.tool_result, ("call_id", "content"), ("is_error",)),
    EventKind.ABANDONED: Shape(constructors.abandoned, ("call_id",), ("text",)),
    EventKind.CONSTRAINT: Shape(constructors.constraint, ("subject", "text")),
    EventKind.LIFT_CONSTRAINT: Shape(constructors.lift_constraint, ("subject",), ("text",)),
    EventKind.APPROVAL: Shape(
        constructors.approval, ("subject", "text", "granter"), ("scope", "expires_at", "single_use")
    ),
    EventKind.REVOKE: Shape(constructors.revoke, ("subject",), ("text",)),
    EventKind.DECISION: Shape(constructors.decision, ("text",), ("subject",)),
    EventKind.ISSUE: Shape(constructors.issue, ("subject", "text")),
    EventKind.RESOLVE: Shape(constructors.resolve, ("subject",), ("text",)),
    EventKind.ARTIFACT: Shape(constructors.artifact, ("subject", "handle"), ("text",)),
    EventKind.RELEASE_ARTIFACT: Shape(constructors.release_artifact, ("subject",), ("text",)),
    EventKind.FAILED_ATTEMPT: Shape(constructors.failed_attempt, ("text",), ("subject",)),
    EventKind.PIN: Shape(constructors.pin, ("ref",), ("text",)),
    EventKind.UNPIN: Shape(constructors.unpin, ("ref",), ("text",)),
    EventKind.NOTE: Shape(constructors.note, ("text",)),
}
_MAY_BE_NULL: Final = {"input", "content"}  # any JSON value; elsewhere null says that the field is absent
_NAMES_A_CALL: Final = {EventKind.TOOL_RESULT, EventKind.ABANDONED}


class JsonlReader:
    """Reads the records of our own JSONL; it remembers the calls and keys so far.

    An event without a key is named by the records before it. A record that is refused leaves no trace.
    """

    def __init__(self, tally: Tally, digest: Callable[[bytes], str]) -> None:
        self._tally = tally
        self._keys = KeyChain("line", digest)
        self._calls: set[str] = set()
        self._taken: set[str] = set()

    def read(self, line: Line) -> tuple[NewEvent] | tuple[()]:
        """Return the event of one record; none where it says that a rewind left it behind.

        Raises:
            ImportFormatError: it is damaged, its key repeats, or it answers a call that no earlier record made.
        """
        event = read_live_event(line)
        if event is None:
            self._keys.next(line.data)
            self._tally.skip("abandoned")
            return ()
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
        ImportFormatError: it states none, or one that a rewind left behind; with line and byte.
    """
    event = read_live_event(line)
    if event is None:
        raise line.fault("an event that a rewind left behind is no event any more")
    return event


def read_live_event(line: Line) -> NewEvent | None:
    """Return the event that one line states; None: one that a rewind left behind.

    Raises:
        ImportFormatError: it states none; with line and byte.
    """
    fields = line.decode(_RECORD)
    if "envelope" in fields:
        return _exact(line)
    if line.stand_ins is not None:
        raise line.fault("an unpaired surrogate escape, which UTF-8 can't hold", line.stand_ins.first)
    line.check_names()
    kind = _kind(line, fields.pop("kind", None))
    shape = SHAPES[kind]
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


def _exact(line: Line) -> NewEvent | None:
    """Return the event that a line states with its envelope and body as they stood in a log."""
    line.check_names()
    try:
        record = _EXACT.decode(line.data)
        kind = EventKind(record.kind)
        role = None if record.envelope.role is None else Role(record.envelope.role)
    except ValueError as error:  # msgspec's too
        raise line.fault(str(error)) from error
    if sum(given not in (None, ABSENT) for given in (record.text, record.body, record.spelled)) != 1:
        raise line.fault("an event with an envelope has one of text, body and spelled")
    given = bytes(record.body)
    if line.stand_ins is not None and line.stand_ins.stand_in(line.data.replace(given, b"", 1).decode()):
        raise line.fault("an unpaired surrogate escape, which UTF-8 can't hold", line.stand_ins.first)
    body = Line(line.number, line.start, line.as_it_stood(given), ended=False)
    if record.spelled is not None:
        body = Line(line.number, line.start, record.spelled.encode(), ended=False)
    if record.abandoned:
        return None
    envelope = Envelope(**{**msgspec.structs.asdict(record.envelope), "role": role})
    if record.text is None:
        _check_block(body, kind, envelope)
    event = NewEvent(
        kind=EventKind.NOTE if kind in _ONLY_TRUE_THERE else kind,
        body=body.as_it_stood(body.data) if record.text is None else record.text,
        envelope=envelope,
        actor=record.actor,
        audience=record.audience,
        key=record.key,
        refs=record.refs,
    )
    _check_limits(line, event)
    return event


def _check_block(body: Line, kind: EventKind, envelope: Envelope) -> None:
    """Refuse a body that can't be read, and a call or result whose block says something else than its envelope."""
    block = body.decode(_VALUE)
    body.check_depth(block)
    wanted: dict[str, object] = {}
    if kind is EventKind.TOOL_CALL:
        wanted = {"type": "tool_use", "id": envelope.call_id, "name": envelope.tool}
    elif kind is EventKind.TOOL_RESULT:
        wanted = {"type": "tool_result", "tool_use_id": envelope.call_id}
    if wanted and not (isinstance(block, dict) and all(block.get(name) == told for name, told in wanted.items())):
        raise body.fault(f"the body of a {kind} that does not say the same as its envelope: {', '.join(wanted)}")


def _kind(line: Line, value: object) -> EventKind:
    if value is None:
        raise line.fault("the field 'kind' is missing")
    try:
        if not isinstance(value, str):
            raise ValueError
        kind = EventKind(value)
    except ValueError:
        raise line.fault(f"kind {value!r} is none of {', '.join(SHAPES)}") from None
    if kind not in SHAPES:
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
