"""Law (C26): a URL says where the store is and how it is spoken to; what it must not show, nothing shows."""

import re

import psycopg
import pytest

import strandline
from strandline import InvalidInputError
from strandline.limits import POSTGRES_CONNECTIONS_MAX, STORE_BUSY_TIMEOUT_S
from strandline.stores.postgres import is_postgres_url
from strandline.stores.postgres.errors import is_lost, map_error, may_begin_again
from strandline.stores.postgres.place import read_url
from strandline.stores.postgres.statements import Statements
from strandline.stores.sql.queries import load_queries

PASSWORD = "s3cret%2Fword"
PLACE = read_url("postgresql://dana@db.example/memory")


def test_a_plain_url_takes_every_default():
    place = read_url("postgresql://dana@db.example:5433/memory")
    assert place.shown == place.conninfo == "postgresql://dana@db.example:5433/memory"
    assert (place.schema, place.pool, place.prepare) == ("strandline", POSTGRES_CONNECTIONS_MAX, True)
    assert place.lock_timeout_s == STORE_BUSY_TIMEOUT_S


def test_options_of_ours_are_taken_out_and_the_rest_is_libpqs():
    place = read_url("postgres://h/d?schema=agents&pool=3&sslmode=require&lock_timeout_s=1.5&prepare=off")
    assert place.conninfo == "postgres://h/d?sslmode=require"
    assert (place.schema, place.pool, place.lock_timeout_s, place.prepare) == ("agents", 3, 1.5, False)
    assert "schema=agents" in place.shown
    assert "sslmode=require" in place.shown


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://dana:{PASSWORD}@h1:5432,h2:5433/memory?target_session_attrs=read-write",
        f"postgresql://dana@h/memory?password={PASSWORD}",
        f"postgresql://dana@h/memory?sslmode=require&sslpassword={PASSWORD}&schema=x",
        f"postgresql://dana:{PASSWORD}@h/memory?pool=none",
        f"postgresql://dana:{PASSWORD}@h",
        f"postgresql://dana@h/memory?p%61ssword={PASSWORD}",
    ],
)
def test_a_password_is_never_shown(url):
    try:
        place = read_url(url)
    except InvalidInputError as error:
        shown = f"{error} {error.hint} {error!r}"
    else:
        shown = f"{place.shown} {place!r} {place.hide('login with s3cret/word or s3cret%2Fword failed')}"
        assert PASSWORD in place.conninfo
    assert "s3cret" not in shown


@pytest.mark.parametrize(
    "password",
    [
        "s3/cret",
        "s3?cret",
        "s3@cret",
        "s3?cret=1&x=2",
        "s3#cret",
        "s3@cret/w:rd#cret",
        "12/cret",
        "1@cret/2:cret",
        "1/2?cret",
        "@cret",
        "/cret",
        "1#cret",
    ],
)
def test_a_password_that_is_not_written_as_a_url_wants_it_is_not_shown(password):
    """Cut at its own / or ? or @ it would be told as a port, a database or a host."""
    with pytest.raises(InvalidInputError, match="not shown") as refused:
        read_url(f"postgresql://dana:{password}@db.example:5433/memory")
    assert "cret" not in f"{refused.value} {refused.value.hint}"
    assert "%2F" in refused.value.hint


def test_an_at_sign_behind_the_hosts_is_no_password():
    for url in (
        "postgresql://h/d?user=a@b",
        "postgresql://[::1]:1,h:2/d%40e",
        "postgresql://h/d?application_name=a@b",
        "postgresql:///d?host=/tmp&user=a@b",
    ):
        assert read_url(url).shown == url


@pytest.mark.parametrize(
    "query",
    ["schema=Agents", "schema=pg_x", 'schema=a"b', "pool=0", "pool=-1", "pool=ten", "lock_timeout_s=0", "prepare=yes",
     "statement_timeout_s=nan", "idle_timeout_s=inf"],
)  # fmt: skip
def test_an_option_with_a_value_that_is_none_is_refused_by_name(query):
    with pytest.raises(InvalidInputError, match=re.escape(query.partition("=")[2].strip('"')[:3])):
        read_url(f"postgresql://h/d?{query}")


