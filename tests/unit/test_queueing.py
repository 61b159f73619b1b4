"""Law (C15, I22): no wish is lost, no worker that was followed by another settles anything, and every wait has a bound.

Checked by random histories of asks, takes, endings and deaths against an account that is kept beside them.
"""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.errors import (
    ContextOverflowError,
    CorruptRecordError,
    OutcomeUnknownError,
    StoreUnavailableError,
    TransientSummarizerError,
    UnreconciledSummaryError,
)
from strandline.limits import (
    DUE_DELAY_S_MAX,
    DUE_PARKED_S,
    DUE_RETRY_CAP_S,
    DUE_RUNS_MAX,
    LEASE_TTL_S,
)
from strandline.model.candidate import FailureClass
from strandline.model.due import DueCompaction, DueResult, take_turns
from strandline.rules.queueing import Ending, Wish, ask, ending_by, give_back, settle, take
from strandline.rules.retry import RETRY_AFTER_CAP_S, GiveUp, Postpone, decide, postponed_s
from tests.unit.test_engine_stage import bounded

SECOND = 1_000_000
START = 10**15
RESULTS = (DueResult.DONE, DueResult.AGAIN, DueResult.FAILED, DueResult.PARKED, DueResult.BUSY)


def wish(*, revision=1, priority=5, budget=None, wanted_us=START):
    return Wish(
        view="main",
        revision=revision,
        priority=priority,
        budget=budget,
        when_tokens=None,
        strict=False,
        wanted_us=wanted_us,
    )


steps = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), st.integers(0, 9), st.integers(0, 100)),
        st.tuples(st.just("take"), st.integers(0, 3), st.just(0)),
        st.tuples(st.just("end"), st.integers(0, 3), st.integers(0, len(RESULTS))),
        st.tuples(st.just("wait"), st.integers(0, 700), st.just(0)),
    ),
    max_size=60,
)


@pytest.mark.long
@given(steps)
@bounded(2_000)
def test_no_wish_is_lost_and_no_late_worker_settles(history):
    """Every revision that was asked for is covered by a run that began after it, failed, or still to come."""
    row, now, revision = None, START, 0
    workers: dict[int, DueCompaction] = {}  # by its number: the row as it took it
    outstanding: int | None = None  # the newest revision that no run has begun for
    taken_for: int | None = None  # that of the newest run
    for step, a, b in history:
        if step == "ask":
            revision += 1
            row = ask(row, wish(revision=revision, priority=a, wanted_us=now + b * SECOND), now)
            outstanding = revision
            assert row.revision == revision
            assert row.due_us is not None
        elif step == "take" and row is not None and row.offered(now):
            before = row
            row = workers[a] = take(row, f"w{a}", now)
            assert (row.fence, row.runs) == (before.fence + 1, before.runs + 1)
            assert not row.offered(now)
            assert row.leased(now)
            outstanding, taken_for = None, row.revision
        elif step == "end" and a in workers:
            mine = workers.pop(a)
            if row.fence != mine.fence:
                continue  # it was taken for dead: the compare-and-swap refuses what it brings
            if b == len(RESULTS):
                row = give_back(row, now)
            else:
                row = settle(row, Ending(result=RESULTS[b], delay_s=30, text="", case_id="c" if b == 3 else None), now)
                if RESULTS[b] in (DueResult.DONE, DueResult.FAILED):
                    assert (row.due_us is None) == (outstanding is None)
                    taken_for = None
            assert (row.worker, row.lease_until_us) == (None, 0)
        elif step == "wait":
            now += a * SECOND
        if row is not None:
            assert (row.worker is None) == (row.lease_until_us == 0)
            assert 0 <= row.runs <= row.fence
            if outstanding is not None or taken_for is not None:
                assert row.due_us is not None  # a sweep will come by
                assert row.due_us <= now + max(100, LEASE_TTL_S, DUE_PARKED_S) * SECOND
                assert outstanding is None or row.wanted_us is not None


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 1000)), min_size=1, max_size=8))
@bounded(500)
def test_asking_again_keeps_the_earlier_time_and_the_higher_priority(wishes):
    row = None
    for number, (priority, wait) in enumerate(wishes):
        row = ask(row, wish(revision=number, priority=priority, wanted_us=START + wait), START)
    assert row.priority == max(priority for priority, _ in wishes)
    assert row.due_us == row.wanted_us == START + min(wait for _, wait in wishes)
    assert (row.revision, row.runs, row.asked_us) == (len(wishes) - 1, 0, START)


