"""Look at a store on PostgreSQL from outside and say what to do: nothing is migrated or changed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from typing import Final

import psycopg

from strandline.errors import CorruptRecordError, StrandlineError
from strandline.limits import CLOCK_BEHIND_S_MAX, POSTGRES_CONNECTIONS_SHARE_MAX
from strandline.model.diagnosis import Check, Trouble, failed, passed, warned
from strandline.ports import Clock
from strandline.stores.postgres.errors import map_error
from strandline.stores.postgres.migrating import VERSION_MIN, Found, grants, known_migrations, owner_migrates
from strandline.stores.postgres.place import Place, read_url
from strandline.stores.postgres.pool import connect
from strandline.stores.postgres.problems import find_problems
from strandline.stores.postgres.running import APP, OPERATOR, SWEEP, Running
from strandline.stores.postgres.wire import Connection, Wire
from strandline.stores.sql.diagnosis import SECOND_US, check_meta, check_schema, check_work
from strandline.stores.sql.session import Row

_SERVER: Final = """
SELECT current_setting('server_version'), current_setting('fsync'), current_setting('synchronous_commit'),
    current_setting('full_page_writes'), current_setting('default_transaction_read_only'),
    current_setting('max_connections')::int,
    (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
    (SELECT count(*) FROM pg_stat_replication), (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
    current_setting('synchronous_standby_names')
"""


def diagnose(url: str, clock: Clock) -> Iterator[Check]:
    """Yield the checks of a store; those that need what is not there are left out.

    Args:
        url: the store's URL.
        clock: the time, to judge leases and the server's clock by.
    """
    place = read_url(url)
    yield passed("driver", f"psycopg {psycopg.__version__}, libpq {psycopg.pq.version() // 10_000}")
    try:
        with closing(connect(place)) as connection:
            yield from _look(connection, place, clock)
    except psycopg.Error as error:
        yield _told("server", map_error(error, place))
    except StrandlineError as error:
        yield _told("server", error)


def _told(name: str, error: StrandlineError) -> Check:
    trouble = Trouble.CORRUPT if isinstance(error, CorruptRecordError) else Trouble.UNAVAILABLE
    return failed(name, error.message, error.hint, trouble)


def _look(connection: Connection, place: Place, clock: Clock) -> Iterator[Check]:
    found = Found(connection, place.schema)
    row = connection.execute(_SERVER).fetchone()
    assert row is not None
    now_us = clock.now_us()
    yield _version(row, found)
    yield _writable(row, found)
    yield from _durability(row)
    yield _connections(row, place)
    yield passed(
        "timeouts",
        f"connect {place.connect_timeout_s:g} s, statement {place.statement_timeout_s:g} s, lock"
        f" {place.lock_timeout_s:g} s, idle in a transaction {place.idle_timeout_s:g} s,"
        f" answer {place.answer_timeout_s:g} s",
    )
    yield _clock(row, now_us)
    yield _roles(place, found)
    if not found.migrated:
        value = "tables of another program" if found.tables else "none"
        if found.tables:
            advice = "Name another schema with ?schema=… in the URL."
            yield failed("schema", f"{place.schema}: {value}", advice, Trouble.UNAVAILABLE)
        else:
            advice = owner_migrates(place, found) or "The first command that writes makes a store of it."
            yield warned("schema", f"{place.schema}: {value}", advice)
    elif APP in found.member_of:
        yield from _store(connection, place, found, now_us)


def _version(row: Row, found: Found) -> Check:
    value = f"PostgreSQL {row[0]}, {found.encoding}, user {found.user}"
    if found.version < VERSION_MIN or found.encoding != "UTF8":
        advice = f"Use PostgreSQL {VERSION_MIN // 10_000} or newer, with a database of encoding UTF8."
        return failed("server", value, advice, Trouble.UNAVAILABLE, version=found.version)
    return passed("server", value, version=found.version)


def _writable(row: Row, found: Found) -> Check:
    standbys = f"{row[7]} standbys" if row[7] else "no standby seen"
    if found.standby or row[4] == "on":
        value = "a standby, which only reads" if found.standby else "default_transaction_read_only is on"
        advice = "Name the server that writes; several hosts with target_session_attrs=read-write find it."
        return failed("writes", value, advice, Trouble.UNAVAILABLE)
    waits = f", commits wait for {row[9]}" if row[9] else ""
    return passed("writes", f"yes; {standbys}{waits}", standbys=row[7])


def _durability(row: Row) -> Iterator[Check]:
    value = f"fsync {row[1]}, synchronous_commit {row[2]}, full_page_writes {row[3]}"
    measured = {"fsync": row[1], "synchronous_commit": row[2], "full_page_writes": row[3]}
    if row[1] == "off" or row[3] == "off":
        advice = "A crash of its machine can damage the whole database: switch both on, but for tests."
        yield failed("durability", value, advice, Trouble.UNSAFE, **measured)
    elif row[2] == "off":
        advice = "A crash of the server may cost the last commits that were acknowledged: set synchronous_commit=on."
        yield warned("durability", value, advice, **measured)
    else:
        yield passed("durability", value, **measured)


def _connections(row: Row, place: Place) -> Check:
    most, now = row[5], row[6]
    value = f"pool of {place.pool} per process; the server has {now} of {most} in use"
    measured = {"pool": place.pool, "used": now, "most": most}
    if now + place.pool > most * POSTGRES_CONNECTIONS_SHARE_MAX:
        advice = "Use fewer processes, a smaller pool (?pool=…), a pooler, or raise the server's max_connections."
        return warned("connections", value, advice, **measured)
    return passed("connections", value, **measured)


def _clock(row: Row, now_us: int) -> Check:
    apart_s = (row[8] - now_us) / SECOND_US
    now = datetime.fromtimestamp(now_us / SECOND_US, UTC).isoformat(timespec="seconds")
    if abs(apart_s) > CLOCK_BEHIND_S_MAX:
        value = f"{now}; the server's is {apart_s:+,.0f} s apart"
        return warned(
            "clock", value, "Set the clock that is wrong. Leases and expiry are judged by it.", apart_s=apart_s
        )
    return passed("clock", f"{now}; the server's is {apart_s:+.3f} s apart", apart_s=apart_s)


def _roles(place: Place, found: Found) -> Check:
    if APP in found.member_of:
        value = f"user {found.user} may act as {', '.join(sorted(found.member_of))}"
        if OPERATOR not in found.member_of:
            value = f"an agents' user: {value}; what looks at the whole store needs {OPERATOR}"
        return passed("roles", value + ("" if SWEEP in found.member_of else f"; sweeps need {SWEEP}"))
    value = f"user {found.user} may not act as {APP}"
    told = f"An administrator runs: {grants(place, found)}"
    if found.migrated or not found.may_make:
        return failed("roles", value, told, Trouble.UNAVAILABLE)
    return warned("roles", value, told)


def _store(connection: Connection, place: Place, found: Found, now_us: int) -> Iterator[Check]:
    def ask(query: str, role: str) -> list[Row]:
        with connection.transaction():
            connection.execute(
                "SELECT set_config('role', %s, true), set_config('strandline.store', 'open', true),"
                " set_config('search_path', %s, true)",
                (role, f'"{place.schema}"'),
            )
            return connection.cursor(binary=True).execute(query.replace("%", "%%")).fetchall()

    yield check_schema(known_migrations(), dict(ask("SELECT number, checksum FROM schema_migration", APP)))
    problems = find_problems(
        Running(Wire(connection, prepare=False, answer_timeout_s=place.answer_timeout_s), place, writes=False),
        place.schema,
    )
    connection.execute("ROLLBACK")
    if problems:
        advice = "Something changed the schema; restore it, or the database, from a backup."
        yield failed("row security", "; ".join(problems), advice, Trouble.UNSAFE, problems=problems)
    else:
        yield passed("row security", "in force on every table, also for its owner; every trigger is on")
    yield from check_meta(dict(ask("SELECT name, value FROM store_meta", APP)), place.shown)
    if OPERATOR in found.member_of:
        yield from check_work(lambda query: ask(query, OPERATOR), now_us)
    else:
        yield passed("content", f"not looked at: only {OPERATOR} sees all tenants")
