"""When a view is compacted by itself: what it waits for, and what it has seen since its last run (C7)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Triggers:
    """Whichever comes first makes the compaction of a view due; None: that is no reason."""

    tokens: int | None = None  # of the context: summary and tail
    events: int | None = None  # that came since the last run
    age_s: float | None = None  # since the first of them came
    idle_s: float | None = None  # since the last of them came


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """Triggers, how a compaction is asked for by them, and what the view has seen since its last run.

    `tokens` is an estimate that every run sets right: whoever appends does not read the tail.
    """

    triggers: Triggers
    budget: int | None
    priority: int
    tokens: int = 0  # of the context now
    tokens_after: int = 0  # right after the last run
    events: int = 0
    since_us: int | None = None  # when the first of them came
    last_us: int | None = None  # and the last
    fires_us: int | None = None  # from when the triggers want it; None: they don't yet
