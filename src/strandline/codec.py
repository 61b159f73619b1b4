"""Bytes to model and back: deterministic JSON, digests, the hash chain, packed bodies.

Digests run over stored bytes, never over a re-encoding (DESIGN §5). A body's digest is salted, so that nothing can be
guessed from it once the salt is erased (C31); digests of short content without a salt are keyed with the store's key.
"""

from __future__ import annotations

import hashlib
import json
import math
import zlib
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeVar

import msgspec

from strandline.errors import CorruptRecordError, InvalidInputError
from strandline.limits import BODY_PLAIN_BYTES_MAX, JSON_DEPTH_MAX
from strandline.model.event import BodyFormat, Envelope, Event, NewEvent, Role, Sighting

T = TypeVar("T")

DIGEST_BYTES: Final = 32
ROW_DIGEST_BYTES: Final = 16
ERASED_TEXT: Final = "[erased]"
EMPTY_CHAIN: Final = bytes(DIGEST_BYTES)  # the chain before the first event, and before the first lineage entry

_encoder = msgspec.json.Encoder(order="deterministic")
_decoders: dict[object, msgspec.json.Decoder[Any]] = {}


# ---------------------------------------------------------------------------------------------- JSON


def encode_json(value: object) -> bytes:
    """Encode a JSON value the same way every time.

    Raises:
        InvalidInputError: NaN, infinity, a lone surrogate, a key that is not a string, a value that JSON can't hold,
            or deeper nesting than JSON_DEPTH_MAX; each with its place.
    """
    _check_json(value)
    return _encoder.encode(value)


def _check_json(root: object) -> None:
    """Refuse what an encoder would alter in silence: msgspec writes NaN as null (notes on serializers)."""
    todo: list[tuple[object, str, int]] = [(root, "$", 0)]
    while todo:
        value, place, depth = todo.pop()
        if depth > JSON_DEPTH_MAX:
            raise InvalidInputError(f"JSON nested deeper than {JSON_DEPTH_MAX} levels at {place}")
        if value is None or isinstance(value, bool | int):
            continue
        if isinstance(value, float):
            if not math.isfinite(value):
                raise InvalidInputError(f"{value} at {place} is no JSON number")
        elif isinstance(value, str):
            encode_text(value, place)
        elif isinstance(value, Mapping):
            for key, item in value.items():
                if not isinstance(key, str):
                    raise InvalidInputError(f"the key {key!r} at {place} is no string")
                encode_text(key, place)
                todo.append((item, f"{place}.{key}", depth + 1))
        elif isinstance(value, list | tuple):
            todo.extend((item, f"{place}[{i}]", depth + 1) for i, item in enumerate(value))
        else:
            raise InvalidInputError(f"a {type(value).__name__} at {place} is no JSON value")


