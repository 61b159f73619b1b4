"""What is SQLite's own in the embedded store: durability, triggers, the file, the statements (DESIGN §5)."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import strandline
from strandline.stores.sql.queries import load_queries
from strandline.stores.sqlite import SqliteStore
from strandline.testing import FixedClock, SeededEntropy

UNBOUND = {"find_tenant", "add_tenant", "scopes"} | {"due_lanes", "due_ahead"}  # they find a tenant, or sweep over all
FULL, NORMAL = 2, 1


def _store(path: Path, durability: str = "full") -> SqliteStore:
    return SqliteStore(str(path), clock=FixedClock(), entropy=SeededEntropy(1), durability=durability)


def _filled(path: Path) -> Path:
    with strandline.open(path) as db:
        db.tenant("acme").workflow("w").append([strandline.message("user", "hello", key="k")])
    return path


def _schema(path: Path) -> list[tuple[str, str]]:
    with sqlite3.connect(path) as connection:
        return connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name").fetchall()


def test_every_statement_is_bound_to_a_tenant() -> None:
    """I21: a statement that forgot its tenant could read another's."""
    unbound = {name for name, query in load_queries().items() if "tenant_id" not in query.parameters}
    assert unbound == UNBOUND


@pytest.mark.parametrize(("durability", "level"), [("full", FULL), ("normal", NORMAL)])
def test_each_durability_sets_its_level(tmp_path: Path, durability: str, level: int) -> None:
    """I2: full is the default, and is synchronous=FULL in WAL mode."""
    store = _store(tmp_path / "s.db", durability)
    writer = store._open_writer()
    assert writer.execute("PRAGMA synchronous").fetchone() == (level,)
    assert writer.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert writer.execute("PRAGMA foreign_keys").fetchone() == (1,)
    store.close()


def test_an_unknown_durability_is_refused(tmp_path: Path) -> None:
    """SPEC §6: with the names that there are, and no file is made."""
    with pytest.raises(strandline.InvalidInputError, match="full"):
        _store(tmp_path / "s.db", "eventual")
    assert not (tmp_path / "s.db").exists()


@pytest.mark.parametrize(
    "statement", ["DELETE FROM event", "UPDATE event SET body = x'00'", "UPDATE event SET seq = 7"]
)
def test_events_are_never_changed_by_sql(tmp_path: Path, statement: str) -> None:
    """I1: triggers refuse it, whoever asks."""
    path = _filled(tmp_path / "s.db")
    with sqlite3.connect(path) as connection, pytest.raises(sqlite3.IntegrityError, match="I1"):
        connection.execute(statement)


@pytest.mark.parametrize("statement", ["DELETE FROM lineage", "UPDATE lineage SET at_us = at_us"])
def test_the_lineage_is_never_changed_by_sql(tmp_path: Path, statement: str) -> None:
    """I13: it only grows, whoever asks."""
    path = _filled(tmp_path / "s.db")
    with strandline.open(path) as db:
        tenant = db.tenant("acme")
        tenant.workflow("w").append(strandline.message("user", "hello"))
        tenant.workflow("w").checkpoint({"turn": 1}, 1, context_free=True)
    with sqlite3.connect(path) as connection, pytest.raises(sqlite3.IntegrityError, match="I13"):
        connection.execute(statement)


def test_an_empty_file_is_an_empty_store(tmp_path: Path) -> None:
    """Issue: a 0-byte or schema-less file is an empty store."""
    path = tmp_path / "s.db"
    path.touch()
    with strandline.open(path) as db:
        assert db.tenant("acme").workflows() == []
        assert db.verify().ok
    schemaless = tmp_path / "t.db"
    with sqlite3.connect(schemaless) as connection:
        connection.execute("VACUUM")
    with strandline.open(schemaless) as db:
        assert db.verify().ok


def test_the_file_of_another_program_is_refused_unchanged(tmp_path: Path) -> None:
    """SPEC §6: nothing is written into it."""
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE notes (text TEXT)")
    before = path.read_bytes()
    with pytest.raises(strandline.StoreUnavailableError, match="another program"):
        strandline.open(path)
    assert path.read_bytes() == before


