"""What a provider reported of the requests of a Claude Code session, beside the texts that were added between them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from strandline.codec import new_text
from strandline.errors import InvalidInputError
from strandline.model.event import NewEvent
from strandline.model.transcript import SessionRestart
from strandline.transcripts.lines import Tally, read_lines
from strandline.transcripts.transcript import open_transcript

_MAIN: Final = "main"  # a sidechain has requests of its own


class Request(NamedTuple):
    """A request to a model: the tokens that it held, as reported; None where a compaction comes between."""

    tokens: int | None
    texts: tuple[str, ...]  # that came behind the request before it


class _Usage(msgspec.Struct, gc=False):
    input_tokens: int = 0
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0


class _Message(msgspec.Struct, gc=False):
    id: str | None = None
    usage: _Usage | None = None


class _Record(msgspec.Struct, gc=False):
    type: str | None = None
    message: _Message | None = None


_RECORD: Final = msgspec.json.Decoder(_Record)


def read_requests(path: str | os.PathLike[str]) -> Iterator[Request]:
    """Yield the requests of a session's main thread.

    Raises:
        ImportFormatError: the file is damaged.
        InvalidInputError: it can't be read, or is no session of Claude Code.
    """
    transcript = open_transcript(path, digest=lambda _: "")
    if transcript.format != "claude_code":
        raise InvalidInputError(f"{transcript.format} files don't report what a request held; Claude Code sessions do")
    reported = _reported(Path(path))
    texts: list[str] = []
    for item in transcript.items():
        if isinstance(item, SessionRestart):
            if item.thread is None:
                yield Request(None, ())
                texts = []
            continue
        if not isinstance(item, NewEvent) or item.envelope.thread != _MAIN:
            continue
        tokens = reported.pop(item.envelope.message_id, None) if item.envelope.message_id is not None else None
        if tokens is not None:  # the first block of an answer: what it answers stands before it
            yield Request(tokens, tuple(texts))
            texts = []
        texts.append(new_text(item))


def _reported(path: Path) -> dict[str, int]:
    """Return the tokens of each request, by the id of the message that answered it."""
    found: dict[str, int] = {}
    for line in read_lines(path, Tally()):
        try:
            record = _RECORD.decode(line.data)
        except msgspec.DecodeError:
            continue  # a record of another shape; what is damaged is refused where the session is read
        message = record.message
        if record.type == "assistant" and message is not None and message.id and message.usage is not None:
            usage = message.usage
            tokens = usage.input_tokens + usage.cache_creation_input_tokens + usage.cache_read_input_tokens
            if tokens > 0:  # a message of the program itself has none
                found.setdefault(message.id, tokens)
    return found
