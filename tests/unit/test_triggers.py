"""Law (C7): a view is compacted by itself as its triggers say, which stand in the store. Whoever appends makes it due,
in the same transaction; a writer that never rests does not keep it from being compacted, and is not kept waiting.

The rules are checked on rows; then on both stores, through the door, with a clock that the tests move.
"""

import threading
from dataclasses import replace

import pytest

import strandline
from strandline.limits import TRIGGER_S_MAX
from strandline.model.triggers import Triggers, Watch
from strandline.rules.queueing import take
from strandline.rules.triggers import due_from, ran, saw, set_triggers
from strandline.testing import ScriptedSummarizer
from strandline.testing.values import make_due
from tests.unit.test_engine_stage import STORES, lease_of, open_store, quiet, talk

SECOND = 1_000_000
KEY = strandline.DueKey(tenant="acme", workflow="release", view="main")


def watch(**triggers):
    return Watch(triggers=Triggers(**triggers), budget=400, priority=5)


def watched(**triggers):
    return replace(make_due(due_us=None), watch=watch(**triggers))


# ---------------------------------------------------------------------------------------------- rules


@pytest.mark.parametrize(
    ("triggers", "due_us"),
    [
        ({"tokens": 100}, 50),
        ({"tokens": 101}, None),
        ({"events": 10}, 50),
        ({"events": 11}, None),
        ({"age_s": 1.0}, 10 + SECOND),
        ({"idle_s": 1.0}, 40 + SECOND),
        ({"age_s": 9.0, "idle_s": 1.0}, 40 + SECOND),
        ({"tokens": 100, "idle_s": 1.0}, 50),
        ({}, None),
    ],
    ids=str,
)
def test_whichever_comes_first(triggers, due_us):
    seen = replace(watch(**triggers), tokens=100, events=10, since_us=10, last_us=40)
    assert due_from(seen, 50) == due_us
    assert due_from(replace(seen, events=0), 50) is None, "nothing came since the last run"


def test_tokens_have_to_grow_since_the_last_run():
    """I22: what could not be made smaller is not tried again at each event."""
    seen = replace(watch(tokens=100), tokens=205, tokens_after=200, events=1, since_us=1, last_us=1)
    assert due_from(seen, 5) is None
    assert due_from(replace(seen, tokens=220), 5) == 5


def test_an_idle_time_begins_anew_with_each_event():
    row = saw(watched(idle_s=60.0), tokens=10, events=1, revision=2, now_us=0)
    assert row.due_us == 60 * SECOND
    row = saw(row, tokens=10, events=1, revision=3, now_us=50 * SECOND)
    assert (row.due_us, row.wanted_us, row.budget, row.priority) == (110 * SECOND, 110 * SECOND, 400, 5)
    assert (row.watch.tokens, row.watch.events, row.revision) == (20, 2, 3)


def test_what_somebody_asked_for_is_not_put_off():
    asked = replace(watched(idle_s=60.0), due_us=5, wanted_us=5)
    assert saw(asked, tokens=10, events=1, revision=2, now_us=0).due_us == 5


@pytest.mark.parametrize("waits", [{"runs": 2}, {"case_id": "c"}], ids=str)
def test_a_wait_after_a_failure_or_for_a_case_goes_on(waits):
    row = replace(watched(events=1), due_us=99, wanted_us=None, **waits)
    after = saw(row, tokens=1, events=1, revision=2, now_us=0)
    assert (after.due_us, after.watch.events) == (99, 1)


def test_what_comes_while_it_runs_is_counted_for_the_next_run():
    row = saw(watched(events=2, tokens=50), tokens=60, events=2, revision=3, now_us=10)
    running = take(row, "w", 10)
    later = saw(running, tokens=30, events=1, revision=4, now_us=20)
    assert (later.due_us, later.wanted_us) == (running.due_us, None)
    settled = replace(later, worker=None, lease_until_us=0, due_us=None)
    done = ran(settled, began=running.watch, tokens_after=15, now_us=30)
    assert (done.watch.tokens, done.watch.tokens_after, done.watch.events) == (45, 15, 1)
    assert (done.watch.since_us, done.due_us) == (20, None)
    again = saw(done, tokens=30, events=1, revision=5, now_us=40)
    assert again.due_us == 40


