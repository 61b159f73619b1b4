"""Read the bytes of a store's file past SQLite, and close it only where no connection of this process has it open.

POSIX drops all locks of a process on a file when the process closes any descriptor of it. SQLite's own would go with
them: another process that closes the store would take itself for the last one, and delete the write-ahead log that this
one goes on writing to. What this one acknowledged from then on would be lost (sqlite.org/howtocorrupt.html, 2.2).

So a descriptor is set aside while a connection is there, for the next who reads, and closed with the last of them.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_File = tuple[int, int]  # device and inode

_AS_IT_IS: Final[int] = getattr(os, "O_BINARY", 0)  # Windows would change line ends
_LOCK: Final = threading.Lock()
_CONNECTIONS: Final = Counter[_File]()
_ASIDE: Final[dict[_File, list[int]]] = {}  # descriptors that nobody reads from, of files with connections


class Connection(sqlite3.Connection):
    """A connection that is known here from `enter`, which comes before its first statement, until it is closed."""

    _file: _File | None = None

    def enter(self, path: str | Path) -> None:
        """Say which file it has open. Before its first statement it holds no locks that could go."""
        found = os.stat(path)  # noqa: PTH116
        with _LOCK:
            self._file = found.st_dev, found.st_ino
            _CONNECTIONS[self._file] += 1

    def is_at(self, path: str) -> bool:
        """Tell whether the file that it has open still has this name."""
        try:
            found = os.stat(path)  # noqa: PTH116
        except FileNotFoundError:
            return False
        return (found.st_dev, found.st_ino) == self._file

    def close(self) -> None:
        """Close it, and what was set aside because of it."""
        super().close()
        file, self._file = self._file, None
        if file is None:
            return
        with _LOCK:
            _CONNECTIONS[file] -= 1
            if not _CONNECTIONS[file]:
                del _CONNECTIONS[file]
                for descriptor in _ASIDE.pop(file, ()):
                    os.close(descriptor)


def read_pieces(path: Path, piece_bytes: int) -> Iterator[bytes]:
    """Yield a file in pieces of at most so many bytes.

    Raises:
        OSError: it can't be read.
    """
    descriptor = _open(path)
    try:
        while piece := os.read(descriptor, piece_bytes):
            yield piece
    finally:
        close(descriptor)


def _open(path: Path) -> int:
    found = path.stat()
    with _LOCK:
        aside = _ASIDE.get((found.st_dev, found.st_ino))
        if not aside:
            return os.open(path, os.O_RDONLY | _AS_IT_IS)
        descriptor = aside.pop()
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def close(descriptor: int) -> None:
    """Close a descriptor, or set it aside while a connection has the same file open."""
    found = os.fstat(descriptor)
    file = found.st_dev, found.st_ino
    with _LOCK:
        if file in _CONNECTIONS:
            _ASIDE.setdefault(file, []).append(descriptor)
        else:
            os.close(descriptor)


def _in_child() -> None:
    """Leave what was set aside to the parent: both would move the place at which the other reads."""
    for descriptors in _ASIDE.values():
        for descriptor in descriptors:
            os.close(descriptor)  # the locks of a process are not those of its child
    _ASIDE.clear()
    _LOCK.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_LOCK.acquire, after_in_parent=_LOCK.release, after_in_child=_in_child)
