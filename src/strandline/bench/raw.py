"""What the figures are measured against: the same bodies through the standard library's sqlite3, nothing around it.

Plain: one INSERT of the body into a table with the key (workflow, seq). With head and key: besides, a unique key per
event and an UPDATE of the workflow's head row. Each transaction is BEGIN IMMEDIATE … COMMIT; WAL, synchronous=FULL.
Nothing is parsed, hashed, compressed or checked.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

BUSY_TIMEOUT_S = 30.0
WORKFLOW = 1
PLAIN = "raw sqlite3: INSERT"
KEYED = "raw sqlite3: INSERT, head row, unique key"

_SCHEMA = """
CREATE TABLE IF NOT EXISTS event (
    workflow INTEGER NOT NULL, seq INTEGER NOT NULL, body BLOB NOT NULL, key TEXT, PRIMARY KEY (workflow, seq)
);
CREATE TABLE IF NOT EXISTS head (workflow INTEGER PRIMARY KEY, revision INTEGER NOT NULL);
INSERT INTO head VALUES (1, 0) ON CONFLICT DO NOTHING;
"""
_INDEX = "CREATE UNIQUE INDEX IF NOT EXISTS event_key ON event (workflow, key) WHERE key IS NOT NULL"
_INSERT = "INSERT INTO event VALUES (?, ?, ?, ?)"
_HEAD = "UPDATE head SET revision = ? WHERE workflow = ?"
_LAST = "SELECT body FROM event WHERE workflow = ? AND seq > ? ORDER BY seq"


class Raw:
    """One connection to one file."""

    def __init__(self, path: Path, *, keyed: bool = False, shared: bool = False, synchronous: str = "FULL") -> None:
        self.path = path
        self._keyed = keyed
        self._shared = shared  # with other writers: then the next number is read in each transaction
        self._connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False)
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute(f"PRAGMA synchronous={synchronous}")
        self._connection.executescript(_SCHEMA)
        if keyed:
            self._connection.execute(_INDEX)
        self._newest = self._read_newest()

    def append(self, body: bytes, key: str) -> None:
        """Store one body durably."""
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        seq = self._next()
        connection.execute(_INSERT, (WORKFLOW, seq, body, key if self._keyed else None))
        if self._keyed:
            connection.execute(_HEAD, (seq, WORKFLOW))
        connection.execute("COMMIT")

    def append_many(self, bodies: Sequence[bytes], keys: Sequence[str]) -> None:
        """Store several bodies in one transaction, by executemany."""
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        first = self._next(len(bodies))
        named = keys if self._keyed else [None] * len(bodies)
        rows = [
            (WORKFLOW, seq, body, key) for seq, (body, key) in enumerate(zip(bodies, named, strict=True), start=first)
        ]
        connection.executemany(_INSERT, rows)
        if self._keyed:
            connection.execute(_HEAD, (first + len(rows) - 1, WORKFLOW))
        connection.execute("COMMIT")

    def last(self, count: int) -> list[bytes]:
        """Read the newest bodies."""
        newest = self._read_newest()
        return [body for (body,) in self._connection.execute(_LAST, (WORKFLOW, newest - count))]

    def bytes_on_disk(self) -> int:
        """Return the size of the file after the WAL was emptied into it."""
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return self.path.stat().st_size

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _next(self, count: int = 1) -> int:
        """Take numbers, and return the first."""
        newest = self._read_newest() if self._shared else self._newest
        self._newest = newest + count
        return newest + 1

    def _read_newest(self) -> int:
        newest = self._connection.execute("SELECT max(seq) FROM event WHERE workflow = ?", (WORKFLOW,)).fetchone()[0]
        return int(newest or 0)


def bytes_on_disk(path: Path) -> int:
    """Return the size of any SQLite file after its WAL was emptied into it; nobody else may have it open."""
    connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_S)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return path.stat().st_size
