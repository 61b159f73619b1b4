"""Questions and answers over one connection: several statements go out at once, and one wait brings their answers.

It stands on psycopg's libpq, below its cursors: they send each statement by itself and wait after each, which costs an
append more than all the rest (ADR 0037). Texts and numbers are given as the server infers them, so that each statement
is prepared once, whatever its values.
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import psycopg
from psycopg.abc import PQGen
from psycopg.adapt import Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ConnStatus, ExecStatus, Format, PipelineStatus
from psycopg.pq.abc import PGconn, PGresult
from psycopg.rows import TupleRow
from psycopg.waiting import Ready, Wait

from strandline.limits import POSTGRES_SILENCE_S
from strandline.stores.sql.session import Row

Connection = psycopg.Connection[TupleRow]
Values = Mapping[str, object]

_LENGTH: Final = struct.Struct("!i")
_NUMBER: Final = struct.Struct("!iq")  # length, number
_ARRAY: Final = struct.Struct("!iiIii")  # dimensions, whether there are nulls, type of the elements, their number, 1
_NULL: Final = _LENGTH.pack(-1)
_NUMBER_BYTES: Final = 8
_NAME_DIGITS: Final = 32  # a name of PostgreSQL has 63 bytes
_BIGINT, _BYTEA, _TEXT = 20, 17, 25  # oids of pg_type, which never change
ARRAY_OIDS: Final = {"bigint": _BIGINT, "bytea": _BYTEA, "text": _TEXT}
_FAILED: Final = (ExecStatus.FATAL_ERROR, ExecStatus.BAD_RESPONSE)


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement with `$1, $2, …`, and the names of these parameters in order."""

    text: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Column:
    """A parameter that is an array: one column of many rows."""

    oid: int  # of an element
    values: Sequence[object]


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server answered to one statement."""

    rows: list[Row]
    count: int  # of the rows that were changed or given
    tag: str


Question = tuple[Statement, Values]


class Wire:
    """A connection, and what is prepared on it."""

    def __init__(self, connection: Connection, *, prepare: bool, answer_timeout_s: float) -> None:
        self.connection = connection
        self._answer_timeout_s = answer_timeout_s
        self._prepare = prepare
        self._names: dict[str, bytes] = {}
        self._process = os.getpid()
        self._loader = Transformer(connection)

    @property
    def inherited(self) -> bool:
        """Whether it is a parent process's: what a forked child says on it would be taken for the parent's words."""
        return os.getpid() != self._process

    def ask(self, questions: Sequence[Question]) -> Answer:
        """Send the statements, and return the answer to the last one.

        Raises:
            psycopg.Error: the first of them that failed; those behind it were not run. Or the server was silent for
                `answer_timeout_s`: nobody waits for ever for who is there and says nothing (I22).
        """
        connection = self.connection
        if self.inherited:
            raise psycopg.InterfaceError("the connection is the parent process's, which goes on with it")
        if connection.closed:
            raise psycopg.OperationalError("the connection is closed")
        try:
            result = connection.wait(self._exchange(connection.pgconn, questions), POSTGRES_SILENCE_S)
        except BaseException:
            if connection.pgconn.status == ConnStatus.BAD or connection.pgconn.pipeline_status != PipelineStatus.OFF:
                connection.close()
            raise
        rows: list[Row] = []
        if result.status == ExecStatus.TUPLES_OK:
            self._loader.set_pgresult(result, format=Format.BINARY)
            rows = self._loader.load_rows(0, result.ntuples, tuple)
        return Answer(rows, result.command_tuples or 0, (result.command_status or b"").decode())

    def _exchange(self, pgconn: PGconn, questions: Sequence[Question]) -> PQGen[PGresult]:
        pgconn.enter_pipeline_mode()
        sent: list[tuple[str, bytes] | None] = []  # of each message that is answered: what it prepares, and its name
        for statement, values in questions:
            self._send(pgconn, statement, values, sent)
        pgconn.pipeline_sync()
        while pgconn.flush():
            if (yield from self._heard(Wait.RW)) & Ready.R:
                pgconn.consume_input()
        results = yield from self._receive(pgconn)
        pgconn.exit_pipeline_mode()
        answered = zip(sent, results, strict=False)
        self._names |= (told for told, result in answered if told and result.status == ExecStatus.COMMAND_OK)
        failed = next((result for result in results if result.status in _FAILED), None)
        if failed is not None:
            raise error_from_result(failed)
        return results[-1]

    def _receive(self, pgconn: PGconn) -> PQGen[list[PGresult]]:
        """Return the results up to the end of the exchange; of one that broke, those that came, if they tell."""
        results: list[PGresult] = []
        try:
            while True:
                while pgconn.is_busy():
                    yield from self._heard(Wait.R)
                    pgconn.consume_input()
                result = pgconn.get_result()
                if result is None:  # the end of one statement
                    if pgconn.status == ConnStatus.BAD:
                        raise psycopg.OperationalError(pgconn.get_error_message())
                elif result.status == ExecStatus.PIPELINE_SYNC:
                    return results
                else:
                    results.append(result)
        except psycopg.OperationalError:
            failed = [result for result in results if result.status in _FAILED and result.error_field(ord("C"))]
            if failed:
                raise error_from_result(failed[0]) from None
            raise

    def _heard(self, wait: Wait) -> PQGen[int]:
        """Wait until the connection is ready, and no longer than `answer_timeout_s`; psycopg wakes us in between."""
        for _ in range(max(1, round(self._answer_timeout_s / POSTGRES_SILENCE_S))):
            ready = yield wait
            if ready != Ready.NONE:
                return ready
        raise psycopg.OperationalError(
            f"the server has not answered for {self._answer_timeout_s:g} s (answer_timeout_s)"
        )

    def _send(self, pgconn: PGconn, statement: Statement, values: Values, sent: list[tuple[str, bytes] | None]) -> None:
        text = statement.text
        given, formats = _dump([values[name] for name in statement.names])
        if not self._prepare:
            pgconn.send_query_params(text.encode(), given, None, formats, Format.BINARY)
            sent.append(None)
            return
        name = self._names.get(text) or next((told[1] for told in sent if told and told[0] == text), None)
        if name is None:
            name = _name_of(text)
            pgconn.send_prepare(name, text.encode())
            sent.append((text, name))
        pgconn.send_query_prepared(name, given, formats, Format.BINARY)
        sent.append(None)


def _name_of(text: str) -> bytes:
    """Return the name of a prepared statement. It tells the text: behind a pooler that mixes up sessions a name that
    another client has given can be unknown or taken, and never that of another statement.
    """
    return b"strandline_" + hashlib.sha256(text.encode()).hexdigest()[:_NAME_DIGITS].encode()


def _dump(values: Iterable[object]) -> tuple[list[bytes | None], list[Format]]:
    """Return values as libpq takes them, and their formats: numbers as text, the rest in the server's own form."""
    given: list[bytes | None] = []
    formats = []
    for value in values:
        format_ = Format.BINARY
        if value is None or isinstance(value, bytes):
            given.append(value)
        elif isinstance(value, int):
            given.append(b"%d" % value)
            format_ = Format.TEXT
        elif isinstance(value, str):
            given.append(value.encode())
        elif isinstance(value, Column):
            given.append(_dump_column(value))
        else:
            raise TypeError(f"a {type(value).__name__} is no value of a statement")
        formats.append(format_)
    return given, formats


def _dump_column(column: Column) -> bytes:
    values = column.values
    parts = [_ARRAY.pack(1, None in values, column.oid, len(values), 1)]
    for value in values:
        if value is None:
            parts.append(_NULL)
        elif column.oid == _BIGINT:
            parts.append(_NUMBER.pack(_NUMBER_BYTES, value))
        else:
            data = value.encode() if isinstance(value, str) else value
            assert isinstance(data, bytes)
            parts.append(_LENGTH.pack(len(data)))
            parts.append(data)
    return b"".join(parts)
