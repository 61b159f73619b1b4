"""Law (C15, C26, I22): the store owns the job. What is due is run once however often somebody is woken; a worker that
dies, stalls or comes late costs time and nothing else; what failed stands in the store.

Checked on every store, through the door, with a clock that the tests move.
"""

import asyncio
import threading
from dataclasses import replace

import pytest

import strandline
from strandline import DueKey, DueResult, QueueFullError, TransientSummarizerError
from strandline.engine import compact as compact_module
from strandline.engine import run_due as run_due_module
from strandline.engine.cases import open_case
from strandline.engine.claim import fence_all
from strandline.engine.reading import find_view
from strandline.limits import (
    ATTEMPTS_MAX,
    DUE_BUSY_S,
    DUE_DELAY_S_MAX,
    DUE_PARKED_S,
    DUE_RETRY_CAP_S,
    DUE_RUNS_MAX,
    LEASE_TTL_S,
    SEMANTIC_FAILURES_MAX,
)
from strandline.model.case import CaseKind
from strandline.testing import ScriptedSummarizer, SeededEntropy, VirtualClock
from tests.unit.test_engine_stage import STORES, lease_of, open_store, quiet, seen_of, states, talk

INVENTED = "Made up: bucket-9999 was opened."
BUDGET = 400


@pytest.fixture(params=(*STORES, "postgres"))
def db(request, tmp_path):
    with opened(request, tmp_path) as db:
        yield db
        assert db.verify().ok


def opened(request, folder):
    if request.param != "postgres":
        return open_store(request.param, folder)
    url = request.getfixturevalue("postgres_store_url")
    return strandline.open(url, clock=VirtualClock(), entropy=SeededEntropy(1))


@pytest.fixture
def wf(db):
    wf = db.tenant("acme").workflow("release")
    wf.append(talk(8))
    yield wf
    assert lease_of(db, wf) is None


@pytest.fixture
def clock(db):
    return db._clock


KEY = DueKey(tenant="acme", workflow="release", view="main")


def row(wf):
    (row,) = wf.due()
    return row


def ask(wf, kind=CaseKind.MISSING_DEPENDENCY):
    with wf._env.write() as tx:
        return open_case(wf._env, tx, kind, view=find_view(tx, "main", str(wf._env.scope)), reason="asked")


def bad():
    return ScriptedSummarizer([INVENTED] * ATTEMPTS_MAX)


def never(request):
    raise AssertionError("no summarizer is asked")


# ---------------------------------------------------------------------------------------------- to ask


def test_to_ask_is_one_row_and_waits_for_no_model(db, wf, clock):
    """C7: nothing is compacted, and the row says all that a worker needs."""
    before = seen_of(wf)
    due = wf.compact_later(BUDGET, when_tokens=10, priority=7)
    assert (due.revision, due.priority, due.budget, due.when_tokens, due.strict) == (16, 7, BUDGET, 10, False)
    assert due.due_us == due.asked_us == due.wanted_us == clock.now_us()
    assert seen_of(wf) == before
    assert wf.due() == [due]
    assert db.sweep() == [DueKey(tenant="acme", workflow="release", view="main", priority=7, due_us=due.due_us)]


def test_what_is_due_is_run_once(db, wf):
    """Duplicates and wake-ups that come late find nothing to do, and ask no summarizer."""
    wf.compact_later(BUDGET)
    (key,) = db.sweep()
    ran = db.run_due(key, quiet, worker="w1")
    assert (ran.result, ran.outcome.outcome, ran.due_us, ran.runs) == ("done", "activated", None, 1)
    assert wf.context().generation == 1
    seen, there = seen_of(wf), row(wf)
    assert (there.outcome, there.due_us, there.worker, there.failure) == ("activated", None, None, None)
    for _ in range(3):
        assert db.run_due(key, never).result is DueResult.NOT_DUE
    assert (seen_of(wf), row(wf)) == (seen, there)
    assert db.sweep() == []


