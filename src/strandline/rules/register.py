"""The fold of the log into the register (SPEC §2), and when a call is open (I8)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from strandline.errors import InvalidInputError
from strandline.model.event import Envelope, EventKind, Role
from strandline.model.ids import EVERYONE
from strandline.model.register import Fact, FactKey, FactKind, FactState, RegisterStep, found_name

_OPENERS = {
    EventKind.CONSTRAINT: FactKind.CONSTRAINT,
    EventKind.ISSUE: FactKind.ISSUE,
    EventKind.ARTIFACT: FactKind.ARTIFACT,
}
_CLOSERS = {
    EventKind.LIFT_CONSTRAINT: FactKind.CONSTRAINT,
    EventKind.RESOLVE: FactKind.ISSUE,
    EventKind.RELEASE_ARTIFACT: FactKind.ARTIFACT,
}
ENDED_BY_LIFT = (FactKind.CONSTRAINT, FactKind.FOUND)
NAMES_REFERENCES = frozenset({EventKind.PIN, EventKind.UNPIN, EventKind.DIVERGENCE})
"""Kinds of events whose declared references are what their facts are about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterEvent:
    """What the register needs of an event."""

    seq: int
    kind: EventKind
    actor: str
    audience: str
    envelope: Envelope
    declared_ids: tuple[int, ...] = ()
    found: int = 0  # statements in a user's message that nobody declared

    @property
    def lane(self) -> str:
        """The thread, or the actor where there is none: whose next user turn closes an open call (I8)."""
        return self.envelope.thread if self.envelope.thread is not None else self.actor

    @property
    def subject(self) -> str:
        """The subject, "" where there is none."""
        return self.envelope.subject or ""

    @property
    def circle(self) -> str:
        """The audience, "" where it is everyone: facts of different audiences are different facts (I21)."""
        return "" if self.audience == EVERYONE else self.audience


