"""Law (C6): a backup is the whole store as it was in one moment, taken while others write, and is a file only when it
is whole.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing

import pytest

import strandline
from strandline.stores.sqlite import transfer
from tests.unit.test_copy import fill, rows_of, verified
from tests.unit.test_engine_stage import open_store, talk

WRITERS = 4
FILLED = 3_000  # events before the backup begins, so that it takes some steps
WRITER = """
import itertools, strandline, sys
with strandline.open(sys.argv[1], durability="normal") as db:
    wf = db.tenant("acme").workflow("main")
    for number in itertools.count():
        seq = wf.append(strandline.note(f"{sys.argv[2]}: {number}", key=f"{sys.argv[2]}-{number}")).seqs[0]
        print(seq, flush=True)
"""


@pytest.fixture
def db(tmp_path):
    with open_store("sqlite", tmp_path) as db:
        yield db


def left_over(folder) -> list[str]:
    return [path.name for path in folder.iterdir() if "unfinished" in path.name]


def test_a_backup_has_every_row_and_is_a_store(db, tmp_path):
    fill(db)
    said: list[tuple[int, int]] = []
    report = db.backup(tmp_path / "backup.db", lambda done, total: said.append((done, total)))
    assert rows_of(tmp_path / "backup.db") == rows_of(tmp_path / "store.db")
    assert (report.workflows, report.size_bytes) == (3, (tmp_path / "backup.db").stat().st_size)
    assert report.events == sum(len(rows) for table, rows in rows_of(tmp_path / "store.db").items() if table == "event")
    assert said
    assert said[-1][0] == said[-1][1]
    assert stat.S_IMODE((tmp_path / "backup.db").stat().st_mode) == 0o600
    assert verified(tmp_path / "backup.db").ok
    assert left_over(tmp_path) == []


def test_a_backup_beside_four_writers_is_a_prefix_of_the_log(db, tmp_path, monkeypatch):
    """It waits for nobody and nobody for it: each writer gets on while it runs."""
    monkeypatch.setattr(transfer, "BACKUP_STEP_PAGES", 8)
    wf = db.tenant("acme").workflow("main")
    wf.append([event for start in range(0, FILLED, 20) for event in talk(10, start=start)])
    command = [sys.executable, "-c", WRITER, str(tmp_path / "store.db")]
    writers = [subprocess.Popen([*command, f"w{n}"], stdout=subprocess.PIPE, text=True) for n in range(WRITERS)]
    try:
        acknowledged = max(int(writer.stdout.readline()) for writer in writers)
        steps = 0

        def step(done: int, total: int) -> None:
            nonlocal steps
            if steps < WRITERS * 2:  # between two steps a writer gets an answer
                assert writers[steps % WRITERS].stdout.readline()
            steps += 1

        report = db.backup(tmp_path / "backup.db", step)
    finally:
        for writer in writers:
            writer.kill()
            writer.communicate()
    assert steps > WRITERS * 2
    with strandline.open(tmp_path / "backup.db") as copied:
        assert copied.verify().ok
        theirs = copied.tenant("acme").workflow("main")
        revision = theirs.basis().revision
        assert acknowledged <= revision <= wf.basis().revision
        assert report.events == revision
        assert theirs.events(revision - 50) == wf.events(revision - 50, revision)
    assert db.verify().ok


def test_what_is_there_is_never_overwritten(db, tmp_path):
    fill(db)
    (tmp_path / "taken.db").write_bytes(b"mine")
    (tmp_path / "dangling.db").symlink_to(tmp_path / "nowhere")
    for path in (tmp_path / "taken.db", tmp_path / "dangling.db", tmp_path, tmp_path / "store.db"):
        with pytest.raises(strandline.InvalidInputError, match="there already"):
            db.backup(path)
    with pytest.raises(strandline.StoreUnavailableError, match="nothing was written"):
        db.backup(tmp_path / "nowhere" / "backup.db")
    assert (tmp_path / "taken.db").read_bytes() == b"mine"
    assert left_over(tmp_path) == []


def test_a_name_that_is_taken_meanwhile_is_not_overwritten(db, tmp_path):
    fill(db)
    with pytest.raises(strandline.InvalidInputError, match="there already"):
        db.backup(tmp_path / "backup.db", lambda done, total: (tmp_path / "backup.db").write_bytes(b"mine"))
    assert (tmp_path / "backup.db").read_bytes() == b"mine"
    assert left_over(tmp_path) == []


def test_a_backup_that_was_cut_off_is_no_file(db, tmp_path):
    fill(db)

    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        db.backup(tmp_path / "backup.db", interrupt)
    assert not (tmp_path / "backup.db").exists()
    assert left_over(tmp_path) == []


def test_it_is_flushed_before_it_has_its_name(db, tmp_path, monkeypatch):
    """Else a power loss leaves a name without the bytes."""
    seen = []
    real = os.fsync

    def flush(handle: int) -> None:
        seen.append((tmp_path / "backup.db").exists())
        real(handle)

    monkeypatch.setattr(transfer.os, "fsync", flush)
    fill(db)
    seen.clear()
    db.backup(tmp_path / "backup.db")
    assert seen == [False, True]  # the file, then the folder that names it


def test_damage_is_in_the_backup_too(db, tmp_path):
    fill(db)
    with closing(sqlite3.connect(tmp_path / "store.db")) as connection:
        connection.execute("UPDATE register_fact SET row_digest = x'00'")
        connection.commit()
    db.backup(tmp_path / "backup.db")
    assert verified(tmp_path / "backup.db") == db.verify()
    assert not db.verify().ok


def test_a_store_in_memory_has_none(tmp_path):
    with strandline.open(":memory:") as db, pytest.raises(strandline.InvalidInputError, match="memory"):
        db.backup(tmp_path / "backup.db")
    assert list(tmp_path.iterdir()) == []


async def _backup(path, target) -> strandline.BackupReport:
    async with strandline.aopen(path) as db:
        return await db.backup(target)


def test_the_door_for_event_loops_has_it(db, tmp_path):
    import asyncio

    fill(db)
    assert asyncio.run(_backup(tmp_path / "store.db", tmp_path / "backup.db")).workflows == 3


def failing(number: int, fails):
    """Return `os.fsync` that answers with an error where `fails` says so of what the descriptor is."""
    flush = os.fsync

    def fsync(descriptor: int) -> None:
        if fails(os.fstat(descriptor).st_mode):
            raise OSError(number, os.strerror(number))
        flush(descriptor)

    return fsync


@pytest.mark.parametrize("fails", [stat.S_ISREG, stat.S_ISDIR], ids=["of the file", "of its name"])
def test_a_flush_that_fails_is_told_and_leaves_nothing(db, tmp_path, monkeypatch, fails):
    monkeypatch.setattr(transfer.os, "fsync", failing(errno.EIO, fails))
    with pytest.raises(strandline.StoreUnavailableError, match="Input/output error; nothing was written"):
        db.backup(tmp_path / "copy.db")
    monkeypatch.undo()
    assert not (tmp_path / "copy.db").exists()
    assert left_over(tmp_path) == []
    db.backup(tmp_path / "copy.db")


def test_a_folder_that_cannot_be_flushed_is_no_failure(db, tmp_path, monkeypatch):
    monkeypatch.setattr(transfer.os, "fsync", failing(errno.EINVAL, stat.S_ISDIR))
    db.backup(tmp_path / "copy.db")
    assert (tmp_path / "copy.db").exists()


def test_a_rest_that_cannot_be_taken_away_does_not_undo_a_backup(db, tmp_path, monkeypatch):
    def unlink(path, missing_ok=False):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(transfer.Path, "unlink", unlink)
    assert db.backup(tmp_path / "copy.db").size_bytes == (tmp_path / "copy.db").stat().st_size
