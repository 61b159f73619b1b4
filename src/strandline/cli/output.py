"""What goes to stdout and stderr, and in which form: JSON, a styled terminal, or plain text."""

from __future__ import annotations

import dataclasses
import enum
import json
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, TextIO

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

BROKEN_PIPE: Final = 141  # as a shell says it of SIGPIPE

# Control characters, marks that turn the direction of text, lone surrogates: what an event holds must not drive the
# terminal, and is shown as an escape.
_UNSHOWABLE = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Heading:
    """The line that says how it went."""

    text: str
    good: bool = True


@dataclass(frozen=True, slots=True)
class Facts:
    """Names and values, a line each."""

    rows: Iterable[tuple[str, object]]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under a head; columns of numbers stand right."""

    head: tuple[str, ...]
    rows: Sequence[Sequence[object]]


Block = str | Heading | Facts | Table


# ---------------------------------------------------------------------------------------------- values and text


def to_json(value: object, *, indent: int | None = None) -> str:
    """Return a value as JSON that stdout can hold; what it can't hold is written as ASCII escapes."""
    text = json.dumps(plain(value), ensure_ascii=False, indent=indent)
    try:
        text.encode(_encoding(sys.stdout))
    except UnicodeEncodeError:
        return json.dumps(plain(value), indent=indent)
    return text


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


def printable(text: str) -> str:
    """Return text in which everything that can't be shown, or would drive a terminal, is a visible escape."""
    return _UNSHOWABLE.sub(lambda found: ascii(found[0])[1:-1], text.replace("\r\n", "\n"))


def one_line(text: str, most: int = 120) -> str:
    """Return text as one line of at most so many characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"


def count(number: float, noun: str) -> str:
    """Return a number with its noun: 1 event, 2 events."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def span(first: int, last: int) -> str:
    """Return a range of seqs."""
    return str(first) if first == last else f"{first}–{last}" if first < last else "none"


def at(micros: int) -> str:
    """Return a time in UTC."""
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)).isoformat(timespec="seconds")


# ---------------------------------------------------------------------------------------------- stdout


def show(value: Mapping[str, object], blocks: Iterable[Block], *, as_json: bool) -> None:
    """Print a result: the value as one JSON object, or the blocks for people."""
    if as_json:
        emit(to_json(value))
        return
    for block in blocks:
        write(block)


def emit(text: str) -> None:
    """Print a text on stdout; where nobody reads on, end quietly."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        with suppress(OSError):  # what is still buffered goes nowhere, also when the interpreter shuts down
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(BROKEN_PIPE) from None


def write(block: Block) -> None:
    """Print one block: styled on a terminal, plain elsewhere."""
    if isinstance(block, str):
        emit(_encodable(printable(block), sys.stdout))
    elif _styled(sys.stdout):
        _console(sys.stdout).print(_renderable(block))
    elif isinstance(block, Heading):
        write(block.text)
    elif isinstance(block, Facts):
        write(_aligned([(f"  {name}", value) for name, value in block.rows], frozenset()))
    else:
        numbers = frozenset(i for i, _ in enumerate(block.head) if all(isinstance(row[i], int) for row in block.rows))
        write(_aligned([block.head, *block.rows], numbers))


def _aligned(rows: Sequence[Sequence[object]], right: frozenset[int]) -> str:
    cells = [[printable(_shown(cell)) for cell in row] for row in rows]
    widths = [max(len(cell) for cell in column) for column in zip(*cells, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if i in right else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    )


def _renderable(block: Heading | Facts | Table) -> RenderableType:
    from rich.table import Table as RichTable
    from rich.text import Text

    if isinstance(block, Heading):
        return Text(printable(block.text), style="bold green" if block.good else "bold red")
    if isinstance(block, Facts):
        grid = RichTable.grid(padding=(0, 2, 0, 2))
        grid.add_column(style="dim", no_wrap=True)
        for name, value in block.rows:
            grid.add_row(Text(name), Text(printable(_shown(value))))
        return grid
    table = RichTable(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for i, name in enumerate(block.head):
        number = bool(block.rows) and all(isinstance(row[i], int) for row in block.rows)
        table.add_column(name, justify="right" if number else "left", no_wrap=number)
    for row in block.rows:
        table.add_row(*(Text(printable(_shown(cell)), overflow="fold") for cell in row))
    return table


def _shown(cell: object) -> str:
    return "" if cell is None else str(cell)


# ---------------------------------------------------------------------------------------------- stderr


def warn(text: str) -> None:
    """Print a warning on stderr."""
    tell("warning", text, "yellow")


def tell(label: str, text: str, style: str = "") -> None:
    """Print a labelled line on stderr."""
    text = printable(text)
    if style and _styled(sys.stderr):
        from rich.text import Text

        _console(sys.stderr).print(Text.assemble((f"{label}:", f"bold {style}"), f" {text}"), soft_wrap=True)
    else:
        print(_encodable(f"{label}: {text}", sys.stderr), file=sys.stderr)


# ---------------------------------------------------------------------------------------------- streams


def _styled(stream: TextIO | None) -> bool:
    plain_wanted = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return stream is not None and stream.isatty() and not plain_wanted


def _console(stream: TextIO) -> Console:
    from rich.console import Console

    return Console(file=stream, highlight=False, markup=False, emoji=False)


def _encoding(stream: TextIO | None) -> str:
    return getattr(stream, "encoding", None) or "utf-8"


def _encodable(text: str, stream: TextIO | None) -> str:
    encoding = _encoding(stream)
    return text.encode(encoding, "backslashreplace").decode(encoding)
