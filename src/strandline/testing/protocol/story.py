"""A counterexample as a story: who did what, in order, and which law is broken at the end."""

from __future__ import annotations

from collections import Counter

from strandline.testing.protocol.search import Counterexample
from strandline.testing.protocol.steps import (
    Activate,
    Answer,
    Append,
    Claim,
    Expire,
    Keep,
    KeepElsewhere,
    Recover,
    Report,
    Revert,
    Rewind,
    Step,
    Store,
)
from strandline.testing.protocol.world import CRASH, LOOK, READ, READ_POINTER, READ_TAIL, Happening, Process, World

_NAMES = "ABCDEFGH"


def story_of(found: Counterexample) -> list[str]:
    """Return the lines of a counterexample: one for each step, and the law.

    Processes are called A, B, …: a search does not tell them apart, so each is followed from where it begins.
    """
    lines = []
    names: list[Process] = list(found.first.processes)
    before = found.first
    for number, (happening, after) in enumerate(found.steps, 1):
        who = "somebody"
        if happening.by is not None:
            place = names.index(happening.by)
            who = _NAMES[place]
            names[place] = _then(happening.by, before, after)
        lines.append(f"{number:3d}. {who} {_told(happening, before, after)}")
        before = after
    return [*lines, f"     {found.law}"]


def _then(process: Process, before: World, after: World) -> Process:
    """Return what a process became by a step."""
    rest = Counter(before.processes) - Counter([process])
    return next(iter(Counter(after.processes) - rest))


def _told(happening: Happening, before: World, after: World) -> str:
    what = happening.what
    said = _local(what, happening, before) if isinstance(what, str) else _step(what, before, after)
    if happening.lost and happening.refused:
        return f"sends: {said}; {happening.refused}, and the answer is lost"
    if happening.lost:
        return f"{said}, and the answer is lost"
    return f"{said}: refused, {happening.refused}" if happening.refused else said


def _local(what: str, happening: Happening, before: World) -> str:
    """Tell what a process did in its own memory."""
    if what in (READ, READ_POINTER):
        view = before.memory.views[0]
        part = "a context" if what == READ else "the pointer"
        return f"reads {part}: generation {view.generation}, revision {before.memory.revision}"
    if what == READ_TAIL:
        return f"reads the tail through {before.memory.revision}"
    if what == LOOK:
        return "reads a snapshot, and plans a compaction"
    if what == CRASH and happening.by is not None:
        return f"dies ({happening.by.phase})"
    return what


def _step(step: Step, before: World, after: World) -> str:
    """Tell a step of the store."""
    if isinstance(step, Append):
        kind = ", a call" if step.is_call else f", the result of call {step.answers}" if step.answers else ""
        return f"appends event {step.through}{kind}"
    if isinstance(step, Claim):
        plan, view = step.plan, after.memory.views[step.plan.view]
        return f"claims a compaction of generation {plan.generation} through {plan.watermark}, token {view.fence}"
    if isinstance(step, Store):
        return f"stores {'its draft' if step.complete else 'half a draft'} under token {step.fence}"
    if isinstance(step, Activate):
        return f"activates under token {step.fence}"
    if isinstance(step, Keep):
        kind = "context-free checkpoint" if step.free else "checkpoint"
        return f"keeps a {kind} of generation {step.generation} at lineage {after.memory.lineage}"
    if isinstance(step, KeepElsewhere):
        return f"keeps a state of generation {step.generation} in another saver, as lineage {step.stamp}"
    if isinstance(step, Recover):
        return f"recovers{f', in need of event {step.need}' if step.need else ''}: {_outcome(before, after)}"
    if isinstance(step, Revert):
        return f"reverts to generation {step.generation}"
    if isinstance(step, Rewind):
        where = f"the checkpoint of lineage {step.checkpoint}" if step.checkpoint else f"event {step.to}"
        return f"rewinds to {where}"
    if isinstance(step, Report):
        return f"opens case {step.case} on summary {step.summary}"
    if isinstance(step, Answer):
        return f"answers case {step.case}{', and pins what was missing' if step.pins else ''}"
    return "lets a lease run out" if isinstance(step, Expire) else repr(step)


def _outcome(before: World, after: World) -> str:
    if len(after.memory.recoveries) == len(before.memory.recoveries):
        return "refused, with a case"
    done = after.memory.recoveries[-1]
    if done.restored:
        return f"the checkpoint of lineage {done.restored} is restored"
    return f"a replay, with the state of lineage {done.paired}" if done.paired else "a replay"
