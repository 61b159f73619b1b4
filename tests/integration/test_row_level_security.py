"""Law (I21) on PostgreSQL: without a tenant no row is seen and none is written; with one, only its own.

Asked of every table of the schema, as the catalogue lists them: a new table is tested without being named here. The
statements are what a fault in our own would be: without a condition on the tenant.
"""

from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql

import strandline
from strandline.model.ids import Scope
from strandline.testing.conformance.stage import populate

SCHEMA = "strandline"
OF_NO_TENANT = {"store_meta", "schema_migration"}
APP = "strandline_app"
VALUES = {"int8": "1", "int4": "1", "int2": "1", "bytea": "'\\x01'", "text": "'x'", "bool": "true", "tsvector": "''"}


REFUSALS = (psycopg.errors.InsufficientPrivilege, psycopg.errors.IntegrityError)  # of the server, or of a trigger


@pytest.fixture
def admin(postgres_store_url: str) -> Iterator[psycopg.Connection]:
    """Give a superuser's connection to a store with two tenants that have rows in every table."""
    with strandline.open(postgres_store_url) as db:
        for tenant in ("acme", "globex"):
            with db.store.write(Scope(tenant=tenant, workflow="run")) as tx:
                populate(tx, tenant)
    with psycopg.connect(postgres_store_url, autocommit=True) as connection:
        fill(connection)
        yield connection


def fill(connection: psycopg.Connection) -> None:
    """Give each tenant a row in the tables that no conformance test fills, whatever it means."""
    for table, columns in columns_of(connection).items():
        if table in OF_NO_TENANT:
            continue
        for tenant_id in tenants(connection).values():
            there = sql.SQL("SELECT 1 FROM {} WHERE tenant_id = %s").format(named(table))
            if connection.execute(there, [tenant_id]).fetchone():
                continue
            values = [
                sql.Literal(tenant_id) if column == "tenant_id" else sql.SQL(VALUES[kind])
                for column, kind in columns.items()
            ]
            row = sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(
                named(table), sql.SQL(", ").join(map(sql.Identifier, columns)), sql.SQL(", ").join(values)
            )
            with connection.transaction():
                connection.execute("SET LOCAL session_replication_role = replica")
                connection.execute(row)


def columns_of(connection: psycopg.Connection) -> dict[str, dict[str, str]]:
    """Return the tables of the schema, with their columns and types."""
    found: dict[str, dict[str, str]] = {}
    for table, column, kind in connection.execute(
        "SELECT c.relname, a.attname, t.typname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid"
        " JOIN pg_type t ON t.oid = a.atttypid WHERE c.relnamespace = %s::regnamespace AND c.relkind IN ('r', 'p')"
        " AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' ORDER BY c.relname, a.attnum",
        [SCHEMA],
    ):
        found.setdefault(table, {})[column] = kind
    return found


def tenants(connection: psycopg.Connection) -> dict[str, int]:
    return dict(connection.execute(sql.SQL("SELECT name, tenant_id FROM {}").format(named("tenant"))).fetchall())


def named(table: str) -> sql.Identifier:
    return sql.Identifier(SCHEMA, table)


def count(connection: psycopg.Connection, table: str) -> int:
    return connection.execute(sql.SQL("SELECT count(*) FROM {}").format(named(table))).fetchone()[0]


def attempts(
    connection: psycopg.Connection, table: str, columns: dict[str, str], tenant_id: int | None = None
) -> dict[str, sql.Composed]:
    """Return statements that write to a table: what is there (for a tenant) anew, changed, and gone."""
    whose = sql.SQL("") if tenant_id is None else sql.SQL("WHERE tenant_id = {}").format(tenant_id)
    row = connection.execute(sql.SQL("SELECT * FROM {} {} LIMIT 1").format(named(table), whose))
    names = [column.name for column in row.description if column.name in columns]
    values = dict(zip((column.name for column in row.description), row.fetchone(), strict=True))
    inserted = sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(
        named(table),
        sql.SQL(", ").join(map(sql.Identifier, names)),
        sql.SQL(", ").join(sql.Literal(values[name]) for name in names),
    )
    column = sql.Identifier(names[-1])
    return {
        "insert": inserted,
        "upsert": inserted + sql.SQL(" ON CONFLICT DO NOTHING"),
        "update": sql.SQL("UPDATE {} SET {} = {}").format(named(table), column, column),
        "delete": sql.SQL("DELETE FROM {} {}").format(named(table), whose),
        "truncate": sql.SQL("TRUNCATE {}").format(named(table)),
    }


def changed(connection: psycopg.Connection, statement: sql.Composed) -> int:
    """Return how many rows a statement changed; a refusal changes none."""
    try:
        with connection.transaction():
            return connection.execute(statement).rowcount
    except REFUSALS:
        return 0