def test_asking_again_is_answered_by_the_same_run(db, wf, clock):
    """Coalescing: the newest options, the earlier time, the higher priority; one run."""
    wf.compact_later(9_000, delay_s=60, priority=7)
    wf.append(talk(1, start=30))
    clock.advance(1)
    due = wf.compact_later(BUDGET, delay_s=10, priority=2, strict=True)
    assert (due.revision, due.budget, due.strict, due.priority) == (18, BUDGET, True, 7)
    assert due.due_us == clock.now_us() + 10_000_000
    assert wf.compact_later(BUDGET, delay_s=30).due_us == due.due_us
    assert db.sweep() == []
    clock.advance(10)
    assert len(db.sweep()) == 1
    assert db.run_due(KEY, quiet).result == "done"
    assert db.sweep() == []


def test_asked_while_it_runs_it_is_due_again_after_the_run(db, wf, clock):
    """At the time at which it is wanted; what that run took already is not asked for again."""
    again = []

    def drafting(request):
        clock.advance(1)
        if not again:
            again.append(wf.compact_later(BUDGET))  # the same revision, the same options
            assert again[0].wanted_us is None
            wf.append(talk(8, start=40))
            again.append(wf.compact_later(BUDGET, delay_s=60, priority=9))
            again.append(wf.compact_later(BUDGET, delay_s=90))
            assert {asked.worker for asked in again} == {"w1"}
            assert {asked.due_us for asked in again} == {again[0].lease_until_us}
        return quiet(request)

    wf.compact_later(BUDGET)
    wanted = clock.now_us() + 61_000_000
    ran = db.run_due(KEY, drafting, worker="w1")
    assert (ran.result, ran.due_us) == ("done", wanted)
    assert (row(wf).runs, row(wf).revision, row(wf).priority) == (0, 32, 9)
    clock.advance(60)
    assert db.run_due(KEY, quiet).result == "done"
    assert (wf.context().generation, row(wf).due_us) == (2, None)


def test_a_run_that_was_not_asked_for_anew_ends_the_matter(db, wf):
    def drafting(request):
        wf.compact_later(BUDGET)
        return quiet(request)

    wf.compact_later(BUDGET)
    assert db.run_due(KEY, drafting).due_us is None


@pytest.mark.parametrize("nothing", [{"budget": 100_000}, {"when_tokens": 100_000}])
def test_nothing_to_do_is_done(db, wf, nothing):
    wf.compact_later(**nothing)
    ran = db.run_due(KEY, never)
    assert (ran.result, ran.outcome.outcome, ran.due_us) == ("done", "nothing_to_do", None)
    assert "tokens" in ran.reason


def test_beyond_the_limit_of_a_tenant_asking_is_refused(db, wf, monkeypatch):
    """I22: with how many there are; nothing is written. What is due already may be asked for again, others go on."""
    monkeypatch.setattr("strandline.engine.compact_later.DUE_PER_TENANT_MAX", 2)
    wf.compact_later(BUDGET)
    others = [db.tenant(tenant).workflow(name) for tenant, name in (("acme", "b"), ("acme", "c"), ("zeta", "c"))]
    for other in others:
        other.append(talk(8))
    others[0].compact_later(BUDGET)
    with pytest.raises(QueueFullError, match="'acme' has 2 due compactions") as refused:
        others[1].compact_later(BUDGET)
    assert (refused.value.tenant, refused.value.due, refused.value.limit) == ("acme", 2, 2)
    assert others[1].due() == []
    assert wf.compact_later(BUDGET, priority=9).priority == 9
    others[2].compact_later(BUDGET)
    assert db.run_due(KEY, quiet).result == "done"  # which makes room
    others[1].compact_later(BUDGET)
    with pytest.raises(QueueFullError):
        wf.compact_later(BUDGET)  # one that was done before is one more, too


@pytest.mark.parametrize(
    "bad",
    [
        {"budget": 3},
        {"budget": "400"},
        {"when_tokens": -1},
        {"when_tokens": 1.5},
        {"delay_s": -1},
        {"delay_s": DUE_DELAY_S_MAX + 1},
        {"delay_s": float("nan")},
        {"delay_s": "soon"},
        {"priority": 10},
        {"priority": -1},
        {"priority": None},
        {"priority": True},
    ],
    ids=str,
)
def test_what_can_not_be_asked_for_is_refused(wf, bad):
    """SPEC §6: nothing is written."""
    with pytest.raises(strandline.InvalidInputError):
        wf.compact_later(**bad)
    assert wf.due() == []


