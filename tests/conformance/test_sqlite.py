"""SqliteStore keeps every law of a store."""

from functools import partial
from pathlib import Path

import pytest

from strandline.stores.sqlite import SqliteStore
from strandline.testing import FixedClock, SeededEntropy
from strandline.testing.conformance import StoreConformance
from strandline.testing.conformance.base import OpenStore


class TestSqliteStore(StoreConformance):
    durable = True

    @pytest.fixture
    def open_store(self, tmp_path: Path) -> OpenStore:
        return partial(SqliteStore, str(tmp_path / "store.db"), clock=FixedClock(), entropy=SeededEntropy(1))
