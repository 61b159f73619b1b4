"""A transcript file that is opened for import."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from strandline.errors import ImportFormatError, InvalidInputError
from strandline.model.event import EventKind, NewEvent
from strandline.model.transcript import IMPORT_ACTOR, ImportStart, LeftOut, SessionRestart, TranscriptItem
from strandline.transcripts.claude_code import ClaudeCodeReader
from strandline.transcripts.conversations import ConversationReader
from strandline.transcripts.detect import Detected, Format, detect_format
from strandline.transcripts.document import read_document
from strandline.transcripts.forms import FORMS
from strandline.transcripts.jsonl import JsonlReader, read_live_event
from strandline.transcripts.lines import Gap, Tally, read_lines
from strandline.transcripts.live import Known, behind_known
from strandline.transcripts.openai import OPENAI

_APPENDED: Final = ("jsonl", OPENAI.name)  # the formats that say what is new
_FROM_START: Final = ImportStart()
_IMPORT_HINT: Final = "`strandline import` takes it, and repeats nothing."


class Transcript:
    """A file in a known format. Each pass reads it from the start; memory holds one record, and the ids seen so far.

    Of a file that is one JSON document, memory holds all. What `lines`, `place`, `skipped`, `left_out` and `bytes_read`
    tell is of the newest pass; `size_bytes` is the size when opened.
    """

    def __init__(
        self,
        path: Path,
        detected: Detected,
        size_bytes: int,
        digest: Callable[[bytes], str],
        *,
        salvage: bool = False,
        split: bool = False,
        live: bool = False,
        start: ImportStart = _FROM_START,
    ) -> None:
        self._path = path
        self._document = detected.document
        self._digest = digest
        self._split = split
        self._live = live
        self._tally = Tally()
        self.start = start
        self.format: Format = detected.format
        self.size_bytes = size_bytes
        self.salvage = salvage

    @property
    def lines(self) -> int:
        """Lines read."""
        return self._tally.lines

    @property
    def bytes_read(self) -> int:
        """Bytes read."""
        return self._tally.bytes_read

    @property
    def place(self) -> tuple[int, int, int]:
        """The newest record: the line where it begins, the byte, and its size in bytes."""
        return self._tally.line, self._tally.line_byte, self._tally.size_bytes

    @property
    def where(self) -> str:
        """The newest record in words: which message of the document or conversation, else the line where it begins."""
        return self._tally.where or f"line {self._tally.line}"

    @property
    def skipped(self) -> Mapping[str, int]:
        """How many records, by type, and empty blocks and blank lines became no event."""
        return self._tally.skipped

    @property
    def left_out(self) -> Sequence[LeftOut]:
        """What was left out because it is damaged; at most IMPORT_LEFT_OUT_LISTED_MAX of it."""
        return self._tally.left_out

    @property
    def left_out_count(self) -> int:
        """How much was left out."""
        return self._tally.left_out_count

    @property
    def unfinished_bytes(self) -> int:
        """The size of a last line that is not whole yet, where the file is still being written."""
        return self._tally.unfinished_bytes

    def items(self) -> Iterator[TranscriptItem]:
        """Begin a pass, and return what the file states in its order.

        Raises:
            ImportFormatError: while iterating, at the first record that is damaged; not in a salvage.
        """
        tally = self._tally = Tally(
            salvage=self.salvage, live=self._live, lines=self.start.line, bytes_read=self.start.byte
        )
        items = self._read(tally)
        return self._with_gaps(items, tally) if self.salvage else items

    def _read(self, tally: Tally) -> Iterator[TranscriptItem]:
        lines = read_document(self._path, tally) if self._document else read_lines(self._path, tally)
        reader: ClaudeCodeReader | JsonlReader | ConversationReader
        if self.format == "claude_code":
            reader = ClaudeCodeReader(tally, previous=self.start.key, alone=not self.start.line)
        elif self.format == "jsonl":
            reader = JsonlReader(tally, self._digest)
        else:
            reader = ConversationReader(FORMS[self.format], tally, self._digest, split=self._split)
        for line in lines:
            try:
                yield from reader.read(line)
            except ImportFormatError as fault:
                tally.leave_out(fault, line)

    def _with_gaps(self, items: Iterator[TranscriptItem], tally: Tally) -> Iterator[TranscriptItem]:
        """Put a note where something was left out: a gap that the log is silent about would pass for nothing."""
        for item in items:
            if tally.gap is not None:
                place = self.place
                yield self._note(tally, tally.gap)
                tally.line, tally.line_byte, tally.size_bytes = place
            yield item
        if tally.gap is not None:
            yield self._note(tally, tally.gap)

    def _note(self, tally: Tally, gap: Gap) -> NewEvent:
        tally.gap = None
        tally.line, tally.line_byte, tally.size_bytes = gap.first.line, gap.first.byte, gap.end - gap.first.byte
        key = f"left-out:{self._digest(gap.content)}"
        return NewEvent(kind=EventKind.NOTE, body=str(gap), actor=IMPORT_ACTOR, key=key)


def open_transcript(
    path: str | os.PathLike[str],
    *,
    digest: Callable[[bytes], str],
    salvage: bool = False,
    split: bool = False,
    live: bool = False,
    known: Known | None = None,
) -> Transcript:
    """Open a transcript for import, and tell its format by its first records.

    Args:
        path: a regular file; it is read more than once.
        digest: keyed digest of bytes, as text, for the keys of records that bear none.
        salvage: leave out what is damaged, and say so, instead of refusing the file.
        split: each conversation of the file is for a log of its own.
        live: the file is still being written: a last line that is not whole yet is left for the next time.
        known: tells which keys the log holds, each with the seq of its event: a session of Claude Code is read from
            behind the newest record that it holds. None: from the start.

    Raises:
        ImportFormatError: no known format, or damaged before it could be told.
        InvalidInputError: no regular file, or it can't be read.
    """
    file, size_bytes = _regular_file(path)
    detected = detect_format(file, size_bytes)
    start = _FROM_START
    if known is not None and detected.format == "claude_code":
        start = behind_known(file, size_bytes, known)
    return Transcript(file, detected, size_bytes, digest, salvage=salvage, split=split, live=live, start=start)


def read_events(path: str | os.PathLike[str]) -> Iterator[NewEvent]:
    """Yield the events that a file states, for an append: under no other key than it gives, and as often as appended.

    Results may answer calls that stand in the log.

    Raises:
        ImportFormatError: the file is damaged.
        InvalidInputError: it is no file for an append: a whole session of a tool, or several conversations.
    """
    file, size_bytes = _regular_file(path)
    detected = detect_format(file, size_bytes)
    if detected.format not in _APPENDED:
        raise InvalidInputError(f"a whole {detected.format} session can't be appended", hint=_IMPORT_HINT)
    tally = Tally()
    if detected.format == "jsonl":
        yield from (event for line in read_lines(file, tally) if (event := read_live_event(line)) is not None)
        return
    reader = ConversationReader(OPENAI, tally, lambda _: "", alone=False)
    for line in read_document(file, tally) if detected.document else read_lines(file, tally):
        for item in reader.read(line):
            if isinstance(item, NewEvent):
                yield replace(item, key=None)
            elif isinstance(item, SessionRestart) and item.opens != 1:
                raise InvalidInputError("several conversations can't be appended as one", hint=_IMPORT_HINT)


def _regular_file(path: str | os.PathLike[str]) -> tuple[Path, int]:
    """Return a file and its size."""
    file = Path(path)
    try:
        status = file.stat()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InvalidInputError(f"{str(file)!r} can't be read: {reason}") from error
    if not stat.S_ISREG(status.st_mode):
        raise InvalidInputError(f"{str(file)!r} is no regular file; an import reads it more than once")
    return file, status.st_size
