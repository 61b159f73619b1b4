"""The lines of a transcript, and the place of every fault in them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import msgspec

from strandline.codec import storable
from strandline.errors import ImportFormatError, InvalidInputError
from strandline.limits import (
    IMPORT_LEFT_OUT_LISTED_MAX,
    IMPORT_LINE_BYTES_MAX,
    IMPORT_REASON_CHARS_MAX,
    IMPORT_SKIPPED_TYPES_MAX,
    JSON_DEPTH_MAX,
    KEY_CHARS_MAX,
)
from strandline.model.transcript import LeftOut
from strandline.transcripts.malformed import explain
from strandline.transcripts.structure import Span
from strandline.transcripts.surrogates import StandIns

T = TypeVar("T")

_RAW = msgspec.json.Decoder(msgspec.Raw)
BOM = b"\xef\xbb\xbf"
_BLANK = b" \t\r"
_BUFFER_BYTES = (
    256 * 1024
)  # records of Claude Code have 4 kB on average: the default of 8 kB costs a tenth of the speed


class _RepeatedNameError(Exception):
    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def _distinct(pairs: list[tuple[str, object]]) -> dict[str, object]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        raise _RepeatedNameError(next(name for name in names if names.count(name) > 1))
    return fields


_DISTINCT = json.JSONDecoder(object_pairs_hook=_distinct)


class Gap:
    """Records that follow each other in a file, and that a salvage leaves out."""

    def __init__(self, first: LeftOut) -> None:
        self.first = first
        self.records = 0
        self.end = first.byte
        self._hash = hashlib.blake2b()

    def add(self, left_out: LeftOut, data: bytes) -> None:
        """Take the next record."""
        self.records += 1
        self.end = left_out.byte + left_out.size_bytes
        self._hash.update(data)

    @property
    def content(self) -> bytes:
        """What tells this gap from others."""
        return f"{self.first.line} {self.first.byte} {self._hash.hexdigest()}".encode()

    def __str__(self) -> str:
        first = self.first
        what = "a record" if self.records == 1 else f"{self.records} records"
        place = f"line {first.line}, bytes {first.byte} to {self.end} of the file"
        return f"The import left out {what} here: {place}: {first.reason}"


@dataclass(slots=True)
class Tally:
    """What one pass over a file has seen so far."""

    salvage: bool = False  # leave out what is damaged, instead of refusing the file
    lines: int = 0
    bytes_read: int = 0
    line: int = 1  # of the newest record: where it begins,
    line_byte: int = 0
    size_bytes: int = 0  # and its size
    where: str = ""  # and which it is where lines don't tell: "message 2 of conversation 1"
    skipped: dict[str, int] = field(default_factory=dict)
    left_out: list[LeftOut] = field(default_factory=list)
    left_out_count: int = 0
    gap: Gap | None = None  # what was left out since the last record that was whole
    live: bool = False  # the file is still being written: a last line that is not whole yet is no damage
    unfinished_bytes: int = 0  # of such a line

    def at(self, line: Line) -> None:
        """Note that the newest record is this one."""
        self.line, self.line_byte, self.size_bytes = line.number, line.start, line.size_bytes

    def _located(self, fault: ImportFormatError) -> ImportFormatError:
        """Return a fault of the newest record with which record it is, where lines don't tell."""
        where, self.where = self.where, ""  # said once
        return ImportFormatError(f"{where}: {fault.reason}", line=fault.line, byte=fault.byte) if where else fault

    def leave_out(self, fault: ImportFormatError, line: Line, start: int = 0) -> None:
        """Leave a record out, or what of it begins at `start`; where nothing is salvaged, raise its fault."""
        if not self.salvage:
            raise self._located(fault)
        number, byte = line.number + line.data.count(b"\n", 0, start), line.start + start
        reason = fault.reason if fault.byte == byte else f"{fault.reason} (line {fault.line}, byte {fault.byte})"
        size_bytes = line.size_bytes - start
        reason = storable(reason, IMPORT_REASON_CHARS_MAX)
        left_out = LeftOut(line=number, byte=byte, size_bytes=size_bytes, reason=reason)
        self.left_out_count += 1
        if len(self.left_out) < IMPORT_LEFT_OUT_LISTED_MAX:
            self.left_out.append(left_out)
        self.gap = self.gap or Gap(left_out)
        self.gap.add(left_out, line.data[start:])

    def skip(self, what: str) -> None:
        """Count one thing that becomes no event."""
        if what not in self.skipped and len(self.skipped) >= IMPORT_SKIPPED_TYPES_MAX:
            what = "other"
        self.skipped[what] = self.skipped.get(what, 0) + 1


