"""The transaction of a fork: its own rows, and before them the past that it reads from its parent (C22).

No verb knows of forks: `Environment` opens every transaction through `compose`. What a fork inherits is bounded by two
numbers of its head: events at or before `fork_seq`, references numbered up to `fork_ref_id`. Behind them everything is
its own, and so is all memory over the log: views, summaries, lineage, checkpoints, cases.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from strandline.errors import CorruptRecordError
from strandline.limits import FORK_DEPTH_MAX
from strandline.model.event import StoredEvent
from strandline.model.register import Fact, FactKind
from strandline.model.summary import ManifestEntry
from strandline.ports import KeyTakenError, Transaction
from strandline.rules.branches import Abandoned


def compose(tx: Transaction) -> Transaction:
    """Return the transaction of a workflow with its inherited past: of one that is no fork, the transaction itself."""
    return tx if tx.log.head().parent is None else ForkTransaction(tx, depth=1)


class Past:
    """What a fork shares with its parent. The parent is opened when it is first asked."""

    def __init__(self, own: Transaction, depth: int) -> None:
        head = own.log.head()
        self.fork_seq = head.fork_seq
        self.fork_ref_id = head.fork_ref_id
        self._own = own
        self._workflow = head.parent or ""
        self._depth = depth
        self._parent: Transaction | None = None

    @property
    def parent(self) -> Transaction:
        """The transaction of the parent, with the past that it inherited itself.

        Raises:
            CorruptRecordError: forks lead to more than FORK_DEPTH_MAX ancestors.
        """
        if self._parent is None:
            if self._depth > FORK_DEPTH_MAX:
                raise CorruptRecordError(f"more than {FORK_DEPTH_MAX} ancestors", place=f"workflow {self._workflow!r}")
            parent = self._own.relative(self._workflow)
            if parent.log.head().revision < self.fork_seq:
                reason = f"it ends before event {self.fork_seq}, which a fork shares with it"
                raise CorruptRecordError(reason, place=f"workflow {self._workflow!r}")
            forked = parent.log.head().parent is not None
            self._parent = ForkTransaction(parent, depth=self._depth + 1) if forked else parent
        return self._parent


class ForkTransaction:
    """`ports.Transaction` of a fork. `relative` gives the rows of another workflow alone, as the store has them."""

    def __init__(self, own: Transaction, *, depth: int) -> None:
        past = Past(own, depth)
        self.log = ForkLog(own, past)
        self.refs = ForkRefs(own, past)
        self.register = ForkRegister(own, past)
        self.search = ForkSearch(own, past)
        self.summaries = ForkSummaries(own, past, self.refs)
        self.views = own.views
        self.jobs = own.jobs
        self.lineage = own.lineage
        self.checkpoints = own.checkpoints
        self.cases = own.cases
        self.effects = own.effects
        self.permits = own.permits
        self.readers = own.readers
        self.cooldowns = own.cooldowns
        self.due = own.due
        self.states = own.states
        self.nodes = own.nodes
        self.relative = own.relative


class ForkLog:
    """`ports.LogFacet` of a fork: an abandoned range may reach into the past, whose rows stay as they are."""

    def __init__(self, own: Transaction, past: Past) -> None:
        self._own = own.log
        self._past = past
        self.head = own.log.head
        self.set_head = own.log.set_head
        self.abandon = own.log.abandon
        self.abandoned = own.log.abandoned
        self.erase = own.log.erase

    def insert(self, events: Sequence[StoredEvent], *, may_wait: bool = False) -> None:
        """Add events whose keys neither the fork nor its past holds (I3)."""
        if self._inherited(event.key for event in events if event.key is not None):
            raise KeyTakenError
        self._own.insert(events, may_wait=may_wait)

    def read(self, from_seq: int, through_seq: int) -> Iterator[StoredEvent]:
        """Yield the shared events, then its own."""
        if from_seq <= self._past.fork_seq:
            yield from self._past.parent.log.read(from_seq, min(through_seq, self._past.fork_seq))
        if through_seq > self._past.fork_seq:
            yield from self._own.read(max(from_seq, self._past.fork_seq + 1), through_seq)

    def by_keys(self, keys: Sequence[str]) -> dict[str, StoredEvent]:
        """Return the live events that hold these keys, shared ones too."""
        found = self._own.by_keys(keys)
        return found | self._inherited(key for key in keys if key not in found)

    def _inherited(self, keys: Iterable[str]) -> dict[str, StoredEvent]:
        """Return the shared events that hold these keys and are live in the fork, whatever the parent did since."""
        found = {
            key: event
            for key in keys
            for event in self._past.parent.log.key_holders(key)
            if event.seq <= self._past.fork_seq
        }
        left = Abandoned(self.abandoned() if found and self.head().branch else ())
        return {key: event for key, event in found.items() if event.seq not in left}  # if any is live, the newest is

    def key_holders(self, key: str) -> list[StoredEvent]:
        """Return every event of the fork's log that was appended with this key."""
        shared = [event for event in self._past.parent.log.key_holders(key) if event.seq <= self._past.fork_seq]
        return shared + self._own.key_holders(key)

    def count(self) -> int:
        """Return the number of its own events with that of the shared ones; who reads those misses what is gone."""
        return self._past.fork_seq + self._own.count()


