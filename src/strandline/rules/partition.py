"""A source that is larger than the summarizer's window is shown in parts (C10).

Each part is drafted from raw events and the drafts are put one behind the other, so the depth stays 1 (I12).
"""

from __future__ import annotations

from collections.abc import Sequence

from strandline.errors import ContextOverflowError
from strandline.limits import PARTITIONS_MAX
from strandline.model.event import SourceEvent


def partition(
    events: Sequence[SourceEvent], *, prior_tokens: int, window_tokens: int | None
) -> list[Sequence[SourceEvent]]:
    """Split events into consecutive parts that fit the window; the first has the prior texts beside it.

    Raises:
        ContextOverflowError: one event, or the prior texts, exceed the window alone, or there are too many parts.
    """
    if window_tokens is None:
        return [events]
    parts: list[list[SourceEvent]] = [[]]
    used = prior_tokens
    for event in events:
        if parts[-1] and used + event.tokens > window_tokens:
            parts.append([])
            used = 0
        used += event.tokens
        if used > window_tokens:
            raise ContextOverflowError(
                f"event {event.seq}, with what has to stand beside it, exceeds the summarizer's window",
                needed=used,
                budget=window_tokens,
            )
        parts[-1].append(event)
    if len(parts) > PARTITIONS_MAX:
        raise ContextOverflowError(
            f"the source needs {len(parts)} parts; at most {PARTITIONS_MAX} are made",
            needed=sum(event.tokens for event in events),
            budget=window_tokens * PARTITIONS_MAX,
        )
    return list(parts)


def part_budgets(parts: Sequence[Sequence[SourceEvent]], budget_tokens: int, joint_tokens: int) -> list[int]:
    """Share a segment's budget among its parts by their tokens; the joints between them are paid first."""
    left = max(0, budget_tokens - joint_tokens * (len(parts) - 1))
    sizes = [sum(event.tokens for event in part) or 1 for part in parts]
    return [left * size // sum(sizes) for size in sizes]
