"""The facets of `strandline.ports.log` over versioned tables."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from strandline.codec import EMPTY_CHAIN
from strandline.model.event import StoredEvent
from strandline.model.lineage import AbandonedRange, WorkflowHead
from strandline.model.register import Fact, FactKind, FactState
from strandline.ports import KeyTakenError
from strandline.stores.memory.schema import Facet
from strandline.stores.memory.tables import ONLY

_EMPTY: Final = WorkflowHead(chain=EMPTY_CHAIN, lineage_chain=EMPTY_CHAIN)


class MemoryLog(Facet):
    """`ports.LogFacet` in memory."""

    def head(self) -> WorkflowHead:
        return self._tables.head.get(self._moment, ONLY) or _EMPTY

    def set_head(self, head: WorkflowHead) -> None:
        self._tables.head.put(self._moment, ONLY, head)

    def insert(self, events: Sequence[StoredEvent], *, may_wait: bool = False) -> None:
        keys = [event.key for event in events if event.key is not None]
        if len(set(keys)) < len(keys) or self.by_keys(keys):
            raise KeyTakenError
        for event in events:
            self._tables.events.add(self._moment, event.seq, event)
        self._tables.event_count.put(self._moment, ONLY, self.count() + len(events))

    def read(self, from_seq: int, through_seq: int) -> Iterator[StoredEvent]:
        return iter(self._tables.events.range(self._moment, "log", from_seq, through_seq))

    def by_keys(self, keys: Sequence[str]) -> dict[str, StoredEvent]:
        found = {key: event for key in keys for event in self._tables.events.newest(self._moment, "by_key", key)}
        ranges = self.abandoned()  # of a key's events the newest is the live one, if any is
        return {
            key: event
            for key, event in found.items()
            if not any(left.from_seq <= event.seq <= left.through_seq for left in ranges)
        }

    def key_holders(self, key: str) -> list[StoredEvent]:
        return self._tables.events.newest(self._moment, "by_key", key, limit=None)[::-1]

    def count(self) -> int:
        return self._tables.event_count.get(self._moment, ONLY) or 0

    def abandon(self, abandoned: AbandonedRange) -> None:
        self._tables.abandoned.add(self._moment, abandoned.branch, abandoned)

    def abandoned(self) -> list[AbandonedRange]:
        return self._tables.abandoned.all(self._moment)

    def erase(self, digests: Mapping[int, bytes]) -> None:
        for seq, digest in digests.items():
            event = self._tables.events.expect(self._moment, seq)
            self._tables.events.put(self._moment, seq, event._replace(body=None, salt=None, body_digest=digest))


class MemoryRefs(Facet):
    """`ports.RefFacet` in memory."""

    def add(self, texts: Sequence[str], first_id: int, sightings: Sequence[tuple[int, int, bool]]) -> None:
        for ref_id, text in enumerate(texts, start=first_id):
            self._tables.refs.add(self._moment, ref_id, (ref_id, text))
        for ref_id, seq, declared in sightings:
            self._tables.sightings.add(self._moment, (seq, ref_id), (seq, ref_id, declared))

    def texts(self, ref_ids: Iterable[int]) -> dict[int, str]:
        rows = (self._tables.refs.get(self._moment, ref_id) for ref_id in ref_ids)
        return {row[0]: row[1] for row in rows if row is not None and row[1] is not None}

    def find(self, texts: Sequence[str]) -> dict[str, int]:
        newest = ((text, self._tables.refs.newest(self._moment, "text", text)) for text in texts)
        return {text: ref_id for text, rows in newest for ref_id, held in rows if held == text}  # not if erased

    def erase(self, ref_ids: Collection[int]) -> None:
        for ref_id in ref_ids:
            self._tables.refs.put(self._moment, ref_id, (ref_id, None))

    def sightings(self, ref_id: int, through_seq: int, limit: int) -> list[tuple[int, bool]]:
        rows = self._tables.sightings.newest(self._moment, "ref", ref_id, (through_seq, ref_id), limit)
        return [(seq, declared) for seq, _, declared in rows]

    def all_sightings(self) -> Iterator[tuple[int, int, bool]]:
        return iter(self._tables.sightings.all(self._moment))

    def all_texts(self) -> Iterator[tuple[int, str | None]]:
        return iter(self._tables.refs.all(self._moment))

    def check_keys(self) -> None:
        """Texts and numbers are one table here."""


class MemoryRegister(Facet):
    """`ports.RegisterFacet` in memory."""

    def standing(self, kind: FactKind, subject: str) -> list[Fact]:
        return [fact for fact in self._all_standing() if (fact.key.kind, fact.key.subject) == (kind, subject)]

    def open_calls(self) -> list[Fact]:
        calls = (fact for fact in self._all_standing() if fact.key.kind is FactKind.CALL)
        return [fact for fact in calls if fact.state is FactState.STANDING]

    def _all_standing(self) -> list[Fact]:
        return list((self._tables.standing.get(self._moment, ONLY) or {}).values())

    def as_of(self, seq: int) -> list[Fact]:
        return [
            fact
            for fact in self.all()
            if fact.from_seq <= seq and (fact.through_seq is None or seq <= fact.through_seq)
        ]

    def begin(self, facts: Sequence[Fact]) -> None:
        for fact in facts:
            self._tables.facts.add(self._moment, (fact.from_seq, fact.ordinal), fact)
        self._hold(facts)

    def end(self, facts: Sequence[Fact]) -> None:
        ended = []
        for fact in facts:
            place = (fact.from_seq, fact.ordinal)
            ended.append(replace(self._tables.facts.expect(self._moment, place), through_seq=fact.through_seq))
            self._tables.facts.put(self._moment, place, ended[-1])
        self._hold(ended)

    def _hold(self, facts: Sequence[Fact]) -> None:
        standing = {(fact.from_seq, fact.ordinal): fact for fact in (*self._all_standing(), *facts)}
        holding = {place: fact for place, fact in standing.items() if fact.through_seq is None}
        self._tables.standing.put(self._moment, ONLY, dict(sorted(holding.items())))

    def newest(self, kind: FactKind, subject: str, through_seq: int | None = None) -> Fact | None:
        high = None if through_seq is None else (through_seq + 1, -1)
        return next(iter(self._tables.facts.newest(self._moment, "about", (kind, subject), high)), None)

    def count_standing(self) -> int:
        return len(self._all_standing())

    def all(self) -> Iterator[Fact]:
        return iter(self._tables.facts.all(self._moment))
