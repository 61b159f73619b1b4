"""The statements of one workflow in an open transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import psycopg

from strandline.ports import KeyTakenError
from strandline.stores.postgres.errors import is_key_taken, map_error
from strandline.stores.postgres.running import Running
from strandline.stores.postgres.statements import Statements
from strandline.stores.postgres.wire import Answer, Statement
from strandline.stores.sql.session import UNKNOWN_ID, Row

_SAVEPOINT: Final = Statement("SAVEPOINT insert_events")
_RELEASE: Final = Statement("RELEASE insert_events")
_ROLLBACK: Final = Statement("ROLLBACK TO insert_events")


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

    def _ours(self, error: psycopg.Error) -> Exception:
        return KeyTakenError() if is_key_taken(error) else map_error(error, self._running.place)

    def _bound(self, parameters: dict[str, object]) -> dict[str, object]:
        parameters["tenant_id"], parameters["workflow_id"] = self.ids
        return parameters

    def _ask(self, statement: Statement, parameters: dict[str, object]) -> Answer:
        try:
            return self._running.ask(statement, parameters)
        except psycopg.Error as error:
            raise self._ours(error) from error

    def relative(self, workflow: str, *, locked: bool = False) -> PostgresSession:
        name = {"tenant_id": self.ids[0], "name": workflow}
        rows = self._ask(self._statements["find_workflow"], name).rows
        ids = (self.ids[0], rows[0][0] if rows else UNKNOWN_ID)
        found = PostgresSession(self._running, self._statements, self.digest_key, ids)
        if locked and self._running.writes:
            found._head = self._ask(self._statements.locked_head, found._bound({})).rows
        return found

    def rows(self, query: str, **parameters: object) -> list[Row]:
        if query == "head" and self._head is not None:
            rows, self._head = self._head, None
            return rows
        return self._ask(self._statements[query], self._bound(parameters)).rows

    def stream(self, query: str, **parameters: object) -> Iterator[Row]:
        try:
            yield from self._running.stream(self._statements[query], self._bound(parameters))
        except psycopg.Error as error:
            raise self._ours(error) from error

    def run(self, query: str, **parameters: object) -> int:
        return self._ask(self._statements[query], self._bound(parameters)).count

    def send(self, query: str, **parameters: object) -> None:
        self._send(self._statements[query], self._bound(parameters))

    def _send(self, statement: Statement, parameters: dict[str, object]) -> None:
        try:
            self._running.send(statement, parameters)
        except psycopg.Error as error:
            raise self._ours(error) from error

    def run_many(self, query: str, rows: Iterable[Sequence[object]]) -> None:
        many = list(rows)
        if many:
            insert = self._statements.for_many(query)
            self._send(insert.statement, self._bound(insert.values(many)))

    def insert_events(self, rows: Sequence[Sequence[object]], *, may_wait: bool) -> None:
        insert = self._statements.for_many("insert_event")
        if len(rows) == 1:
            event = self._bound(dict(zip(insert.columns, rows[0], strict=True)))
            if may_wait or event["key"] is None:
                self._send(self._statements["insert_event"], event)
            elif self._ask(self._statements.insert_if_free, event).count == 0:
                raise KeyTakenError
        elif rows:
            events = self._bound(insert.values(rows))
            place = insert.columns.index("key")
            if may_wait or all(row[place] is None for row in rows):
                self._send(insert.statement, events)
            else:
                self._insert_or_undo(insert.statement, events)

    def _insert_or_undo(self, statement: Statement, events: dict[str, object]) -> None:
        """Insert several; when a key is taken none of them stays, and the transaction goes on."""
        self._send(_SAVEPOINT, {})
        try:
            self._ask(statement, events)
        except KeyTakenError:
            self._ask(_ROLLBACK, {})
            raise
        finally:
            self._send(_RELEASE, {})
