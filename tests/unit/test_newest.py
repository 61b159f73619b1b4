"""A tail that exceeds the budget is kept no further than a context can hold it, and answers the same (C19)."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

import strandline
from strandline.engine.read_context import context_parts
from strandline.model.context import ContextView
from strandline.model.event import EventKind, Role, SourceEvent
from strandline.rules.fallback import fit, least_tokens
from strandline.rules.newest import NewestEvents
from strandline.summarizers.counting import BytesPerToken

STEPS = st.lists(
    st.tuples(st.sampled_from(["say", "call", "answer", "late", "fact"]), st.integers(0, 40), st.integers(0, 9)),
    max_size=60,
)


def _tail(steps: Sequence[tuple[str, int, int]], gap: int) -> list[SourceEvent]:
    """Return a log in which calls are answered in any order, late, or never; between its seqs others may be unseen."""
    events: list[SourceEvent] = []
    open_calls: list[int] = []
    for number, (what, tokens, which) in enumerate(steps, start=1):
        seq = number * gap
        kind, call_seq, late = EventKind.MESSAGE, None, False
        if what == "call":
            kind = EventKind.TOOL_CALL
            open_calls.append(seq)
        elif what in ("answer", "late") and open_calls:
            kind, call_seq, late = EventKind.TOOL_RESULT, open_calls.pop(which % len(open_calls)), what == "late"
        elif what == "fact":
            kind = EventKind.CONSTRAINT
        events.append(
            SourceEvent(
                seq=seq, kind=kind, role=Role.USER, actor="a", text="x", tokens=tokens, call_seq=call_seq, late=late
            )
        )
    return events


def _view(tail: Sequence[SourceEvent], newest: NewestEvents | None = None) -> ContextView:
    return ContextView(
        view="main",
        generation=0,
        revision=10_000,
        watermark=0,
        summary=None,
        tail=tuple(newest.events() if newest else tail),
        gaps=tuple(newest.gaps() if newest else ()),
    )


@given(STEPS, st.integers(1, 300), st.integers(0, 300), st.integers(1, 3))
def test_what_is_kept_gives_the_same_context(
    steps: list[tuple[str, int, int]], budget: int, taken: int, gap: int
) -> None:
    """C19, C11: parts, omissions, rung and what an error needs are those of the whole tail, at each smaller budget."""
    tail = _tail(steps, gap)
    newest = NewestEvents(budget)
    for event in tail:
        newest.take(event)
    whole = context_parts(_view(tail), BytesPerToken())
    kept = context_parts(_view(tail, newest), BytesPerToken())
    assert _view(tail, newest).tail_tokens == sum(event.tokens for event in tail)
    for size in (budget, max(0, budget - taken)):
        try:
            expected: object = fit(whole, size)
        except strandline.ContextOverflowError as error:
            expected = error.needed
        try:
            found: object = fit(kept, size)
        except strandline.ContextOverflowError as error:
            found = error.needed
        assert found == expected
    assert least_tokens(kept) == least_tokens(whole)


@given(st.integers(1, 50), st.integers(200, 400))
def test_the_events_held_follow_the_budget_and_not_the_tail(budget: int, count: int) -> None:
    """RSS: turns of call and result with ten tokens each; what is held at any time fits the budget and one turn."""
    newest = NewestEvents(budget)
    for event in _tail([("call", 5, 0), ("answer", 5, 0)] * count, 1):
        newest.take(event)
        assert len(newest.events()) <= budget // 5 + 3
        assert len(newest.gaps()) <= 2
