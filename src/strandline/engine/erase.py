"""Erase: take what events said out of the store, and of all that was made from it, with proof (C31, I1).

What takes the place of a summary is prepared from a snapshot, without the lock. Then one transaction over the whole
family of forks, deepest first (ADR 0038), checks that nothing moved, that no hold covers it and that no reader needs
it, and does everything. Where something moved it is prepared anew; in the end under the lock, so that no writer can
starve it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from strandline.engine.environment import Environment, check_author, check_whole
from strandline.engine.erase_apply import Taken, take_away
from strandline.engine.erase_plan import ErasurePlan, named_in, prepare
from strandline.engine.erase_proof import left_in, prove
from strandline.engine.family import members
from strandline.engine.holds import covering
from strandline.engine.readers import needing
from strandline.engine.watching import watched
from strandline.errors import ErasureRefusedError, InvalidInputError, StoreUnavailableError
from strandline.limits import ERASURE_LISTED_MAX, ERASURE_TRIES_MAX, REFERENCE_CHARS_MAX
from strandline.model.erasure import Erased, ErasureOrder
from strandline.ports import Summarizer, Transaction
from strandline.ports.occurrences import ErasureTold


@watched("erase")
def erase(env: Environment, order: ErasureOrder, summarizer: Summarizer, *, scan: bool = True) -> Erased:
    """Erase events of a workflow, in one transaction over its family, and prove that they are gone.

    Args:
        env: ports and workflow.
        order: what is to be erased, and who decides. Where nothing meets it, nothing is written.
        summarizer: drafts what takes the place of the summaries that were made from it; deterministic.
        scan: write the files anew where they still hold some of it, and search them.

    Raises:
        InvalidInputError: nothing is named, an event that is not there, or nobody decides.
        ErasureRefusedError: a hold covers it, or a reader needs it and it is not forced.
        CorruptRecordError: what would have to be read is not what was written. Nothing was erased.
        StoreUnavailableError, OutcomeUnknownError: repeat it: what is erased is passed over.
    """
    _check(order)
    for number in range(ERASURE_TRIES_MAX):
        with env.phase("erase.prepare"), env.store.read(env.scope) as tx:
            plan = prepare(env, tx, order, summarizer)
        if not plan.losses:
            left = left_in(env, plan) if named_in(order) else ()  # what was erased before may stand somewhere still
            return Erased(workflow=env.scope.workflow, events=(), event_count=0, refs=0, lineage_seq=0, left_in=left)
        with env.phase("erase.carry_out"):
            done = _carry_out(env, order, plan, summarizer, is_last=number == ERASURE_TRIES_MAX - 1)
        if done is not None:
            plan, taken = done
            erased = _told(env, plan, taken)
            break
    else:
        raise StoreUnavailableError(f"{env.scope}: forks were made meanwhile; nothing was erased", hint="Try again.")
    _emit(plan, taken)
    with env.phase("erase.prove"):
        return replace(erased, left_in=left_in(env, plan), scan=prove(env, plan) if scan else None)


def _check(order: ErasureOrder) -> None:
    check_author(order.by, order.why)
    named = (order.events, order.refs, order.actor is not None, order.person is not None, order.everything)
    if not any(named):
        raise InvalidInputError("nothing is named: give events, refs, an actor, a person, or everything")
    for seq in order.events:
        check_whole("an event", seq)
    for text in (*order.refs, *(name for name in (order.actor, order.person) if name is not None)):
        if not isinstance(text, str) or not text.strip() or len(text) > REFERENCE_CHARS_MAX:
            raise InvalidInputError(f"{text!r} is no text of 1 to {REFERENCE_CHARS_MAX} characters; nothing was erased")


def _carry_out(
    env: Environment, order: ErasureOrder, plan: ErasurePlan, summarizer: Summarizer, *, is_last: bool
) -> tuple[ErasurePlan, dict[str, Taken]] | None:
    """Erase what was prepared; None: it no longer fits. The last time it is prepared anew under the locks."""
    deepest, *others = plan.states
    with replace(env, scope=replace(env.scope, workflow=deepest)).write(joins=False) as tx:
        for name in others:
            tx.relative(name, locked=True)
        if tuple(members(tx.relative(env.scope.workflow), env.scope.workflow)) != tuple(plan.states):
            return None
        if any(tx.relative(name).log.head() != head for name, head in plan.states.items()):
            if not is_last:
                return None
            plan = prepare(env, tx.relative(env.scope.workflow), order, summarizer)
        _check_permitted(tx, plan, order)
        taken = {name: take_away(tx.relative(name), plan, loss, order) for name, loss in plan.losses.items()}
    return plan, taken


def _check_permitted(tx: Transaction, plan: ErasurePlan, order: ErasureOrder) -> None:
    """Refuse what a hold covers, and, unless it is forced, what a reader still needs."""
    for name, loss in plan.losses.items():
        holds = [hold.name for hold in covering(tx, name)]
        if holds:
            raise ErasureRefusedError(
                f"{name!r} is under legal hold: {', '.join(map(repr, holds))}; nothing was erased", holds=tuple(holds)
            )
        waiting = [reader.name for reader in needing(tx.relative(name), max(loss.seen, default=0))]
        if waiting and not order.force:
            raise ErasureRefusedError(
                f"readers of {name!r} have not read event {max(loss.seen)} yet: {', '.join(map(repr, waiting))}; "
                "nothing was erased",
                readers=tuple(waiting),
            )


def _told(env: Environment, plan: ErasurePlan, taken: dict[str, Taken]) -> Erased:
    """Return what was erased, as the workflow that was named sees it."""
    named = env.scope.workflow
    loss, own = plan.losses.get(named), taken.get(named, Taken())
    seqs = sorted(loss.seen) if loss is not None else []
    return Erased(
        workflow=named,
        events=tuple(seqs[:ERASURE_LISTED_MAX]),
        event_count=len(seqs),
        refs=sum(len(loss.own_gone) for loss in plan.losses.values()),
        lineage_seq=own.lineage_seq,
        generations=dict(own.generations),
        forks=tuple(sorted(name for name in taken if name != named)),
        also=dict(sum((one.also for one in taken.values()), Counter())),
        outside=tuple(dict.fromkeys(address for one in taken.values() for address in one.outside)),
        repeated_in=plan.repeated[:ERASURE_LISTED_MAX],
        repeated_count=len(plan.repeated),
    )


def _emit(plan: ErasurePlan, taken: dict[str, Taken]) -> None:
    for name, one in taken.items():
        loss = plan.losses[name]
        told = ErasureTold(events=len(loss.seen), refs=len(loss.own_gone), views=len(one.generations))
        loss.env.emit("erasure", told)
