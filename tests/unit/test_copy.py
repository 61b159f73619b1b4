"""Law (C6, I1, I13): a copy of a store is the same store at another place, or nobody can take it for one.

Every row is what it was in one moment of the source. A copy may be cut off anywhere and gone on with; until it has
finished nobody opens it; what was written to a copy is never overwritten.
"""

from __future__ import annotations

import random
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

import strandline
from strandline import limits
from strandline.client import moving
from strandline.client.diagnosis import diagnose
from strandline.errors import OutcomeUnknownError
from strandline.stores.sql import transfer_out
from strandline.stores.sql.transfer import APART, COPY_MARK, DERIVED, TABLES, Change, read_mark
from strandline.stores.sql.transfer_out import begin_run
from strandline.stores.sql.transfer_pass import run_pass
from strandline.stores.sqlite import transfer as sqlite_transfer
from strandline.testing import ScriptedSummarizer
from tests.unit.test_engine_stage import open_store, quiet, talk
from tests.unit.test_every_byte import (
    act,
    ask_twice,
    cool,
    do_twice,
    keep_foreign,
    save_states,
    tables_of_the_schema,
)

SEED, STEPS = 11, 40
SMALL_BATCH = 23
KILLS = 3


# ---------------------------------------------------------------------------------------------- what is copied


def fill(db) -> None:
    """Leave rows in every table, in two tenants, with a rewind, a fork and what a family shares."""
    wf = db.tenant("acme").workflow("main")
    wf.append(
        [
            strandline.constraint("rule", "Never on Fridays.", refs=["bucket-0001"], key="rule"),
            strandline.pin("bucket-0001"),
            *(strandline.approval(of, "Yes.", granter="ana", single_use=True) for of in ("publish", "deploy")),
            *talk(6),
        ]
    )
    revision = wf.append(talk(2, start=90)).revision
    wf.rewind(revision - 2, by="dana", why="a wrong turn")
    wf.compact(350, quiet)
    wf.append([*talk(8, start=20), strandline.message("user", "And bucket-0001 once more.")])
    wf.compact(350, ScriptedSummarizer(["Made up: bucket-9999 was opened."] * 3), fallback=False)
    wf.compact(350, quiet)
    wf.checkpoint({"turn": 1}, 1, basis=wf.context())
    keep_foreign(db, wf)
    act(db, wf)
    ask_twice(wf)
    cool(wf)
    save_states(wf)
    do_twice(wf)
    wf.read_through("archive", 3)
    wf.compact_later(400)
    child = wf.fork(None, "child", by="eve", why="another way")
    db.tenant("acme").workflow(child.workflow).append(talk(2, start=70))
    do_twice_in(db, child.workflow)
    other = db.tenant("Other").workflow("main")
    other.append([strandline.message("user", "vol-77aa belongs to others", key="rule"), strandline.note("b")])


def do_twice_in(db, workflow: str) -> None:
    db.tenant("acme").workflow(workflow).effect("third", "create_bucket", {"name": "third"}, lambda: "made")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("source")
    with open_store("sqlite", folder) as db:
        fill(db)
        assert db.verify().ok
    return folder / "store.db"


@pytest.fixture
def source(whole, tmp_path):
    path = tmp_path / "source.db"
    path.write_bytes(whole.read_bytes())
    return path


def rows_of(path) -> dict[str, list[tuple]]:
    """Return every row of a store, but for the mark of a copy."""
    with closing(sqlite3.connect(path)) as connection:
        names = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name"
        found = {}
        for (table,) in connection.execute(names).fetchall():
            columns = sorted(row[1] for row in connection.execute(f"PRAGMA table_info({table})"))
            rows = connection.execute(f"SELECT {', '.join(columns)} FROM {table}").fetchall()
            found[table] = sorted((row for row in rows if COPY_MARK not in row), key=repr)
        return found


