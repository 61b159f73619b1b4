"""What system calls of Linux on x86_64 do to the files under a folder; `tracing.py` meets them."""

from __future__ import annotations

import ctypes
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

NUMBERS: Final = {
    "write": 1,
    "open": 2,
    "pwrite64": 18,
    "writev": 20,
    "sendfile": 40,
    "fsync": 74,
    "fdatasync": 75,
    "truncate": 76,
    "ftruncate": 77,
    "rename": 82,
    "mkdir": 83,
    "rmdir": 84,
    "creat": 85,
    "link": 86,
    "unlink": 87,
    "symlink": 88,
    "openat": 257,
    "mkdirat": 258,
    "unlinkat": 263,
    "renameat": 264,
    "linkat": 265,
    "symlinkat": 266,
    "fallocate": 285,
    "pwritev": 296,
    "renameat2": 316,
    "copy_file_range": 326,
    "pwritev2": 328,
}
NAMES: Final = {number: name for name, number in NUMBERS.items()}

# Where a call has what it changes: the argument that is a descriptor; or those that are a folder, if any, and a path
_OPENED: Final = {"fsync": 0, "fdatasync": 0, "ftruncate": 0, "fallocate": 0, "sendfile": 0, "copy_file_range": 2}
_NAMED: Final = {
    "open": (None, 0),
    "creat": (None, 0),
    "mkdir": (None, 0),
    "truncate": (None, 0),
    "unlink": (None, 0),
    "rmdir": (None, 0),
    "symlink": (None, 1),
    "openat": (0, 1),
    "mkdirat": (0, 1),
    "unlinkat": (0, 1),
    "symlinkat": (1, 2),
}
_TWO_NAMED: Final = {
    "rename": ((None, 0), (None, 1)),
    "renameat": ((0, 1), (2, 3)),
    "renameat2": ((0, 1), (2, 3)),
    "link": ((None, 0), (None, 1)),
    "linkat": ((0, 1), (2, 3)),
}
_RENAMES: Final = {"rename", "renameat", "renameat2"}
_WRITES: Final = {"write", "pwrite64", "writev", "pwritev", "pwritev2"}
OPENS: Final = {"open": 1, "openat": 2}  # and which argument holds the flags
_AT_FDCWD: Final = -100
_PATH_BYTES_MAX: Final = 4096


@dataclass(frozen=True, slots=True)
class Write:
    """Bytes that go to a place in a file."""

    file: str  # below the folder; "." is the folder itself
    offset: int
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Sync:
    """What was written to the file before is on the disk after it. Of a folder: the names in it."""

    file: str


@dataclass(frozen=True, slots=True)
class Truncate:
    """The file gets this size, be it smaller or larger."""

    file: str
    size: int


@dataclass(frozen=True, slots=True)
class Create:
    """A name that was not there gets an empty file, or a folder."""

    file: str


@dataclass(frozen=True, slots=True)
class Unlink:
    """A name goes."""

    file: str


@dataclass(frozen=True, slots=True)
class Rename:
    """A name becomes another, which is replaced when it is there."""

    file: str
    to: str


@dataclass(frozen=True, slots=True)
class Link:
    """A file gets a second name, which was not there."""

    file: str
    to: str


@dataclass(frozen=True, slots=True)
class Mark:
    """The program reported something here; no call on a file."""

    text: str


Operation = Write | Sync | Truncate | Create | Unlink | Rename | Link


