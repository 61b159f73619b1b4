"""Show hostile text: nothing that a transcript holds may steer a terminal or a page."""

from __future__ import annotations

import re
from typing import Final

# Controls but tab and newline; marks that turn the direction of what follows; halves of characters.
_UNSAFE: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(value: object) -> str:
    """Return the text with every character that acts instead of being seen replaced by one that names it."""
    return _UNSAFE.sub(_name, str(value))


def one_line(value: object, chars: int) -> str:
    """Return the text on one line of at most so many characters."""
    flat = " ".join(visible(value).split())
    return flat if len(flat) <= chars else flat[: chars - 1] + "…"


def counted(count: int, noun: str) -> str:
    """Return a count with its noun: 1 event, 2 events."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def span(first: int, last: int) -> str:
    """Return the name of a range of events."""
    return f"event {first:,}" if first == last else f"events {first:,}–{last:,}"


def _name(found: re.Match[str]) -> str:
    code = ord(found.group())
    return chr(0x2400 + code) if code < 0x20 else f"[U+{code:04X}]"
