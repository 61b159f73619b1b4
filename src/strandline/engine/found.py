"""Constraints that nobody declared: quoted from the user's messages, and what the user says of them (C11)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from strandline.codec import decode_found, read_body
from strandline.engine.append import append
from strandline.engine.environment import Environment
from strandline.engine.reading import check_register_whole, find_view, read_one
from strandline.errors import CorruptRecordError, InvalidInputError
from strandline.limits import FOUND_READ_MAX
from strandline.model.constructors import constraint, lift_constraint
from strandline.model.event import Appended, Event
from strandline.model.found import FoundConstraint, FoundState, Said
from strandline.model.register import Fact, FactKind, found_name
from strandline.ports import Transaction
from strandline.rules.secrets import Secret, Secrets, mark_of
from strandline.rules.superseding import resolve


class FoundReader:
    """Reads what was found, in one snapshot, each message once."""

    def __init__(self, env: Environment, tx: Transaction) -> None:
        self._env = env
        self._tx = tx
        self._said: dict[int, tuple[Said, ...]] = {}  # by the message's seq

    def said(self, fact: Fact, event: Event | None = None) -> Said | None:
        """Return the statement of a fact, from its message where that is at hand; None: the message was erased.

        Raises:
            CorruptRecordError: the message is not what was written, or holds no such statement.
        """
        seq = fact.source_seq
        if seq not in self._said:
            read = event or read_one(self._tx, seq, self._env.scope.workflow)
            self._said[seq] = _statements(read, self._env.references.secrets)
        statements = self._said[seq]
        if not statements:
            return None
        found = next((said for said in statements if said.name == fact.key.subject), None)
        if found is None:
            raise CorruptRecordError(
                f"it does not hold {fact.key.subject!r}, as the register says", place=f"event {seq}"
            )
        return found

    def resolve(self, facts: Iterable[Fact]) -> list[FoundConstraint]:
        """Return what became of the newest FOUND_READ_MAX of what was found, in the order of the log."""
        newest = sorted(facts, key=lambda fact: (fact.source_seq, fact.ordinal))[-FOUND_READ_MAX:]
        said = (self.said(fact) for fact in newest)
        return resolve([one for one in said if one is not None])


def _statements(event: Event, rules: Secrets) -> tuple[Said, ...]:
    """Return what was found in a message, as it may be carried: without secrets (C12)."""
    if event.body is None:
        return ()
    text = read_body(event)[0]
    secrets = rules.find(text)
    return tuple(
        Said(
            name=found_name(event.seq, number),
            seq=event.seq,
            text=_quote(text, found.start, found.end, secrets),
            sure=found.sure,
            perhaps=found.perhaps,
            lifts=found.lifts,
            audience=event.audience,
        )
        for number, found in enumerate(decode_found(event.found), start=1)
    )


def _quote(text: str, start: int, end: int, secrets: Sequence[Secret]) -> str:
    """Return a part of a text, with a mark in the place of each secret of the whole that reaches into it (C12)."""
    parts = []
    for secret in secrets:
        if start < secret.end and secret.start < end:
            parts += [text[start : secret.start], mark_of(secret.kind)]
            start = min(secret.end, end)
    return "".join((*parts, text[start:end]))


def list_found(env: Environment, view: str) -> list[FoundConstraint]:
    """Return the constraints that were found in the messages which a view may read, with what became of each."""
    with env.read() as tx:
        reader = find_view(tx, view, str(env.scope))
        check_register_whole(tx)
        facts = tx.register.as_of(tx.log.head().revision)
        found = (fact for fact in facts if fact.key.kind is FactKind.FOUND and reader.reads(fact.audience))
        return FoundReader(env, tx).resolve(found)


def confirm_found(env: Environment, view: str, name: str, *, subject: str | None, actor: str) -> Appended:
    """Declare a constraint that was found, in its own words: it is mandatory from now on.

    What it had replaced or lifted is dismissed with it, so that none of it stands again.

    Raises:
        InvalidInputError: no such constraint stands; nothing was appended.
    """
    known = list_found(env, view)
    one = _standing(known, name)
    audience = one.audience
    declared = constraint(subject or name, one.text, actor=actor, audience=audience)
    ended = [name, *_superseded(known, name)]
    why = f"declared as {subject or name!r}"
    return append(env, [declared, *(lift_constraint(end, why, actor=actor, audience=audience) for end in ended)])


def dismiss_found(env: Environment, view: str, name: str, *, why: str, actor: str) -> Appended:
    """State that what was found is no constraint, or holds no longer. What it had replaced stands again.

    Raises:
        InvalidInputError: no such constraint is there; nothing was appended.
    """
    one = _named(list_found(env, view), name)
    return append(env, [lift_constraint(name, why, actor=actor, audience=one.audience)])


def _named(known: Sequence[FoundConstraint], name: str) -> FoundConstraint:
    found = next((one for one in known if one.name == name), None)
    if found is None:
        raise InvalidInputError(
            f"no constraint {name!r} was found, or it was confirmed or dismissed before; nothing was appended",
            hint="`strandline constraints` lists those that stand.",
        )
    return found


def _standing(known: Sequence[FoundConstraint], name: str) -> FoundConstraint:
    found = _named(known, name)
    if found.state is not FoundState.STANDING:
        raise InvalidInputError(
            f"the constraint {name!r} was {found.state} by {found.by!r}; nothing was appended",
            hint="Declare it anew with `constraint`, if it holds.",
        )
    return found


def _superseded(known: Sequence[FoundConstraint], name: str) -> list[str]:
    """Return the names of those that a statement ended, and of those that they had ended."""
    names = [one.name for one in known if one.by == name]
    return [*names, *(below for ended in names for below in _superseded(known, ended))]
