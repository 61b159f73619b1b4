"""One transaction on one SQLite connection, and what SQLite's errors mean to us."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from functools import cache

from strandline.errors import CorruptRecordError, StoreUnavailableError, StrandlineError
from strandline.ports import KeyTakenError
from strandline.stores.sql.queries import load_queries
from strandline.stores.sql.session import Row

QUERIES = load_queries()
_CORRUPT = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


def map_error(error: sqlite3.Error, path: str) -> StrandlineError:
    """Return our error for one of SQLite's; the original becomes its cause."""
    code = getattr(error, "sqlite_errorcode", None)
    primary = code & 0xFF if code is not None else None
    if primary in _CORRUPT or (primary is None and "malformed" in str(error)):
        return CorruptRecordError(f"SQLite says: {error}", place=path)
    if primary == sqlite3.SQLITE_CONSTRAINT:
        return StoreUnavailableError(f"{path}: the store refused a write that breaks one of its rules: {error}")
    return StoreUnavailableError(f"{path}: {error}; nothing was written")


class SqliteSession:
    """`stores.sql.session.Session` over sqlite3."""

    def __init__(self, connection: sqlite3.Connection, digest_key: bytes, ids: tuple[int, int]) -> None:
        self.digest_key = digest_key
        self._connection = connection
        self._ids = ids

    def _bind(self, parameters: dict[str, object]) -> dict[str, object]:
        parameters["tenant_id"], parameters["workflow_id"] = self._ids
        return parameters

    def rows(self, query: str, **parameters: object) -> list[Row]:
        return self._connection.execute(QUERIES[query].text, self._bind(parameters)).fetchall()

    def stream(self, query: str, **parameters: object) -> Iterator[Row]:
        yield from self._connection.execute(QUERIES[query].text, self._bind(parameters))

    def run(self, query: str, **parameters: object) -> int:
        return self._connection.execute(QUERIES[query].text, self._bind(parameters)).rowcount

    def run_many(self, query: str, rows: Iterable[Sequence[object]]) -> None:
        self._connection.executemany(_numbered(query), [(*self._ids, *row) for row in rows])

    def insert_events(self, rows: Sequence[Sequence[object]]) -> None:
        self._connection.execute("SAVEPOINT insert_events")
        try:
            self.run_many("insert_event", rows)
        except sqlite3.IntegrityError as error:
            self._connection.execute("ROLLBACK TO insert_events")
            self._connection.execute("RELEASE insert_events")
            if "event.key" in str(error):
                raise KeyTakenError from error
            raise
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
