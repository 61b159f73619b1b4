"""What a guest keeps beside its events, as text: the record of its framework; and text as an event can hold it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from strandline import InvalidInputError, SourceEvent


def write_origin(format_: str, record: Mapping[str, object]) -> str:
    """Return a record as the origin of an event.

    Args:
        format_: whose record it is: another guest passes it by.
        record: JSON; the order of its members and the spelling of its texts stay.

    Raises:
        InvalidInputError: it is no JSON value.
    """
    told = {"format": format_, **record}
    try:
        text = json.dumps(told, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text if _encodes(text) else json.dumps(told, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInputError(f"what {format_} handed over is no JSON value: {error}; nothing was written") from error


def read_origin(format_: str, event: SourceEvent) -> dict[str, Any] | None:
    """Return the record beside an event; None: there is none of this format, or it was erased."""
    if event.origin is None:
        return None
    try:
        record = json.loads(event.origin)
    except (ValueError, RecursionError):
        return None  # of another guest
    return record if isinstance(record, dict) and record.get("format") == format_ else None


def storable(text: str) -> str:
    """Return a text with lone surrogates as escapes, which no event can hold; its origin has it as it stood."""
    return text if _encodes(text) else text.encode("utf-8", "backslashreplace").decode()


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
