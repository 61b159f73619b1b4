"""Guard: decide on a critical action by durable facts, and let its permit be used once (I20, C24)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from strandline.codec import job_id
from strandline.engine.effect_rows import effect_basis, find_effect, may_read
from strandline.engine.environment import Environment
from strandline.engine.family import ledger
from strandline.engine.lineage import first_generation
from strandline.engine.reading import check_basis, find_view, read_one
from strandline.engine.stated_facts import stated_facts
from strandline.engine.watching import watched
from strandline.errors import ActionDeniedError, CorruptRecordError, InvalidInputError, StrandlineError
from strandline.limits import NEEDS_OF_ACTION_MAX
from strandline.model.action import ActionNeed, Permit, PermitState
from strandline.model.event import Basis
from strandline.model.ids import DEFAULT_VIEW
from strandline.model.needs import checked_need, checked_text
from strandline.model.view import ViewHead
from strandline.ports import Transaction
from strandline.ports.occurrences import GuardTold
from strandline.rules.guarding import Place, StatedFact, decide_action, decide_again, reasons_within

_CHANGED: Final = ("the facts that it rests on are no longer what they were",)
_ASK_AGAIN: Final = "Ask again with `guard`: it decides on the facts as they are now."


@watched("guard")
def guard(
    env: Environment,
    action: str,
    needs: Sequence[ActionNeed],
    *,
    by: str = "",
    basis: Basis | None = None,
    view: str = DEFAULT_VIEW,
    dry_run: bool = False,
) -> Permit:
    """Decide whether an action may be done, and record the decision.

    It is decided on the facts of every audience: a revocation or an issue that the view may not read counts. What it
    is told of them, and what of a granted permit, is what it reads (I21).

    Args:
        env: ports and workflow.
        action: what is to be done.
        needs: what must hold, at least one thing.
        by: who acts; an approval by the same name does not count.
        basis: the context from which the action was decided on; None: the view's current one.
        view: whose current context it is then.
        dry_run: decide, and record nothing; the permit has no id, and no effect can use it.

    Raises:
        ActionDeniedError: a need is not met; the denial is recorded.
        InvalidInputError: no action, no need, something else than a need, a basis that never was.
        CorruptRecordError: the facts are not what was written (I4).
    """
    checked = _check_asked(action, needs, by)
    with env.read() if dry_run else env.write() as tx:
        reader = find_view(tx, view, str(env.scope))
        if basis is None:
            basis = Basis(view=reader.name, generation=reader.generation, revision=tx.log.head().revision)
        else:
            check_basis(tx, basis, str(env.scope))
        owner = reader if basis.view == reader.name else find_view(tx, basis.view, str(env.scope))
        permit = _decide(env, tx, action, checked, by, basis, owner)  # the row is its: it says what that view may read
        reasons = permit.reasons
        if owner is not reader:
            reasons = _decide(env, tx, action, checked, by, basis, reader).reasons
        if dry_run:
            permit = replace(permit, permit_id="")
        else:
            _keep(ledger(tx), permit)
        permit = _told(env, tx, permit, reader)
    if not dry_run:
        env.emit("guard", GuardTold(action=action, state=permit.state.value, permit_id=permit.permit_id))
    if permit.state is PermitState.DENIED:
        raise _denied(permit, reasons)
    return permit


def consume_permit(
    env: Environment,
    tx: Transaction,
    permit: Permit | str,
    *,
    effect_key: str,
    action: str | None = None,
    actor: str = "",
    view: str = DEFAULT_VIEW,
) -> Permit:
    """Use a permit, in the transaction that records the effect's intent (I20). It settles rows and counters of the
    family's root: read its head after this call, not before, to write it.

    Args:
        env: ports and workflow.
        tx: the write transaction of the caller; what is raised must roll it back.
        permit: the permit or its id; what counts is the row that is stored, not the caller's copy.
        effect_key: of the effect.
        action: what the effect does; the permit must be for it. None: that is the caller's affair.
        actor: who does it: the one whom the permit is for, and none of its granters. "": whom the permit is for.
        view: through which it is used; to a narrow one a refusal names no facts.

    Raises:
        ActionDeniedError: no such permit, another workflow's or action's, used already, or the facts changed.
        CorruptRecordError: permits, used approvals or facts are not what was written (I4).
    """
    permit_id = checked_text("permit", permit.permit_id if isinstance(permit, Permit) else permit)
    checked_text("effect_key", effect_key)
    book = ledger(tx)
    stored = book.permits.get(permit_id)
    if stored is None:
        _check_permits_whole(book)
        unknown = f"there is no permit {permit_id!r} in this workflow or its family"
        raise ActionDeniedError(unknown, action=action or "", reasons=(unknown,), permit_id=permit_id)
    if stored.consumed_by is not None:
        stored = _without_hidden_use(env, tx, stored, find_view(tx, view, str(env.scope)))
    reason = _unusable(stored, env.scope.workflow, action, actor) or _outlived(env, tx, stored)
    if reason is not None:
        raise _denied(stored, (reason,), hint=_ASK_AGAIN)
    now_us = max(env.clock.now_us(), stored.decided_us)  # a clock set back makes no expired approval good again
    facts = stated_facts(env, tx, stored.needs)
    changed = decide_again(replace(stored, by=stored.by or actor), facts, _used(book, facts), now_us)
    if changed:
        narrow = find_view(tx, view, str(env.scope)).narrow
        raise _denied(stored, _CHANGED if narrow else changed, hint=_ASK_AGAIN)
    _use_up(book, stored)
    consumed = replace(stored, state=PermitState.CONSUMED, consumed_by=effect_key, consumed_us=now_us)
    if not book.permits.settle(consumed, expected=PermitState.GRANTED):
        raise _denied(stored, ("it was used in the meantime",), hint=_ASK_AGAIN)
    return consumed


def record_refusal(env: Environment, refused: ActionDeniedError, effect_key: str, actor: str, view: str) -> None:
    """Record that a permit was refused where it was to be used: the transaction that asked for it was rolled back.

    The decision is the `view`'s that asked: its reasons may be untold to the view that the permit is of (I21).
    What is no permit of the family leaves no row. Where it can't be written, the refusal stands and says so.
    """
    try:
        with env.write() as tx:
            book = ledger(tx)
            stored = book.permits.get(refused.permit_id) if refused.permit_id else None
            if stored is None:
                return
            revision, reasons = tx.log.head().revision, tuple(dict.fromkeys(refused.reasons))
            asked = (stored.permit_id, effect_key, actor, revision, reasons)
            is_own = stored.basis is not None and stored.basis.view == view
            denial = replace(
                stored,
                basis=stored.basis if is_own else effect_basis(env, tx, view),
                permit_id=job_id(env.store.digest_key, "refused", env.scope.tenant, env.scope.workflow, *asked),
                state=PermitState.DENIED,
                facts=(),
                workflow=env.scope.workflow,
                revision=revision,
                decided_us=env.clock.now_us(),
                by=actor or stored.by,
                reasons=(f"permit {stored.permit_id}, asked for by the effect {effect_key!r}", *reasons),
                expires_us=None,
                consumed_by=None,
                consumed_us=None,
            )
            _keep(book, denial)
    except StrandlineError as failure:
        refused.add_note(f"the refusal was not recorded: {failure}")


@watched("permits")
def list_permits(env: Environment, view: str = DEFAULT_VIEW) -> list[Permit]:
    """Return every decision of the workflow and of its family of forks, the oldest first; to a narrow view its own.

    Raises:
        CorruptRecordError: one is missing or damaged.
    """
    with env.read() as tx:
        book = ledger(tx)
        permits = list(book.permits.all())
        _check_count("permit", len(permits), book.log.head().permits)
        reader = find_view(tx, view, str(env.scope))
        if not reader.narrow:
            return permits
        here, first = env.scope.workflow, first_generation(tx, reader)
        own = [p for p in permits if p.basis is not None and (p.workflow, p.basis.view) == (here, view)]
        return [_told(env, tx, p, reader) for p in own if p.basis is not None and p.basis.generation >= first]


def _told(env: Environment, tx: Transaction, permit: Permit, reader: ViewHead) -> Permit:
    """Return a decision with those of its facts that the view may read."""
    if not reader.narrow:
        return permit
    facts = permit.facts
    kept = [f for f in facts if not f.seq or reader.reads(read_one(tx, f.seq, env.scope.workflow).audience)]
    return _without_hidden_use(env, tx, replace(permit, facts=tuple(kept)), reader)


def _without_hidden_use(env: Environment, tx: Transaction, permit: Permit, reader: ViewHead) -> Permit:
    """Return a decision without the effect that used it, if the view may not know of that one (I21)."""
    if not reader.narrow or permit.consumed_by is None:
        return permit
    effect = find_effect(tx, permit.consumed_by)
    known = effect is not None and may_read(env, tx, reader, effect)
    return permit if known else replace(permit, consumed_by=None)


# ---------------------------------------------------------------------------------------------- the decision


def _check_asked(action: object, needs: object, by: object) -> tuple[ActionNeed, ...]:
    checked_text("action", action)
    checked_text("by", by, empty=True)
    if not isinstance(needs, Sequence) or isinstance(needs, str):
        raise InvalidInputError(f"needs must be a sequence of needs, got {type(needs).__name__}")
    if not 1 <= len(needs) <= NEEDS_OF_ACTION_MAX:
        raise InvalidInputError(f"an action has 1 to {NEEDS_OF_ACTION_MAX} needs, not {len(needs)}")
    checked = []
    for index, need in enumerate(needs):
        if not isinstance(need, ActionNeed):
            made = "made by approved(), resolved(), no_open_issue(), in_force() or not_in_force()"
            raise InvalidInputError(f"needs[{index}] must be a need, {made}; got {type(need).__name__}")
        try:
            checked.append(checked_need(need))
        except InvalidInputError as error:
            raise InvalidInputError(f"needs[{index}]: {error.message}") from error
    return tuple(checked)


def _decide(
    env: Environment,
    tx: Transaction,
    action: str,
    needs: tuple[ActionNeed, ...],
    by: str,
    basis: Basis,
    reader: ViewHead,
) -> Permit:
    facts, now_us = stated_facts(env, tx, needs), env.clock.now_us()
    used = _used(ledger(tx), facts)
    decision = decide_action(needs, facts, used, now_us, by=by)
    if reader.narrow:
        decision = replace(decision, reasons=reasons_within(needs, facts, reader.reads, used, now_us, by))
    revision = tx.log.head().revision
    if decision.granted:
        permit_id, state = env.entropy.salt().hex(), PermitState.GRANTED
    else:  # asked again, the same denial is the same row
        state, scope = PermitState.DENIED, (env.scope.tenant, env.scope.workflow)
        asked = (action, needs, by, basis, revision, decision.reasons)
        permit_id = job_id(env.store.digest_key, state.value, *scope, *asked)
    return Permit(
        permit_id=permit_id,
        action=action,
        state=state,
        needs=needs,
        facts=decision.met if decision.granted else (),
        workflow=env.scope.workflow,
        revision=revision,
        decided_us=now_us,
        by=by,
        basis=basis,
        reasons=decision.reasons,
        expires_us=decision.expires_us if decision.granted else None,
    )


def _keep(book: Transaction, permit: Permit) -> None:
    """Add the row of a decision, unless it is a denial that is there."""
    if permit.state is PermitState.DENIED and book.permits.get(permit.permit_id) is not None:
        return
    book.permits.add(permit)
    head = book.log.head()
    book.log.set_head(replace(head, permits=head.permits + 1))


def _denied(permit: Permit, reasons: tuple[str, ...], hint: str | None = None) -> ActionDeniedError:
    said = f"{permit.action!r} is denied: {'; '.join(dict.fromkeys(reasons))}"
    error = ActionDeniedError(said, action=permit.action, reasons=reasons, permit_id=permit.permit_id or None)
    error.hint = hint or error.hint
    return error


# ---------------------------------------------------------------------------------------------- the ledger


def _used(book: Transaction, facts: Iterable[StatedFact]) -> dict[Place, str]:
    """Return the approvals among the facts that are used up, each with its permit.

    Raises:
        CorruptRecordError: an approval seems unused, and a record of a use is missing.
    """
    single = [fact.place for fact in facts if fact.single_use and not fact.ended]
    used = {place: permit_id for place in single if (permit_id := book.permits.used(*place)) is not None}
    if len(used) < len(set(single)):
        _check_count("approval_use", sum(1 for _ in book.permits.all_uses()), book.log.head().approval_uses)
    return used


def _use_up(book: Transaction, permit: Permit) -> None:
    """Use up the single-use approvals that a permit rests on."""
    for workflow, seq in permit.single_uses:
        if not book.permits.use(workflow, seq, permit.permit_id):
            raise _denied(permit, (f"the approval [event {seq}] was used in the meantime",), hint=_ASK_AGAIN)
    if permit.single_uses:
        head = book.log.head()
        book.log.set_head(replace(head, approval_uses=head.approval_uses + len(permit.single_uses)))


def _unusable(permit: Permit, workflow: str, action: str | None, actor: str) -> str | None:
    if permit.workflow != workflow:
        return f"the permit is for workflow {permit.workflow!r}, not for {workflow!r}"
    if action is not None and permit.action != action:
        return f"the permit is for {permit.action!r}, not for {action!r}"
    if actor and permit.by and actor != permit.by:
        return f"the permit is for {permit.by!r} to act, not for {actor!r}"
    if permit.state is PermitState.CONSUMED:
        return "the permit was used" + (f" by the effect {permit.consumed_by!r}" if permit.consumed_by else "")
    return None if permit.state is PermitState.GRANTED else "the permit is a denial"


def _outlived(env: Environment, tx: Transaction, permit: Permit) -> str | None:
    """Return why a permit was made for other eyes: its view has been given other audiences since (I21)."""
    if permit.basis is None or permit.basis.view == DEFAULT_VIEW:
        return None
    if permit.basis.generation >= first_generation(tx, find_view(tx, permit.basis.view, str(env.scope))):
        return None
    return f"the permit was made when view {permit.basis.view!r} read other audiences"


def _check_permits_whole(book: Transaction) -> None:
    _check_count("permit", sum(1 for _ in book.permits.all()), book.log.head().permits)


def _check_count(place: str, counted: int, written: int) -> None:
    if counted != written:
        raise CorruptRecordError(f"{counted} are stored, {written} were written", place=place)