def test_other_triggers_take_the_place_of_those_before():
    row = saw(watched(idle_s=60.0), tokens=10, events=1, revision=2, now_us=0)
    assert set_triggers(row, None, revision=2, now_us=1).due_us is None
    asked = replace(row, due_us=7, wanted_us=7)
    assert set_triggers(asked, None, revision=2, now_us=1).due_us == 7


# ---------------------------------------------------------------------------------------------- through the door


@pytest.fixture(params=STORES)
def db(request, tmp_path):
    with open_store(request.param, tmp_path) as db:
        yield db
        assert db.verify().ok


@pytest.fixture
def wf(db):
    wf = db.tenant("acme").workflow("release")
    wf.append(talk(4))
    yield wf
    assert lease_of(db, wf) is None


def row(wf, view="main"):
    return next(row for row in wf.due() if row.view == view)


def test_tokens_make_it_due(db, wf):
    """Nobody asks; the append that goes over the limit does. After the run it begins anew."""
    wf.compact_when(tokens=600, budget=400)
    assert db.sweep() == []
    turn = 40
    while not db.sweep():
        wf.append(talk(1, start=turn))
        turn += 1
        assert turn < 80
    assert row(wf).watch.tokens >= 600
    ran = db.run_due(db.sweep()[0], quiet)
    assert (ran.result, ran.outcome.outcome) == ("done", "activated")
    assert (row(wf).watch.tokens, row(wf).watch.events) == (ran.outcome.tokens_after, 0)
    assert db.sweep() == []
    measured = wf.context(100_000).tokens
    assert abs(row(wf).watch.tokens - measured) < 5


def test_the_estimate_is_close_to_what_a_context_takes(wf):
    """It may be a little high: then it is due a little early, and the run sets it right."""
    wf.compact_when(tokens=100_000)
    wf.append([*talk(30, start=100), strandline.tool_call("c", "look", {"path": "/srv/x"})])
    wf.append(strandline.tool_result("c", "found 12 files " * 20))
    estimate, measured = row(wf).watch.tokens, wf.context(100_000).tokens
    assert 0.95 * measured <= estimate <= 1.3 * measured


def test_events_age_and_idle_time_make_it_due(db, wf):
    clock = db._clock
    wf.compact_when(events=10, budget=400)
    wf.append(talk(1, start=20))
    assert len(db.sweep()) == 1
    wf.compact_when(idle_s=30, budget=400)
    assert db.sweep() == []
    clock.advance(29)
    wf.append(talk(1, start=30))
    clock.advance(29)
    assert db.sweep() == []
    clock.advance(1)
    assert db.run_due(db.sweep()[0], quiet).outcome.outcome == "activated"
    wf.compact_when(age_s=60, budget=400)
    for step in range(6):
        wf.append(talk(1, start=50 + step))
        assert db.sweep() == []
        clock.advance(10)
    assert len(db.sweep()) == 1


def test_without_a_reason_they_are_taken_away(db, wf):
    assert wf.compact_when() is None
    assert wf.due() == []
    wf.compact_when(events=1, budget=400)
    assert len(db.sweep()) == 1
    assert wf.compact_when().watch is None
    assert db.sweep() == []
    wf.append(talk(3, start=20))
    assert db.sweep() == []


def test_a_view_waits_for_what_it_may_read(db, wf):
    """I21: what is hidden from it neither counts nor makes it due."""
    wf.define_view("publisher", audiences={"release"}, budget=400)
    wf.view("publisher").compact_when(events=12)
    wf.append([strandline.note(f"secret {n}", audience="staff") for n in range(20)])
    assert (row(wf, "publisher").watch.events, db.sweep()) == (8, [])
    wf.append([strandline.note(f"news {n}", audience="release") for n in range(4)])
    assert [key.view for key in db.sweep()] == ["publisher"]


