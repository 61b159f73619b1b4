"""Which segments a compaction keeps, merges and makes: a binary counter (I12).

The segments of a summary are like the digits of the number of its compactions: a new one has level 0, and while the
last one has the same level the two become one of the next level. After N compactions a level is at most ⌊log₂ N⌋, and
so is the number of merges that an event can have been through; a cascade is one merge. A merge that re-derives from raw
events starts at depth 1 again.

With S tokens for all segments, one made by compaction n gets at most S/(⌊log₂ n⌋+1): there are at most that many, and
those that remain from before the last power of two have been merged, so the sum never exceeds S.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from strandline.model.candidate import SegmentJob
from strandline.model.segment import SegmentHead


@dataclass(frozen=True, slots=True, kw_only=True)
class MergePlan:
    """What stays byte-identical, and what is made, both by range."""

    kept: tuple[SegmentHead, ...]
    jobs: tuple[SegmentJob, ...]


def depth_bound(compactions: int) -> int:
    """Return ⌊log₂ N⌋ + 1, the most lossy passes after N compactions (I12). N ≥ 1."""
    return compactions.bit_length()


def segment_share(segments_budget: int, compactions: int) -> int:
    """Return the most tokens that a segment made by this compaction of its chain may have."""
    return segments_budget // depth_bound(compactions)


def plan_segments(
    segments: Sequence[SegmentHead],
    *,
    compactions: int,
    watermark: int,
    new_tokens: int,
    segments_budget: int,
    window_tokens: int | None,
) -> MergePlan:
    """Decide what compaction number `compactions` of a chain does with the segments of its base.

    Args:
        segments: those of the base summary, oldest first.
        compactions: the number of this compaction on its chain, from 1.
        watermark: the last event to be covered; the base's own when no event is added.
        new_tokens: tokens of the events that are added.
        segments_budget: tokens for all segments together (S).
        window_tokens: the most that the summarizer can be shown; None: no bound.
    """
    share = segment_share(segments_budget, compactions)
    kept = list(segments)
    jobs = []
    covered = kept[-1].through_seq if kept else 0
    if watermark > covered:
        level = 0
        merged: list[SegmentHead] = []
        while kept and kept[-1].level == level:
            merged.insert(0, kept.pop())
            level += 1
        raw_tokens = new_tokens + sum(segment.source_tokens for segment in merged)
        # Older segments stand in for their events only where they leave the window room for the new ones; elsewhere the
        # raw events are shown in parts, and the depth stays 1.
        stand_in = sum(segment.tokens for segment in merged) * 2 <= (window_tokens or 0)
        fits = window_tokens is None or raw_tokens <= window_tokens or not stand_in
        jobs.append(
            SegmentJob(
                from_seq=merged[0].from_seq if merged else covered + 1,
                through_seq=watermark,
                level=level,
                depth=1 if fits or not merged else 1 + max(segment.depth for segment in merged),
                budget_tokens=share,
                from_segments=() if fits else tuple(segment.segment_id for segment in merged),
            )
        )
    # S may have shrunk since the kept ones were made: those over the share are made anew, from raw, largest first.
    while sum(s.tokens for s in kept) + sum(job.budget_tokens for job in jobs) > segments_budget:
        largest = max(kept, key=lambda segment: (segment.tokens, segment.from_seq))
        kept.remove(largest)
        jobs.append(
            SegmentJob(
                from_seq=largest.from_seq,
                through_seq=largest.through_seq,
                level=largest.level,
                depth=1,
                budget_tokens=share,
            )
        )
    return MergePlan(kept=tuple(kept), jobs=tuple(sorted(jobs, key=lambda job: job.from_seq)))
