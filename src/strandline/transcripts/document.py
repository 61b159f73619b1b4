"""One JSON document as records: the values of its list, or the object that it is.

A document is proved whole before its first record is read. Of a damaged one a salvage takes what is surely whole: with
strings and brackets intact, every value is judged by itself; else the values before the first damage, and those after
it from which on everything fits to the end of the document.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice, takewhile
from pathlib import Path
from typing import Final

import msgspec

from strandline.errors import ImportFormatError
from strandline.limits import IMPORT_RESYNC_PASSES_MAX, IMPORT_RESYNC_TRIES_MAX
from strandline.transcripts.lines import BOM, Line, Tally, check_utf8, is_whole, unreadable
from strandline.transcripts.openai_records import Kind, kind_of
from strandline.transcripts.structure import Span, Walk, skip_blank, values

_LIST: Final = msgspec.json.Decoder(list[msgspec.Raw])
_OBJECT: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_BETWEEN: Final = re.compile(rb"[}\]]\s*,\s*(?=[{\[])")


def read_document(path: Path, tally: Tally) -> Iterator[Line]:
    """Yield the records of a document.

    Raises:
        ImportFormatError: it is damaged, and nothing is to be salvaged.
        InvalidInputError: the file can't be read.
    """
    whole = load(path)
    tally.bytes_read = whole.start + whole.size_bytes
    tally.lines = whole.data.count(b"\n") + (not whole.data.endswith(b"\n"))
    fault = fault_of(whole)
    if fault is not None and not tally.salvage:
        raise fault
    for part in _values(whole, fault) if _is_list(whole) else _object(whole):
        part.part = True
        tally.at(part)
        yield part


def load(path: Path) -> Line:
    """Return a file as one record.

    Raises:
        InvalidInputError: the file can't be read.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise unreadable(path, error) from error
    start = len(BOM) if data.startswith(BOM) else 0
    whole = Line(1, start, data[start:], ended=False)
    whole.document = True
    check_utf8(whole)
    return whole


def fault_of(whole: Line) -> ImportFormatError | None:
    """Return what is wrong with a document, or None."""
    try:
        if _is_list(whole):
            whole.decode(_LIST)
        else:
            whole.decode(_OBJECT)
    except ImportFormatError as fault:
        return fault
    return None


def _is_list(whole: Line) -> bool:
    return whole.data.startswith(b"[", skip_blank(whole.data, 0))


def _object(whole: Line) -> Iterator[Line]:
    start, end = skip_blank(whole.data, 0), len(whole.data.rstrip(b" \t\r\n"))
    return whole.parts([(start, end)])


def _values(whole: Line, fault: ImportFormatError | None) -> Iterator[Line]:
    data = whole.data
    first = skip_blank(data, 0) + 1
    walk = values(data, first)
    intact = _reaches_end(data, walk)
    if fault is None and not intact:
        raise whole.fault("nested too deep")
    if fault is None or intact:
        yield from whole.parts(walk.spans)
        return
    before = list(takewhile(lambda span: is_whole(data, span), walk.spans))
    broken = walk.spans[len(before)][0] if len(before) < len(walk.spans) else walk.end
    torn = fault.byte >= whole.start + len(data)
    stray = walk.closed and broken == walk.end
    after = [] if torn or stray else _after(data, broken, kind_of(data, skip_blank(data, first)))
    end = after[0][0] if after else len(data)
    for record in whole.parts([*before, (broken, end), *after]):
        if record.start == whole.start + broken:
            record.damage = fault
            record.stray = stray
        yield record


def _after(data: bytes, broken: int, wanted: Kind | None) -> list[Span]:
    """Return the values behind a damage from which on everything fits to the end: brackets, commas, each value.

    They must be of one kind, that of the first value where it can be told, lest the end of an inner list passes for
    that of the document.
    """
    seen: set[int] = set()
    work_bytes = IMPORT_RESYNC_PASSES_MAX * len(data)
    for place in islice(_BETWEEN.finditer(data, broken), IMPORT_RESYNC_TRIES_MAX):
        start = place.end()
        if start in seen:
            continue
        kind = kind_of(data, start)  # also keeps out what stands inside a string, for there quotes are escaped
        if kind is None or (wanted is not None and kind != wanted):
            continue
        if work_bytes <= 0:
            break
        walk = values(data, start)
        work_bytes -= (walk.end if walk.closed else len(data)) - start
        seen.update(begin for begin, _ in walk.spans)
        fits = _reaches_end(data, walk) and all(kind_of(data, begin) == kind for begin, _ in walk.spans)
        if fits and all(is_whole(data, span) for span in walk.spans):
            return walk.spans
    return []


def _reaches_end(data: bytes, walk: Walk) -> bool:
    return walk.closed and skip_blank(data, walk.end) == len(data)