def test_an_empty_workflow_is_not_made_by_asking(db):
    with pytest.raises(strandline.InvalidInputError, match="no event"):
        db.tenant("acme").workflow("typo").compact_later()
    assert db.tenant("acme").workflows() == []


@pytest.mark.parametrize("bad", [{"limit": 0}, {"limit": 10_001}, {"limit": True}, {"per_tenant": 0}], ids=str)
def test_a_sweep_has_bounds(db, bad):
    with pytest.raises(strandline.InvalidInputError):
        db.sweep(**bad)


# ---------------------------------------------------------------------------------------------- wake-ups


@pytest.mark.parametrize("key", [KEY, DueKey(tenant="nobody", workflow="w", view="main")], ids=str)
def test_a_wake_up_for_nothing_does_nothing(db, wf, key):
    """What was never asked for, in a workflow that is there or not: it makes none."""
    ran = db.run_due(key, never)
    assert (ran.result, ran.reason) == ("not_due", "it was never asked for")
    assert (wf.due(), [str(scope) for scope in db.store.scopes()]) == ([], ["acme/release"])


def test_a_wake_up_before_its_time_does_nothing(db, wf, clock):
    due = wf.compact_later(BUDGET, delay_s=60)
    ran = db.run_due(KEY, never)
    assert (ran.result, ran.due_us, ran.reason) == ("not_due", due.due_us, "it is due in 60.0 s")
    assert row(wf) == due


def test_of_two_workers_one_runs(db, wf):
    """A wake-up that comes twice: the second one finds the row leased, and leaves it alone."""
    second = []

    def drafting(request):
        second.append(db.run_due(KEY, never, worker="w2"))
        return quiet(request)

    wf.compact_later(BUDGET)
    assert db.run_due(KEY, drafting, worker="w1").outcome.outcome == "activated"
    (other,) = second
    assert (other.result, other.reason) == ("leased", "worker 'w1' runs it")
    assert states(db, wf) == [("active", ["activated"])]


def test_many_workers_at_once_compact_once(db, wf):
    """C26: the row's lock decides, in several threads too."""
    wf.compact_later(BUDGET)
    drafts, results = [], []
    start = threading.Barrier(4)

    def drafting(request):
        drafts.append(request)
        return quiet(request)

    def work(number):
        start.wait()
        results.append(db.run_due(KEY, drafting, worker=f"w{number}").result)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (results.count("done"), len(drafts)) == (1, 1)
    assert set(results) <= {"done", "leased", "not_due"}
    assert wf.context().generation == 1


@pytest.mark.parametrize("name", ["", "w" * 201, "\ud800"], ids=ascii)
def test_a_worker_has_a_name(db, wf, name):
    wf.compact_later(BUDGET)
    with pytest.raises(strandline.InvalidInputError):
        db.run_due(KEY, never, worker=name)
    assert row(wf).runs == 0


# ---------------------------------------------------------------------------------------------- workers that die, stall


def test_a_worker_taken_for_dead_settles_nothing(db, wf, clock):
    """C15, I6: its lease ends while it drafts; who takes over goes on, and it comes too late."""
    others = []

    def stalled(request):
        clock.advance(LEASE_TTL_S)
        (key,) = db.sweep()
        others.append(db.run_due(key, quiet, worker="w2"))
        others.append(row(wf))
        return quiet(request)

    wf.compact_later(BUDGET)
    ran = db.run_due(KEY, stalled, worker="w1")
    second, there = others
    assert (second.result, second.runs) == ("done", 2)
    assert ran.result == "again"
    assert "another worker took it over" in ran.reason
    assert row(wf) == there
    assert wf.context().generation == 1
    assert sorted(states(db, wf)) == [("active", ["activated"]), ("pending", ["fenced"])]


