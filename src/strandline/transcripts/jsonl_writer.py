"""Events as lines of our own JSONL: as the constructor of the same name takes them where that gives back the very same
event, else in the exact form, with envelope and body as they stand.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec
from msgspec import Raw

from strandline.codec import ERASED_TEXT, encode_body, read_body
from strandline.errors import ImportFormatError
from strandline.model.event import BodyFormat, Event, EventKind, NewEvent
from strandline.model.ids import EVERYONE
from strandline.model.transcript import ExportedEvent
from strandline.transcripts.jsonl import SHAPES, read_event
from strandline.transcripts.lines import Line
from strandline.transcripts.structure import value_of

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_VALUES: Final = {EventKind.TOOL_CALL: "input", EventKind.TOOL_RESULT: "content"}  # kept as they are spelled
_OF_BLOCKS: Final = {  # how a body begins that a constructor made: members stand in order
    EventKind.TOOL_CALL: b'{"id":',
    EventKind.TOOL_RESULT: b'{"content":',
    EventKind.ARTIFACT: b'{"handle":',
}
_VOID_WHEN_ERASED: Final = frozenset({EventKind.APPROVAL, EventKind.ARTIFACT, EventKind.PIN, EventKind.UNPIN})


class JsonlWriter:
    """Writes the events of one log, in their order; it remembers the calls that not everybody may read."""

    def __init__(self) -> None:
        self._narrow: dict[int, str] = {}  # audience of a call, by its seq

    def line(self, item: ExportedEvent) -> bytes:
        """Return an event as a line, without its end."""
        event = item.event if item.event.body is not None else _without_body(item.event)
        usual = EVERYONE if event.call_seq is None else self._narrow.get(event.call_seq, EVERYONE)
        audience = None if event.audience == usual else event.audience
        if event.kind is EventKind.TOOL_CALL and event.audience != EVERYONE:
            self._narrow[event.seq] = event.audience
        common: dict[str, object] = {"kind": event.kind.value}
        if event.key is not None:
            common["key"] = event.key
        if event.actor:
            common["actor"] = event.actor
        if audience is not None:
            common["audience"] = audience
        if item.declared:
            common["refs"] = list(item.declared)
        meant = NewEvent(
            kind=event.kind,
            body=event.body or b"",
            envelope=event.envelope._replace(late=False),
            actor=event.actor,
            audience=audience,
            key=event.key,
            refs=item.declared,
        )
        if not item.abandoned:
            readable = _readable(event, item.declared, common)
            if readable is not None and _says(readable, meant, event.format):
                return readable
        return _exact(event, common, abandoned=item.abandoned)


def _readable(event: Event, declared: tuple[str, ...], common: dict[str, object]) -> bytes | None:
    """Return an event as its constructor takes it; None where it takes none such."""
    shape = SHAPES.get(event.kind)
    if shape is None or event.body is None:
        return None
    if event.format is BodyFormat.JSON and not event.body.startswith(_OF_BLOCKS.get(event.kind, b"\0")):
        return None
    envelope = event.envelope
    told: dict[str, object] = {
        name: value for name in shape.fields if name in envelope._fields and (value := getattr(envelope, name))
    }
    if "text" in shape.fields:
        told["text"] = read_body(event)[0]
    if event.kind in _VALUES:
        told[_VALUES[event.kind]] = Raw(_value(event.body, _VALUES[event.kind]))
    elif event.kind is EventKind.ARTIFACT and declared:
        told |= {"handle": declared[0], "text": read_body(event)[0].removeprefix(declared[0]).removeprefix(" ")}
    elif event.kind in (EventKind.PIN, EventKind.UNPIN) and declared:
        told["ref"] = declared[0]
    if envelope.expires_us is not None and "expires_at" in shape.fields:
        expires = _EPOCH + timedelta(microseconds=envelope.expires_us)
        told["expires_at"] = expires.isoformat().replace("+00:00", "Z")
    if envelope.thread is not None:
        told["thread"] = envelope.thread
    if envelope.source_at is not None:
        told["at"] = envelope.source_at
    return msgspec.json.encode(common | told)


def _says(line: bytes, meant: NewEvent, format_: BodyFormat) -> bool:
    """Tell whether a line is read as the event that is meant, byte for byte."""
    try:
        read = read_event(Line(1, 0, line, ended=True))
    except ImportFormatError:
        return False
    if encode_body(read) != (format_, meant.body):
        return False
    return (read.kind, read.envelope, read.actor, read.audience, read.key, tuple(read.refs)) == (
        (meant.kind, meant.envelope, meant.actor, meant.audience, meant.key, tuple(meant.refs))
    )


def _exact(event: Event, common: dict[str, object], *, abandoned: bool) -> bytes:
    usual = type(event.envelope)()
    named = zip(event.envelope._fields, event.envelope, usual, strict=True)
    envelope = {name: value for name, value, default in named if value != default and name != "late"}
    body = event.body or b""
    told: dict[str, object] = {"envelope": envelope}
    if event.format is BodyFormat.TEXT:
        told["text"] = body.decode()
    elif b"\n" in body or b"\r" in body:
        told["spelled"] = body.decode()
    else:
        told["body"] = Raw(body)
    if abandoned:
        told["abandoned"] = True
    return msgspec.json.encode(common | told)


def _without_body(event: Event) -> Event:
    """Return what stands for an event whose body was erased: what it granted or held is gone, what it ended is not."""
    if event.kind in _VALUES:
        named = {"id": event.envelope.call_id, "name": event.envelope.tool}
        block: dict[str, object] = {"type": "tool_use", **named, "input": ERASED_TEXT}
        if event.kind is EventKind.TOOL_RESULT:
            block = {"type": "tool_result", "tool_use_id": event.envelope.call_id, "content": ERASED_TEXT}
        return event._replace(body=msgspec.json.encode(block), format=BodyFormat.JSON)
    kind = EventKind.NOTE if event.kind in _VOID_WHEN_ERASED else event.kind
    return event._replace(kind=kind, body=ERASED_TEXT.encode(), format=BodyFormat.TEXT)


def _value(body: bytes, name: str) -> bytes:
    return value_of(body, f'"{name}"'.encode()) or b"null"
