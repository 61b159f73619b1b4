"""A session file of Claude Code that grows: where what the log holds of it ends.

The file only grows, and an import takes all of it or nothing. So what stands before the newest record that the log
holds is there already, and the log itself is the cursor: nothing else has to be kept, or can be wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Final, NamedTuple

from strandline.errors import ImportFormatError
from strandline.limits import EVENTS_PAGE_MAX, LIVE_BLOCK_BYTES
from strandline.model.event import NewEvent
from strandline.model.transcript import ImportStart
from strandline.transcripts.claude_code import ClaudeCodeReader
from strandline.transcripts.lines import Line, Tally, check_utf8, unreadable

Known = Callable[[Collection[str]], Mapping[str, int]]
"""Tells which of these keys the log holds, each with the seq of its event."""

_LF: Final = b"\n"


class _Record(NamedTuple):
    """A line that states events."""

    end: int  # the byte behind it
    keys: Sequence[str]


def behind_known(path: Path, size_bytes: int, known: Known) -> ImportStart:
    """Return where to go on behind the newest record that the log holds; the start, where it holds none.

    It looks from the end of the file, so that the time follows what is new.

    Raises:
        InvalidInputError: the file can't be read.
    """
    end, block = size_bytes, LIVE_BLOCK_BYTES
    try:
        with path.open("rb") as file:
            while end > 0:
                begin = max(0, end - block)
                file.seek(begin)
                data = file.read(end - begin)
                cut = data.find(_LF) + 1 if begin else 0
                if begin and not 0 < cut < len(data):
                    block *= 2  # no line begins in it
                    continue
                found = _newest(_records(data[cut:], begin + cut), known)
                if found is not None:
                    record, seq = found
                    return ImportStart(
                        line=_lines_before(path, record.end),
                        byte=record.end,
                        key=record.keys[0].rpartition("#")[0],
                        seq=seq,
                    )
                end = begin + cut
    except OSError as error:
        raise unreadable(path, error) from error
    return ImportStart()


def _records(data: bytes, start: int) -> list[_Record]:
    """Return the lines that state events; what is damaged is found when it is imported."""
    records = []
    for raw in BytesIO(data):
        line = Line(0, start, raw.rstrip(b"\r\n"), ended=raw.endswith(_LF))
        start += len(raw)
        check_utf8(line)
        try:
            items = list(ClaudeCodeReader(Tally(), alone=False).read(line))
        except ImportFormatError:
            continue
        keys = [item.key for item in items if isinstance(item, NewEvent) and item.key is not None]
        if keys:
            records.append(_Record(start, keys))
    return records


def _newest(records: Sequence[_Record], known: Known) -> tuple[_Record, int] | None:
    """Return the newest record of which the log holds an event, with the seq of the last one."""
    while records:
        page: list[str] = []
        asked = len(records)
        while asked and (not page or len(page) + len(records[asked - 1].keys) <= EVENTS_PAGE_MAX):
            asked -= 1
            page += records[asked].keys[:EVENTS_PAGE_MAX]
        held = known(page)
        for record in reversed(records[asked:]):
            seqs = [held[key] for key in record.keys if key in held]
            if seqs:
                return record, max(seqs)
        records = records[:asked]
    return None


def _lines_before(path: Path, byte: int) -> int:
    """Count the lines that end before a byte."""
    lines, left = 0, byte
    with path.open("rb") as file:
        while left and (data := file.read(min(left, LIVE_BLOCK_BYTES))):
            lines += data.count(_LF)
            left -= len(data)
    return lines
