"""JSON that is the same every time, and model values as bytes and back."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec

from strandline.errors import CorruptRecordError, InvalidInputError
from strandline.limits import JSON_DEPTH_MAX

T = TypeVar("T")

_encoder: Final = msgspec.json.Encoder(order="deterministic")
_shown: Final = json.JSONEncoder(ensure_ascii=False, separators=(", ", ": "))
_decoders: dict[object, msgspec.json.Decoder[Any]] = {}


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
    """Return untrusted text as it can be kept for a report: NULs and lone surrogates as escapes, cut at `most`
    characters.
    """
    return text[:most].encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")


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


def copied(value: Any) -> Any:  # noqa: ANN401  JSON is what it is
    """Return a JSON value that shares nothing with the given one that can be changed."""
    if isinstance(value, dict):
        return {name: copied(inner) for name, inner in value.items()}
    return [copied(inner) for inner in value] if isinstance(value, list) else value


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
            lines.append(show(item))
    return "\n".join(lines)


def show(value: object) -> str:
    """Return a JSON value as a reader sees it: on one line, and in its own script."""
    return _shown.encode(value)


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
    except (msgspec.DecodeError, msgspec.ValidationError, TypeError) as error:  # TypeError: a page of another table
        raise CorruptRecordError(f"not a {into}: {error}", place=place) from error
    return value
