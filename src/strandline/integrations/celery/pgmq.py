"""The queue on PostgreSQL: its SQL comes with the package `pgmq`; the server needs no extension."""

from __future__ import annotations

from typing import Final

from strandline.integrations.celery.extra import needs_extra
from strandline.integrations.celery.settings import transport_options
from strandline.limits import BROKER_TIMEOUT_S

_FIND: Final = "SELECT to_regclass('pgmq.meta') IS NOT NULL"
_LOCK: Final = 0x7067_6D71  # "pgmq": two workers that start at once install it once


def installed(broker_url: str) -> bool:
    """Tell whether PGMQ's SQL is in the broker's database.

    Raises:
        InvalidInputError: a package of the extra is missing.
        psycopg.Error: the database can't be reached.
    """
    with needs_extra():
        import psycopg
    with psycopg.connect(_dsn(broker_url), connect_timeout=int(BROKER_TIMEOUT_S)) as connection:
        return _found(connection.execute(_FIND).fetchone())


def install_pgmq(broker_url: str) -> bool:
    """Install PGMQ's SQL in the broker's database where it is not there yet; return whether it was not.

    Args:
        broker_url: "pgmq://user@host:port/database". The user may create schemas.

    Raises:
        InvalidInputError: a package of the extra is missing.
        psycopg.Error: the database can't be reached, or the user may not.
    """
    with needs_extra():
        import psycopg
        from pgmq.install import get_embedded_install_sql
    with psycopg.connect(_dsn(broker_url), connect_timeout=int(BROKER_TIMEOUT_S)) as connection:
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        there = _found(connection.execute(_FIND).fetchone())
        if not there:
            connection.execute(get_embedded_install_sql().encode())
        return not there


def _dsn(broker_url: str) -> str:
    return str(transport_options(broker_url)["conn_string"])


def _found(row: tuple[object, ...] | None) -> bool:
    return row is not None and bool(row[0])
