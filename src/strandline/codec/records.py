"""The record of an event: everything of it but key, body and salt, as the bytes that are stored and chained (I4).

The chain runs over these bytes as they lie in the store, so a reader checks them before it decodes them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

import msgspec

from strandline.codec.digests import DIGEST_BYTES, body_digest
from strandline.errors import CorruptRecordError
from strandline.model.event import (
    Basis,
    BodyFormat,
    Envelope,
    Event,
    EventKind,
    Found,
    Role,
    Sighting,
    StoredEvent,
)
from strandline.model.ids import EVERYONE

KIND_CODES: Final = {
    EventKind.MESSAGE: 1,
    EventKind.THINKING: 2,
    EventKind.TOOL_CALL: 3,
    EventKind.TOOL_RESULT: 4,
    EventKind.ABANDONED: 5,
    EventKind.CONSTRAINT: 6,
    EventKind.LIFT_CONSTRAINT: 7,
    EventKind.APPROVAL: 8,
    EventKind.REVOKE: 9,
    EventKind.DECISION: 10,
    EventKind.ISSUE: 11,
    EventKind.RESOLVE: 12,
    EventKind.ARTIFACT: 13,
    EventKind.RELEASE_ARTIFACT: 14,
    EventKind.FAILED_ATTEMPT: 15,
    EventKind.EFFECT: 16,
    EventKind.PIN: 17,
    EventKind.UNPIN: 18,
    EventKind.NOTE: 19,
    EventKind.DIVERGENCE: 20,
}
"""A code is never given a second meaning."""

ROLE_CODES: Final = {Role.USER: 1, Role.ASSISTANT: 2, Role.SYSTEM: 3}
_KINDS: Final = {code: kind for kind, code in KIND_CODES.items()}
_ROLES: Final = {code: role for role, code in ROLE_CODES.items()}
_FORMATS: Final = {int(format_): format_ for format_ in BodyFormat}
_TIME_CHARS: Final = len("2026-01-31T12:00:00.000Z")
_NO_KEY: Final = (1 << 32) - 1


class _Record(msgspec.Struct, array_like=True, frozen=True, gc=False, forbid_unknown_fields=True):
    """A record on the wire: an array whose last fields may be absent. New fields are added at the end."""

    kind: int
    at_us: int
    format: int
    sightings: bytes
    actor: str
    audience: str | None = None  # None: everyone
    role: int | None = None
    thread: str | None = None
    message_id: str | None = None
    source_at: int | str | None = None  # milliseconds since 1970, where a text of the usual form says just that
    call_id: str | None = None
    tool: str | None = None
    call_seq: int | None = None
    is_error: bool | None = None
    late: bool | None = None
    branch: int | None = None  # None: 0
    basis: tuple[str, int, int] | None = None
    subject: str | None = None
    granter: str | None = None
    scope: str | None = None
    expires_us: int | None = None
    parent: str | None = None
    single_use: bool | None = None
    epoch: int | None = None  # None: 0
    found: bytes | None = None


_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final = msgspec.msgpack.Decoder(_Record)


def encode_record(
    *,
    kind: EventKind,
    at_us: int,
    format: BodyFormat,
    sightings: Iterable[Sighting],
    actor: str,
    audience: str,
    envelope: Envelope,
    branch: int = 0,
    call_seq: int | None = None,
    basis: Basis | None = None,
    epoch: int = 0,
    found: Iterable[Found] = (),
) -> bytes:
    """Encode an event but for its seq, key, body and salt."""
    fields: list[object] = [
        KIND_CODES[kind],
        at_us,
        int(format),
        encode_sightings(sightings),
        actor,
        None if audience == EVERYONE else audience,
        None if envelope.role is None else ROLE_CODES[envelope.role],
        envelope.thread,
        envelope.message_id,
        None if envelope.source_at is None else _pack_time(envelope.source_at),
        envelope.call_id,
        envelope.tool,
        call_seq,
        envelope.is_error or None,
        envelope.late or None,
        branch or None,
        None if basis is None else (basis.view, basis.generation, basis.revision),
        envelope.subject,
        envelope.granter,
        envelope.scope,
        envelope.expires_us,
        envelope.parent,
        envelope.single_use or None,
        epoch or None,
        encode_found(found) or None,
    ]
    while fields[-1] is None:
        fields.pop()
    return _encoder.encode(fields)


def open_event(stored: StoredEvent, previous: bytes, workflow: str) -> Event:
    """Check a stored event of a workflow against the chain value before it, and decode it.

    Raises:
        CorruptRecordError: it is not what was written (I4).
    """
    digest = stored_digest(stored, workflow)
    if chain_event(previous, stored.seq, stored.key, stored.record, digest) != stored.chain:
        reason = "the event is not what was written: record, body or key do not match the chain"
        raise CorruptRecordError(reason, place=event_place(stored.seq, workflow))
    return decode_event(stored, digest, workflow)


def event_place(seq: int, workflow: str) -> str:
    """Return how errors name an event."""
    return f"event {seq} of {workflow!r}"


def stored_digest(stored: StoredEvent, workflow: str) -> bytes:
    """Return the digest of a stored body: computed while the body is there, kept once it is erased.

    Raises:
        CorruptRecordError: neither body nor digest is there, or one without the other half.
    """
    if stored.body is not None and stored.salt is not None and stored.body_digest is None:
        return body_digest(stored.salt, stored.body)
    if stored.body is not None or stored.salt is not None or stored.body_digest is None:
        raise CorruptRecordError("a part of the event is missing", place=event_place(stored.seq, workflow))
    return stored.body_digest


def decode_event(stored: StoredEvent, digest: bytes, workflow: str) -> Event:
    """Decode a stored event whose chain was checked.

    Raises:
        CorruptRecordError: the record is none.
    """
    try:
        wire = _decoder.decode(stored.record)
        return Event(
            stored.seq,
            stored.key,
            _KINDS[wire.kind],
            wire.actor,
            wire.audience or EVERYONE,
            wire.at_us,
            wire.branch or 0,
            wire.call_seq,
            None if wire.basis is None else _basis(wire.basis),
            Envelope(
                None if wire.role is None else _ROLES[wire.role],
                wire.thread,
                wire.call_id,
                wire.tool,
                wire.is_error or False,
                wire.late or False,
                wire.subject,
                wire.granter,
                wire.scope,
                wire.expires_us,
                _show_time(wire.source_at) if isinstance(wire.source_at, int) else wire.source_at,
                wire.parent,
                wire.message_id,
                wire.single_use or False,
            ),
            wire.sightings,
            _FORMATS[wire.format],
            stored.body,
            stored.salt,
            digest,
            stored.chain,
            wire.epoch or 0,
            wire.found or b"",
        )
    except (msgspec.DecodeError, msgspec.ValidationError, KeyError, ValueError, OverflowError) as error:
        reason = f"not a record of an event: {error}"
        raise CorruptRecordError(reason, place=event_place(stored.seq, workflow)) from error


def _pack_time(text: str) -> int | str:
    """Return a time in 9 bytes instead of 25, where that gives back the same text."""
    if len(text) == _TIME_CHARS and text[-1] == "Z":
        try:
            packed = round(datetime.fromisoformat(text).timestamp() * 1_000)
        except ValueError:
            return text
        if _show_time(packed) == text:
            return packed
    return text


def _show_time(packed: int) -> str:
    return datetime.fromtimestamp(packed / 1_000, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


def _basis(wire: tuple[str, int, int]) -> Basis:
    view, generation, revision = wire
    return Basis(view=view, generation=generation, revision=revision)


def chain_event(previous: bytes, seq: int, key: str | None, record: bytes, digest: bytes) -> bytes:
    """Return the chain value of an event: H(the one before ‖ seq ‖ body digest ‖ key ‖ record) (I4)."""
    name = b"" if key is None else key.encode()
    size = _NO_KEY if key is None else len(name)
    parts = (previous, seq.to_bytes(8, "little"), digest, size.to_bytes(4, "little"), name, record)
    return hashlib.blake2b(b"".join(parts), digest_size=DIGEST_BYTES, person=b"sl.chain").digest()


def encode_sightings(sightings: Iterable[Sighting]) -> bytes:
    """Encode sightings as varints of 2·ref_id + declared."""
    return encode_varints([ref_id << 1 | declared for ref_id, declared in sightings])


def decode_sightings(data: bytes) -> tuple[Sighting, ...]:
    """Decode sightings."""
    return tuple([Sighting(number >> 1, bool(number & 1)) for number in decode_varints(data)])


def encode_found(found: Iterable[Found]) -> bytes:
    """Encode statements that were found, as varints: where one starts, its length and what it does in three bits."""
    numbers: list[int] = []
    for start, end, sure, perhaps, lifts in found:
        numbers += (start, (end - start) << 3 | sure << 2 | perhaps << 1 | lifts)
    return encode_varints(numbers)


def decode_found(data: bytes) -> tuple[Found, ...]:
    """Decode statements that were found."""
    numbers = decode_varints(data)
    return tuple(
        Found(start, start + (does >> 3), bool(does & 4), bool(does & 2), bool(does & 1))
        for start, does in zip(numbers[::2], numbers[1::2], strict=False)
    )


def encode_varints(numbers: Iterable[int]) -> bytes:
    """Encode numbers from 0 on, seven bits a byte, the low ones first."""
    out = bytearray()
    for number in numbers:
        while number > 0x7F:
            out.append(number & 0x7F | 0x80)
            number >>= 7
        out.append(number)
    return bytes(out)


def decode_varints(data: bytes) -> list[int]:
    """Decode numbers. An unfinished last one is dropped: what holds them is proved by a digest before."""
    found = []
    number = shift = 0
    for byte in data:
        if byte < 0x80:
            found.append(number | byte << shift)
            number = shift = 0
        else:
            number |= (byte & 0x7F) << shift
            shift += 7
    return found