class Register:
    """The facts that hold after some event of the log; `apply` takes the next one.

    Args:
        facts: what holds at the start; with `standing`, the open calls are enough.
        past_call: asked for the newest call with an id that is no longer in the register, or None.
        standing: asked for the facts of a kind and subject that hold at the start, so that the cost of an append
            follows the facts that it touches and not all that stand.
    """

    def __init__(
        self,
        facts: Iterable[Fact],
        past_call: Callable[[str], Fact | None],
        standing: Callable[[FactKind, str], Iterable[Fact]] | None = None,
    ) -> None:
        self._facts: dict[FactKey, Fact] = {fact.key: fact for fact in facts}
        self._past_call = past_call
        self._standing = standing
        self._asked: set[tuple[FactKind, str]] = set()
        self._ended: set[FactKey] = set()  # in its lifetime: what is asked may still have them
        self._answered: dict[str, Fact] = {}  # calls that left the register in its lifetime
        self._open_calls: set[FactKey] = set()
        self._calls: dict[str, list[FactKey]] = {}  # by id, oldest first: ids recur
        for fact in self.facts:
            self._note_call(fact)

    @property
    def facts(self) -> list[Fact]:
        """The facts that hold, by the seq from which they hold."""
        return sorted(self._facts.values(), key=lambda fact: (fact.from_seq, fact.ordinal))

    @property
    def open_calls(self) -> list[Fact]:
        """The calls without a result that may still get one."""
        return sorted((self._facts[key] for key in self._open_calls), key=lambda fact: fact.source_seq)

    def carry(self, seq: int) -> None:
        """Go on from event `seq` as a fork does, whose facts hold from there on (C22)."""
        for fact in carried(self.facts, seq):
            self._facts[fact.key] = fact

    def apply(self, event: RegisterEvent) -> RegisterStep:
        """Take the next event of the log.

        Raises:
            InvalidInputError: a result whose id no earlier call bore, or the end of a fact that does not hold.
        """
        return self._take(self._step(event))

    def rewind(self, held: Iterable[Fact], revision: int, ordinal: int) -> RegisterStep:
        """Take a rewind, as `rewound`, of a register that was folded from the beginning."""
        return self._take(rewound(self.facts, held, revision, ordinal))

    def _take(self, step: RegisterStep) -> RegisterStep:
        for fact in step.ended:
            del self._facts[fact.key]
            self._ended.add(fact.key)
            self._open_calls.discard(fact.key)
            if fact.key.kind is FactKind.CALL:
                self._calls[fact.key.subject].remove(fact.key)
                self._answered[fact.key.subject] = fact
        for fact in step.begun:
            self._facts[fact.key] = fact
            self._note_call(fact)
        return step

    def _load(self, kind: FactKind, subject: str) -> None:
        """Fetch the facts of a kind and subject, once."""
        if self._standing is None or (kind, subject) in self._asked:
            return
        self._asked.add((kind, subject))
        for fact in self._standing(kind, subject):
            if fact.key not in self._facts and fact.key not in self._ended:
                self._facts[fact.key] = fact
                self._note_call(fact)

    def _note_call(self, fact: Fact) -> None:
        if fact.key.kind is FactKind.CALL:
            self._calls.setdefault(fact.key.subject, []).append(fact.key)
            if fact.state is FactState.STANDING:
                self._open_calls.add(fact.key)

    def _step(self, event: RegisterEvent) -> RegisterStep:
        kind = event.kind
        if kind is EventKind.MESSAGE:
            return self._user_turn(event) if event.envelope.role is Role.USER else RegisterStep()
        if kind is EventKind.TOOL_CALL:
            return self._call(event)
        if kind is EventKind.TOOL_RESULT or kind is EventKind.ABANDONED:
            return self._answer(event)
        if kind in _OPENERS:
            return self._begin(event, FactKey(kind=_OPENERS[kind], subject=event.subject, holder=event.circle))
        if kind in _CLOSERS:
            return self._end(event, _CLOSERS[kind])
        if kind is EventKind.APPROVAL:
            return self._approve(event)
        if kind is EventKind.REVOKE:
            return self._revoke(event)
        if kind is EventKind.PIN:
            return self._pin(event)
        if kind is EventKind.UNPIN:
            return self._unpin(event)
        if kind is EventKind.DIVERGENCE:
            return self._diverge(event)
        return RegisterStep()

    # ------------------------------------------------------------------------------------------ calls

    def _user_turn(self, event: RegisterEvent) -> RegisterStep:
        """A user's turn closes the open calls of its lane, and brings what was found in it."""
        closed = [fact for fact in self.open_calls if fact.lane == event.lane]
        keys = [
            FactKey(kind=FactKind.FOUND, subject=found_name(event.seq, number), holder=event.circle)
            for number in range(1, event.found + 1)
        ]
        found = [self._fact(event, key, ordinal) for ordinal, key in enumerate(keys, start=len(closed))]
        return RegisterStep(ended=_end_before(event, closed), begun=(*_unknown_from(event, closed), *found))

    def _become_unknown(self, event: RegisterEvent, call: Fact) -> RegisterStep:
        return RegisterStep(ended=_end_before(event, [call]), begun=_unknown_from(event, [call]), call=call)

    def _call(self, event: RegisterEvent) -> RegisterStep:
        fact = self._fact(
            event, FactKey(kind=FactKind.CALL, subject=event.envelope.call_id or "", holder=str(event.seq))
        )
        return RegisterStep(begun=(fact,))

    def _answer(self, event: RegisterEvent) -> RegisterStep:
        """A result or an abandoned event belongs to the latest open call of its id, for ids recur."""
        call_id = event.envelope.call_id or ""
        if not any(key in self._open_calls for key in self._calls.get(call_id, ())):
            self._load(FactKind.CALL, call_id)  # every open call is here from the start; others are fetched
        calls = sorted((self._facts[key] for key in self._calls.get(call_id, ())), key=lambda fact: fact.source_seq)
        if event.circle:  # two agents may give their calls the same id: what names an audience answers a call of that
            calls = [call for call in calls if call.audience == event.audience] or calls
        standing = [fact for fact in calls if fact.state is FactState.STANDING]
        if standing:
            call = standing[-1]
            if event.kind is EventKind.ABANDONED:
                return self._become_unknown(event, call)
            return RegisterStep(ended=(replace(call, through_seq=event.seq - 1),), call=call)
        if calls:  # closed without a result: what comes now is late
            call = calls[-1]
            if event.kind is EventKind.ABANDONED:
                return RegisterStep(call=call)
            return RegisterStep(ended=(replace(call, through_seq=event.seq - 1),), call=call, late=True)
        past = self._answered.get(call_id) or self._past_call(call_id)
        if past is None:
            raise InvalidInputError(f"a {event.kind} for the call {call_id!r}, which no earlier event made")
        return RegisterStep(call=past, late=event.kind is EventKind.TOOL_RESULT)

    # ------------------------------------------------------------------------------------------ other facts

    def _fact(self, event: RegisterEvent, key: FactKey, ordinal: int = 0) -> Fact:
        return Fact(
            key=key,
            state=FactState.STANDING,
            source_seq=event.seq,
            from_seq=event.seq,
            ordinal=ordinal,
            lane=event.lane if key.kind is FactKind.CALL else "",
            audience=event.audience,
            expires_us=event.envelope.expires_us,
        )

    def _ending(self, event: RegisterEvent, keys: Iterable[FactKey]) -> tuple[Fact, ...]:
        return tuple(replace(self._facts[key], through_seq=event.seq - 1) for key in keys if key in self._facts)

    def _begin(self, event: RegisterEvent, key: FactKey) -> RegisterStep:
        """The newest of two facts with one key stands."""
        self._load(key.kind, key.subject)
        return RegisterStep(ended=self._ending(event, [key]), begun=(self._fact(event, key),))

    def _end(self, event: RegisterEvent, kind: FactKind) -> RegisterStep:
        """What is said to everyone ends the facts of every audience; else whom they bind could not read of it. A found
        constraint is lifted by its name, as a declared one is by its subject.
        """
        kinds = ENDED_BY_LIFT if kind is FactKind.CONSTRAINT else (kind,)
        for ending in kinds:
            self._load(ending, event.subject)
        keys = [key for key in self._facts if key.kind in kinds and key.subject == event.subject]
        keys = [key for key in keys if not event.circle or key.holder == event.circle]
        if not keys:
            among = f" for the audience {event.audience!r}" if event.circle else ""
            raise InvalidInputError(f"a {event.kind} for {event.subject!r}, but no such {kind} stands{among}")
        return RegisterStep(ended=self._ending(event, sorted(keys, key=lambda key: key.holder)))

    def _approve(self, event: RegisterEvent) -> RegisterStep:
        self._load(FactKind.APPROVAL, event.subject)
        self._load(FactKind.REVOCATION, event.subject)
        granter, scope = event.envelope.granter or "", event.envelope.scope or ""
        holder = f"{len(granter)}:{granter}:{scope}"  # two scopes of one granter are two grants
        if event.circle:
            holder = f"{len(event.circle)}@{event.circle}:{holder}"
        approval = FactKey(kind=FactKind.APPROVAL, subject=event.subject, holder=holder)
        ended = self._ending(event, [approval, *self._revocations(event.subject)])
        return RegisterStep(ended=ended, begun=(self._fact(event, approval),))

    def _revoke(self, event: RegisterEvent) -> RegisterStep:
        """A revocation ends every grant of its subject, and stands itself: it is an anchor too (SPEC §2)."""
        self._load(FactKind.APPROVAL, event.subject)
        self._load(FactKind.REVOCATION, event.subject)
        revocation = FactKey(kind=FactKind.REVOCATION, subject=event.subject, holder=event.circle)
        grants = [k for k in self._facts if k.kind is FactKind.APPROVAL and k.subject == event.subject]
        return RegisterStep(ended=self._ending(event, [*grants, revocation]), begun=(self._fact(event, revocation),))

    def _revocations(self, subject: str) -> list[FactKey]:
        return [k for k in self._facts if k.kind is FactKind.REVOCATION and k.subject == subject]

    def _pin(self, event: RegisterEvent) -> RegisterStep:
        keys = self._pins(event)
        return RegisterStep(
            ended=self._ending(event, keys),
            begun=tuple(self._fact(event, key, ordinal) for ordinal, key in enumerate(keys)),
        )

    def _pins(self, event: RegisterEvent) -> list[FactKey]:
        for ref_id in event.declared_ids:
            self._load(FactKind.PIN, str(ref_id))
        return [FactKey(kind=FactKind.PIN, subject=str(ref_id), holder=event.circle) for ref_id in event.declared_ids]

    def _unpin(self, event: RegisterEvent) -> RegisterStep:
        subjects = {key.subject for key in self._pins(event)}
        pins = [key for key in self._facts if key.kind is FactKind.PIN and key.subject in subjects]
        keys = sorted((key for key in pins if not event.circle or key.holder == event.circle), key=_place)
        if not keys:
            raise InvalidInputError("an unpin of a reference that is not pinned")
        return RegisterStep(ended=self._ending(event, keys))

    def _diverge(self, event: RegisterEvent) -> RegisterStep:
        """The second declared reference is accepted in the place of the first, until another is. Where a chain of such
        led from the second back to the first, its last link ends: a reference never takes its own place.
        """
        old, new = (str(ref_id) for ref_id in event.declared_ids)
        ended, at = self._divergences(old), new
        while at != old and (links := self._divergences(at)):
            at = links[0].holder
            ended += links if at == old else ()
        begun = self._fact(event, FactKey(kind=FactKind.DIVERGENCE, subject=old, holder=new))
        return RegisterStep(ended=self._ending(event, ended), begun=(begun,))

    def _divergences(self, ref_id: str) -> list[FactKey]:
        self._load(FactKind.DIVERGENCE, ref_id)
        return [k for k in self._facts if k.kind is FactKind.DIVERGENCE and k.subject == ref_id]


