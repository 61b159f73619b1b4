"""Bringing a schema up to date: roles, schema, tables; by whoever may, and once, however many start at once."""

from __future__ import annotations

from importlib import resources
from typing import Final

import psycopg

from strandline.codec import DIGEST_BYTES
from strandline.errors import CorruptRecordError, StoreUnavailableError
from strandline.limits import POSTGRES_BEGIN_TRIES_MAX, POSTGRES_MIGRATE_TIMEOUT_S
from strandline.ports import Entropy
from strandline.stores.migrate import Migration, due, read_migrations
from strandline.stores.postgres.errors import map_error
from strandline.stores.postgres.place import Place
from strandline.stores.postgres.running import APP, OPERATOR, SWEEP
from strandline.stores.postgres.statements import Statements
from strandline.stores.postgres.wire import Connection
from strandline.stores.sql.transfer import DIGEST_KEY

VERSION_MIN: Final = 150_000
ROLES: Final = (APP, SWEEP, OPERATOR)
_LOCK: Final = "SELECT pg_advisory_xact_lock(hashtext('strandline migration'), hashtext(%(schema)s))"
_MET_ANOTHER: Final = ("42710", "23505", "XX000")  # the role is there by now; a row of the catalog changed meanwhile
_LOOK: Final = """
SELECT current_setting('server_version_num')::int, current_setting('server_encoding'), pg_is_in_recovery(),
    current_user,
    ARRAY(SELECT rolname::text FROM pg_roles WHERE rolname = ANY(%(roles)s)),
    ARRAY(SELECT rolname::text FROM pg_roles WHERE rolname = ANY(%(roles)s)
        AND pg_has_role(current_user, rolname, 'MEMBER')),
    EXISTS (SELECT FROM pg_namespace WHERE nspname = %(schema)s),
    EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = %(schema)s AND c.relkind IN ('r', 'p', 'v', 'm')),
    EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = %(schema)s AND c.relname = 'schema_migration'),
    coalesce((SELECT has_schema_privilege(oid, 'CREATE') FROM pg_namespace WHERE nspname = %(schema)s),
        has_database_privilege(current_database(), 'CREATE'))
"""


class Found:
    """What the server, the roles and the schema look like to the connecting user."""

    def __init__(self, connection: Connection, schema: str) -> None:
        row = connection.execute(_LOOK, {"roles": list(ROLES), "schema": schema}).fetchone()
        assert row is not None
        self.version: int = row[0]
        self.encoding: str = row[1]
        self.standby: bool = row[2]
        self.user: str = row[3]
        self.roles: frozenset[str] = frozenset(row[4])
        self.member_of: frozenset[str] = frozenset(row[5])
        self.schema: bool = row[6]
        self.tables: bool = row[7]
        self.migrated: bool = row[8]
        self.may_make: bool = row[9]  # the schema or, where it is there, its tables


def known_migrations() -> list[Migration]:
    """Return the migrations of this version."""
    return read_migrations(resources.files("strandline.stores.postgres").joinpath("migrations"))


def grants(place: Place, found: Found) -> str:
    """Return what an administrator has to run, so that the connecting user can make and use the store: no role that
    ordinary work does not need.
    """
    lines = [f"CREATE ROLE {role} NOLOGIN NOBYPASSRLS;" for role in ROLES if role not in found.roles]
    if APP not in found.member_of:
        lines.append(f"GRANT {APP} TO {_quoted(found.user)};")
    if not found.schema:
        lines.append(f"CREATE SCHEMA {_quoted(place.schema)} AUTHORIZATION {_quoted(found.user)};")
    return " ".join(lines)


def owner_migrates(place: Place, found: Found) -> str | None:
    """Return what to do where there is no store, and the connecting user is one who uses it and may not make it."""
    if found.migrated or found.may_make or APP not in found.member_of:
        return None
    return (
        f"Make it as the owner of the database, not as {found.user!r}: `strandline migrate --store URL`, with the URL "
        f"of {place.shown}, but that user."
    )


def open_schema(
    connection: Connection, place: Place, entropy: Entropy, *, create: bool, migrate: bool, post: bool = False
) -> tuple[dict[str, bytes], list[str]]:
    """Bring the schema up to date, if it is not. Return what store_meta says, a digest key, at least, and the
    migrations that were applied.

    Raises:
        StoreUnavailableError: the server is too old, the user may not do what is needed, or it is no store of ours.
        SchemaVersionError: a newer Strandline wrote it.
    """
    found = Found(connection, place.schema)
    if found.version < VERSION_MIN or found.encoding != "UTF8":
        what = f"PostgreSQL {found.version // 10_000} with encoding {found.encoding}"
        hint = f"Use PostgreSQL {VERSION_MIN // 10_000} or newer, with a database of encoding UTF8."
        raise StoreUnavailableError(f"{place.shown}: {what}; nothing was written", hint=hint)
    if found.tables and not found.migrated:
        what = f"the schema {place.schema!r} holds tables of another program; nothing was written"
        raise StoreUnavailableError(f"{place.shown}: {what}", hint="Name another with ?schema=… in the URL.")
    migrations, done = known_migrations(), []
    if not found.migrated or due(migrations, _applied(connection, place, found), post=post):
        if not found.migrated and not create:
            hint = owner_migrates(place, found) or "Append to it or import a file to make it."
            raise StoreUnavailableError(f"{place.shown}: no such store", hint=hint)
        if not migrate:
            what = "the store is of an older version" if found.migrated else "no such store"
            raise StoreUnavailableError(
                f"{place.shown}: {what}; nothing was written", hint="Open it with migrate=True."
            )
        _make_roles(connection, place, found)
        _make_schema(connection, place, found)
        while step := _migrate_once(connection, place, migrations, entropy, post=post):
            done.append(step)
        found = Found(connection, place.schema)
    return _meta(connection, place, found), done


