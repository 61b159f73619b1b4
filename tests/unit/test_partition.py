"""A source larger than the summarizer's window is drafted in parts, all of it, once (C10, I8, I12)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import strandline
from strandline.limits import UNKNOWN_CALL_ANCHORS_MAX
from strandline.rules.partition import Part, part_budget, partition

WINDOW = 100


def _sizes(tokens: list[int]) -> list[tuple[int, int]]:
    return list(enumerate(tokens, start=1))


@given(st.lists(st.integers(0, WINDOW), max_size=60), st.data())
def test_parts_are_the_whole_in_order_and_each_fits(tokens: list[int], data: st.DataObject) -> None:
    """C10: nothing is left out, nothing is shown twice, no part exceeds the window, no draft the budget."""
    parts = partition(_sizes(tokens), prior_tokens=0, window_tokens=WINDOW)
    covered = [seq for part in parts for seq in range(part.from_seq, part.through_seq + 1)]
    assert covered == ([seq for seq, _ in _sizes(tokens)] or [0])
    assert [part.tokens for part in parts] == [
        sum(tokens[max(part.from_seq - 1, 0) : part.through_seq]) for part in parts
    ]
    assert all(part.tokens <= WINDOW for part in parts)
    spent = 0
    for number in range(len(parts)):
        budget = part_budget(parts, number, 50, spent_tokens=spent, joint_tokens=1)
        spent += data.draw(st.integers(0, budget))
    assert spent + len(parts) - 1 <= max(50, len(parts) - 1)


def test_what_a_draft_leaves_is_the_next_ones() -> None:
    """C10: of many parts each has too little for a line; the share adds up until one has enough."""
    parts = partition(_sizes([WINDOW] * 10), prior_tokens=0, window_tokens=WINDOW)
    assert len(parts) == 10
    assert [part_budget(parts, n, 59, spent_tokens=0, joint_tokens=1) for n in (0, 4, 9)] == [5, 25, 50]
    assert part_budget(parts, 5, 59, spent_tokens=25, joint_tokens=1) == 5


def test_no_window_is_one_part() -> None:
    """C10: without a bound everything is shown at once."""
    assert partition(_sizes([10**9, 5]), prior_tokens=7, window_tokens=None) == [Part(1, 2, 10**9 + 5)]


def test_an_event_larger_than_the_window_is_named() -> None:
    """I8: what can't be shown is not covered in silence."""
    with pytest.raises(strandline.ContextOverflowError, match="event 2"):
        partition(_sizes([1, WINDOW + 1]), prior_tokens=0, window_tokens=WINDOW)


def test_a_small_window_is_shown_every_event(tmp_path: object) -> None:
    """C10 and I12 end to end: many requests, one segment of depth 1, every covered event shown exactly once."""
    shown: list[int] = []

    class Narrow:
        name, version, window_tokens = "narrow", "1", WINDOW

        def summarize(self, request: strandline.SummaryRequest) -> strandline.Draft:
            assert sum(event.tokens for event in request.events) <= WINDOW
            shown.extend(event.seq for event in request.events)
            return strandline.Draft(text=f"part of {len(request.events)} notes"[: 3 * request.budget_tokens])

    with strandline.open(":memory:") as db:
        workflow = db.tenant("acme").workflow("w")
        workflow.append([strandline.note(f"note {'x' * 90}") for _ in range(60)])
        outcome = workflow.compact(1_000, Narrow())
        assert outcome.outcome == "activated", outcome.reason
        assert shown == list(range(1, outcome.watermark + 1))
        assert outcome.depth == 1
        assert workflow.verify().ok


def test_older_calls_of_unknown_outcome_move_to_the_ledger() -> None:
    """I8: the newest are anchors; the others stand in the ledger, the newest of them first."""
    calls = UNKNOWN_CALL_ANCHORS_MAX + 5
    with strandline.open(":memory:") as db:
        workflow = db.tenant("acme").workflow("w")
        for number in range(calls):
            workflow.append(
                [
                    strandline.tool_call(f"call{number}", "fetch", {"n": number}),
                    strandline.message("user", "never mind"),
                ]
            )
        workflow.append([strandline.note("y" * 900) for _ in range(6)])
        outcome = workflow.compact(4_000)
        assert outcome.summary is not None
        anchored = [anchor.key.subject for anchor in outcome.summary.anchors]
        assert anchored == [f"call{number}" for number in range(5, calls)]
        lines = outcome.summary.ledger_text.splitlines()
        assert [line.split()[0] for line in lines[1:6]] == [f"call{number}" for number in range(4, -1, -1)]


def test_a_small_window_does_not_stop_later_compactions() -> None:
    """C10, I22: where older segments leave no room in the window, raw events are shown in parts."""
    extractive = strandline.ExtractiveSummarizer()
    with strandline.open(":memory:") as db:
        workflow = db.tenant("acme").workflow("w")
        for round_ in range(5):
            workflow.append([strandline.note(f"round {round_} note {number} {'x ' * 40}") for number in range(60)])
            summarizer = strandline.CallableSummarizer(extractive.summarize, name="narrow", window_tokens=300)
            outcome = workflow.compact(3_000, summarizer)
            assert outcome.outcome == "activated", outcome.reason
            assert outcome.tokens_after <= 3_000
        assert workflow.verify().ok
