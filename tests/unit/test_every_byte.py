"""Law (I4, C5): a flipped byte in any stored column, a missing row, a swapped row: `verify` finds each, with its place,
and the next read that uses it is refused.

Checked by a walk over every column of every table of a store in which each table has rows; and over the file's own
bytes. The walk finds its columns in the schema, so a new one is walked, too.
"""

import random
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest

import strandline
from strandline.engine import search_index
from strandline.engine.cases import open_case
from strandline.engine.cooling import Called, record_call
from strandline.engine.reading import find_view
from strandline.model.case import CaseKind
from strandline.model.erasure import Reader
from strandline.model.ids import Scope
from strandline.testing import ScriptedSummarizer
from strandline.testing.conformance.stage import dump
from strandline.testing.values import make_foreign
from tests.unit.test_engine_guard import consume
from tests.unit.test_engine_stage import open_store, quiet, talk
from tests.unit.test_engine_verify import workflow_of

pytestmark = pytest.mark.long

ROWS_PER_COLUMN = 2  # of each column: the first row and one in the middle
PAGES_SEED, FILE_FLIPS = 5, 60
DERIVED_ONLY = {"sqlite_stat1"}
ACTIONS = ("publish", "deploy")
ONE_ROW = {
    "store_meta",
    "schema_migration",
    "view_head",
    "due_compaction",
}  # a second view can't be defined in this version


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return make_whole(tmp_path_factory.mktemp("bytes"))


