"""Law (C14, I6): a worker may be killed before or after each commit of a run: when its lease ends, the
sweep finds the row, another worker goes on from what is stored, and there is exactly one activation.

Real processes on one file. A child kills itself at the commit that it is told; the next clock is ahead by a lease.
"""

import subprocess
import sys
from contextlib import contextmanager

import pytest

import strandline
from strandline import DueKey
from strandline.limits import LEASE_TTL_S
from strandline.system import SystemClock
from tests.unit.test_engine_stage import states, talk

pytestmark = pytest.mark.long

PROGRAM = """
import os, signal, sys
from contextlib import contextmanager
import strandline

store, drafts, nth, place, forked = sys.argv[1:]
KEY = strandline.DueKey(tenant="acme", workflow="release", view="main")

class KillingStore:
    def __init__(self, store):
        self.store, self.commits = store, 0

    def __getattr__(self, name):
        return getattr(self.store, name)

    @contextmanager
    def write(self, scope, *, joins=True):
        with self.store.write(scope, joins=joins) as tx:
            yield tx
            self.commits += 1
            self.die_at("before")
        self.die_at("after")

    def die_at(self, here):
        if (self.commits, here) == (int(nth), place):
            os.kill(os.getpid(), signal.SIGKILL)

def draft(request):
    with open(drafts, "a") as file:
        file.write("drafted\\n")
    return f"Work went on from event {request.from_seq}."

with strandline.open(store, durability="normal") as opened:
    db = strandline.Strandline(KillingStore(opened.store))
    wf = db.tenant("acme").workflow("release")
    wf.compact_later(400)
    if forked == "fork":
        child = os.fork()
        if child:
            os.waitpid(child, 0)
            print(db.run_due(KEY, draft).result.value, wf.context().generation, len(db.verify().problems), flush=True)
            sys.exit()
    summarizer = strandline.CallableSummarizer(draft, name="draft", version="1")
    print(db.run_due(KEY, summarizer).result.value, flush=True)
    if forked == "fork":
        os._exit(0)
"""
WAIT_S = 60
COMMITS = ("ask", "take", "claim", "store", "activate", "settle")


class Later(SystemClock):
    """The machine's clock, when the lease of who died has ended."""

    def now_us(self) -> int:
        return super().now_us() + int(LEASE_TTL_S * 1_000_000)


@contextmanager
def opened(path, **arguments):
    with strandline.open(path, durability="normal", **arguments) as db:
        yield db, db.tenant("acme").workflow("release")


def start(path, nth=0, place="never", forked="no"):
    words = [sys.executable, "-c", PROGRAM, str(path), str(path) + ".drafts", str(nth), place, forked]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def drafts_of(path):
    log = path.with_name(path.name + ".drafts")
    return len(log.read_text().splitlines()) if log.exists() else 0


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "a.db"
    with opened(path) as (_, wf):
        wf.append(talk(8))
    return path


@pytest.mark.parametrize("place", ["before", "after"])
@pytest.mark.parametrize("nth", range(1, len(COMMITS) + 1), ids=COMMITS)
def test_a_worker_that_is_killed_at_a_commit_is_followed_by_another(path, nth, place):
    child = start(path, nth, place)
    assert child.communicate(timeout=WAIT_S)[0] == ""
    assert child.returncode == -9
    asked = (nth, place) != (1, "before")
    activated = nth > 5 or (nth, place) == (5, "after")
    settled = (nth, place) == (6, "after")
    begun = nth > 2 or (nth, place) == (2, "after")
    with opened(path) as (db, wf):
        assert db.verify().ok
        assert len(wf.due()) == int(asked)
        assert wf.context().generation == int(activated)
        assert len(db.sweep()) == int(asked and not begun)
    key = DueKey(tenant="acme", workflow="release", view="main")
    with opened(path, clock=Later()) as (db, wf):
        assert db.sweep(10) == [key_of(found) for found in wf.due() if found.due_us is not None]
        successor = start_in_process(db, key, path)
        expected = "not_due" if settled or not asked else "done"
        assert successor.result == expected
        assert wf.context().generation == int(asked)
        assert [state for _, tried in states(db, wf) for state in tried].count("activated") == int(asked)
        assert drafts_of(path) == (0 if not asked else 2 if (nth, place) == (4, "before") else 1)
        assert db.sweep() == []
        assert db.verify().ok


def key_of(due):
    return DueKey(tenant="acme", workflow="release", view=due.view, priority=due.priority, due_us=due.due_us)


def start_in_process(db, key, path):
    """Run it as the child does: the same summarizer, which is what makes its draft the same job."""

    def draft(request):
        with path.with_name(path.name + ".drafts").open("a") as file:
            file.write("drafted\n")
        return f"Work went on from event {request.from_seq}."

    return db.run_due(key, strandline.CallableSummarizer(draft, name="draft", version="1"))


def test_of_several_processes_one_runs(path):
    """C26: four are woken for the same row."""
    children = [start(path) for _ in range(4)]
    said = [child.communicate(timeout=WAIT_S)[0].strip() for child in children]
    assert set(said) <= {"done", "leased", "busy", "not_due"}
    with opened(path) as (db, wf):
        assert wf.context().generation == 1
        assert drafts_of(path) == 1
        assert db.verify().ok


def test_a_child_of_fork_runs_what_its_parent_asked_for(path):
    """DESIGN §5: a worker that forks (Celery prefork): each process has connections of its own."""
    said = start(path, forked="fork").communicate(timeout=WAIT_S)[0].split("\n")
    assert said[:2] == ["done", "not_due 1 0"]