class Line:
    """One record: a line without its end, or a value within one. `data` has stand-ins where it needs some."""

    __slots__ = ("damage", "data", "document", "ended", "number", "part", "size_bytes", "stand_ins", "start", "stray")

    def __init__(self, number: int, start: int, data: bytes, *, ended: bool) -> None:
        self.number = number
        self.start = start
        self.data = data
        self.ended = ended  # by a line feed
        self.document = False  # whether it is all of the file
        self.part = False  # whether it is a value of a list, of which a line may hold several
        self.stray = False  # whether it stands where no record may: no part of it is one
        self.size_bytes = len(data)
        self.stand_ins: StandIns | None = None
        self.damage: ImportFormatError | None = None  # known before it is decoded

    def fault(self, reason: str, at: int = 0) -> ImportFormatError:
        """Return the error for a fault `at` bytes from the start of the record."""
        return ImportFormatError(reason, line=self.number + self.data.count(b"\n", 0, at), byte=self.start + at)

    def parts(self, spans: Iterable[Span]) -> Iterator[Line]:
        """Yield values within the record, in their order, each as a record with its own place."""
        number, at = self.number, 0
        for start, end in spans:
            number += self.data.count(b"\n", at, start)
            at = start
            part = Line(number, self.start + start, self.as_it_stood(self.data[start:end]), ended=False)
            check_utf8(part)
            yield part

    def decode(self, decoder: msgspec.json.Decoder[T]) -> T:
        """Return the record of this line.

        Raises:
            ImportFormatError: the record is not one JSON value that the decoder takes.
        """
        if self.damage is not None:
            raise self.damage
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

    def check_names(self) -> None:
        """Refuse a name that one object holds twice: of two values neither is the one that was meant."""
        try:
            _DISTINCT.decode(self.data.decode())
        except _RepeatedNameError as error:
            raise self.fault(f"the field {error.name!r} stands twice in one object") from error

    def _put_stand_ins(self) -> None:
        try:
            self.stand_ins = StandIns.of(self.data)
        except InvalidInputError as error:
            raise self.fault(error.message) from error
        if self.stand_ins is not None:
            self.data = self.stand_ins.data

    def _malformed(self, error: Exception) -> ImportFormatError:
        return self.fault(*explain(self.data, error, ended=self.ended, document=self.document))


def read_lines(path: Path, tally: Tally) -> Iterator[Line]:
    """Yield the lines that hold something, with their places, from where the tally stands; blank ones are counted.

    A line that is too long or not UTF-8 bears its damage, which is raised when it is decoded.

    Raises:
        InvalidInputError: the file can't be read.
    """
    start = tally.bytes_read
    longest = IMPORT_LINE_BYTES_MAX + 2  # with its end
    try:
        with path.open("rb", buffering=_BUFFER_BYTES) as file:
            file.seek(start)
            while raw := file.readline(longest):
                tally.lines += 1
                tally.bytes_read += len(raw)
                ended = raw.endswith(b"\n")
                if start == 0 and raw.startswith(BOM):
                    raw, start = raw[len(BOM) :], len(BOM)
                line = Line(tally.lines, start, raw.rstrip(b"\r\n"), ended=ended)
                if line.size_bytes > IMPORT_LINE_BYTES_MAX or (len(raw) == longest and not ended):
                    line.damage = line.fault(f"a line of more than {IMPORT_LINE_BYTES_MAX} bytes")
                    while not ended and (raw := file.readline(longest)):
                        tally.bytes_read += len(raw)
                        line.size_bytes += len(raw)
                        ended = raw.endswith(b"\n")
                start = tally.bytes_read
                tally.at(line)
                check_utf8(line)
                if tally.live and not ended and not _reads(line):
                    tally.lines -= 1
                    tally.unfinished_bytes = line.size_bytes
                    return
                if line.damage is not None or line.data.strip(_BLANK):
                    yield line
                else:
                    tally.skip("blank")
    except OSError as error:
        raise unreadable(path, error) from error


def unreadable(path: Path, error: OSError) -> InvalidInputError:
    """Return the error for a file that can't be read."""
    return InvalidInputError(f"{str(path)!r} can't be read: {error.strerror or error}")


def check_utf8(record: Line) -> None:
    """Find bytes that are no UTF-8; the record bears the damage."""
    if record.damage is not None or record.data.isascii():
        return
    try:
        record.data.decode()
    except UnicodeDecodeError as error:
        reason = f"invalid UTF-8: {error.reason} 0x{record.data[error.start]:02x}"
        record.damage = record.fault(reason, error.start)


def is_whole(data: bytes, span: Span) -> bool:
    """Tell whether a span is a JSON value."""
    record = Line(1, 0, data[slice(*span)], ended=False)
    check_utf8(record)
    return _reads(record)


def _reads(record: Line) -> bool:
    try:
        record.decode(_RAW)
    except ImportFormatError:
        return False
    return True


def identifier(line: Line, value: object, name: str) -> str:
    """Return a member that is an identifier or a time."""
    if line.stand_ins is None and isinstance(value, str) and 0 < len(value) <= KEY_CHARS_MAX:
        return value
    if value is None:
        raise line.fault(f"{name} is missing")
    if not isinstance(value, str):
        raise line.fault(f"{name} is no string")
    if not value:
        raise line.fault(f"{name} is empty")
    if len(value) > KEY_CHARS_MAX:
        raise line.fault(f"{name} has {len(value)} characters, at most {KEY_CHARS_MAX} are allowed")
    if line.stand_ins is not None and line.stand_ins.stand_in(value):
        raise line.fault(f"{name} holds an unpaired surrogate escape, which UTF-8 can't hold")
    return value
