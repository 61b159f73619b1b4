"""Append: events get their place in the log, idempotent and all or nothing (I1–I3, C1)."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from strandline.codec import (
    ERASED_TEXT,
    body_digest,
    chain_event,
    decode_sightings,
    encode_body,
    encode_record,
    reference_source,
    user_text,
)
from strandline.engine.environment import Environment, check_whole
from strandline.engine.reading import (
    abandoned_of,
    check_basis,
    find_view,
    newest_sighting,
    read_one,
    standing_register,
)
from strandline.engine.watching import watched
from strandline.errors import IdempotencyConflictError, InvalidInputError, StaleRevisionError
from strandline.limits import (
    APPEND_EVENTS_MAX,
    EVENT_BYTES_MAX,
    EVENT_LABEL_TOKENS,
    EVENT_REFS_MAX,
    EXPIRES_US_MAX,
    EXPIRES_US_MIN,
    JSON_DEPTH_MAX,
    KEY_CHARS_MAX,
    NAME_CHARS_MAX,
    REFERENCE_CHARS_MAX,
)
from strandline.model.due import DueCompaction
from strandline.model.event import (
    Appended,
    Basis,
    BodyFormat,
    Event,
    EventKind,
    Found,
    NewEvent,
    Role,
    Sighting,
    StoredEvent,
)
from strandline.model.ids import EVERYONE
from strandline.model.register import Fact, RegisterStep
from strandline.ports import KeyTakenError, Transaction
from strandline.ports.occurrences import AppendTold, DueTold
from strandline.rules.anchors import forged_anchor
from strandline.rules.reference_rules import BUILT_IN, References
from strandline.rules.register import NAMES_REFERENCES, RegisterEvent
from strandline.rules.standing import find_standing
from strandline.rules.triggers import saw

_SUBJECT = ("subject",)
_REQUIRED: Final = {
    EventKind.TOOL_CALL: ("call_id", "tool"),
    EventKind.TOOL_RESULT: ("call_id",),
    EventKind.ABANDONED: ("call_id",),
    EventKind.CONSTRAINT: _SUBJECT,
    EventKind.LIFT_CONSTRAINT: _SUBJECT,
    EventKind.APPROVAL: ("subject", "granter"),
    EventKind.REVOKE: _SUBJECT,
    EventKind.ISSUE: _SUBJECT,
    EventKind.RESOLVE: _SUBJECT,
    EventKind.ARTIFACT: _SUBJECT,
    EventKind.RELEASE_ARTIFACT: _SUBJECT,
}
_DIVERGENCE: Final = "See `strandline cases`, and `strandline reconcile CASE accept-divergence OLD NEW`."
_UNSTORABLE = re.compile("[\\x00\\ud800-\\udfff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedEvent:
    """A new event, checked and encoded, before it has a place."""

    new: NewEvent
    format: BodyFormat
    body: bytes
    declared: tuple[str, ...]
    extracted: tuple[str, ...]
    found: tuple[Found, ...] = ()  # constraints in a user's message that nobody declared


def prepare(new: NewEvent, references: References = BUILT_IN) -> PreparedEvent:
    """Check and encode a new event; no lock is held.

    Raises:
        InvalidInputError: a size over its limit, a value that can't be stored as it stands.
    """
    if not isinstance(new, NewEvent):
        raise InvalidInputError(f"a {type(new).__name__} is no event; make one with strandline.message or its siblings")
    _check_shape(new)
    _check_size(new)
    format_, body = encode_body(new)
    if len(body) > EVENT_BYTES_MAX:
        raise InvalidInputError(f"a {new.kind} of {len(body)} bytes; at most {EVENT_BYTES_MAX} are allowed")
    _check_text("key", new.key, KEY_CHARS_MAX)
    _check_text("actor", new.actor, NAME_CHARS_MAX)
    _check_text("audience", new.audience, NAME_CHARS_MAX)
    if new.audience == "":
        raise InvalidInputError("an empty audience; None is everyone, and for a result its call's")
    _check_text("subject", new.envelope.subject, NAME_CHARS_MAX)
    _check_open("subject", new.envelope.subject, references)
    for name in ("thread", "call_id", "tool", "granter", "scope", "source_at", "parent", "message_id"):
        _check_text(name, getattr(new.envelope, name), KEY_CHARS_MAX)
    expires_us = new.envelope.expires_us
    if expires_us is not None and not (isinstance(expires_us, int) and EXPIRES_US_MIN <= expires_us <= EXPIRES_US_MAX):
        raise InvalidInputError(f"expires_us {expires_us!r} is no time from 1973 to 9999 in microseconds since 1970")
    try:
        declared = dict.fromkeys(new.refs)
    except TypeError as error:
        raise InvalidInputError(f"declared references are texts in a tuple, not {type(new.refs).__name__}") from error
    if len(declared) > EVENT_REFS_MAX:
        raise InvalidInputError(f"{len(declared):,} declared references; at most {EVENT_REFS_MAX:,} are allowed")
    for ref in declared:
        if not ref:
            raise InvalidInputError("an empty declared reference")
        _check_text("declared reference", ref, REFERENCE_CHARS_MAX)
        if len(ref.splitlines()) != 1 or forged_anchor(ref) is not None:
            raise InvalidInputError(f"declared reference {ref!r} has several lines, or would read as a fact of ours")
        _check_open("declared reference", ref, references)
    text, value = reference_source(new, format_, body)
    most = EVENT_REFS_MAX
    by_user = new.kind is EventKind.MESSAGE and new.envelope.role is Role.USER
    found = references.of_text(text, most=most, said_by_user=by_user) if text else references.of_json(value, most=most)
    extracted = tuple(ref for ref in found if ref not in declared)
    if len(declared) + len(extracted) > EVENT_REFS_MAX:
        raise InvalidInputError(f"a {new.kind} with more than {EVENT_REFS_MAX} references, which is the most allowed")
    said = user_text(new, format_, body)
    return PreparedEvent(
        new=new,
        format=format_,
        body=body,
        declared=tuple(declared),
        extracted=extracted,
        found=find_standing(said) if said else (),
    )


def _check_size(new: NewEvent) -> None:
    """Refuse a body that is surely too large before it is encoded, so that it is not held twice (I22).

    A character, a number, a key has at least one byte. What is nested too deeply, or in itself, is refused by encoding.
    """
    least, level = 0, list[object]([new.body])
    for _ in range(JSON_DEPTH_MAX):
        below: list[object] = []
        for value in level:
            held = [*value.keys(), *value.values()] if isinstance(value, Mapping) else value
            if isinstance(held, str | bytes | list | tuple):
                least += len(held)
                below += held if isinstance(held, list | tuple) else ()
            if least > EVENT_BYTES_MAX:
                what = f"a {new.kind} of at least {least} bytes"
                raise InvalidInputError(f"{what}; at most {EVENT_BYTES_MAX} are allowed")
        level = below


def _check_shape(new: NewEvent) -> None:
    """Check that an event has what its kind needs: a call without an id could never be answered."""
    if not isinstance(new.kind, EventKind):
        raise InvalidInputError(f"{new.kind!r} is no kind of event")
    for name in _REQUIRED.get(new.kind, ()):
        if not getattr(new.envelope, name):
            raise InvalidInputError(f"a {new.kind} needs a {name}")


def _check_text(name: str, value: str | None, most: int) -> None:
    if value is None:
        return
    if not isinstance(value, str):
        raise InvalidInputError(f"{name} is a {type(value).__name__}, not text")
    if len(value) > most:
        raise InvalidInputError(f"{name} of {len(value)} characters; at most {most} are allowed")
    if _UNSTORABLE.search(value):
        raise InvalidInputError(f"{name} {value!r} holds a NUL or a lone surrogate, which can't be stored")


def _check_open(name: str, value: str | None, references: References) -> None:
    """Refuse a secret where a summary has to carry the text as it stands (C12)."""
    found = references.secrets.find(value) if value else []
    if found:
        raise InvalidInputError(
            f"the {name} holds a secret ({found[0].kind}, at character {found[0].start}), which no summary may carry",
            hint="Give the name by which your secret store knows it; docs/redaction.md says what a secret is.",
        )


@watched("append")
def append(
    env: Environment,
    new: Sequence[NewEvent],
    *,
    expected_revision: int | None = None,
    basis: Basis | None = None,
) -> Appended:
    """Append events as one, each with its key or without.

    Raises:
        InvalidInputError, IdempotencyConflictError, StaleRevisionError: nothing was appended.
    """
    if not isinstance(new, list | tuple):
        raise InvalidInputError(f"a {type(new).__name__} is no event and no list of events")
    if not new:
        raise InvalidInputError("no event to append")
    if len(new) > APPEND_EVENTS_MAX:
        raise InvalidInputError(f"{len(new)} events in one append; at most {APPEND_EVENTS_MAX} are allowed")
    check_whole("expected_revision", expected_revision)
    prepared = [prepare(event, env.references) for event in new]
    if any(event.kind is EventKind.DIVERGENCE for event in new):
        raise InvalidInputError(
            "a divergence is accepted as the answer to a case, and never appended", hint=_DIVERGENCE
        )
    refuse_repeated_keys(new)
    try:
        with env.write() as tx:
            writer = LogWriter(env, tx, expected_revision=expected_revision, basis=basis)
            appended = writer.add(prepared, may_wait=True)
    except (KeyTakenError, StaleRevisionError):
        # Rare, so the probe for keys is kept off the ordinary path (DESIGN §5). A stale revision may be the work of
        # this very batch: sent again after a lost answer, it gets its seqs (I3, I19).
        with env.write() as tx:
            writer = LogWriter(env, tx, expected_revision=None, basis=basis)
            appended = writer.add_missing(prepared, expected_revision)
    env.emit("append", AppendTold(revision=appended.revision, added=appended.added))
    for due in writer.due.values():
        env.emit("due", DueTold(view=due.view, priority=due.priority, due_us=due.due_us))
    return appended


def refuse_repeated_keys(new: Sequence[NewEvent]) -> None:
    """Refuse a key that stands twice in one batch (I3)."""
    seen: set[str] = set()
    for event in new:
        if event.key is not None:
            if event.key in seen:
                raise IdempotencyConflictError(
                    f"the key {event.key!r} stands twice in one batch", key=event.key, seq=None
                )
            seen.add(event.key)


class LogWriter:
    """Adds prepared events to the log within one transaction; several batches may follow each other."""

    def __init__(
        self, env: Environment, tx: Transaction, *, expected_revision: int | None = None, basis: Basis | None = None
    ) -> None:
        self._env = env
        self._tx = tx
        self._basis = basis
        self.due: dict[str, DueCompaction] = {}  # by view: what became due by the events, now
        self._head = tx.log.head()
        if expected_revision is not None and expected_revision != self._head.revision:
            raise StaleRevisionError(expected=expected_revision, actual=self._head.revision)
        if basis is not None:
            check_basis(tx, basis, str(env.scope))
        self._register = standing_register(tx)

    @property
    def revision(self) -> int:
        """The revision after what was added so far."""
        return self._head.revision

    @property
    def open_calls(self) -> list[Fact]:
        """The calls that are open now."""
        return self._register.open_calls

    def count_foreign(self, added: int) -> None:
        """Count summaries of another tool that were kept beside the log."""
        self._head = replace(self._head, foreign_summaries=self._head.foreign_summaries + added)
        self._tx.log.set_head(self._head)

    def add_missing(self, prepared: Sequence[PreparedEvent], expected_revision: int | None = None) -> Appended:
        """Add those whose key is not taken, and answer with mixed seqs (I3).

        Raises:
            IdempotencyConflictError: a key is taken by another content.
            StaleRevisionError: there is something to add, and the revision is another.
        """
        known = self._tx.log.by_keys([event.new.key for event in prepared if event.new.key is not None])
        for event in prepared:
            if event.new.key in known:
                self._refuse_other_content(event, known[event.new.key])
        missing = [event for event in prepared if event.new.key not in known]
        if missing and expected_revision is not None and expected_revision != self._head.revision:
            raise StaleRevisionError(expected=expected_revision, actual=self._head.revision)
        try:
            added = iter(self.add(missing).seqs if missing else ())
        except InvalidInputError as error:
            if error.position is not None:
                error.position = prepared.index(missing[error.position])
            raise
        seqs = tuple(known[event.new.key].seq if event.new.key in known else next(added) for event in prepared)
        return Appended(seqs=seqs, revision=self._head.revision, added=len(missing))

    def add(self, prepared: Sequence[PreparedEvent], *, may_wait: bool = False) -> Appended:
        """Add all, or none: KeyTakenError when a key is taken; with `may_wait`, it may be when the store commits."""
        tx, head = self._tx, self._head
        texts = dict.fromkeys(ref for event in prepared for ref in (*event.declared, *event.extracted))
        ref_ids = tx.refs.find(list(texts))
        new = [text for text in texts if text not in ref_ids]
        ref_ids |= {text: ref_id for ref_id, text in enumerate(new, start=head.ref_id + 1)}
        events: list[StoredEvent] = []
        audiences: list[str] = []
        sightings: list[tuple[int, int, bool]] = []
        ended: list[Fact] = []
        begun: list[Fact] = []
        chain, now = head.chain, self._env.clock.now_us()
        known = head.ref_id  # references up to here were sighted before
        for offset, event in enumerate(prepared, start=1):
            pinned = event.declared if event.new.kind is EventKind.PIN else ()
            held = {ref_id for ref_id, _, _ in sightings} if pinned else set()
            unheld = [ref for ref in pinned if ref_ids[ref] > known or not self._held(ref_ids[ref], held)]
            if unheld:
                error = InvalidInputError(f"a pin of {unheld[0]!r}, which no earlier event holds: it would be made up")
                error.position = offset - 1
                raise error
            known = max(known, *(ref_ids[ref] for ref in (*event.declared, *event.extracted)), known)
            seq = head.revision + offset
            seen = [Sighting(ref_ids[ref], True) for ref in event.declared]
            seen += [Sighting(ref_ids[ref], False) for ref in event.extracted]
            try:
                step = self._register.apply(_register_event(event, seq, seen))
            except InvalidInputError as error:
                error.position = offset - 1
                raise
            stored = self._store(event, seq, seen, step, now, chain)
            chain = stored.chain
            events.append(stored)
            audiences.append(event.new.audience or (step.call.audience if step.call else EVERYONE))
            sightings += [(sighting.ref_id, seq, sighting.declared) for sighting in seen]
            ended.extend(step.ended)
            begun.extend(step.begun)
        if head.due_rows:
            self._tell_triggers(prepared, audiences, now)
        tx.log.insert(events, may_wait=may_wait)
        tx.refs.add(new, head.ref_id + 1, sightings)
        self._head = replace(
            head,
            revision=head.revision + len(events),
            chain=chain,
            live_events=head.live_events + len(events),
            facts=head.facts + self._write_facts(begun, ended),
            ref_id=head.ref_id + len(new),
        )
        tx.log.set_head(self._head)
        return Appended(seqs=tuple(event.seq for event in events), revision=self._head.revision, added=len(events))

    def _tell_triggers(self, prepared: Sequence[PreparedEvent], audiences: Sequence[str], now: int) -> None:
        """Let what comes make the compaction of a view due that waits for it (C7)."""
        for row in self._tx.due.all():
            if row.watch is None:
                continue
            view = find_view(self._tx, row.view, str(self._env.scope))
            read = [event for event, audience in zip(prepared, audiences, strict=True) if view.reads(audience)]
            tokens = sum(self._env.counter.count(event.body.decode("utf-8", "replace")) for event in read)
            after = saw(
                row,
                tokens=tokens + EVENT_LABEL_TOKENS * len(read),
                events=len(read),
                revision=self._head.revision + len(prepared),
                now_us=now,
            )
            if after != row:
                self._tx.due.settle(after, fence=row.fence)
            if after.due_us is not None and after.due_us <= now:
                self.due[row.view] = after

    def _held(self, ref_id: int, in_batch: Container[int]) -> bool:
        """Tell whether a live event holds a reference that was sighted before: a rewind may have left all that did."""
        head = self._head
        if head.branch == 0 or ref_id > head.ref_id or ref_id in in_batch:
            return True
        return newest_sighting(self._tx, ref_id, head.revision, abandoned_of(self._tx)) > 0

    def _store(
        self,
        event: PreparedEvent,
        seq: int,
        seen: Sequence[Sighting],
        step: RegisterStep,
        now: int,
        chain: bytes,
    ) -> StoredEvent:
        """Return an event as it is stored; an answer is bound to its call, and inherits its audience (I21)."""
        new = event.new
        call = step.call
        record = encode_record(
            kind=new.kind,
            at_us=now,
            format=event.format,
            sightings=seen,
            actor=new.actor,
            audience=new.audience or (call.audience if call else EVERYONE),
            envelope=new.envelope._replace(late=True) if step.late else new.envelope,
            branch=self._head.branch,
            call_seq=call.source_seq if call else None,
            basis=self._basis,
            epoch=self._head.epoch,
            found=event.found,
        )
        salt = self._env.entropy.salt()
        chain = chain_event(chain, seq, new.key, record, body_digest(salt, event.body))
        return StoredEvent(seq, new.key, record, event.body, salt, None, chain)

    def _write_facts(self, begun: Sequence[Fact], ended: Sequence[Fact]) -> int:
        """Write the register's changes, and return how many facts more hold now.

        A fact that began and ended in this batch is written once, ended.
        """
        if not begun and not ended:
            return 0
        ends = {(fact.from_seq, fact.ordinal): fact for fact in ended}
        fresh = {(fact.from_seq, fact.ordinal) for fact in begun}
        self._tx.register.begin([ends.get((fact.from_seq, fact.ordinal), fact) for fact in begun])
        self._tx.register.end([fact for place, fact in ends.items() if place not in fresh])
        return len(fresh) - len(ends)

    def _refuse_other_content(self, event: PreparedEvent, stored: StoredEvent) -> None:
        """Compare a repeated key's content with what was stored first; after erasure there is nothing to compare."""
        if stored.body is None or stored.salt is None:
            return
        first = read_one(self._tx, stored.seq, self._env.scope.workflow)
        declared = [sighting.ref_id for sighting in decode_sightings(first.sightings) if sighting.declared]
        if not _same_content(event, first) or set(event.declared) != set(self._tx.refs.texts(declared).values()):
            raise IdempotencyConflictError(
                f"the key {event.new.key!r} is taken by event {stored.seq}, which has other content",
                key=event.new.key or "",
                seq=stored.seq,
            )