def test_a_file_that_is_no_database_is_corrupt(tmp_path: Path) -> None:
    """I4: said with its place."""
    path = tmp_path / "s.db"
    path.write_bytes(b"this is no database at all" * 100)
    with pytest.raises(strandline.CorruptRecordError, match=r"s\.db"):
        strandline.open(path)


@pytest.mark.skipif(os.name != "posix", reason="permissions of files are POSIX's")
def test_a_new_store_is_its_owners_alone(tmp_path: Path) -> None:
    """C32: file, WAL and SHM; one that is there keeps the permissions that it has."""
    path = _filled(tmp_path / "s.db")
    with strandline.open(path) as db:
        db.tenant("t").workflow("w").append(strandline.note("x"))
        assert {file.stat().st_mode & 0o777 for file in tmp_path.iterdir()} == {0o600}
    path.chmod(0o640)
    with strandline.open(path):
        assert path.stat().st_mode & 0o777 == 0o640


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    """DESIGN §5: what a newer version wrote is not touched by an older one."""
    path = _filled(tmp_path / "s.db")
    with sqlite3.connect(path) as connection:
        connection.execute("INSERT INTO schema_migration VALUES (999, x'00')")
    with pytest.raises(strandline.SchemaVersionError) as caught:
        strandline.open(path)
    assert (caught.value.found, caught.value.known) == (999, 1)


def test_a_changed_migration_is_refused(tmp_path: Path) -> None:
    """DESIGN §5: migrations are checksummed."""
    path = _filled(tmp_path / "s.db")
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE schema_migration SET checksum = x'00'")
    with pytest.raises(strandline.StoreUnavailableError, match="not the one of this version"):
        strandline.open(path)


def test_opening_again_changes_nothing_of_the_schema(tmp_path: Path) -> None:
    """DESIGN §5: a migration is applied once."""
    path = _filled(tmp_path / "s.db")
    before = _schema(path)
    strandline.open(path).close()
    assert _schema(path) == before


def test_a_missing_store_is_not_made_by_reading(tmp_path: Path) -> None:
    """SPEC §6: create=False says so, and leaves nothing behind."""
    with pytest.raises(strandline.StoreUnavailableError, match="no such store"):
        strandline.open(tmp_path / "absent.db", create=False)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("url", ["mysql://host/db", "", "mysql://x"])
def test_a_url_of_another_kind_is_refused(url: str) -> None:
    """SPEC §6."""
    with pytest.raises(strandline.InvalidInputError):
        strandline.open(url)


def test_a_write_inside_a_write_is_refused_at_once(tmp_path: Path) -> None:
    """I22: it would wait for itself."""
    path = _filled(tmp_path / "s.db")
    with strandline.open(path) as db:
        scope = db.store.scopes()[0]
        with (
            db.store.write(scope),
            pytest.raises(strandline.StoreUnavailableError, match="inside"),
            db.store.write(scope),
        ):
            pass
        db.tenant("acme").workflow("w").append(strandline.note("the lock was given back"))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_process_opens_its_own_connections(tmp_path: Path) -> None:
    """I2: a prefork worker inherits an open store; its first write is committed, once, and acknowledged."""
    with strandline.open(_filled(tmp_path / "s.db")) as db:
        workflow = db.tenant("acme").workflow("w")
        child = os.fork()
        if child == 0:
            try:
                done = workflow.append(strandline.message("user", "from the child", key="c")).revision
                os._exit(0 if done == 2 else 1)
            except BaseException:  # noqa: BLE001  the child must not run the rest of the suite
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert workflow.append(strandline.message("user", "from the parent")).revision == 3


def test_a_swapped_tenant_name_is_found(tmp_path: Path) -> None:
    """I21: the name of the tenant is bound into its workflows' heads."""
    path = _filled(tmp_path / "s.db")
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE tenant SET name = 'evil'")
    with strandline.open(path) as db, pytest.raises(strandline.CorruptRecordError):
        db.tenant("evil").workflow("w").context()


