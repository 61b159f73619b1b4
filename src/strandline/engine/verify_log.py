"""The part of `verify` that walks the log: events, chain, references, register (C5, I1, I4)."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from strandline.codec import (
    DIGEST_BYTES,
    EMPTY_CHAIN,
    RunningDigest,
    chain_event,
    decode_event,
    decode_sightings,
    event_place,
    record_digest,
    stored_digest,
)
from strandline.engine.fork import inherited_branches
from strandline.engine.reading import abandoned_of, read_log, register_event
from strandline.errors import CorruptRecordError, StrandlineError
from strandline.limits import LOG_PAGE_EVENTS
from strandline.model.event import Event, StoredEvent
from strandline.model.ids import EVERYONE, Scope
from strandline.model.lineage import AbandonedRange
from strandline.model.outcome import Problem
from strandline.model.register import Fact
from strandline.model.view import ViewHead
from strandline.ports import Transaction
from strandline.rules.branches import NOTHING_ABANDONED, Abandoned
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
    digests: bytearray = field(default_factory=bytearray)  # of the bodies, DIGEST_BYTES each
    audiences: dict[int, str] = field(default_factory=dict)  # of the events that not everyone may read, by seq
    sighted: array[int] = field(default_factory=lambda: array("q"))  # by ref_id: the live seq that held it first
    facts: int = 0
    facts_digest: int = 0
    erased: set[int] = field(default_factory=set)  # those of the workflow's own that have no body
    sightings_digest: int = 0
    left: Abandoned = NOTHING_ABANDONED

    def sight(self, ref_id: int, seq: int) -> None:
        """Take down that an event holds a reference: 0 is none yet, and below 0 none that is live."""
        if ref_id >= len(self.sighted):
            self.sighted.frombytes(bytes(8 * (ref_id + 1 + len(self.sighted) // 8 - len(self.sighted))))
        if self.sighted[ref_id] <= 0:
            self.sighted[ref_id] = -seq if seq in self.left else seq

    def body_digests(self, view: ViewHead, from_seq: int, through_seq: int) -> Iterator[bytes]:
        """Yield the digests of those live bodies that a view may read."""
        for first, last in self.left.live_spans(from_seq, through_seq):
            for seq in range(first, last + 1):
                if view.reads(self.audiences.get(seq, EVERYONE)):
                    yield bytes(self.digests[DIGEST_BYTES * (seq - 1) : DIGEST_BYTES * seq])


class _RegisterFold:
    """The register, folded event by event from the first, with every rewind in its place (C22). Of a fork, what had
    ended before its fork point is the parent's, and what held there begins there.
    """

    def __init__(self, tx: Transaction, left: Abandoned) -> None:
        self._register = Register((), lambda _: None)
        self._fork_seq = tx.log.head().fork_seq
        inherited = inherited_branches(tx)
        self._rewinds: dict[
            tuple[int, bool], list[AbandonedRange]
        ] = {}  # by the last event left behind, and if its own
        for behind in left.ranges:
            self._rewinds.setdefault((behind.through_seq, behind.branch > inherited), []).append(behind)
        self._gone_back_to = {behind.from_seq - 1 for behind in left.ranges}
        self._held: dict[int, list[Fact]] = {0: []}  # as of the events that a rewind goes back to

    @property
    def facts(self) -> list[Fact]:
        """The facts that hold after the last event."""
        return self._register.facts

    def take(self, event: Event) -> list[Fact]:
        """Take the next event, and return the facts that ended."""
        step = self._register.apply(register_event(event))
        ended, ordinal = list(step.ended), len(step.begun)
        if event.seq in self._gone_back_to:
            self._held[event.seq] = self._register.facts
        for own in (False, True):
            for behind in self._rewinds.get((event.seq, own), ()):
                step = self._register.rewind(self._held[behind.from_seq - 1], event.seq, ordinal)
                ended += step.ended
                ordinal += len(step.begun)
            if event.seq == self._fork_seq and not own:
                self._register.carry(event.seq)
                ended, ordinal = [], len(self._register.facts)
        return ended if event.seq >= self._fork_seq else []


def fold_log(tx: Transaction, notes: Notes, progress: Progress | None) -> LogFold:
    """Walk the log: seqs 1..revision without gap, each body and the whole chain; fold the register on the way."""
    head = tx.log.head()
    fold = LogFold(left=abandoned_of(tx))
    register = _RegisterFold(tx, fold.left)
    facts = _Facts()
    sightings = RunningDigest()
    chain = EMPTY_CHAIN
    for stored in _readable_events(tx, head.revision, notes, fold):
        fold.events += 1
        event = _check(stored, chain, notes, fold)
        chain = stored.chain
        if event is None:
            continue
        fold.digests += event.body_digest
        if event.audience != EVERYONE:
            fold.audiences[event.seq] = event.audience
        if event.body is None and event.seq > head.fork_seq:
            fold.erased.add(event.seq)
        for sighting in decode_sightings(event.sightings):
            fold.sight(sighting.ref_id, event.seq)
            sightings.add(event.seq, sighting.ref_id, sighting.declared)
        if fold.whole:
            for fact in register.take(event):
                facts.add(fact)
        if progress is not None and fold.events % LOG_PAGE_EVENTS == 0:
            progress(fold.events, head.revision)
    for fact in register.facts:
        facts.add(fact)
    fold.facts, fold.facts_digest = facts.count, facts.digest
    fold.sightings_digest = sightings.value
    _check_ends(tx, notes, fold, chain)
    return fold


def _check_ends(tx: Transaction, notes: Notes, fold: LogFold, chain: bytes) -> None:
    """The head says how the log ends, and how many of its events are stored and live."""
    head = tx.log.head()
    if fold.whole and chain != head.chain:
        notes.say(f"workflow {notes.scope.workflow!r}", "the last event is not the one that the head names")
    live = sum(last + 1 - first for first, last in fold.left.live_spans(1, head.revision))
    if live != head.live_events:
        notes.say("abandoned_range", f"they leave {live} live events, the head says {head.live_events} (C22)")
    if tx.log.count() != head.revision:
        notes.say("event", f"{tx.log.count()} events are stored, the head says {head.revision} (I1)")


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
    missing = [ref_id for ref_id, first in enumerate(fold.sighted) if first and ref_id not in known]
    if missing:
        notes.say(f"ref {missing[0]}", f"{len(missing)} sighted references are not stored")


def _first_unindexed(tx: Transaction, workflow: str) -> str:
    """Return the first event whose sightings the index does not hold."""
    for event in read_log(tx, 1, tx.log.head().revision, workflow):
        for ref_id, declared in decode_sightings(event.sightings):
            if (event.seq, declared) not in tx.refs.sightings(ref_id, event.seq, 1):
                return event_place(event.seq, workflow)
    return f"no event of {workflow!r}: it holds too many"


class _Facts:
    """A digest over a set of facts, in any order: so that the two registers are compared unheld."""

    def __init__(self) -> None:
        self.count = 0
        self._digest = RunningDigest()

    @property
    def digest(self) -> int:
        """The digest of the facts so far."""
        return self._digest.value

    def add(self, fact: Fact) -> None:
        """Take a fact."""
        self.count += 1
        self._digest.add(int.from_bytes(record_digest(fact), "little"))


def check_register(tx: Transaction, fold: LogFold, notes: Notes) -> None:
    """The stored register is the fold of the log."""
    stored = _Facts()
    for fact in tx.register.all():
        stored.add(fact)
    if not fold.whole or (stored.count, stored.digest) == (fold.facts, fold.facts_digest):
        return
    notes.say(
        f"register_fact {_first_difference(tx, notes.scope.workflow)}",
        f"{stored.count} facts are stored, the log folds to {fold.facts}; the first difference is here",
    )


def _first_difference(tx: Transaction, workflow: str) -> str:
    """Return the place of the first fact that is not as the log folds to it."""
    register = _RegisterFold(tx, abandoned_of(tx))
    ended: list[Fact] = []
    for event in read_log(tx, 1, tx.log.head().revision, workflow):
        ended += register.take(event)
    folded = sorted([*ended, *register.facts], key=lambda fact: (fact.from_seq, fact.ordinal))
    stored = list(tx.register.all())
    differ = next(
        (i for i, (a, b) in enumerate(zip(stored, folded, strict=False)) if a != b), min(len(stored), len(folded))
    )
    where = stored[differ] if differ < len(stored) else folded[differ]
    return f"{where.from_seq}.{where.ordinal}"