class ForkRefs:
    """`ports.RefFacet` of a fork."""

    def __init__(self, own: Transaction, past: Past) -> None:
        self._own = own.refs
        self._past = past
        self.add = own.refs.add
        self.erase = own.refs.erase

    def texts(self, ref_ids: Iterable[int]) -> dict[int, str]:
        """Return the text of each number, whoever gave it."""
        wanted = set(ref_ids)
        shared = {ref_id for ref_id in wanted if ref_id <= self._past.fork_ref_id}
        found = self._past.parent.refs.texts(shared) if shared else {}
        return found | self._own.texts(wanted - shared)

    def find(self, texts: Sequence[str]) -> dict[str, int]:
        """Return the numbers of the texts; what the parent saw after the fork point is unknown here."""
        found = self._own.find(texts)
        others = [text for text in texts if text not in found]
        shared = self._past.parent.refs.find(others) if others else {}
        return found | {text: ref_id for text, ref_id in shared.items() if ref_id <= self._past.fork_ref_id}

    def sightings(self, ref_id: int, through_seq: int, limit: int) -> list[tuple[int, bool]]:
        """Return the newest sightings, its own before the shared ones."""
        found = self._own.sightings(ref_id, through_seq, limit) if through_seq > self._past.fork_seq else []
        if len(found) < limit and ref_id <= self._past.fork_ref_id:
            through = min(through_seq, self._past.fork_seq)
            found += self._past.parent.refs.sightings(ref_id, through, limit - len(found))
        return found

    def all_sightings(self) -> Iterator[tuple[int, int, bool]]:
        """Yield all sightings in the fork's log."""
        yield from (seen for seen in self._past.parent.refs.all_sightings() if seen[0] <= self._past.fork_seq)
        yield from self._own.all_sightings()

    def all_texts(self) -> Iterator[tuple[int, str | None]]:
        """Yield the shared numbers with their texts, then its own."""
        yield from (held for held in self._past.parent.refs.all_texts() if held[0] <= self._past.fork_ref_id)
        yield from self._own.all_texts()

    def check_keys(self) -> None:
        """Check the keys of its ancestors and its own."""
        self._past.parent.refs.check_keys()
        self._own.check_keys()


class ForkSearch:
    """`ports.SearchFacet` of a fork: of its parent's index, what speaks for the shared events."""

    def __init__(self, own: Transaction, past: Past) -> None:
        self._own = own.search
        self._past = past
        self.add = own.search.add
        self.drop = own.search.drop
        self.reset = own.search.reset
        self.all = own.search.all

    def ranges(self) -> list[tuple[int, int]]:
        """Return the ranges of shared events that are indexed, then its own."""
        shared = self._past.parent.search.ranges()
        end = self._past.fork_seq
        return [(first, min(last, end)) for first, last in shared if first <= end] + self._own.ranges()

    def postings(self, word: str, through_seq: int) -> Iterator[tuple[int, int]]:
        """Yield its own chunks, then the shared ones, of which one may reach behind the fork point: it is cut there."""
        yield from self._own.postings(word, through_seq)
        end = self._past.fork_seq
        for first, events in self._past.parent.search.postings(word, min(through_seq, end)):
            yield first, events & _through(end - first)

    def beginning(self, beginning: str, limit: int) -> list[tuple[str, int, int]]:
        """Return its own words and the shared ones."""
        end, shared = self._past.fork_seq, self._past.parent.search.beginning(beginning, limit)
        found = [(word, first, events & _through(end - first)) for word, first, events in shared if first <= end]
        return sorted(found + self._own.beginning(beginning, limit))[:limit]


def _through(bit: int) -> int:
    """Return a number with the bits 0..bit."""
    return (1 << bit + 1) - 1


class ForkRegister:
    """`ports.RegisterFacet` of a fork. What held at the fork point are rows of its own, from there on; what had ended
    before is the parent's, and `all` leaves it out.
    """

    def __init__(self, own: Transaction, past: Past) -> None:
        self._own = own.register
        self._past = past
        self.standing = own.register.standing
        self.open_calls = own.register.open_calls
        self.begin = own.register.begin
        self.end = own.register.end
        self.count_standing = own.register.count_standing
        self.all = own.register.all

    def as_of(self, seq: int) -> list[Fact]:
        """Return the facts that held just after event `seq`, also one of the past."""
        return self._own.as_of(seq) if seq >= self._past.fork_seq else self._past.parent.register.as_of(seq)

    def newest(self, kind: FactKind, subject: str, through_seq: int | None = None) -> Fact | None:
        """Return the newest fact; that of the past, where the fork has none of its own."""
        found = self._own.newest(kind, subject, through_seq)
        if found is not None:
            return found
        through = self._past.fork_seq if through_seq is None else min(through_seq, self._past.fork_seq)
        return self._past.parent.register.newest(kind, subject, through)


class ForkSummaries:
    """`ports.SummaryFacet` of a fork: its own summaries, whose manifests name inherited references too."""

    def __init__(self, own: Transaction, past: Past, refs: ForkRefs) -> None:
        self._own = own.summaries
        self._past = past
        self._refs = refs
        self.add = own.summaries.add
        self.get = own.summaries.get
        self.by_id = own.summaries.by_id
        self.changes = own.summaries.changes
        self.dropped_by = own.summaries.dropped_by
        self.add_foreign = own.summaries.add_foreign
        self.foreign = own.summaries.foreign
        self.erase = own.summaries.erase
        self.erase_foreign = own.summaries.erase_foreign

    def manifest(self, summary_no: int) -> list[ManifestEntry]:
        """Return the manifest, with the texts of the references that it inherited."""
        entries = self._own.manifest(summary_no)
        texts = self._refs.texts(entry.ref_id for entry in entries if entry.ref_id <= self._past.fork_ref_id)
        return [replace(entry, ref=texts[entry.ref_id]) if entry.ref_id in texts else entry for entry in entries]
