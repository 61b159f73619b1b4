"""What one step makes of a workflow: `apply`, a pure function that a search and a conformance check both ask.

It answers with the memory afterwards, or with the sentence that says why the step is refused. Every check that keeps a
law has a name in `Guards`, so that a test can switch it off and see the law break.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, cast

from strandline.testing.protocol.gate import choose, is_missing
from strandline.testing.protocol.guards import ALL_ON, Guards
from strandline.testing.protocol.memory import (
    ACTIVATED,
    FAILED,
    FENCED,
    NOT_TOLD,
    RUNNING,
    VALIDATED,
    Attempt,
    Case,
    Checkpoint,
    Memory,
    Move,
    Recovery,
    Summary,
    View,
    bases_of,
    content_of,
    last_of,
    through,
    watermark_of,
)
from strandline.testing.protocol.steps import (
    Activate,
    Answer,
    Append,
    Claim,
    Define,
    Expire,
    Fence,
    GiveBack,
    Keep,
    KeepElsewhere,
    Note,
    Recover,
    Replace,
    Report,
    Revert,
    Rewind,
    Step,
    Store,
    TakeOver,
)


def apply(memory: Memory, step: Step, guards: Guards = ALL_ON) -> Memory | str:
    """Return the memory after a step, or why it is refused; nothing is written then."""
    return _RULES[type(step)](memory, step, guards)


# ---------------------------------------------------------------------------------------------- the log


def may_stand(memory: Memory, watermark: int) -> bool:
    """Tell whether a watermark covers no open call, and parts none from its result (I8)."""
    return not any(call <= watermark and not 0 < result <= watermark for call, result in memory.calls)


def _append(memory: Memory, step: Append, _: Guards) -> Memory | str:
    if step.through <= memory.revision:
        return f"the log ends at {memory.revision}: an append can't lead to {step.through} (I1)"
    calls = memory.calls
    if step.is_call:
        calls = (*calls, (step.through, 0))
    elif step.answers:
        calls = tuple((call, step.through if call == step.answers else result) for call, result in calls)
    added = through(step.through) ^ through(memory.revision)
    return memory._replace(revision=step.through, live=memory.live | added, calls=calls)


# ---------------------------------------------------------------------------------------------- compaction


def _claim(memory: Memory, step: Claim, guards: Guards) -> Memory | str:
    plan = step.plan
    view = memory.views[plan.view]
    if guards.cases and (case := blocking(memory, plan.view)):
        return f"case {case.name} is open on summary {view.summary}, which is not compacted again (I11)"
    if guards.base_at_claim and (view.generation, view.summary) != (plan.generation, plan.base):
        return f"it was planned on generation {plan.generation}, and the view is at {view.generation} (I6)"
    base_watermark = watermark_of(memory, plan.base)
    if not base_watermark <= plan.watermark <= plan.revision <= memory.revision:
        return f"a watermark of {plan.watermark} was planned at revision {plan.revision} of {memory.revision} (I8)"
    if plan.covers == NOT_TOLD:
        base = memory.summaries[plan.base]
        covers = base.covers if base is not None else 0
        plan = plan._replace(covers=covers | memory.live & through(plan.watermark) & ~through(base_watermark))
    fence = step.fence or view.fence + 1
    if fence <= view.fence:
        return f"fencing token {fence} was claimed, and {view.fence} was handed out before (I6)"
    if view.leased and view.holder:
        memory = memory._replace(lineage=memory.lineage + 1)  # the entry that says that the lease was taken
    attempts = _fenced(memory.attempts, plan.view, view.holder)
    old = next((one for one in attempts if one.state == VALIDATED and one.plan == plan), None)
    if old is None:
        number = fence
        attempts = (*attempts, Attempt(number, fence, plan, RUNNING, memory.lineage))
    else:
        number = old.number
        taken = old._replace(fence=fence, claimed_at=memory.lineage)
        attempts = tuple(taken if one is old else one for one in attempts)
    held = view._replace(fence=fence, holder=number, leased=step.leases)
    return memory._replace(views=_with(memory.views, plan.view, held), attempts=attempts)


def _store(memory: Memory, step: Store, guards: Guards) -> Memory | str:
    attempt = find(memory, step.view, step.number)
    refused = _not_mine(memory, attempt, step.view, step.fence, guards)
    if refused or attempt is None:
        return refused or _GONE
    if attempt.state not in ((RUNNING,) if guards.fence else (RUNNING, FENCED)):
        return f"the attempt is {attempt.state}: what is stored is not replaced (I6)"
    if not step.complete and guards.validation:
        memory = _settled(memory, attempt._replace(state=FAILED))
        return _without_holder(memory, step.view, step.number)
    plan = attempt.plan
    covers = plan.covers if step.complete else plan.covers & ~(1 << last_of(plan.covers))
    number = step.summary or len(memory.summaries)
    if number < len(memory.summaries) and memory.summaries[number] is not None:
        return f"summary {number} is there already (I6)"
    made = Summary(covers=covers, watermark=plan.watermark, base=plan.base, complete=step.complete)
    memory = memory._replace(summaries=placed(memory.summaries, number, made))
    return _settled(memory, attempt._replace(state=VALIDATED, summary=number))


def _activate(memory: Memory, step: Activate, guards: Guards) -> Memory | str:
    attempt = find(memory, step.view, step.number)
    refused = _not_mine(memory, attempt, step.view, step.fence, guards)
    if refused or attempt is None:
        return refused or _GONE
    if guards.cases and (case := blocking(memory, step.view)):
        return f"case {case.name} is open on summary {case.summary}, which is not compacted again (I11)"
    view, plan = memory.views[step.view], attempt.plan
    if guards.base_at_activation and (view.generation, view.summary) != (plan.generation, plan.base):
        return f"it was planned on generation {plan.generation}, and the view is at {view.generation} (I6)"
    if attempt.state != VALIDATED:
        return f"the attempt is {attempt.state}, not validated (I5)"
    memory = _settled(memory, attempt._replace(state=ACTIVATED))
    memory = _move(memory, step.view, "compaction", attempt.summary, guards)
    return _without_holder(memory, step.view, step.number)


_GONE: Final = "there is no such attempt (I5)"


def _not_mine(memory: Memory, attempt: Attempt | None, view: int, fence: int, guards: Guards) -> str:
    held = memory.views[view].fence
    if guards.fence and (held != fence or (attempt is not None and attempt.fence != fence)):
        return f"fenced: its token is {fence}, and {held} was handed out since (I6)"
    return ""


def _give_back(memory: Memory, step: GiveBack, _: Guards) -> Memory | str:
    if memory.views[step.view].fence != step.fence:
        return "it is another's lease"
    return _without_holder(memory, step.view, step.number)


def _expire(memory: Memory, step: Expire, _: Guards) -> Memory | str:
    view = memory.views[step.view]
    return memory._replace(views=_with(memory.views, step.view, view._replace(leased=False)))


# ---------------------------------------------------------------------------------------------- checkpoints


def _keep(memory: Memory, step: Keep, guards: Guards) -> Memory | str:
    view = memory.views[step.view]
    if not step.free:
        if guards.basis and step.generation != view.generation:
            return f"its state is of generation {step.generation}, and the view is at {view.generation} (I14)"
        if not watermark_of(memory, view.summary) <= step.revision <= memory.revision and guards.basis:
            return f"its basis is revision {step.revision}, outside of {memory.revision} (I14)"
    lineage = memory.lineage + 1
    made = Checkpoint(
        stamp=lineage,
        name=step.name,
        view=step.view,
        generation=step.generation,
        summary=content_of(memory, step.view, step.generation),
        past=last_of(memory.live),
        made_at=step.read_at,
        free=step.free,
    )
    return memory._replace(lineage=lineage, checkpoints=(*memory.checkpoints, made))


def _keep_elsewhere(memory: Memory, step: KeepElsewhere, _: Guards) -> Memory | str:
    made = Checkpoint(
        stamp=step.stamp,
        name=step.name,
        view=step.view,
        generation=step.generation,
        summary=content_of(memory, step.view, step.generation),
        past=step.past,
        made_at=step.stamp - 1,
        foreign=True,
    )
    return memory._replace(checkpoints=(*memory.checkpoints, made))


def _recover(memory: Memory, step: Recover, guards: Guards) -> Memory | str:
    chosen = choose(memory, step.name, step.view, guards)
    view = step.view if chosen is None or chosen.free else chosen.view
    before = memory
    if guards.recovery_fences:
        memory = _fence_all(memory)
    if step.need and guards.needs and is_missing(memory, view, step.need):
        summary = memory.views[view].summary
        taken = sum(one.leased and one.holder > 0 for one in before.views)  # each of them leaves an entry
        memory = memory._replace(lineage=memory.lineage + taken)
        if any(case.summary == summary and case.missing == step.need for case in memory.cases):
            return memory
        return _asked(memory, Case(memory.asked + 1, view, summary, step.need))
    stamp, free = (chosen.stamp, chosen.free) if chosen is not None else (0, False)
    done = Recovery(memory.lineage + 1, step.name, 0 if free else stamp, stamp if free else 0)
    return memory._replace(lineage=memory.lineage + 1, recoveries=(*memory.recoveries, done))


def _fence(memory: Memory, step: Fence, _: Guards) -> Memory | str:
    view = memory.views[step.view]
    if step.fence <= view.fence:
        return f"a lease was taken under token {step.fence}, and {view.fence} was handed out before (I6)"
    below = view._replace(fence=step.fence - 1)  # the token is that of whoever took it
    return memory._replace(lineage=memory.lineage + 1, views=_with(memory.views, step.view, below))


# ---------------------------------------------------------------------------------------------- going back


def _revert(memory: Memory, step: Revert, guards: Guards) -> Memory | str:
    view = memory.views[step.view]
    target = content_of(memory, step.view, step.generation)
    if target < 0 or step.generation >= view.generation or target == view.summary:
        return f"generation {step.generation} is none that the view at {view.generation} can go back to"
    made = memory.summaries[target]
    if guards.bad_stays_left and target in memory.bad:
        return f"summary {target} was left as bad by a revert (C17)"
    if made is not None and made.covers & ~memory.live:
        return f"summary {target} covers events that a rewind abandoned since (C22)"
    since = {m.summary for m in memory.moves if m.view == step.view and m.generation > step.generation}
    left = since - set(bases_of(memory, target))
    if guards.revert_fences:
        attempts = _fenced(memory.attempts, step.view, view.holder)
        freed = view._replace(fence=view.fence + 1, holder=0, leased=False)
        memory = memory._replace(attempts=attempts, views=_with(memory.views, step.view, freed))
    memory = memory._replace(bad=tuple(sorted({*memory.bad, *left})))
    return _move(memory, step.view, "revert", target, guards)


def _rewind(memory: Memory, step: Rewind, guards: Guards) -> Memory | str:
    named = next((made for made in memory.checkpoints if made.stamp == step.checkpoint and not made.foreign), None)
    if step.checkpoint and named is None:
        return f"lineage {step.checkpoint} is no checkpoint"
    to = named.past if named is not None else step.to
    if to and not memory.live >> to & 1:
        return f"event {to} is abandoned already (C22)"
    if named is None and not memory.live & ~through(to):
        return f"no live event stands behind {to}"
    if named is not None and not named.free and named.summary in memory.bad:
        return f"checkpoint {named.stamp} was made from summary {named.summary}, which was left as bad (C17)"
    memory = _fence_all(memory)
    restated = through(memory.revision + step.restated) ^ through(memory.revision)
    live = memory.live & through(to) | restated
    calls = tuple((c, r if live >> r & 1 else 0) for c, r in memory.calls if live >> c & 1)
    memory = memory._replace(
        live=live,
        revision=memory.revision + step.restated,
        calls=calls,
        attempts=tuple(
            one._replace(state=FENCED) if one.state in (RUNNING, VALIDATED) and one.plan.watermark > to else one
            for one in memory.attempts
        ),
        pins=tuple((ref, pin) for ref, pin in memory.pins if live >> pin & 1),
    )
    for number in range(len(memory.views)):
        is_basis = named is not None and (named.view == number if not named.free else number == 0)
        wanted = named.summary if named is not None and named.view == number and not named.free else NOT_TOLD
        told = step.targets[number] if step.targets else NOT_TOLD
        memory = _move(
            memory,
            number,
            "rewind",
            _behind(memory, number, to, wanted, told) if guards.rewind_moves else memory.views[number].summary,
            guards,
            restored=step.checkpoint if is_basis else 0,
        )
        if named is not None and is_basis:
            went = Recovery(memory.lineage, named.name, named.stamp, is_rewind=True)
            memory = memory._replace(recoveries=(*memory.recoveries, went))
    return memory


def _behind(memory: Memory, view: int, to: int, wanted: int, told: int) -> int:
    """Return the newest summary on a view's chain that covers nothing behind an event; or the one that is wanted.

    One that was erased is passed over. Of a trace it is not known when that was: there the store's word counts.
    """
    if wanted != NOT_TOLD:
        return wanted
    fit = (one for one in bases_of(memory, memory.views[view].summary) if watermark_of(memory, one) <= to)
    return next(one for one in fit if one == told or one not in memory.erased)


def _replace(memory: Memory, step: Replace, guards: Guards) -> Memory | str:
    if step.is_first:
        memory = _fence_all(memory)
    if step.summary != memory.views[step.view].summary:
        covers = memory.live & through(step.watermark)
        made = Summary(covers, step.watermark, step.base)
        memory = memory._replace(summaries=placed(memory.summaries, step.summary, made))
    return _move(memory, step.view, "erasure", step.summary, guards)


def _define(memory: Memory, step: Define, guards: Guards) -> Memory | str:
    if step.generation == 0:
        lineage = memory.lineage + 1
        made = View(moved_at=lineage, narrow=True, defined_at=lineage)
        if step.view != len(memory.views):
            return "the view is there already (I13)"
        return memory._replace(lineage=lineage, views=(*memory.views, made))
    view = memory.views[step.view]
    freed = view._replace(fence=view.fence + 1, holder=0, leased=False, narrow=True, defined_at=memory.lineage + 1)
    memory = memory._replace(views=_with(memory.views, step.view, freed))
    return _move(memory, step.view, "define", 0, guards)


def _take_over(memory: Memory, step: TakeOver, guards: Guards) -> Memory | str:
    if memory.views[step.view].generation:
        return "a fork begins once (C22)"
    made = Summary(memory.live & through(step.watermark), step.watermark)
    memory = memory._replace(summaries=placed(memory.summaries, step.summary, made))
    return _move(memory, step.view, "fork", step.summary, guards)


# ---------------------------------------------------------------------------------------------- cases


def blocking(memory: Memory, view: int) -> Case | None:
    """Return the open case that blocks a view's summary, or None."""
    summary = memory.views[view].summary
    return next((case for case in memory.cases if case.view == view and case.summary == summary), None)


