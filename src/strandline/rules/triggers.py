"""When the triggers of a view make its compaction due (C7): decided by whoever appends, in the same transaction.

So no wake-up is lost, and no worker looks through workflows in which nothing happened. While a run goes on, what comes
is only counted: when it ends, the triggers are asked anew. Tokens must have grown by TRIGGER_GROWTH_SHARE since the
last run: a budget that can't be met, or a summarizer that fails, is not tried again at each event.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from strandline.limits import TRIGGER_GROWTH_SHARE
from strandline.model.due import DueCompaction
from strandline.model.triggers import Watch
from strandline.rules.queueing import Wish, ask

_SECOND_US: Final = 1_000_000


def due_from(watch: Watch, now_us: int) -> int | None:
    """Return from when the triggers want a compaction; None: not before more events come."""
    if watch.events == 0 or watch.since_us is None or watch.last_us is None:
        return None
    triggers = watch.triggers
    grown = watch.tokens - watch.tokens_after >= watch.tokens_after * TRIGGER_GROWTH_SHARE
    if triggers.tokens is not None and watch.tokens >= triggers.tokens and grown:
        return now_us
    if triggers.events is not None and watch.events >= triggers.events:
        return now_us
    times = [
        start_us + int(seconds * _SECOND_US)
        for start_us, seconds in ((watch.since_us, triggers.age_s), (watch.last_us, triggers.idle_s))
        if seconds is not None
    ]
    return min(times, default=None)


def saw(row: DueCompaction, *, tokens: int, events: int, revision: int, now_us: int) -> DueCompaction:
    """Return the row after events came that the view reads.

    Args:
        row: of the view, with a watch.
        tokens, events: how many came.
        revision: of the log with them.
        now_us: the time.
    """
    watch = row.watch
    if watch is None or events == 0:
        return row
    seen = replace(
        watch,
        tokens=watch.tokens + tokens,
        events=watch.events + events,
        since_us=now_us if watch.since_us is None else watch.since_us,
        last_us=now_us,
    )
    return _asked(replace(row, watch=seen), revision, now_us)


def ran(row: DueCompaction, *, began: Watch | None, tokens_after: int | None, now_us: int) -> DueCompaction:
    """Return the settled row of a run that came to an end: its triggers begin anew with what came meanwhile.

    Args:
        row: as it was settled; nothing is due by it, or what was asked for meanwhile.
        began: the watch as the run took it.
        tokens_after: of the context as the run left it; None: it left it as it was.
        now_us: the time.
    """
    watch = row.watch
    if watch is None:
        return row
    before = watch if began is None else began
    events, left = watch.events - before.events, before.tokens if tokens_after is None else tokens_after
    anew = replace(
        watch,
        tokens=left + watch.tokens - before.tokens,
        tokens_after=left,
        events=events,
        since_us=watch.last_us if events else None,
        last_us=watch.last_us if events else None,
        fires_us=None,
    )
    return _asked(replace(row, watch=anew), row.revision, now_us)


def set_triggers(row: DueCompaction, watch: Watch | None, *, revision: int, now_us: int) -> DueCompaction:
    """Return the row with other triggers, or with none. What the ones before wanted is wanted no more; what somebody
    asked for is.
    """
    if _own(row):
        row = replace(row, due_us=None, wanted_us=None)
    row = replace(row, watch=watch)
    return row if watch is None else _asked(row, revision, now_us)


def _asked(row: DueCompaction, revision: int, now_us: int) -> DueCompaction:
    """Let the triggers ask, where nobody runs it, nothing failed and nobody asked for it otherwise."""
    watch = row.watch
    if watch is None or row.worker is not None or not (row.due_us is None or _own(row)):
        return row
    fires_us = due_from(watch, now_us)
    row = replace(row, watch=replace(watch, fires_us=fires_us))
    if _own(row):
        return row
    free = replace(row, due_us=None, wanted_us=None)
    if fires_us is None:
        return free
    wish = Wish(
        view=row.view,
        revision=revision,
        priority=watch.priority,
        budget=watch.budget,
        when_tokens=None,
        strict=False,
        wanted_us=fires_us,
    )
    return ask(free, wish, now_us)


def _own(row: DueCompaction) -> bool:
    """Tell whether a row is due because its triggers want it, and for no other reason."""
    watch = row.watch
    if watch is None or watch.fires_us is None or row.worker is not None or row.runs > 0 or row.parked:
        return False
    return row.due_us == row.wanted_us == watch.fires_us
