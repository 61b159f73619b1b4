"""`strandline worker`: run what is due in the background until it is told to stop; and `compact-when`, which lets a
view be due by itself.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from strandline.cli.command import Answer, Budget, Target, number
from strandline.cli.due import why_not
from strandline.cli.failures import CORRUPT, REJECTED, UNRECONCILED, describe
from strandline.cli.output import count, plain, tell, tell_line
from strandline.cli.summarizer import DEFAULT, Chosen, NoFallback, summarizer_of
from strandline.limits import SUMMARIZER_DEADLINE_S, WORKER_THREADS_MAX
from strandline.model.due import PRIORITY_MAX, PRIORITY_USUAL

if TYPE_CHECKING:
    from strandline import DueKey, DueRun, Worker

Threads = Annotated[
    int, typer.Option(metavar="N", parser=number(1, WORKER_THREADS_MAX), help="Compactions that run at once.")
]
For = Annotated[float | None, typer.Option("--for", metavar="SECONDS", help="Begin no run after so many seconds.")]
Once = Annotated[bool, typer.Option("--once", help="End when nothing is due now.")]
Deadline = Annotated[float, typer.Option("--deadline", metavar="SECONDS", help="For one draft.")]
Tokens = Annotated[int | None, typer.Option(metavar="N", parser=number(1), help="As soon as the context has so many.")]
Events = Annotated[int | None, typer.Option(metavar="N", parser=number(1), help="As soon as so many events came.")]
Age = Annotated[float | None, typer.Option("--age", metavar="SECONDS", help="So long after the first of them came.")]
Idle = Annotated[float | None, typer.Option("--idle", metavar="SECONDS", help="So long after the last of them came.")]
Off = Annotated[bool, typer.Option("--off", help="No more.")]
Priority = Annotated[int, typer.Option(metavar="N", parser=number(0, PRIORITY_MAX), help="0 to 9, 9 is first.")]
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def worker(
    target: Target,
    summarizer: Chosen = DEFAULT,
    threads: Threads = 1,
    for_s: For = None,
    once: Once = False,
    deadline_s: Deadline = SUMMARIZER_DEADLINE_S,
    no_fallback: NoFallback = False,
) -> Answer:
    """Run what is due in the background, of all tenants, until SIGTERM or Ctrl-C: then the runs in hand are finished.

    A line on stderr tells of each run, with --json an object. Several may run on one store. A second signal ends it at
    once, and what it had in hand is run again when its lease ends. The exit code is that of run-due.
    """
    with closing(target.open_store()) as db:
        made = db.worker(
            summarizer_of(summarizer),
            threads=threads,
            deadline_s=deadline_s,
            fallback=not no_fallback,
            told=lambda key, run: _tell(target, key, run),
        )
        with _stopped_by_signals(made):
            results = made.run(once=once, for_s=for_s)
    return _ended(target, results)


@contextmanager
def _stopped_by_signals(made: Worker) -> Iterator[None]:
    """Let the first signal stop the worker; the second one does what it did before."""

    def stop(caught: int, _: FrameType | None) -> None:
        made.stop()
        restore()
        tell("note", f"{signal.Signals(caught).name}: the runs in hand are finished; once more ends at once")

    before = {each: signal.signal(each, stop) for each in _SIGNALS}

    def restore() -> None:
        for each, handler in before.items():
            signal.signal(each, handler)

    try:
        yield
    finally:
        restore()


def _tell(target: Target, key: DueKey | None, run: DueRun | BaseException) -> None:
    where = {"tenant": key.tenant, "workflow": key.workflow, "view": key.view} if key is not None else {}
    said: dict[str, object]
    if isinstance(run, BaseException):
        said, what = {"result": "error", "error": describe(run)}, f"error: {type(run).__name__}: {run}"
    else:
        outcome = run.outcome
        said = {
            "result": run.result.value,
            "outcome": outcome.outcome.value if outcome else None,
            "generation": outcome.generation if outcome else None,
            "duration_ms": outcome.duration_ms if outcome else None,
            "runs": run.runs,
            "due_us": run.due_us,
            "case_id": run.case_id,
            "reason": run.reason,
        }
        done = f", generation {outcome.generation} in {outcome.duration_ms:,.0f} ms" if outcome else ""
        what = f"{run.result.value}{done}{f': {run.reason}' if run.reason else ''}"
    if target.as_json:
        tell_line({"event": "due_run", **where, **said})
    else:
        tell(str(key) if key is not None else "store", what, "green" if said["result"] == "done" else "yellow")


def _ended(target: Target, results: Mapping[str, int]) -> Answer:
    ran = sum(results.values())
    told = ", ".join(f"{number:,} {result}" for result, number in sorted(results.items()))
    worst = (("error", CORRUPT), ("failed", REJECTED), ("parked", UNRECONCILED))
    code = next((code for result, code in worst if results.get(result)), 0)
    error: dict[str, object] = {
        "type": "DueRun",
        "message": f"of {count(ran, 'run')} not all came to an end: {told}",
        "hint": why_not(target, ()),
    }
    return Answer(
        value={"ran": ran, "results": dict(results)},
        heading=count(ran, "run") + (f": {told}" if told else ""),
        error=error if code else {},
        code=code,
    )


def compact_when(
    target: Target,
    tokens: Tokens = None,
    events: Events = None,
    age_s: Age = None,
    idle_s: Idle = None,
    budget: Budget = None,
    priority: Priority = PRIORITY_USUAL,
    off: Off = False,
) -> Answer:
    """Let a view be compacted in the background by itself from now on, whichever comes first; a worker runs it.

    Set again, it takes the place of what was set.
    """
    reasons = (("tokens", tokens), ("events", events), ("age", age_s), ("idle", idle_s))
    if off == any(reason is not None for _, reason in reasons):
        raise typer.BadParameter("name at least one reason, or --off alone", param_hint="--tokens / --events / --off")
    with target.open() as workflow:
        row = workflow.compact_when(
            tokens=tokens, events=events, age_s=age_s, idle_s=idle_s, budget=budget, priority=priority
        )
    watch = row.watch if row is not None else None
    return Answer(
        value={"due": plain(row)},
        heading="compacted by itself" if watch else "compacted when it is asked for",
        facts=[
            *reasons,
            ("context", f"about {count(watch.tokens, 'token')}" if watch else ""),
        ],
        hint=f"`{Target(store=target.store).command('worker')}` runs it when it is due." if watch else "",
    )
