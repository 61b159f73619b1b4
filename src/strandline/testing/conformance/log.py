"""The head row and the events."""

from __future__ import annotations

from dataclasses import replace

import pytest

from strandline.codec import EMPTY_CHAIN
from strandline.limits import APPEND_EVENTS_MAX
from strandline.model.lineage import AbandonedRange, WorkflowHead
from strandline.ports import KeyTakenError, Store, Transaction
from strandline.testing.conformance.base import REFUSALS, StoreLaws
from strandline.testing.conformance.stage import FAR, SCOPE, append
from strandline.testing.values import make_digest, make_event


class LogLaws(StoreLaws):
    """Laws of `LogFacet`."""

    def test_a_workflow_that_is_not_there_is_empty(self, store: Store) -> None:
        """I1: revision 0, the empty chains, no events. Read before anything was written."""
        with store.read(SCOPE) as tx:
            assert tx.log.head() == WorkflowHead(chain=EMPTY_CHAIN, lineage_chain=EMPTY_CHAIN)
            assert list(tx.log.read(1, FAR)) == []
            assert tx.log.count() == 0
        with store.write(SCOPE) as tx:
            assert tx.log.head() == WorkflowHead(chain=EMPTY_CHAIN, lineage_chain=EMPTY_CHAIN)

    def test_the_head_is_what_was_set_last(self, store: Store) -> None:
        """I1, I13: all counters come back, in the transaction that set them and after it."""
        head = WorkflowHead(
            revision=7,
            chain=make_digest(1),
            lineage_seq=6,
            lineage_chain=make_digest(2),
            branch=5,
            summary_no=4,
            ref_id=3,
            live_events=2,
            facts=8,
            attempts=9,
            foreign_summaries=10,
        )
        with store.write(SCOPE) as tx:
            tx.log.set_head(replace(head, revision=1))
            tx.log.set_head(head)
            assert tx.log.head() == head
        with store.read(SCOPE) as tx:
            assert tx.log.head() == head

    def test_events_come_back_by_seq_as_they_were_stored(self, store: Store) -> None:
        """I1: by seq whatever the order of insertion, both ends of the range included, nothing beside it."""
        events = [make_event(seq) for seq in range(1, 8)]
        with store.write(SCOPE) as tx:
            tx.log.insert(events[4:])
            tx.log.insert(events[:4])
            assert list(tx.log.read(1, 7)) == events
        with store.read(SCOPE) as tx:
            assert list(tx.log.read(1, FAR)) == events
            assert list(tx.log.read(3, 5)) == events[2:5]
            assert list(tx.log.read(7, 7)) == events[6:]
            assert list(tx.log.read(8, FAR)) == []
            assert list(tx.log.read(5, 3)) == []
            assert tx.log.count() == 7

    def test_a_missing_event_is_simply_not_there(self, store: Store) -> None:
        """I4: the store neither fills a gap nor refuses to read over it; the engine finds it by count and chain."""
        events = [make_event(seq) for seq in (1, 2, 4)]
        with store.write(SCOPE) as tx:
            tx.log.insert(events)
        with store.read(SCOPE) as tx:
            assert [event.seq for event in tx.log.read(1, 4)] == [1, 2, 4]
            assert tx.log.count() == 3

    def test_a_taken_key_refuses_the_whole_insert(self, store: Store) -> None:
        """I3: KeyTakenError, and none of the batch is added; the transaction goes on."""
        with store.write(SCOPE) as tx:
            tx.log.insert([make_event(1, key="a")])
        with store.write(SCOPE) as tx:
            with pytest.raises(KeyTakenError):
                tx.log.insert([make_event(2, key="b"), make_event(3, key="a"), make_event(4, key="c")])
            assert [event.seq for event in tx.log.read(1, FAR)] == [1]
            assert tx.log.count() == 1
            tx.log.insert([make_event(2, key="b")])
        with store.read(SCOPE) as tx:
            assert [event.key for event in tx.log.read(1, FAR)] == ["a", "b"]
            assert sorted(tx.log.by_keys(["a", "b", "c"])) == ["a", "b"]

    def test_a_key_taken_in_the_same_transaction_is_taken(self, store: Store) -> None:
        """I3: what was inserted before counts, committed or not."""
        with store.write(SCOPE) as tx:
            tx.log.insert([make_event(1, key="a")])
            with pytest.raises(KeyTakenError):
                tx.log.insert([make_event(2, key="a")])
            assert tx.log.count() == 1

    def test_a_key_twice_in_one_insert_is_refused(self, store: Store) -> None:
        """I3: a batch can't take one key twice, and none of it is added."""
        with store.write(SCOPE) as tx:
            with pytest.raises(KeyTakenError):
                tx.log.insert([make_event(1, key="a"), make_event(2, key="a")])
            assert tx.log.count() == 0
            assert tx.log.by_keys(["a"]) == {}

    def test_events_without_a_key_never_collide(self, store: Store) -> None:
        """I3: no key is not a key."""
        with store.write(SCOPE) as tx:
            tx.log.insert([make_event(1), make_event(2)])
            tx.log.insert([make_event(3)])
        with store.read(SCOPE) as tx:
            assert tx.log.count() == 3

    def test_keys_are_compared_exactly(self, store: Store) -> None:
        """I3: case, accents, composed and decomposed characters, and blanks make another key."""
        keys = [
            "key",
            "KEY",
            "key ",
            " key",
            "k%y",
            "k_y",
            "é",
            "e\N{COMBINING ACUTE ACCENT}",
            "ß",
            "ss",
            "1",
            "1.0",
            "",
        ]
        events = [make_event(seq, key=key) for seq, key in enumerate(keys, start=1)]
        with store.write(SCOPE) as tx:
            tx.log.insert(events)
        with store.read(SCOPE) as tx:
            assert tx.log.by_keys(keys) == {event.key: event for event in events}

    def test_by_keys_answers_for_the_keys_that_are_there(self, store: Store) -> None:
        """I3: unknown keys are left out, a repeated one counts once, none at all is no error."""
        with store.write(SCOPE) as tx:
            events = append(tx, 3)
        with store.read(SCOPE) as tx:
            assert tx.log.by_keys([]) == {}
            assert tx.log.by_keys(["event-9"]) == {}
            found = tx.log.by_keys(["event-3", "event-9", "event-1", "event-3"])
        assert found == {"event-1": events[0], "event-3": events[2]}

    def test_the_largest_batch_goes_in_as_one(self, store: Store) -> None:
        """I2, I22: APPEND_EVENTS_MAX events are one insert, and as many keys one question."""
        with store.write(SCOPE) as tx:
            events = append(tx, APPEND_EVENTS_MAX)
        keys = [event.key for event in events if event.key is not None]
        with store.read(SCOPE) as tx:
            assert list(tx.log.read(1, FAR)) == events
            assert tx.log.count() == APPEND_EVENTS_MAX
            assert len(tx.log.by_keys(keys)) == APPEND_EVENTS_MAX

    def test_a_seq_is_never_given_twice(self, store: Store) -> None:
        """I1: an insert over a seq that is there is refused, and the committed event stays what it was."""
        with store.write(SCOPE) as tx:
            (event,) = append(tx)
        with pytest.raises(REFUSALS), store.write(SCOPE) as tx:
            tx.log.insert([make_event(event.seq, body=b"another", key="another")])
        with store.read(SCOPE) as tx:
            assert list(tx.log.read(1, FAR)) == [event]
            assert tx.log.count() == 1

    def test_an_abandoned_event_frees_its_key(self, store: Store) -> None:
        """I3, C22: the key may be taken again; the events stay as they are, and each holder is found."""
        with store.write(SCOPE) as tx:
            old = append(tx, 4)
            _abandon(tx, 1, 3, 4)
        with store.write(SCOPE) as tx:
            assert tx.log.by_keys(["event-2", "event-3", "event-4"]) == {"event-2": old[1]}
            new = make_event(5, key="event-3", body=b"another")
            tx.log.insert([new])
            with pytest.raises(KeyTakenError):
                tx.log.insert([make_event(6, key="event-3")])
        with store.read(SCOPE) as tx:
            assert list(tx.log.read(1, FAR)) == [*old, new]
            assert tx.log.count() == 5
            assert tx.log.by_keys(["event-3", "event-4"]) == {"event-3": new}
            assert tx.log.key_holders("event-3") == [old[2], new]
            assert tx.log.key_holders("event-4") == [old[3]]
            assert tx.log.key_holders("event-9") == []

    def test_ranges_may_overlap(self, store: Store) -> None:
        """C22: a later rewind goes back behind an earlier one; both ranges are kept, by branch."""
        with store.write(SCOPE) as tx:
            assert tx.log.abandoned() == []
            append(tx, 6)
            _abandon(tx, 1, 4, 6)
        with store.write(SCOPE) as tx:
            tx.log.insert([make_event(7, key="event-4")])
            _abandon(tx, 2, 2, 7)
        with store.read(SCOPE) as tx:
            assert [(left.branch, left.from_seq, left.through_seq) for left in tx.log.abandoned()] == [
                (1, 4, 6),
                (2, 2, 7),
            ]
            assert sorted(tx.log.by_keys([f"event-{number}" for number in range(1, 7)])) == ["event-1"]
            assert [event.seq for event in tx.log.read(1, FAR)] == list(range(1, 8))

    def test_a_range_that_is_rolled_back_frees_nothing(self, store: Store) -> None:
        """I2: the keys are taken as before."""
        with store.write(SCOPE) as tx:
            old = append(tx, 2)
        with pytest.raises(RuntimeError):
            _give_up(store)
        with store.write(SCOPE) as tx:
            assert tx.log.abandoned() == []
            assert tx.log.by_keys(["event-2"]) == {"event-2": old[1]}
            with pytest.raises(KeyTakenError):
                tx.log.insert([make_event(3, key="event-2")])


def _abandon(tx: Transaction, branch: int, from_seq: int, through_seq: int) -> None:
    """Leave a range behind, as a rewind does."""
    tx.log.abandon(AbandonedRange(branch=branch, from_seq=from_seq, through_seq=through_seq))
    tx.log.set_head(replace(tx.log.head(), branch=branch))


def _give_up(store: Store) -> None:
    """Leave a range behind, and the transaction by an exception."""
    with store.write(SCOPE) as tx:
        _abandon(tx, 1, 2, 2)
        raise RuntimeError
