"""Read the bytes of a store's file past SQLite, and never close it while it has a name.

POSIX drops all locks of a process on a file when the process closes any descriptor of it. SQLite's own would go with
them: another process that closes the store would take itself for the last one, and delete the write-ahead log that this
one goes on writing to. What this one acknowledged from then on would be lost (sqlite.org/howtocorrupt.html, 2.2).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_AS_IT_IS: Final[int] = getattr(os, "O_BINARY", 0)  # Windows would change line ends
_LOCK: Final = threading.Lock()
_OPEN: Final[list[int]] = []  # descriptors, one for each file


def read_pieces(path: Path, piece_bytes: int) -> Iterator[bytes]:
    """Yield a file in pieces of at most so many bytes.

    Raises:
        OSError: it can't be read.
    """
    descriptor, offset = _descriptor(path), 0
    while piece := _read(descriptor, offset, piece_bytes):
        yield piece
        offset += len(piece)


def _descriptor(path: Path) -> int:
    with _LOCK:
        for descriptor in list(_OPEN):
            if os.fstat(descriptor).st_nlink == 0:  # nobody can open it any more
                _OPEN.remove(descriptor)
                os.close(descriptor)
        wanted = path.stat()
        for descriptor in _OPEN:
            if os.path.samestat(os.fstat(descriptor), wanted):
                return descriptor
        _OPEN.append(os.open(path, os.O_RDONLY | _AS_IT_IS))
        return _OPEN[-1]


def _read(descriptor: int, offset: int, size_bytes: int) -> bytes:
    with _LOCK:
        os.lseek(descriptor, offset, os.SEEK_SET)
        return os.read(descriptor, size_bytes)
