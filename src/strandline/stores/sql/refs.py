"""The reference facet: blocks of texts, the way from a text to its number, and where each was seen.

A batch of events writes one block: the texts that it brought, and where it saw them. A reference that is seen again
later gets a row per batch. Seqs are kept as varints of 2·(seq − the one before) + declared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest
from typing import Final

from strandline.codec import decode_varints, encode_varints, fold, keyed_number, pack, unfold, unpack
from strandline.errors import CorruptRecordError
from strandline.stores.sql.session import Row, Session, check_seal, seal

KEYS_AT_ONCE: Final = 8  # as many as the statement ref_keys takes
_NO_DIGEST: Final = -1

Seen = list[tuple[int, bool]]  # (seq, declared), oldest first


@dataclass(frozen=True, slots=True)
class _Block:
    first_id: int
    texts: list[str | None]
    seen: bytes

    @property
    def end(self) -> int:
        return self.first_id + len(self.texts)


class SqlRefs:
    """`ports.RefFacet` over SQL."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._place = ",".join(map(str, session.ids)).encode()

    # ------------------------------------------------------------------------------------------ writing

    def add(self, texts: Sequence[str], first_id: int, sightings: Sequence[tuple[int, int, bool]]) -> None:
        if not texts and not sightings:
            return
        seen: dict[int, Seen] = defaultdict(list)
        for ref_id, seq, declared in sightings:
            seen[ref_id].append((seq, declared))
        if texts:
            values = (first_id, fold(pack(list(texts))), fold(_encode_block(seen, first_id, len(texts))))
            digest = seal(self._session, "ref_block", values)
            self._session.send(
                "add_ref_block", first_id=first_id, texts=values[1], sightings=values[2], row_digest=digest
            )
            keys = [
                (self._digest(text), ref_id, self._proof(ref_id, text))
                for ref_id, text in enumerate(texts, start=first_id)
            ]
            self._session.run_many("add_ref_key", sorted(keys))
        again = [
            (ref_id, where[0][0], data := _encode_seen(where, where[0][0]), self._row_proof(ref_id, where[0][0], data))
            for ref_id, where in sorted(seen.items())
            if not first_id <= ref_id < first_id + len(texts)
        ]
        self._session.run_many("add_sighting", again)

    def erase(self, ref_ids: Collection[int]) -> None:
        waiting = sorted(set(ref_ids))
        while waiting:
            (row,) = self._session.rows("ref_block_of", ref_id=waiting[0])
            block, sightings = self._to_block(row), row[2]
            inside, waiting = [r for r in waiting if r < block.end], [r for r in waiting if r >= block.end]
            for ref_id in inside:
                place = ref_id - block.first_id
                text, block.texts[place] = block.texts[place], None
                if text is not None:
                    self._session.send("drop_ref_key", digest=self._digest(text), ref_id=ref_id)
            values = (block.first_id, fold(pack(block.texts)), sightings)
            digest = seal(self._session, "ref_block", values)
            self._session.send("erase_ref_block", first_id=block.first_id, texts=values[1], row_digest=digest)

    # ------------------------------------------------------------------------------------------ texts

    def find(self, texts: Sequence[str]) -> dict[str, int]:
        by_digest: dict[int, list[str]] = defaultdict(list)
        for text in dict.fromkeys(texts):
            by_digest[self._digest(text)].append(text)
        found: dict[str, int] = {}
        digests = iter(by_digest)
        while some := list(islice(digests, KEYS_AT_ONCE)):
            some += [_NO_DIGEST] * (KEYS_AT_ONCE - len(some))
            for digest, ref_id, proof in self._session.rows("ref_keys", **{f"d{i}": d for i, d in enumerate(some, 1)}):
                known = self._proven(by_digest[digest], digest, ref_id, proof)
                if known is not None:
                    found[known] = ref_id
        return found

    def _proven(self, texts: Iterable[str], digest: int, ref_id: int, proof: int) -> str | None:
        """Return the one of `texts` that has this number; None when another text has their digest."""
        for candidate in texts:
            if self._proof(ref_id, candidate) == proof:
                return candidate
        self._check_key(digest, ref_id, proof, self.texts([ref_id]).get(ref_id))
        return None

    def _check_key(self, digest: int, ref_id: int, proof: int, text: str | None) -> None:
        if text is None or (digest, proof) != (self._digest(text), self._proof(ref_id, text)):
            raise CorruptRecordError("the key of the reference is not that of its text", place=f"ref_key {ref_id}")

    def texts(self, ref_ids: Iterable[int]) -> dict[int, str]:
        found: dict[int, str] = {}
        block: _Block | None = None
        for ref_id in sorted(set(ref_ids)):
            if block is None or ref_id >= block.end:
                block = self._block_of(ref_id)
                if block is None:
                    continue
            text = block.texts[ref_id - block.first_id]
            if text is not None:
                found[ref_id] = text
        return found

    def all_texts(self) -> Iterator[tuple[int, str | None]]:
        for block in map(self._to_block, self._session.stream("all_ref_blocks")):
            yield from enumerate(block.texts, start=block.first_id)

    def check_keys(self) -> None:
        texts = ((ref_id, text) for ref_id, text in self.all_texts() if text is not None)
        keys = self._session.stream("all_ref_keys")  # by number, as the texts are
        for held, key in zip_longest(texts, keys):
            if held is None or key is None or held[0] != key[1]:
                place = f"ref_key {held[0] if held else key[1]}"
                raise CorruptRecordError("texts and keys of references are not the same ones", place=place)
            digest, ref_id, proof = key
            self._check_key(digest, ref_id, proof, held[1])

    def _block_of(self, ref_id: int) -> _Block | None:
        """Return the block that holds the number, or None."""
        for row in self._session.rows("ref_block_of", ref_id=ref_id):
            block = self._to_block(row)
            return block if ref_id < block.end else None
        return None

    def _to_block(self, row: Row) -> _Block:
        first_id, texts, seen, _ = row
        check_seal(self._session, "ref_block", row, first_id)
        place = f"ref_block {first_id}"
        return _Block(first_id, unpack(unfold(texts, place), list[str | None], place), unfold(seen, place))

    # ------------------------------------------------------------------------------------------ sightings

    def sightings(self, ref_id: int, through_seq: int, limit: int) -> list[tuple[int, bool]]:
        found: Seen = []
        rows = self._session.rows("sightings", ref_id=ref_id, through_seq=through_seq, limit=limit)
        for first_seq, data, proof in rows:
            found += _until(through_seq, self._to_seen(ref_id, first_seq, data, proof))
        if len(found) < limit:
            block = self._block_of(ref_id)
            if block is not None:
                found += _until(through_seq, _decode_block(block)[ref_id - block.first_id])
        return found[:limit]

    def all_sightings(self) -> Iterator[tuple[int, int, bool]]:
        for block in map(self._to_block, self._session.stream("all_ref_blocks")):
            for ref_id, seen in enumerate(_decode_block(block), start=block.first_id):
                for seq, declared in seen:
                    yield seq, ref_id, declared
        for ref_id, first_seq, data, proof in self._session.stream("all_sightings"):
            for seq, declared in self._to_seen(ref_id, first_seq, data, proof):
                yield seq, ref_id, declared

    def _to_seen(self, ref_id: int, first_seq: int, data: bytes, proof: int) -> Seen:
        if not isinstance(data, bytes) or self._row_proof(ref_id, first_seq, data) != proof:
            place = f"ref_sighting {ref_id} from event {first_seq}"
            raise CorruptRecordError("the row does not match its digest", place=place)
        return _decode_seen(decode_varints(data), first_seq)

    # ------------------------------------------------------------------------------------------ proofs

    def _digest(self, text: str) -> int:
        return keyed_number(self._session.digest_key, b"sl.ref.text", text.encode())

    def _proof(self, ref_id: int, text: str) -> int:
        return self._keyed(b"sl.ref.key", f",{ref_id},{text}".encode())

    def _row_proof(self, ref_id: int, first_seq: int, data: bytes) -> int:
        return self._keyed(b"sl.ref.seen", f",{ref_id},{first_seq},".encode() + data)

    def _keyed(self, purpose: bytes, data: bytes) -> int:
        return keyed_number(self._session.digest_key, purpose, self._place + data)


def _until(through_seq: int, seen: Seen) -> Seen:
    """Return what was seen at or before a seq, newest first."""
    return [(seq, declared) for seq, declared in reversed(seen) if seq <= through_seq]


def _encode_seen(seen: Seen, base: int) -> bytes:
    numbers = []
    for seq, declared in seen:
        numbers.append((seq - base) << 1 | declared)
        base = seq
    return encode_varints(numbers)


def _decode_seen(numbers: Iterable[int], base: int) -> Seen:
    seen = []
    for number in numbers:
        base += number >> 1
        seen.append((base, bool(number & 1)))
    return seen


def _encode_block(seen: dict[int, Seen], first_id: int, count: int) -> bytes:
    """Encode where a batch saw its new references: the first seq, then of each their number and their seqs."""
    new = [seen.get(ref_id, []) for ref_id in range(first_id, first_id + count)]
    base = min((where[0][0] for where in new if where), default=0)
    out = encode_varints([base])
    for where in new:
        out += encode_varints([len(where)]) + _encode_seen(where, base)
    return out


def _decode_block(block: _Block) -> list[Seen]:
    numbers = iter(decode_varints(block.seen))
    base = next(numbers)
    return [_decode_seen(islice(numbers, next(numbers)), base) for _ in block.texts]
