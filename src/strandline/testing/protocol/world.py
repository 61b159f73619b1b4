"""The world that a search walks: one store, a few processes on it, and everything that may happen next.

A process holds what a real one has in its memory between two transactions: a plan, an attempt and its token, a context
that it read. It dies at any moment and is idle again; the store stays as it is. Whatever is one transaction, and needs
nothing remembered (append, recover, revert, rewind, a case and its answer), is done by anybody at any moment.

Processes are kept sorted. That is the only symmetry reduction, and it is sound: no rule and no law asks which process
it is, so two worlds that differ in the order of their processes have the same futures but for that order. What an
attempt left that is over, and that no process holds, is dropped: no rule reads it again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from strandline.testing.protocol.guards import ALL_ON, Guards
from strandline.testing.protocol.memory import ACTIVATED, VALIDATED, Attempt, Memory, Plan, View, through, watermark_of
from strandline.testing.protocol.rules import apply, find, may_stand
from strandline.testing.protocol.steps import (
    Activate,
    Answer,
    Append,
    Claim,
    Expire,
    GiveBack,
    Keep,
    KeepElsewhere,
    Recover,
    Report,
    Revert,
    Rewind,
    Step,
    Store,
)


class Context(NamedTuple):
    """What an agent read, and works from."""

    view: int
    generation: int
    summary: int
    revision: int
    covers: int
    tail: int
    read_at: int  # lineage_seq that was the newest
    past: int


class Process(NamedTuple):
    """How far one process has come. It is all gone when the process dies."""

    phase: str = "idle"
    plan: Plan | None = None
    number: int = 0
    fence: int = 0
    context: Context | None = None


class World(NamedTuple):
    """One state of the search."""

    memory: Memory
    processes: tuple[Process, ...]


class Bounds(NamedTuple):
    """How much may happen: what makes a search end."""

    processes: int = 1
    views: int = 1
    events: int = 2
    fences: int = 2  # claims come to an end when a view has handed out so many tokens
    calls: bool = False
    partial: bool = False  # a summarizer may return half a draft
    lost: bool = False  # the answer to an activation may get lost
    background: bool = False  # claims may wait for a lease that runs
    checkpoints: int = 0
    free: bool = False  # checkpoints may be context-free
    foreign: int = 0  # checkpoints of another saver
    recoveries: int = 0
    needs: bool = False  # a recovery may need a reference that an event holds
    reverts: int = 0
    rewinds: int = 0
    reports: int = 0  # cases that a person may open


class Happening(NamedTuple):
    """What led from one world to the next: who did what, and what came of it."""

    by: Process | None  # None: anybody
    what: Step | str
    refused: str = ""
    lost: bool = False  # the answer


IDLE: Final = Process()
OWN, FOREIGN = 0, 1  # names of checkpoints: a saver has one of its own
LOOK, READ, CRASH = "plans", "reads a context", "dies"
READ_POINTER, READ_TAIL = "reads the pointer", "reads the tail"
TOLD_LANDED, TOLD_FAILED = "says that it is active", "says that it failed"

Next = tuple[Happening, World]


def first_world(bounds: Bounds) -> World:
    """Return the world before anything happened."""
    return World(Memory(views=(View(),) * bounds.views), (IDLE,) * bounds.processes)


def successors(world: World, bounds: Bounds, guards: Guards = ALL_ON) -> Iterator[Next]:
    """Yield all that may happen next, each with the world that it leads to."""
    memory, processes = world
    for step in _anybody(memory, bounds):
        after = apply(memory, step, guards)
        if not isinstance(after, str):
            yield Happening(None, step), _world(after, processes, guards)
    seen = None
    for place, process in enumerate(processes):
        if process == seen:  # the one before it is in the same place: what this one may do is the same
            continue
        seen = process
        rest = (*processes[:place], *processes[place + 1 :])
        if process is not IDLE and process != IDLE:
            yield Happening(process, CRASH), _world(memory, (*rest, IDLE), guards)
        for happening, after, then in _does(memory, process, bounds, guards):
            yield happening, _world(after, (*rest, then), guards)


def _world(memory: Memory, processes: tuple[Process, ...], guards: Guards) -> World:
    """Return a world in its normal form."""
    if memory.attempts:
        held = {(one.number, one.plan.view) for one in processes if one.plan is not None}
        kept = tuple(one for one in memory.attempts if _matters(memory, one, held, guards))
        if len(kept) != len(memory.attempts):
            memory = memory._replace(attempts=kept)
    return World(memory, tuple(sorted(processes)))


def _matters(memory: Memory, attempt: Attempt, held: set[tuple[int, int]], guards: Guards) -> bool:
    """Tell whether anything can ever ask for an attempt: a process that holds it, or a claim that takes it over."""
    plan, number = attempt.plan, attempt.number
    view = memory.views[plan.view]
    if (number, plan.view) in held or view.holder == number:
        return True
    return attempt.state == VALIDATED and (plan.generation == view.generation or not guards.base_at_claim)


# ---------------------------------------------------------------------------------------------- anybody


def _anybody(memory: Memory, bounds: Bounds) -> Iterator[Step]:
    revision = memory.revision
    if revision < bounds.events:
        yield Append(revision + 1)
        if bounds.calls:
            yield Append(revision + 1, is_call=True)
            yield from (Append(revision + 1, answers=call) for call, result in memory.calls if not result)
    done = sum(not one.is_rewind for one in memory.recoveries)
    for number, view in enumerate(memory.views):
        if bounds.background and view.leased:
            yield Expire(number)
        if done < bounds.recoveries and revision:
            yield Recover(OWN, number)
            if bounds.foreign:
                yield Recover(FOREIGN, number)
            if bounds.needs and view.fence < bounds.fences:  # a refusal raises the fence, too
                yield from (Recover(OWN, number, seq) for seq in _events(memory.live))
        if sum(move.kind == "revert" for move in memory.moves) < bounds.reverts:
            yield from (Revert(number, generation) for generation in range(view.generation))
        if memory.asked < bounds.reports and view.summary:
            yield Report(memory.asked + 1, number, view.summary)
    if sum(move.kind == "rewind" and move.view == 0 for move in memory.moves) < bounds.rewinds:
        yield from (Rewind(to) for to in (0, *_events(memory.live)) if memory.live & ~through(to))
        yield from (Rewind(0, made.stamp) for made in memory.checkpoints if not made.foreign)
    for case in memory.cases:
        yield Answer(case.name, pins=case.missing > 0)


def _events(events: int) -> Iterator[int]:
    return (seq for seq in range(1, events.bit_length()) if events >> seq & 1)


# ---------------------------------------------------------------------------------------------- one process


def _does(
    memory: Memory, process: Process, bounds: Bounds, guards: Guards
) -> Iterator[tuple[Happening, Memory, Process]]:
    """Yield what one process may do next: what happened, and memory and process afterwards."""
    if process.phase == "idle":
        yield from _begins(memory, process, bounds, guards)
    elif process.phase == "planned":
        yield from _claims(memory, process, bounds, guards)
    elif process.phase == "drafting":
        yield from _stores(memory, process, bounds, guards)
    elif process.phase == "stored":
        yield from _activates(memory, process, bounds, guards)
    elif process.phase == "unsure":
        yield from _asks(memory, process, guards)
    elif process.phase == "pointer":
        assert process.context is not None
        tail = memory.live & ~through(watermark_of(memory, process.context.summary))
        read = process.context._replace(tail=tail, revision=memory.revision)
        yield Happening(process, READ_TAIL), memory, Process("context", context=read)
    elif process.phase == "context":
        yield from _keeps(memory, process, bounds, guards)


def _begins(
    memory: Memory, process: Process, bounds: Bounds, guards: Guards
) -> Iterator[tuple[Happening, Memory, Process]]:
    for number, view in enumerate(memory.views):
        if view.fence < bounds.fences:
            for plan in _plans(memory, number, view, guards):
                yield Happening(process, LOOK), memory, Process("planned", plan)
        if len(memory.checkpoints) >= bounds.checkpoints + bounds.foreign and guards.snapshot:
            continue
        summary = memory.summaries[view.summary]
        context = Context(
            view=number,
            generation=view.generation,
            summary=view.summary,
            revision=memory.revision,
            covers=summary.covers if summary is not None else 0,
            tail=memory.live & ~through(watermark_of(memory, view.summary)),
            read_at=memory.lineage,
            past=memory.live.bit_length() - 1 if memory.live else 0,
        )
        if guards.snapshot:
            yield Happening(process, READ), memory, Process("context", context=context)
        else:
            yield Happening(process, READ_POINTER), memory, Process("pointer", context=context._replace(tail=0))


def _plans(memory: Memory, number: int, view: View, guards: Guards) -> Iterator[Plan]:
    """Yield every plan that a snapshot allows: any watermark behind the present one at a live event."""
    base = memory.summaries[view.summary]
    if base is None:
        return
    for watermark in _events(memory.live & ~through(base.watermark)):
        if may_stand(memory, watermark) or not guards.calls:
            covers = base.covers | memory.live & through(watermark) & ~through(base.watermark)
            yield Plan(number, view.generation, view.summary, watermark, covers, memory.revision)


def _claims(
    memory: Memory, process: Process, bounds: Bounds, guards: Guards
) -> Iterator[tuple[Happening, Memory, Process]]:
    plan = process.plan
    assert plan is not None
    if memory.views[plan.view].fence >= bounds.fences or (bounds.background and memory.views[plan.view].leased):
        return
    step = Claim(plan)
    after = apply(memory, step, guards)
    if isinstance(after, str):
        yield Happening(process, step, after), memory, IDLE
        return
    view = after.views[plan.view]
    taken = find(after, plan.view, view.holder)
    phase = "stored" if taken is not None and taken.state == VALIDATED else "drafting"
    yield Happening(process, step), after, Process(phase, plan, view.holder, view.fence)


def _stores(
    memory: Memory, process: Process, bounds: Bounds, guards: Guards
) -> Iterator[tuple[Happening, Memory, Process]]:
    plan = process.plan
    assert plan is not None
    for complete in (True, False) if bounds.partial else (True,):
        step = Store(plan.view, process.number, process.fence, complete)
        after = apply(memory, step, guards)
        if isinstance(after, str):
            yield Happening(process, step, after), memory, IDLE
        elif complete or not guards.validation:
            yield Happening(process, step), after, process._replace(phase="stored")
        else:
            yield Happening(process, step, "half a draft does not pass"), after, IDLE


def _activates(
    memory: Memory, process: Process, bounds: Bounds, guards: Guards
) -> Iterator[tuple[Happening, Memory, Process]]:
    plan = process.plan
    assert plan is not None
    step = Activate(plan.view, process.number, process.fence)
    after = apply(memory, step, guards)
    if isinstance(after, str):
        given = apply(memory, GiveBack(plan.view, process.number, process.fence), guards)
        yield Happening(process, step, after), memory if isinstance(given, str) else given, IDLE
        return
    yield Happening(process, step), after, IDLE
    if bounds.lost:
        unsure = process._replace(phase="unsure")
        yield Happening(process, step, lost=True), after, unsure
        yield Happening(process, step, "it never reached the store", lost=True), memory, unsure


def _asks(memory: Memory, process: Process, guards: Guards) -> Iterator[tuple[Happening, Memory, Process]]:
    """Say how an activation ended whose answer was lost: by the lineage (I19), or, with the guard off, by guessing."""
    plan = process.plan
    assert plan is not None
    attempt = find(memory, plan.view, process.number)
    landed = guards.pointer and attempt is not None and attempt.state == ACTIVATED
    yield Happening(process, TOLD_LANDED if landed else TOLD_FAILED), memory, IDLE


def _keeps(
    memory: Memory, process: Process, bounds: Bounds, guards: Guards
) -> Iterator[tuple[Happening, Memory, Process]]:
    seen = process.context
    assert seen is not None
    foreign = sum(made.foreign for made in memory.checkpoints)
    if len(memory.checkpoints) - foreign < bounds.checkpoints:
        for free in (False, True) if bounds.free else (False,):
            step = Keep(OWN, seen.view, seen.generation, seen.revision, seen.read_at, free)
            after = apply(memory, step, guards)
            if isinstance(after, str):
                yield Happening(process, step, after), memory, IDLE
            else:
                yield Happening(process, step), after, IDLE
    if foreign < bounds.foreign:
        elsewhere = KeepElsewhere(FOREIGN, seen.view, seen.generation, seen.past, seen.read_at + 1)
        after = apply(memory, elsewhere, guards)
        if not isinstance(after, str):
            yield Happening(process, elsewhere), after, IDLE
