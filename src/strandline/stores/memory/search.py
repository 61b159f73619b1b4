"""The facet of the index of words over versioned tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from strandline.errors import CorruptRecordError
from strandline.stores.memory.schema import Facet
from strandline.stores.memory.tables import ONLY


class MemorySearch(Facet):
    """`ports.SearchFacet` in memory."""

    def ranges(self) -> list[tuple[int, int]]:
        mark = self._tables.search_marks.get(self._moment, ONLY)
        return [mark] if mark else []

    def add(self, first_seq: int, through_seq: int, events: Mapping[str, int]) -> None:
        begin, end = self._tables.search_marks.get(self._moment, ONLY) or (first_seq, first_seq - 1)
        if first_seq != end + 1:
            raise CorruptRecordError(f"a chunk from event {first_seq} behind event {end}", place="search_mark")
        for word, mask in events.items():
            self._tables.postings.add(self._moment, (word, first_seq), (word, first_seq, mask))
        self._tables.search_marks.put(self._moment, ONLY, (begin, through_seq))

    def postings(self, word: str, through_seq: int) -> Iterator[tuple[int, int]]:
        rows = self._tables.postings.newest(self._moment, "word", word, (word, through_seq), limit=None)
        return ((row[1], row[2]) for row in rows if row)

    def beginning(self, beginning: str, limit: int) -> list[tuple[str, int, int]]:
        return list(islice((row for row in self.all() if row[0].startswith(beginning)), limit))

    def drop(self, seq: int, words: Iterable[str]) -> None:
        for word in words:
            first, mask = next(self.postings(word, seq), (seq, 0))
            left = mask & ~(1 << seq - first)
            if left != mask:
                self._tables.postings.put(self._moment, (word, first), (word, first, left) if left else None)

    def reset(self) -> None:
        for row in filter(None, self._tables.postings.all(self._moment)):
            self._tables.postings.put(self._moment, row[:2], None)
        self._tables.search_marks.put(self._moment, ONLY, None)

    def all(self) -> Iterator[tuple[str, int, int]]:
        return filter(None, self._tables.postings.all(self._moment))
