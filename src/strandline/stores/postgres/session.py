"""The statements of one workflow in an open transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import psycopg

from strandline.ports import KeyTakenError
from strandline.stores.postgres.errors import map_error
from strandline.stores.postgres.running import Running
from strandline.stores.postgres.statements import LOCKED, Statements
from strandline.stores.sql.session import UNKNOWN_ID, Row

_EVENT_KEY: Final = "event_key"
_SAVEPOINT: Final = "insert_events"


class PostgresSession:
    """`stores.sql.session.Session` over psycopg. Once its transaction is over it refuses everything."""

    def __init__(
        self,
        running: Running,
        statements: Statements,
        digest_key: bytes,
        ids: tuple[int, int],
        head: list[Row] | None = None,
    ) -> None:
        self.digest_key = digest_key
        self.ids = ids
        self._running = running
        self._statements = statements
        self._head = head  # as the beginning of the transaction read it, for who asks first

    def _bound(self, parameters: dict[str, object]) -> dict[str, object]:
        parameters["tenant_id"], parameters["workflow_id"] = self.ids
        return parameters

    def _ask(self, text: str, parameters: dict[str, object]) -> psycopg.Cursor[Row]:
        try:
            return self._running.ask(text, parameters)
        except psycopg.Error as error:
            raise map_error(error, self._running.place) from error

    def relative(self, workflow: str, *, locked: bool = False) -> PostgresSession:
        text = self._statements["find_workflow"]
        rows = self._ask(text, {"tenant_id": self.ids[0], "name": workflow}).fetchall()
        ids = (self.ids[0], rows[0][0] if rows else UNKNOWN_ID)
        found = PostgresSession(self._running, self._statements, self.digest_key, ids)
        if locked and self._running.writes:
            found._head = self._ask(self._statements["head"] + LOCKED, found._bound({})).fetchall()
        return found

    def rows(self, query: str, **parameters: object) -> list[Row]:
        if query == "head" and self._head is not None:
            rows, self._head = self._head, None
            return rows
        return self._ask(self._statements[query], self._bound(parameters)).fetchall()

    def stream(self, query: str, **parameters: object) -> Iterator[Row]:
        try:
            yield from self._running.stream(self._statements[query], self._bound(parameters))
        except psycopg.Error as error:
            raise map_error(error, self._running.place) from error

    def run(self, query: str, **parameters: object) -> int:
        return self._ask(self._statements[query], self._bound(parameters)).rowcount

    def send(self, query: str, **parameters: object) -> None:
        self._send(self._statements[query], self._bound(parameters))

    def _send(self, text: str, parameters: dict[str, object]) -> None:
        try:
            self._running.send(text, parameters)
        except psycopg.Error as error:
            raise map_error(error, self._running.place) from error

    def run_many(self, query: str, rows: Iterable[Sequence[object]]) -> None:
        values = list(rows)
        if values:
            self._send(*self._with_arrays(query, values))

    def _with_arrays(self, query: str, rows: Sequence[Sequence[object]]) -> tuple[str, dict[str, object]]:
        text, columns = self._statements.for_many(query)
        arrays = (list(column) for column in zip(*rows, strict=True))
        return text, self._bound(dict(zip(columns, arrays, strict=True)))

    def insert_events(self, rows: Sequence[Sequence[object]]) -> None:
        _, columns = self._statements.for_many("insert_event")
        key = columns.index("key")
        if len(rows) > 1:
            self._insert_several(rows, keyed=any(row[key] is not None for row in rows))
        elif rows:
            event = self._bound(dict(zip(columns, rows[0], strict=True)))
            if rows[0][key] is None:
                self._send(self._statements["insert_event"], event)
            elif self._ask(self._statements.insert_if_free, event).rowcount == 0:
                raise KeyTakenError

    def _insert_several(self, rows: Sequence[Sequence[object]], *, keyed: bool) -> None:
        text, arrays = self._with_arrays("insert_event", rows)
        if not keyed:
            self._send(text, arrays)
            return
        self._send(f"SAVEPOINT {_SAVEPOINT}", {})
        try:
            self._running.ask(text, arrays)
        except psycopg.errors.UniqueViolation as error:
            if error.diag.constraint_name != _EVENT_KEY:
                raise map_error(error, self._running.place) from error
            self._ask(f"ROLLBACK TO {_SAVEPOINT}", {})
            self._send(f"RELEASE {_SAVEPOINT}", {})
            raise KeyTakenError from error
        except psycopg.Error as error:
            raise map_error(error, self._running.place) from error
        self._send(f"RELEASE {_SAVEPOINT}", {})
