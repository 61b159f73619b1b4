"""What a power loss may leave of files that a program writes, built from a record of its writes and syncs.

    record = Record(operations)
    moment = record.moments[40]          # a loss behind the fortieth operation
    image = moment.image(arrived)        # name -> bytes; `arrived` says which of the pending pieces are on the disk

The rules, which are those that SQLite asks of a disk (its "powersafe overwrite", which is the default):

- What was written to a file before it was synced is on the disk. A sync of a folder makes the names in it durable.
- Of what came after the last sync, each piece may have arrived or not, in any order: a write, each page or each sector
  of it, or its first bytes. Where two pieces that arrived overlap, the later one stands.
- The size of a file follows from what arrived. Where a file became longer by a piece whose bytes did not arrive, there
  are zeros, or what the disk held before.
- A new size, a new name, a name that goes and a rename are each there or not.

Pure: no file is read or written here.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from tests.crash.tracing import Create, Link, Mark, Operation, Rename, Sync, Truncate, Unlink, Write

PAGE_BYTES: Final = 4096
SECTOR_BYTES: Final = 512
FOLDER: Final = "."

Change = Write | Truncate | Create | Unlink | Rename | Link
Files = dict[str, bytes]  # by name


@dataclass(frozen=True, slots=True)
class Piece:
    """Something that may have arrived, or not: a change of a file, or of a name."""

    inode: int  # of the file that it is about, whatever its name is by now
    change: Change
    filled: bytes = b""  # not empty: only the new size arrived, and where the file became longer this stands

    def __str__(self) -> str:
        match self.change:
            case Write(file, offset, data):
                return f"{len(data)} bytes at {offset} of {file}" + (", of which only the size" if self.filled else "")
            case Truncate(file, size):
                return f"the size {size} of {file}"
            case Rename(file, to) | Link(file, to):
                return f"{type(self.change).__name__.lower()} {file} to {to}"
            case change:
                return f"{type(change).__name__.lower()} {change.file}"

    def split(self, unit_bytes: int) -> list[Piece]:
        """Cut a write at the borders of pages or sectors of the file; other pieces are one."""
        write = self.change
        if not isinstance(write, Write):
            return [self]
        end = write.offset + len(write.data)
        borders = [write.offset, *range(write.offset // unit_bytes * unit_bytes + unit_bytes, end, unit_bytes), end]
        return [self._part(start, stop) for start, stop in itertools.pairwise(borders)]

    def first(self, count: int) -> Piece:
        """Return the first bytes of a write."""
        assert isinstance(self.change, Write)
        return self._part(self.change.offset, self.change.offset + count)

    def fill(self, filled: bytes) -> Piece:
        """Return the piece as one of which only the new size arrived; what it overwrites is as it was."""
        return replace(self, filled=filled) if isinstance(self.change, Write) else self

    def _part(self, start: int, stop: int) -> Piece:
        write = self.change
        assert isinstance(write, Write)
        return replace(self, change=Write(write.file, start, write.data[start - write.offset : stop - write.offset]))


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment at which the power may go: what is surely on the disk, and what is under way to it."""

    position: int  # so many operations were made
    names: Mapping[str, int]  # durable ones, with their inodes
    contents: Mapping[int, bytes]  # durable ones, by inode
    pending: tuple[Piece, ...]  # in the order in which they were made

    def image(self, arrived: Iterable[Piece]) -> Files:
        """Return the files when these of the pending pieces, or parts of them, have arrived; in this order."""
        names = dict(self.names)
        contents: dict[int, bytearray] = {}
        for piece in arrived:
            if not isinstance(piece.change, Write | Truncate):
                _name(names, piece)
                continue
            if piece.inode not in contents:
                contents[piece.inode] = bytearray(self.contents.get(piece.inode, b""))
            _change(contents[piece.inode], piece)
        return {
            name: bytes(contents[inode]) if inode in contents else self.contents.get(inode, b"")
            for name, inode in names.items()
        }


def moments(operations: Sequence[Operation | Mark], *, without: str) -> list[Moment]:
    """Return the moment before the first operation and that behind each; files whose names end so are left out."""
    disk = _Disk()
    found = [disk.moment(0)]
    for position, operation in enumerate(operations, 1):
        if not isinstance(operation, Mark) and not operation.file.endswith(without):
            disk.take(operation)
        found.append(disk.moment(position))
    return found


class _Disk:
    """What is durable and what is pending while a record is read."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}  # names with their inodes, as the program sees them
        self._inodes = itertools.count(1)
        self._names: Mapping[str, int] = {}
        self._contents: Mapping[int, bytes] = {}
        self._pending: tuple[Piece, ...] = ()

    def moment(self, position: int) -> Moment:
        return Moment(position, self._names, self._contents, self._pending)

    def take(self, operation: Operation) -> None:
        if isinstance(operation, Sync):
            self._sync(operation.file)
            return
        if isinstance(operation, Create):
            piece = Piece(next(self._inodes), operation)
        elif operation.file in self._seen:
            piece = Piece(self._seen[operation.file], operation)
        else:
            return  # the file has no name any more
        if not isinstance(operation, Write | Truncate):
            _name(self._seen, piece)
        self._pending = (*self._pending, piece)

    def _sync(self, file: str) -> None:
        inode = self._seen.get(file)
        if file == FOLDER:
            names = dict(self._names)
            for piece in self._pending:
                if not isinstance(piece.change, Write | Truncate):
                    _name(names, piece)
            self._names = names
            self._pending = tuple(piece for piece in self._pending if isinstance(piece.change, Write | Truncate))
        elif inode is not None:
            content = bytearray(self._contents.get(inode, b""))
            for piece in self._pending:
                if piece.inode == inode and isinstance(piece.change, Write | Truncate):
                    _change(content, piece)
            self._contents = {**self._contents, inode: bytes(content)}
            self._pending = tuple(
                piece
                for piece in self._pending
                if piece.inode != inode or not isinstance(piece.change, Write | Truncate)
            )


def _change(content: bytearray, piece: Piece) -> None:
    change = piece.change
    if isinstance(change, Truncate):
        del content[change.size :]
        content.extend(bytes(change.size - len(content)))
        return
    assert isinstance(change, Write)
    end = change.offset + len(change.data)
    if piece.filled:
        missing = max(end - len(content), 0)
        content.extend((piece.filled * (missing // len(piece.filled) + 1))[:missing])
        return
    content.extend(bytes(max(change.offset - len(content), 0)))
    content[change.offset : end] = change.data


def _name(names: dict[str, int], piece: Piece) -> None:
    change = piece.change
    if isinstance(change, Unlink | Rename) and names.get(change.file) == piece.inode:
        del names[change.file]
    if isinstance(change, Create):
        names[change.file] = piece.inode
    if isinstance(change, Rename | Link):
        names[change.to] = piece.inode