def is_whole(path) -> bool:
    with closing(sqlite3.connect(path)) as connection:
        (value,) = connection.execute("SELECT value FROM store_meta WHERE name = ?", (COPY_MARK,)).fetchone()
    return read_mark(value, "here").whole


def verified(path) -> strandline.VerifyReport:
    with strandline.open(path) as db:
        return db.verify()


def test_every_table_of_the_schema_is_copied():
    """A table that a migration adds must be in the list, or be said to be derived."""
    assert {table.name for table in TABLES} | APART | set(DERIVED) == set(tables_of_the_schema())


def test_keys_are_the_schema_s_own(whole):
    with closing(sqlite3.connect(whole)) as connection:
        for table in TABLES:
            told = connection.execute(f"PRAGMA table_info({table.name})").fetchall()
            key = [name for _, name in sorted((row[5], row[1]) for row in told if row[5])]
            assert key == ["tenant_id", "workflow_id", *table.key], table.name


def test_a_copy_has_every_row_as_it_was(source, tmp_path):
    """And with them all that a reader sees; verify proves both."""
    before = rows_of(source)
    report = strandline.copy_store(source, tmp_path / "target.db")
    assert rows_of(tmp_path / "target.db") == before == rows_of(source)
    assert [table.name for table in TABLES if not before[table.name]] == [], "the walk would prove less than it says"
    assert (report.ok, report.settled, report.workflows) == (True, True, 3)
    assert report.passes == 2
    assert all(head.same for head in report.heads)
    assert verified(tmp_path / "target.db") == verified(source)
    assert verified(source).ok


def test_a_copy_is_gone_on_with_by_its_agents(source, tmp_path):
    """Keys, effects and approvals are known there; what comes next gets the next numbers."""
    strandline.copy_store(source, tmp_path / "target.db")
    with strandline.open(tmp_path / "target.db") as db:
        wf = db.tenant("acme").workflow("main")
        revision = wf.append(strandline.note("first there")).revision
        assert wf.events(revision)[0].seq == revision
        assert wf.effect("first", "create_bucket", {"name": "first"}, pytest.fail).result == "made for first"
        assert db.tenant("Other").workflow("main").append(strandline.note("b")).revision == 3
        db.tenant("New").workflow("main").append(strandline.note("c"))
        assert wf.compact(350, quiet).outcome == "activated"
        assert db.verify().ok


def test_a_second_copy_writes_nothing(source, tmp_path):
    target = tmp_path / "target.db"
    strandline.copy_store(source, target)
    report = strandline.copy_store(source, target)
    assert (report.rows, report.passes, report.settled) == (0, 1, True)


# ---------------------------------------------------------------------------------------------- what comes later


def save_or_delete(tenant, wf, number: int, *, delete: bool) -> None:
    part = strandline.Part(kind="json", data=b"%d" % number)
    wf.states.save(f"s{number}", {"n": strandline.StateValue((part,))}, run=f"run-{number % 3}")
    if delete:
        tenant.delete_states(runs=[f"run-{(number + 1) % 3}"])


def move_on(db, number: int, chance: random.Random) -> None:
    """Do one of the things that change rows."""
    wf = db.tenant("acme").workflow(chance.choice(["main", "child"]))
    choice = chance.randrange(12)
    if choice == 0:
        wf.rewind(wf.append(talk(2, start=number)).revision - 2, by="dana", why="a wrong turn")
    elif choice == 1:
        wf.compact(400, quiet)
    elif choice == 2:
        wf.effect(f"e{number}", "create", {"name": number}, lambda: "made")
    elif choice == 3:
        wf.checkpoint({"turn": number}, number, basis=wf.context())
    elif choice == 4:
        ask_twice(wf)
    elif choice == 5:
        wf.fork(None, f"fork-{number}", by="eve", why="another way")
    elif choice == 6:
        with pytest.raises(strandline.ActionDeniedError):
            wf.guard(f"do-{number}", [strandline.approved("nothing")])
    elif choice in (10, 11):
        save_or_delete(db.tenant("acme"), wf, number, delete=choice == 11)
    elif choice == 8:
        wf.compact_later(400 + number)
    elif choice == 7:
        for case in wf.cases():
            wf.reconcile(case, strandline.Abandon(), by="ann", why="no matter")
            return
    else:
        db.tenant(f"t{number % 3}").workflow(f"w{number % 5}").append(talk(1, start=number))


