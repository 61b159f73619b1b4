"""`strandline due` and `strandline run-due`: what is to be compacted in the background, and one pass that does it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from contextlib import closing
from typing import TYPE_CHECKING, Annotated, Final

import typer

from strandline.cli.command import Answer, Target, number
from strandline.cli.failures import CORRUPT, REJECTED, UNRECONCILED, describe
from strandline.cli.output import count, fitted, pick, plain
from strandline.cli.progress import progress
from strandline.cli.summarizer import DEFAULT, Chosen, NoFallback, summarizer_of
from strandline.cli.verify import tenant_of
from strandline.limits import SWEEP_ROWS_MAX
from strandline.system import SystemClock

if TYPE_CHECKING:
    from strandline import DueCompaction, DueKey, Strandline
    from strandline.model.cooldown import Cooling

All = Annotated[bool, typer.Option("--all", help="Also those of which nothing is due.")]
Limit = Annotated[
    int, typer.Option(metavar="N", parser=number(1, SWEEP_ROWS_MAX), help="Run so many at most.", show_default=True)
]
Once = Annotated[bool, typer.Option("--once", help="Look once for what is due; not again until nothing is.")]
_HEAD: Final = ("workflow", "view", "state", "due", "priority", "runs", "worker", "failure")
_RUN_HEAD: Final = ("tenant", "workflow", "view", "result", "detail")
_UNITS: Final = (("h", 3_600), ("min", 60), ("s", 1))


def due(target: Target, settled: All = False) -> Answer:
    """Print the compactions that are due in the background: of one workflow, or of all of the tenant's.

    None is no failure: the exit code is 0, and `due` of --json is empty.
    """
    now_us = SystemClock().now_us()
    found, cooling = _rows(target)
    shown = [(name, row) for name, row in found if settled or row.due_us is not None]
    shown.sort(key=lambda at: (at[1].due_us is None, -at[1].priority, at[1].due_us or 0, at[0]))
    rows = [_row(name, row, now_us) for name, row in shown]
    value = [{"workflow": name, **_plain(row), "state": _state(row, now_us)} for name, row in shown]
    waiting = sum(row.offered(now_us) for _, row in shown)
    whose = "" if target.workflow is not None else f"tenant {target.tenant!r}: "
    asked = sum(row.due_us is not None for _, row in shown)
    what = f"{count(asked, 'due compaction')}, {waiting:,} of them now" if asked else "nothing is due"
    return Answer(
        value={"tenant": target.tenant, "due": value, "cooldowns": plain(cooling)},
        facts=[(f"summarizer {down.summarizer}", _left_alone(down, now_us)) for down in cooling],
        heading=f"{whose}{what}",
        text=fitted(_HEAD, rows, cut={"failure": 30, "worker": 16, "workflow": 20}, spare=["priority", "view"]),
        hint=f"`{_on(target, 'run-due')}` runs what is due now." if waiting else "",
    )


def _rows(target: Target) -> tuple[list[tuple[str, DueCompaction]], list[Cooling]]:
    found: list[tuple[str, DueCompaction]] = []
    if target.workflow is not None:
        with target.open() as workflow:
            found = [(workflow.name, row) for row in workflow.due()]
    with target.open_store() as db:
        tenant = tenant_of(db, target) if target.tenant_named else db.tenant(target.tenant)
        for name in tenant.workflows() if target.workflow is None else ():
            found += [(name, row) for row in tenant.workflow(name).due()]
        return found, tenant.cooldowns()


def _left_alone(down: Cooling, now_us: int) -> str:
    return f"left alone for {_span(down.until_us - now_us)}, after {count(down.failures, 'failure')} in a row"


def why_not(target: Target, tenants: Collection[str]) -> str:
    """Return the commands that tell why compactions did not come to an end, of the tenant that is the only one."""
    of = Target(store=target.store, tenant=next(iter(tenants)) if len(tenants) == 1 else "TENANT")
    return f"`{of.command('due --all')}` tells why, `{of.command('cases')}` what is asked."


def _on(target: Target, words: str) -> str:
    """Return a command line on the store, as it can be typed."""
    return Target(store=target.store).command(words)


def _plain(row: DueCompaction) -> dict[str, object]:
    value = plain(row)
    assert isinstance(value, dict)
    return value


def _state(row: DueCompaction, now_us: int) -> str:
    """Return in a word where it stands."""
    if row.due_us is None:
        return "failed" if row.failure_text else "done"
    if row.leased(now_us):
        return "running"
    if row.parked:
        return "parked"
    return "due" if row.offered(now_us) else "waiting"


def _row(name: str, row: DueCompaction, now_us: int) -> tuple[object, ...]:
    state = _state(row, now_us)
    due_in = "" if row.due_us is None else "now" if state == "due" else f"in {_span(row.due_us - now_us)}"
    failure = f"{row.failure}: {row.failure_text}" if row.failure else row.failure_text
    return (name, row.view, state, due_in, row.priority, row.runs, row.worker, failure)


def _span(micros: int) -> str:
    """Return a time to come, in the unit that fits it."""
    seconds = max(0, micros) / 1_000_000
    unit, size = next((unit, size) for unit, size in _UNITS if seconds >= 2 * size or size == 1)
    return f"{seconds / size:.0f} {unit}"


def run_due(
    target: Target,
    limit: Limit = SWEEP_ROWS_MAX,
    once: Once = False,
    summarizer: Chosen = DEFAULT,
    no_fallback: NoFallback = False,
) -> Answer:
    """Run what is due in the background, of all tenants, and end: for cron. Several may run at the same time.

    The exit code tells of the worst: 8 a row is damaged, 5 one failed, 3 one waits for the answer of a case, else 0.
    """
    drafting = summarizer_of(summarizer)
    with closing(target.open_store()) as db:
        runs = _run_all(db, limit, once, drafting, not no_fallback)
    results = Counter(str(run["result"]) for run in runs)
    rows = [(*(run[name] for name in ("tenant", "workflow", "view", "result")), run["reason"]) for run in runs]
    told = ", ".join(f"{number:,} {result}" for result, number in sorted(results.items()))
    code = CORRUPT if results["error"] else REJECTED if results["failed"] else UNRECONCILED if results["parked"] else 0
    error: dict[str, object] = {
        "type": "DueRun",
        "message": f"of {count(len(runs), 'due compaction')} not all came to an end: {told}",
        "hint": why_not(target, {str(run["tenant"]) for run in runs if run["result"] in ("error", "failed", "parked")}),
    }
    return Answer(
        value={"ran": len(runs), "results": dict(results), "runs": runs},
        heading=f"{count(len(runs), 'due compaction')} run" + (f": {told}" if runs else ""),
        text=fitted(_RUN_HEAD, rows, cut={"detail": 40, "workflow": 20, "tenant": 16}, spare=["view"]),
        error=error if code else {},
        code=code,
    )


def _run_all(db: Strandline, limit: int, once: bool, summarizer: object, fallback: bool) -> list[dict[str, object]]:
    """Sweep and run, until nothing new is due or so many were run."""
    runs: list[dict[str, object]] = []
    tried: set[DueKey] = set()
    with progress("compacting what is due") as tell:
        while len(runs) < limit:
            keys = [key for key in db.sweep(min(limit, SWEEP_ROWS_MAX)) if key not in tried][: limit - len(runs)]
            for key in keys:
                tried.add(key)
                runs.append(_run_one(db, key, summarizer, fallback))
                tell(len(runs), len(tried) if once else 0)
            if once or not keys:
                break
    return runs


def _run_one(db: Strandline, key: DueKey, summarizer: object, fallback: bool) -> dict[str, object]:
    """Run one; a row that is damaged does not keep the others from being run."""
    from strandline import CorruptRecordError

    where: dict[str, object] = {"tenant": key.tenant, "workflow": key.workflow, "view": key.view}
    try:
        ran = db.run_due(key, summarizer, fallback=fallback)
    except CorruptRecordError as error:
        return {**where, "result": "error", "reason": str(error), "error": describe(error)}
    ended = None if ran.outcome is None else ran.outcome.outcome.value
    reason = ran.reason or (f"generation {ran.outcome.generation}" if ran.outcome is not None else "")
    return {**where, **pick(ran, "result due_us runs case_id"), "reason": reason, "outcome": ended}
