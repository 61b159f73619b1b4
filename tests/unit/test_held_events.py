"""Memory follows the window and the budget, not the log: counted are the decoded events that are alive at once."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

import strandline
from strandline.engine import plan_job, reading
from strandline.errors import ContextOverflowError
from strandline.model.candidate import Shares
from strandline.model.event import Event, SourceEvent
from strandline.model.register import OpenCall
from strandline.model.view import ViewHead
from strandline.rules.planning import Places, TailPoint, plan_compaction

pytestmark = pytest.mark.long

WINDOW = 1_000  # about 25 of the events below
EVENTS = 600
HELD_MAX = 120  # two decoded forms of a window, of what is read next to it, and what the collector has not met yet


class Alive:
    """Counts the decoded events that are alive beside those of earlier tests, at every 25th event that is read."""

    def __init__(self) -> None:
        gc.collect()
        self.peak = 0
        self.read = 0
        self._before = self._count()

    def _count(self) -> int:
        return sum(isinstance(thing, Event | SourceEvent) for thing in gc.get_objects())

    def look(self) -> None:
        self.read += 1
        if self.read % 25 == 0:
            self.peak = max(self.peak, self._count() - self._before)


@pytest.fixture
def alive(monkeypatch: pytest.MonkeyPatch) -> Alive:
    watch = Alive()
    opened = reading.open_event

    def counted(*arguments: object) -> Event:
        watch.look()
        return opened(*arguments)

    monkeypatch.setattr(reading, "open_event", counted)
    monkeypatch.setattr(plan_job, "TAIL_HELD_TOKENS", WINDOW)
    return watch


@pytest.fixture
def wf() -> Iterator[strandline.Workflow]:
    with strandline.open(":memory:") as db:
        workflow = db.tenant("acme").workflow("w")
        for first in range(0, EVENTS, 100):
            workflow.append([_note(number) for number in range(first, first + 100)])
        yield workflow


def _note(number: int) -> strandline.NewEvent:
    return strandline.note(f"Step {number} wrote build/part-{number % 7}.json as job-{number:08x}. {'x ' * 30}")


def _narrow() -> strandline.CallableSummarizer:
    return strandline.CallableSummarizer(
        strandline.ExtractiveSummarizer().summarize, name="narrow", window_tokens=WINDOW
    )


def test_a_compaction_holds_one_window_of_events(wf: strandline.Workflow, alive: Alive) -> None:
    """C10: the first of a long log, and the merges after it; what is read again is let go part by part."""
    for number in range(4):
        outcome = wf.compact(2_000, _narrow())
        assert outcome.outcome == "activated", outcome.reason
        assert outcome.refs_unaccounted == 0
        wf.append([_note(EVENTS + 100 * number + offset) for offset in range(100)])
    assert alive.read > 3 * EVENTS
    assert 0 < alive.peak <= HELD_MAX
    assert wf.verify().ok


def test_a_context_of_a_long_tail_holds_what_fits(wf: strandline.Workflow, alive: Alive) -> None:
    """I7, C19: the whole tail is checked, and named where it is left out."""
    context = wf.context(WINDOW)
    assert alive.read >= EVENTS
    assert 0 < alive.peak <= HELD_MAX
    assert [(left.from_seq, left.through_seq) for left in context.omitted] == [(1, context.parts[0].from_seq - 1)]
    assert context.tokens + context.omitted[0].tokens == wf.context(10**6).tokens


def test_a_need_in_the_part_that_is_left_out_is_quoted(wf: strandline.Workflow) -> None:
    """C19: also one that no extractor calls a reference; the newest event in which it stands is quoted."""
    context = wf.context(WINDOW, needs=["Step 17 wrote"])
    quoted = next(part for part in context.parts if part.kind == "retrieved")
    assert (quoted.from_seq, context.needs.lookups) == (18, 0)


def test_a_tail_that_is_read_again_gives_the_same_summary(
    wf: strandline.Workflow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Holding the tail saves a reading, and changes nothing."""
    summaries = []
    for held in (10**9, 0):
        with strandline.open(":memory:") as db:
            again = db.tenant("acme").workflow("w")
            again.append([_note(number) for number in range(EVENTS)])
            monkeypatch.setattr(plan_job, "TAIL_HELD_TOKENS", held)
            summary = again.compact(2_000).summary
            assert summary is not None
            summaries.append(([s.text for s in summary.segments], summary.ledger_text, summary.manifest_digest))
    assert summaries[0] == summaries[1]


def test_parts_without_room_for_a_line_do_not_fail_the_whole(wf: strandline.Workflow) -> None:
    """C10: of many parts of a small budget some quote nothing; their share is the next one's."""
    outcome = wf.compact(300, _narrow())
    assert outcome.outcome == "activated", outcome.reason
    assert outcome.summary is not None
    assert "Step" in outcome.summary.segments[0].text


POINTS = st.lists(st.tuples(st.integers(0, 60), st.booleans(), st.integers(0, 80)), max_size=60)


@given(POINTS, st.integers(64, 600), st.integers(0, 80), st.none() | st.integers(1, 60))
def test_the_places_kept_give_the_same_plan(
    rows: list[tuple[int, bool, int]], budget: int, anchors: int, through: int | None
) -> None:
    """DESIGN §2, tx1: what was let go would not have been chosen; the same errors too."""
    places = Places(budget, Shares(), through)
    for seq, (tokens, legal, cost) in enumerate(rows, start=1):
        places.take(seq, tokens, legal=legal, anchors=cost)
    total = sum(tokens for tokens, _, _ in rows)
    points = []
    passed = 0
    for seq, (tokens, legal, cost) in enumerate(rows, start=1):
        passed += tokens
        points.append(TailPoint(seq=seq, tokens_after=total - passed, tokens_through=passed, legal=legal, anchors=cost))

    def plan(tail: list[TailPoint]) -> object:
        try:
            return plan_compaction(
                view=ViewHead(view_id=1, name="main"),
                segments=(),
                compactions=0,
                tail=tail,
                tail_tokens=total,
                anchors=anchors,
                open_calls=(OpenCall(call_id="c", seq=1, tool="t"),),
                context_tokens=total,
                revision=len(rows),
                budget=budget,
                shares=Shares(),
                through=through,
                window_tokens=None,
            )
        except (ContextOverflowError, strandline.InvalidInputError) as error:
            return str(error)

    assert places.tokens == total
    assert plan(places.points()) == plan(points)


def test_few_places_are_kept() -> None:
    """They follow the tail's share of the budget."""
    places = Places(1_000, Shares())
    for seq in range(1, 5_000):
        places.take(seq, seq % 3 * 10, legal=True, anchors=0)
        assert len(places.points()) <= 40