def test_other_audiences_begin_anew_in_the_background_too(db, wf):
    """I21: how a run for other readers went is not told; a worker that goes on with one settles nothing."""
    wf.define_view("publisher", audiences={"staff"}, budget=400)
    pub = wf.view("publisher")
    pub.compact_when(events=100, budget=400)
    wf.append([strandline.note(f"secret-{n:04d} is told", audience="staff") for n in range(60)])
    pub.compact_later(400)

    def redefined(request):
        wf.define_view("publisher", audiences={"release"}, budget=400)
        return "In bucket-dead99, says staff."

    ran = db.run_due(db.sweep()[0], redefined, fallback=False)
    assert ran.outcome.outcome == "conflict"
    assert "fenced" in ran.outcome.reason
    (row,) = pub.due()
    assert (row.outcome, row.failure, row.failure_text, row.case_id, row.worker, row.runs) == (
        *(None, None, "", None),
        *(None, 0),
    )
    assert wf.cases() == []
    assert row.watch.tokens < 400, "what it may not read any more does not count"
    assert row.due_us is not None, "what was asked for is still to be done"


def test_a_failure_is_not_repeated_at_each_event(db, wf):
    """I22: the row says what failed; the triggers begin anew."""
    wf.compact_when(tokens=420, budget=400)
    wf.append(talk(6, start=20))
    assert db.run_due(db.sweep()[0], ScriptedSummarizer([""] * 6), fallback=False).outcome.outcome == "rejected"
    wf.append(strandline.note("and on"))
    assert db.sweep() == []
    wf.append(talk(4, start=60))
    assert len(db.sweep()) == 1


def test_a_writer_that_never_rests_starves_nobody(db, wf):
    """C7, DESIGN §2: events that come while it drafts are tail: nothing is fenced, no append waits for the model."""
    wf.compact_when(tokens=450, budget=400)
    wf.append(talk(6, start=20))
    drafting, drafted = threading.Event(), threading.Event()

    def slow(request):
        drafting.set()
        assert drafted.wait(30)
        return quiet(request)

    results = []
    worker = threading.Thread(target=lambda: results.append(db.run_due(db.sweep()[0], slow)))
    worker.start()
    assert drafting.wait(30)
    for number in range(50):
        wf.append(strandline.note(f"line {number}"))
    before = wf.context(100_000)
    drafted.set()
    worker.join(30)
    assert before.generation == 0
    assert (results[0].outcome.outcome, wf.context(100_000).generation) == ("activated", 1)
    assert row(wf).watch.events == 50


def test_a_rolled_back_append_makes_nothing_due(db, wf):
    """The row and the events are one transaction."""
    wf.compact_when(events=9, budget=400)
    before = row(wf)
    with pytest.raises(strandline.InvalidInputError):
        wf.append([strandline.note("fine"), strandline.pin("nothing-holds-this-1")])
    assert row(wf) == before
    wf.append(strandline.note("once", key="k"))
    seen = row(wf)
    wf.append(strandline.note("once", key="k"))
    assert row(wf) == seen, "a repeat adds no event"


@pytest.mark.parametrize(
    "bad",
    [
        {"tokens": 0},
        {"tokens": 1.5},
        {"events": -1},
        {"age_s": 0},
        {"idle_s": TRIGGER_S_MAX + 1},
        {"idle_s": float("nan")},
        {"age_s": "soon"},
        {"age_s": True},
        {"tokens": 400, "budget": 400},
        {"events": 1, "budget": 3},
        {"events": 1, "priority": 10},
        {"events": 1, "priority": None},
    ],
    ids=str,
)
def test_what_can_not_be_is_refused(wf, bad):
    with pytest.raises(strandline.InvalidInputError):
        wf.compact_when(**bad)
    assert wf.due() == []


def test_an_empty_workflow_or_an_unknown_view_has_no_triggers(db, wf):
    with pytest.raises(strandline.InvalidInputError, match="no event"):
        db.tenant("acme").workflow("typo").compact_when(events=1)
    with pytest.raises(strandline.StrandlineError):
        wf.view("nobody").compact_when(events=1)