def test_what_kills_each_worker_kills_no_more_than_its_limit(db, wf, clock, monkeypatch):
    """C15, I22: nobody is left to count a run that ended with its process; who comes next counts it."""
    wf.compact_later(BUDGET)
    with monkeypatch.context() as patched:
        patched.setattr(run_due_module, "_replace", lambda *_: None)
        for number in range(1, DUE_RUNS_MAX + 1):
            with pytest.raises(KeyboardInterrupt):
                db.run_due(KEY, ScriptedSummarizer([KeyboardInterrupt()]), worker=f"w{number}")
            assert row(wf).runs == number
            clock.advance(LEASE_TTL_S)
    ran = db.run_due(KEY, quiet)
    assert (ran.result, ran.due_us, ran.runs) == ("failed", None, DUE_RUNS_MAX)
    (case,) = wf.cases()
    assert (case.kind, case.case_id, row(wf).case_id) == ("dead_letter", ran.case_id, ran.case_id)
    assert "'w12' ended within run 12" in ran.reason
    assert (row(wf).failure_text, row(wf).failure, row(wf).worker, db.sweep()) == (ran.reason, "transient", None, [])
    assert wf.compact_later(BUDGET).runs == 0
    assert db.run_due(KEY, quiet).result == "done"


def test_a_worker_that_died_is_followed_by_another(db, wf, clock, monkeypatch):
    """C15: when its lease ends, the sweep offers the row; its attempt is found, and fenced."""

    class Dies(BaseException):
        pass

    def gone(*args, **kwargs):
        raise Dies

    wf.compact_later(BUDGET)
    with monkeypatch.context() as patched, pytest.raises(Dies):
        db.run_due(KEY, lambda request: patched.setattr(db.store, "write", gone), worker="w1")
    assert (row(wf).worker, row(wf).runs) == ("w1", 1)
    assert db.sweep() == []
    assert db.run_due(KEY, never).result == "leased"
    clock.advance(LEASE_TTL_S)
    (key,) = db.sweep()
    ran = db.run_due(key, quiet, worker="w2")
    assert (ran.result, ran.runs, row(wf).fence) == ("done", 2, 2)
    assert wf.context().generation == 1


def test_a_long_run_keeps_its_lease(db, wf, clock):
    """C15: between drafts the leases of row and view are renewed, so that who is at work is not taken for dead."""
    offered = []

    def slow(request):
        clock.advance(200)
        offered.extend(db.sweep())
        assert db.run_due(KEY, never, worker="w2").result == "leased"
        return quiet(request)

    wf.append(talk(40, start=100))
    slow = strandline.CallableSummarizer(slow, name="slow", version="1", window_tokens=400)
    wf.compact_later(1_000)
    begun = clock.now_us()
    ran = db.run_due(KEY, slow, worker="w1")
    assert (ran.result, ran.outcome.outcome, offered) == ("done", "activated", [])
    assert clock.now_us() - begun > 2 * LEASE_TTL_S * 1_000_000
    assert states(db, wf) == [("active", ["activated"])]


def test_a_long_run_that_lost_its_lease_stops_before_the_next_draft(db, wf, clock):
    """I6: a recovery fenced it; no further draft is paid for."""
    drafts = []

    def slow(request):
        drafts.append(request)
        clock.advance(200)
        with wf._env.write() as tx:
            fence_all(wf._env, tx)
        return quiet(request)

    wf.append(talk(40, start=100))
    wf.compact_later(1_000)
    ran = db.run_due(KEY, strandline.CallableSummarizer(slow, name="slow", version="1", window_tokens=400))
    assert (ran.result, ran.outcome.outcome, len(drafts)) == ("again", "conflict", 1)
    assert wf.context().generation == 0


@pytest.mark.parametrize("jump", [-1, 1], ids=["back", "ahead"])
def test_a_clock_that_jumped_locks_nothing_for_ever(db, wf, clock, jump):
    """DESIGN §5: in 2100 it was leased, or put off; and now it is not."""
    hundred_years_us = 100 * 365 * 86_400 * 1_000_000
    here = clock.now_us()
    if jump < 0:
        clock.jump_to(here + hundred_years_us)
    wf.compact_later(BUDGET, delay_s=0 if jump > 0 else 60)
    clock.jump_to(here + (hundred_years_us if jump > 0 else 0))
    assert len(db.sweep()) == 1
    assert db.run_due(KEY, quiet).result == "done"


# ---------------------------------------------------------------------------------------------- beside explicit calls


