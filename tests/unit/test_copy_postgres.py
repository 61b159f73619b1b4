"""Law (C6, C26, I13, I21): a store moves between SQLite and PostgreSQL, both ways, with every row as it was.

The laws of test_copy.py where the database makes a difference: what is compared are all rows, read by a superuser.
"""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
from contextlib import closing

import psycopg
import pytest

import strandline
from strandline.stores.postgres import transfer as postgres_transfer
from strandline.stores.sql import transfer_out
from strandline.stores.sql.transfer import APART, COPY_MARK, DERIVED, TABLES
from tests.unit.test_copy import Cut, fill, move_on, rows_of, verified
from tests.unit.test_engine_stage import open_store, quiet, talk

STEPS = 8
SMALL_BATCH = 90
WRITERS = 2


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("source")
    with open_store("sqlite", folder) as db:
        fill(db)
    return folder / "store.db"


@pytest.fixture
def source(whole, tmp_path):
    path = tmp_path / "source.db"
    path.write_bytes(whole.read_bytes())
    return path


@pytest.fixture
def other(postgres_url):
    """Give a second place on the same server."""
    return f"{postgres_url}{'&' if '?' in postgres_url else '?'}schema=other"


def rows_there(url, schema="strandline") -> dict[str, list[tuple]]:
    """Return every row as `rows_of` does; the superuser is not bound by row-level security."""
    found = {}
    with psycopg.connect(url.replace("?schema=other", "")) as connection:
        names = "SELECT relname FROM pg_class WHERE relnamespace = %s::regnamespace AND relkind = 'r' ORDER BY relname"
        for (table,) in connection.execute(names, (schema,)).fetchall():
            columns = f"SELECT attname FROM pg_attribute WHERE attrelid = '{schema}.{table}'::regclass AND attnum > 0"
            listed = ", ".join(sorted(row[0] for row in connection.execute(columns)))
            rows = connection.cursor(binary=True).execute(f"SELECT {listed} FROM {schema}.{table}").fetchall()
            found[table] = sorted((row for row in rows if COPY_MARK not in row), key=repr)
    return found


def without_migrations(rows):
    return {table: held for table, held in rows.items() if table != "schema_migration"}


def assert_same(path, url, schema="strandline") -> None:
    assert without_migrations(rows_there(url, schema)) == without_migrations(rows_of(path))


def test_every_table_of_the_schema_is_copied(postgres_url):
    strandline.open(postgres_url).close()
    assert {table.name for table in TABLES} | APART | set(DERIVED) == set(rows_there(postgres_url))


@pytest.mark.parametrize("postgres_version", [18, 15], indirect=True)
def test_a_store_goes_there_further_and_back(source, postgres_url, other, tmp_path):
    """SQLite, PostgreSQL, another schema, SQLite: the last file has the rows of the first, and each is proved."""
    wanted = rows_of(source)
    assert strandline.copy_store(source, postgres_url).ok
    assert_same(source, postgres_url)
    assert strandline.copy_store(postgres_url, other).settled
    assert_same(source, other, "other")
    assert strandline.copy_store(other, tmp_path / "back.db").settled
    assert rows_of(tmp_path / "back.db") == wanted
    assert verified(source) == verified(postgres_url) == verified(other) == verified(tmp_path / "back.db")
    assert strandline.copy_store(source, postgres_url).rows == 0
    assert strandline.copy_store(other, tmp_path / "back.db").rows == 0


def test_what_comes_next_gets_the_next_numbers(source, postgres_url):
    """The database's own counters stand behind the highest number that was copied."""
    strandline.copy_store(source, postgres_url)
    with strandline.open(postgres_url) as db:
        for tenant in ("acme", "New"):
            assert db.tenant(tenant).workflow("another").append(strandline.note("b")).revision == 1
        wf = db.tenant("acme").workflow("main")
        assert wf.effect("first", "create_bucket", {"name": "first"}, pytest.fail).result == "made for first"
        wf.append(talk(4, start=800))
        assert wf.compact(350, quiet).outcome == "activated"
        assert db.verify().ok


@pytest.mark.parametrize("seed", range(2))
def test_a_copy_catches_up_there_and_back(source, postgres_url, other, tmp_path, seed):
    chance = random.Random(seed)
    with strandline.open(source, durability="normal") as db:
        for number in range(200, 200 + STEPS):
            move_on(db, number, chance)
            if number % 4 == 0:
                assert strandline.copy_store(source, postgres_url).settled
                assert_same(source, postgres_url)
    strandline.copy_store(source, other)
    with strandline.open(other) as db:
        for number in range(300, 300 + STEPS):
            move_on(db, number, chance)
            if number % 4 == 0:
                assert strandline.copy_store(other, tmp_path / "back.db").settled
                assert_same(tmp_path / "back.db", other, "other")
    assert strandline.copy_store(other, tmp_path / "back.db").settled
    assert verified(tmp_path / "back.db").ok


def test_a_copy_of_a_living_store_is_one_moment_of_it(source, postgres_url, tmp_path):
    """One snapshot a pass: a writer who never rests is not half in the copy."""
    strandline.copy_store(source, postgres_url)
    with strandline.open(postgres_url) as db:
        wf = db.tenant("acme").workflow("main")

        def write(done: int, total: int) -> None:
            wf.append(talk(1, start=1_000 + done))

        report = strandline.copy_store(postgres_url, tmp_path / "target.db", progress=write)
        assert not report.settled
        assert verified(tmp_path / "target.db").ok
        assert db.backup(tmp_path / "backup.db", write).workflows == 3
        assert verified(tmp_path / "backup.db").ok
        events = wf.events()
    for name in ("target.db", "backup.db"):
        with strandline.open(tmp_path / name) as copied:
            theirs = copied.tenant("acme").workflow("main").events()
        assert theirs == events[: len(theirs)]
        assert len(theirs) < len(events)


