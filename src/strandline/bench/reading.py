"""Reads: the newest events, the context, the decision of a recovery; and the compaction of a tail."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

import strandline
from strandline.bench import corpus
from strandline.bench.figures import CPU_TIME_OF_THIS, SPEED_OF_OURS, Figure, Line, Mark, compare, single
from strandline.bench.raw import PLAIN, Raw
from strandline.bench.rounds import Prepare, Timing, contest, cpus, timed, walls
from strandline.bench.stage import Stage
from strandline.bench.writing import OURS

LAST_EVENTS = 200
LAST_OF_EVENTS = 100_000  # the size for which the mark is set
LAST_CALLS = 20
CALLS = 30
FLAT_FROM_EVENTS = 10_000
COMPACTIONS = 3  # the fifth to the seventh of a workflow: they read the new events, not the whole log
COMPACTED_EVENTS = 999  # whole turns

LAST_MARK = Mark(at_least=0.25)  # at most four times the time of reading the bytes
CONTEXT_MARK = Mark(at_most=1.0, of="value")
FLAT_MARK = Mark(at_least=0.8, at_most=1.2)


def last(stage: Stage) -> list[Figure]:
    """Measure reading the newest events, decoded and checked, against reading the bytes of their bodies."""
    figures = []
    for size in stage.sizes:
        if size < LAST_EVENTS:
            continue
        stage.say(f"the last {LAST_EVENTS} of {size:,} events")
        raw = Raw(stage.raw_corpus(size, keyed=False))
        with strandline.open(stage.corpus(size)) as db:
            wf = corpus.workflow(db)
            newest = wf.basis().revision
            competitors: dict[str, Prepare] = {
                OURS: lambda wf=wf, newest=newest: lambda: wf.events(newest - LAST_EVENTS + 1, newest),  # type: ignore[misc]
                PLAIN: lambda raw=raw: lambda: raw.last(LAST_EVENTS),  # type: ignore[misc]
            }
            taken = contest(competitors, stage.runs, LAST_CALLS)
            note = corpus.density(wf.events(newest - LAST_EVENTS + 1, newest))
        raw.close()
        line = Line(section="last", what=f"read the last {LAST_EVENTS} events", unit="µs", events=size)
        marks = {PLAIN: LAST_MARK} if size == LAST_OF_EVENTS else {}
        figures += compare(line, walls(taken, 1e6), SPEED_OF_OURS, marks=marks, notes={OURS: f"checked; {note}"})
    return figures


def context(stage: Stage) -> list[Figure]:
    """Measure the working context at all sizes in turn."""
    return _across(
        stage, "context", "read the context", lambda wf: lambda: wf.context(corpus.CONTEXT_BUDGET_TOKENS), CONTEXT_MARK
    )


def recover(stage: Stage) -> list[Figure]:
    """Measure the decision of a recovery at all sizes in turn: choice of the checkpoint, checks, context."""
    return _across(
        stage,
        "recover",
        "decide a recovery (dry run)",
        lambda wf: lambda: wf.recover(budget=corpus.CONTEXT_BUDGET_TOKENS, dry_run=True),
        None,
    )


def _across(
    stage: Stage,
    section: str,
    what: str,
    verb: Callable[[strandline.Workflow], Callable[[], object]],
    bound: Mark | None,
) -> list[Figure]:
    stores = {f"{size:,} events": stage.corpus(size) for size in stage.sizes}
    stage.say(what)
    notes = {}
    with ExitStack() as stack:
        flows = {
            name: corpus.workflow(stack.enter_context(strandline.open(path, create=False)))
            for name, path in stores.items()
        }
        taken = contest({name: lambda wf=wf: verb(wf) for name, wf in flows.items()}, stage.runs, CALLS)  # type: ignore[misc]
        for name, wf in flows.items():
            notes[name] = _described(wf)
    figures = []
    base = next((size for size in sorted(stage.sizes) if size >= FLAT_FROM_EVENTS), None)
    for size in stage.sizes:
        name = f"{size:,} events"
        line = Line(section=section, what=f"{what}, p50", unit="ms", events=size)
        figures.append(single(line, OURS, walls(taken, 1e3)[name], bound, notes[name]))
        figures.append(
            single(
                Line(section=section, what="of it processor time", unit="ms", events=size),
                OURS,
                cpus(taken, 1e3)[name],
            )
        )
    return [*figures, *_flatness(section, taken, base, stage)]


def _flatness(section: str, taken: dict[str, list[Timing]], base: int | None, stage: Stage) -> list[Figure]:
    larger = [size for size in stage.sizes if base is not None and size >= base]
    if len(larger) < 2:
        return []
    names = [f"{size:,} events" for size in sorted(larger)]
    line = Line(section=section, what=f"flat from {base:,} events on: processor time", unit="ms")
    values = cpus({name: taken[name] for name in names}, 1e3)
    return compare(line, values, CPU_TIME_OF_THIS, marks=dict.fromkeys(names[1:], FLAT_MARK))


def _described(wf: strandline.Workflow) -> str:
    """Say how large the context is that was read."""
    ctx = wf.context(corpus.CONTEXT_BUDGET_TOKENS)
    tail = [part for part in ctx.parts if part.event]
    tokens = sum(part.tokens for part in tail)
    return f"{ctx.tokens:,} tokens, of them the tail's {len(tail)} events {tokens:,}; generation {ctx.generation}"


def compact(stage: Stage) -> list[Figure]:
    """Measure compactions of a tail in a workflow of each size."""
    figures = []
    for size in stage.sizes:
        path = stage.corpus(size)
        stage.say(f"compactions of {COMPACTED_EVENTS} new events at {size:,}")
        timings, bodies = [], []
        with strandline.open(path, create=False) as db:
            wf = corpus.workflow(db)
            for _ in range(COMPACTIONS):
                first = corpus.free(wf)
                wf.append(corpus.events(first, COMPACTED_EVENTS))
                bodies.append(sum(map(len, corpus.bodies(first, COMPACTED_EVENTS))))
                timings.append(timed(lambda wf=wf: wf.compact(corpus.COMPACT_BUDGET_TOKENS)))  # type: ignore[misc]
        line = Line(section="compact", what=f"compact {COMPACTED_EVENTS} new events", unit="ms", events=size)
        pace = [size_bytes / 1e6 / timing.cpu_s for size_bytes, timing in zip(bodies, timings, strict=True)]
        figures += [
            single(line, OURS, [timing.wall_s * 1e3 for timing in timings]),
            single(Line(section="compact", what="bodies per processor second", unit="MB/s", events=size), OURS, pace),
        ]
    return figures
