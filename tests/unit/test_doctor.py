"""Law: `doctor` says of a store what is wrong and what to do, whatever stands at its path, and changes nothing."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

import strandline
from strandline.cli.app import app
from strandline.client.diagnosis import diagnose
from strandline.limits import DISK_FREE_BYTES_MIN, FLUSH_FAST_US, FLUSH_SLOW_US, LEASE_TTL_S
from strandline.model.diagnosis import Check, CheckStatus, Trouble
from strandline.stores.sqlite import diagnosis, place
from strandline.stores.sqlite.diagnosis import _library
from strandline.stores.sqlite.place import _file_system, in_bytes, mount_of
from strandline.testing import VirtualClock
from tests.unit.test_sqlite_store import break_the_name_of_a_table

OK, WARN, FAIL = CheckStatus.OK, CheckStatus.WARN, CheckStatus.FAIL


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "store.db"
    with strandline.open(path, durability="normal") as db:
        wf = db.tenant("acme").workflow("release-42")
        wf.append([strandline.note(f"step {number}, see logs/{number}.txt") for number in range(60)])
        assert wf.compact(400).outcome == "activated"
    return path


@pytest.fixture(autouse=True)
def few_flushes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place, "FLUSH_PROBES", 2)


def look(path: Path, **options: Any) -> dict[str, Check]:
    checks = diagnose(path, **options)
    found = {check.name: check for check in checks}
    assert len(found) == len(checks)
    for check in checks:
        assert bool(check.advice) == (check.status is not OK), check
        assert (check.trouble is not None) == (check.status is FAIL), check
    return found


def change(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


# ---------------------------------------------------------------------------------------------- what it says


def test_a_sound_store_has_no_failure_and_is_not_touched(store: Path) -> None:
    before = bytes_of(store.parent)
    found = look(store)
    assert bytes_of(store.parent) == before
    assert not [check for check in found.values() if check.status is FAIL]
    assert found["content"].measured == {"tenants": 1, "workflows": 1, "events": 60, "abandoned": 0}
    assert found["schema"].measured["found"] == found["schema"].measured["known"]
    assert found["open leases"].value == "none"
    assert found["pages read"].value.startswith("quick_check: ok")
    assert look(store, deep=True)["pages read"].value.startswith("integrity_check: ok")


def test_a_store_in_use_is_read_as_it_is_now(store: Path) -> None:
    """What stands in the WAL alone counts."""
    with strandline.open(store, durability="normal") as db:
        db.tenant("acme").workflow("other").append(strandline.note("more"))
        wal = (store.parent / "store.db-wal").read_bytes()
        assert wal
        assert look(store)["content"].measured == {"tenants": 1, "workflows": 2, "events": 61, "abandoned": 0}
        assert (store.parent / "store.db-wal").read_bytes() == wal


def test_events_are_counted_as_verify_counts_them(store: Path) -> None:
    """Those of each log, as it proves them: what a rewind abandoned, and what a fork shares, counts with each."""
    with strandline.open(store, durability="normal") as db:
        tenant = db.tenant("acme")
        wf = tenant.workflow(tenant.workflows()[0])
        wf.rewind(57, by="ada", why="a wrong turn")
        wf.append(strandline.note("on the new branch"))
        wf.fork(None, "aside", by="ada", why="another way")
        tenant.workflow("aside").append(strandline.note("aside"))
        proved = db.verify()
    content = look(store)["content"]
    assert (proved.problems, content.measured["events"]) == ((), proved.events)
    assert content.measured["abandoned"] == 2 * 3
    assert content.value.endswith(f"events {proved.events}, 6 of them abandoned")


def test_a_store_whose_process_was_killed_is_read_with_its_wal(store: Path, tmp_path: Path) -> None:
    left = tmp_path / "left"
    left.mkdir()
    with strandline.open(store, durability="normal") as db:
        db.tenant("acme").workflow("other").append(strandline.note("more"))
        for name in ("store.db", "store.db-wal"):
            shutil.copy(tmp_path / name, left / name)
    before = bytes_of(left)
    assert look(left / "store.db")["content"].measured["events"] == 61
    assert {name: bytes_of(left)[name] for name in before} == before


def test_a_store_that_is_not_there(tmp_path: Path) -> None:
    found = look(tmp_path / "none.db")
    assert (found["store"].status, found["store"].trouble) == (FAIL, Trouble.UNAVAILABLE)
    assert list(tmp_path.iterdir()) == []
    assert look(tmp_path / "no" / "none.db")["store"].value == "the folder is not there"
    assert look(tmp_path)["store"].value == "no file"
    assert look(tmp_path / ("x" * 300))["store"].trouble is Trouble.UNAVAILABLE


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.db")
    assert look(tmp_path / "pipe.db")["store"].value == "no file"


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    (tmp_path / "empty.db").touch()
    assert look(tmp_path / "empty.db")["store"].status is WARN
    change(tmp_path / "empty.db", "PRAGMA journal_mode=WAL", "CREATE TABLE t (a)", "DROP TABLE t")
    assert look(tmp_path / "empty.db")["schema"].status is WARN


@pytest.mark.parametrize("content", [b"no store at all, but long enough to be read" * 9, b"SQLite format 3\0"])
def test_what_is_no_store_is_corrupt(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.db").write_bytes(content)
    assert look(tmp_path / "x.db")["store"].trouble is Trouble.CORRUPT


def test_a_file_of_another_program_is_refused(tmp_path: Path) -> None:
    change(tmp_path / "a.db", "CREATE TABLE t (a)", "PRAGMA journal_mode=WAL")
    assert look(tmp_path / "a.db")["schema"].trouble is Trouble.UNAVAILABLE
    change(tmp_path / "a.db", "PRAGMA application_id=77")
    assert look(tmp_path / "a.db")["store"].trouble is Trouble.UNAVAILABLE


@pytest.mark.parametrize("keep", [0.3, 0.8])
def test_a_file_that_was_cut_off_is_corrupt(store: Path, keep: float) -> None:
    data = store.read_bytes()
    store.write_bytes(data[: int(len(data) * keep)])
    troubles = {check.trouble for check in look(store).values()}
    assert Trouble.CORRUPT in troubles


def test_a_page_that_was_overwritten_is_found(store: Path) -> None:
    data = bytearray(store.read_bytes())
    data[4096 * 20 : 4096 * 20 + 200] = b"\xff" * 200
    store.write_bytes(data)
    found = look(store)
    assert Trouble.CORRUPT in {check.trouble for check in found.values()}


def test_a_large_store_is_read_through_on_request_only(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """I22: doctor answers at once."""
    monkeypatch.setattr(diagnosis, "DOCTOR_CHECK_BYTES_MAX", 1_000)
    assert "--deep" in look(store)["pages read"].value
    assert look(store, deep=True)["pages read"].value.startswith("integrity_check: ok")


# ---------------------------------------------------------------------------------------------- schema, work, clock


def test_a_schema_whose_names_are_damaged_is_told(store: Path) -> None:
    """I4: what SQLite complains of can't be decoded then."""
    break_the_name_of_a_table(store)
    read = look(store)["read"]
    assert (read.status, read.trouble) == (FAIL, Trouble.CORRUPT)
    assert "malformed database schema" in read.value