def _place(key: FactKey) -> tuple[str, str]:
    return key.subject, key.holder


def rewound(standing: Iterable[Fact], held: Iterable[Fact], revision: int, ordinal: int) -> RegisterStep:
    """Return what a rewind does to the register: what held at the event that it goes back to, holds again (C22).

    What began since then ends; what ended since then begins again, at the last event that is left behind.

    Args:
        standing: the facts that hold before it.
        held: the facts that held at the event that it goes back to.
        revision: the last event that is left behind.
        ordinal: the first one that no fact has which begins at that event.
    """
    before, after = {_content(fact): fact for fact in standing}, {_content(fact): fact for fact in held}
    again = sorted(after.keys() - before.keys(), key=lambda fact: (fact.source_seq, fact.key.subject))
    return RegisterStep(
        ended=tuple(replace(f, through_seq=revision - 1) for content, f in before.items() if content not in after),
        begun=tuple(replace(fact, from_seq=revision, ordinal=ordinal + n) for n, fact in enumerate(again)),
    )


def _content(fact: Fact) -> Fact:
    """Return what a fact says, apart from when it held."""
    return replace(fact, from_seq=0, ordinal=0, through_seq=None)


def carried(facts: Iterable[Fact], seq: int) -> list[Fact]:
    """Return facts that hold at event `seq` as rows that begin there: what a fork at `seq` goes on from (C22)."""
    in_order = sorted(facts, key=lambda fact: (fact.from_seq, fact.ordinal))
    return [replace(fact, from_seq=seq, ordinal=ordinal, through_seq=None) for ordinal, fact in enumerate(in_order)]


def _end_before(event: RegisterEvent, facts: Iterable[Fact]) -> tuple[Fact, ...]:
    return tuple(replace(fact, through_seq=event.seq - 1) for fact in facts)


def _unknown_from(event: RegisterEvent, calls: Iterable[Fact]) -> tuple[Fact, ...]:
    """A call closed without a result stays in the register as outcome unknown (I8)."""
    return tuple(
        replace(fact, state=FactState.UNKNOWN, from_seq=event.seq, ordinal=ordinal)
        for ordinal, fact in enumerate(calls)
    )
