"""Law (C40): a fault happens where its name says, once, and a process that was played dead changes nothing any more.

Each name is met by the verb that it is of. What stands after a crash is looked at as anybody would: in a store that is
opened anew.
"""

import multiprocessing
import signal
import sys

import pytest

import strandline
from strandline.stores.memory import MemoryStore
from strandline.testing import (
    CrashError,
    Fault,
    FaultyStore,
    FaultySummarizer,
    SeededEntropy,
    SummarizerFault,
    VirtualClock,
    crash_at,
    fault_at,
    kill_at,
    points,
)
from strandline.testing.fault_points import AFTER_COMMIT, BEFORE_COMMIT, WRITES

BY = {"by": "ada", "why": "a test"}


def said(numbers):
    return [
        strandline.message("assistant", f"Step {n} wrote bucket-{n:04x} from /srv/{n}/report.json. {'x ' * 30}")
        for n in numbers
    ]


def work(db, name="w"):
    return db.tenant("acme").workflow(name)


class Life:
    """A store that outlives its processes, and the process of now."""

    def __init__(self):
        self.clock = VirtualClock()
        self.store = FaultyStore(MemoryStore(bytes(range(32))), clock=self.clock)
        self.open()

    def open(self):
        self.db = strandline.Strandline(self.store, clock=self.clock, entropy=SeededEntropy(self.clock.now_us()))
        self.wf = work(self.db)

    def restart(self):
        self.clock.advance(3_600)
        self.store = self.store.restarted()
        self.open()


@pytest.fixture
def life():
    life = Life()
    life.wf.append([strandline.issue("oauth-scope", "The scope admin:org is too wide."), *said(range(12))])
    return life


def a_compacted(life):
    assert life.wf.compact(400).outcome == "activated"
    return life.wf


def a_case(life):
    a_compacted(life)
    return life.wf.report_regression(1, **BY).case_id


def failed(life):
    with pytest.raises(strandline.StrandlineError):
        life.wf.compact(400, FaultySummarizer(["outage"] * 99, clock=life.clock))


VERBS = {
    "activate": lambda life: life.wf.compact(400),
    "claim": lambda life: life.wf.compact(400),
    "store_draft": lambda life: life.wf.compact(400),
    "end_attempt": failed,
    "checkpoint": lambda life: life.wf.checkpoint({"at": 1}, 1, basis=life.wf.basis()),
    "restore": lambda life: (VERBS["checkpoint"](life), life.wf.recover()),
    "replay": lambda life: life.wf.recover(),
    "fence": None,  # of a recovery that fences what is in flight, and is refused
    "revert": lambda life: a_compacted(life).revert(0, **BY),
    "rewind": lambda life: life.wf.rewind(5, **BY),
    "fork": lambda life: life.wf.fork(5, "another", **BY),
    "open_case": a_case,
    "answer_case": lambda life: life.wf.reconcile(a_case(life), strandline.Abandon(), **BY),
    "erase": lambda life: life.wf.erase(events=[3], **BY),
    "define_view": lambda life: life.wf.define_view("press", audiences=["press"]),
    "hold": lambda life: life.wf.hold("court", **BY),
    "retention_rule": lambda life: life.db.tenant("acme").set_retention("short", older_than_s=9, **BY),
    "intend_effect": lambda life: life.wf.effect("k", "create", {}, lambda: 1),
    "settle_effect": lambda life: life.wf.effect("k", "create", {}, lambda: 1),
    "decide": lambda life: life.wf.guard("publish", [strandline.approved("publish")]),
    "append": lambda life: life.wf.append(strandline.message("user", "Go on.")),
    "request": lambda life: life.wf.compact_later(400),
    "save_state": lambda life: life.wf.states.save("s1", {}),
    "other": lambda life: life.wf.read_through("billing", 3),
}


def test_each_kind_of_write_has_its_verb():
    assert set(VERBS) == set(WRITES)
    assert points()[:2] == ["transaction.begin", "snapshot.begin"]
    assert len(points()) == len(set(points())) == 2 + 2 * len(WRITES)


@pytest.mark.parametrize("moment", [BEFORE_COMMIT, AFTER_COMMIT])
@pytest.mark.parametrize("kind", [kind for kind, verb in VERBS.items() if verb is not None])
def test_a_process_dies_there_and_the_verb_is_done_by_the_next(life, kind, moment):
    """I1, I2, I5, I13, I14: what was committed is there, what was not is gone, and the memory is whole."""
    with crash_at(f"{kind}.{moment}") as armed:
        VERBS[kind](life)
    assert armed.met
    with pytest.raises(CrashError, match="open the store anew"):
        life.wf.append(strandline.message("user", "I am dead."))
    life.restart()
    assert life.db.verify().ok
    assert not [event for event in life.wf.events() if event.text == "I am dead."]
    revision = life.wf.basis().revision
    if kind == "append":
        assert revision == 13 + (moment == AFTER_COMMIT)
    if kind == "activate":
        assert life.wf.basis().generation == (moment == AFTER_COMMIT)
        assert life.wf.compact(400).outcome in ("activated", "nothing_to_do")
    assert life.db.verify().ok


