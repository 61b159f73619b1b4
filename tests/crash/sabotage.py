"""Ways to break the library on purpose, in one process: what `syscalls.py --sabotage` must find."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import Final

from strandline.stores.sqlite import session as sqlite_session
from strandline.stores.sqlite import store as sqlite_store
from strandline.stores.sqlite.group_commit import GroupCommit
from strandline.stores.sqlite.session import SqliteSession
from strandline.stores.sqlite.store import SqliteStore

Sabotage = Callable[[], None]


def nothing_broken() -> None:
    """Leave the library as it is."""


def split_commits() -> None:
    """Commit when events are inserted, and the rest of the transaction by another commit."""
    insert = SqliteSession.insert_events

    def insert_and_commit(self: SqliteSession, rows: Sequence[Sequence[object]], *, may_wait: bool) -> None:
        insert(self, rows, may_wait=may_wait)
        self._connection.execute("COMMIT")
        self._connection.execute("BEGIN IMMEDIATE")

    SqliteSession.insert_events = insert_and_commit  # type: ignore[method-assign]


def keep_the_journal_in_memory() -> None:
    """Write into the store with a journal that dies with the process."""
    connect = SqliteStore.connect

    def connect_carelessly(self: SqliteStore, *, read_only: bool) -> sqlite3.Connection:
        connection = connect(self, read_only=read_only)
        if not read_only:
            connection.execute("PRAGMA journal_mode=MEMORY")
        return connection

    SqliteStore.connect = connect_carelessly  # type: ignore[method-assign]


def ignore_failed_commits() -> None:
    """Acknowledge what could not be committed."""
    settle = GroupCommit._settle

    def settle_anyway(self: GroupCommit) -> None:
        group = self._group
        settle(self)
        if group is not None:
            group.error = None

    GroupCommit._settle = settle_anyway  # type: ignore[method-assign]


def acknowledge_before_the_commit() -> None:
    """Leave a write's transaction open for the next one, or for the end, and acknowledge it."""

    def give_back(self: GroupCommit, turn: object, *, joins: bool) -> None:
        self._holder = None

    GroupCommit._give_back = give_back  # type: ignore[method-assign,assignment]


def raise_what_sqlite_raises() -> None:
    """Let errors of SQLite through, as they are."""
    sqlite_session.map_error = sqlite_store.map_error = lambda error, path: error  # type: ignore[assignment]


SABOTAGES: Final[dict[str, Sabotage]] = {
    "split-commits": split_commits,
    "journal-in-memory": keep_the_journal_in_memory,
    "ignored-errors": ignore_failed_commits,
    "early-acknowledgement": acknowledge_before_the_commit,
    "untyped-errors": raise_what_sqlite_raises,
}
