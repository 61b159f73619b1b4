"""The reference facet: the one table of texts, and the index of sightings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from strandline.stores.sql.session import Session, check_seal, seal

BULK_REFS_MIN: Final = 64  # so many at once are read by their range, if it is not much wider
BULK_SPREAD: Final = 8


class SqlRefs:
    """`ports.RefFacet` over SQL."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def intern(self, texts: Sequence[str], next_id: int) -> dict[str, int]:
        numbers = self.find(texts)
        new = [text for text in dict.fromkeys(texts) if text not in numbers]
        rows = []
        for ref_id, text in enumerate(new, start=next_id):
            numbers[text] = ref_id
            rows.append((ref_id, text, seal(self._session, "ref", (ref_id, text))))
        self._session.run_many("add_ref", rows)
        return numbers

    def texts(self, ref_ids: Iterable[int]) -> dict[int, str]:
        wanted = set(ref_ids)
        found = {}
        if len(wanted) >= BULK_REFS_MIN and max(wanted) - min(wanted) < BULK_SPREAD * len(wanted):
            for ref_id, text, digest in self._session.stream("refs_between", first=min(wanted), last=max(wanted)):
                if ref_id in wanted:
                    check_seal(self._session, "ref", (ref_id, text, digest), ref_id)
                    if text is not None:
                        found[ref_id] = text
            return found
        for ref_id in wanted:
            for text, digest in self._session.rows("ref_by_id", ref_id=ref_id):
                check_seal(self._session, "ref", (ref_id, text, digest), ref_id)
                if text is not None:
                    found[ref_id] = text
        return found

    def find(self, texts: Sequence[str]) -> dict[str, int]:
        found: dict[str, int] = {}
        for text in texts:
            for ref_id, digest in self._session.rows("ref_by_text", text=text):
                check_seal(self._session, "ref", (ref_id, text, digest), ref_id)
                found[text] = ref_id
        return found

    def index(self, rows: Sequence[tuple[int, int, bool]]) -> None:
        self._session.run_many("add_sighting", rows)

    def sightings(self, ref_id: int, through_seq: int, limit: int) -> list[tuple[int, bool]]:
        rows = self._session.rows("sightings", ref_id=ref_id, through_seq=through_seq, limit=limit)
        return [(seq, bool(declared)) for seq, declared in rows]

    def all_sightings(self) -> Iterator[tuple[int, int, bool]]:
        for seq, ref_id, declared in self._session.stream("all_sightings"):
            yield seq, ref_id, bool(declared)

    def all_ids(self) -> Iterator[int]:
        for (ref_id,) in self._session.stream("all_refs"):
            yield ref_id
