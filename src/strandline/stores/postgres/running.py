"""One open transaction on one connection: what is asked, what may wait for the next question, and how it ends.

Each question costs a journey to the server. So a statement whose answer nobody needs is kept and travels with the next
one, the last ones with the COMMIT (libpq's pipeline mode): an append takes three journeys.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow

from strandline.errors import OutcomeUnknownError, StoreUnavailableError
from strandline.limits import LOG_PAGE_EVENTS
from strandline.stores.postgres.errors import map_error
from strandline.stores.postgres.place import Place
from strandline.stores.postgres.pool import Connection

Parameters = Mapping[str, object]
Cursor = psycopg.Cursor[TupleRow]

APP: Final = "strandline_app"
SWEEP: Final = "strandline_sweep"
OPERATOR: Final = "strandline_operator"

BEGIN_WRITE: Final = "BEGIN ISOLATION LEVEL READ COMMITTED"
BEGIN_READ: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
# All of it ends with the transaction: behind a pooler the next one may be somebody else's.
_SETTINGS: Final = (
    "SELECT set_config('role', %(role)s, true), set_config('strandline.tenant', %(tenant)s, true),"
    " set_config('strandline.tenant_id', %(tenant_id)s, true), set_config('strandline.store', %(store)s, true),"
    " set_config('statement_timeout', %(statement)s, true), set_config('lock_timeout', %(lock)s, true),"
    " set_config('idle_in_transaction_session_timeout', %(idle)s, true)"
)
_TENANT: Final = "SELECT set_config('strandline.tenant_id', %(tenant_id)s, true)"
_ALIVE: Final = (TransactionStatus.IDLE, TransactionStatus.INTRANS, TransactionStatus.INERROR)


class Running:
    """A transaction. It raises the driver's errors until `begun`; from then on ours."""

    def __init__(self, connection: Connection, place: Place, *, writes: bool) -> None:
        self.place = place
        self.writes = writes
        self.over = False
        self._connection = connection
        self._waiting: list[tuple[str, Parameters]] = []
        self._streams = 0

    # ------------------------------------------------------------------------------------------ the beginning

    def begin(self, *, tenant: str = "", tenant_id: int | None = None, role: str = APP, store: str = "") -> None:
        """Begin, and say as whom and for whom; both travel with the first question."""
        self._waiting.append((BEGIN_WRITE if self.writes else BEGIN_READ, {}))
        settings = {
            "role": role,
            "tenant": tenant,
            "tenant_id": "" if tenant_id is None else str(tenant_id),
            "store": store,
            "statement": _milliseconds(self.place.statement_timeout_s),
            "lock": _milliseconds(self.place.lock_timeout_s),
            "idle": _milliseconds(self.place.idle_timeout_s),
        }
        self._waiting.append((_SETTINGS, settings))

    def turn_to(self, tenant_id: int) -> None:
        """Say for which tenant, once its number is known."""
        self._waiting.append((_TENANT, {"tenant_id": str(tenant_id)}))

    # ------------------------------------------------------------------------------------------ statements

    def ask(self, text: str, parameters: Parameters) -> Cursor:
        """Run what waits, then this; raises the driver's errors."""
        if self.over:
            raise StoreUnavailableError(f"{self.place.shown}: the transaction is over")
        connection = self._connection
        if not self._waiting:
            return connection.cursor(binary=True).execute(text, parameters)
        waiting, self._waiting = self._waiting, []
        with connection.pipeline():
            for earlier, with_these in waiting:
                connection.cursor(binary=True).execute(earlier, with_these)
            return connection.cursor(binary=True).execute(text, parameters)

    def send(self, text: str, parameters: Parameters) -> None:
        """Run a statement whose answer nobody needs: with the next one. A reading transaction refuses it at once."""
        if self.over:
            raise StoreUnavailableError(f"{self.place.shown}: the transaction is over")
        if self.writes:
            self._waiting.append((text, parameters))
        else:
            self.ask(text, parameters)

    def stream(self, text: str, parameters: Parameters) -> Iterator[TupleRow]:
        """Yield the rows of a query that gives them in order, LOG_PAGE_EVENTS at a time."""
        page = self.ask(f"{text} LIMIT {LOG_PAGE_EVENTS}", parameters).fetchall()
        yield from page
        if len(page) < LOG_PAGE_EVENTS:
            return
        self._streams += 1
        with self._connection.cursor(f"stream_{self._streams}", binary=True) as cursor:
            cursor.execute(f"{text} OFFSET {LOG_PAGE_EVENTS}", parameters)
            while not self.over and (page := cursor.fetchmany(LOG_PAGE_EVENTS)):
                yield from page

    # ------------------------------------------------------------------------------------------ the end

    def commit(self) -> None:
        """Commit.

        Raises:
            StoreUnavailableError, CorruptRecordError: the server answered that it did not.
            OutcomeUnknownError: the answer was not seen (I19).
        """
        connection = self._connection
        try:
            cursor = self.ask("COMMIT", {})
        except psycopg.Error as error:
            answered = error.sqlstate is not None and not connection.closed
            if answered and connection.info.transaction_status in _ALIVE:
                raise map_error(error, self.place) from error
            said = self.place.hide(str(error).strip().partition("\n")[0])
            raise OutcomeUnknownError(f"{self.place.shown}: the commit was not acknowledged: {said}") from error
        finally:
            self.over = True
        if cursor.statusmessage != "COMMIT":  # so PostgreSQL answers where a statement before has failed
            raise StoreUnavailableError(f"{self.place.shown}: a statement before had failed; nothing was written")

    def roll_back(self) -> None:
        """Undo everything. A connection that can't is left as it is: the pool closes it, and so the server undoes."""
        self.over = True
        self._waiting.clear()
        connection = self._connection
        if connection.closed or connection.info.transaction_status not in _ALIVE:
            return
        try:
            connection.execute("ROLLBACK")
        except psycopg.Error:
            connection.close()


def _milliseconds(seconds: float) -> str:
    return str(max(1, round(seconds * 1000)))