def again(tx: Transaction, event: Event) -> PreparedEvent:
    """Return a stored event as one that is to be appended; what is known of it is not found out anew."""
    sightings = decode_sightings(event.sightings)
    texts = tx.refs.texts([sighting.ref_id for sighting in sightings])
    named = [(texts[sighting.ref_id], sighting.declared) for sighting in sightings if sighting.ref_id in texts]
    declared = tuple(ref for ref, is_declared in named if is_declared)
    body = ERASED_TEXT.encode() if event.body is None else event.body
    return PreparedEvent(
        new=NewEvent(
            kind=event.kind,
            body=body,
            envelope=event.envelope,
            actor=event.actor,
            audience=event.audience,
            key=event.key,
            refs=declared,
        ),
        format=BodyFormat.TEXT if event.body is None else event.format,
        body=body,
        declared=declared,
        extracted=tuple(ref for ref, is_declared in named if not is_declared),
    )


def _register_event(event: PreparedEvent, seq: int, seen: Sequence[Sighting]) -> RegisterEvent:
    """Return what the register needs of a new event."""
    new = event.new
    names = new.kind in NAMES_REFERENCES
    return RegisterEvent(
        seq=seq,
        kind=new.kind,
        actor=new.actor,
        audience=new.audience or EVERYONE,
        envelope=new.envelope,
        declared_ids=tuple(sighting.ref_id for sighting in seen if sighting.declared) if names else (),
        found=len(event.found),
    )


def _audience(event: PreparedEvent, stored: Event) -> str:
    """Return the audience that an event asks for; an answer that names none inherits its call's (I21)."""
    inherits = event.new.kind in (EventKind.TOOL_RESULT, EventKind.ABANDONED)
    return event.new.audience or (stored.audience if inherits else EVERYONE)


def _same_content(event: PreparedEvent, stored: Event) -> bool:
    return (
        event.body == stored.body
        and event.new.kind == stored.kind
        and event.new.actor == stored.actor
        and event.new.envelope == stored.envelope._replace(late=event.new.envelope.late)
        and _audience(event, stored) == stored.audience
    )