@pytest.mark.parametrize("postgres_version", [18, 15], indirect=True)
@pytest.mark.parametrize("setting", [None, "", "0"], ids=["unset", "empty", "nobody's"])
def test_without_a_tenant_nothing_is_seen_and_nothing_is_written(
    admin: psycopg.Connection, setting: str | None
) -> None:
    tables = columns_of(admin)
    writes = {table: attempts(admin, table, columns) for table, columns in tables.items()}
    before = {table: count(admin, table) for table in tables}
    assert all(before.values()), "a table without rows would prove nothing"
    assert len(tables) > 20
    admin.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(APP)))
    if setting is not None:
        for name in ("strandline.tenant", "strandline.tenant_id"):
            admin.execute("SELECT set_config(%s, %s, false)", [name, setting])
    assert {table: count(admin, table) for table in tables} == dict.fromkeys(tables, 0)
    done = {
        (table, what): rows
        for table in tables
        for what, statement in writes[table].items()
        if (rows := changed(admin, statement)) > 0
    }
    assert done == {}
    admin.execute("RESET ROLE")
    assert {table: count(admin, table) for table in tables} == before


@pytest.mark.parametrize("postgres_version", [18, 15], indirect=True)
def test_with_a_tenant_only_its_own_rows_are_seen_and_written(admin: psycopg.Connection) -> None:
    tables = {table: columns for table, columns in columns_of(admin).items() if table not in OF_NO_TENANT}
    ids = tenants(admin)
    others = sql.SQL("SELECT * FROM {} WHERE tenant_id = {}")
    before = {table: admin.execute(others.format(named(table), ids["globex"])).fetchall() for table in tables}
    assert all(before.values())
    writes = {table: attempts(admin, table, columns, ids["globex"]) for table, columns in tables.items()}
    with admin.transaction():
        admin.execute(sql.SQL("SET LOCAL ROLE {}").format(sql.Identifier(APP)))
        admin.execute("SELECT set_config('strandline.tenant', 'acme', true)")
        admin.execute("SELECT set_config('strandline.tenant_id', %s, true)", [str(ids["acme"])])
        for table in tables:
            seen = admin.execute(sql.SQL("SELECT DISTINCT tenant_id FROM {}").format(named(table))).fetchall()
            assert seen == [(ids["acme"],)], table
            assert admin.execute(others.format(named(table), ids["globex"])).fetchall() == [], table
            moved = sql.SQL("UPDATE {} SET tenant_id = {}").format(named(table), ids["globex"])
            assert changed(admin, moved) == 0, table
            for what in ("insert", "upsert", "delete", "truncate"):
                assert changed(admin, writes[table][what]) == 0, (table, what)
    after = {table: admin.execute(others.format(named(table), ids["globex"])).fetchall() for table in tables}
    assert after == before


def test_every_table_is_bound_also_for_its_owner(admin: psycopg.Connection) -> None:
    flags = admin.execute(
        "SELECT relname, relrowsecurity, relforcerowsecurity FROM pg_class"
        " WHERE relnamespace = %s::regnamespace AND relkind IN ('r', 'p')",
        [SCHEMA],
    ).fetchall()
    assert [flag for flag in flags if flag[1:] != (True, True)] == []
    policies = dict(
        admin.execute(
            "SELECT tablename, count(*) FROM pg_policies WHERE schemaname = %s GROUP BY 1", [SCHEMA]
        ).fetchall()
    )
    assert set(policies) == {table for table, *_ in flags}
    app = admin.execute(
        "SELECT rolcanlogin, rolsuper, rolbypassrls, rolcreaterole, rolcreatedb FROM pg_roles WHERE rolname = %s", [APP]
    ).fetchone()
    assert app == (False,) * 5
    owned = admin.execute("SELECT count(*) FROM pg_class WHERE relowner = %s::regrole", [APP]).fetchone()
    assert owned == (0,)


def test_every_table_that_belongs_to_a_tenant_begins_with_it(admin: psycopg.Connection) -> None:
    """DESIGN §5: tenant_id first in every primary key, so that tables can be parted by it."""
    keys = admin.execute(
        "SELECT c.relname, (SELECT attname FROM pg_attribute WHERE attrelid = c.oid AND attnum = i.indkey[0])"
        " FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid"
        " WHERE c.relnamespace = %s::regnamespace AND i.indisprimary",
        [SCHEMA],
    ).fetchall()
    assert {table for table, first in keys if first != "tenant_id"} <= OF_NO_TENANT
    assert {table for table, _ in keys} == set(columns_of(admin))


def test_the_store_works_as_the_app_and_leaves_no_setting_behind(postgres_store_url: str) -> None:
    """Whoever takes a connection out of a pool after us is nobody."""
    with strandline.open(postgres_store_url) as db:
        db.tenant("acme").workflow("run").append(strandline.note("one"))
        assert len(db.tenant("acme").workflow("run").events()) == 1
        with psycopg.connect(postgres_store_url, autocommit=True) as connection:
            busy = connection.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state <> 'idle'"
                " AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
            ).fetchone()
        assert busy == (0,)