def encode_text(text: str, place: str) -> bytes:
    """Encode text as UTF-8; a lone surrogate is refused by name, never altered (C3)."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InvalidInputError(
            f"character {error.start} of {place} is the lone surrogate U+{ord(text[error.start]):04X}, "
            "which UTF-8 can't hold"
        ) from error


def storable(text: str, most: int) -> str:
    """Return untrusted text as it can be kept for a report: lone surrogates as escapes, cut at `most` characters."""
    return text[:most].encode("utf-8", "backslashreplace").decode()


def decode_json(data: bytes, place: str = "JSON") -> Any:  # noqa: ANN401  JSON is what it is
    """Decode a JSON value. Escapes of lone surrogates, which a transcript may hold, are kept as they stand.

    Raises:
        CorruptRecordError: not JSON.
    """
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, msgspec.ValidationError, RecursionError):
        try:
            return json.loads(data)  # the standard decoder takes lone surrogate escapes and huge numbers
        except (ValueError, RecursionError) as error:
            raise CorruptRecordError(f"not JSON: {error}", place=place) from error


def leaf_text(value: object) -> str:
    """Return the keys, strings and numbers of a JSON value, a line each: where references in a state may stand."""
    lines: list[str] = []
    todo = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, Mapping):
            for key, inner in reversed(list(item.items())):
                todo.extend((inner, key))
        elif isinstance(item, list | tuple):
            todo.extend(reversed(item))
        elif isinstance(item, str):
            lines.append(item)
        elif item is not None and not isinstance(item, bool):
            lines.append(_show(item))
    return "\n".join(lines)


def pack(value: object) -> bytes:
    """Encode a model value; `unpack` with its type gives it back."""
    return _encoder.encode(value)


def unpack(data: bytes, into: type[T], place: str) -> T:
    """Decode a model value of type `into`.

    Raises:
        CorruptRecordError: the bytes are not such a value.
    """
    decoder = _decoders.get(into)
    if decoder is None:
        decoder = _decoders[into] = msgspec.json.Decoder(into)
    try:
        value: T = decoder.decode(data)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise CorruptRecordError(f"not a {into}: {error}", place=place) from error
    return value


# ---------------------------------------------------------------------------------------------- envelopes, sightings

_ENVELOPE_KEYS: Final = {
    "role": "r",
    "thread": "th",
    "call_id": "c",
    "tool": "t",
    "is_error": "x",
    "late": "l",
    "subject": "s",
    "granter": "g",
    "scope": "sc",
    "expires_us": "e",
    "source_at": "a",
    "parent": "p",
    "message_id": "m",
}
_ENVELOPE_FIELDS: Final = {short: name for name, short in _ENVELOPE_KEYS.items()}


def encode_envelope(envelope: Envelope) -> bytes:
    """Encode what is set in an envelope, under short names."""
    wire = {}
    for name, short in _ENVELOPE_KEYS.items():
        value = getattr(envelope, name)
        if value is not None and value is not False:
            wire[short] = value
    return _encoder.encode(wire) if wire else b""


def decode_envelope(data: bytes, place: str) -> Envelope:
    """Decode an envelope."""
    if not data:
        return Envelope()
    wire = unpack(data, dict[str, Any], place)
    try:
        fields = {_ENVELOPE_FIELDS[short]: value for short, value in wire.items()}
        if "role" in fields:
            fields["role"] = Role(fields["role"])
        return Envelope(**fields)
    except (KeyError, ValueError, TypeError) as error:
        raise CorruptRecordError(f"not an envelope: {error}", place=place) from error


def encode_sightings(sightings: Iterable[Sighting]) -> bytes:
    """Encode sightings as varints of 2·ref_id + declared."""
    out = bytearray()
    for sighting in sightings:
        number = sighting.ref_id << 1 | sighting.declared
        while number > 0x7F:
            out.append(number & 0x7F | 0x80)
            number >>= 7
        out.append(number)
    return bytes(out)


def decode_sightings(data: bytes) -> tuple[Sighting, ...]:
    """Decode sightings."""
    found = []
    number = shift = 0
    for byte in data:
        number |= (byte & 0x7F) << shift
        if byte & 0x80:
            shift += 7
        else:
            found.append(Sighting(ref_id=number >> 1, declared=bool(number & 1)))
            number = shift = 0
    return tuple(found)


# ---------------------------------------------------------------------------------------------- bodies


def encode_body(new: NewEvent) -> tuple[BodyFormat, bytes]:
    """Return the format and the bytes of a new event's body."""
    if isinstance(new.body, str):
        return BodyFormat.TEXT, encode_text(new.body, f"the text of a {new.kind}")
    if isinstance(new.body, bytes):
        return BodyFormat.JSON, new.body
    return BodyFormat.JSON, encode_json(new.body)


def read_body(event: Event) -> tuple[str, object]:
    """Return the text of an event as a reader sees it, and the decoded payload where it has one.

    The payload is a call's input, a result's content, or a block that is no text (an image). An erased body reads
    as ERASED_TEXT.

    Raises:
        CorruptRecordError: the bytes are not what their format says.
    """
    if event.body is None:
        return ERASED_TEXT, None
    place = f"body of event {event.seq}"
    if event.format is BodyFormat.TEXT:
        try:
            return event.body.decode(), None
        except UnicodeDecodeError as error:
            raise CorruptRecordError(f"not UTF-8: {error}", place=place) from error
    return _read_block(decode_json(event.body, place))


def _read_block(block: object) -> tuple[str, object]:
    if isinstance(block, str):
        return block, None
    if not isinstance(block, dict):
        return _show(block), block
    kind = block.get("type")
    if kind == "text":
        return str(block.get("text", "")), None
    if kind == "thinking":
        return str(block.get("thinking", "")), None
    if kind == "tool_use":
        arguments = block.get("input")
        return f"{block.get('name')} {_show(arguments)}", arguments
    if kind == "tool_result":
        content = block.get("content", "")
        return _content_text(content), content
    if kind == "artifact":
        return " ".join(part for part in (str(block.get("handle", "")), str(block.get("text", ""))) if part), None
    return f"[{kind}]", block


def _content_text(content: object) -> str:
    """Return the text of a result's content: a string, content blocks, or any JSON."""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and all(isinstance(item, dict) and "type" in item for item in content):
        return "\n".join(_read_block(item)[0] for item in content)
    return _show(content)


def _show(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(", ", ": "))


def reference_source(new: NewEvent, format_: BodyFormat, body: bytes) -> tuple[str, object]:
    """Return what references are extracted from: (text, JSON value), one of them empty.

    A block's own id and type are plumbing, not content: of a call its input counts, of a result its content.
    """
    if format_ is BodyFormat.TEXT:
        return body.decode(), None
    block = new.body if isinstance(new.body, Mapping) else decode_json(body, f"the body of a {new.kind}")
    if isinstance(block, str):
        return block, None
    if not isinstance(block, Mapping):
        return "", block
    kind = block.get("type")
    if kind == "tool_use":
        return "", block.get("input")
    if kind == "tool_result":
        content = block.get("content", "")
        return (content, None) if isinstance(content, str) else ("", _text_leaves(content))
    if kind in ("image", "document"):
        return "", None  # encoded bytes hold no references
    return _read_block(block)[0], None


