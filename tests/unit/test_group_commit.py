"""Law (I1, I2, I19): writes that wait share a commit, and each is still all or nothing, and told the truth.

Checked with a connection that counts what it is told, with threads whose order gates decide, and with eight threads and
four processes on one store. Nothing here waits for a time to pass.
"""

import multiprocessing
import os
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

import strandline
from strandline.limits import GROUP_COMMIT_AGE_S, GROUP_COMMIT_WRITES_MAX
from strandline.stores.sqlite.group_commit import GroupCommit
from strandline.testing import VirtualClock

PATIENCE_S = 60.0


class Watched:
    """A connection that notes its statements, and fails at the commit when told to."""

    def __init__(self, path):
        self.real = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self.said = []
        self.fail_commit = self.fail_rollback_to = False

    @property
    def in_transaction(self):
        return self.real.in_transaction

    def execute(self, statement, *values):
        self.said.append(statement)
        if statement == "COMMIT" and self.fail_commit:
            raise sqlite3.OperationalError("disk I/O error")
        return self.real.execute(statement, *values)


@pytest.fixture
def watched(tmp_path):
    connection = Watched(tmp_path / "s.db")
    connection.execute("CREATE TABLE t (who INTEGER UNIQUE)")
    connection.said.clear()
    yield connection
    connection.real.close()


@pytest.fixture
def clock():
    return VirtualClock()


@pytest.fixture
def queue(watched, clock):
    return GroupCommit("s.db", clock, lambda: watched)


class Line:
    """Threads that write one after the other; each says when it waits, and writes when it is its turn."""

    def __init__(self, queue):
        self.queue = queue
        self.outcomes = {}
        self.threads = []

    def put(self, who, action=None, *, joins=True):
        """Start a writer, and return when it waits for its turn or has it."""
        before = self.queue._waiting
        begun = threading.Event()

        def work():
            try:
                with self.queue.write(joins=joins) as connection:
                    begun.set()
                    if action is not None:
                        action()
                    connection.execute("INSERT INTO t VALUES (?)", (who,))
                self.outcomes[who] = "done"
            except BaseException as error:  # noqa: BLE001  what a writer is told is what this file is about
                self.outcomes[who] = error

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        self.threads.append(thread)
        while not begun.is_set() and self.queue._waiting <= before:
            os.sched_yield()
        return thread

    def end(self):
        for thread in self.threads:
            thread.join(PATIENCE_S)
            assert not thread.is_alive()
        return self.outcomes


def held(line, queue_first):
    """Put a first writer that holds its turn until the gate opens."""
    gate = threading.Event()
    line.put(queue_first, lambda: gate.wait(PATIENCE_S))
    return gate


def rows(watched):
    return sorted(who for (who,) in watched.real.execute("SELECT who FROM t"))


def test_a_write_alone_is_one_transaction(queue, watched):
    with queue.write() as connection:
        connection.execute("INSERT INTO t VALUES (1)")
    assert watched.said == ["BEGIN IMMEDIATE", "INSERT INTO t VALUES (1)", "COMMIT"]


def test_those_who_wait_share_one_commit(queue, watched):
    """DESIGN §5: one flush for all of them, each after the first in a savepoint."""
    line = Line(queue)
    gate = held(line, 1)
    for who in range(2, 9):
        line.put(who)
    gate.set()
    assert line.end() == dict.fromkeys(range(1, 9), "done")
    assert rows(watched) == list(range(1, 9))
    assert (watched.said.count("COMMIT"), watched.said.count("SAVEPOINT one_write")) == (1, 7)


def test_one_that_fails_takes_nothing_of_the_others_away(queue, watched):
    """I2: its own savepoint is rolled back; the error is its own; first, middle and last."""
    for failing in (1, 2, 3):
        watched.real.execute("DELETE FROM t")
        line = Line(queue)
        gates = {who: threading.Event() for who in (1, 2, 3)}

        def act(who, failing=failing, gates=gates, line=line):
            gates[who].wait(PATIENCE_S)
            if who == failing:
                line.queue._connection.execute("INSERT INTO t VALUES (99)")
                raise KeyError(who)

        for who in (1, 2, 3):
            line.put(who, lambda who=who, act=act: act(who))
        for gate in gates.values():
            gate.set()
        outcomes = line.end()
        assert {who for who, outcome in outcomes.items() if outcome == "done"} == {1, 2, 3} - {failing}
        assert isinstance(outcomes[failing], KeyError)
        assert rows(watched) == sorted({1, 2, 3} - {failing})


