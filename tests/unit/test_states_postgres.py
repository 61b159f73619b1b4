"""Law (I3, I4, I14) on PostgreSQL: the tests of saved states through the client, and writers of several pools."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

import strandline
from strandline.testing import VirtualClock
from tests.unit.test_states import (  # noqa: F401  collected here, with another store
    TestWhatIsDeleted,
    TestWhatIsSavedIsLoaded,
    TestWhoIsLateIsRefused,
    TestWrites,
    one,
    states,
)


@pytest.fixture
def db(postgres_store_url):
    with strandline.open(postgres_store_url, clock=VirtualClock()) as opened:
        yield opened


def test_writers_of_several_pools_on_one_parent(postgres_store_url, db, states):  # noqa: F811
    """Of all who read the same state one goes on from it; the others are told, and their values are not there."""
    states.save("s0", {})
    seen = states.load().seen

    def save(number):
        with strandline.open(postgres_store_url) as mine:
            try:
                there = mine.tenant("acme").workflow("thread-1").states
                there.save(f"t{number}", {"n": one(f"{number}")}, parent="s0", seen=seen)
            except strandline.StateConflictError as error:
                return error.reason
            return "saved"

    with ThreadPoolExecutor(4) as pool:
        answers = sorted(pool.map(save, range(4)))
    assert answers == ["moved", "moved", "moved", "saved"]
    assert len(list(states.list())) == 2
    assert db.verify().ok
