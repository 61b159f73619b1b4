"""PostgreSQL as a side of a copy (C6, ADR 0045).

The source is read as strandline_operator, who sees every tenant; rows are written as strandline_app, tenant by tenant,
so that row-level security judges them as any others. Only store_meta, and the numbers to come, are the owner's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Final

import psycopg

from strandline.errors import InvalidInputError, OutcomeUnknownError
from strandline.limits import COPY_FETCH_ROWS
from strandline.stores.postgres.errors import map_error
from strandline.stores.postgres.place import Place
from strandline.stores.postgres.pool import connect
from strandline.stores.postgres.running import APP, OPERATOR
from strandline.stores.postgres.wire import Connection
from strandline.stores.sql.session import Row

_PARAMETER: Final = re.compile(r"(?<!:):([a-z_]+)")
_OWNER: Final = "none"  # the role of who connected
# No timeouts: a snapshot stays open while the other side writes, and a long table is one question.
_SETTINGS: Final = (
    "SELECT set_config('search_path', %(schema)s, true), set_config('role', %(role)s, true),"
    " set_config('statement_timeout', '0', true), set_config('idle_in_transaction_session_timeout', '0', true),"
    " set_config('strandline.tenant', %(tenant)s, true), set_config('strandline.tenant_id', %(tenant_id)s, true),"
    " set_config('strandline.store', 'open', true)"
)
_COLUMNS: Final = (
    "SELECT attname FROM pg_attribute JOIN pg_class c ON c.oid = attrelid"
    " WHERE c.relname = :name AND c.relnamespace = CAST(:place AS regnamespace) AND attnum > 0 AND NOT attisdropped"
    " ORDER BY attnum"
)
_ALONE: Final = "SELECT pg_advisory_xact_lock(hashtext('strandline copy'), hashtext(%(schema)s))"
_NUMBERED: Final = (("tenant", "tenant_id"), ("workflow", "workflow_id"))


class PostgresEnd:
    """`stores.sql.transfer.End` over one schema."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self.place = place.shown

    @contextmanager
    def reading(self) -> Iterator[_Rows]:
        with _mapped(self._place), closing(connect(self._place)) as connection:
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            connection.execute(_SETTINGS, _settings(self._place, OPERATOR))
            yield _Rows(connection, self._place)

    @contextmanager
    def writing(self) -> Iterator[_Target]:
        with _mapped(self._place), closing(connect(self._place)) as connection:
            yield _Target(connection, self._place)  # what is open when the connection closes is undone

    def close(self) -> None:
        pass


class _Rows:
    """`Reading`."""

    def __init__(self, connection: Connection, place: Place) -> None:
        self._connection = connection
        self._place = place
        self._streams = 0

    def columns(self, table: str) -> tuple[str, ...]:
        return tuple(row[0] for row in self.rows(_COLUMNS, name=table, place=_quoted(self._place.schema)))

    def rows(self, statement: str, **parameters: object) -> list[Row]:
        with _mapped(self._place):
            return self._connection.cursor(binary=True).execute(_text(statement), parameters).fetchall()

    def stream(self, statement: str, **parameters: object) -> Iterator[Row]:
        page = self.rows(f"{statement} LIMIT {COPY_FETCH_ROWS}", **parameters)  # one journey, where few are there
        yield from page
        if len(page) < COPY_FETCH_ROWS:
            return
        self._streams += 1
        with _mapped(self._place), self._connection.cursor(f"copy_{self._streams}", binary=True) as cursor:
            cursor.execute(f"{_text(statement)} OFFSET {COPY_FETCH_ROWS}", parameters)
            while page := cursor.fetchmany(COPY_FETCH_ROWS):
                yield from page


class _Target(_Rows):
    """`Writing`."""

    _as: tuple[str, str, int | None] | None = None  # role, tenant and its number; None: no transaction is open
    _tenant: tuple[str, int] | None = None

    def _become(self, role: str, tenant: str = "", tenant_id: int | None = None) -> None:
        with _mapped(self._place):
            if self._as is None:
                self._connection.execute("BEGIN ISOLATION LEVEL READ COMMITTED")
                self._connection.execute(_ALONE, {"schema": self._place.schema})  # one copy at a time, batch by batch
            if self._as != (role, tenant, tenant_id):
                self._connection.execute(_SETTINGS, _settings(self._place, role, tenant, tenant_id))
                self._as = (role, tenant, tenant_id)

    def enter(self, tenant: str, tenant_id: int) -> None:
        self._tenant = (tenant, tenant_id)

    def columns(self, table: str) -> tuple[str, ...]:
        self._become(OPERATOR)
        place = _quoted(self._place.schema)
        return tuple(row[0] for row in super().rows(_COLUMNS, name=table, place=place))

    def all_rows(self, statement: str, **parameters: object) -> list[Row]:
        self._become(OPERATOR)
        return super().rows(statement, **parameters)

    def rows(self, statement: str, **parameters: object) -> list[Row]:
        self._become(APP, *(self._tenant or ()))
        return super().rows(statement, **parameters)

    def set_meta(self, name: str, value: bytes) -> None:
        self._become(_OWNER)
        text = (
            "INSERT INTO store_meta (name, value) VALUES (%(name)s, %(value)s)"
            " ON CONFLICT (name) DO UPDATE SET value = excluded.value"
        )
        with _mapped(self._place):
            self._connection.execute(text, {"name": name, "value": value})

    def run_many(self, statement: str, rows: Iterable[Mapping[str, object]]) -> None:
        self._become(APP, *(self._tenant or ()))
        with _mapped(self._place):
            try:
                self._connection.cursor().executemany(_text(statement), list(rows))
            except psycopg.DataError as error:
                if error.sqlstate is not None:
                    raise
                raise InvalidInputError(
                    f"{self.place}: PostgreSQL can't hold a row of the source: {error}; it was not copied",
                    hint=f"The statement is: {statement[:200]}",
                ) from error

    @property
    def place(self) -> str:
        """Where it is, without its password."""
        return self._place.shown

    def commit(self) -> None:
        if self._as is None:
            return
        self._as = None
        try:
            self._connection.execute("COMMIT")
        except psycopg.Error as error:
            raise OutcomeUnknownError(
                f"{self.place}: a commit was not acknowledged: {self._place.hide(str(error).strip())}",
                hint="Run the copy again: what was committed is passed over.",
            ) from error

    def finish(self) -> None:
        for table, column in _NUMBERED:
            highest = self.all_rows(f"SELECT max({column}) FROM {table}")[0][0]  # noqa: S608  our names
            if highest is not None:
                self._become(_OWNER)
                super().rows(
                    "SELECT setval(pg_get_serial_sequence(:name, :place), :most)",
                    name=f"{_quoted(self._place.schema)}.{table}",
                    place=column,
                    most=highest,
                )


def _text(statement: str) -> str:
    return _PARAMETER.sub(r"%(\1)s", statement)


def _settings(place: Place, role: str, tenant: str = "", tenant_id: int | None = None) -> dict[str, object]:
    number = "" if tenant_id is None else str(tenant_id)
    return {"schema": _quoted(place.schema), "role": role, "tenant": tenant, "tenant_id": number}


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@contextmanager
def _mapped(place: Place) -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        raise map_error(error, place) from error