@pytest.mark.parametrize("seed", range(4))
def test_a_copy_catches_up_with_whatever_came(source, tmp_path, seed):
    """Also in the middle: a case that is asked again when its first one is answered, a key that a rewind made free."""
    chance, target = random.Random(seed), tmp_path / "target.db"
    strandline.copy_store(source, target)
    with strandline.open(source, durability="normal") as db:
        for number in range(200, 200 + STEPS):
            move_on(db, number, chance)
            if number % 4 == 0:
                assert strandline.copy_store(source, target).ok
                assert rows_of(target) == rows_of(source)
    assert strandline.copy_store(source, target).settled
    assert rows_of(target) == rows_of(source)
    assert verified(target).ok


def test_equal_heads_mean_equal_rows(source):
    """What lets a workflow be passed over: rows that are said to follow the head never change without it."""
    follow = [table.name for table in TABLES if table.change is not Change.MOVES]
    seen: dict[tuple, dict] = {}
    chance = random.Random(SEED)
    with strandline.open(source, durability="normal") as db:
        for number in range(300, 300 + STEPS):
            with closing(sqlite3.connect(source)) as connection:
                for workflow_id, digest in connection.execute("SELECT workflow_id, row_digest FROM workflow"):
                    text = "SELECT * FROM {} WHERE workflow_id = ?"
                    held = {name: connection.execute(text.format(name), (workflow_id,)).fetchall() for name in follow}
                    assert seen.setdefault((workflow_id, digest), held) == held
            move_on(db, number, chance)


def test_what_the_copy_alone_holds_is_somebody_s_own(source, tmp_path):
    """Rows are never deleted: one that the source lacks was written to the copy, or is damage of the source."""
    target = tmp_path / "target.db"
    strandline.copy_store(source, target)
    with closing(sqlite3.connect(source)) as connection:
        connection.execute("DELETE FROM permit")
        connection.commit()
    before = rows_of(target)
    with pytest.raises(strandline.InvalidInputError, match="permit"):
        strandline.copy_store(source, target)
    assert rows_of(target) == before


def test_what_is_derived_is_made_anew(source, tmp_path):
    """An index that a reader of the copy made is forgotten where the log moved on, and made again by who searches."""
    target = tmp_path / "target.db"
    with strandline.open(source, durability="normal") as db:
        wf = db.tenant("acme").workflow("main")
        assert wf.search("bucket")
        strandline.copy_store(source, target)
        wf.append(strandline.note("a heron stood there"))
        with strandline.open(target) as copied:
            assert copied.tenant("acme").workflow("main").search("bucket")
        assert strandline.copy_store(source, target).settled
        with strandline.open(target) as copied:
            theirs = copied.tenant("acme").workflow("main")
            assert [hit.seq for hit in theirs.search("heron")] == [hit.seq for hit in wf.search("heron")] != []
            assert copied.verify().ok


# ---------------------------------------------------------------------------------------------- a source that lives


def test_a_copy_of_a_living_store_is_one_moment_of_it(source, tmp_path):
    """A writer that never rests: the passes end, the last one's moment is what the copy holds, and it says so."""
    with strandline.open(source, durability="normal") as db:
        wf = db.tenant("acme").workflow("main")

        def write(done: int, total: int) -> None:
            wf.append(talk(1, start=1_000 + done))

        report = strandline.copy_store(source, tmp_path / "target.db", progress=write)
        assert (report.settled, report.passes, report.ok) == (False, limits.COPY_PASSES_MAX, True)
        assert verified(tmp_path / "target.db").ok
        with strandline.open(tmp_path / "target.db") as copied:
            theirs = copied.tenant("acme").workflow("main").events()
        assert theirs == wf.events()[: len(theirs)]
        assert len(theirs) < len(wf.events())
    assert strandline.copy_store(source, tmp_path / "target.db").settled
    assert rows_of(tmp_path / "target.db") == rows_of(source)


