"""What goes to stdout and stderr: JSON for programs, aligned text for people, colours on a terminal only."""

from __future__ import annotations

import codecs
import dataclasses
import enum
import json
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Final, TextIO

COLUMNS: Final = 120  # where stdout is no terminal
_CUT_CHARS_MIN: Final = 8
_GAP: Final = 2  # blanks between two columns of a table
BROKEN_PIPE: Final = 141  # as a shell says it of SIGPIPE
_STYLES: Final = {"red": "1;31", "green": "1;32", "yellow": "1;33", "cyan": "1;36", "bold": "1", "dim": "2"}

# Control characters, marks that turn the direction of text, lone surrogates: what an event holds must not drive the
# terminal, and is shown as an escape.
_UNSHOWABLE: Final = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def to_json(value: object, *, indent: int | None = None) -> str:
    """Return a value as JSON that stdout can hold; what can't be shown is written as an ASCII escape."""
    text = json.dumps(plain(value), ensure_ascii=_encoding(sys.stdout) != "utf-8", indent=indent)
    return _UNSHOWABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def plain(value: object) -> object:
    """Return model values as JSON values: an object for a dataclass, hex digits for a digest."""
    if isinstance(value, enum.Enum):
        return value.value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value.hex() if isinstance(value, bytes) else value


def pick(value: object, names: str) -> dict[str, object]:
    """Return attributes of a model value as JSON values; the names stand in one text, with blanks between."""
    return {name: plain(getattr(value, name)) for name in names.split()}


def printable(text: str) -> str:
    """Return text in which everything that can't be shown, or would drive a terminal, is a visible escape."""
    return _UNSHOWABLE.sub(lambda found: ascii(found[0])[1:-1], text.replace("\r\n", "\n"))


def count(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun: 1 event, 2 events."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def span(first: int, last: int) -> str:
    """Return a range of seqs."""
    return f"{first}" if first == last else f"{first}–{last}" if first < last else "none"


def at(micros: int) -> str:
    """Return a time in UTC."""
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)).isoformat(timespec="milliseconds")


def when(micros: int) -> str:
    """Return a time in UTC, to the second: for people, in a table."""
    return at(micros)[:19].replace("T", " ")


def columns() -> int:
    """Return how wide the terminal is."""
    return shutil.get_terminal_size((COLUMNS, 0)).columns


def facts_of(facts: Sequence[tuple[str, object]]) -> str:
    """Return names and values, a line each; what is None, empty or 0 is left out."""
    return table_of([(f"  {name}", f"{fact:,}" if isinstance(fact, int) else fact) for name, fact in facts if fact])


def table_of(rows: Sequence[Sequence[object]]) -> str:
    """Return rows with aligned columns; numbers stand right."""
    cells = [[_cell(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    signs = [[">" if isinstance(cell, int) else "<" for cell in row] for row in rows]
    return "\n".join(
        (" " * _GAP).join(f"{text:{sign}{width}}" for text, sign, width in zip(*line, widths, strict=True)).rstrip()
        for line in zip(cells, signs, strict=True)
    )


def fitted(
    head: Sequence[str], rows: Sequence[Sequence[object]], *, cut: Mapping[str, int], spare: Sequence[str]
) -> str:
    """Return a table as wide as the terminal at most.

    Args:
        head: the names of the columns.
        rows: none: no table.
        cut: columns that may be cut, the first to be cut first, each with the characters that it keeps as long as
            there are columns to spare.
        spare: columns that are left out where such cuts do not do, the first to go first.
    """
    if not rows:
        return ""
    table, room = [head, *rows], columns()
    widths = {name: max(len(_cell(row[at])) for row in table) for at, name in enumerate(head)}
    least = {name: min(width, cut.get(name, width)) for name, width in widths.items()}
    shown = list(head)
    for name in spare:
        if _line(least[other] for other in shown) > room:
            shown.remove(name)
    excess = _line(widths[name] for name in shown) - room
    for kept in (least, dict.fromkeys(cut, _CUT_CHARS_MIN)):
        for name in filter(shown.__contains__, cut):
            taken = max(0, min(excess, widths[name] - kept[name]))
            widths[name], excess = widths[name] - taken, excess - taken
    return table_of(
        [[_clip(cell, widths[name]) for name, cell in zip(head, row, strict=True) if name in shown] for row in table]
    )


def _line(widths: Iterable[int]) -> int:
    """Return the width of a line of so wide columns."""
    return sum(width + _GAP for width in widths) - _GAP


def _clip(cell: object, width: int) -> object:
    text = _cell(cell)
    return cell if len(text) <= width else f"{text[: width - 1]}…"


def _cell(cell: object) -> str:
    return "" if cell is None else printable(str(cell)).replace("\n", " ")


def emit(text: str, style: str = "", *, aside: bool = False) -> None:
    """Print a text on stdout, or aside on stderr, if there is any."""
    if not text:
        return
    if aside:
        print(_ready(text, style, sys.stderr), file=sys.stderr)
        return
    emit_line([(text, style)])


def emit_line(parts: Sequence[tuple[str, str]]) -> None:
    """Print a line of texts on stdout, each with its style; where nobody reads on, end quietly."""
    with _read_on():
        print("".join(_ready(text, style, sys.stdout) for text, style in parts), flush=True)


def emit_bytes(pieces: Iterable[bytes]) -> int:
    """Write bytes to stdout as they are, and return how many pieces; where nobody reads on, end quietly."""
    written = 0
    with _read_on():
        for piece in pieces:
            sys.stdout.buffer.write(piece)
            written += 1
        sys.stdout.flush()
    return written


@contextmanager
def _read_on() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        with suppress(OSError):  # what is still buffered goes nowhere, also when the interpreter shuts down
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(BROKEN_PIPE) from None


def tell(label: str, text: str, style: str = "yellow") -> None:
    """Print a labelled line on stderr."""
    print(_ready(f"{label}:", style, sys.stderr), _ready(text, "", sys.stderr), file=sys.stderr)


def tell_line(value: dict[str, object]) -> None:
    """Print one JSON object as a line on stderr: what goes on, for a program that reads it."""
    print(_ready(to_json(value), "", sys.stderr), file=sys.stderr, flush=True)


def print_version(asked: bool) -> None:
    """Print the version and exit, if that was asked for."""
    if asked:
        from importlib.metadata import version

        emit(f"strandline {version('strandline')}")
        raise SystemExit(0)


def _ready(text: str, style: str, stream: TextIO | None) -> str:
    """Return text as a stream can take it: with colour on a terminal, with escapes for what it can't hold."""
    encoding = _encoding(stream)
    text = printable(text).encode(encoding, "backslashreplace").decode(encoding)
    unwanted = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    if not style or not text or unwanted or stream is None or not stream.isatty():
        return text
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m"


def _encoding(stream: TextIO | None) -> str:
    return codecs.lookup(getattr(stream, "encoding", None) or "utf-8").name