def test_what_libpq_can_not_read_is_refused_without_its_secrets():
    with pytest.raises(InvalidInputError) as refused:
        strandline.open("postgresql://dana:%zz-hidden@127.0.0.1:1/memory")
    assert "hidden" not in str(refused.value)
    assert refused.value.__cause__ is None


def test_which_urls_are_postgresqls():
    assert is_postgres_url("postgresql://h/d")
    assert is_postgres_url("postgres://h/d")
    assert not is_postgres_url("/tmp/postgresql")


def test_nobody_listens():
    """C26: the server's own words, a typed error, and no password in it."""
    with pytest.raises(strandline.StoreUnavailableError, match="nothing was written") as refused:
        strandline.open("postgresql://dana:s3cret@127.0.0.1:1/memory")
    assert "s3cret" not in str(refused.value) + refused.value.hint
    assert "127.0.0.1:1" in str(refused.value)


def test_durability_is_the_servers():
    with pytest.raises(InvalidInputError, match="synchronous_commit"):
        strandline.open("postgresql://127.0.0.1:1/memory", durability="normal")


@pytest.mark.parametrize(
    ("state", "words", "hint"),
    [
        ("25006", "only reads", "target_session_attrs"),
        ("55P03", "lock", "pg_stat_activity"),
        ("57014", "longer than it may", "statement_timeout_s"),
        ("40001", "order", "again"),
        ("40P01", "waited for each other", "again"),
        ("57P01", "ended the connection", "again"),
        ("53100", "disk is full", "Free space"),
        ("53200", "out of memory", "memory"),
        ("53300", "no more connections", "pool"),
        ("42501", "may not", "doctor"),
        ("23514", "breaks one of its rules", ""),
        ("08006", "connection broke", "network"),
        ("22021", "NUL", "Take it out"),
    ],
)
def test_each_state_has_its_error_and_says_what_to_do(state, words, hint):
    mapped = map_error(psycopg.errors.lookup(state)("the server's words"), PLACE)
    assert type(mapped) is strandline.StoreUnavailableError
    assert words in str(mapped)
    assert "the server's words" in str(mapped)
    assert hint in mapped.hint


@pytest.mark.parametrize("state", ["XX001", "XX002"])
def test_damage_is_told_as_damage(state):
    mapped = map_error(psycopg.errors.lookup(state)("invalid page"), PLACE)
    assert type(mapped) is strandline.CorruptRecordError
    assert "backup" in mapped.hint


def test_what_is_tried_again():
    """Only what has done nothing: a lost connection, a server that only reads, a deadlock; never a full disk."""
    assert is_lost(psycopg.OperationalError("server closed the connection unexpectedly"))
    for state, again in [("57P01", True), ("08006", True), ("40001", True), ("40P01", True), ("53100", False),
                         ("42501", False), ("55P03", False), ("25006", True)]:  # fmt: skip
        assert may_begin_again(psycopg.errors.lookup(state)()) is again


def test_each_statement_names_its_tables_with_their_schema():
    """C26: no search path has a say."""
    statements = Statements("agents")
    for name, query in load_queries().items():
        text = statements[name].text
        assert ":" not in text.replace("::", ""), name
        assert set(statements[name].names) == set(re.findall(r"(?<!:):([a-z_][a-z0-9_]*)", query.text)), name
        own = {f'"{part}"' for part in re.findall(r"(?:WITH|RECURSIVE|\),) ([a-z_]+)(?: \([^)]*\))? AS \(", text)}
        for table in re.findall(r"\b(?:FROM|JOIN|INTO|UPDATE) (?!SET\b|\()(\S+)", text):
            assert table.startswith('"agents".') or table in own, (name, table)


def test_many_rows_are_one_statement():
    insert = Statements("agents").for_many("begin_fact")
    assert insert.statement.text.count("unnest(") == 1
    assert insert.statement.names[:2] == ("tenant_id", "workflow_id")