def test_a_copy_may_be_cut_off_at_any_commit(source, postgres_url, monkeypatch):
    """Until it has finished nobody opens it; it is gone on with, and ends as one that nobody cut."""
    monkeypatch.setattr(transfer_out, "COPY_BATCH_ROWS_MAX", SMALL_BATCH)
    real, commits = postgres_transfer._Target.commit, 0
    while True:
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute("DROP SCHEMA IF EXISTS strandline CASCADE")
        left = [commits]

        def commit(self, left=left) -> None:
            if not left[0]:
                raise Cut
            left[0] -= 1
            real(self)

        with monkeypatch.context() as patch:
            patch.setattr(postgres_transfer._Target, "commit", commit)
            try:
                strandline.copy_store(source, postgres_url)
                break
            except Cut:
                pass
        before = rows_there(postgres_url)
        if commits and len(before["event"]) < len(rows_of(source)["event"]):
            with pytest.raises(strandline.UnfinishedCopyError, match="not finished"):
                strandline.open(postgres_url)
        strandline.copy_store(source, postgres_url)
        assert_same(source, postgres_url)
        commits += 1
    assert commits > 3
    assert verified(postgres_url).ok


WRITER = """
import itertools, strandline, sys
with strandline.open(sys.argv[1]) as db:
    wf = db.tenant("acme").workflow("main")
    for number in itertools.count():
        print(wf.append(strandline.note(f"{number}", key=f"{sys.argv[2]}-{number}")).seqs[0], flush=True)
"""


def test_a_backup_beside_writers_is_a_prefix_of_the_log(source, postgres_url, tmp_path):
    strandline.copy_store(source, postgres_url)
    command = [sys.executable, "-c", WRITER, postgres_url]
    writers = [subprocess.Popen([*command, f"w{n}"], stdout=subprocess.PIPE, text=True) for n in range(WRITERS)]
    try:
        acknowledged = max(int(writer.stdout.readline()) for writer in writers)
        with strandline.open(postgres_url) as db:
            report = db.backup(tmp_path / "backup.db")
            wf = db.tenant("acme").workflow("main")
            with strandline.open(tmp_path / "backup.db") as copied:
                assert copied.verify().ok
                theirs = copied.tenant("acme").workflow("main").events()
            assert len(theirs) >= acknowledged
            assert theirs == wf.events(1, len(theirs))
            assert report.size_bytes == (tmp_path / "backup.db").stat().st_size
    finally:
        for writer in writers:
            writer.kill()
            writer.communicate()
    assert [path.name for path in tmp_path.iterdir() if "unfinished" in path.name] == []


def test_what_must_not_be_mixed_is_refused(source, postgres_url, other, tmp_path):
    """Another store, a copy in use, a store that somebody has open: each is left as it was."""
    with strandline.open(other) as early, strandline.open(postgres_url) as db:
        db.tenant("acme").workflow("own").append(strandline.note("mine"))
        before = rows_there(postgres_url)
        with pytest.raises(strandline.InvalidInputError, match="no copy"):
            strandline.copy_store(source, postgres_url)
        assert rows_there(postgres_url) == before
        strandline.copy_store(source, other)
        with pytest.raises(strandline.StoreUnavailableError, match="copied here"):
            early.tenant("late").workflow("w").append(strandline.note("x"))
        assert_same(source, other, "other")
        with pytest.raises(strandline.CorruptRecordError):
            early.tenant("acme").workflow("main").append(strandline.note("x"))
    with strandline.open(other) as db:
        db.tenant("acme").workflow("main").append(strandline.note("here"))
    before = rows_there(other, "other")
    with pytest.raises(strandline.InvalidInputError, match="somebody wrote"):
        strandline.copy_store(source, other)
    assert rows_there(other, "other") == before
    with pytest.raises(strandline.InvalidInputError, match="same store"):
        strandline.copy_store(other, other)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("INSERT INTO other.schema_migration VALUES (99, '\\x00')")
    with pytest.raises(strandline.SchemaVersionError):
        strandline.copy_store(source, other)


def test_damage_is_copied_as_it_is(source, postgres_url):
    with closing(sqlite3.connect(source)) as connection:
        connection.execute("UPDATE register_fact SET row_digest = x'00'")
        connection.execute("UPDATE checkpoint SET digest = x'00'")
        connection.commit()
    strandline.copy_store(source, postgres_url)
    assert not verified(source).ok
    assert verified(postgres_url) == verified(source)


def test_rows_of_a_tenant_are_written_under_his_name_only(source, postgres_url):
    """I21: the copy goes through row-level security as every other write; a user who is no superuser can do it."""
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS strandline_mover")
        connection.execute("CREATE ROLE strandline_mover LOGIN CREATEROLE")
        strandline.open(postgres_url).close()
        connection.execute("DROP SCHEMA strandline CASCADE")
        connection.execute("GRANT strandline_app, strandline_sweep, strandline_operator TO strandline_mover")
        connection.execute("CREATE SCHEMA strandline AUTHORIZATION strandline_mover")
    mover = psycopg.conninfo.conninfo_to_dict(postgres_url)
    url = f"postgresql://strandline_mover@{mover['host']}:{mover['port']}/{mover['dbname']}"
    assert strandline.copy_store(source, url).settled
    assert_same(source, postgres_url)