# ------------------------------------------------------------------------------------------ as the application


def _as_app(connection: Connection, place: Place, found: Found, query: str) -> list[tuple[object, ...]]:
    """Run a query on what belongs to no tenant, as every transaction does: as strandline_app."""
    if APP not in found.member_of:
        raise _not_allowed(place, found, f"user {found.user!r} is no member of {APP}")
    with connection.transaction():
        connection.execute("SELECT set_config('role', %s, true), set_config('strandline.store', 'open', true)", (APP,))
        return connection.cursor(binary=True).execute(query).fetchall()


def _applied(connection: Connection, place: Place, found: Found) -> dict[int, bytes]:
    rows = _as_app(connection, place, found, f'SELECT number, checksum FROM "{place.schema}".schema_migration')  # noqa: S608  a checked name
    return dict(rows)  # type: ignore[arg-type]


def _meta(connection: Connection, place: Place, found: Found) -> dict[str, bytes]:
    rows = _as_app(connection, place, found, Statements(place.schema).meta.text)
    meta: dict[str, bytes] = dict(rows)  # type: ignore[arg-type]
    key = meta.get(DIGEST_KEY)
    if not isinstance(key, bytes) or len(key) != DIGEST_BYTES:
        where = f"{place.shown}: store_meta"
        raise CorruptRecordError("the store's digest key is missing or damaged", place=where)
    return meta


def _not_allowed(place: Place, found: Found, why: str) -> StoreUnavailableError:
    hint = owner_migrates(place, found) or f"An administrator runs in this database: {grants(place, found)}"
    return StoreUnavailableError(f"{place.shown}: {why}; nothing was written", hint=hint)


# ------------------------------------------------------------------------------------------ as who migrates


def _make_roles(connection: Connection, place: Place, found: Found) -> None:
    """Make the roles and become their member, of those that ordinary work does not need where that is allowed. Roles
    are the server's: other databases may be making them right now.
    """
    for role in ROLES:
        try:
            if role not in found.roles:
                _insist(connection, f"CREATE ROLE {role} NOLOGIN NOBYPASSRLS")
            if role not in found.member_of:
                _insist(connection, f"GRANT {role} TO {_quoted(found.user)}")
        except psycopg.errors.InsufficientPrivilege as error:
            if role in found.roles and role != APP:
                continue
            raise _not_allowed(place, found, f"user {found.user!r} may not make the roles of the store") from error


def _insist(connection: Connection, statement: str) -> None:
    for last in [False] * (POSTGRES_BEGIN_TRIES_MAX - 1) + [True]:
        try:
            connection.execute(statement)
        except psycopg.Error as error:
            if error.sqlstate == "42710":  # it is there
                return
            if error.sqlstate not in _MET_ANOTHER or last:
                raise
        else:
            return


def _make_schema(connection: Connection, place: Place, found: Found) -> None:
    if found.schema:
        return
    try:
        _insist(connection, f"CREATE SCHEMA IF NOT EXISTS {_quoted(place.schema)}")
    except psycopg.errors.InsufficientPrivilege as error:
        why = f"user {found.user!r} may not make the schema {place.schema!r}"
        raise _not_allowed(place, found, why) from error


def _migrate_once(
    connection: Connection, place: Place, migrations: list[Migration], entropy: Entropy, *, post: bool
) -> str | None:
    """Apply the first migration that is due, and record it; return its name, or None where there was none.

    One transaction under a lock of its own: whoever comes second waits, and finds the work done.
    """
    timeout = f"{round(POSTGRES_MIGRATE_TIMEOUT_S * 1000)}"
    try:
        with connection.transaction():
            connection.execute(
                "SELECT set_config('search_path', %s, true), set_config('strandline.store', 'open', true),"
                " set_config('lock_timeout', %s, true), set_config('statement_timeout', %s, true)",
                (_quoted(place.schema), timeout, timeout),
            )
            connection.execute(_LOCK, {"schema": place.schema})
            connection.execute(
                "CREATE TABLE IF NOT EXISTS schema_migration (number BIGINT PRIMARY KEY, checksum BYTEA NOT NULL)"
            )
            records = connection.cursor(binary=True).execute("SELECT number, checksum FROM schema_migration")
            applied: dict[int, bytes] = dict(records.fetchall())
            todo = due(migrations, applied, post=post)
            if not todo:
                return None
            connection.execute(todo[0].text, prepare=False)  # many statements in one
            if not applied:
                key = entropy.salt() + entropy.salt()
                connection.execute("INSERT INTO store_meta VALUES ('digest_key', %s)", (key,))
            record = "INSERT INTO schema_migration VALUES (%s, %s)"
            connection.execute(record, (todo[0].number, todo[0].checksum))
            return f"{todo[0].number:04} {todo[0].name}"
    except psycopg.errors.InsufficientPrivilege as error:
        mapped = map_error(error, place)
        mapped.hint = "The owner of the schema opens the store once with this version; then everybody can."
        raise mapped from error


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
