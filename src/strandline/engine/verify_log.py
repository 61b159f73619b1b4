"""The part of `verify` that walks the log: events, chain, references, register (C5, I1, I4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import zip_longest

from strandline.codec import EMPTY_CHAIN, RunningDigest
from strandline.engine.reading import check_event, register_event
from strandline.errors import CorruptRecordError, StrandlineError
from strandline.limits import LOG_PAGE_EVENTS
from strandline.model.event import Event
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
    sightings_digest: bytes = b""


def fold_log(tx: Transaction, notes: Notes, progress: Progress | None) -> LogFold:
    """Walk the log: seqs 1..revision without gap, each body and the whole chain; fold the register on the way."""
    head = tx.log.head()
    fold = LogFold()
    register = Register((), lambda _: None)
    ended: list[Fact] = []
    sightings = RunningDigest()
    chain = EMPTY_CHAIN
    for event in _readable_events(tx, head.revision, notes, fold):
        try:
            check_event(event, chain, f"event {event.seq} of {notes.scope.workflow!r}")
        except CorruptRecordError as error:
            notes.note(error)
        chain = event.chain
        fold.events += 1
        fold.digests.append(event.body_digest)
        fold.audiences.append(event.audience)
        if event.body is None:
            fold.erased.append(event.seq)
        for sighting in sorted(event.sightings, key=lambda sighting: sighting.ref_id):
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


def _readable_events(tx: Transaction, revision: int, notes: Notes, fold: LogFold) -> Iterator[Event]:
    """Yield what can be read, and note what can't: a damaged record hides none behind it."""
    expected = 1
    while expected <= revision:
        try:
            for event in tx.log.read(expected, revision):
                if event.seq != expected:
                    fold.whole = False
                    notes.say(f"event {expected} of {notes.scope.workflow!r}", _missing(expected, event.seq - 1))
                expected = event.seq + 1
                yield event
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
    tx.refs.texts(tx.refs.all_ids())  # each row is checked against its digest
    if not fold.whole:
        return
    indexed = RunningDigest()
    for seq, ref_id, declared in tx.refs.all_sightings():
        indexed.add(seq, ref_id, declared)
    if indexed.value != fold.sightings_digest:
        notes.say(f"event_ref of event {_first_difference(tx)}", "the index of sightings is not what the events say")
    missing = sorted(fold.sighted.keys() - set(tx.refs.all_ids()))
    if missing:
        notes.say(f"ref {missing[0]}", f"{len(missing)} sighted references are not stored")


def _first_difference(tx: Transaction) -> int:
    """Return the first event whose sightings are not those of the index."""
    told = (
        (event.seq, sighting.ref_id, sighting.declared)
        for event in tx.log.read(1, tx.log.head().revision)
        for sighting in sorted(event.sightings, key=lambda sighting: sighting.ref_id)
    )
    pairs = zip_longest(told, tx.refs.all_sightings())
    return next((min(side[0] for side in pair if side is not None) for pair in pairs if pair[0] != pair[1]), 0)


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