def _report(memory: Memory, step: Report, _: Guards) -> Memory | str:
    return _asked(memory, Case(step.case, step.view, step.summary))


def _asked(memory: Memory, case: Case) -> Memory:
    return memory._replace(cases=(*memory.cases, case), asked=memory.asked + 1)


def _answer(memory: Memory, step: Answer, _: Guards) -> Memory | str:
    case = next((one for one in memory.cases if one.name == step.case), None)
    if case is None:
        return f"case {step.case} is not open: it was never opened, or the first answer won (I11)"
    memory = memory._replace(cases=tuple(one for one in memory.cases if one.name != step.case))
    if step.pins:
        seq = memory.revision + 1
        pins = (*memory.pins, (case.missing, seq))
        memory = memory._replace(revision=seq, live=memory.live | 1 << seq, pins=pins)
    if step.passes_over:
        memory = memory._replace(passed=(*memory.passed, step.passes_over))
    return memory._replace(lineage=memory.lineage + 1)


def _note(memory: Memory, _: Note, __: Guards) -> Memory | str:
    return memory._replace(lineage=memory.lineage + 1)


# ---------------------------------------------------------------------------------------------- what they share


def find(memory: Memory, view: int, number: int) -> Attempt | None:
    """Return the attempt of a view, by its number."""
    return next((one for one in memory.attempts if one.number == number and one.plan.view == view), None)


