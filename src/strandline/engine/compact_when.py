"""Let a view be compacted by itself: its triggers stand in its row of due compactions, for every process to find."""

from __future__ import annotations

from dataclasses import replace

from strandline.engine.environment import Environment, check_whole
from strandline.engine.reading import read_view
from strandline.engine.watching import watched
from strandline.errors import InvalidInputError
from strandline.limits import CONTEXT_BUDGET_TOKENS_MIN, TRIGGER_S_MAX, TRIGGER_S_MIN
from strandline.model.due import PRIORITY_MAX, DueCompaction
from strandline.model.triggers import Triggers, Watch
from strandline.ports.occurrences import DueTold
from strandline.rules.triggers import set_triggers


@watched("compact_when")
def compact_when(
    env: Environment, view: str, triggers: Triggers, *, budget: int | None, priority: int
) -> DueCompaction | None:
    """Set the triggers of a view; without any, take those away that it has. Return its row; None: it has none.

    Raises:
        InvalidInputError: an argument that can't be, or a workflow without events; nothing was written.
    """
    _check(triggers, budget, priority)
    wanted = triggers != Triggers()
    with env.write() as tx:
        head, now = tx.log.head(), env.clock.now_us()
        if head.revision == 0:
            raise InvalidInputError(f"{env.scope} holds no event; nothing was written", hint="Append to it first.")
        snapshot = read_view(env, tx, view, budget=0)  # refuses a view that is not there
        there = tx.due.get(view)
        if not wanted and there is None:
            return None
        tokens = (snapshot.summary.tokens if snapshot.summary else 0) + snapshot.tail_tokens
        events = snapshot.revision - snapshot.watermark
        since_us = now if events else None
        watch = Watch(
            triggers=triggers,
            budget=budget,
            priority=priority,
            tokens=tokens,
            events=events,
            since_us=since_us,
            last_us=since_us,
        )
        row = there or DueCompaction(
            view=view,
            revision=head.revision,
            priority=priority,
            budget=budget,
            when_tokens=None,
            strict=False,
            asked_us=now,
            wanted_us=None,
            due_us=None,
        )
        row = set_triggers(row, watch if wanted else None, revision=head.revision, now_us=now)
        if there is None:
            tx.due.add(row)
            tx.log.set_head(replace(head, due_rows=head.due_rows + 1))
        else:
            tx.due.settle(row, fence=there.fence)
    if row.due_us is not None:
        env.emit("due", DueTold(view=view, priority=row.priority, due_us=row.due_us))
    return row


def _check(triggers: Triggers, budget: int | None, priority: int) -> None:
    for name, count in (("tokens", triggers.tokens), ("events", triggers.events)):
        check_whole(name, count)
        if count is not None and count < 1:
            raise InvalidInputError(f"{name} {count} is less than 1")
    for name, seconds in (("age_s", triggers.age_s), ("idle_s", triggers.idle_s)):
        if seconds is None:
            continue
        if isinstance(seconds, bool) or not isinstance(seconds, int | float):
            raise InvalidInputError(f"{name} is a number of seconds, not {seconds!r}")
        if not TRIGGER_S_MIN <= seconds <= TRIGGER_S_MAX:
            raise InvalidInputError(f"{name} {seconds!r} lies outside {TRIGGER_S_MIN:g}..{TRIGGER_S_MAX:g}")
    check_whole("budget", budget)
    if budget is not None and budget < CONTEXT_BUDGET_TOKENS_MIN:
        raise InvalidInputError(f"a budget of {budget} tokens is less than {CONTEXT_BUDGET_TOKENS_MIN}")
    if budget is not None and triggers.tokens is not None and triggers.tokens <= budget:
        raise InvalidInputError(
            f"triggered at {triggers.tokens} tokens, a compaction to {budget} has nothing to do",
            hint="Let `tokens` be clearly above `budget`, so that a compaction is worth it.",
        )
    check_whole("priority", priority)
    if priority is None or not 0 <= priority <= PRIORITY_MAX:
        raise InvalidInputError(f"priority {priority} lies outside 0..{PRIORITY_MAX}, of which {PRIORITY_MAX} is first")
