"""Law (C14, I22): a summarizer that does not answer is left alone for a while by every process on the store, for the
whole tenant, longer each time; its answer ends that. Retry-After holds for everybody.

The rules are checked on rows; then on both stores, through the door, with a clock that the tests move.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import strandline
from strandline.limits import (
    COOLDOWN_BASE_S,
    COOLDOWN_CAP_S,
    COOLDOWN_FAILURES,
    COOLDOWN_FORGOTTEN_S,
    DUE_RUNS_MAX,
    RETRY_AFTER_CAP_S,
)
from strandline.model.cooldown import Cooldown
from strandline.rules.cooling import answered, cools_until_us, failed
from strandline.testing import ScriptedSummarizer
from tests.unit.test_engine_stage import STORES, open_store, talk

SECOND = 1_000_000
BASE_US = int(COOLDOWN_BASE_S) * SECOND
BUSY = strandline.TransientSummarizerError("no answer")
BUDGET = 400


def fresh(name="m"):
    return Cooldown(summarizer=name)


# ---------------------------------------------------------------------------------------------- rules


def test_after_so_many_failures_it_is_left_alone_and_longer_each_time():
    row, now = fresh(), 0
    waits = []
    for number in range(1, COOLDOWN_FAILURES + 8):
        row = failed(row, [], now_us=now)
        until = cools_until_us([row], now)
        assert (until is None) == (number < COOLDOWN_FAILURES)
        if until is not None:
            waits.append((until - now) / SECOND)
            now = until
        now += 1
    assert waits[:3] == [COOLDOWN_BASE_S, 2 * COOLDOWN_BASE_S, 4 * COOLDOWN_BASE_S]
    assert waits[-1] == COOLDOWN_CAP_S


def test_failures_of_other_workflows_count_while_they_are_fresh():
    others = [Cooldown(summarizer="m", failures=2, failed_us=1) for _ in range(2)]
    assert cools_until_us([failed(fresh(), others, now_us=2)], 2) == 2 + BASE_US
    late = int(COOLDOWN_FORGOTTEN_S * SECOND) + 2
    assert cools_until_us([failed(fresh(), others, now_us=late)], late) is None


def test_a_call_that_had_begun_before_makes_it_no_longer():
    """Eight workers whose calls fail at the same moment are one reason to wait."""
    row = fresh()
    for now in range(COOLDOWN_FAILURES):
        row = failed(row, [], now_us=now)
    until = cools_until_us([row], COOLDOWN_FAILURES)
    other = failed(fresh(), [row], now_us=COOLDOWN_FAILURES)
    assert (other.steps, cools_until_us([row, other], COOLDOWN_FAILURES)) == (0, until)


def test_an_answer_anywhere_in_the_tenant_ends_it():
    row = Cooldown(summarizer="m", failures=9, failed_us=5, until_us=50, steps=3)
    assert cools_until_us([row], 6) == 50
    done = answered(fresh(), [row], 7)
    assert done is not None
    assert cools_until_us([row, done], 8) is None
    assert answered(done, [row], 9) is None, "nothing failed since"
    assert failed(fresh(), [row, done], now_us=10).steps == 0


@pytest.mark.parametrize("asked_s", [7.0, 1e9])
def test_what_a_server_asks_for_holds_for_everybody(asked_s):
    row = failed(fresh(), [], now_us=0, retry_after_s=asked_s)
    assert cools_until_us([row], 1) == min(asked_s, RETRY_AFTER_CAP_S) * SECOND


def test_a_clock_that_had_jumped_stops_nobody():
    assert cools_until_us([Cooldown(summarizer="m", failures=9, failed_us=1, until_us=10**18)], 1) is None


@given(st.lists(st.tuples(st.integers(0, 10**9), st.sampled_from([None, -1.0, 3.0, float("nan"), float("inf")]))))
def test_no_cooldown_is_longer_than_the_cap(steps):
    row, now = fresh(), 0
    for later, asked_s in steps:
        now += later
        row = failed(row, [], now_us=now, retry_after_s=asked_s)
        until = cools_until_us([row], now)
        assert until is None or now < until <= now + COOLDOWN_CAP_S * SECOND


# ---------------------------------------------------------------------------------------------- through the door


@pytest.fixture(params=STORES)
def db(request, tmp_path):
    with open_store(request.param, tmp_path) as db:
        yield db
        assert db.verify().ok


def workflow(db, name, tenant="acme"):
    wf = db.tenant(tenant).workflow(name)
    wf.append(talk(8))
    return wf


def silent(count=99):
    return ScriptedSummarizer([BUSY] * count, name="model")


def speaks():
    return ScriptedSummarizer(["Work went on."] * 9, name="model")


def never():
    return ScriptedSummarizer([], name="model")


def test_nobody_calls_it_until_its_time(db):
    """By hand, in another workflow, and in the background, where it counts as no run; another tenant goes on."""
    first, other = workflow(db, "a"), workflow(db, "b")
    for _ in range(2):
        assert first.compact(BUDGET, silent()).outcome == "dead_letter"
    refused = other.compact(BUDGET, never())
    assert (refused.outcome, refused.attempts) == ("postponed", ())
    assert "left alone" in refused.reason
    assert 0 < refused.again_after_s <= COOLDOWN_BASE_S
    other.compact_later(BUDGET)
    (key,) = db.sweep()
    ran = db.run_due(key, never())
    (row,) = other.due()
    assert (ran.result, row.runs, row.failure) == ("busy", 0, "transient")
    assert "'model'" in row.failure_text
    assert db.sweep() == []
    assert workflow(db, "a", "zeta").compact(BUDGET, speaks()).outcome == "activated"
    assert other.compact(BUDGET).outcome == "activated", "another summarizer is asked"
    assert [down.summarizer for down in db.tenant("acme").cooldowns()] == ["model"]
    db._clock.advance(COOLDOWN_BASE_S)
    assert db.tenant("acme").cooldowns() == []
    assert first.compact(BUDGET, speaks()).outcome == "activated"


def test_it_is_called_again_and_left_alone_for_twice_as_long(db):
    wf = workflow(db, "a")
    for _ in range(2):
        wf.compact(BUDGET, silent())
    db._clock.advance(COOLDOWN_BASE_S)
    assert wf.compact(BUDGET, silent()).outcome == "dead_letter"
    refused = wf.compact(BUDGET, never())
    assert refused.outcome == "postponed"
    assert COOLDOWN_BASE_S < refused.again_after_s <= 2 * COOLDOWN_BASE_S


def test_an_answer_ends_it(db):
    """The failures before count no longer, in no workflow."""
    first, other = workflow(db, "a"), workflow(db, "b")
    first.compact(BUDGET, silent())
    assert other.compact(BUDGET, speaks()).outcome == "activated"
    assert first.compact(BUDGET, silent()).outcome == "dead_letter"
    assert first.compact(BUDGET, speaks()).outcome == "activated"


def test_a_draft_that_can_not_be_used_is_an_answer(db):
    first, other = workflow(db, "a"), workflow(db, "b")
    first.compact(BUDGET, silent())
    assert other.compact(BUDGET, ScriptedSummarizer([""] * 9, name="model")).outcome == "rejected"
    assert first.compact(BUDGET, silent()).outcome == "dead_letter"
    assert first.compact(BUDGET, speaks()).outcome == "activated"


def test_retry_after_holds_for_every_worker(db):
    first, other = workflow(db, "a"), workflow(db, "b")
    first.compact_later(BUDGET)
    (key,) = db.sweep()
    limited = strandline.TransientSummarizerError("slow down", retry_after_s=77)
    assert db.run_due(key, ScriptedSummarizer([limited], name="model")).result == "again"
    assert other.compact(BUDGET, never()).again_after_s == pytest.approx(77)
    db._clock.advance(77)
    assert db.run_due(key, speaks()).result == "done"


def test_what_is_left_alone_for_long_is_no_dead_letter(db):
    """I22: only runs that called it count."""
    wf = workflow(db, "a")
    wf.compact_later(BUDGET)
    calls = 0
    while calls < DUE_RUNS_MAX - 1:
        for key in db.sweep():
            summarizer = silent()
            assert db.run_due(key, summarizer).result in ("again", "busy")
            calls += len(summarizer.requests)
        db._clock.advance(20)
    (row,) = wf.due()
    assert row.runs == DUE_RUNS_MAX - 1
