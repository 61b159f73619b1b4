"""Whether durable facts permit a critical action (I20, C24). No text of a summary, and none of an event, is asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from strandline.limits import EXPIRES_US_MAX, REASON_FACTS_MAX
from strandline.model.action import ActionNeed, FactVersion, NeedKind, Permit
from strandline.model.ids import EVERYONE
from strandline.model.register import FactKind

Place = tuple[str, int]  # of the event: the workflow whose log holds it, and its seq
Uses = Mapping[Place, str]  # single-use approvals that are used up, with the permit that did it

UNTOLD: Final = "facts that this view may not read speak against it"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
FACTS_OF_NEED: Final = {  # the facts that decide a need
    NeedKind.APPROVED: (FactKind.APPROVAL, FactKind.REVOCATION),
    NeedKind.RESOLVED: (FactKind.ISSUE,),
    NeedKind.NO_OPEN_ISSUE: (FactKind.ISSUE,),
    NeedKind.IN_FORCE: (FactKind.CONSTRAINT,),
    NeedKind.NOT_IN_FORCE: (FactKind.CONSTRAINT,),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedFact:
    """A fact that holds, as the event that states it says. With `ended` none holds, and `seq` is the event that ended
    the last one of this kind and subject.
    """

    kind: FactKind
    subject: str
    workflow: str  # whose log holds the event
    seq: int
    ended: bool = False
    erased: bool = False
    revoked: Place | None = None  # by an ancestor of the fork that inherited it
    granter: str = ""
    scope: str | None = None
    expires_us: int | None = None
    single_use: bool = False
    audience: str = EVERYONE

    @property
    def place(self) -> Place:
        """Where its event stands."""
        return self.workflow, self.seq


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What the facts say of an action: the versions that meet its needs, or a reason for each need that is unmet."""

    met: tuple[FactVersion, ...] = ()
    reasons: tuple[str, ...] = ()

    @property
    def granted(self) -> bool:
        """Whether every need is met."""
        return not self.reasons

    @property
    def expires_us(self) -> int | None:
        """When the first of the approvals expires, or None."""
        return min((fact.expires_us for fact in self.met if fact.expires_us is not None), default=None)


def decide_action(
    needs: Sequence[ActionNeed], facts: Sequence[StatedFact], used: Uses, now_us: int, *, by: str = ""
) -> Decision:
    """Decide whether the facts meet the needs.

    Args:
        needs: what must hold.
        facts: at least those of the kinds and subjects that the needs name.
        used: single-use approvals that are used up.
        now_us: the store's clock, by which approvals expire.
        by: who acts; an approval by the same name does not count.
    """
    met: list[FactVersion] = []
    reasons = []
    for number, need in enumerate(needs):
        found = _meets(need, facts, used, now_us, by)
        if isinstance(found, str):
            reasons.append(found)
        else:
            met += [_version(number, fact) for fact in found] or [_no_fact(number, need)]
    return Decision(met=tuple(met), reasons=tuple(reasons))


def reasons_within(
    needs: Sequence[ActionNeed],
    facts: Sequence[StatedFact],
    reads: Callable[[str], bool],
    used: Uses,
    now_us: int,
    by: str,
) -> tuple[str, ...]:
    """Return why needs are not met, told to a reader of some audiences: what else speaks against them, is not named."""
    told = [fact for fact in facts if reads(fact.audience)]
    reasons: list[str] = []
    for need in needs:
        if not decide_action((need,), facts, used, now_us, by=by).granted:
            reasons += decide_action((need,), told, used, now_us, by=by).reasons or (UNTOLD,)
    return tuple(reasons)


def decide_again(permit: Permit, facts: Sequence[StatedFact], used: Uses, now_us: int) -> tuple[str, ...]:
    """Return what changed since a permit was granted, so that it no longer holds; () if it does.

    Only the approvals that it rests on are asked: one that came later neither saves it nor disturbs it.
    """
    bound = {(fact.workflow, fact.seq) for fact in permit.facts}
    kept = [fact for fact in facts if fact.kind is not FactKind.APPROVAL or fact.place in bound]
    now = decide_action(permit.needs, kept, used, now_us, by=permit.by)
    if now.granted and now.met == permit.facts:
        return ()
    gone = [_change(permit, version, facts, used, now_us) for version in permit.facts if version not in now.met]
    return tuple(dict.fromkeys(gone)) or now.reasons or ("the facts are others than those that it was granted on",)


def _version(number: int, fact: StatedFact) -> FactVersion:
    return FactVersion(
        need=number,
        subject=fact.subject,
        seq=fact.seq,
        workflow=fact.workflow,
        holder=fact.granter,
        expires_us=fact.expires_us,
        single_use=fact.single_use,
    )


def _no_fact(number: int, need: ActionNeed) -> FactVersion:
    return FactVersion(need=number, subject=need.subject, seq=0, workflow="")


