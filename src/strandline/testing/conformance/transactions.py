"""All or nothing, snapshots, and the life of a store."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from strandline.errors import StoreUnavailableError, StrandlineError
from strandline.ports import Store, Transaction
from strandline.testing.conformance.base import REFUSALS, OpenStore, StoreLaws
from strandline.testing.conformance.stage import FAR, SCOPE, append, dump, give_up, populate
from strandline.testing.values import (
    make_attempt,
    make_candidate,
    make_event,
    make_fact,
    make_foreign,
    make_lineage,
    make_segment,
    make_summary,
    make_view,
)

PATIENCE_S = 60.0
WRITES: dict[str, Callable[[Transaction], object]] = {
    "head": lambda tx: tx.log.set_head(tx.log.head()),
    "event": lambda tx: tx.log.insert([make_event(99)]),
    "reference": lambda tx: tx.refs.add(["new"], 99, []),
    "sighting": lambda tx: tx.refs.add([], 99, [(1, 2, True)]),
    "fact": lambda tx: tx.register.begin([make_fact("new", 99)]),
    "view": lambda tx: tx.views.put(make_view("new", view_id=99)),
    "candidate": lambda tx: tx.jobs.add_candidate(make_candidate("new")),
    "attempt": lambda tx: tx.jobs.add_attempt(make_attempt("new", "early candidate-1", number=99)),
    "summary": lambda tx: tx.summaries.add(make_summary(99, [make_segment("new", 1, 1)]), []),
    "foreign summary": lambda tx: tx.summaries.add_foreign([make_foreign("new", 1)]),
    "lineage": lambda tx: tx.lineage.add(make_lineage(99)),
}


class Abort(BaseException):
    """Like KeyboardInterrupt: no Exception."""


class TransactionLaws(StoreLaws):
    """Laws of `Transaction` and `Store`."""

    def test_a_commit_is_seen_whole_and_by_its_own_transaction_before(self, store: Store) -> None:
        """I2, I5: what was written is read back in the transaction, and the same after it."""
        with store.write(SCOPE) as tx:
            populate(tx, "early")
            inside = dump(tx)
        with store.read(SCOPE) as tx:
            assert dump(tx) == inside
            assert [event.seq for event in tx.log.read(1, FAR)] == [1, 2, 3]

    @pytest.mark.parametrize("error", [RuntimeError, Abort, GeneratorExit])
    def test_a_rollback_leaves_nothing(self, store: Store, error: type[BaseException]) -> None:
        """I1, I2, I5: in every facet, for new rows and changed ones, and whatever the exception; then work goes on."""
        with store.write(SCOPE) as tx:
            populate(tx, "early")
            before = dump(tx)
        with pytest.raises(error):
            give_up(store, SCOPE, "late", error)
        with store.read(SCOPE) as tx:
            assert dump(tx) == before
            assert tx.refs.find(["late handle"]) == {}
            assert tx.log.by_keys(["late-4"]) == {}
        with store.write(SCOPE) as tx:
            assert dump(tx) == before
            populate(tx, "late")
            assert [event.seq for event in tx.log.read(1, FAR)] == [1, 2, 3, 4, 5, 6]

    def test_a_rollback_of_the_first_write_leaves_no_workflow(self, store: Store) -> None:
        """I1, I21: not even its name."""
        with store.read(SCOPE) as tx:
            nothing = dump(tx)
        with pytest.raises(RuntimeError):
            give_up(store, SCOPE, "early")
        assert store.scopes() == []
        with store.read(SCOPE) as tx:
            assert dump(tx) == nothing

    def test_reading_makes_nothing(self, store: Store) -> None:
        """I21: a name that was only asked for is not there."""
        with store.read(SCOPE) as tx:
            dump(tx)
        assert store.scopes() == []
        assert store.scopes("acme") == []

    @pytest.mark.parametrize("what", WRITES)
    def test_a_read_transaction_refuses_to_write(self, store: Store, what: str) -> None:
        """I2: with an error, and without an effect."""
        with store.write(SCOPE) as tx:
            populate(tx, "early")
            before = dump(tx)
        with pytest.raises(StrandlineError), store.read(SCOPE) as tx:
            WRITES[what](tx)
        with store.read(SCOPE) as tx:
            assert dump(tx) == before

    @pytest.mark.parametrize("what", WRITES)
    def test_a_transaction_that_is_over_writes_nothing(self, store: Store, what: str) -> None:
        """I2, I6: a facet that outlived its transaction has no lock any more: it is refused."""
        with store.write(SCOPE) as tx:
            populate(tx, "early")
            before = dump(tx)
        with pytest.raises(REFUSALS):
            WRITES[what](tx)
        with store.read(SCOPE) as reader:
            assert dump(reader) == before

    def test_a_reader_keeps_its_snapshot_while_a_writer_commits(self, store: Store) -> None:
        """I7: one state for the whole life of a read, and the writer doesn't wait for it."""

        def write() -> None:
            with store.write(SCOPE) as tx:
                populate(tx, "late")

        with store.write(SCOPE) as tx:
            populate(tx, "early")
        with ThreadPoolExecutor(1) as pool, store.read(SCOPE) as tx:
            before = dump(tx)
            pool.submit(write).result(PATIENCE_S)
            assert dump(tx) == before
            assert tx.log.by_keys(["late-4"]) == {}
        with store.read(SCOPE) as tx:
            assert tx.log.count() == 6

    def test_a_snapshot_of_a_fork_is_one_of_its_family(self, store: Store) -> None:
        """I7, C22: what it was forked from, or what was forked from it, is read as of the same moment."""
        fork = replace(SCOPE, workflow="fork")
        with store.write(SCOPE) as tx:
            append(tx)
        with store.write(fork) as tx:
            tx.log.set_head(replace(tx.log.head(), parent=SCOPE.workflow))
        with store.read(fork) as reader:
            assert reader.log.head().parent == SCOPE.workflow
            with store.write(SCOPE) as tx:
                append(tx)
            assert reader.relative(SCOPE.workflow).log.count() == 1
        with store.read(SCOPE) as reader:
            assert reader.log.count() == 2
            with store.write(fork) as tx:
                tx.log.set_head(replace(tx.log.head(), cases=7))
            assert reader.relative(fork.workflow).log.head().cases == 0

    def test_a_snapshot_of_nothing_stays_empty(self, store: Store) -> None:
        """I7: also when the workflow is made while it is open."""
        with store.read(SCOPE) as reader:
            nothing = dump(reader)
            with store.write(SCOPE) as tx:
                populate(tx, "early")
            assert dump(reader) == nothing

    def test_nobody_reads_what_is_not_committed(self, store: Store) -> None:
        """I7: a read inside a write, of the same thread, sees the state before; the write goes on."""
        with store.write(SCOPE) as tx:
            populate(tx, "early")
            before = dump(tx)
        with store.write(SCOPE) as tx:
            populate(tx, "late")
            with store.read(SCOPE) as reader:
                assert dump(reader) == before
            append(tx)
        with store.read(SCOPE) as reader:
            assert reader.log.count() == 7

    def test_a_later_snapshot_sees_the_later_state(self, store: Store) -> None:
        """I7: each of several open snapshots has its own state, oldest and newest alike."""
        with store.write(SCOPE) as tx:
            append(tx)
        with store.read(SCOPE) as first:
            with store.write(SCOPE) as tx:
                append(tx)
            with store.read(SCOPE) as second:
                for _ in range(3):
                    with store.write(SCOPE) as tx:
                        append(tx)
                assert second.log.head().revision == second.log.count() == 2
            assert first.log.head().revision == first.log.count() == 1
        with store.read(SCOPE) as third:
            assert third.log.head().revision == third.log.count() == 5

    def test_the_digest_key_is_made_once(self, open_store: OpenStore) -> None:
        """SPEC C31: 32 bytes; for a durable store the same whenever it is opened."""
        store = open_store()
        key = store.digest_key
        assert isinstance(key, bytes)
        assert len(key) == 32
        assert store.digest_key == key
        store.close()
        if self.durable:
            again = open_store()
            assert again.digest_key == key
            again.close()

    def test_what_nobody_else_can_open_has_no_path(self, open_store: OpenStore) -> None:
        """C21: a hint names a store only where a command could open it."""
        store = open_store()
        assert store.path is None if not self.durable else store.path
        store.close()

    def test_a_healthy_store_has_no_problems(self, store: Store) -> None:
        """C5: what the suite writes is whole in the engine's own eyes."""
        assert store.problems() == []
        with store.write(SCOPE) as tx:
            populate(tx, "early")
        assert store.problems() == []

    def test_a_closed_store_refuses_and_closing_again_does_nothing(self, store: Store) -> None:
        """I2, I22: an error that says so, never an empty answer."""
        with store.write(SCOPE) as tx:
            append(tx)
        store.close()
        store.close()
        with pytest.raises(StoreUnavailableError), store.read(SCOPE):
            pass
        with pytest.raises(StoreUnavailableError), store.write(SCOPE):
            pass
        with pytest.raises(StoreUnavailableError):
            store.scopes()
