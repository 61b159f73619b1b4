"""What is committed stays, whoever opens the store next."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import pytest

from strandline.ports import Store
from strandline.testing.conformance.base import OpenStore, StoreLaws
from strandline.testing.conformance.processes import KILLED, append_many, die_while_writing
from strandline.testing.conformance.stage import FAR, SCOPE, append, dump, populate

PROCESSES = 3
ROUNDS = 20
PATIENCE_S = 120.0


class DurabilityLaws(StoreLaws):
    """Laws about opening the store again. Of a store that is not durable they ask only that it begins empty."""

    @pytest.fixture
    def open_durable(self, open_store: OpenStore) -> OpenStore:
        """Give the callable that opens the same data again, and again."""
        if not self.durable:
            pytest.skip("durable = False: there is nothing to open again")
        return open_store

    def test_a_store_that_is_not_durable_begins_empty(self, open_store: OpenStore) -> None:
        """I21: two such stores share nothing. (For a durable one: they share everything.)"""
        first, second = open_store(), open_store()
        with first.write(SCOPE) as tx:
            populate(tx, "early")
        assert bool(second.scopes()) == self.durable
        first.close()
        second.close()

    def test_everything_is_there_when_the_store_is_opened_again(self, open_durable: OpenStore) -> None:
        """I2: in every facet, and work goes on where it stopped."""
        store = open_durable()
        with store.write(SCOPE) as tx:
            populate(tx, "early")
            before = dump(tx)
        store.close()
        again = open_durable()
        assert again.scopes() == [SCOPE]
        with again.read(SCOPE) as tx:
            assert dump(tx) == before
        with again.write(SCOPE) as tx:
            populate(tx, "late")
            assert [event.seq for event in tx.log.read(1, FAR)] == [1, 2, 3, 4, 5, 6]
        assert again.problems() == []
        again.close()

    def test_two_open_stores_see_each_others_commits(self, open_durable: OpenStore, store: Store) -> None:
        """I2, I7: nothing that matters is kept in one of them."""
        other = open_durable()
        for turn in range(4):
            writer, reader = (store, other) if turn % 2 else (other, store)
            with writer.write(SCOPE) as tx:
                populate(tx, f"turn {turn} ")
                written = dump(tx)
            with reader.read(SCOPE) as tx:
                assert dump(tx) == written
        other.close()

    def test_concurrent_processes_leave_no_gap_and_no_duplicate(self, open_durable: OpenStore) -> None:
        """I1, I2: several processes on one workflow: 0 events lost."""
        open_durable().close()
        spawn = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(PROCESSES, mp_context=spawn) as pool:
            running = [pool.submit(append_many, open_durable, SCOPE, str(n), ROUNDS) for n in range(PROCESSES)]
            assert [each.result(PATIENCE_S) for each in running] == [ROUNDS] * PROCESSES
        store = open_durable()
        with store.read(SCOPE) as tx:
            events = list(tx.log.read(1, FAR))
            assert [event.seq for event in events] == list(range(1, PROCESSES * ROUNDS + 1))
            keys = {f"{number}/{turn}" for number in range(PROCESSES) for turn in range(ROUNDS)}
            assert {event.key for event in events} == keys
            assert tx.log.head().revision == tx.log.count() == PROCESSES * ROUNDS
        assert store.problems() == []
        store.close()

    def test_a_process_that_dies_while_writing_leaves_nothing_and_blocks_nobody(self, open_durable: OpenStore) -> None:
        """I1, I2: what was acknowledged is there, what was not is not, and the lock is free."""
        process = multiprocessing.get_context("spawn").Process(target=die_while_writing, args=(open_durable, SCOPE))
        process.start()
        process.join(PATIENCE_S)
        assert process.exitcode == KILLED
        process.close()
        store = open_durable()
        with store.read(SCOPE) as tx:
            assert [event.key for event in tx.log.read(1, FAR)] == ["acknowledged-1"]
            assert tx.log.head().revision == tx.log.count() == 1
            assert tx.refs.find(["never committed handle"]) == {}
        with store.write(SCOPE) as tx:
            assert [event.seq for event in append(tx)] == [2]
        assert store.problems() == []
        store.close()
