"""The log: events, references, register, index of words."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from strandline.model.event import StoredEvent
from strandline.model.lineage import AbandonedRange, WorkflowHead
from strandline.model.register import Fact, FactKind


class KeyTakenError(Exception):
    """An insert met an event key that the log holds. Engine-internal: the engine answers it (I3)."""


class LogFacet(Protocol):
    """The events of one workflow. Stores keep what they are given; the engine verifies what it reads (I4)."""

    def head(self) -> WorkflowHead:
        """Return the head row; in a write transaction it is locked. A workflow that is not there has revision 0."""
        ...

    def set_head(self, head: WorkflowHead) -> None:
        """Replace the head row."""
        ...

    def insert(self, events: Sequence[StoredEvent], *, may_wait: bool = False) -> None:
        """Add events. Raises KeyTakenError, and adds none, when one of the keys is taken. With `may_wait` the refusal
        may come as late as the commit, which then adds nothing at all: it saves a journey to the server.
        """
        ...

    def read(self, from_seq: int, through_seq: int) -> Iterator[StoredEvent]:
        """Yield the events from_seq..through_seq by seq, as stored: a missing one is simply not there."""
        ...

    def by_keys(self, keys: Sequence[str]) -> dict[str, StoredEvent]:
        """Return the events of the current branch that hold these keys."""
        ...

    def key_holders(self, key: str) -> list[StoredEvent]:
        """Return every event that was appended with this key, also abandoned ones, by seq."""
        ...

    def count(self) -> int:
        """Return the number of stored events."""
        ...

    def abandon(self, abandoned: AbandonedRange) -> None:
        """Add a range of events that a rewind leaves behind; their keys are free again (I3)."""
        ...

    def abandoned(self) -> list[AbandonedRange]:
        """Return the ranges by branch."""
        ...

    def erase(self, digests: Mapping[int, bytes]) -> None:
        """Take body and salt of these events away, and keep the digest of each body in their place (I1, C31)."""
        ...


class RefFacet(Protocol):
    """The one table of reference texts, and the index of their sightings."""

    def add(self, texts: Sequence[str], first_id: int, sightings: Sequence[tuple[int, int, bool]]) -> None:
        """Number new texts from `first_id` on, in the order given, and index what a batch of events saw.

        `sightings` are (ref_id, seq, declared) by seq; each lies behind all that were indexed before.
        """
        ...

    def texts(self, ref_ids: Iterable[int]) -> dict[int, str]:
        """Return the text of each number that is known and not erased."""
        ...

    def find(self, texts: Sequence[str]) -> dict[str, int]:
        """Return the numbers of the texts that are known."""
        ...

    def sightings(self, ref_id: int, through_seq: int, limit: int) -> list[tuple[int, bool]]:
        """Return the newest sightings (seq, declared) at or before through_seq, newest first."""
        ...

    def all_sightings(self) -> Iterator[tuple[int, int, bool]]:
        """Yield all (seq, ref_id, declared), in any order; for `verify`."""
        ...

    def erase(self, ref_ids: Collection[int]) -> None:
        """Take the texts of these numbers away: they are found no more, and the numbers are not given again (C31)."""
        ...

    def all_texts(self) -> Iterator[tuple[int, str | None]]:
        """Yield every number with its text, by number; None: erased. For `verify`."""
        ...

    def check_keys(self) -> None:
        """Check that every text leads to its number, and nothing else does; for `verify`.

        Raises:
            CorruptRecordError: one does not.
        """
        ...


class RegisterFacet(Protocol):
    """The register as interval rows."""

    def standing(self, kind: FactKind, subject: str) -> list[Fact]:
        """Return the facts of this kind and subject that hold now (through_seq is None), oldest first."""
        ...

    def open_calls(self) -> list[Fact]:
        """Return the calls that are STANDING now, oldest first."""
        ...

    def as_of(self, seq: int) -> list[Fact]:
        """Return the facts that held just after event `seq`."""
        ...

    def begin(self, facts: Sequence[Fact]) -> None:
        """Add facts."""
        ...

    def end(self, facts: Sequence[Fact]) -> None:
        """Set through_seq of facts that are there."""
        ...

    def newest(self, kind: FactKind, subject: str, through_seq: int | None = None) -> Fact | None:
        """Return the fact of this kind and subject that began last, at or before `through_seq` where that is given;
        whether it still holds or not.
        """
        ...

    def count_standing(self) -> int:
        """Return how many facts hold now."""
        ...

    def all(self) -> Iterator[Fact]:
        """Yield every fact by (from_seq, ordinal); for `verify`."""
        ...


class SearchFacet(Protocol):
    """The index of words: which events of a chunk hold a word (C4). It is derived from the log, and may lag behind it.

    A chunk is a range of events that were indexed together; it is named by its first one. Its events are told by the
    bits of a number, the lowest for the first event.
    """

    def ranges(self) -> list[tuple[int, int]]:
        """Return the ranges of events that are indexed, from_seq..through_seq, in order. A store keeps one at most."""
        ...

    def add(self, first_seq: int, through_seq: int, events: Mapping[str, int]) -> None:
        """Index the chunk first_seq..through_seq by its words; it lies right behind what is indexed, if anything is."""
        ...

    def postings(self, word: str, through_seq: int) -> Iterator[tuple[int, int]]:
        """Yield the chunks that begin at or before through_seq and hold the word, with their events; newest first."""
        ...

    def beginning(self, beginning: str, limit: int) -> list[tuple[str, int, int]]:
        """Return the words that begin so, each with its chunks and their events, by word; the first `limit` of them."""
        ...

    def drop(self, seq: int, words: Iterable[str]) -> None:
        """Take an event out of the index of these words: for an erasure (C31)."""
        ...

    def reset(self) -> None:
        """Forget the whole index."""
        ...

    def all(self) -> Iterator[tuple[str, int, int]]:
        """Yield every word with a chunk and its events, in any order; for `verify`."""
        ...