def placed(summaries: tuple[Summary | None, ...], number: int, made: Summary) -> tuple[Summary | None, ...]:
    """Return the summaries with one more at its number; None stands for those that the model never saw."""
    if number < len(summaries):
        return (*summaries[:number], made, *summaries[number + 1 :])
    return (*summaries, *(None,) * (number - len(summaries)), made)


def _with(views: tuple[View, ...], number: int, view: View) -> tuple[View, ...]:
    return (*views[:number], view, *views[number + 1 :])


def _settled(memory: Memory, attempt: Attempt) -> Memory:
    key = attempt.number, attempt.plan.view
    attempts = tuple(attempt if (one.number, one.plan.view) == key else one for one in memory.attempts)
    return memory._replace(attempts=attempts)


def _fenced(attempts: tuple[Attempt, ...], view: int, holder: int) -> tuple[Attempt, ...]:
    """Return the attempts with the one that holds the view's lease fenced, if it runs."""
    return tuple(
        one._replace(state=FENCED) if one.number == holder and one.plan.view == view and one.state == RUNNING else one
        for one in attempts
    )


def _without_holder(memory: Memory, number: int, holder: int) -> Memory:
    view = memory.views[number]
    if view.holder != holder:
        return memory
    return memory._replace(views=_with(memory.views, number, view._replace(holder=0, leased=False)))


