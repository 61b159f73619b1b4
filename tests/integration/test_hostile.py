"""Law (SPEC §6, I2, I4, I22): whatever the surroundings do, the answer is a typed error that says what and where;
nothing is lost: `verify` finds nothing afterwards, and the next verb works when the hindrance is gone.
"""

import os
import socket
import subprocess
import sys
import tempfile
import tracemalloc
from pathlib import Path

import pytest

import strandline
from strandline import InvalidInputError, StoreUnavailableError
from strandline.limits import EVENT_BYTES_MAX, EVENT_REFS_MAX
from strandline.testing import VirtualClock

NOBODY = 65534
SOME = 40  # events of 4 KB each: more than a small limit holds


def say(number=1, size=4_000):
    return [strandline.message("user", f"{at} " + os.urandom(size // 2).hex()) for at in range(number)]


def workflow(db):
    return db.tenant("acme").workflow("run")


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "store" / "a.db"
    file.parent.mkdir()
    with strandline.open(file) as db:
        workflow(db).append(say(2))
    return file


def check_whole(path, revision):
    """Nothing was lost, and the next verb works."""
    with strandline.open(path) as db:
        assert db.verify().ok
        assert workflow(db).basis().revision == revision
        assert workflow(db).append(say()).revision == revision + 1


def refused(call, *said):
    with pytest.raises(StoreUnavailableError) as caught:
        call()
    assert caught.value.hint
    for text in said:
        assert text in str(caught.value)


# ------------------------------------------------------------------------------------------ disk full


def test_a_full_disk_by_the_databases_own_limit(path):
    with strandline.open(path) as db:
        with db.store._writes.write() as connection:
            pages = connection.execute("PRAGMA page_count").fetchone()[0]
            connection.execute(f"PRAGMA max_page_count={pages + 2}")
        refused(lambda: workflow(db).append(say(SOME)), str(path), "full", "nothing was written")
        assert workflow(db).basis().revision == 2
        with db.store._writes.write() as connection:
            connection.execute("PRAGMA max_page_count=1000000")
        assert workflow(db).append(say(SOME)).revision == 2 + SOME
    check_whole(path, 2 + SOME)


def test_a_full_disk_by_the_systems_limit_on_files(path):
    """A child may not write files beyond 200 kB: its appends are refused, or acknowledged and kept."""
    program = (
        "import resource, signal, strandline, sys\n"
        "from tests.integration.test_hostile import say, workflow\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))\n"
        "kept = 2\n"
        "with strandline.open(sys.argv[1]) as db:\n"
        "    for _ in range(200):\n"
        "        try:\n"
        "            kept = workflow(db).append(say()).revision\n"
        "        except (strandline.StoreUnavailableError, strandline.OutcomeUnknownError) as error:\n"
        "            assert sys.argv[1] in str(error) and error.hint\n"
        "            break\n"
        "    else:\n"
        "        raise SystemExit('never full')\n"
        "print(kept)\n"
    )
    done = run(program, path)
    assert done.returncode == 0, done.stderr
    with strandline.open(path) as db:
        revision = workflow(db).basis().revision
    assert revision - int(done.stdout) in (0, 1)  # I19: of the last one the outcome may be unknown
    check_whole(path, revision)


def run(program, *words):
    root = Path(__file__).resolve().parents[2]
    env = {**os.environ, "PYTHONPATH": f"{root / 'src'}:{root}", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", program, *map(str, words)]
    return subprocess.run(command, env=env, cwd=root, capture_output=True, text=True, check=False)


# ------------------------------------------------------------------------------------------ permissions


def told_as_nobody(path):
    """Return what a child that is nobody is told when it appends; root itself ignores permissions."""
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setuid(NOBODY)
            with strandline.open(path) as db:
                workflow(db).append(say())
            told = "it was written"
        except StoreUnavailableError as error:
            told = f"{error} | {error.hint}"
        except BaseException as error:  # noqa: BLE001  the parent says what it was
            told = f"{type(error).__name__}: {error}"
        os.write(into, told.encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(into)
    with os.fdopen(out) as said:
        return said.read()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to somebody else")
@pytest.mark.parametrize("mode", ["file", "folder", "closed"])
def test_what_may_not_be_written_is_refused_by_name(path, mode):
    """Root ignores permissions, so the child is nobody."""
    open_way(path)
    path.chmod({"file": 0o444, "folder": 0o666, "closed": 0o000}[mode])
    told = told_as_nobody(path)
    assert told.startswith(f"{path}: ")
    assert " | " in told, told
    path.chmod(0o600)
    check_whole(path, 2)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to somebody else")
def test_a_folder_on_the_way_that_may_not_be_entered_is_told(path):
    open_way(path)
    path.parent.parent.chmod(0o700)
    told = told_as_nobody(path)
    assert told == f"{path}: Permission denied | Who runs this needs the right to enter each folder on the way."
    check_whole(path, 2)


def open_way(path):
    """Let everybody enter the folders of the tests, which are their owner's alone."""
    for folder in path.parents:
        if folder.stat().st_uid == os.geteuid() and folder.is_relative_to(tempfile.gettempdir()):
            folder.chmod(folder.stat().st_mode | 0o755)


# ------------------------------------------------------------------------------------------ files that go


@pytest.mark.parametrize("gone", [["-shm"], ["-wal", "-shm"]], ids=["shm", "wal and shm"])
def test_files_beside_the_store_that_were_deleted_while_nobody_had_it_open(path, gone):
    """A closed store has taken its log over: nothing is in them."""
    for name in gone:
        Path(f"{path}{name}").unlink(missing_ok=True)
    check_whole(path, 2)


def test_a_log_that_was_deleted_under_an_open_store_is_found_by_a_witness(path):
    """What stood in it alone is gone, which no record of the store can show (ADR 0071)."""
    db = strandline.open(path)
    workflow(db).append(say(3))
    witness = db.witness()
    for name in ("-wal", "-shm"):
        Path(f"{path}{name}").unlink(missing_ok=True)
    copied = path.with_name("left.db")
    copied.write_bytes(path.read_bytes())
    with strandline.open(copied) as left:
        assert left.verify().ok
        with pytest.raises(strandline.NotContinuedError, match=r"rolled back|missing"):
            left.check_witness(witness)
    db.close()


# ------------------------------------------------------------------------------------------ locks


def test_a_lock_that_is_denied_as_a_network_file_system_does(path, monkeypatch):
    """Another process holds SQLite's lock bytes exclusively, by fcntl."""
    monkeypatch.setattr("strandline.stores.sqlite.store.STORE_BUSY_TIMEOUT_S", 0.05)
    program = (
        "import fcntl, sys\n"
        "file = open(sys.argv[1], 'r+b')\n"
        "fcntl.lockf(file, fcntl.LOCK_EX, 512, 0x40000000, 0)\n"
        "print('held', flush=True)\n"
        "sys.stdin.read()\n"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", program, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout.readline() == "held\n"
        refused(lambda: strandline.open(path), str(path))
    finally:
        holder.communicate("")
    check_whole(path, 2)


# ------------------------------------------------------------------------------------------ paths that are no file


@pytest.mark.parametrize("kind", ["folder", "pipe", "socket", "device"])
def test_a_path_that_is_no_file_is_refused_by_name(tmp_path, kind):
    path = tmp_path / "here"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path = Path("/dev/null")
    with socket.socket(socket.AF_UNIX) as listening:
        if kind == "socket":
            listening.bind(str(path))
        refused(
            lambda: strandline.open(path), str(path), "folder" if kind == "folder" else "pipe, a socket or a device"
        )


# ------------------------------------------------------------------------------------------ sizes


@pytest.mark.parametrize("times", [8, pytest.param(128, marks=pytest.mark.long)], ids=["128 MB", "2 GB"])
@pytest.mark.parametrize("kind", ["text", "input"])
def test_an_event_that_is_far_too_large_is_refused_before_it_is_held_twice(path, times, kind):
    """2 GB: what the caller holds is all that there ever is (I22)."""
    text = "x" * (times * EVENT_BYTES_MAX)
    event = strandline.message("user", text) if kind == "text" else strandline.tool_call("c", "t", {"a": [text]})
    with strandline.open(path) as db:
        wf = workflow(db)
        tracemalloc.start()
        with pytest.raises(InvalidInputError, match=f"at most {EVENT_BYTES_MAX} are allowed"):
            wf.append(event)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < EVENT_BYTES_MAX
    check_whole(path, 2)


def test_an_event_of_just_the_largest_size_is_taken(path):
    with strandline.open(path) as db:
        assert workflow(db).append(strandline.message("user", "x" * EVENT_BYTES_MAX)).revision == 3
    check_whole(path, 3)


def test_a_million_references_in_one_event_are_refused(path):
    refs = [f"ref-{number}" for number in range(1_000_000)]
    with strandline.open(path) as db, pytest.raises(InvalidInputError, match=f"at most {EVENT_REFS_MAX:,} are"):
        workflow(db).append(strandline.message("user", "x", refs=refs))
    check_whole(path, 2)


# ------------------------------------------------------------------------------------------ clocks


@pytest.mark.parametrize("year", [1900, 1970, 2100])
def test_a_clock_of_another_century_changes_no_order(path, year):
    """No wall clock decides an order (I15): events go on, a compaction, a checkpoint and a recovery work."""
    clock = VirtualClock(int((year - 1970) * 365.25 * 86_400 * 1_000_000))
    with strandline.open(path, clock=clock) as db:
        wf = workflow(db)
        wf.append(say(4, size=200))
        wf.compact(4_000)
        wf.checkpoint({"turn": 1}, 1, basis=wf.context())
        assert wf.recover().state == {"turn": 1}
        assert db.verify().ok
    check_whole(path, 6)


def test_no_room_for_the_databases_own_files(path, monkeypatch):
    """SQLite sorts on disk only what is large; a folder for that which can't be written hinders nothing."""
    monkeypatch.setenv("SQLITE_TMPDIR", "/nonexistent")
    with strandline.open(path) as db:
        workflow(db).append(say(SOME))
        assert db.verify().ok
    check_whole(path, 2 + SOME)
