"""MemoryStore keeps every law of a store; and the laws that are its own."""

import pytest

from strandline.errors import InvalidInputError, StoreUnavailableError
from strandline.model.ids import Scope
from strandline.stores.memory import MemoryStore
from strandline.testing import SeededEntropy
from strandline.testing.conformance import StoreConformance
from strandline.testing.conformance.base import OpenStore
from strandline.testing.conformance.stage import SCOPE, append

KEY = bytes(range(32))


class TestMemoryStore(StoreConformance):
    durable = False

    @pytest.fixture
    def open_store(self) -> OpenStore:
        entropy = SeededEntropy(1)
        return lambda: MemoryStore(entropy.salt() + entropy.salt())


@pytest.mark.parametrize("key", [b"", bytes(31), bytes(33)])
def test_a_digest_key_has_32_bytes(key: bytes) -> None:
    with pytest.raises(InvalidInputError, match="32 bytes"):
        MemoryStore(key)


def test_a_write_inside_a_write_of_the_same_thread_is_refused_at_once() -> None:
    """I22: it would wait for itself. The outer one goes on; another workflow is another lock."""
    store = MemoryStore(KEY)
    with store.write(SCOPE) as outer:
        append(outer)
        with pytest.raises(StoreUnavailableError, match="already"), store.write(SCOPE):
            pass
        with store.write(Scope(tenant="acme", workflow="another")) as other:
            append(other)
        append(outer)
    with store.read(SCOPE) as tx:
        assert tx.log.count() == 2


def test_a_snapshot_that_is_over_reads_nothing() -> None:
    """I7: its versions may be gone."""
    store = MemoryStore(KEY)
    with store.read(SCOPE) as tx:
        pass
    with pytest.raises(InvalidInputError, match="over"):
        tx.log.head()


def test_old_versions_go_when_nobody_reads_them() -> None:
    """Memory follows what is stored: the head's versions don't pile up, and an open reader keeps the one it needs."""
    store = MemoryStore(KEY)

    def versions() -> int:
        return len(store._workflows[SCOPE].tables.head._rows[0])

    for _ in range(5):
        with store.write(SCOPE) as tx:
            append(tx)
    assert versions() <= 2
    with store.write(SCOPE) as tx:
        for _ in range(5):
            append(tx)
    assert versions() <= 2
    with store.read(SCOPE) as reader:
        for _ in range(5):
            with store.write(SCOPE) as tx:
                append(tx)
        assert reader.log.head().revision == 10
    with store.write(SCOPE) as tx:
        append(tx)
    assert versions() <= 2
    assert not store._workflows[SCOPE].history.readers