def test_a_newer_schema_is_refused_and_an_older_one_announced(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = diagnosis.read_migrations

    def one_more(folder: Any) -> list[Any]:
        (first,) = (own := known(folder))[:1]
        return [*own, type(first)(number=len(own) + 1, name="next", text="-- next")]

    with monkeypatch.context() as patch:
        patch.setattr(diagnosis, "read_migrations", one_more)
        older = look(store)["schema"]
        assert (older.status, older.measured["known"]) == (WARN, older.measured["found"] + 1)
    change(store, "INSERT INTO schema_migration VALUES (99, x'00')")
    newer = look(store)["schema"]
    assert (newer.trouble, newer.measured["found"]) == (Trouble.UNAVAILABLE, 99)
    assert "content" not in look(store)
    change(store, "DELETE FROM schema_migration WHERE number = 99", "UPDATE schema_migration SET checksum = x'00'")
    assert "is not the one of this version" in look(store)["schema"].value


def test_a_missing_digest_key_is_found(store: Path) -> None:
    change(store, "DELETE FROM store_meta")
    assert look(store)["digest key"].trouble is Trouble.CORRUPT


@pytest.mark.parametrize(
    ("left_s", "status", "said"),
    [(60, OK, "60 s left"), (-5, WARN, "expired"), (LEASE_TTL_S + 1, WARN, "counts as expired"), (3e9, WARN, "counts")],
)
def test_leases_are_judged_as_a_compaction_judges_them(store: Path, left_s: float, status: str, said: str) -> None:
    """DESIGN §5: one further ahead than its TTL counts as expired."""
    clock = VirtualClock()
    until = clock.now_us() + int(left_s * 1_000_000)
    change(store, f"UPDATE view_head SET lease_attempt = 'attempt-1', lease_until_us = {until}")
    check = look(store, clock=clock)["open leases"]
    assert check.status is CheckStatus(status)
    assert "acme/release-42 main, attempt attempt-1" in check.value
    assert said in check.value


def test_a_clock_behind_what_was_recorded_is_found(store: Path) -> None:
    clock = VirtualClock(wall_us=10**15)
    assert look(store, clock=clock)["clock"].status is WARN
    assert look(store)["clock"].status is OK


def test_a_file_that_another_process_holds_is_said_to_be(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnosis, "DOCTOR_BUSY_TIMEOUT_S", 0.01)
    with closing(sqlite3.connect(store, isolation_level=None)) as holder:
        holder.execute("PRAGMA locking_mode=EXCLUSIVE")
        holder.execute("BEGIN EXCLUSIVE")
        assert look(store)["lock"].trouble is Trouble.UNAVAILABLE


def test_another_journal_mode_is_found(store: Path) -> None:
    change(store, "PRAGMA journal_mode=DELETE")
    assert (look(store)["store"].status, look(store)["content"].status) == (WARN, OK)


def test_a_large_wal_and_an_empty_file_are_found(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnosis, "FREE_PAGES_SHARE_MAX", 0.0)
    change(store, "CREATE TABLE t AS SELECT zeroblob(100000)", "DROP TABLE t")
    assert "VACUUM" in look(store)["pages"].advice
    monkeypatch.setattr(diagnosis, "WAL_BYTES_LARGE", 100)
    with strandline.open(store, durability="normal") as db:
        db.tenant("acme").workflow("other").append(strandline.note("more"))
        assert "snapshot" in look(store)["pages"].advice


# ---------------------------------------------------------------------------------------------- the place


MOUNTS = """\
22 27 0:21 / / rw,relatime - ext4 /dev/vda rw
23 22 0:40 / /mnt/my\\040disk rw - {type} host:/x rw
24 22 0:41 / /over rw - tmpfs tmpfs rw
25 22 0:42 / /over rw shared:7 - xfs /dev/vdb rw
broken line
"""


@pytest.mark.parametrize(
    ("type_", "status"),
    [
        *[(name, FAIL) for name in ("nfs", "nfs4", "cifs", "smb3", "fuse.sshfs", "ceph", "lustre")],
        *[(name, WARN) for name in ("9p", "virtiofs", "fuse", "fuse.other", "tmpfs", "ramfs", "overlay")],
        *[(name, OK) for name in ("ext4", "xfs", "btrfs", "zfs", "apfs")],
    ],
)
def test_file_systems_are_known_by_name(type_: str, status: CheckStatus) -> None:
    mount = mount_of(Path("/mnt/my disk/store"), MOUNTS.format(type=type_))
    assert mount is not None
    assert (mount.point, mount.type) == ("/mnt/my disk", type_)
    check = _file_system(mount)
    assert check.status is status
    assert type_ in check.value


def test_the_nearest_and_latest_mount_counts() -> None:
    text = MOUNTS.format(type="nfs")
    assert [mount_of(Path(path), text).type for path in ("/home", "/mnt", "/over/x", "/mnt/my disk")] == [  # type: ignore[union-attr]
        "ext4",
        "ext4",
        "xfs",
        "nfs",
    ]
    assert mount_of(Path("/x"), "") is None
    assert _file_system(None).status is OK


@pytest.mark.parametrize(
    ("free", "status"), [(DISK_FREE_BYTES_MIN * 2, OK), (DISK_FREE_BYTES_MIN - 1, WARN), (1_000, FAIL)]
)
def test_disk_space_is_judged(store: Path, free: int, status: CheckStatus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place.shutil, "disk_usage", lambda folder: SimpleNamespace(free=free))
    assert look(store)["disk space"].status is status


@pytest.mark.parametrize(("micros", "status"), [(FLUSH_FAST_US - 1, WARN), (500, OK), (FLUSH_SLOW_US + 1, WARN)])
def test_a_flush_is_judged(store: Path, micros: int, status: CheckStatus, monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter(range(0, 10_000 * micros * 1_000, micros * 1_000))
    monkeypatch.setattr(place, "perf_counter_ns", lambda: next(ticks))
    check = look(store)["flush"]
    assert (check.status, check.measured["median_us"]) == (status, micros)


@pytest.mark.parametrize(("mode", "status"), [(0o600, OK), (0o644, WARN), (0o666, FAIL)])
def test_permissions_are_judged(store: Path, mode: int, status: CheckStatus) -> None:
    store.chmod(mode)
    check = look(store)["permissions"]
    assert check.status is status
    assert f"store.db {mode:03o}" in check.value


@pytest.mark.parametrize("denied", [os.R_OK, os.W_OK])
def test_a_file_that_may_not_be_used_is_found(store: Path, denied: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place.os, "access", lambda path, mode: mode != denied)
    assert look(store)["permissions"].trouble is Trouble.UNAVAILABLE
    monkeypatch.setattr(place.os, "access", lambda path, mode: Path(path) != store.parent)
    assert "folder" in look(store)["permissions"].value


@pytest.mark.parametrize(
    ("version", "status"),
    [
        ((3, 38, 5), FAIL),
        ((3, 40, 1), WARN),
        ((3, 44, 5), WARN),
        ((3, 44, 6), OK),
        ((3, 50, 7), OK),
        ((3, 51, 2), WARN),
        ((3, 51, 3), OK),
        ((3, 53, 0), OK),
    ],
)
def test_the_library_is_judged_by_its_version(version: tuple[int, int, int], status: CheckStatus) -> None:
    assert _library(version).status is status


def test_sizes_are_for_people() -> None:
    assert [in_bytes(n) for n in (0, 1_023, 1_536, 5 * 2**30, 3 * 2**40)] == [
        "0 B",
        "1,023 B",
        "1.5 KiB",
        "5.0 GiB",
        "3.0 TiB",
    ]


# ---------------------------------------------------------------------------------------------- the command


Run = Callable[..., Any]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.delenv("STRANDLINE_STORE", raising=False)
    return lambda *args: CliRunner().invoke(app, ["doctor", *map(str, args)])


def test_the_command_exits_by_the_worst(run: Run, store: Path, tmp_path: Path) -> None:
    """DESIGN §6: 7 store unavailable, 8 corrupt, 1 for what works and is unsafe; warnings are no error."""
    store.chmod(0o600)
    assert run("--store", store).exit_code == 0
    store.chmod(0o666)
    assert run("--store", store).exit_code == 1
    assert run("--store", tmp_path / "none.db").exit_code == 7
    (tmp_path / "x.db").write_bytes(b"x" * 200)
    assert run("--store", tmp_path / "x.db").exit_code == 8
    assert run("--store", "").exit_code == 2
    assert run("--store", ":memory:").exit_code == 2
    assert run("--store", store, "--workflow", "w").exit_code == 2


@pytest.mark.parametrize("there", [True, False])
def test_json_is_one_object(run: Run, store: Path, tmp_path: Path, there: bool) -> None:
    store.chmod(0o600)
    result = run("--json", "--store", store if there else tmp_path / "none.db")
    value = json.loads(result.stdout)
    assert result.stdout.count("\n") == 1
    assert value["ok"] is there
    assert ("error" in value) is not there
    assert all(set(check) == {"name", "status", "value", "advice", "measured"} for check in value["checks"])
    if not there:
        assert (value["error"]["type"], value["error"]["message"]) == ("StoreUnavailableError", "store: not there")
        assert value["error"]["hint"]


def test_what_to_do_stands_under_what_is_wrong(run: Run, store: Path) -> None:
    store.chmod(0o644)
    lines = run("--store", store).stdout.splitlines()
    (at,) = (number for number, line in enumerate(lines) if line.startswith("  warn  permissions"))
    assert lines[at + 1].strip().startswith("→ Anybody on this machine can read")
    assert lines[at + 1].index("→") == lines[at].index("store.db")