def _meets(
    need: ActionNeed, facts: Sequence[StatedFact], used: Uses, now_us: int, by: str
) -> Sequence[StatedFact] | str:
    """Return the facts that meet a need, none where it is met by there being none; or why it is not met."""
    kinds = FACTS_OF_NEED[need.kind]
    asked = [fact for fact in facts if fact.kind in kinds and need.subject in ("", fact.subject)]
    if need.kind is NeedKind.APPROVED:
        return _approvals(need, asked, used, now_us, by)
    holding = [fact for fact in asked if not fact.ended]
    ended = [fact for fact in asked if fact.ended and need.subject]
    if need.kind is NeedKind.IN_FORCE:
        return holding or f"the constraint {need.subject!r} is not in force"
    if holding:
        state = "in force" if need.kind is NeedKind.NOT_IN_FORCE else "open"
        return _listed([f"the {fact.kind.value} {fact.subject!r} [event {fact.seq}] is {state}" for fact in holding])
    if need.kind is NeedKind.RESOLVED and not ended:
        return f"the issue {need.subject!r} was never opened, so it is not resolved"
    return ended


# ---------------------------------------------------------------------------------------------- approvals


def _approvals(
    need: ActionNeed, facts: Sequence[StatedFact], used: Uses, now_us: int, by: str
) -> Sequence[StatedFact] | str:
    chosen: dict[str, StatedFact] = {}
    refused = []
    for fact in sorted((fact for fact in facts if fact.kind is FactKind.APPROVAL), key=_spare_first):
        why = _why_not(need, fact, used, now_us, by)
        if why is None:
            chosen.setdefault(fact.granter, fact)
        else:
            refused.append(f"that by {fact.granter!r} [event {fact.seq}] {why}")
    if len(chosen) >= need.quorum:
        return list(chosen.values())[: need.quorum]
    said = f"{need.subject!r} is not approved" + (f" for {need.scope!r}" if need.scope is not None else "")
    if need.quorum > 1:
        said += f" by {need.quorum} granters, but by {len(chosen)}"
    refused += [f"it was revoked [event {fact.seq}]" for fact in facts if fact.kind is FactKind.REVOCATION]
    return f"{said}: {_listed(refused)}" if refused else said


def _spare_first(fact: StatedFact) -> tuple[bool, bool, int, int]:
    """Order approvals so that those are taken first whose taking costs least and lasts longest."""
    return fact.single_use, fact.scope is None, -_last_us(fact), fact.seq


def _last_us(fact: StatedFact) -> int:
    return EXPIRES_US_MAX + 1 if fact.expires_us is None else fact.expires_us


def _why_not(need: ActionNeed, fact: StatedFact, used: Uses, now_us: int, by: str) -> str | None:
    """Return why an approval does not count for a need, or None."""
    if fact.erased:
        return "was erased"  # an erased grant is void; all else still counts (C31)
    if fact.revoked is not None:
        return f"was revoked [event {fact.revoked[1]} of {fact.revoked[0]!r}]"
    if fact.scope is not None and fact.scope != need.scope:
        return f"is for {fact.scope!r} only"
    if need.granters and fact.granter not in need.granters:
        return "is by none of those who may grant"
    if fact.granter == need.author:
        return "is the author's own"
    if by and fact.granter == by:
        return "is by the one who acts"
    if fact.expires_us is not None and fact.expires_us <= now_us:
        return f"expired at {_time(fact.expires_us)}"
    if fact.single_use and fact.place in used:
        return f"was used up by permit {used[fact.place]}"
    return None


# ---------------------------------------------------------------------------------------------- changes


def _change(permit: Permit, version: FactVersion, facts: Sequence[StatedFact], used: Uses, now_us: int) -> str:
    """Say what became of a version that a permit rests on."""
    need = permit.needs[version.need]
    if need.kind is not NeedKind.APPROVED:
        found = _meets(need, facts, used, now_us, permit.by)
        if isinstance(found, str):
            return found
        rested = f"rested on event {version.seq}" if version.seq else "was met by there being none"
        return f"{need.kind.value} {need.subject!r} {rested}, and what holds now came later"
    said = f"the approval of {version.subject!r} by {version.holder!r} [event {version.seq}]"
    for fact in facts:
        if fact.kind is FactKind.APPROVAL and fact.place == (version.workflow, version.seq):
            return f"{said} {_why_not(need, fact, used, now_us, permit.by) or 'is no longer the one that counts'}"
    for fact in facts:
        if fact.subject == version.subject and fact.kind is FactKind.REVOCATION:
            return f"{said} was revoked [event {fact.seq}]"
    for fact in facts:
        if (fact.kind, fact.subject, fact.granter) == (FactKind.APPROVAL, version.subject, version.holder):
            return f"{said} was renewed [event {fact.seq}]"
    return f"{said} no longer stands"


def _listed(said: Sequence[str]) -> str:
    more = f" and {len(said) - REASON_FACTS_MAX} more" if len(said) > REASON_FACTS_MAX else ""
    return ", ".join(said[:REASON_FACTS_MAX]) + more


def _time(at_us: int) -> str:
    return (_EPOCH + timedelta(microseconds=at_us)).isoformat(timespec="milliseconds")
