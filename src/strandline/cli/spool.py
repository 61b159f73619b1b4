"""Stdin as a file: an import reads its file more than once."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from strandline.cli.output import tell
from strandline.limits import IMPORT_STDIN_BYTES_MAX

_STDIN: Final = "-"
_PIECE_BYTES: Final = 1024 * 1024


def is_stdin(file: Path) -> bool:
    """Tell whether stdin is meant."""
    return str(file) == _STDIN


@contextmanager
def spooled(file: Path) -> Iterator[Path]:
    """Give a file as it is; stdin as a temporary file of the name `stdin`, which is deleted at the end.

    Raises:
        InvalidInputError: stdin holds more than IMPORT_STDIN_BYTES_MAX.
    """
    if not is_stdin(file):
        yield file
        return
    from strandline.errors import InvalidInputError

    with tempfile.TemporaryDirectory(prefix="strandline-") as folder:
        path = Path(folder, "stdin")
        left = IMPORT_STDIN_BYTES_MAX
        with path.open("wb") as copy:
            while piece := sys.stdin.buffer.read(_PIECE_BYTES):
                left -= len(piece)
                if left < 0:
                    raise InvalidInputError(f"more than {IMPORT_STDIN_BYTES_MAX} bytes on stdin; give a file")
                copy.write(piece)
        if left == IMPORT_STDIN_BYTES_MAX:
            tell("warning", "stdin held nothing, and is taken as an empty file; did what should write to it fail?")
        yield path
