"""What goes to stdout and stderr: JSON for programs, aligned text for people, colours on a terminal only."""

from __future__ import annotations

import codecs
import dataclasses
import enum
import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Final, TextIO

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


def facts_of(facts: Sequence[tuple[str, object]]) -> str:
    """Return names and values, a line each; what is None, empty or 0 is left out."""
    return table_of([(f"  {name}", f"{fact:,}" if isinstance(fact, int) else fact) for name, fact in facts if fact])


def table_of(rows: Sequence[Sequence[object]]) -> str:
    """Return rows with aligned columns; numbers stand right."""
    cells = [["" if cell is None else printable(str(cell)).replace("\n", " ") for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    signs = [[">" if isinstance(cell, int) else "<" for cell in row] for row in rows]
    return "\n".join(
        "  ".join(f"{text:{sign}{width}}" for text, sign, width in zip(*line, widths, strict=True)).rstrip()
        for line in zip(cells, signs, strict=True)
    )


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
    try:
        print("".join(_ready(text, style, sys.stdout) for text, style in parts), flush=True)
    except BrokenPipeError:
        with suppress(OSError):  # what is still buffered goes nowhere, also when the interpreter shuts down
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(BROKEN_PIPE) from None


def tell(label: str, text: str, style: str = "yellow") -> None:
    """Print a labelled line on stderr."""
    print(_ready(f"{label}:", style, sys.stderr), _ready(text, "", sys.stderr), file=sys.stderr)


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