@pytest.mark.parametrize("fault", [Fault.UNAVAILABLE, Fault.FULL, Fault.LOST_ANSWER])
def test_what_the_caller_is_told(life, fault):
    with fault_at("append.before_commit", fault), pytest.raises(strandline.StoreUnavailableError):
        life.wf.append(strandline.message("user", "Go on.", key="k"))
    assert life.wf.basis().revision == 13
    assert life.wf.append(strandline.message("user", "Go on.", key="k")).added == 1  # it happens once


def test_a_lost_answer_after_the_commit_is_read_back(life):
    """I19: the activation has happened, once."""
    with fault_at("activate.after_commit", Fault.LOST_ANSWER):
        assert life.wf.compact(400).outcome == "activated"
    assert [entry.kind for entry in life.wf.lineage()] == ["compaction"]


def test_a_slow_store_takes_its_time_by_the_clock_of_the_test(life):
    begun = life.clock.monotonic_s()
    with fault_at("snapshot.begin", Fault.SLOW, seconds=90):
        life.wf.basis()
    assert life.clock.monotonic_s() == begun + 90


def test_the_nth_time(life):
    with crash_at("append.after_commit", nth=3):
        for number in range(9):
            life.wf.append(strandline.message("user", f"{number}"))
    life.restart()
    assert [event.text for event in life.wf.events(14)] == ["0", "1", "2"]


def test_a_point_that_is_not_crossed_fails_the_test(life):
    missed = pytest.raises(
        AssertionError, match=r"'activate.after_commit' was not crossed 1 times; crossed were: .*append"
    )
    with missed, crash_at("activate.after_commit"):
        life.wf.append(strandline.message("user", "Go on."))
    with pytest.raises(AssertionError, match="is its store a FaultyStore"), crash_at("append.after_commit"):
        pass
    assert life.wf.append(strandline.message("user", "Go on.")).added == 1


def test_the_error_of_the_code_under_test_is_the_one_that_is_told(life):
    with pytest.raises(ZeroDivisionError), crash_at("append.after_commit"):
        raise ZeroDivisionError


@pytest.mark.parametrize(
    ("point", "fault", "nth", "told"),
    [
        (
            "activate.aftercommit",
            "crash",
            1,
            "no fault point 'activate.aftercommit'; near it are activate.after_commit",
        ),
        (None, "crash", 1, "no fault point None"),
        ("append.after_commit", "full", 1, "one of crash, kill, lost_answer, slow may happen.*not 'full'"),
        ("append.after_commit", "crash", 0, "at the first time or later"),
        ("append.after_commit", "explode", 1, "not 'explode'"),
    ],
)
def test_what_does_not_exist_is_refused(point, fault, nth, told):
    with pytest.raises(strandline.InvalidInputError, match=told), fault_at(point, fault, nth=nth):
        pass


def test_what_is_opened_within_the_block_is_watched(tmp_path):
    """Code under test opens its store itself."""
    path = tmp_path / "memory.db"
    with crash_at("append.after_commit"), strandline.open(path, durability="normal") as db:
        work(db).append(strandline.message("user", "Go on."))
    with strandline.open(path) as db:
        assert [event.text for event in work(db).events()] == ["Go on."]
        assert not isinstance(db.store, FaultyStore)


def _be_killed(path):
    with kill_at("append.after_commit"), strandline.open(path, durability="normal") as db:
        work(db).append(strandline.message("user", "Go on."))
        work(db).append(strandline.message("user", "Never."))


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_process_is_really_killed(tmp_path):
    process = multiprocessing.get_context("spawn").Process(target=_be_killed, args=(tmp_path / "memory.db",))
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
    with strandline.open(tmp_path / "memory.db") as db:
        assert [event.text for event in work(db).events()] == ["Go on."]
        assert db.verify().ok


# ---------------------------------------------------------------------------------------------- summarizers


@pytest.mark.parametrize("fault", SummarizerFault)
def test_no_fault_of_a_summarizer_gets_into_the_memory(life, fault):
    """I5, I10, C14: what is wrong is told or tried anew, the open issue stands, and nothing invented is read."""
    summarizer = FaultySummarizer([fault], clock=life.clock)
    outcome = life.wf.compact(400, summarizer)
    assert outcome.outcome == "activated"
    text = life.wf.context().text
    assert "admin:org" in text
    assert not [lie for lie in ("approved", "502", "[summary]") if lie in text]
    honest = fault in (SummarizerFault.SLOW, SummarizerFault.DROPS_FACTS)
    assert (len(summarizer.requests), summarizer.faults_left) == (1 if honest else 2, 0)
    assert life.wf.verify().ok


def test_what_a_summarizer_drops_is_carried_or_accounted_for(life):
    """I9: the register stands verbatim, and each reference is in the summary or in the manifest."""
    life.wf.compact(400, FaultySummarizer(["drops_facts"]))
    text, dropped = life.wf.context().text, {entry.ref for entry in life.wf.manifest()}
    for number in range(12):
        assert f"bucket-{number:04x}" in text or f"bucket-{number:04x}" in dropped


def test_a_summarizer_without_faults_does_its_work_and_an_unknown_fault_is_refused(life):
    summarizer = FaultySummarizer([None])
    assert life.wf.compact(400, summarizer).outcome == "activated"
    assert summarizer.name == "faulty-extractive"
    with pytest.raises(strandline.InvalidInputError, match="no fault 'tired'; there are outage, "):
        FaultySummarizer(["tired"])