# ---------------------------------------------------------------------------------------------- cut off


class Cut(BaseException):
    """What a kill is, within one process: nothing behind it runs but what Python itself takes down."""


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(transfer_out, "COPY_BATCH_ROWS_MAX", SMALL_BATCH)


def cut_behind(monkeypatch, commits: int) -> None:
    """Let the commit behind so many others be the last thing that never happened."""
    real, left = sqlite_transfer._Target.commit, [commits]

    def commit(self) -> None:
        if not left[0]:
            raise Cut
        left[0] -= 1
        real(self)

    monkeypatch.setattr(sqlite_transfer._Target, "commit", commit)


def test_a_copy_may_be_cut_off_at_any_commit(source, tmp_path, small, monkeypatch):
    """Until it has finished nobody opens it; it is gone on with, and ends as one that nobody cut."""
    wanted, commits = rows_of(source), 0
    while True:
        target = tmp_path / f"{commits}.db"
        with monkeypatch.context() as patch:
            cut_behind(patch, commits)
            try:
                strandline.copy_store(source, target)
                break
            except Cut:
                pass
        if commits and not is_whole(target):
            with pytest.raises(strandline.UnfinishedCopyError) as caught:
                strandline.open(target)
            assert f"strandline copy {source} {target}" in caught.value.hint
        strandline.copy_store(source, target)
        assert is_whole(target)
        assert rows_of(target) == wanted
        commits += 1
    assert commits > 5
    assert verified(target).ok


def test_a_run_that_goes_on_copies_only_the_rest(source, tmp_path, small, monkeypatch):
    whole = strandline.copy_store(source, tmp_path / "whole.db").rows
    with monkeypatch.context() as patch:
        cut_behind(patch, 5)
        with pytest.raises(Cut):
            strandline.copy_store(source, tmp_path / "target.db")
    rest = strandline.copy_store(source, tmp_path / "target.db").rows
    assert 0 < rest <= whole - 3 * SMALL_BATCH


def test_a_catching_up_that_was_cut_off_is_no_whole_copy(source, tmp_path, small, monkeypatch):
    target = tmp_path / "target.db"
    strandline.copy_store(source, target)
    with strandline.open(source, durability="normal") as db:
        db.tenant("acme").workflow("main").append(talk(20, start=500))
    with monkeypatch.context() as patch:
        cut_behind(patch, 2)  # the first takes the run, the second is the first rows'
        with pytest.raises(Cut):
            strandline.copy_store(source, target)
    with pytest.raises(strandline.UnfinishedCopyError):
        strandline.open(target)
    (check,) = [check for check in diagnose(target) if check.name == "copy"]
    assert check.status == "fail"
    strandline.copy_store(source, target)
    assert rows_of(target) == rows_of(source)


COPIER = """
import strandline, sys
from strandline.stores.sql import transfer_out
transfer_out.COPY_BATCH_ROWS_MAX = 40
strandline.copy_store(*sys.argv[1:], progress=lambda done, total: print(done, total, flush=True))
"""


def test_a_killed_process_leaves_a_copy_that_is_gone_on_with(tmp_path):
    """A kill -9 when it has told of some workflows, again and again: each run begins where the one before ended."""
    source, target = tmp_path / "source.db", tmp_path / "target.db"
    with strandline.open(source, durability="normal") as db:
        for number in range(KILLS * 4):
            db.tenant("acme").workflow(f"w{number}").append(talk(10, start=number))
    counts = []
    for kill in range(1, KILLS + 1):
        with subprocess.Popen([sys.executable, "-c", COPIER, source, target], stdout=subprocess.PIPE) as child:
            assert child.stdout is not None
            for _ in range(3 * kill):
                child.stdout.readline()
            child.send_signal(signal.SIGKILL)
        with closing(sqlite3.connect(target)) as connection:
            counts.append(connection.execute("SELECT COUNT(*) FROM event").fetchone()[0])
        with pytest.raises(strandline.UnfinishedCopyError):
            strandline.open(target)
    assert counts == sorted(counts)
    assert counts[-1] > counts[0] > 0
    strandline.copy_store(source, target)
    assert rows_of(target) == rows_of(source)
    assert verified(target).ok


