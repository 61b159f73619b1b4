"""A source that is larger than the summarizer's window is shown in parts (C10).

Each part is drafted from raw events and the drafts are put one behind the other, so the depth stays 1 (I12). What is
split are seqs and sizes: of the events themselves no more than one part need be held.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from strandline.errors import ContextOverflowError
from strandline.limits import PARTITIONS_MAX


class Part(NamedTuple):
    """A closed range of seqs that is shown at once; empty where the reader may see none of the events."""

    from_seq: int
    through_seq: int
    tokens: int


def partition(sizes: Iterable[tuple[int, int]], *, prior_tokens: int, window_tokens: int | None) -> list[Part]:
    """Split events, given as (seq, tokens), into consecutive parts that fit the window; there is at least one part.

    The first has the prior texts beside it.

    Raises:
        ContextOverflowError: one event, or the prior texts, exceed the window alone, or there are too many parts.
    """
    parts: list[Part] = []
    first = last = tokens = 0
    beside = prior_tokens
    total = 0
    for seq, size in sizes:
        total += size
        if first and window_tokens is not None and beside + tokens + size > window_tokens:
            parts.append(Part(first, last, tokens))
            first = tokens = beside = 0
        first, last = first or seq, seq
        tokens += size
        if window_tokens is not None and beside + tokens > window_tokens:
            raise ContextOverflowError(
                f"event {seq}, with what has to stand beside it, exceeds the summarizer's window",
                needed=beside + tokens,
                budget=window_tokens,
            )
    parts.append(Part(first, last, tokens))
    if window_tokens is not None and len(parts) > PARTITIONS_MAX:
        raise ContextOverflowError(
            f"the source needs {len(parts)} parts; at most {PARTITIONS_MAX} are made",
            needed=total,
            budget=window_tokens * PARTITIONS_MAX,
        )
    return parts


def halved_window(parts: Sequence[Part], halvings: int) -> int:
    """Return the window in which the largest of the parts comes in pieces of half the size, halved so many times."""
    return max(1, -(-max(part.tokens for part in parts) >> halvings))


def part_budget(parts: Sequence[Part], number: int, budget_tokens: int, *, spent_tokens: int, joint_tokens: int) -> int:
    """Return what the draft of part `number` may take of a segment's budget.

    By then the drafts together may take the share that the parts so far have of the source, the joints between all of
    them paid first: what a draft leaves, or has no line for, is the next one's.

    Args:
        parts: all parts of the segment's source.
        number: from 0.
        budget_tokens: the segment's.
        spent_tokens: tokens of the drafts before.
        joint_tokens: what stands between two drafts.
    """
    left = max(0, budget_tokens - joint_tokens * (len(parts) - 1))
    sizes = [part.tokens or 1 for part in parts]
    return max(0, left * sum(sizes[: number + 1]) // sum(sizes) - spent_tokens)
