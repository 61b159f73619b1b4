"""Law (I1, I2): who reads a store's file past SQLite, in a process that has it open, leaves SQLite its locks.

Without them another process that opens and closes the store deletes the write-ahead log that this one writes to.
"""

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

import strandline
from strandline.client.diagnosis import diagnose
from strandline.stores.sqlite import raw

OTHER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
print(connection.execute("SELECT COUNT(*) FROM event").fetchone()[0])
connection.close()
"""


def events_seen_elsewhere(path: Path) -> int:
    return int(subprocess.run([sys.executable, "-c", OTHER, path], check=True, capture_output=True).stdout)


def erase(db: strandline.Strandline, path: Path) -> None:
    db.tenant("acme").workflow("w").erase(events=[1], by="dpo", why="request 12")


def look(db: strandline.Strandline, path: Path) -> None:
    assert all(check.trouble is None for check in diagnose(path))


@pytest.mark.parametrize("reading", [erase, look])
def test_another_process_that_closes_the_store_takes_nothing_along(tmp_path, reading):
    path = tmp_path / "store.db"
    with strandline.open(path) as db:
        wf = db.tenant("acme").workflow("w")
        wf.append([strandline.message("user", "Zebulon said it."), strandline.message("user", "More.")])
        reading(db, path)
        assert events_seen_elsewhere(path) == 2
        assert path.with_name("store.db-wal").exists()
        wf.append(strandline.message("user", "Behind it."))
        assert events_seen_elsewhere(path) == 3


def test_a_file_is_read_whole_and_stays_open_while_it_has_a_name(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    assert list(raw.read_pieces(path, 4)) == [b"0123", b"4567", b"89"]
    inode = path.stat().st_ino
    assert list(raw.read_pieces(path, 10)) == [b"0123456789"]
    assert [os.fstat(descriptor).st_ino for descriptor in raw._OPEN].count(inode) == 1
    path.unlink()
    path.write_bytes(b"another")
    assert list(raw.read_pieces(path, 10)) == [b"another"]
    assert all(os.fstat(descriptor).st_nlink for descriptor in raw._OPEN)


def test_the_locks_are_what_is_at_stake(tmp_path):
    """The fault itself, without the store: closing any descriptor of the file lets another process delete the log."""
    path = tmp_path / "plain.db"
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("CREATE TABLE event (seq INTEGER)")
    path.read_bytes()
    assert events_seen_elsewhere(path) == 0
    assert not path.with_name("plain.db-wal").exists()
    connection.close()