def test_a_closed_store_refuses(tmp_path: Path) -> None:
    """SPEC §6: with a typed error."""
    db = strandline.open(_filled(tmp_path / "s.db"))
    db.close()
    with pytest.raises(strandline.StoreUnavailableError, match="closed"):
        db.tenant("acme").workflow("w").context()


@pytest.mark.parametrize(
    ("query", "index"),
    [
        ("facts_standing", "register_standing_subject"),
        ("facts_of", "register_subject"),
        ("open_calls", "register_open_call"),
        ("newest_checkpoint", "lineage_name"),
        ("left_by_restore", "lineage_name"),
        ("event_by_key", "event_key"),
        ("key_holders", "event_key "),
        ("key_holders", "event_key_abandoned"),
    ],
)
def test_what_is_asked_often_is_found_by_its_index(tmp_path: Path, query: str, index: str) -> None:
    """I22: the cost of an append or a recovery follows what it touches, not the history."""
    statement = load_queries()[query]
    with sqlite3.connect(_filled(tmp_path / "s.db")) as connection:
        parameters = dict.fromkeys(statement.parameters, 1)
        plan = connection.execute(f"EXPLAIN QUERY PLAN {statement.text}", parameters).fetchall()
    assert any(index in row[-1] for row in plan), plan


@pytest.mark.parametrize("lock", ["IMMEDIATE", "EXCLUSIVE"])
def test_a_store_that_another_process_holds_says_how_long_it_waited_and_who_to_look_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, lock: str
) -> None:
    """The disk is not to blame: the hint names the wait, and the commands that find who holds it."""
    path = tmp_path / "my store.db"
    with strandline.open(path) as db:
        db.tenant("acme").workflow("w").append(strandline.note("before"))
    monkeypatch.setattr("strandline.stores.sqlite.store.STORE_BUSY_TIMEOUT_S", 0.05)
    other = sqlite3.connect(path, isolation_level=None)
    with closing(other), strandline.open(path) as db:
        other.execute(f"BEGIN {lock}")
        with pytest.raises(strandline.StoreUnavailableError, match="locked; nothing was written") as refused:
            db.tenant("acme").workflow("w").append(strandline.note("now"))
        other.execute("ROLLBACK")
        assert db.tenant("acme").workflow("w").append(strandline.note("then")).revision == 2
    hint = refused.value.hint
    for said in ("30 s (STORE_BUSY_TIMEOUT_S)", f"`fuser '{path}'`", f"`strandline doctor --store '{path}'`"):
        assert said in hint
    assert "df" not in hint


def break_the_name_of_a_table(path: Path) -> None:
    """Damage an entry of the schema, so that what SQLite complains of quotes bytes that are no UTF-8."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    whole = path.read_bytes()
    at = whole.index(b"tableeventevent")
    damaged = whole[:at] + whole[at:].replace(b"tableevent", b"table\xcbvent", 1).replace(b"CREATE", b"CRXATE", 1)
    path.write_bytes(damaged)


def test_a_complaint_that_can_not_be_decoded_is_damage_with_its_place(tmp_path: Path) -> None:
    """I4: the driver raises something else than SQLite's errors then."""
    path = _filled(tmp_path / "s.db")
    break_the_name_of_a_table(path)
    with pytest.raises(UnicodeDecodeError), closing(sqlite3.connect(path)) as connection:
        connection.execute("SELECT * FROM event")
    with pytest.raises(strandline.CorruptRecordError, match=r"malformed database schema \(\\xcbvent\)") as told:
        strandline.open(path)
    assert told.value.place == str(path)


def test_so_is_one_that_comes_while_the_store_is_open(tmp_path: Path) -> None:
    path = _filled(tmp_path / "s.db")
    with strandline.open(path) as db:
        break_the_name_of_a_table(path)
        wf = db.tenant("acme").workflow("w")
        for verb in (wf.context, wf.verify):  # each by a connection that reads the schema now
            with pytest.raises(strandline.CorruptRecordError, match="malformed database schema"):
                verb()