def _fence_all(memory: Memory) -> Memory:
    attempts = memory.attempts
    for number, view in enumerate(memory.views):
        attempts = _fenced(attempts, number, view.holder)
    views = tuple(view._replace(fence=view.fence + 1, holder=0, leased=False) for view in memory.views)
    return memory._replace(attempts=attempts, views=views)


def _move(memory: Memory, number: int, kind: str, summary: int, guards: Guards, *, restored: int = 0) -> Memory:
    """Move a pointer under a generation that nobody had, with its entry (I13)."""
    view, at = memory.views[number], memory.lineage + 1
    generation = view.generation + 1
    if not guards.new_generation and kind in ("revert", "rewind"):
        generation = max((m.generation for m in memory.moves if m.view == number and m.summary == summary), default=0)
    moved = view._replace(generation=generation, summary=summary, moved_at=at)
    return memory._replace(
        lineage=at,
        views=_with(memory.views, number, moved),
        moves=(*memory.moves, Move(at, kind, number, generation, summary, restored)),
    )


Rule = Callable[[Memory, Step, Guards], Memory | str]

_RULES: Final = cast(
    "Mapping[type, Rule]",
    {
        Append: _append,
        Claim: _claim,
        Store: _store,
        Activate: _activate,
        GiveBack: _give_back,
        Expire: _expire,
        Keep: _keep,
        KeepElsewhere: _keep_elsewhere,
        Recover: _recover,
        Fence: _fence,
        Revert: _revert,
        Rewind: _rewind,
        Replace: _replace,
        Define: _define,
        TakeOver: _take_over,
        Report: _report,
        Answer: _answer,
        Note: _note,
    },
)
