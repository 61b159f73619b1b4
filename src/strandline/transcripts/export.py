"""A workflow as a transcript: lines of JSON in one of three formats (C2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, Literal, get_args

import msgspec

from strandline.errors import InvalidInputError
from strandline.model.event import Event
from strandline.model.transcript import ExportedEvent
from strandline.transcripts.jsonl_writer import JsonlWriter
from strandline.transcripts.messages import Message, anthropic_messages, openai_messages

ExportFormat = Literal["strandline", "openai", "anthropic"]

_MESSAGES: Final[dict[str, Callable[[Iterable[Event]], Iterator[Message]]]] = {
    "openai": openai_messages,
    "anthropic": anthropic_messages,
}


def check_export(format_: str, *, abandoned: bool) -> None:
    """Check what is asked for.

    Raises:
        InvalidInputError: no such format, or one that can't tell what a rewind left behind.
    """
    if format_ not in get_args(ExportFormat):
        raise InvalidInputError(f"the format is one of {', '.join(get_args(ExportFormat))}, not {format_!r}")
    if abandoned and format_ in _MESSAGES:
        raise InvalidInputError(
            f"messages of {format_} can't say that an event was left behind by a rewind",
            hint="Use the format strandline, or leave abandoned events out.",
        )


def export_lines(items: Iterable[ExportedEvent], format_: str) -> Iterator[bytes]:
    """Yield the lines of a file, each with its end."""
    if format_ in _MESSAGES:
        messages = _MESSAGES[format_](item.event for item in items)
        return (msgspec.json.encode(message) + b"\n" for message in messages)
    writer = JsonlWriter()
    return (writer.line(item) + b"\n" for item in items)
