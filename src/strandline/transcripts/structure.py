"""Where the values of a JSON text begin and end, found without decoding it, so that each keeps its place.

The walk trusts nothing and proves little: it follows strings and brackets. Whether a span is JSON, a decoder tells. It
also goes as far as it can in a damaged text, which is what a salvage needs. The work is linear in the text. What is
nested deeper than any decoder follows is not followed either.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

Span = tuple[int, int]

_STRING: Final = rb'"(?:[^"\\]++|\\.)*+("?)'  # without its end where the text has none
_TOKEN: Final = re.compile(_STRING + rb"|([\[{])|([\]}])", re.DOTALL)
_SCALAR: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[^\s,:"\[\]{}]+', re.DOTALL)
_NAME: Final = re.compile(rb'\s*,?\s*("(?:[^"\\]++|\\.)*+")\s*:\s*', re.DOTALL)
_LEVELS_MAX: Final = 1_000
_BLANK: Final = re.compile(rb"[ \t\r\n]*")


class Walk(NamedTuple):
    """The values of a list as far as they could be followed, where the walk ended, and whether the list is closed."""

    spans: list[Span]
    end: int
    closed: bool


def skip_blank(data: bytes, at: int) -> int:
    """Return the place of the next byte that is no white space."""
    found = _BLANK.match(data, at)
    return found.end() if found else at


def value_end(data: bytes, at: int) -> int | None:
    """Return where the value ends that begins at `at`; None where it can't be followed, or no value begins there."""
    if data[at : at + 1] not in (b"[", b"{"):
        scalar = _SCALAR.match(data, at)
        return scalar.end() if scalar else None
    depth = 0
    for token in _TOKEN.finditer(data, at):
        kind = token.lastindex
        if kind == 2:
            depth += 1
            if depth > _LEVELS_MAX:
                return None
        elif kind == 3:
            depth -= 1
            if depth == 0:
                return token.end()
        elif not token[1]:
            return None
    return None


def values(data: bytes, at: int) -> Walk:
    """Follow the values of a list; `at` is behind its bracket, or where one of its values begins."""
    spans: list[Span] = []
    at = skip_blank(data, at)
    if data[at : at + 1] == b"]":
        return Walk(spans, at + 1, closed=True)
    while (end := value_end(data, at)) is not None:
        spans.append((at, end))
        at = skip_blank(data, end)
        sign = data[at : at + 1]
        if sign != b",":
            return Walk(spans, at + (sign == b"]"), closed=sign == b"]")
        at = skip_blank(data, at + 1)
    return Walk(spans, at, closed=False)


def members(data: bytes, at: int = 0) -> Iterator[tuple[bytes, int]]:
    """Yield the name of each member of an object as it is spelled, with its quotes, and where its value begins."""
    at = skip_blank(data, at) + 1
    while (name := _NAME.match(data, at)) is not None:
        yield name[1], name.end()
        end = value_end(data, name.end())
        if end is None:
            return
        at = end


def member(data: bytes, wanted: bytes, at: int = 0) -> int | None:
    """Return where the value of a member begins; None: the object has none of this name."""
    return next((value for name, value in members(data, at) if name == wanted), None)


def value_of(data: bytes, wanted: bytes) -> bytes:
    """Return the value of a member as it is spelled; empty where the object has none of this name."""
    at = member(data, wanted)
    end = None if at is None else value_end(data, at)
    return b"" if at is None or end is None else data[at:end]
