"""The binary counter of segments: depth, budget, byte-identity (I12, DESIGN §3)."""

from __future__ import annotations

import math
import random
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.model.candidate import SegmentJob
from strandline.model.segment import SegmentHead
from strandline.rules.merging import MergePlan, depth_bound, plan_segments, segment_share

COMPACTIONS = 10_000


def _made(job: SegmentJob, name: str, tokens: int, source_tokens: int) -> SegmentHead:
    return SegmentHead(
        segment_id=name,
        from_seq=job.from_seq,
        through_seq=job.through_seq,
        level=job.level,
        depth=job.depth,
        tokens=tokens,
        source_tokens=source_tokens,
    )


def _apply(plan: MergePlan, older: list[SegmentHead], number: int, fill: float, new_tokens: int) -> list[SegmentHead]:
    """Return the segments after a plan whose drafts fill this share of what they may."""
    segments = list(plan.kept)
    for index, job in enumerate(plan.jobs):
        inside = sum(s.source_tokens for s in older if job.from_seq <= s.from_seq and s.through_seq <= job.through_seq)
        added = new_tokens if job.through_seq > (older[-1].through_seq if older else 0) else 0
        tokens = int(job.budget_tokens * fill)
        segments.append(_made(job, f"{number}.{index}", tokens, inside + added))
    return sorted(segments, key=lambda segment: segment.from_seq)


def _check(segments: list[SegmentHead], plan: MergePlan, number: int, watermark: int, budget: int) -> None:
    assert segments[0].from_seq == 1
    assert segments[-1].through_seq == watermark
    assert all(a.through_seq + 1 == b.from_seq for a, b in pairwise(segments)), "a gap or an overlap"
    assert sum(segment.tokens for segment in segments) <= budget, "the segments exceed their budget"
    assert len(segments) <= depth_bound(number)
    assert all(segment.depth <= math.floor(math.log2(number)) + 1 for segment in segments), "I12"
    assert all(a.level > b.level for a, b in pairwise(segments)), "the counter's digits fall"
    assert set(plan.kept) <= set(segments), "a kept segment changed"


def test_ten_thousand_compactions_keep_depth_and_budget() -> None:
    """I12 and the budget rule, with every draft as long as it may be, and a window that most merges do not fit."""
    segments: list[SegmentHead] = []
    watermark = 0
    for number in range(1, COMPACTIONS + 1):
        watermark += 3
        plan = plan_segments(
            segments,
            compactions=number,
            watermark=watermark,
            new_tokens=300,
            segments_budget=2_700,
            window_tokens=5_000,
        )
        segments = _apply(plan, segments, number, 1.0, 300)
        _check(segments, plan, number, watermark, 2_700)
    assert max(segment.depth for segment in segments) > 1, "the small window must have forced merges of summaries"


def test_ten_thousand_compactions_under_a_changing_budget() -> None:
    """When S shrinks, segments are made anew from raw, never by an extra lossy pass; the sum holds at every step."""
    chance = random.Random(7)
    segments: list[SegmentHead] = []
    watermark = 0
    for number in range(1, COMPACTIONS + 1):
        budget = chance.choice((900, 2_700, 5_400))
        watermark += chance.randint(1, 5)
        plan = plan_segments(
            segments,
            compactions=number,
            watermark=watermark,
            new_tokens=100,
            segments_budget=budget,
            window_tokens=None,
        )
        remade = [job for job in plan.jobs if job.through_seq < watermark]
        assert all(job.depth == 1 and not job.from_segments for job in remade)
        segments = _apply(plan, segments, number, chance.random(), 100)
        _check(segments, plan, number, watermark, budget)
        assert all(segment.depth == 1 for segment in segments)


@given(st.lists(st.tuples(st.integers(1, 9), st.floats(0, 1), st.integers(200, 4_000)), min_size=1, max_size=80))
@settings(deadline=None, max_examples=60)
def test_any_history_keeps_the_laws(steps: list[tuple[int, float, int]]) -> None:
    """The same laws over histories that hypothesis chooses, with a window of any size."""
    segments: list[SegmentHead] = []
    watermark = 0
    for number, (events, fill, budget) in enumerate(steps, start=1):
        watermark += events
        plan = plan_segments(
            segments,
            compactions=number,
            watermark=watermark,
            new_tokens=events * 10,
            segments_budget=budget,
            window_tokens=budget,
        )
        segments = _apply(plan, segments, number, fill, events * 10)
        _check(segments, plan, number, watermark, budget)


def test_a_plan_without_new_events_only_shrinks() -> None:
    """A smaller budget alone makes segments anew, in place."""
    old = [_made(SegmentJob(from_seq=1, through_seq=9, level=0, depth=1, budget_tokens=500), "a", 500, 900)]
    plan = plan_segments(old, compactions=2, watermark=9, new_tokens=0, segments_budget=400, window_tokens=None)
    assert plan.kept == ()
    assert [(job.from_seq, job.through_seq, job.budget_tokens) for job in plan.jobs] == [(1, 9, 200)]


def test_share_is_an_equal_part_of_the_digits() -> None:
    """S/(⌊log₂ n⌋+1)."""
    assert [segment_share(1_200, n) for n in (1, 2, 3, 4, 7, 8)] == [1_200, 600, 600, 400, 400, 300]