class Reader:
    """Understands the calls of a traced process.

    Args:
        folder: whose files count, as the kernel names it.
        reports: the inode of the file in memory to which it reports.
    """

    def __init__(self, folder: str, reports: int) -> None:
        self._folder = folder
        self._reports = reports

    def understand(self, thread: int, name: str, arguments: list[int], *, read: bool) -> Operation | Mark | None:
        """Return what a call would change; None when it changes nothing under the folder.

        Data are read only with `read`: without it a write's are empty.

        Raises:
            NotImplementedError: it changes something there, and what is not known here.
        """
        if name in _WRITES:
            return self._write(thread, name, arguments, read=read)
        if name in _TWO_NAMED:
            old, new = (self._named(thread, arguments, *at) for at in _TWO_NAMED[name])
            return self._name_anew(Rename if name in _RENAMES else Link, old, new)
        opened = name in _OPENED
        path = (
            self._opened(thread, arguments[_OPENED[name]]) if opened else self._named(thread, arguments, *_NAMED[name])
        )
        file = self._below(path)
        if file is None:
            return None
        match name:
            case "fsync" | "fdatasync":
                return Sync(file)
            case "truncate" | "ftruncate":
                return Truncate(file, arguments[1])
            case "unlink" | "unlinkat" | "rmdir":
                return Unlink(file) if os.path.lexists(path) else None
            case "open" | "openat" | "creat" | "mkdir" | "mkdirat":
                if not os.path.lexists(path):
                    return Create(file)
                empties = name == "creat" or (name in OPENS and arguments[OPENS[name]] & os.O_TRUNC)
                return Truncate(file, 0) if empties else None
        raise NotImplementedError(f"{name} changes {path}: the tap does not know how")

    def _write(self, thread: int, name: str, arguments: list[int], *, read: bool) -> Write | Mark | None:
        descriptor, address, length, offset = arguments[:4]
        path = self._opened(thread, descriptor)
        if path.startswith("/memfd:"):
            return self._mark(thread, descriptor, address, length)
        file = self._below(path)
        if file is None:
            return None
        if name not in {"write", "pwrite64"}:
            raise NotImplementedError(f"{name} changes {path}: the tap reads writes of one piece only")
        data = _peek(thread, address, length) if read else b""
        return Write(file, offset if name == "pwrite64" else self._position(thread, descriptor), data)

    def _mark(self, thread: int, descriptor: int, address: int, length: int) -> Mark | None:
        if Path(f"/proc/{thread}/fd/{descriptor}").stat().st_ino != self._reports:
            return None
        return Mark(str(json.loads(_peek(thread, address, length))))

    def _position(self, thread: int, descriptor: int) -> int:
        lines = Path(f"/proc/{thread}/fdinfo/{descriptor}").read_text().splitlines()
        position, flags = int(lines[0].split()[1]), int(lines[1].split()[1], 8)
        return Path(f"/proc/{thread}/fd/{descriptor}").stat().st_size if flags & os.O_APPEND else position

    def _name_anew(self, how: type[Rename | Link], old: str, new: str) -> Rename | Link | None:
        file, to = self._below(old), self._below(new)
        if (file is None) != (to is None):
            raise NotImplementedError(f"{old} becomes {new}: the tap sees one folder only")
        if file is None or to is None or not os.path.lexists(old) or (how is Link and os.path.lexists(new)):
            return None
        return how(file, to)

    def _below(self, path: str) -> str | None:
        """Return the path from the folder on, or None where it is not below it."""
        if path == self._folder:
            return "."
        prefix = self._folder.rstrip("/") + "/"
        return path.removeprefix(prefix) if path.startswith(prefix) else None

    def _opened(self, thread: int, descriptor: int) -> str:
        """Return the path by which something was opened; "" for a descriptor that is none."""
        try:
            return str(Path(f"/proc/{thread}/fd/{descriptor & 0xFFFFFFFF}").readlink()).removesuffix(" (deleted)")
        except OSError:
            return ""

    def _named(self, thread: int, arguments: list[int], folder: int | None, name: int) -> str:
        """Return the path that a call names, as the kernel would say it."""
        text = os.fsdecode(_peek(thread, arguments[name], _PATH_BYTES_MAX).partition(b"\0")[0])
        at = _AT_FDCWD if folder is None else ctypes.c_int(arguments[folder] & 0xFFFFFFFF).value
        base = Path(f"/proc/{thread}/cwd").readlink() if at == _AT_FDCWD else Path(self._opened(thread, at))
        path = base / text
        return str(path.parent.resolve() / path.name)


def _peek(thread: int, address: int, length: int) -> bytes:
    """Return what stands in the memory of a stopped thread, as far as there is memory."""
    with Path(f"/proc/{thread}/mem").open("rb", buffering=0) as memory:
        memory.seek(address)
        return memory.read(length)