def test_a_commit_that_fails_is_unknown_to_all(queue, watched):
    """I19: nobody is told that it landed, nor that it did not; the next write begins anew."""
    line = Line(queue)
    gate = held(line, 1)
    line.put(2)
    line.put(3)
    watched.fail_commit = True
    gate.set()
    outcomes = line.end()
    assert all(isinstance(outcome, strandline.OutcomeUnknownError) for outcome in outcomes.values())
    assert all("disk I/O error" in str(outcome) for outcome in outcomes.values())
    watched.fail_commit = False
    with queue.write() as connection:
        connection.execute("INSERT INTO t VALUES (4)")
    assert rows(watched) == [4]


def refusing(queue, watched, seen):
    """Put a first writer, and a second one that refuses because of what it reads of the first; return the outcomes."""
    line = Line(queue)
    gate = held(line, 1)

    def refuse():
        seen.append(watched.real.execute("SELECT who FROM t").fetchall())
        raise KeyError("1 is there")

    line.put(2, refuse)
    line.put(3, lambda: seen.append([line.threads[1].is_alive(), line.outcomes.get(2)]))
    gate.set()
    return line.end()


def test_a_refusal_is_told_when_its_reason_is_durable(queue, watched):
    """I3: who is refused because of another write, and looks for it, finds it: it is committed by then."""
    seen = []
    outcomes = refusing(queue, watched, seen)
    assert seen == [[(1,)], [True, None]]  # while the group was still open, the second one was told nothing
    assert (outcomes[1], outcomes[3], type(outcomes[2])) == ("done", "done", KeyError)
    assert rows(watched) == [1, 3]


def test_a_refusal_whose_reason_was_not_committed_is_none(queue, watched):
    """I19: its own outcome is known, nothing was written; whether its reason stands is not."""
    watched.fail_commit = True
    outcomes = refusing(queue, watched, [])
    assert isinstance(outcomes[2], strandline.StoreUnavailableError)
    assert not isinstance(outcomes[2], strandline.OutcomeUnknownError)
    assert isinstance(outcomes[2].__cause__, KeyError)


def test_when_sqlite_undoes_everything_nobody_is_told_that_it_landed(queue, watched):
    """I19: some errors end the whole transaction, and with it what the others wrote."""
    line = Line(queue)
    gate = held(line, 1)

    def undone():
        watched.real.execute("ROLLBACK")  # as a full disk makes SQLite do by itself
        raise OSError("full")

    line.put(2, undone)
    gate.set()
    outcomes = line.end()
    assert isinstance(outcomes[1], strandline.OutcomeUnknownError)
    assert isinstance(outcomes[2], OSError)
    assert rows(watched) == []


def test_a_long_write_keeps_nobody_waiting_for_its_commit(queue, watched):
    """`joins=False`: what was open is committed before it begins, and it commits alone."""
    line = Line(queue)
    gate = held(line, 1)
    line.put(2, joins=False)
    line.put(3)
    gate.set()
    assert line.end() == dict.fromkeys((1, 2, 3), "done")
    assert watched.said.count("COMMIT") == 3


def test_a_group_has_a_size_and_an_age(queue, watched, clock):
    """I22: GROUP_COMMIT_WRITES_MAX and GROUP_COMMIT_AGE_S."""
    line = Line(queue)
    gate = held(line, 0)
    for who in range(1, GROUP_COMMIT_WRITES_MAX + 1):
        line.put(who)
    gate.set()
    line.end()
    assert (watched.said.count("COMMIT"), len(rows(watched))) == (2, GROUP_COMMIT_WRITES_MAX + 1)
    watched.said.clear()
    line = Line(queue)
    gate = threading.Event()
    line.put(1_000, lambda: (gate.wait(PATIENCE_S), clock.sleep_s(GROUP_COMMIT_AGE_S)))
    line.put(1_001)
    gate.set()
    line.end()
    assert watched.said.count("COMMIT") == 2