def test_a_run_respects_a_live_lease(db, wf, clock):
    """DESIGN §2: an explicit compaction is not fenced; the row is due again shortly, and the run counts as none."""
    seen = []

    def drafting(request):
        seen.append(db.run_due(KEY, never))
        assert len(db.sweep()) == 0
        return quiet(request)

    wf.compact_later(BUDGET)
    assert wf.compact(BUDGET, drafting).outcome == "activated"
    assert [ran.result for ran in seen] == ["busy"]
    assert 0 < seen[0].due_us - clock.now_us() <= DUE_BUSY_S * 1_000_000
    assert (row(wf).runs, row(wf).fence) == (0, 0)
    clock.advance(DUE_BUSY_S)
    assert db.run_due(KEY, never).outcome.outcome == "nothing_to_do"


def test_a_lease_taken_between_plan_and_claim_is_respected(db, wf, clock, monkeypatch):
    """DESIGN §2: asked once more in the claim's own transaction."""
    plan = compact_module.plan_job

    def plan_and_lose(env, order):
        job = plan(env, order)
        monkeypatch.setattr(compact_module, "plan_job", plan)
        claimed = compact_module.claim(env, job, background=False)
        held.append(claimed.attempt)
        return job

    held = []
    wf.compact_later(BUDGET)
    monkeypatch.setattr(compact_module, "plan_job", plan_and_lose)
    ran = db.run_due(KEY, never, worker="w1")
    assert (ran.result, ran.outcome.outcome, row(wf).runs) == ("busy", "postponed", 0)
    assert lease_of(db, wf) == held[0].attempt_id
    assert 0 < row(wf).due_us - clock.now_us() <= DUE_BUSY_S * 1_000_000
    clock.advance(LEASE_TTL_S)
    assert db.run_due(KEY, quiet).result == "done"


def test_an_explicit_compaction_fences_the_run(db, wf):
    """DESIGN §2: who calls now does not wait; the run finds its attempt fenced, and looks again later."""
    explicit = []

    def drafting(request):
        if not explicit:
            explicit.append(wf.compact(BUDGET, quiet))
        return quiet(request)

    wf.compact_later(BUDGET)
    ran = db.run_due(KEY, drafting)
    assert explicit[0].outcome == "activated"
    assert (ran.result, ran.outcome.outcome, row(wf).failure) == ("again", "conflict", "conflict")
    assert wf.context().generation == 1


# ---------------------------------------------------------------------------------------------- failures


def test_a_passing_failure_is_run_again_after_a_backoff(db, wf, clock):
    """C14: no worker sleeps for it; the delay doubles, with full jitter; asking again does not shorten it."""
    wf.compact_later(BUDGET)
    for number in (1, 2, 3):
        begun = clock.monotonic_s()
        ran = db.run_due(KEY, ScriptedSummarizer([TransientSummarizerError("no answer")]))
        assert (ran.result, ran.outcome.outcome, ran.runs) == ("again", "postponed", number)
        assert clock.monotonic_s() == begun
        assert 0 <= ran.due_us - clock.now_us() <= 2 ** (number - 1) * 1_000_000
        there = row(wf)
        assert (there.failure, there.failure_text, there.worker) == ("transient", "no answer", None)
        assert wf.compact_later(BUDGET, priority=9).due_us == ran.due_us
        clock.advance(2**number)
    assert wf.context().generation == 0
    assert db.run_due(KEY, quiet).result == "done"
    assert (row(wf).failure, row(wf).failure_text) == (None, "")


def test_retry_after_is_honoured(db, wf, clock):
    wf.compact_later(BUDGET)
    ran = db.run_due(KEY, ScriptedSummarizer([TransientSummarizerError("slow down", retry_after_s=77)]))
    assert ran.due_us == clock.now_us() + 77_000_000


def test_what_never_passes_ends_as_a_dead_letter(db, wf, clock):
    """C15, I22: with a case; nothing is due until it is asked for again."""
    wf.compact_later(BUDGET)
    for number in range(1, DUE_RUNS_MAX + 1):
        ran = db.run_due(KEY, ScriptedSummarizer([TransientSummarizerError("no answer")]))
        assert ran.result == ("again" if number < DUE_RUNS_MAX else "failed")
        clock.advance(DUE_RETRY_CAP_S)
    assert (ran.outcome.outcome, ran.due_us) == ("dead_letter", None)
    (case,) = wf.cases()
    assert (case.kind, ran.case_id, row(wf).case_id) == ("dead_letter", case.case_id, case.case_id)
    assert (row(wf).failure, row(wf).failure_text, db.sweep()) == ("transient", "no answer", [])
    assert wf.compact_later(BUDGET).runs == 0
    assert db.run_due(KEY, quiet).result == "done"


