"""The part of `verify` that walks the log: events, chain, references, register (C5, I1, I4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from strandline.codec import (
    EMPTY_CHAIN,
    RunningDigest,
    chain_event,
    decode_event,
    decode_sightings,
    event_place,
    stored_digest,
)
from strandline.engine.reading import read_log, register_event
from strandline.errors import CorruptRecordError, StrandlineError
from strandline.limits import LOG_PAGE_EVENTS
from strandline.model.event import Event, StoredEvent
from strandline.model.ids import Scope
from strandline.model.outcome import Problem
from strandline.model.register import Fact
from strandline.ports import Transaction
from strandline.rules.register import Register

Progress = Callable[[int, int], None]


@dataclass(slots=True)
class Notes:
    """What was found in one workflow."""

    scope: Scope
    problems: list[Problem] = field(default_factory=list)

    def say(self, place: str, reason: str) -> None:
        """Take down a problem."""
        self.problems.append(Problem(workflow=str(self.scope), place=place, reason=reason))

    def note(self, error: StrandlineError) -> None:
        """Take down what an error says."""
        if isinstance(error, CorruptRecordError):
            self.say(error.place, error.reason)
        else:
            self.say("", str(error))


@dataclass(slots=True)
class LogFold:
    """What one walk over the log gives: to be compared with what is stored beside it.

    `whole` is False when a record could not be read; then nothing is compared, for every comparison would fail.
    """

    events: int = 0
    whole: bool = True
    digests: list[bytes] = field(default_factory=list)
    audiences: list[str] = field(default_factory=list)
    sighted: dict[int, tuple[int, int]] = field(default_factory=dict)  # ref_id -> first and last seq
    facts: list[Fact] = field(default_factory=list)
    erased: list[int] = field(default_factory=list)  # seqs without a body
    sightings_digest: int = 0


def fold_log(tx: Transaction, notes: Notes, progress: Progress | None) -> LogFold:
    """Walk the log: seqs 1..revision without gap, each body and the whole chain; fold the register on the way."""
    head = tx.log.head()
    fold = LogFold()
    register = Register((), lambda _: None)
    ended: list[Fact] = []
    sightings = RunningDigest()
    chain = EMPTY_CHAIN
    for stored in _readable_events(tx, head.revision, notes, fold):
        fold.events += 1
        event = _check(stored, chain, notes, fold)
        chain = stored.chain
        if event is None:
            continue
        fold.digests.append(event.body_digest)
        fold.audiences.append(event.audience)
        if event.body is None:
            fold.erased.append(event.seq)
        for sighting in decode_sightings(event.sightings):
            first, _ = fold.sighted.get(sighting.ref_id, (event.seq, 0))
            fold.sighted[sighting.ref_id] = (first, event.seq)
            sightings.add(event.seq, sighting.ref_id, sighting.declared)
        if fold.whole:
            ended += register.apply(register_event(event)).ended
        if progress is not None and fold.events % LOG_PAGE_EVENTS == 0:
            progress(fold.events, head.revision)
    fold.facts = sorted([*ended, *register.facts], key=lambda fact: (fact.from_seq, fact.ordinal))
    fold.sightings_digest = sightings.value
    if fold.whole and chain != head.chain:
        notes.say(f"workflow {notes.scope.workflow!r}", "the last event is not the one that the head names")
    if tx.log.count() != head.revision:
        notes.say("event", f"{tx.log.count()} events are stored, the head says {head.revision} (I1)")
    return fold


def _check(stored: StoredEvent, chain: bytes, notes: Notes, fold: LogFold) -> Event | None:
    """Return the event, decoded; a damaged one is noted, and still gives what can be read of it."""
    workflow = notes.scope.workflow
    try:
        digest = stored_digest(stored, workflow)
        if chain_event(chain, stored.seq, stored.key, stored.record, digest) != stored.chain:
            notes.say(event_place(stored.seq, workflow), "the event is not what was written")
        return decode_event(stored, digest, workflow)
    except CorruptRecordError as error:
        fold.whole = False
        notes.note(error)
        return None


def _readable_events(tx: Transaction, revision: int, notes: Notes, fold: LogFold) -> Iterator[StoredEvent]:
    """Yield what can be read, and note what can't: a damaged record hides none behind it."""
    expected = 1
    while expected <= revision:
        try:
            for stored in tx.log.read(expected, revision):
                if stored.seq != expected:
                    fold.whole = False
                    notes.say(f"event {expected} of {notes.scope.workflow!r}", _missing(expected, stored.seq - 1))
                expected = stored.seq + 1
                yield stored
            if expected <= revision:
                fold.whole = False
                notes.say(f"event {expected} of {notes.scope.workflow!r}", _missing(expected, revision))
            return
        except CorruptRecordError as error:
            fold.whole = False
            notes.note(error)
            expected += 1


def _missing(first: int, last: int) -> str:
    return "the event is missing" if first == last else f"the events {first}..{last} are missing"


def check_references(tx: Transaction, fold: LogFold, notes: Notes) -> None:
    """The index of sightings is what the events say, and every reference has its text (C3)."""
    known = {ref_id for ref_id, _ in tx.refs.all_texts()}  # each block is checked against its digest
    tx.refs.check_keys()
    if not fold.whole:
        return
    indexed = RunningDigest()
    for seq, ref_id, declared in tx.refs.all_sightings():
        indexed.add(seq, ref_id, declared)
    if indexed.value != fold.sightings_digest:
        place = _first_unindexed(tx, notes.scope.workflow)
        notes.say(f"sightings of {place}", "the index of sightings is not what the events say")
    missing = sorted(fold.sighted.keys() - known)
    if missing:
        notes.say(f"ref {missing[0]}", f"{len(missing)} sighted references are not stored")


def _first_unindexed(tx: Transaction, workflow: str) -> str:
    """Return the first event whose sightings the index does not hold."""
    for event in read_log(tx, 1, tx.log.head().revision, workflow):
        for ref_id, declared in decode_sightings(event.sightings):
            if (event.seq, declared) not in tx.refs.sightings(ref_id, event.seq, 1):
                return event_place(event.seq, workflow)
    return f"no event of {workflow!r}: it holds too many"


def check_register(tx: Transaction, fold: LogFold, notes: Notes) -> None:
    """The stored register is the fold of the log."""
    stored = list(tx.register.all())
    if not fold.whole or stored == fold.facts:
        return
    pairs = zip(stored, fold.facts, strict=False)
    differ = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(stored), len(fold.facts)))
    where = stored[differ] if differ < len(stored) else fold.facts[differ]
    notes.say(
        f"register_fact {where.from_seq}.{where.ordinal}",
        f"{len(stored)} facts are stored, the log folds to {len(fold.facts)}; the first difference is here",
    )
