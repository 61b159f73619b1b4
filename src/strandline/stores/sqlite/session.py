"""One transaction on one SQLite connection, and what SQLite's errors mean to us."""

from __future__ import annotations

import shlex
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache

from strandline.errors import CorruptRecordError, StoreUnavailableError, StrandlineError
from strandline.limits import LOG_PAGE_EVENTS, STORE_BUSY_TIMEOUT_S
from strandline.ports import KeyTakenError
from strandline.stores.sql.queries import load_queries
from strandline.stores.sql.session import UNKNOWN_ID, Row

QUERIES = load_queries()
_DAMAGED = ("malformed", "Could not decode to UTF-8")  # errors of the driver itself bear no code
_CORRUPT = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


SQLITE_RAISES = (sqlite3.Error, UnicodeDecodeError)  # the driver can't decode a message that quotes damaged text


def map_error(error: sqlite3.Error | UnicodeDecodeError, path: str) -> StrandlineError:
    """Return our error for one of SQLite's; the original becomes its cause."""
    if isinstance(error, UnicodeDecodeError):
        said = error.object.decode(errors="backslashreplace")
        return CorruptRecordError(f"SQLite says: {said}", place=path)
    code = getattr(error, "sqlite_errorcode", None)
    primary = code & 0xFF if code is not None else None
    if primary in _CORRUPT or (primary is None and any(mark in str(error) for mark in _DAMAGED)):
        what = (
            "no store, or its first bytes are damaged" if primary == sqlite3.SQLITE_NOTADB else f"SQLite says: {error}"
        )
        return CorruptRecordError(what, place=path)
    if primary == sqlite3.SQLITE_CONSTRAINT:
        return StoreUnavailableError(f"{path}: the store refused a write that breaks one of its rules: {error}")
    hint = locked_hint(path) if primary in _BUSY else None
    return StoreUnavailableError(f"{path}: {error}; nothing was written", hint=hint)


def locked_hint(path: str) -> str:
    """Return what to do about a store that somebody holds."""
    file = shlex.quote(path)
    return (
        f"A write waits {STORE_BUSY_TIMEOUT_S:g} s (STORE_BUSY_TIMEOUT_S); somebody held the store for longer: another "
        f"process (`fuser {file}` names those that have it open), or a write of this one that has not ended. End it or "
        f"wait, then try again. `strandline doctor --store {file}` looks at locks, disk and permissions."
    )


class SqliteSession:
    """`stores.sql.session.Session` over sqlite3. Once its transaction is over it refuses everything."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        digest_key: bytes,
        ids: tuple[int, int],
        path: str,
        first: SqliteSession | None = None,
    ) -> None:
        self.digest_key = digest_key
        self._over = False
        self._first = first  # the one whose transaction this is, for that of a relative
        self._connection = connection
        self.ids = ids
        self._path = path

    @property
    def over(self) -> bool:
        """Whether the transaction has ended."""
        return self._over if self._first is None else self._first.over

    def end(self) -> None:
        """Refuse everything from now on."""
        self._over = True

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        if self.over:
            raise StoreUnavailableError(f"{self._path}: the transaction is over")
        try:
            yield
        except SQLITE_RAISES as error:
            raise map_error(error, self._path) from error

    def _execute(self, query: str, parameters: dict[str, object]) -> sqlite3.Cursor:
        if self.over:
            raise StoreUnavailableError(f"{self._path}: the transaction is over")
        parameters["tenant_id"], parameters["workflow_id"] = self.ids
        try:
            return self._connection.execute(QUERIES[query].text, parameters)
        except SQLITE_RAISES as error:
            raise map_error(error, self._path) from error

    def relative(self, workflow: str, *, locked: bool = False) -> SqliteSession:  # who writes holds the whole file
        with self._guarded():
            parameters = {"tenant_id": self.ids[0], "name": workflow}
            row = self._connection.execute(QUERIES["find_workflow"].text, parameters).fetchone()
        ids = (self.ids[0], row[0] if row else UNKNOWN_ID)
        return SqliteSession(self._connection, self.digest_key, ids, self._path, self)

    def rows(self, query: str, **parameters: object) -> list[Row]:
        cursor = self._execute(query, parameters)
        try:
            return cursor.fetchall()
        except SQLITE_RAISES as error:
            raise map_error(error, self._path) from error

    def stream(self, query: str, **parameters: object) -> Iterator[Row]:
        cursor = self._execute(query, parameters)
        while True:
            with self._guarded():
                page = cursor.fetchmany(LOG_PAGE_EVENTS)
            if not page:
                return
            yield from page

    def run(self, query: str, **parameters: object) -> int:
        return self._execute(query, parameters).rowcount

    def send(self, query: str, **parameters: object) -> None:
        self._execute(query, parameters)

    def run_many(self, query: str, rows: Iterable[Sequence[object]]) -> None:
        values = [(*self.ids, *row) for row in rows]
        with self._guarded():
            if values:
                self._connection.executemany(_numbered(query), values)

    def insert_events(self, rows: Sequence[Sequence[object]], *, may_wait: bool) -> None:
        several = len(rows) > 1  # a single statement is all or nothing by itself
        with self._guarded():
            if several:
                self._connection.execute("SAVEPOINT insert_events")
            try:
                self._connection.executemany(_numbered("insert_event"), [(*self.ids, *row) for row in rows])
            except sqlite3.IntegrityError as error:
                if several:
                    self._connection.execute("ROLLBACK TO insert_events")
                    self._connection.execute("RELEASE insert_events")
                if "event.key" in str(error):
                    raise KeyTakenError from error
                raise
            if several:
                self._connection.execute("RELEASE insert_events")


@cache
def _numbered(query: str) -> str:
    """Return the statement with `?1, ?2, …` in place of its names, in order of first appearance: rows are tuples."""
    names = QUERIES[query].parameters
    if names[:2] != ("tenant_id", "workflow_id"):
        raise AssertionError(f"a statement for many rows begins with tenant and workflow: {query}")
    text = QUERIES[query].text
    for number, name in sorted(enumerate(names, start=1), key=lambda pair: -len(pair[1])):
        text = text.replace(f":{name}", f"?{number}")
    return text