def make_whole(folder, seen=lambda: None):
    """Make a store with rows in every table: two rewinds, two generations after them, a failed attempt, checkpoints, a
    foreign summary, a fork of names between two tenants. `seen` is called after each step.
    """
    with open_store("sqlite", folder) as db:
        wf = workflow_of(db)
        wf.append(
            [
                strandline.constraint("rule", "Never on Fridays.", refs=["bucket-0001"], key="rule"),
                strandline.pin("bucket-0001"),
                *(strandline.approval(of, "Yes.", granter="ana", single_use=True) for of in ACTIONS),
                *talk(6),
            ]
        )
        for start in (90, 94):
            revision = wf.append(talk(2, start=start)).revision
            wf.rewind(revision - 2, by="dana", why="a wrong turn")
        seen()
        wf.compact(350, quiet)
        wf.append([strandline.tool_call("c1", "get", {"of": "bucket-0001"}), strandline.tool_result("c1", "vol-77aa")])
        wf.append(talk(8, start=20))
        seen()
        wf.compact(350, ScriptedSummarizer(["Made up: bucket-9999 was opened."] * 3), fallback=False)
        wf.compact(350, quiet)
        seen()
        wf.register_checkpoint("/srv/state-0.json", f"sha256:{'0' * 64}", 0, basis=wf.context(), name="elsewhere")
        wf.checkpoint({"turn": 1}, 1, basis=wf.context())
        wf.checkpoint({"turn": 2}, 2, basis=wf.context())
        seen()
        keep_foreign(db, wf)
        seen()
        act(db, wf)
        wf.append([*talk(3, start=60), strandline.message("user", "And vol-77aa once more, for bucket-0001.")])
        other = db.tenant("other").workflow("release")
        other.append([strandline.message("user", "vol-77aa belongs to others", key="rule"), strandline.note("b")])
        seen()
        ask_twice(wf)
        cool(wf)
        seen()
        save_states(wf)
        seen()
        do_twice(wf)
        wf.compact_later(350, when_tokens=10_000)
        assert db.run_due(db.sweep()[0], worker="w1").result == "done"
        wf.compact_later(350, when_tokens=10_000, delay_s=60)
        seen()
        wf.compact_when(tokens=10_000, budget=350)
        seen()
        index(wf, other)
        seen()
        read_outside(db, wf)
        assert db.verify().ok
        assert wf.context().generation == 4
    path = folder / "store.db"
    with closing(sqlite3.connect(path)) as connection:
        for (trigger,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {trigger}")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path


def ask_twice(wf):
    """Leave two cases: one answered, one open."""
    for answered in (True, False):
        with wf._env.write() as tx:
            view = find_view(tx, "main", str(wf._env.scope))
            case = open_case(wf._env, tx, CaseKind.LINEAGE_REFUSAL, view=view, reason=f"{answered}", subject="x")
        if answered:
            wf.reconcile(case, strandline.Abandon(), by="ann", why="no matter")


def act(db, wf):
    """Use up two approvals, and ask for what nothing permits."""
    for action in ACTIONS:
        consume(db, wf, wf.guard(action, [strandline.approved(action)]), action)
    with pytest.raises(strandline.ActionDeniedError):
        wf.guard("rest", [strandline.approved("rest")])


def cool(wf):
    """Let two summarizers not have answered."""
    with wf._env.write() as tx:
        for name in ("m-1", "m-2"):
            record_call(wf._env, tx, Called(summarizer=name, answered=False, retry_after_s=3.0))


def save_states(wf):
    """Save states in two lines, with a list that fills a block, writes, a run, and one that is awaited."""
    parts = tuple(strandline.Part(kind="json", data=b'"message %d"' % number) for number in range(20))
    for line in ("", "sub"):
        for number in range(2):
            values = {"messages": strandline.StateValue(parts[: 19 + number], many=True)}
            parent = f"s{number - 1}" if number else None
            wf.states.save(f"s{number}", values, line=line, parent=parent, meta=b'{"step": 1}', run=f"run-{number}")
    for state_id in ("s1", "s2"):
        write = strandline.StateWrite(task="t", index=0, channel="c", value=strandline.StateValue(parts[:1]))
        wf.states.write(state_id, [write], line="sub")


def ask_again(wf):
    for action in ACTIONS:
        with pytest.raises(strandline.ActionDeniedError):
            wf.guard(action, [strandline.approved(action)])


def do_twice(wf):
    for key in ("first", "second"):
        wf.effect(key, "create_bucket", {"name": key}, lambda key=key: f"made for {key}")


def index(*workflows):
    """Let each have an index of words, of two events a chunk."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search_index, "SEARCH_CHUNK_EVENTS", 2)
        for wf in workflows:
            assert wf.search("vol-77aa")


def read_outside(db, wf):
    """Let two readers of the log say how far they are."""
    with db.store.write(Scope(tenant="acme", workflow=wf.name)) as tx:
        for name, seq in (("audit", 3), ("export", 5)):
            tx.readers.put(Reader(name=name, seq=seq, finished=False, seen_us=1))
        tx.log.set_head(replace(tx.log.head(), readers=2))


def keep_foreign(db, wf):
    scope = Scope(tenant="acme", workflow=wf.name)
    theirs = [make_foreign("theirs", 3), make_foreign("theirs too", 5)]
    with db.store.write(scope) as tx:
        head = tx.log.head()
        tx.log.set_head(replace(head, foreign_summaries=tx.summaries.add_foreign(theirs)))


@pytest.fixture
def copy(whole, tmp_path):
    """Return a function that changes a copy of the store by SQL, without its constraints, and says how many rows."""

    def change(statement, *values):
        path = tmp_path / "store.db"
        shutil.copy(whole, path)
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA ignore_check_constraints=ON")
            changed = connection.execute(statement, values).rowcount
            connection.commit()
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return path, changed

    return change


def columns(path):
    """Yield every table with its columns."""
    with closing(sqlite3.connect(path)) as connection:
        names = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name"
        for (table,) in connection.execute(names).fetchall():
            if table not in DERIVED_ONLY:
                yield table, [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]


def sample(path, table):
    """Return some whole rows of a table."""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute(f"SELECT * FROM {table}").fetchall()
    return [rows[0], rows[len(rows) // 2]][: len(rows)][:ROWS_PER_COLUMN]


def where(names):
    return " AND ".join(f"{name} IS ?" for name in names)


def flips(value):
    """Return what one flipped bit makes of a value: in its first, its middle and its last byte."""
    if value is None:
        return [1]
    if isinstance(value, int):
        return [value ^ 1, value ^ 64]
    data = value.encode() if isinstance(value, str) else value
    changed = []
    for at in sorted({0, len(data) // 2, len(data) - 1}) if data else []:
        flipped = bytearray(data)
        flipped[at] ^= 1
        changed.append(bytes(flipped).decode("latin-1") if isinstance(value, str) else bytes(flipped))
    return changed or [b"\1" if isinstance(value, bytes) else "x"]


def problems(path):
    """Return what `verify`, or opening the store, finds."""
    try:
        with strandline.open(path) as db:
            return [f"{problem.place}: {problem.reason}" for problem in db.verify().problems]
    except strandline.StrandlineError as error:
        return [str(error)]


def test_every_table_has_rows(whole):
    """Without this the walk would prove less than it says."""
    for table, _ in columns(whole):
        assert sample(whole, table), table


def tables_of_the_schema():
    with closing(sqlite3.connect(":memory:")) as connection:
        from importlib import resources

        folder = resources.files("strandline.stores.sqlite").joinpath("migrations")
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
            if entry.name.endswith(".sql"):
                connection.executescript(entry.read_text(encoding="utf-8"))
        names = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").fetchall()
    return [name for (name,) in names if not name.startswith("sqlite")] + ["schema_migration"]


TABLES = tables_of_the_schema()


@pytest.mark.parametrize("table", TABLES)
def test_a_flipped_byte_in_any_column_is_found(whole, copy, table):
    """I4: every column of the table, in two rows, each flip of which SQLite lets stand."""
    names = dict(columns(whole))[table]
    unseen = []
    for row in sample(whole, table):
        for name, value in zip(names, row, strict=True):
            for changed in flips(value):
                try:
                    path, count = copy(f"UPDATE {table} SET {name} = ? WHERE {where(names)}", changed, *row)
                except sqlite3.IntegrityError:
                    continue  # the table's own rules refuse it
                assert count == 1
                if not problems(path):
                    unseen.append((name, value, changed))
    assert unseen == []


@pytest.mark.parametrize("table", TABLES)
def test_a_missing_row_is_found(whole, copy, table):
    """I4: any row of the table."""
    names = dict(columns(whole))[table]
    unseen = [
        row for row in sample(whole, table) if not problems(copy(f"DELETE FROM {table} WHERE {where(names)}", *row)[0])
    ]
    assert unseen == []


@pytest.mark.parametrize("table", TABLES)
def test_swapped_rows_are_found(whole, copy, table):
    """I4, I21: two rows exchange all but their keys, also what is unique in them; of every table that can have two."""
    with closing(sqlite3.connect(whole)) as connection:
        info = connection.execute(f"PRAGMA table_info({table})").fetchall()
        rows = connection.execute(f"SELECT * FROM {table} LIMIT 2").fetchall()
    is_key = [bool(column[5]) for column in info]
    if table in ONE_ROW:
        assert len(rows) == 1
        return
    first, second = rows
    swapped = [
        [one if key else other for key, one, other in zip(is_key, *pair, strict=True)]
        for pair in ((first, second), (second, first))
    ]
    assert swapped != [list(first), list(second)], "there is something to swap"
    path, _ = copy("SELECT 1")
    with closing(sqlite3.connect(path)) as connection:
        for row in rows:
            assert connection.execute(f"DELETE FROM {table} WHERE {where([c[1] for c in info])}", row).rowcount == 1
        for row in swapped:
            connection.execute(f"INSERT INTO {table} VALUES ({','.join('?' * len(row))})", row)
        connection.commit()
    assert problems(path)


READS = {
    "event": lambda wf: wf.events(1),
    "ref_block": lambda wf: wf.recall("bucket-0001"),
    "ref_key": lambda wf: wf.recall("bucket-0001"),
    "ref_sighting": lambda wf: wf.recall("bucket-0001"),
    "register_fact": lambda wf: wf.compact(200, quiet),
    "view_head": lambda wf: wf.context(),
    "segment": lambda wf: wf.context(),
    "summary": lambda wf: wf.context(),
    "dropped_ref": lambda wf: wf.manifest(),
    "search_mark": lambda wf: wf.search("bucket"),
    "search_posting": lambda wf: wf.search("bucket"),
    "lineage": lambda wf: wf.lineage(),
    "checkpoint": lambda wf: wf.recover(dry_run=True),
    "workflow": lambda wf: wf.context(),
    "abandoned_range": lambda wf: wf.context(),
    "permit": lambda wf: wf.permits(),
    "approval_use": ask_again,
    "effect": lambda wf: wf.effects(),
    "case_file": lambda wf: wf.cases(include_answered=True),
    "state_line": lambda wf: wf.states.load(),
    "state_node": lambda wf: wf.states.load(),
    "saved_state": lambda wf: wf.states.load(),
}
"""The read that uses a row of each table. Jobs are read by the next claim; names by nothing but their own lookup."""

USED = {
    "event": "tenant_id = 1",
    "ref_block": "first_id = 1 AND tenant_id = 1",
    "ref_key": "ref_id = 1 AND tenant_id = 1",
    "ref_sighting": "ref_id = 1 AND tenant_id = 1",
    "search_mark": "tenant_id = 1",
    "search_posting": "tenant_id = 1 AND word = CAST('bucket' AS BLOB)",
    "register_fact": "through_seq IS NULL",
    "summary": "summary_no = (SELECT summary_no FROM view_head)",
    "segment": "through_seq = (SELECT watermark FROM view_head)"
    " AND made_by IN (SELECT attempt_id FROM attempt WHERE state = 'activated')",
    "dropped_ref": "summary_no = 1",
    "checkpoint": "turn = 2",
    "workflow": "name = 'verified'",
    "state_line": "name = ''",
    "state_node": "node_id <= 20",
    "saved_state": "line = 1",
}


@pytest.mark.parametrize("table", READS)
def test_the_read_that_uses_a_row_refuses_it(whole, copy, table):
    """I4: every column but the keys by which the row is found; no answer is given from damaged bytes."""
    with closing(sqlite3.connect(whole)) as connection:
        info = connection.execute(f"PRAGMA table_info({table})").fetchall()
        names = [c[1] for c in info]
        rows = connection.execute(f"SELECT * FROM {table} WHERE {USED.get(table, '1')}").fetchall()
    assert rows
    answered = []
    for name, value, pk in zip(names, rows[-1], [c[5] for c in info], strict=True):
        if pk or name in ("tenant_id", "workflow_id", "name"):
            continue
        for changed in flips(value)[:1]:
            try:
                path, _ = copy(f"UPDATE {table} SET {name} = ? WHERE {where(names)}", changed, *rows[-1])
            except sqlite3.IntegrityError:
                continue
            with strandline.open(path) as db:
                try:
                    READS[table](workflow_of(db))
                except (strandline.CorruptRecordError, strandline.SummaryReconciliationError):
                    continue
                answered.append(name)
    assert answered == []


MISSED = {
    "event": ("DELETE FROM event WHERE seq = 9 AND tenant_id = 1", READS["event"]),
    "range of a rewind": ("DELETE FROM abandoned_range WHERE branch = 2", READS["abandoned_range"]),
    "fact that holds": ("DELETE FROM register_fact WHERE kind = 'constraint'", READS["register_fact"]),
    "view": ("DELETE FROM view_head", READS["view_head"]),
    "segment": ("DELETE FROM segment", READS["segment"]),
    "summary": ("DELETE FROM summary", READS["summary"]),
    "changes of the manifest": ("DELETE FROM dropped_ref", READS["dropped_ref"]),
    "newest checkpoint's entry": (
        "DELETE FROM lineage WHERE lineage_seq = (SELECT max(lineage_seq) FROM lineage)",
        READS["checkpoint"],
    ),
    "permit": ("DELETE FROM permit WHERE state = 'denied'", READS["permit"]),
    "used approval": ("DELETE FROM approval_use WHERE seq = 3", READS["approval_use"]),
    "newest checkpoint": ("DELETE FROM checkpoint WHERE turn = 2", READS["checkpoint"]),
    "newest saved state": ("DELETE FROM saved_state WHERE line = 1 AND number = 2", READS["saved_state"]),
    "line of saved states": ("DELETE FROM state_line WHERE name = ''", READS["state_line"]),
    "part of a saved state": ("DELETE FROM state_node WHERE node_id = 3", READS["state_node"]),
}


@pytest.mark.parametrize(("statement", "read"), MISSED.values(), ids=MISSED)
def test_the_read_that_needs_a_row_misses_it(copy, statement, read):
    """I4, I15: nothing older slips into its place, and nothing is read as if it had never been."""
    path, count = copy(statement)
    assert count > 0
    refused = pytest.raises((strandline.CorruptRecordError, strandline.SummaryReconciliationError))
    with strandline.open(path) as db, refused:
        read(workflow_of(db))


def test_an_older_row_of_a_view_does_not_bring_its_memory_back(whole, tmp_path):
    """I15, the third incident: a row that was once true, with its own digest, is not what the lineage says now."""
    with closing(sqlite3.connect(whole)) as connection:
        older = connection.execute("SELECT * FROM view_head").fetchone()
    path = tmp_path / "store.db"
    shutil.copy(whole, path)
    with open_store("sqlite", tmp_path) as db:
        assert workflow_of(db).compact(220, quiet).outcome == "activated"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"INSERT OR REPLACE INTO view_head VALUES ({','.join('?' * len(older))})", older)
        connection.commit()
    with strandline.open(path) as db:
        wf = workflow_of(db)
        for read in (wf.context, wf.recover, lambda: wf.compact(200, quiet)):
            with pytest.raises(strandline.CorruptRecordError, match="generation 5"):
                read()


@pytest.mark.parametrize("change", ["name = 'mbin'", "kind = 'fence'", "lineage_seq = 999", "view = 'x'"])
def test_a_damaged_entry_hides_no_checkpoint(copy, change):
    """I15: the newest checkpoint is never passed over in silence for an older one."""
    newest = "(SELECT max(lineage_seq) FROM lineage WHERE kind = 'checkpoint')"
    path, count = copy(f"UPDATE lineage SET {change} WHERE lineage_seq = {newest}")
    assert count == 1
    with (
        strandline.open(path) as db,
        pytest.raises((strandline.CorruptRecordError, strandline.SummaryReconciliationError)),
    ):
        workflow_of(db).recover()


def test_a_row_of_another_tenant_is_not_taken_for_ones_own(tmp_path):
    """I4, I21: two workflows of one shape exchange the texts of their references, digests and all."""
    with open_store("sqlite", tmp_path) as db:
        for tenant in ("acme", "other"):
            wf = db.tenant(tenant).workflow("w")
            wf.append(strandline.message("user", "the same words", refs=[f"bucket-of-{tenant}"]))
    with closing(sqlite3.connect(tmp_path / "store.db")) as connection:
        columns_of = "SELECT tenant_id, texts, sightings, row_digest FROM ref_block ORDER BY tenant_id"
        ours, theirs = connection.execute(columns_of).fetchall()
        statement = "UPDATE ref_block SET texts = ?, sightings = ?, row_digest = ? WHERE tenant_id = ?"
        connection.execute(statement, (*theirs[1:], ours[0]))
        connection.execute(statement, (*ours[1:], theirs[0]))
        connection.commit()
    with strandline.open(tmp_path / "store.db") as db:
        for tenant in ("acme", "other"):
            with pytest.raises(strandline.CorruptRecordError, match="ref_block"):
                db.tenant(tenant).workflow("w").events(1)
        assert not db.verify().ok


def test_an_open_call_does_not_vanish(tmp_path):
    """I8: the register lost the row of a call; no context and no recovery is given without it."""
    with open_store("sqlite", tmp_path) as db:
        workflow_of(db).append([strandline.tool_call("c1", "pay", {}), strandline.note("x")])
    with closing(sqlite3.connect(tmp_path / "store.db")) as connection:
        connection.execute("DELETE FROM register_fact")
        connection.commit()
    with strandline.open(tmp_path / "store.db") as db:
        for read in (workflow_of(db).context, workflow_of(db).recover):
            with pytest.raises(strandline.CorruptRecordError, match="0 facts hold, and 1 were written"):
                read()


def contents(path):
    """Return all that can be read, or what went wrong."""
    try:
        with strandline.open(path) as db:
            found = {}
            for scope in db.store.scopes():
                with db.store.read(Scope(tenant=scope.tenant, workflow=scope.workflow)) as tx:
                    found[str(scope)] = repr(dump(tx))
            return found, [str(problem) for problem in db.verify().problems]
    except strandline.StrandlineError as error:
        return None, [str(error)]


def test_a_flipped_byte_of_the_file_is_found_or_means_nothing(whole, tmp_path):
    """I4: any byte of the file. One in unused space changes nothing that is read; every other is found."""
    data = whole.read_bytes()
    before, _ = contents(whole)
    rng = random.Random(PAGES_SEED)
    path = tmp_path / "flipped.db"
    for _ in range(FILE_FLIPS):
        at = rng.randrange(len(data))
        flipped = bytearray(data)
        flipped[at] ^= 1 << rng.randrange(8)
        path.write_bytes(bytes(flipped))
        after, found = contents(path)
        assert found or after == before, f"byte {at}"
        for suffix in ("-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)


@pytest.mark.parametrize("left", [0.1, 0.35, 0.6, 0.85, 0.99])
def test_a_truncated_file_is_found(whole, tmp_path, left):
    """I4: wherever it was cut."""
    data = whole.read_bytes()
    path = tmp_path / "cut.db"
    path.write_bytes(data[: int(len(data) * left)])
    assert problems(path)


def test_a_file_that_a_checkpoint_made_longer_by_half_a_page_is_whole(tmp_path):
    """I4: a power loss in a checkpoint may leave the file so, and the log still holds that page."""
    path = tmp_path / "lost.db"
    with strandline.open(tmp_path / "store.db") as db:
        db.tenant("acme").workflow("w").append(strandline.message("user", "said"))
        path.write_bytes((tmp_path / "store.db").read_bytes() + bytes(700))
        path.with_name("lost.db-wal").write_bytes((tmp_path / "store.db-wal").read_bytes())
    with strandline.open(path) as db:
        assert db.verify().ok
        assert [event.text for event in db.tenant("acme").workflow("w").events()] == ["said"]
