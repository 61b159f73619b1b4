"""The lines of a transcript, and the place of every fault in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import msgspec

from strandline.errors import ImportFormatError, InvalidInputError
from strandline.limits import IMPORT_LINE_BYTES_MAX, IMPORT_SKIPPED_TYPES_MAX, JSON_DEPTH_MAX
from strandline.transcripts.malformed import explain
from strandline.transcripts.surrogates import StandIns

T = TypeVar("T")

_BOM = b"\xef\xbb\xbf"
_BLANK = b" \t\r"
_BUFFER_BYTES = (
    256 * 1024
)  # records of Claude Code have 4 kB on average: the default of 8 kB costs a tenth of the speed


@dataclass(slots=True)
class Tally:
    """What one pass over a file has seen so far."""

    lines: int = 0
    bytes_read: int = 0
    line_byte: int = 0  # where the newest line begins
    skipped: dict[str, int] = field(default_factory=dict)

    def skip(self, what: str) -> None:
        """Count one thing that becomes no event."""
        if what not in self.skipped and len(self.skipped) >= IMPORT_SKIPPED_TYPES_MAX:
            what = "other"
        self.skipped[what] = self.skipped.get(what, 0) + 1


class Line:
    """One line that holds a record. `data` is its text without the line's end, with stand-ins where it needs some."""

    __slots__ = ("data", "ended", "number", "stand_ins", "start")

    def __init__(self, number: int, start: int, data: bytes, *, ended: bool) -> None:
        self.number = number
        self.start = start
        self.data = data
        self.ended = ended  # by a line feed
        self.stand_ins: StandIns | None = None

    def fault(self, reason: str, at: int = 0) -> ImportFormatError:
        """Return the error for a fault `at` bytes from the start of the line."""
        return ImportFormatError(reason, line=self.number, byte=self.start + at)

    def decode(self, decoder: msgspec.json.Decoder[T]) -> T:
        """Return the record of this line.

        Raises:
            ImportFormatError: the line is not one JSON value that the decoder takes.
        """
        try:
            return decoder.decode(self.data)
        except (msgspec.DecodeError, RecursionError) as error:
            first_error = error
        self._put_stand_ins()
        if self.stand_ins is None:
            raise self._malformed(first_error) from first_error
        try:
            return decoder.decode(self.data)
        except (msgspec.DecodeError, RecursionError) as error:
            raise self._malformed(error) from error

    def decode_part(self, part: bytes | msgspec.Raw, decoder: msgspec.json.Decoder[T]) -> T:
        """Return the value of a slice of a record that was read.

        Raises:
            ImportFormatError: the value is not what the decoder takes, or no number that can be kept.
        """
        try:
            return decoder.decode(part)
        except (msgspec.DecodeError, RecursionError) as error:
            raise self._malformed(error) from error

    def as_it_stood(self, part: bytes) -> bytes:
        """Return a slice of the record without stand-ins."""
        return part if self.stand_ins is None else self.stand_ins.restore(part)

    def check_depth(self, value: object) -> None:
        """Refuse a value that is nested deeper than an event may be."""
        level = [value]
        for _ in range(JSON_DEPTH_MAX + 1):
            level = [
                child
                for parent in level
                if isinstance(parent, dict | list)
                for child in (parent.values() if isinstance(parent, dict) else parent)
            ]
            if not level:
                return
        raise self.fault(f"nested deeper than {JSON_DEPTH_MAX} levels")

    def _put_stand_ins(self) -> None:
        try:
            self.stand_ins = StandIns.of(self.data)
        except InvalidInputError as error:
            raise self.fault(error.message) from error
        if self.stand_ins is not None:
            self.data = self.stand_ins.data

    def _malformed(self, error: Exception) -> ImportFormatError:
        return self.fault(*explain(self.data, error, ended=self.ended))


def read_lines(path: Path, tally: Tally) -> Iterator[Line]:
    """Yield the lines that hold something, with their places; blank ones are counted.

    Raises:
        ImportFormatError: a line is too long or not UTF-8.
        InvalidInputError: the file can't be read.
    """
    start = 0
    longest = IMPORT_LINE_BYTES_MAX + 2  # with its end
    try:
        with path.open("rb", buffering=_BUFFER_BYTES) as file:
            while raw := file.readline(longest):
                tally.lines += 1
                tally.bytes_read += len(raw)
                ended = raw.endswith(b"\n")
                if start == 0 and raw.startswith(_BOM):
                    raw, start = raw[len(_BOM) :], len(_BOM)
                tally.line_byte = start
                line = Line(tally.lines, start, raw.rstrip(b"\r\n"), ended=ended)
                start = tally.bytes_read
                if len(line.data) > IMPORT_LINE_BYTES_MAX or (len(raw) == longest and not ended):
                    raise line.fault(f"a line of more than {IMPORT_LINE_BYTES_MAX} bytes")
                _check_utf8(line)
                if line.data.strip(_BLANK):
                    yield line
                else:
                    tally.skip("blank")
    except OSError as error:
        raise InvalidInputError(f"{str(path)!r} can't be read: {error.strerror or error}") from error


def _check_utf8(line: Line) -> None:
    if line.data.isascii():
        return
    try:
        line.data.decode()
    except UnicodeDecodeError as error:
        raise line.fault(f"invalid UTF-8: {error.reason} 0x{line.data[error.start]:02x}", error.start) from None
