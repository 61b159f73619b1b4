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


def descriptors_of(path: Path) -> int:
    """Count the descriptors of this process that lead to a file."""
    wanted, count = path.stat(), 0
    for opened in Path("/dev/fd").iterdir():
        try:
            count += os.path.samestat(os.fstat(int(opened.name)), wanted)
        except OSError:  # the one that listed them
            continue
    return count


def test_a_file_is_read_whole_and_closed_where_no_connection_is(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    assert list(raw.read_pieces(path, 4)) == [b"0123", b"4567", b"89"]
    assert next(raw.read_pieces(path, 4)) == b"0123"
    assert descriptors_of(path) == 0


def test_a_store_that_is_read_often_keeps_one_descriptor_and_none_when_it_is_closed(tmp_path):
    path = tmp_path / "store.db"
    with strandline.open(path) as db:
        db.tenant("acme").workflow("w").append(strandline.message("user", "Zebulon said it."))
        list(raw.read_pieces(path, 4096))
        open_now = descriptors_of(path)
        for _ in range(3):
            list(raw.read_pieces(path, 4096))
        assert descriptors_of(path) == open_now
    assert descriptors_of(path) == 0


def test_a_file_that_is_no_store_leaves_nothing_open(tmp_path):
    path = tmp_path / "store.db"
    path.write_bytes(b"no store at all" * 100)
    with pytest.raises(strandline.StrandlineError):
        strandline.open(path)
    assert list(raw.read_pieces(path, 4096))
    assert descriptors_of(path) == 0


def test_two_who_read_at_once_do_not_move_each_others_place(tmp_path):
    path = tmp_path / "store.db"
    with strandline.open(path) as db:
        db.tenant("acme").workflow("w").append(strandline.message("user", "Zebulon said it."))
        whole = b"".join(raw.read_pieces(path, 4096))
        one, other = raw.read_pieces(path, 1000), raw.read_pieces(path, 1500)
        seen = [next(one), next(other), *one, *other]
        assert sorted(map(len, seen)) == sorted(map(len, [*raw.read_pieces(path, 1000), *raw.read_pieces(path, 1500)]))
        assert seen[0] == whole[:1000]
        assert seen[1] == whole[:1500]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_forked_child_does_not_move_the_place_at_which_its_parent_reads(tmp_path):
    path = tmp_path / "store.db"
    with strandline.open(path) as db:
        db.tenant("acme").workflow("w").append(strandline.message("user", "Zebulon said it."))
        whole = list(raw.read_pieces(path, 1000))
        reading, goes_on = raw.read_pieces(path, 1000), os.pipe()
        child = os.fork()
        if child == 0:
            os.read(goes_on[0], 1)  # the parent is in the middle of the file
            os._exit(0 if list(raw.read_pieces(path, 1000)) == whole else 1)
        seen = [next(reading)]
        os.write(goes_on[1], b".")
        status = os.waitpid(child, 0)[1]
        seen += reading
        assert os.waitstatus_to_exitcode(status) == 0
        assert seen == whole


@pytest.mark.parametrize("instead", [None, b""], ids=["deleted", "replaced"])
def test_nothing_is_acknowledged_that_goes_to_a_file_without_its_name(tmp_path, instead):
    """I2: what is written to it is gone with the last process that has it open."""
    path = tmp_path / "store.db"
    with strandline.open(path) as db:
        wf = db.tenant("acme").workflow("w")
        wf.append(strandline.message("user", "Zebulon said it."))
        path.rename(tmp_path / "moved.db")
        if instead is not None:
            path.write_bytes(instead)
        with pytest.raises(strandline.StoreUnavailableError, match="deleted, moved or replaced"):
            wf.append(strandline.message("user", "Behind it."))
        path.unlink(missing_ok=True)
        (tmp_path / "moved.db").rename(path)
        wf.append(strandline.message("user", "Once more."))
    with strandline.open(path) as db:
        assert db.verify().events == 2


def test_a_file_that_is_gone_is_not_made_anew_by_who_reads(tmp_path):
    path = tmp_path / "store.db"
    with strandline.open(path) as db:
        db.tenant("acme").workflow("w").append(strandline.message("user", "Zebulon said it."))
        path.rename(tmp_path / "moved.db")
        with pytest.raises(strandline.StoreUnavailableError), db.store.connect(read_only=True):
            pass
        assert not path.exists()


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
