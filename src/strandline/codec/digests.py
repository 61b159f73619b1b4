"""Digests and chains.

Digests run over stored bytes, never over a re-encoding (DESIGN §5). A body's digest is salted, so that nothing can be
guessed from it once the salt is erased (C31); digests of short content without a salt are keyed with the store's key.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Final

from strandline.codec.values import pack

DIGEST_BYTES: Final = 32
ROW_DIGEST_BYTES: Final = 8  # keyed: what has to be told from damage, not from a forger who has the key's file
NODE_DIGEST_BYTES: Final = 16
_SUMS: Final = 1 << (8 * DIGEST_BYTES)
EMPTY_CHAIN: Final = bytes(DIGEST_BYTES)  # the chain before the first event, and before the first lineage entry


def _hash(person: bytes, parts: Iterable[bytes], *, key: bytes = b"", size: int = DIGEST_BYTES) -> bytes:
    """Hash parts, each with its length before it, so that no two lists of parts run together."""
    told = b"".join([len(part).to_bytes(8, "little") + part for part in parts])
    return hashlib.blake2b(told, digest_size=size, key=key, person=person).digest()


def body_digest(salt: bytes, body: bytes) -> bytes:
    """Return H(salt ‖ body) of a body, a text or a state."""
    return hashlib.blake2b(salt + body, digest_size=DIGEST_BYTES, person=b"sl.body").digest()


def chain_record(previous: bytes, record: object) -> bytes:
    """Return the chain value of a lineage entry."""
    return _hash(b"sl.lineage", (previous, pack(record)))


def source_digest(previous: bytes, body_digests: Iterable[bytes]) -> bytes:
    """Fold body digests into a running source digest: H(…H(H(previous ‖ d1) ‖ d2)…) (I7)."""
    for digest in body_digests:
        previous = hashlib.blake2b(previous + digest, digest_size=DIGEST_BYTES, person=b"sl.source").digest()
    return previous


class RunningDigest:
    """A digest over a set of rows of numbers, taken one by one in any order: two long lists are compared unheld.

    The rows' digests are added up (multiset hashing, Clarke et al., 2003): enough against damage, not against forgers.
    """

    def __init__(self) -> None:
        self._sum = 0

    def add(self, *numbers: int) -> None:
        """Take a row."""
        row = ",".join(str(int(number)) for number in numbers).encode()
        digest = hashlib.blake2b(row, digest_size=DIGEST_BYTES, person=b"sl.rows").digest()
        self._sum = (self._sum + int.from_bytes(digest, "little")) % _SUMS

    @property
    def value(self) -> int:
        """The digest of the rows so far."""
        return self._sum


def text_digest(salt: bytes, *texts: str) -> bytes:
    """Return the salted digest of texts."""
    return _hash(b"sl.text", (salt, *(text.encode() for text in texts)))


def record_digest(record: object) -> bytes:
    """Return the digest of a model value that holds its own salt or only ids."""
    return _hash(b"sl.record", (pack(record),))


def store_digest(key: bytes, tenant: str | None) -> bytes:
    """Return what names a store outside of it; for each tenant another name: two have nothing in common (I21)."""
    return _hash(b"sl.store", () if tenant is None else (tenant.encode(),), key=key)


def witness_digest(witnessed: object) -> bytes:
    """Return the digest of what a witness says of a store."""
    return _hash(b"sl.witness", (pack(witnessed),))


def draft_digest(key: bytes, drafts: Sequence[object]) -> bytes:
    """Return the keyed digest of drafts: it outlives them, and nothing of what an erasure took can be guessed (C31)."""
    return _hash(b"sl.draft", (pack(tuple(drafts)),), key=key)


class NodeDigests:
    """Keyed digests of the contents of parts and blocks, each by its level, its kind and its bytes: the same content
    has the same name. Nobody without the key can guess a content from it, or make another of the same name.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._begun: dict[tuple[int, str], hashlib.blake2b] = {}

    def part(self, kind: str, data: bytes) -> bytes:
        """Return the digest of a part."""
        return self._digest(0, kind, data)

    def block(self, level: int, digests: Sequence[bytes]) -> bytes:
        """Return the digest of a block, from those of the nodes that it holds."""
        return self._digest(level, "", b"".join(digests))

    def _digest(self, level: int, kind: str, data: bytes) -> bytes:
        begun = self._begun.get((level, kind))
        if begun is None:
            told = b"%d,%d,%s" % (level, len(kind.encode()), kind.encode())
            begun = hashlib.blake2b(told, digest_size=NODE_DIGEST_BYTES, key=self._key, person=b"sl.node")
            self._begun[level, kind] = begun
        digest = begun.copy()
        digest.update(data)
        return digest.digest()


def row_digest(key: bytes, table: str, values: Iterable[object]) -> bytes:
    """Return the keyed digest that a mutable row carries."""
    return _hash(b"sl.row", (table.encode(), pack(list(values))), key=key, size=ROW_DIGEST_BYTES)


def job_id(key: bytes, *parts: object) -> str:
    """Return the id of a job: a keyed digest of what makes it this job (SPEC §2, candidate)."""
    return _hash(b"sl.job", (pack(list(parts)),), key=key, size=16).hex()


def keyed_hex(key: bytes, data: bytes) -> str:
    """Return a keyed digest of content as 32 hex digits, for import keys."""
    return _hash(b"sl.key", (data,), key=key, size=16).hex()


def keyed_number(key: bytes, purpose: bytes, data: bytes) -> int:
    """Return a keyed digest of content as a number of 47 bits, which SQLite stores in six bytes."""
    digest = hashlib.blake2b(data, digest_size=6, key=key, person=purpose).digest()
    return int.from_bytes(digest, "little") >> 1
