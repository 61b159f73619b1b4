"""Where the watermark goes, and what the budget is spent on (DESIGN §2, tx1)."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

from strandline.errors import ContextOverflowError, InvalidInputError
from strandline.limits import CONTEXT_BUDGET_TOKENS_MIN, SEGMENT_TOKENS_MIN
from strandline.model.candidate import CompactionPlan, Shares
from strandline.model.register import OpenCall
from strandline.model.segment import SegmentHead
from strandline.model.view import ViewHead
from strandline.rules.merging import depth_bound, plan_segments


@dataclass(frozen=True, slots=True, kw_only=True)
class TailPoint:
    """A place in the tail: after this event, how many tokens are left behind it, and whether a watermark may stand."""

    seq: int
    tokens_after: int
    tokens_through: int  # from the base's watermark through this event
    legal: bool  # no call is open here (I8)
    anchors: int  # at most so many tokens of anchors as of this event


class Places:
    """The places of a tail where a watermark may come to stand, taken event by event.

    `plan_compaction` chooses the first place whose rest fits the tail's share, else the one with the least behind it,
    or the one that was asked for. What can be neither of them any more is let go, so that the places kept follow the
    budget and not the tail; the plan is the same as from all of them.
    """

    def __init__(self, budget: int, shares: Shares, through: int | None = None) -> None:
        self.tokens = 0  # of the events so far
        self._tail_budget = int(check_budget(budget) * shares.tail)
        self._through = through
        self._near: deque[TailPoint] = deque()  # the rest still fits the tail's share
        self._least: TailPoint | None = None
        self._asked: TailPoint | None = None
        self._last: TailPoint | None = None

    def take(self, seq: int, tokens: int, *, legal: bool, anchors: int) -> None:
        """Take the next event."""
        self.tokens += tokens
        point = TailPoint(seq=seq, tokens_after=0, tokens_through=self.tokens, legal=legal, anchors=anchors)
        self._last = point
        while self._near and self.tokens - self._near[0].tokens_through > self._tail_budget:
            self._near.popleft()
        if not legal:
            return
        if seq == self._through:
            self._asked = point
        if self._least is None or anchors - self.tokens < self._least.anchors - self._least.tokens_through:
            self._least = point
        before = self._near[-1] if self._near else None
        if before is None or before.tokens_through < self.tokens or anchors < before.anchors:
            self._near.append(point)

    def points(self) -> list[TailPoint]:
        """Return the places that can be chosen, and the last one whether or not it can, in order."""
        kept = [*self._near, *(point for point in (self._least, self._asked, self._last) if point is not None)]
        kept = [replace(point, tokens_after=self.tokens - point.tokens_through) for point in kept]
        return sorted({point.seq: point for point in kept}.values(), key=lambda point: point.seq)


@dataclass(frozen=True, slots=True, kw_only=True)
class Nothing:
    """There is nothing to compact, and why."""

    reason: str


def check_budget(budget: int) -> int:
    """Return a budget that is worth planning with.

    Raises:
        InvalidInputError: no whole number, or below CONTEXT_BUDGET_TOKENS_MIN.
    """
    if isinstance(budget, bool) or not isinstance(budget, int):
        raise InvalidInputError(f"a budget is a whole number of tokens, not {budget!r}")
    if budget < CONTEXT_BUDGET_TOKENS_MIN:
        raise InvalidInputError(f"a budget of {budget} tokens; at least {CONTEXT_BUDGET_TOKENS_MIN} are needed")
    return budget


def ledger_tokens(budget: int, shares: Shares, *, segments: int, anchors: int, tail: int) -> int:
    """Return the tokens that the ledger may take: what segments and anchors leave of the summary's shares.

    The tail's share stays free for what comes next, and the whole never exceeds the budget.
    """
    summary = int(budget * (shares.segments + shares.ledger))
    return max(0, min(summary, budget - tail) - segments - anchors)


def plan_compaction(
    *,
    view: ViewHead,
    segments: Sequence[SegmentHead],
    compactions: int,
    tail: Sequence[TailPoint],
    tail_tokens: int,
    anchors: int,
    open_calls: Sequence[OpenCall],
    context_tokens: int,
    revision: int,
    budget: int,
    shares: Shares,
    through: int | None,
    window_tokens: int | None,
) -> CompactionPlan | Nothing:
    """Decide one compaction.

    Args:
        view: the view's pointer; its watermark is the base's.
        segments: those of the active summary.
        compactions: compactions on its chain so far.
        tail: the places behind the watermark, in order: all, or those that `Places` kept.
        tail_tokens: tokens of the whole tail.
        anchors: tokens of the anchors as of the present watermark.
        open_calls: the calls without a result: the first holds the watermark before it (I8).
        context_tokens: tokens of summary and tail now.
        revision: of the snapshot.
        budget: tokens of the assembled context right after activation.
        shares: what it is spent on.
        through: the watermark that was asked for, or None.
        window_tokens: the summarizer's window, or None.

    Raises:
        ContextOverflowError: mandatory facts and what must stay verbatim don't fit the budget (C11).
        InvalidInputError: `through` is no place where a watermark may stand.
    """
    check_budget(budget)
    here = TailPoint(seq=view.watermark, tokens_after=tail_tokens, tokens_through=0, legal=True, anchors=anchors)
    points = [here, *(point for point in tail if point.legal)]
    point = _place(points, budget, shares) if through is None else _asked(points, through)
    if through is not None and through == view.watermark:
        return Nothing(reason=f"the summary covers event {through} already")
    if point.seq == view.watermark and (context_tokens <= budget or not segments):
        return _nothing(tail, tail_tokens, budget, shares, context_tokens, open_calls)
    segments_budget = _segments_budget(budget, shares, point, compactions + 1, open_calls)
    merge = plan_segments(
        segments,
        compactions=compactions + 1,
        watermark=point.seq,
        new_tokens=point.tokens_through,
        segments_budget=segments_budget,
        window_tokens=window_tokens,
    )
    return CompactionPlan(
        base_generation=view.generation,
        base_summary_no=view.summary_no,
        revision=revision,
        watermark=point.seq,
        budget=budget,
        compactions=compactions + 1,
        kept=merge.kept,
        jobs=merge.jobs,
        shares=shares,
    )


def _place(points: Sequence[TailPoint], budget: int, shares: Shares) -> TailPoint:
    """Return where the watermark goes: as early as the tail's share allows.

    Anchors may need more than their share; then the tail gives way first, and after it the segments.
    """
    tail_budget, segments_budget = int(budget * shares.tail), int(budget * shares.segments)
    for point in points:
        if point.tokens_after <= tail_budget and point.anchors + point.tokens_after + segments_budget <= budget:
            return point
    return min(points, key=lambda point: point.anchors + point.tokens_after)


def _segments_budget(
    budget: int, shares: Shares, point: TailPoint, compactions: int, open_calls: Sequence[OpenCall]
) -> int:
    """Return the tokens of all segments: their share, or what anchors and tail leave of it (C11)."""
    left = min(int(budget * shares.segments), budget - point.anchors - point.tokens_after)
    least = SEGMENT_TOKENS_MIN * depth_bound(compactions)
    if left < least:
        held = bool(open_calls) and point.tokens_after > int(budget * shares.tail)
        raise ContextOverflowError(
            f"mandatory facts of {point.anchors} tokens and {point.tokens_after} tokens of events behind event "
            f"{point.seq}, where the watermark would stand, leave no room for a summary"
            + (f"; {open_calls[0]} is open and holds it there" if held else ""),
            needed=point.anchors + point.tokens_after + least,
            budget=budget,
            hint=_way_out(open_calls[0]) if held else None,
        )
    return left


def _way_out(call: OpenCall) -> str:
    return f"Append its tool_result, or abandoned({call.call_id!r}), then compact again."


def _asked(points: Sequence[TailPoint], through: int) -> TailPoint:
    for point in points:
        if point.seq == through:
            return point
    raise InvalidInputError(
        f"no watermark can stand at event {through}: it is covered already, it is not there, or a call is open there"
    )


def _nothing(
    tail: Sequence[TailPoint],
    tail_tokens: int,
    budget: int,
    shares: Shares,
    context_tokens: int,
    open_calls: Sequence[OpenCall],
) -> Nothing:
    """Say why nothing is covered; what does not fit the budget is an error (C11)."""
    held = bool(open_calls) and tail_tokens > int(budget * shares.tail)
    if held and context_tokens > budget:
        raise ContextOverflowError(
            f"{open_calls[0]} is open, and what stands behind it can't be covered before it is answered or abandoned",
            needed=context_tokens,
            budget=budget,
            hint=_way_out(open_calls[0]),
        )
    if context_tokens > budget:
        raise ContextOverflowError("mandatory facts alone exceed the budget", needed=context_tokens, budget=budget)
    if not tail:
        return Nothing(reason="the summary covers every event")
    if held:
        return Nothing(
            reason=f"{open_calls[0]} is open: the watermark can't pass it before it is answered or abandoned"
        )
    return Nothing(reason=f"the {tail_tokens} tokens behind the watermark fit the tail's share of the budget")
