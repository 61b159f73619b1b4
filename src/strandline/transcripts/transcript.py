"""A transcript file that is opened for import."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from strandline.errors import InvalidInputError
from strandline.model.transcript import TranscriptItem
from strandline.transcripts.claude_code import read_claude_code
from strandline.transcripts.detect import Format, detect_format
from strandline.transcripts.jsonl import read_jsonl
from strandline.transcripts.lines import Tally, read_lines


class Transcript:
    """A file in a known format. Each pass reads it from the start; memory holds one record, and the ids seen so far.

    `lines`, `skipped` and `bytes_read` tell how far the newest pass has come; `size_bytes` is the size when opened.
    """

    def __init__(self, path: Path, format: Format, size_bytes: int, digest: Callable[[bytes], str]) -> None:
        self._path = path
        self._digest = digest
        self._tally = Tally()
        self.format = format
        self.size_bytes = size_bytes

    @property
    def lines(self) -> int:
        """Lines read."""
        return self._tally.lines

    @property
    def bytes_read(self) -> int:
        """Bytes read."""
        return self._tally.bytes_read

    @property
    def line_byte(self) -> int:
        """Where the newest line begins."""
        return self._tally.line_byte

    @property
    def skipped(self) -> Mapping[str, int]:
        """How many records, by type, and empty blocks and blank lines became no event."""
        return self._tally.skipped

    def items(self) -> Iterator[TranscriptItem]:
        """Begin a pass, and return what the file states in its order.

        Raises:
            ImportFormatError: while iterating, at the first record that is damaged.
        """
        self._tally = Tally()
        lines = read_lines(self._path, self._tally)
        if self.format == "claude_code":
            return read_claude_code(lines, self._tally)
        return read_jsonl(lines, self._digest)


def open_transcript(path: str | os.PathLike[str], *, digest: Callable[[bytes], str]) -> Transcript:
    """Open a transcript for import, and tell its format by its first records.

    Args:
        path: a regular file; it is read more than once.
        digest: keyed digest of bytes, as text, for the keys of records that bear none.

    Raises:
        ImportFormatError: no known format, or damaged before it could be told.
        InvalidInputError: no regular file, or it can't be read.
    """
    file = Path(path)
    try:
        status = file.stat()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InvalidInputError(f"{str(file)!r} can't be read: {reason}") from error
    if not stat.S_ISREG(status.st_mode):
        raise InvalidInputError(f"{str(file)!r} is no regular file; an import reads it more than once")
    return Transcript(file, detect_format(read_lines(file, Tally())), status.st_size, digest)