def test_a_bad_draft_fails_with_its_case(db, wf):
    """C13, C14: quarantined; the failure stands in the row, what was asked for meanwhile is due."""
    wf.compact_later(BUDGET)
    ran = db.run_due(KEY, bad(), fallback=False)
    (case,) = wf.cases()
    assert (ran.result, ran.outcome.outcome, ran.case_id) == ("failed", "quarantined", case.case_id)
    assert (row(wf).failure, row(wf).due_us, row(wf).outcome) == ("semantic", None, "quarantined")

    def drafting(request):
        wf.append(talk(4, start=50))
        wf.compact_later(BUDGET)
        return ""

    wf.append(talk(1, start=40))
    wf.compact_later(BUDGET)
    ran = db.run_due(KEY, drafting)
    assert (ran.result, ran.outcome.outcome, row(wf).failure) == ("failed", "rejected", "malformed")
    assert ran.due_us is not None
    assert db.run_due(KEY, quiet).result == "done"


def test_after_three_semantic_failures_no_worker_tries_again(db, wf, clock):
    """C13: until a case is answered; by hand it may be compacted."""
    for number in range(SEMANTIC_FAILURES_MAX):
        wf.append(talk(2, start=40 + 10 * number))
        wf.compact_later(BUDGET)
        assert db.run_due(KEY, bad(), fallback=False).outcome.outcome == "quarantined"
    wf.append(talk(2, start=90))
    wf.compact_later(BUDGET)
    ran = db.run_due(KEY, never)
    assert (ran.result, ran.outcome) == ("parked", None)
    assert "by hand only" in row(wf).failure_text
    case = wf.case(ran.case_id)
    wf.reconcile(case.case_id, strandline.Abandon(), by="dana", why="looked at it")
    assert db.run_due(KEY, quiet).result == "done"


def test_what_waits_for_a_case_is_woken_by_its_answer(db, wf, clock):
    """I11: it is not run again meanwhile, however often it is asked for; looked at again after DUE_PARKED_S."""
    case = ask(wf)
    wf.compact_later(BUDGET)
    ran = db.run_due(KEY, never)
    assert (ran.result, ran.case_id) == ("parked", case.case_id)
    assert ran.due_us == clock.now_us() + int(DUE_PARKED_S) * 1_000_000
    assert row(wf).parked
    wf.append(talk(1, start=70))
    assert wf.compact_later(BUDGET).due_us == ran.due_us
    assert db.sweep() == []
    clock.advance(DUE_PARKED_S)
    assert db.run_due(KEY, never).result == "parked"
    wf.reconcile(case.case_id, strandline.Abandon(), by="dana", why="it may be lost")
    assert len(db.sweep()) == 1
    assert db.run_due(KEY, quiet).result == "done"


def test_an_answer_that_comes_before_the_row_waits_wakes_it_too(db, wf, monkeypatch):
    case = ask(wf)
    wf.compact_later(BUDGET)
    close = compact_module.close_overdue_calls

    def refused_then_answered(env, view):
        try:
            close(env, view)
        finally:
            wf.reconcile(case.case_id, strandline.Abandon(), by="dana", why="at once")

    with monkeypatch.context() as patched:
        patched.setattr(compact_module, "close_overdue_calls", refused_then_answered)
        assert db.run_due(KEY, never).result == "parked"
    assert len(db.sweep()) == 1
    assert db.run_due(KEY, quiet).result == "done"


def test_what_repeats_itself_fails_at_once(db, wf):
    """C11: mandatory facts that exceed the budget will do so again."""
    wf.append([strandline.constraint(f"rule-{n}", "Never deploy on Fridays. " * 20) for n in range(10)])
    wf.compact_later(BUDGET)
    ran = db.run_due(KEY, never)
    assert (ran.result, ran.due_us, row(wf).due_us) == ("failed", None, None)
    assert row(wf).failure_text.startswith("ContextOverflowError")


