"""Ask for a compaction in the background: one short transaction that waits for no model."""

from __future__ import annotations

from dataclasses import replace

from strandline.engine.environment import Environment, check_whole
from strandline.engine.reading import find_view
from strandline.engine.watching import watched
from strandline.errors import CorruptRecordError, InvalidInputError, QueueFullError
from strandline.limits import CONTEXT_BUDGET_TOKENS_MIN, DUE_DELAY_S_MAX, DUE_PER_TENANT_MAX
from strandline.model.due import PRIORITY_MAX, DueCompaction
from strandline.model.ids import DEFAULT_VIEW
from strandline.ports import Transaction
from strandline.ports.occurrences import DueTold
from strandline.rules.queueing import Wish, ask


@watched("compact_later")
def compact_later(
    env: Environment,
    view: str,
    *,
    budget: int | None,
    when_tokens: int | None,
    strict: bool,
    delay_s: float,
    priority: int,
) -> DueCompaction:
    """Ask for a compaction of a view; who asked before is answered by the same one.

    Raises:
        QueueFullError: the tenant has DUE_PER_TENANT_MAX due compactions.
        InvalidInputError: an argument that can't be, or a workflow without events.
    """
    _check(budget, when_tokens, delay_s, priority)
    with env.write() as tx:
        head = tx.log.head()
        if head.revision == 0:
            raise InvalidInputError(f"{env.scope} holds no event; nothing was written", hint="Append to it first.")
        find_view(tx, view, str(env.scope))
        now = env.clock.now_us()
        there = tx.due.get(view)
        wish = Wish(
            view=view,
            revision=head.revision,
            priority=priority,
            budget=budget,
            when_tokens=when_tokens,
            strict=bool(strict),
            wanted_us=now + int(delay_s * 1_000_000),
        )
        due = ask(there, wish, now)
        if there is None or there.due_us is None:
            _check_room(env, tx)
        if there is None:
            tx.due.add(due)
            tx.log.set_head(replace(head, due_rows=head.due_rows + 1))
        elif due != there:
            tx.due.settle(due, fence=there.fence)
    env.emit("due", DueTold(view=view, priority=due.priority, due_us=due.due_us))
    return due


def _check(budget: int | None, when_tokens: int | None, delay_s: float, priority: int) -> None:
    for name, value in (("budget", budget), ("when_tokens", when_tokens), ("priority", priority)):
        check_whole(name, value)
    if budget is not None and budget < CONTEXT_BUDGET_TOKENS_MIN:
        raise InvalidInputError(f"a budget of {budget} tokens is less than {CONTEXT_BUDGET_TOKENS_MIN}")
    if when_tokens is not None and when_tokens < 0:
        raise InvalidInputError(f"when_tokens {when_tokens} is less than 0")
    if priority is None or not 0 <= priority <= PRIORITY_MAX:
        raise InvalidInputError(f"priority {priority} lies outside 0..{PRIORITY_MAX}, of which {PRIORITY_MAX} is first")
    if isinstance(delay_s, bool) or not isinstance(delay_s, int | float) or not 0 <= delay_s <= DUE_DELAY_S_MAX:
        raise InvalidInputError(f"delay_s {delay_s!r} lies outside 0..{DUE_DELAY_S_MAX:g}")


def _check_room(env: Environment, tx: Transaction) -> None:
    """Refuse what would be one more than the tenant may have; who asks at the same time may go over it by one each."""
    due = tx.due.open_in_tenant(DUE_PER_TENANT_MAX)
    if due >= DUE_PER_TENANT_MAX:
        raise QueueFullError(tenant=env.scope.tenant, due=due, limit=DUE_PER_TENANT_MAX)


def list_due(env: Environment, view: str = DEFAULT_VIEW) -> list[DueCompaction]:
    """Return the rows of the workflow by view; to a narrow view its own, without how a run failed: that run may have
    read other audiences, and what it may know stands in its cases (I21).

    Raises:
        CorruptRecordError: one is missing or not what was written.
    """
    with env.read() as tx:
        rows = read_due(tx)
        if not find_view(tx, view, str(env.scope)).narrow:
            return rows
        return [replace(row, failure_text="") for row in rows if row.view == view]


def read_due(tx: Transaction) -> list[DueCompaction]:
    """Return every row, and check that none is missing.

    Raises:
        CorruptRecordError: one is missing or not what was written.
    """
    rows, written = tx.due.all(), tx.log.head().due_rows
    if len(rows) != written:
        raise CorruptRecordError(f"{len(rows)} are stored, {written} were written", place="due_compaction")
    return rows
