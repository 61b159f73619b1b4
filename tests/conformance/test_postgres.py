"""PostgresStore keeps every law of a store, on the newest PostgreSQL and on the oldest that is supported."""

from functools import partial

import pytest

from strandline.stores.postgres.store import PostgresStore
from strandline.testing import FixedClock, SeededEntropy
from strandline.testing.conformance import StoreConformance
from strandline.testing.conformance.base import OpenStore


class TestPostgresStore(StoreConformance):
    durable = True

    @pytest.fixture
    def open_store(self, postgres_store_url: str) -> OpenStore:
        return partial(PostgresStore, postgres_store_url, clock=FixedClock(), entropy=SeededEntropy(1))


class TestOldestPostgresStore(TestPostgresStore):
    @pytest.fixture
    def postgres_version(self) -> int:
        return 15
