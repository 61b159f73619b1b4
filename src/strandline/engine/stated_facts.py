"""The facts that decide an action: from the register, each checked against the event that states it (I4, I20)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from strandline.engine.environment import Environment
from strandline.engine.reading import abandoned_of, check_register_whole, read_one
from strandline.errors import CorruptRecordError
from strandline.model.action import ActionNeed
from strandline.model.event import EventKind
from strandline.model.register import Fact, FactKind
from strandline.ports import Transaction
from strandline.rules.guarding import FACTS_OF_NEED, Place, StatedFact

_STATED_BY: Final = {
    FactKind.APPROVAL: EventKind.APPROVAL,
    FactKind.REVOCATION: EventKind.REVOKE,
    FactKind.ISSUE: EventKind.ISSUE,
    FactKind.CONSTRAINT: EventKind.CONSTRAINT,
}
_ENDED_BY: Final = {FactKind.ISSUE: EventKind.RESOLVE, FactKind.CONSTRAINT: EventKind.LIFT_CONSTRAINT}


def stated_facts(env: Environment, tx: Transaction, needs: Iterable[ActionNeed]) -> list[StatedFact]:
    """Return the facts that decide these needs, each as its event says, which is read and checked.

    Raises:
        CorruptRecordError: the register or one of the events is not what was written.
    """
    check_register_whole(tx)
    asked = {(kind, need.subject): None for need in needs for kind in FACTS_OF_NEED[need.kind]}
    found: dict[tuple[FactKind, str, int, bool], StatedFact] = {}
    for kind, subject in asked:
        if subject:
            holding = tx.register.standing(kind, subject)
        else:
            holding = [fact for fact in tx.register.as_of(tx.log.head().revision) if fact.key.kind is kind]
        stated = [_stated(env, tx, fact) for fact in holding]
        if subject and not holding and kind in _ENDED_BY:
            stated += _last_end(env, tx, kind, subject)
        found |= {(fact.kind, fact.subject, fact.seq, fact.ended): fact for fact in stated}
    return list(found.values())


def _stated(env: Environment, tx: Transaction, fact: Fact) -> StatedFact:
    event = read_one(tx, fact.source_seq, env.scope.workflow)
    envelope = event.envelope
    if (event.kind, envelope.subject, envelope.expires_us) != (
        _STATED_BY[fact.key.kind],
        fact.key.subject,
        fact.expires_us,
    ):
        reason = f"the register takes it for the {fact.key.kind.value} {fact.key.subject!r}, which it does not state"
        raise CorruptRecordError(reason, place=f"event {event.seq}")
    return StatedFact(
        kind=fact.key.kind,
        subject=fact.key.subject,
        workflow=_holders(env, tx, event.seq)[-1][0],
        seq=event.seq,
        revoked=_revoked_since(env, tx, fact) if fact.key.kind is FactKind.APPROVAL else None,
        erased=event.body is None,
        granter=envelope.granter or "",
        scope=envelope.scope,
        expires_us=envelope.expires_us,
        single_use=envelope.single_use,
        audience=event.audience,
    )


def _last_end(env: Environment, tx: Transaction, kind: FactKind, subject: str) -> list[StatedFact]:
    """Return the event that ended the last fact of a kind and subject of which none holds; none if there never was one.

    What a rewind abandoned ended nothing (C22): then the newest interval need not be the one that counts.
    """
    newest = tx.register.newest(kind, subject)
    if newest is None:
        return []
    ended = [newest]
    if tx.log.head().branch:
        ended = [fact for fact in tx.register.all() if (fact.key.kind, fact.key.subject) == (kind, subject)]
    left = abandoned_of(tx)
    for seq in sorted((fact.through_seq + 1 for fact in ended if fact.through_seq is not None), reverse=True):
        if seq > tx.log.head().revision or seq in left:
            continue
        event = read_one(tx, seq, env.scope.workflow)
        if (event.kind, event.envelope.subject) == (_ENDED_BY[kind], subject):
            holder, _ = _holders(env, tx, seq)[-1]
            said = StatedFact(kind=kind, subject=subject, workflow=holder, seq=seq, ended=True, audience=event.audience)
            return [said]
    return []


def _holders(env: Environment, tx: Transaction, seq: int) -> list[tuple[str, Transaction]]:
    """Return the workflows whose past holds an event, this one first, last the one whose log it is in (C22)."""
    found, head = [(env.scope.workflow, tx)], tx.log.head()
    while head.parent is not None and seq <= head.fork_seq:
        tx = tx.relative(head.parent)
        found.append((head.parent, tx))
        head = tx.log.head()
    return found


def _revoked_since(env: Environment, tx: Transaction, approval: Fact) -> Place | None:
    """Return where an ancestor revoked an approval after the fork: to fork from before it brings no approval back."""
    for workflow, ancestor in _holders(env, tx, approval.source_seq)[1:]:
        revoked = ancestor.register.newest(FactKind.REVOCATION, approval.key.subject)
        if revoked is not None and revoked.source_seq > approval.source_seq:
            return workflow, revoked.source_seq
    return None