def test_a_store_that_fails_meanwhile_is_asked_again_later(db, wf, monkeypatch):
    wf.compact_later(BUDGET)

    def lost(*args, **kwargs):
        raise strandline.StoreUnavailableError("gone for a moment")

    with monkeypatch.context() as patched:
        patched.setattr(compact_module, "claim", lost)
        ran = db.run_due(KEY, never)
    assert (ran.result, row(wf).failure) == ("again", "storage")
    assert row(wf).due_us is not None


def test_a_fault_of_a_summarizer_is_settled_and_reaches_its_author(db, wf, clock):
    """It is no error of ours: it is raised, and the row says what it was; it is not run for ever."""
    wf.compact_later(BUDGET)
    for number in range(1, DUE_RUNS_MAX + 1):
        with pytest.raises(AssertionError, match="script"):
            db.run_due(KEY, ScriptedSummarizer([]))
        assert "script" in row(wf).failure_text
        assert (row(wf).due_us is None) == (number == DUE_RUNS_MAX)
        clock.advance(DUE_RETRY_CAP_S)
    assert "DUE_RUNS_MAX" in row(wf).failure_text


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_a_worker_that_is_told_to_stop_gives_the_row_back(db, wf, stop):
    wf.compact_later(BUDGET)
    with pytest.raises(stop):
        db.run_due(KEY, ScriptedSummarizer([stop()]))
    assert (row(wf).worker, row(wf).runs) == (None, 0)
    assert db.run_due(KEY, quiet).result == "done"


# ---------------------------------------------------------------------------------------------- beside


def test_hooks_are_told_after_the_commit(tmp_path):
    told = []

    class Hook:
        def emit(self, name, details):
            told.append((name, dict(details)))

    with open_store("memory", tmp_path, hooks=[Hook()]) as db:
        wf = db.tenant("acme").workflow("release")
        wf.append(talk(8))
        told.clear()
        due = wf.compact_later(BUDGET, priority=3)
        db.run_due(KEY, quiet)
    where = {"tenant": "acme", "workflow": "release", "elapsed_s": 0.0, "view": "main"}
    assert told[0] == ("due", {**where, "priority": 3, "due_us": due.due_us})
    assert told[-2] == ("due_run", {**where, "result": "done", "runs": 1, "case_id": None})


def test_the_twin_does_the_same(db, wf):
    """C1: asked, swept and run from an event loop, with a summarizer that is awaited."""

    async def drafting(request):
        await asyncio.sleep(0)
        return quiet(request)

    async def work():
        awaited = strandline.AsyncStrandline(db)
        flow = awaited.tenant("acme").workflow("release")
        due = await flow.compact_later(BUDGET)
        (key,) = await awaited.sweep()
        ran = await awaited.run_due(key, drafting, worker="w1")
        return due, ran, await flow.due()

    due, ran, rows = asyncio.run(work())
    assert (due.revision, ran.result, rows[0].due_us) == (16, "done", None)


def test_a_run_that_is_cancelled_gives_the_row_back(db, wf):
    async def work():
        started = asyncio.Event()

        async def stuck(request):
            started.set()
            await asyncio.sleep(600)

        task = asyncio.ensure_future(strandline.AsyncStrandline(db).run_due(KEY, stuck))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    wf.compact_later(BUDGET)
    asyncio.run(work())
    assert (row(wf).worker, row(wf).runs) == (None, 0)
    assert db.run_due(KEY, quiet).result == "done"


def test_a_fork_has_a_row_of_its_own(db, wf):
    """C22: what is due of its parent is not due of it."""
    wf.compact_later(BUDGET)
    wf.fork(10, "aside", by="dana", why="to try")
    assert db.tenant("acme").workflow("aside").due() == []


def test_a_missing_row_is_found(db, wf):
    """C5, I4: by its count."""
    wf.compact_later(BUDGET)
    with wf._env.write() as tx:
        head = tx.log.head()
        tx.log.set_head(replace(head, due_rows=2))
    with pytest.raises(strandline.CorruptRecordError, match="1 are stored, 2 were written"):
        wf.due()
    assert not db.verify().ok
    with wf._env.write() as tx:
        tx.log.set_head(head)
