"""The queue on PostgreSQL: its SQL comes with the package `pgmq`; the server needs no extension."""

from __future__ import annotations

from typing import Final

from strandline.errors import InvalidInputError
from strandline.integrations.celery.settings import transport_options
from strandline.integrations.extra import needs_extra
from strandline.limits import BROKER_TIMEOUT_S

_LOOK: Final = (
    "SELECT to_regclass('pgmq.meta') IS NOT NULL, has_database_privilege(current_database(), 'CREATE'), current_user"
)
_LOCK: Final = 0x7067_6D71  # "pgmq": two workers that start at once install it once


def look_at(broker_url: str) -> tuple[bool, str | None]:
    """Tell whether PGMQ's SQL is in the broker's database, and where it is not: what to do, if the user may not.

    Raises:
        InvalidInputError: a package of the extra is missing.
        psycopg.Error: the database can't be reached.
    """
    with needs_extra("the Celery integration", "celery"):
        import psycopg
    with psycopg.connect(_dsn(broker_url), connect_timeout=int(BROKER_TIMEOUT_S)) as connection:
        row = connection.execute(_LOOK).fetchone()
    assert row is not None
    there, may_install, user = row
    return bool(there), None if there or may_install else _advice(str(user))


def _advice(user: str) -> str:
    """A schema that an administrator makes for the user is not enough: PGMQ's SQL makes it, if it is not there, and
    PostgreSQL asks for the right before it looks.
    """
    quoted = user.replace('"', '""')
    return (
        f"User {user} may make no schema there. An administrator gives it a database of its own: CREATE DATABASE queue "
        f'OWNER "{quoted}"; and the URL of the broker ends in /queue.'
    )


def install_pgmq(broker_url: str) -> bool:
    """Install PGMQ's SQL in the broker's database where it is not there yet; return whether it was not.

    Args:
        broker_url: "pgmq://user@host:port/database". The user may create schemas.

    Raises:
        InvalidInputError: a package of the extra is missing, or the user may not.
        psycopg.Error: the database can't be reached.
    """
    with needs_extra("the Celery integration", "celery"):
        import psycopg
        from pgmq.install import get_embedded_install_sql
    with psycopg.connect(_dsn(broker_url), connect_timeout=int(BROKER_TIMEOUT_S)) as connection:
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        row = connection.execute(_LOOK).fetchone()
        assert row is not None
        there, may_install, user = row
        if not there and not may_install:
            raise InvalidInputError("PGMQ is not installed in the broker's database", hint=_advice(str(user)))
        if not there:
            connection.execute(get_embedded_install_sql().encode())
        return not there


def _dsn(broker_url: str) -> str:
    return str(transport_options(broker_url)["conn_string"])
