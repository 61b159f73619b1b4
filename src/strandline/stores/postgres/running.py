"""One open transaction on one connection: what is asked, what may wait for the next question, and how it ends.

Each question costs a journey to the server. So a statement whose answer nobody needs is kept and travels with the next
one, the last ones with the COMMIT (libpq's pipeline mode): an append takes three journeys.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Final

import psycopg
from psycopg.pq import TransactionStatus

from strandline.errors import OutcomeUnknownError, StoreUnavailableError
from strandline.limits import LOG_PAGE_EVENTS
from strandline.ports import KeyTakenError
from strandline.stores.postgres.errors import is_key_taken, map_error
from strandline.stores.postgres.place import Place
from strandline.stores.postgres.wire import Answer, Question, Statement, Values, Wire
from strandline.stores.sql.session import Row

APP: Final = "strandline_app"
SWEEP: Final = "strandline_sweep"
OPERATOR: Final = "strandline_operator"

_BEGIN_WRITE: Final = Statement("BEGIN ISOLATION LEVEL READ COMMITTED")
_BEGIN_READ: Final = Statement("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
_COMMIT: Final = Statement("COMMIT")
_ROLLBACK: Final = Statement("ROLLBACK")
_TENANT: Final = ("tenant", "tenant_id", "store")  # what differs from one transaction to the next
_TURN_TO: Final = Statement("SELECT set_config('strandline.tenant_id', $1, true)", ("tenant_id",))
_OPEN: Final = (TransactionStatus.INTRANS, TransactionStatus.INERROR)
_ALIVE: Final = (TransactionStatus.IDLE, *_OPEN)


class Running:
    """A transaction. It raises the driver's errors until `begun`; from then on ours."""

    def __init__(self, wire: Wire, place: Place, *, writes: bool) -> None:
        self.place = place
        self.writes = writes
        self.over = False
        self._wire = wire
        self._waiting: list[Question] = []
        self._streams = 0

    # ------------------------------------------------------------------------------------------ the beginning

    def begin(self, *, tenant: str = "", tenant_id: int | None = None, role: str = APP, store: str = "") -> None:
        """Begin, and say as whom and for whom; both travel with the first question."""
        settings = {"tenant": tenant, "tenant_id": "" if tenant_id is None else str(tenant_id), "store": store}
        begin = _BEGIN_WRITE if self.writes else _BEGIN_READ
        self._waiting += [(begin, {}), (_settings_of(self.place, role), settings)]

    def turn_to(self, tenant_id: int) -> None:
        """Say for which tenant, once its number is known."""
        self._waiting.append((_TURN_TO, {"tenant_id": str(tenant_id)}))

    # ------------------------------------------------------------------------------------------ statements

    def ask(self, statement: Statement, values: Values) -> Answer:
        """Run what waits, then this; raises the driver's errors, also those of what waited."""
        if self.over:
            raise StoreUnavailableError(f"{self.place.shown}: the transaction is over")
        questions, self._waiting = [*self._waiting, (statement, values)], []
        return self._wire.ask(questions)

    def send(self, statement: Statement, values: Values) -> None:
        """Run a statement whose answer nobody needs: with the next one. A reading transaction refuses it at once."""
        if self.over:
            raise StoreUnavailableError(f"{self.place.shown}: the transaction is over")
        if self.writes:
            self._waiting.append((statement, values))
        else:
            self.ask(statement, values)

    def stream(self, statement: Statement, values: Values) -> Iterator[Row]:
        """Yield the rows of a query that gives them in order, LOG_PAGE_EVENTS at a time: most have one page."""
        text, names = statement.text, statement.names
        page = self.ask(Statement(f"{text} LIMIT {LOG_PAGE_EVENTS}", names), values).rows
        yield from page
        if len(page) < LOG_PAGE_EVENTS:
            return
        self._streams += 1
        cursor = f"strandline_{self._streams}"
        rest = Statement(f"DECLARE {cursor} NO SCROLL CURSOR FOR {text} OFFSET {LOG_PAGE_EVENTS}", names)
        self._waiting.append((rest, values))
        while page:
            page = self.ask(Statement(f"FETCH {LOG_PAGE_EVENTS} FROM {cursor}"), {}).rows
            yield from page
        self._waiting.append((Statement(f"CLOSE {cursor}"), {}))

    # ------------------------------------------------------------------------------------------ the end

    def commit(self) -> None:
        """Commit.

        Raises:
            KeyTakenError: an event that waited has a key that is taken; nothing was written.
            StoreUnavailableError, CorruptRecordError: the server answered that it did not commit.
            OutcomeUnknownError: the answer was not seen (I19).
        """
        connection = self._wire.connection
        try:
            answer = self.ask(_COMMIT, {})
        except psycopg.Error as error:
            if is_key_taken(error):
                raise KeyTakenError from error
            answered = error.sqlstate is not None and not connection.closed
            if answered and connection.info.transaction_status in _ALIVE:
                raise map_error(error, self.place) from error
            said = self.place.hide(str(error).strip().partition("\n")[0])
            raise OutcomeUnknownError(f"{self.place.shown}: the commit was not acknowledged: {said}") from error
        finally:
            self.over = True
        if answer.tag != "COMMIT":  # so PostgreSQL answers where a statement before has failed
            raise StoreUnavailableError(f"{self.place.shown}: a statement before had failed; nothing was written")

    def end(self) -> None:
        """End what is not committed. A connection that can't is closed by the pool, and so the server undoes it."""
        self.over = True
        self._waiting.clear()
        connection = self._wire.connection
        if connection.closed or self._wire.inherited or connection.info.transaction_status not in _OPEN:
            return
        try:
            self._wire.ask([(_ROLLBACK, {})])
        except psycopg.Error:
            connection.close()


@cache
def _settings_of(place: Place, role: str) -> Statement:
    """Return the statement that says as whom, for whom and how long. All of it ends with the transaction: behind a
    pooler the next one may be somebody else's.
    """
    fixed = {
        "role": role,
        "statement_timeout": _milliseconds(place.statement_timeout_s),
        "lock_timeout": _milliseconds(place.lock_timeout_s),
        "idle_in_transaction_session_timeout": _milliseconds(place.idle_timeout_s),
    }
    told = [f"set_config('{name}', '{value}', true)" for name, value in fixed.items()]
    told += [f"set_config('strandline.{name}', ${number}, true)" for number, name in enumerate(_TENANT, start=1)]
    return Statement("SELECT " + ", ".join(told), _TENANT)


def _milliseconds(seconds: float) -> str:
    return str(max(1, round(seconds * 1000)))
