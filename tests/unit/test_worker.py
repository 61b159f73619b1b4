"""Law (C7, C15, I22): a worker runs what is due, in as many threads as it has; it is woken by its own process, finds by
polling what others asked for, finishes what it has in hand when it is told to stop, and outlives whatever goes wrong.

Checked in threads on stores in memory and in a file, and as the command in a process that gets signals.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import strandline
from strandline.client import worker as worker_module
from strandline.limits import WORKER_ONCE_TRIES_MAX, WORKER_THREADS_MAX
from strandline.testing import ScriptedSummarizer
from tests.unit.test_engine_stage import STORES, open_store, quiet, talk

BUDGET = 400
SOON_S = 20.0


@pytest.fixture(params=STORES)
def db(request, tmp_path):
    with open_store(request.param, tmp_path) as db:
        yield db
        assert db.verify().ok


@pytest.fixture
def fast(monkeypatch):
    """Polls are short, so that a test which relies on one does not wait for a second."""
    monkeypatch.setattr(worker_module, "WORKER_POLL_S", 0.01)
    monkeypatch.setattr(worker_module, "WORKER_PAUSE_S", 0.01)


def asked(db, count, *, tenant="acme"):
    """Let so many workflows be due."""
    for number in range(count):
        wf = db.tenant(tenant).workflow(f"w{number}")
        wf.append(talk(8))
        wf.compact_later(BUDGET)


def until(told):
    """Wait for something that another thread does."""
    ends = time.monotonic() + SOON_S
    while not told():
        assert time.monotonic() < ends, "it did not happen"
        time.sleep(0.002)


def generations(db):
    return {wf: db.tenant("acme").workflow(wf).context().generation for wf in db.tenant("acme").workflows()}


# ---------------------------------------------------------------------------------------------- in threads


@pytest.mark.parametrize("threads", [1, 4])
def test_what_is_due_is_run_once_each(db, threads):
    asked(db, 6)
    runs = []
    results = db.worker(quiet, threads=threads, told=lambda key, run: runs.append((key.workflow, run.result))).run(
        once=True
    )
    assert sorted(runs) == [(f"w{number}", "done") for number in range(6)]
    assert results["done"] == 6
    assert set(generations(db).values()) == {1}


def test_several_compactions_run_at_once(db):
    """C26: each thread has one in hand."""
    asked(db, 2)
    both = threading.Barrier(2)

    def meets(request):
        both.wait(SOON_S)
        return quiet(request)

    assert db.worker(meets, threads=2).run(once=True)["done"] == 2


@pytest.mark.parametrize("how", ["asked for", "by triggers"])
def test_it_is_woken_by_its_own_process(db, monkeypatch, how):
    """C7: no poll is waited for."""
    monkeypatch.setattr(worker_module, "WORKER_POLL_S", 3_600.0)
    wf = db.tenant("acme").workflow("w")
    wf.append(talk(8))
    if how == "by triggers":
        wf.compact_when(events=18, budget=BUDGET)
    looked = threading.Event()
    sweep = db.sweep
    monkeypatch.setattr(db, "sweep", lambda limit: (sweep(limit), looked.set())[0])
    with db.worker(quiet) as worker:
        assert looked.wait(SOON_S)
        if how == "by triggers":
            wf.append(talk(1, start=30))
        else:
            wf.compact_later(BUDGET)
        until(lambda: worker.results.get("done"))
    assert wf.context().generation == 1
    assert db._hooks == []


@pytest.mark.usefixtures("fast")
def test_what_another_process_asks_for_is_found_by_polling(tmp_path):
    with open_store("sqlite", tmp_path) as db, open_store("sqlite", tmp_path) as other, db.worker(quiet) as worker:
        asked(other, 1)
        until(lambda: worker.results.get("done"))


def test_when_it_is_stopped_the_run_in_hand_is_finished(db):
    asked(db, 3)
    begun, goes_on = threading.Event(), threading.Event()

    def slow(request):
        begun.set()
        assert goes_on.wait(SOON_S)
        return quiet(request)

    worker = db.worker(slow).start()
    assert begun.wait(SOON_S)
    worker.stop()
    assert not worker.join(0.01)
    goes_on.set()
    assert worker.join(SOON_S)
    assert worker.results == {"done": 1}
    assert sorted(generations(db).values()) == [0, 0, 1]
    assert len(db.sweep()) == 2


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("error", [KeyError("choices"), SystemExit(3)], ids=repr)
def test_what_a_summarizer_raises_ends_no_thread(db, error):
    """The row says what failed; the worker goes on with the others."""
    asked(db, 2)
    told = []

    def broken(request):
        if not told:
            raise error
        return quiet(request)

    with db.worker(broken, told=lambda key, run: told.append(run)) as worker:
        until(lambda: worker.results.get("done"))
    assert told[0] is error
    assert worker.results["error"] == 1


@pytest.mark.usefixtures("fast")
def test_a_store_that_does_not_answer_is_asked_again(db, monkeypatch):
    asked(db, 1)
    sweep, told = db.sweep, []

    def away(limit):
        monkeypatch.setattr(db, "sweep", sweep)
        raise strandline.StoreUnavailableError("gone for a moment")

    monkeypatch.setattr(db, "sweep", away)
    with db.worker(quiet, told=lambda key, run: told.append((key, run))) as worker:
        until(lambda: worker.results.get("done"))
    assert told[0][0] is None
    assert isinstance(told[0][1], strandline.StoreUnavailableError)


def test_once_ends_although_something_fails_again_and_again(db):
    asked(db, 1)
    results = db.worker(ScriptedSummarizer([strandline.TransientSummarizerError("busy")] * 3)).run(once=True)
    assert results == {"again": 1}


def test_once_ends_although_the_store_never_says_what_is_due(db, monkeypatch):
    """I22: started again and again by a clock, such workers would pile up for as long as the store is away."""
    asked(db, 1)
    told = []

    def away(limit):
        raise strandline.StoreUnavailableError("gone for good")

    with monkeypatch.context() as patched:
        patched.setattr(db, "sweep", away)
        patched.setattr("strandline.client.worker.WORKER_PAUSE_S", 0.0)
        results = db.worker(quiet, told=lambda key, run: told.append((key, type(run)))).run(once=True)
    assert results == {"error": 1}
    assert told == [(None, strandline.StoreUnavailableError)] * WORKER_ONCE_TRIES_MAX


def test_it_ends_after_its_time(db):
    assert db.worker(quiet).run(for_s=0.05) == {}
    for bad in (-1, float("nan"), "1", True):
        with pytest.raises(strandline.InvalidInputError):
            db.worker(quiet).run(for_s=bad)


@pytest.mark.parametrize("threads", [0, WORKER_THREADS_MAX + 1, 1.5, True, None])
def test_threads_have_bounds(db, threads):
    with pytest.raises(strandline.InvalidInputError):
        db.worker(quiet, threads=threads)


def test_it_runs_once_at_a_time_and_may_go_on(db):
    with db.worker(quiet) as worker, pytest.raises(strandline.InvalidInputError, match="runs already"):
        worker.run(once=True)
    asked(db, 1)
    assert worker.run(once=True) == {"done": 1}


def test_it_stands_beside_an_event_loop(tmp_path):
    async def work():
        async with strandline.aopen(tmp_path / "a.db") as db:
            wf = db.tenant("acme").workflow("w")
            await wf.append(talk(8))
            with db.worker(quiet) as worker:
                await wf.compact_later(BUDGET)
                while not worker.results.get("done"):  # noqa: ASYNC110  another thread does it
                    await asyncio.sleep(0.005)
            return (await wf.context()).generation

    assert asyncio.run(asyncio.wait_for(work(), SOON_S)) == 1


def test_a_writer_that_never_rests_is_compacted_and_never_waits(db):
    """C7: it is read at any moment: prior summary and tail, with no event missing."""
    wf = db.tenant("acme").workflow("w")
    wf.append(talk(8))
    wf.compact_when(tokens=700, budget=BUDGET)
    with db.worker(quiet) as worker:
        number = 0
        while worker.results.get("done", 0) < 3:
            number += 1
            assert number < 5_000
            wf.append(strandline.note(f"line {number} of what goes on"))
            context = wf.context(1_000_000)
            assert (context.revision, context.omitted) == (16 + number, ())
    assert wf.context(1_000_000).generation >= 1
    assert "again" not in worker.results


# ---------------------------------------------------------------------------------------------- as a process


def command(store, *words, **options):
    arguments = [
        sys.executable,
        "-c",
        "from strandline.cli import main; main()",
        "worker",
        "--store",
        str(store),
        *words,
    ]
    environment = {**os.environ, "STRANDLINE_LOG": ""}
    return subprocess.Popen(
        arguments, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options
    )


@pytest.fixture
def store(tmp_path):
    with strandline.open(tmp_path / "s.db") as db:
        asked(db, 3)
    return tmp_path / "s.db"


def test_the_command_runs_what_is_due_and_ends(store):
    """C29: a line for each run on stderr, one object on stdout."""
    process = command(store, "--once", "--threads", "2", "--json")
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert json.loads(out) == {"ran": 3, "results": {"done": 3}}
    lines = [json.loads(line) for line in err.splitlines()]
    assert sorted(line["workflow"] for line in lines) == ["w0", "w1", "w2"]
    assert {(line["result"], line["generation"]) for line in lines} == {("done", 1)}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_after_the_run_in_hand(store, number):
    process = command(store)
    lines = [process.stderr.readline() for _ in range(3)]
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert all(" done, generation 1" in line for line in lines)
    assert "3 done" in out
    assert signal.Signals(number).name in err


def test_two_processes_share_a_store(store):
    with strandline.open(store) as db:
        for number in range(3, 12):
            wf = db.tenant("acme").workflow(f"w{number}")
            wf.append(talk(8))
            wf.compact_later(BUDGET)
    both = [command(store, "--once", "--json"), command(store, "--once", "--json", "--threads", "2")]
    done = [json.loads(process.communicate(timeout=60)[0])["results"].get("done", 0) for process in both]
    with strandline.open(store) as db:
        assert db.verify().ok
        assert set(generations(db).values()) == {1}
        while db.sweep():  # one that was looked at while the other had just taken it
            db.run_due(db.sweep()[0])
    assert sum(done) == 12