def test_a_run_that_another_one_replaced_writes_no_more(source, tmp_path):
    """Each has a number; who finds a higher one stops."""
    with moving._end(source, create=False) as old, moving._end(tmp_path / "target.db", create=True) as new:
        with old.reading() as reading, new.writing() as first:
            late = begin_run(reading, first, old.place, new.place)
            with new.writing() as second:
                run = begin_run(reading, second, old.place, new.place)
                assert run_pass(reading, second, run).differing == 0
            connection = sqlite3.connect(source)
            connection.execute("UPDATE candidate SET row_digest = x'00'")
            connection.commit()
            connection.close()
        with old.reading() as reading, new.writing() as first, pytest.raises(OutcomeUnknownError, match="another copy"):
            run_pass(reading, first, late)


# ---------------------------------------------------------------------------------------------- what is refused


def test_a_target_that_is_another_store_is_left_alone(source, tmp_path):
    target = tmp_path / "target.db"
    with strandline.open(target) as db:
        db.tenant("acme").workflow("own").append(strandline.note("mine"))
    before = rows_of(target)
    with pytest.raises(strandline.InvalidInputError, match="no copy"):
        strandline.copy_store(source, target)
    assert rows_of(target) == before
    assert verified(target).ok


def test_a_copy_of_another_store_is_left_alone(source, tmp_path):
    with strandline.open(tmp_path / "other.db") as db:
        db.tenant("acme").workflow("own").append(strandline.note("mine"))
    strandline.copy_store(tmp_path / "other.db", tmp_path / "target.db")
    before = rows_of(tmp_path / "target.db")
    with pytest.raises(strandline.InvalidInputError, match="another store"):
        strandline.copy_store(source, tmp_path / "target.db")
    assert rows_of(tmp_path / "target.db") == before


@pytest.mark.parametrize("where", ["main", "child", "new"])
def test_a_copy_that_is_in_use_is_left_alone(source, tmp_path, where):
    """Whether or not the source moved on, too: what was written to the copy is never lost."""
    target = tmp_path / "target.db"
    strandline.copy_store(source, target)
    with strandline.open(target) as db:
        db.tenant("acme").workflow(where).append(strandline.note("here"))
    before = rows_of(target)
    for _ in range(2):
        with pytest.raises(strandline.InvalidInputError, match=r"somebody wrote|not finished"):
            strandline.copy_store(source, target)
        assert rows_of(target) == before
        with strandline.open(source) as db:
            db.tenant("acme").workflow(where).append([strandline.note("there"), strandline.note("and on")])
    assert verified(target).ok


def test_a_tenant_that_only_the_target_holds_is_no_damage(source, tmp_path):
    """One that both hold as their own is: the numbers of their rows differ."""
    target = tmp_path / "target.db"
    strandline.copy_store(source, target)
    with strandline.open(target) as db:
        db.tenant("newcomer").workflow("w").append(strandline.note("here"))
    before = rows_of(target)
    with pytest.raises(strandline.InvalidInputError, match=r"holds the tenant 'newcomer', which .* does not") as said:
        strandline.copy_store(source, target)
    assert "verify" not in said.value.hint
    with strandline.open(source) as db:
        for tenant in ("first", "newcomer"):
            db.tenant(tenant).workflow("w").append(strandline.note("there"))
    with pytest.raises(strandline.InvalidInputError, match="tenant 'newcomer' is not that of"):
        strandline.copy_store(source, target)
    assert rows_of(target) == before


