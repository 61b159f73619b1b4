"""The facet of the index of words: a row for each word of a chunk of events, and the mark up to which there are rows.

Rows are written once, with their chunk; only an erasure takes an event out of them. The events of a row are varints of
the gaps between them, or their bits as they are, whichever is shorter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from strandline.codec import decode_varints, encode_varints, keyed_number
from strandline.errors import CorruptRecordError
from strandline.limits import SEARCH_PAGE_CHUNKS
from strandline.stores.sql.session import Row, Session, check_seal, seal

_GAPS: Final = b"\0"
_BITS: Final = b"\1"
_BEYOND: Final = b"\xff"  # sorts behind all of UTF-8


class SqlSearch:
    """`ports.SearchFacet` over SQL."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._place = ",".join(map(str, session.ids)).encode()

    def ranges(self) -> list[tuple[int, int]]:
        found = []
        for row in self._session.rows("search_mark"):
            check_seal(self._session, "search_mark", row, row[0])
            found.append((row[0], row[1]))
        return found

    def add(self, first_seq: int, through_seq: int, events: Mapping[str, int]) -> None:
        known = self.ranges()
        if not known:
            self.reset()  # rows that lost their mark are nobody's
        begin, end = known[-1] if known else (first_seq, first_seq - 1)
        if first_seq != end + 1:
            raise CorruptRecordError(f"a chunk from event {first_seq} behind event {end}", place="search_mark")
        rows = sorted((word.encode(), first_seq, _pack(mask)) for word, mask in events.items())
        self._session.run_many("add_posting", [(*row, self._proof(*row)) for row in rows])
        digest = seal(self._session, "search_mark", (begin, through_seq))
        self._session.send("set_search_mark", from_seq=begin, through_seq=through_seq, row_digest=digest)

    def postings(self, word: str, through_seq: int) -> Iterator[tuple[int, int]]:
        key = word.encode()
        while True:
            rows = self._session.rows("postings", word=key, through_seq=through_seq, limit=SEARCH_PAGE_CHUNKS)
            for first_seq, events, proof in rows:
                yield first_seq, self._events((key, first_seq, events, proof))
            if len(rows) < SEARCH_PAGE_CHUNKS:
                return
            through_seq = rows[-1][0] - 1

    def beginning(self, beginning: str, limit: int) -> list[tuple[str, int, int]]:
        low = beginning.encode()
        return [
            self._to_posting(row)
            for row in self._session.rows("postings_of_beginning", low=low, high=low + _BEYOND, limit=limit)
        ]

    def drop(self, seq: int, words: Iterable[str]) -> None:
        for word in words:
            first, mask = next(self.postings(word, seq), (seq, 0))
            left = mask & ~(1 << seq - first)
            if left == mask:
                continue
            row = (word.encode(), first, _pack(left))
            if left:
                self._session.send("set_posting", word=row[0], first_seq=first, events=row[2], proof=self._proof(*row))
            else:
                self._session.send("drop_posting", word=row[0], first_seq=first)

    def reset(self) -> None:
        self._session.send("drop_postings")
        self._session.send("drop_search_mark")

    def all(self) -> Iterator[tuple[str, int, int]]:
        return map(self._to_posting, self._session.stream("all_postings"))

    def _to_posting(self, row: Row) -> tuple[str, int, int]:
        return bytes(row[0]).decode(errors="replace"), row[1], self._events(row)

    def _events(self, row: Row) -> int:
        word, first_seq, events, proof = row
        if self._proof(word, first_seq, events) != proof:
            place = f"search_posting {bytes(word).decode(errors='replace')!r} from event {first_seq}"
            raise CorruptRecordError("the row does not match its digest", place=place)
        return _unpack(events)

    def _proof(self, word: bytes, first_seq: int, events: bytes) -> int:
        told = b",".join((self._place, b"%d" % first_seq, b"%d" % len(word), word, events))
        return keyed_number(self._session.digest_key, b"sl.search", told)


def _pack(mask: int) -> bytes:
    bits = mask.to_bytes((mask.bit_length() + 7) // 8, "little")
    if mask.bit_count() >= len(bits):  # each gap takes a byte at least
        return _BITS + bits
    gaps, before = [], -1
    while mask:
        low = (mask & -mask).bit_length() - 1
        gaps.append(low - before - 1)
        before = low
        mask &= mask - 1
    packed = encode_varints(gaps)
    return _GAPS + packed if len(packed) < len(bits) else _BITS + bits


def _unpack(data: bytes) -> int:
    if data[:1] == _BITS:
        return int.from_bytes(data[1:], "little")
    mask, at = 0, -1
    for gap in decode_varints(data[1:]):
        at += gap + 1
        mask |= 1 << at
    return mask
