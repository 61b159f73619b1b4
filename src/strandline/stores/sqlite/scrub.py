"""Search the files of a store for what was erased, and write them anew where they hold it (C31).

SQLite overwrites what is deleted with zeros (`secure_delete`, for every connection that writes). But pages that were
split or moved before may hold copies of rows in their free space. `VACUUM` writes every page anew from the rows; it
takes as much free disk as the store is large, and is done only where something was found.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from strandline.limits import ERASURE_NEEDLES_MAX, ERASURE_SCAN_BYTES
from strandline.model.erasure import FileScan
from strandline.stores.sqlite.raw import read_pieces

_BESIDE: Final = ("", "-wal", "-journal")
_BUSY: Final = (
    "somebody reads the store, so its write-ahead log could not be emptied: end what reads for long, and scan again"
)
_COPIES: Final = "backups, copies and snapshots of the disk that were made before still hold it"


def scrub(connection: sqlite3.Connection, path: str, needles: Sequence[bytes]) -> FileScan:
    """Search a store's files; `connection` writes, and no transaction is open on it."""
    chosen = _sample([needle for needle in needles if needle])
    emptied = _empty_log(connection, path)
    files, found = _search(path, chosen)
    if found:
        connection.execute("VACUUM")
        emptied = _empty_log(connection, path)
        files, found = _search(path, chosen)
    notes = [_COPIES]
    if len(chosen) < len(needles):
        notes.insert(0, f"searched for {len(chosen):,} of {len(needles):,} strings")
    if not emptied:
        notes.insert(0, _BUSY)
    return FileScan(files=files, searched_for=len(chosen), found=found, note="; ".join(notes))


def _sample(needles: Sequence[bytes]) -> list[bytes]:
    """Return at most ERASURE_NEEDLES_MAX of the strings, from all over the list."""
    step = -(-len(needles) // ERASURE_NEEDLES_MAX) or 1
    return list(needles[::step])


def _empty_log(connection: sqlite3.Connection, path: str) -> bool:
    """Move the write-ahead log into the store and empty its file; tell whether nobody was in the way.

    SQLite doesn't flush that the file is empty: after a power loss the log could be there again, with what was erased.
    """
    busy: int = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    with suppress(FileNotFoundError), Path(f"{path}-wal").open("rb+") as log:
        os.fsync(log.fileno())
    return not busy


def _search(path: str, needles: Sequence[bytes]) -> tuple[dict[str, int], int]:
    """Return the bytes of each file, and how often one of the strings stands in them."""
    files, found = {}, 0
    longest = max(map(len, needles), default=0)
    for file in (Path(path + beside) for beside in _BESIDE):
        if file.exists():
            files[file.name] = file.stat().st_size
            found += sum(chunk.count(needle) for chunk in _chunks(file, longest) for needle in needles)
    return files, found


def _chunks(file: Path, longest: int) -> Iterator[bytes]:
    """Yield a file in pieces, each with the end of the one before: what lies across two of them is found."""
    end = b""
    for piece in read_pieces(file, ERASURE_SCAN_BYTES):
        yield end + piece
        end = piece[-(longest - 1) :] if longest > 1 else b""