def test_it_is_looked_through_before_a_row_of_it_is_changed(source, tmp_path, small):
    """Also where what was written to it comes last, behind much that is new in the source."""
    target = tmp_path / "target.db"
    strandline.copy_store(source, target)
    with strandline.open(target) as db:
        db.tenant("Other").workflow("main").append(strandline.note("here"))
    with strandline.open(source) as db:
        db.tenant("acme").workflow("main").append(talk(40, start=900))
    before = rows_of(target)
    with pytest.raises(strandline.InvalidInputError, match="no row was changed"):
        strandline.copy_store(source, target)
    assert rows_of(target) == before
    assert verified(target).ok


def test_a_store_that_somebody_has_open_is_not_mixed_with_its_copy(source, tmp_path):
    """Who opened the empty store holds another key: his first workflow is refused, not written with it."""
    with strandline.open(tmp_path / "target.db") as early:
        strandline.copy_store(source, tmp_path / "target.db")
        with pytest.raises(strandline.StoreUnavailableError, match="copied here"):
            early.tenant("late").workflow("w").append(strandline.note("x"))
        with pytest.raises(strandline.CorruptRecordError):
            early.tenant("acme").workflow("main").append(strandline.note("x"))
    assert rows_of(tmp_path / "target.db") == rows_of(source)


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_newer_schema_is_refused(source, tmp_path, side):
    target = tmp_path / "target.db"
    strandline.copy_store(source, target)
    with closing(sqlite3.connect(source if side == "source" else target)) as connection:
        connection.execute("INSERT INTO schema_migration VALUES (99, x'00')")
        connection.commit()
    with pytest.raises(strandline.SchemaVersionError):
        strandline.copy_store(source, target)


def test_the_same_place_and_a_store_in_memory_are_refused(source, tmp_path):
    (tmp_path / "link.db").symlink_to(source)
    for target in (source, f"sqlite:///{source}", tmp_path / "link.db", ":memory:"):
        with pytest.raises(strandline.InvalidInputError):
            strandline.copy_store(source, target)
    with pytest.raises(strandline.StoreUnavailableError, match="no such store"):
        strandline.copy_store(tmp_path / "nowhere.db", tmp_path / "target.db")
    assert not (tmp_path / "target.db").exists()


def test_damage_is_copied_as_it_is_and_found_on_both_sides(source, tmp_path):
    """Nothing is decoded on the way: a copy neither repairs nor hides."""
    with closing(sqlite3.connect(source)) as connection:
        (trigger,) = connection.execute(
            "SELECT sql FROM sqlite_schema WHERE name = 'event_is_never_changed'"
        ).fetchone()
        connection.execute("DROP TRIGGER event_is_never_changed")
        connection.execute("UPDATE event SET salt = x'00' WHERE seq = 3")
        connection.execute("UPDATE register_fact SET row_digest = x'00'")
        connection.execute(trigger)
        connection.commit()
    strandline.copy_store(source, tmp_path / "target.db")
    assert rows_of(tmp_path / "target.db") == rows_of(source)
    assert not verified(source).ok
    assert verified(tmp_path / "target.db") == verified(source)


@pytest.mark.parametrize("name", ["n" * 300, "a.db/x.db"])
def test_a_path_that_can_not_be_is_refused_with_a_typed_error(tmp_path, name):
    with strandline.open(tmp_path / "a.db") as db:
        db.tenant("acme").workflow("run").append(strandline.note("Something."))
        for at_fault in (
            lambda: strandline.open(tmp_path / name),
            lambda: strandline.open(tmp_path / name, create=False),
            lambda: strandline.copy_store(tmp_path / "a.db", tmp_path / name),
            lambda: strandline.copy_store(tmp_path / name, tmp_path / "b.db"),
            lambda: db.backup(tmp_path / name),
        ):
            with pytest.raises(strandline.StoreUnavailableError):
                at_fault()
