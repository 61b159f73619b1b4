"""Whether what a real store did is what the protocol allows: its trace, replayed through the rules of the search."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from strandline.client import Workflow
from strandline.testing.protocol.laws import broken_state
from strandline.testing.protocol.memory import NOT_TOLD, Memory
from strandline.testing.protocol.rules import apply
from strandline.testing.protocol.traces import Told, Trace, steps_of

_LAW: Final = re.compile(r"\b[CI]\d+\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """The first step of a trace that the model does not allow, or that it makes something else of."""

    number: int  # of the step, from 1; behind the last one: the store's heads at the end
    step: str
    lineage_seq: int  # the newest entry before it
    reason: str

    @property
    def law(self) -> str:
        """The law that the reason names; "protocol" where it names none."""
        named = _LAW.search(self.reason)
        return named[0] if named is not None else "protocol"

    def __str__(self) -> str:
        return f"step {self.number}, behind lineage {self.lineage_seq}: {self.step}: {self.reason}"


def conforms(workflow: Workflow) -> Refusal | None:
    """Read what a workflow did, and say what of it the protocol does not allow; None: all of it is allowed.

    It reads the rows of the memory, never the log, so that it costs what the lineage is long.
    """
    return conform(steps_of(workflow))


def conform(trace: Trace) -> Refusal | None:
    """Replay a trace through the model; return the first step that it refuses."""
    memory = trace.first
    for number, line in enumerate(trace.lines, 1):
        after = apply(memory, line.step)
        reason = after if isinstance(after, str) else _wrong(memory, after, line.told)
        if reason or isinstance(after, str):
            return Refusal(number=number, step=repr(line.step), lineage_seq=memory.lineage, reason=reason)
        memory = after
    reason = _other(memory, trace.last)
    if not reason:
        return None
    return Refusal(number=len(trace.lines) + 1, step="the end", lineage_seq=memory.lineage, reason=reason)


def _wrong(before: Memory, after: Memory, told: Told | None) -> str:
    """Say what is wrong with a step that the rules allow: a law that it breaks, or that the store recorded another."""
    changed = after.views is not before.views or after.live != before.live
    return (broken_state(before, after) if changed else "") or ("" if told is None else _other(after, told))


def _other(memory: Memory, told: Told) -> str:
    """Say in what the store's record is not what the model makes of the step; "": in nothing."""
    if told.lineage != memory.lineage:
        return f"the store has it at lineage {told.lineage}, and {memory.lineage} is next (I13)"
    if told.revision != memory.revision:
        return f"the store has revision {told.revision}, and the log ends at {memory.revision} (I1)"
    if told.live not in (NOT_TOLD, memory.live):
        return "the store's abandoned events are not those that the rewinds left (C22)"
    for pointer in told.pointers:
        view = memory.views[pointer.view]
        if pointer.generation != view.generation:
            return f"the store says generation {pointer.generation}, and it is {view.generation} (I13)"
        if pointer.summary not in (NOT_TOLD, view.summary):
            return f"the store says summary {pointer.summary}, and it is {view.summary} (I7)"
        if pointer.moved_at not in (NOT_TOLD, view.moved_at):
            return f"the store says that the pointer moved at lineage {pointer.moved_at}, not {view.moved_at} (I13)"
        if pointer.fence != NOT_TOLD and pointer.fence < view.fence:
            return f"the store's newest token is {pointer.fence}, and {view.fence} was handed out (I6)"
    if told.restored != NOT_TOLD and told.restored != memory.recoveries[-1].restored:
        took, rule = told.restored or "a replay", memory.recoveries[-1].restored or "a replay"
        return f"the store took {took}, and the gate says {rule} (I15)"
    return ""