def test_a_write_inside_a_write_is_refused_and_harms_nothing(queue, watched):
    with queue.write() as connection:
        connection.execute("INSERT INTO t VALUES (1)")
        with pytest.raises(strandline.StoreUnavailableError, match="inside a write"), queue.write():
            pass
    assert rows(watched) == [1]


def test_an_interrupted_wait_forgets_no_group(queue, watched, monkeypatch):
    """I2: the one who waits is interrupted just when the group was left open for it; the others get their commit."""
    line = Line(queue)
    gate = held(line, 1)
    wait_for = queue._changed.wait_for

    def interrupted(predicate, timeout):
        wait_for(predicate, timeout)
        raise KeyboardInterrupt

    monkeypatch.setattr(queue._changed, "wait_for", interrupted)
    line.put(2)
    gate.set()
    outcomes = line.end()
    assert outcomes[1] == "done"
    assert isinstance(outcomes[2], KeyboardInterrupt)
    assert rows(watched) == [1]


THREADS, PROCESSES, EACH = 8, 4, 25


def write_some(path, name):
    with strandline.open(path) as db:
        wf = db.tenant("acme").workflow("release")
        for number in range(EACH):
            wf.append(strandline.message("user", f"{name} {number} of vol-{number:04d}", key=f"{name}-{number}"))


def check_all(path, names):
    with strandline.open(path) as db:
        wf = db.tenant("acme").workflow("release")
        events = wf.events(1)
        assert [event.seq for event in events] == list(range(1, EACH * len(names) + 1))
        for name in names:
            texts = [event.text for event in events if event.text.startswith(f"{name} ")]
            assert texts == [f"{name} {number} of vol-{number:04d}" for number in range(EACH)]
        assert db.verify().ok


def test_eight_threads_on_one_store(tmp_path):
    """I1, I2: seqs without a gap, each thread's events in its order, and everything verifies."""
    path = tmp_path / "s.db"
    with strandline.open(path) as db, ThreadPoolExecutor(THREADS) as pool:
        wf = db.tenant("acme").workflow("release")

        def work(name):
            for number in range(EACH):
                wf.append(strandline.message("user", f"{name} {number} of vol-{number:04d}", key=f"{name}-{number}"))

        list(pool.map(work, [f"t{n}" for n in range(THREADS)]))
    check_all(path, [f"t{n}" for n in range(THREADS)])


def test_four_processes_on_one_store(tmp_path):
    """I1, I2: as with threads; SQLite's own lock is what serializes them."""
    path = tmp_path / "s.db"
    with strandline.open(path) as db:
        db.tenant("acme")
    spawn = multiprocessing.get_context("spawn")
    children = [spawn.Process(target=write_some, args=(path, f"p{n}")) for n in range(PROCESSES)]
    for child in children:
        child.start()
    for child in children:
        child.join(PATIENCE_S)
        assert child.exitcode == 0
    check_all(path, [f"p{n}" for n in range(PROCESSES)])