def _text_leaves(content: object) -> object:
    """Return a result's content without its image data."""
    if isinstance(content, list):
        return [
            item.get("text") if isinstance(item, dict) and "text" in item else item
            for item in content
            if not (isinstance(item, dict) and item.get("type") == "image")
        ]
    return content


def compress(data: bytes) -> tuple[int, bytes]:
    """Return (codec, bytes as stored): 0 plain, 1 zlib. No dictionary: erasure could not reach one (DESIGN §5)."""
    if len(data) > BODY_PLAIN_BYTES_MAX:
        packed = zlib.compress(data, 6)
        if len(packed) < len(data):
            return 1, packed
    return 0, data


def decompress(codec: int, data: bytes, place: str) -> bytes:
    """Undo `compress`.

    Raises:
        CorruptRecordError: damaged bytes or an unknown codec.
    """
    if codec == 0:
        return data
    if codec == 1:
        try:
            return zlib.decompress(data)
        except zlib.error as error:
            raise CorruptRecordError(f"the packed bytes are damaged: {error}", place=place) from error
    raise CorruptRecordError(f"unknown body codec {codec}", place=place)


# ---------------------------------------------------------------------------------------------- digests


def _hash(person: bytes, parts: Iterable[bytes], *, key: bytes = b"", size: int = DIGEST_BYTES) -> bytes:
    """Hash parts, each with its length before it, so that no two lists of parts run together."""
    digest = hashlib.blake2b(digest_size=size, key=key, person=person)
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.digest()


def body_digest(salt: bytes, body: bytes) -> bytes:
    """Return H(salt ‖ body) of a body, a text or a state."""
    return hashlib.blake2b(salt + body, digest_size=DIGEST_BYTES, person=b"sl.body").digest()


def chain_event(previous: bytes, event: Event) -> bytes:
    """Return the chain value of an event: H over the one before and everything of it but body and salt (I4)."""
    basis = event.basis
    head = (
        f"{event.seq}\0{event.branch}\0{event.kind}\0{event.at_us}\0{event.call_seq}\0{int(event.format)}\0"
        f"{basis.generation if basis else None}\0{basis.revision if basis else None}"
    )
    return _hash(
        b"sl.chain",
        (
            previous,
            head.encode(),
            event.actor.encode(),
            event.audience.encode(),
            b"" if event.key is None else b"k" + event.key.encode(),
            b"" if basis is None else basis.view.encode(),
            encode_envelope(event.envelope),
            encode_sightings(event.sightings),
            event.body_digest,
        ),
    )


def chain_record(previous: bytes, record: object) -> bytes:
    """Return the chain value of a lineage entry."""
    return _hash(b"sl.lineage", (previous, pack(record)))


def source_digest(previous: bytes, body_digests: Iterable[bytes]) -> bytes:
    """Fold body digests into a running source digest: H(…H(H(previous ‖ d1) ‖ d2)…) (I7)."""
    for digest in body_digests:
        previous = hashlib.blake2b(previous + digest, digest_size=DIGEST_BYTES, person=b"sl.source").digest()
    return previous


class RunningDigest:
    """A digest over many rows of numbers, taken one by one: two long lists are compared without holding them."""

    def __init__(self) -> None:
        self._digest = hashlib.blake2b(digest_size=DIGEST_BYTES, person=b"sl.rows")

    def add(self, *numbers: int) -> None:
        """Take the next row."""
        self._digest.update((",".join(str(int(number)) for number in numbers) + ";").encode())

    @property
    def value(self) -> bytes:
        """The digest of the rows so far."""
        return self._digest.digest()


def text_digest(salt: bytes, *texts: str) -> bytes:
    """Return the salted digest of texts."""
    return _hash(b"sl.text", (salt, *(text.encode() for text in texts)))


def record_digest(record: object) -> bytes:
    """Return the digest of a model value that holds its own salt or only ids."""
    return _hash(b"sl.record", (pack(record),))


def row_digest(key: bytes, table: str, values: Iterable[object]) -> bytes:
    """Return the keyed digest that a mutable row carries."""
    return _hash(b"sl.row", (table.encode(), pack(list(values))), key=key, size=ROW_DIGEST_BYTES)


def job_id(key: bytes, *parts: object) -> str:
    """Return the id of a job: a keyed digest of what makes it this job (SPEC §2, candidate)."""
    return _hash(b"sl.job", (pack(list(parts)),), key=key, size=16).hex()


def keyed_hex(key: bytes, data: bytes) -> str:
    """Return a keyed digest of content as 32 hex digits, for import keys."""
    return _hash(b"sl.key", (data,), key=key, size=16).hex()
