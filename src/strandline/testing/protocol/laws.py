"""The laws, as far as the model can say them (SPEC §3): looked at in every world, and at every step that leads to one.

They are written from what really happened (which summary a state was made from, when its context was read), and ask
none of the numbers by which the rules decide: a law that repeated its rule would hold however wrong the rule is.
"""

from __future__ import annotations

from strandline.testing.protocol.gate import is_missing
from strandline.testing.protocol.memory import ACTIVATED, Checkpoint, Memory, View, through
from strandline.testing.protocol.rules import blocking, find, may_stand
from strandline.testing.protocol.steps import Activate, Keep, Recover
from strandline.testing.protocol.world import READ, READ_TAIL, TOLD_FAILED, TOLD_LANDED, Context, Happening, World


def broken_law(before: World, happening: Happening, after: World) -> str:
    """Return which law a step broke, in a sentence; "": none."""
    old, new = before.memory, after.memory
    broken = broken_state(old, new) if new is not old else ""
    if broken:
        return broken
    what = happening.what
    if isinstance(what, Activate) and new is not old and len(new.moves) > len(old.moves):
        return _of_activation(old, what)
    if isinstance(what, Keep) and new is not old:
        return _of_checkpoint(old, new)
    if isinstance(what, Recover) and len(new.recoveries) > len(old.recoveries):
        return _of_recovery(old, new, what)
    if what in (READ, READ_TAIL):
        readers = (one for one in after.processes if one not in before.processes)
        return next((_of_context(new, one.context) for one in readers), "")
    if what in (TOLD_LANDED, TOLD_FAILED):
        return _of_answer(before, happening)
    return ""


def broken_state(old: Memory, new: Memory) -> str:
    """Return which law a memory breaks that came from another, in a sentence; "": none."""
    if new.revision < old.revision or new.lineage < old.lineage:
        return "I1: a committed event or entry disappeared"
    if new.live & ~through(new.revision):
        return "I1: an event stands behind the revision"
    for move in new.moves[len(old.moves) :]:
        if any(one.view == move.view and one.generation == move.generation for one in old.moves) or not move.generation:
            return f"I13: generation {move.generation} is used twice"
    for view in new.views:
        broken = _of_pointer(new, view)
        if broken:
            return broken
    return ""


def _of_pointer(memory: Memory, view: View) -> str:
    summary = memory.summaries[view.summary]
    if summary is None or not summary.complete:
        return f"I5: half a summary is active as generation {view.generation}"
    if view.summary in memory.bad:
        return f"C17: summary {view.summary}, which a revert left as bad, is active again"
    if not may_stand(memory, summary.watermark):
        return f"I8: a watermark of {summary.watermark} covers an open call, or parts one from its result"
    live = memory.live & through(summary.watermark)
    if summary.covers != live:
        return (
            f"I7: the summary of generation {view.generation} covers {_named(summary.covers)}, and the live events "
            f"through its watermark are {_named(live)}"
        )
    return ""


def _of_activation(old: Memory, step: Activate) -> str:
    attempt = find(old, step.view, step.number)
    view = old.views[step.view]
    if attempt is None:
        return "I5: what nobody drafted became active"
    if attempt.plan.base != view.summary or attempt.plan.generation != view.generation:
        return (
            f"I6: what was planned on generation {attempt.plan.generation} became active on generation "
            f"{view.generation}"
        )
    case = blocking(old, step.view)
    if case is not None:
        return f"I11: summary {view.summary} was compacted while case {case.name} on it was open"
    late = next((done for done in old.recoveries if done.at > attempt.claimed_at and not done.is_rewind), None)
    if late is not None:
        return f"I15: what was in flight when a recovery ran (lineage {late.at}) became active after it"
    if attempt.fence != step.fence:
        return f"I6: a process activated under token {step.fence} what another holds under {attempt.fence}"
    return ""


def _of_checkpoint(old: Memory, new: Memory) -> str:
    made = new.checkpoints[-1]
    active = old.views[made.view]
    if not made.free and (made.summary != active.summary or made.generation != active.generation):
        return f"I14: a state of generation {made.generation} wears a stamp of generation {active.generation}"
    return ""


def _of_recovery(old: Memory, new: Memory, step: Recover) -> str:
    """The newest state that is still the present's is gone on from, and no other (I15)."""
    taken = new.recoveries[-1].restored or new.recoveries[-1].paired
    own = [made for made in old.checkpoints if made.name == step.name]
    newest = max((made.stamp for made in own if not _unfit(old, made)), default=0)
    if taken:
        made = next(made for made in own if made.stamp == taken)
        why = _unfit(old, made)
        if why:
            return f"I15: the checkpoint of lineage {taken} was gone on from, {why}"
        if not made.free and made.summary != old.views[made.view].summary:
            return f"I15: a state of summary {made.summary} was restored beside summary {old.views[made.view].summary}"
    if newest > taken:
        return f"I15: the checkpoint of lineage {newest} is fit, and {taken or 'none'} was gone on from"
    if step.need and is_missing(old, step.view, step.need):
        return f"I16: it went on, and the reference of event {step.need} stands nowhere"
    return ""


def _unfit(memory: Memory, made: Checkpoint) -> str:
    """Say why the state of a checkpoint is not of the present; "": it is."""
    moved = [move for move in memory.moves if move.view == made.view]
    if moved and moved[-1].restored == made.stamp and not made.foreign:
        return ""  # the last move went back to it (I17)
    since = made.made_at if made.foreign else made.stamp
    if made.free and made.past and not memory.live >> made.past & 1:
        return f"though event {made.past}, the last of its past, is abandoned"
    if not made.free and moved and moved[-1].at > since:
        return f"though the pointer moved after it was made ({moved[-1].kind}, lineage {moved[-1].at})"
    for done in memory.recoveries:
        if done.name == made.name and done.at > since and 0 < done.restored < made.stamp:
            return f"though going back to {done.restored} (lineage {done.at}) left the past that it is of"
    return ""


def _of_context(memory: Memory, seen: Context | None) -> str:
    if seen is None or memory.revision != seen.revision:
        return ""
    lost, twice = memory.live & ~(seen.covers | seen.tail), seen.covers & seen.tail
    if lost:
        return f"I7: a context of generation {seen.generation} misses {_named(lost)}"
    if twice or (seen.covers | seen.tail) & ~memory.live:
        return f"I7: a context of generation {seen.generation} holds what is not live, or twice"
    return ""


def _of_answer(before: World, happening: Happening) -> str:
    process = happening.by
    if process is None or process.plan is None:
        return ""
    attempt = find(before.memory, process.plan.view, process.number)
    landed = attempt is not None and attempt.state == ACTIVATED
    if landed != (happening.what == TOLD_LANDED):
        return f"I19: it was said that the activation {'failed' if landed else 'landed'}, and it did the other"
    return ""


def _named(events: int) -> str:
    seqs = [str(seq) for seq in range(1, events.bit_length()) if events >> seq & 1]
    return f"{'event' if len(seqs) == 1 else 'events'} {', '.join(seqs)}" if seqs else "no event"