@pytest.mark.parametrize("ahead_us", [0, 1, int(LEASE_TTL_S) * SECOND, int(LEASE_TTL_S) * SECOND + 1])
def test_a_lease_holds_for_its_time_and_no_longer(ahead_us):
    row = replace(take(ask(None, wish(), START), "w", START), lease_until_us=START + ahead_us, due_us=START + ahead_us)
    held = 0 < ahead_us <= LEASE_TTL_S * SECOND
    assert (row.leased(START), row.offered(START)) == (held, not held)


@pytest.mark.parametrize("ahead_us", [-1, 0, 1, int(DUE_DELAY_S_MAX) * SECOND, int(DUE_DELAY_S_MAX) * SECOND + 1])
def test_what_lies_further_ahead_than_any_delay_is_past(ahead_us):
    row = ask(None, wish(wanted_us=START + ahead_us), START)
    assert row.offered(START) == (not 0 < ahead_us <= DUE_DELAY_S_MAX * SECOND)


@pytest.mark.parametrize(
    ("error", "result", "failure"),
    [
        (UnreconciledSummaryError("no", case_id="c"), DueResult.PARKED, None),
        (ContextOverflowError("no", needed=2, budget=1), DueResult.FAILED, None),
        (CorruptRecordError("no", place="event 1"), DueResult.FAILED, None),
        (StoreUnavailableError("no"), DueResult.AGAIN, FailureClass.STORAGE),
        (OutcomeUnknownError("no"), DueResult.AGAIN, FailureClass.STORAGE),
        (TransientSummarizerError("no"), DueResult.AGAIN, FailureClass.TRANSIENT),
        (ValueError("no"), DueResult.AGAIN, FailureClass.MALFORMED),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_what_an_error_leads_to(error, result, failure):
    ending = ending_by(error, runs=1, jitter=0.5)
    assert (ending.result, ending.failure) == (result, failure)
    assert type(error).__name__ in ending.text
    last = ending_by(error, runs=DUE_RUNS_MAX, jitter=0.5)
    assert last.result is (DueResult.FAILED if result is DueResult.AGAIN else result)


@given(st.integers(1, 10**6), st.floats(0, 1, exclude_max=True), st.none() | st.floats(0, 1e9))
@bounded(300)
def test_every_wait_between_runs_has_a_bound(run, jitter, retry_after_s):
    """I22, C14: full jitter, below a cap; what the other side asked for counts, up to its own."""
    wait = postponed_s(run, jitter=jitter, retry_after_s=retry_after_s)
    assert 0 <= wait <= max(DUE_RETRY_CAP_S, RETRY_AFTER_CAP_S)
    assert wait >= min(retry_after_s or 0, RETRY_AFTER_CAP_S)
    decision = decide(FailureClass.TRANSIENT, attempt=1, run=run, jitter=jitter, retry_after_s=retry_after_s)
    assert isinstance(decision, Postpone if run < DUE_RUNS_MAX else GiveUp)


@given(st.lists(st.lists(st.integers(), max_size=6), max_size=6), st.integers(0, 20))
@bounded(300)
def test_turns_are_taken_one_by_one(queues, limit):
    numbered = [[(number, place) for place, _ in enumerate(queue)] for number, queue in enumerate(queues)]
    turns = take_turns(numbered, limit)
    assert turns == sorted((item for queue in numbered for item in queue), key=lambda item: (item[1], item[0]))[:limit]
