"""The tap sees each change of a file in order, and does to one call what it was told, and nothing else."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from tests.crash.tracing import (
    Create,
    Deed,
    Link,
    Mark,
    Rename,
    Run,
    Strike,
    Sync,
    Tap,
    Truncate,
    Unlink,
    Write,
    why_not,
)

pytestmark = [
    pytest.mark.skipif(why_not() is not None, reason=str(why_not())),
    pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning"),  # of the run's workers
]


@pytest.fixture
def program(tmp_path):
    """Return a program that makes seven changes, with a report in between; it tells what fails."""

    def program(report):
        def attempt(change):
            try:
                change()
            except OSError as error:
                report(f"{error.errno}")

        file = os.open(tmp_path / "a", os.O_CREAT | os.O_RDWR)
        attempt(lambda: os.write(file, b"first"))
        attempt(lambda: os.pwrite(file, b"second", 100))
        attempt(lambda: os.fsync(file))
        report("synced")
        attempt(lambda: os.ftruncate(file, 50))
        attempt(lambda: os.write(file, b"third"))
        attempt(lambda: (tmp_path / "a").rename(tmp_path / "b"))
        attempt((tmp_path / "b").unlink)

    return program


def test_each_change_is_seen_in_order(tmp_path, program):
    run = Tap(tmp_path).record(program)
    assert run.operations == [
        Create("a"),
        Write("a", 0, b"first"),
        Write("a", 100, b"second"),
        Sync("a"),
        Mark("synced"),
        Truncate("a", 50),
        Write("a", 5, b"third"),
        Rename("a", "b"),
        Unlink("b"),
    ]
    assert (run.calls, run.reports, run.exit) == (8, ["synced"], 0)


def content(folder, name="a"):
    path = folder / name
    return path.read_bytes() if path.exists() else None


@pytest.mark.parametrize(
    ("call", "deed", "left"),
    [
        (0, Deed.BEFORE, None),
        (0, Deed.AFTER, b""),
        (1, Deed.BEFORE, b""),
        (1, Deed.TORN, b"fi"),
        (1, Deed.AFTER, b"first"),
        (2, Deed.TORN, b"first".ljust(100, b"\0") + b"se"),
        (4, Deed.BEFORE, b"first".ljust(100, b"\0") + b"second"),
        (4, Deed.AFTER, b"first".ljust(50, b"\0")),
        (6, Deed.AFTER, None),
    ],
)
def test_a_kill_is_before_within_or_after_a_call(tmp_path, program, call, deed, left):
    run = Tap(tmp_path).strike(program, Strike(call, deed, keep_bytes=2))
    assert run.exit == -signal.SIGKILL
    assert run.struck is not None
    assert run.reports == (["synced"] if call > 3 else [])
    assert content(tmp_path) == left


@pytest.mark.parametrize(("deed", "number"), [(Deed.EIO, 5), (Deed.ENOSPC, 28)])
def test_a_call_that_fails_is_not_made_and_the_program_goes_on(tmp_path, program, deed, number):
    run = Tap(tmp_path).strike(program, Strike(2, deed))
    assert (run.struck, run.reports, run.exit) == (Write("a", 100, b"second"), [str(number), "synced"], 0)


def test_a_full_disk_stays_full_until_the_program_says_something(tmp_path):
    def program(report):
        file = os.open(tmp_path / "a", os.O_CREAT | os.O_RDWR)
        failed = 0
        for place in range(3):
            try:
                os.pwrite(file, b"x", place)
            except OSError:
                failed += 1
        os.fsync(file)
        report(f"{failed} writes failed")
        os.pwrite(file, b"y", 0)

    run = Tap(tmp_path).strike(program, Strike(1, Deed.FULL))
    assert (run.reports, run.exit, content(tmp_path)) == (["3 writes failed"], 0, b"y")


def test_threads_and_forks_are_seen(tmp_path):
    def program(report):
        writer = threading.Thread(target=(tmp_path / "a").write_bytes, args=(b"thread",))
        writer.start()
        writer.join()
        subprocess.run([sys.executable, "-c", "open('b', 'w').write('fork')"], cwd=tmp_path, check=True)

    run = Tap(tmp_path).record(program)
    assert run.operations == [Create("a"), Write("a", 0, b"thread"), Create("b"), Write("b", 0, b"fork")]
    strike = Tap(tmp_path).strike(lambda _: (tmp_path / "c").write_bytes(b"c"), Strike(9, Deed.BEFORE))
    assert strike == Run(calls=2)  # it ended before


def test_what_is_elsewhere_is_nothing(tmp_path):
    (tmp_path / "in").mkdir()
    run = Tap(tmp_path / "in").record(lambda _: (tmp_path / "out").write_text("out"))
    assert run == Run()


def test_a_change_that_is_not_understood_is_told(tmp_path):
    (tmp_path / "a").touch()
    with pytest.raises(NotImplementedError, match="symlink changes"):
        Tap(tmp_path).record(lambda _: (tmp_path / "b").symlink_to(tmp_path / "a"))


def test_a_second_name_is_a_link(tmp_path):
    (tmp_path / "a").touch()
    run = Tap(tmp_path).record(lambda _: (tmp_path / "b").hardlink_to(tmp_path / "a"))
    assert run.operations == [Link("a", "b")]


def test_a_program_that_raises_tells_its_parent(tmp_path):
    run = Tap(tmp_path).record(lambda _: 1 // 0)
    assert run.exit == 1
    assert "ZeroDivisionError" in run.reports[0]