def test_the_queue_is_made_anew_after_a_fork(tmp_path):
    """DESIGN §5: a child of a prefork server has connections and a queue of its own."""
    path = tmp_path / "s.db"
    with strandline.open(path) as db:
        wf = db.tenant("acme").workflow("release")
        wf.append(strandline.message("user", "before"))
        child = multiprocessing.get_context("fork").Process(
            target=lambda: wf.append(strandline.message("user", "in the child"))
        )
        child.start()
        child.join(PATIENCE_S)
        assert child.exitcode == 0
        wf.append(strandline.message("user", "after"))
        assert [event.text for event in wf.events(1)] == ["before", "in the child", "after"]
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.parametrize("step", range(12))
def test_an_interrupt_at_any_statement_leaves_no_half_and_no_lock(queue, watched, monkeypatch, step, before):
    """I1, I2: a signal falls just before or after any statement; what is there then is whole, and all can write."""
    real, left = watched.execute, [step]

    def interrupted(statement, *values):
        left[0] -= 1
        if left[0] == -1 and before:
            raise KeyboardInterrupt
        done = real(statement, *values)
        if left[0] == -1:
            raise KeyboardInterrupt
        return done

    def pair(who):
        with queue.write() as connection:
            connection.execute("INSERT INTO t VALUES (?)", (who,))
            if who == 33:
                raise KeyError(who)
            connection.execute("INSERT INTO t VALUES (?)", (-who,))

    line = Line(queue)
    gate = held(line, 100)
    monkeypatch.setattr(watched, "execute", interrupted)
    for who in (1, 2, 3):
        line.put(who, lambda who=who: watched.execute("INSERT INTO t VALUES (?)", (-who,)))
    gate.set()
    outcomes = line.end()
    monkeypatch.setattr(watched, "execute", real)
    assert not watched.in_transaction
    with pytest.raises(KeyError):
        pair(33)
    pair(7)
    there = set(rows(watched))
    assert {7, -7} <= there
    assert 33 not in there
    for who in (1, 2, 3):
        assert (who in there) == (-who in there)
        assert outcomes[who] != "done" or who in there


def test_closing_waits_for_who_writes(tmp_path):
    """A connection is never closed under a thread that works on it; who comes later is told so."""
    db = strandline.open(tmp_path / "s.db")
    wf = db.tenant("acme").workflow("release")
    wf.append(strandline.note("first"))
    begun, outcomes = threading.Barrier(9), []

    def work(name):
        begun.wait(PATIENCE_S)
        try:
            for number in range(10_000):
                wf.append(strandline.note(f"{name} {number}"))
        except strandline.StoreUnavailableError as error:
            outcomes.append(str(error))

    threads = [threading.Thread(target=work, args=(f"t{n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    begun.wait(PATIENCE_S)
    db.close()
    for thread in threads:
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
    assert len(outcomes) == 8
    assert all("is closed" in outcome for outcome in outcomes)
    with strandline.open(tmp_path / "s.db") as again:
        assert again.verify().ok


def test_a_fork_while_another_thread_writes_leaves_a_child_that_can_write(tmp_path):
    """DESIGN §5: the fork waits for the write that is under way, so no lock without an owner is inherited."""
    with strandline.open(tmp_path / "s.db") as db:
        wf = db.tenant("acme").workflow("release")
        wf.append(strandline.note("first"))
        stop = threading.Event()

        def work():
            while not stop.is_set():
                wf.append(strandline.note("on and on"))

        writer = threading.Thread(target=work)
        writer.start()
        try:
            for number in range(4):
                child = multiprocessing.get_context("fork").Process(
                    target=lambda number=number: wf.append(strandline.note(f"child {number}"))
                )
                child.start()
                child.join(PATIENCE_S)
                assert child.exitcode == 0
        finally:
            stop.set()
            writer.join(PATIENCE_S)
        texts = [event.text for event in wf.events(1)]
        assert [text for text in texts if text.startswith("child")] == [f"child {number}" for number in range(4)]
        assert db.verify().ok


def test_a_write_that_could_not_be_taken_back_is_not_committed_with_the_others(queue, watched, monkeypatch):
    """I2: an interrupt falls into the undoing of a failed write; rather nobody's is durable than half of one."""
    real = watched.execute

    def interrupted(statement, *values):
        if statement.startswith("ROLLBACK TO"):
            raise KeyboardInterrupt
        return real(statement, *values)

    def fail():
        watched.execute("INSERT INTO t VALUES (99)")
        raise KeyError(2)

    monkeypatch.setattr(watched, "execute", interrupted)
    line = Line(queue)
    gate = held(line, 1)
    line.put(2, fail)
    gate.set()
    outcomes = line.end()
    monkeypatch.setattr(watched, "execute", real)
    assert isinstance(outcomes[1], strandline.OutcomeUnknownError)
    assert isinstance(outcomes[2], KeyboardInterrupt)
    with queue.write() as connection:
        connection.execute("INSERT INTO t VALUES (3)")
    assert rows(watched) == [3]
