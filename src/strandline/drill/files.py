"""Stores as files: copies of them, and where a text stands in them, in whatever form."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import strandline
from strandline.codec import unfold

_TORN_AT: Final = 64
TORN_BYTES: Final = 32


def copy_store(store: Path, to: Path) -> None:
    """Copy a store, with what its WAL holds."""
    with closing(sqlite3.connect(store)) as source, closing(sqlite3.connect(to)) as target:
        source.backup(target)


def hits_in_store(store: Path, needle: str) -> int:
    """Count the places of a text in the store: in the bytes of its files, and in every value, unpacked."""
    wanted = needle.encode(errors="replace")
    files = (store.with_name(store.name + suffix) for suffix in ("", "-wal", "-shm"))
    hits = sum(file.read_bytes().count(wanted) for file in files if file.exists())
    with closing(sqlite3.connect(store)) as db:
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        for table in tables:
            rows = db.execute('SELECT * FROM "{}"'.format(table.replace('"', '""')))  # noqa: S608  its own tables
            hits += sum(_holds(value, wanted) for row in rows for value in row)
    return hits + sum(wanted in body for body in _bodies(store))


def _bodies(store: Path) -> Iterator[bytes]:
    """Yield the body of every event, unpacked."""
    with strandline.open(store) as db:
        for scope in db.store.scopes():
            with db.store.read(scope) as tx:
                yield from (event.body or b"" for event in tx.log.read(1, tx.log.head().revision))


def _holds(value: object, wanted: bytes) -> bool:
    data = value.encode(errors="replace") if isinstance(value, str) else value
    if not isinstance(data, bytes):
        return False
    return wanted in data or wanted in _unpacked(data)


def _unpacked(data: bytes) -> bytes:
    try:
        return unfold(data, "a column")
    except strandline.CorruptRecordError:
        return b""


def damage_summary(store: Path) -> int:
    """Overwrite some bytes of the newest segment in the file, and return at which byte."""
    with closing(sqlite3.connect(store)) as db:
        db.execute("PRAGMA journal_mode = DELETE")  # so that all stands in the one file
        ((stored,),) = db.execute("SELECT text FROM segment ORDER BY through_seq DESC LIMIT 1")
    data = bytearray(store.read_bytes())
    at = data.index(bytes(stored[_TORN_AT : _TORN_AT + TORN_BYTES]))
    data[at : at + TORN_BYTES] = bytes(TORN_BYTES)
    store.write_bytes(data)
    return at
