"""Reference texts and sightings."""

from __future__ import annotations

from strandline.limits import EVENT_REFS_MAX, REFERENCE_CHARS_MAX
from strandline.ports import Store
from strandline.testing.conformance.base import StoreLaws
from strandline.testing.conformance.stage import FAR, SCOPE, append, intern


class RefLaws(StoreLaws):
    """Laws of `RefFacet`."""

    def test_new_references_are_numbered_in_the_order_given(self, store: Store) -> None:
        """I9: from `first_id` on, without a gap; a number stands for one text for ever."""
        with store.write(SCOPE) as tx:
            append(tx)
            tx.refs.add(["b", "a", "c"], 1, [])
            tx.refs.add([], 4, [])
        with store.write(SCOPE) as tx:
            assert tx.refs.find(["a", "b", "b", "c"]) == {"b": 1, "a": 2, "c": 3}
            tx.refs.add(["d"], 4, [])
        with store.read(SCOPE) as tx:
            assert tx.refs.texts([4, 3, 2, 1]) == {1: "b", 2: "a", 3: "c", 4: "d"}
            assert list(tx.refs.all_texts()) == [(1, "b"), (2, "a"), (3, "c"), (4, "d")]
            tx.refs.check_keys()

    def test_unknown_references_are_left_out(self, store: Store) -> None:
        """I9: the store makes no text and no number up."""
        with store.write(SCOPE) as tx:
            append(tx)
            intern(tx, "a")
            assert tx.refs.find(["b"]) == {}
        with store.read(SCOPE) as tx:
            assert tx.refs.find(["b", "a"]) == {"a": 1}
            assert tx.refs.find([]) == {}
            assert tx.refs.texts([2, 1]) == {1: "a"}
            assert tx.refs.texts([]) == {}
            assert tx.refs.sightings(2, FAR, 10) == []

    def test_references_are_compared_exactly(self, store: Store) -> None:
        """I9: verbatim means verbatim: case, width, accents, blanks and wildcards tell references apart."""
        texts = [
            "bucket-7f3a",
            "Bucket-7f3a",
            "bucket_7f3a",
            "bucket%",
            "$500",
            "$5000",
            " $500",
            "$500 ",
            "０",
            "0",
            "00",
        ]
        texts += ["é", "e\N{COMBINING ACUTE ACCENT}", "/tmp/a", "/tmp/a/", "a\nb", "a\tb", "'; --", '"', "\\", "🜁"]
        with store.write(SCOPE) as tx:
            append(tx)
            numbers = intern(tx, *texts)
            assert numbers == {text: number for number, text in enumerate(texts, start=1)}
        with store.read(SCOPE) as tx:
            assert tx.refs.find(texts) == numbers
            assert tx.refs.texts(numbers.values()) == {number: text for text, number in numbers.items()}

    def test_as_many_references_as_an_event_may_hold(self, store: Store) -> None:
        """I22: EVENT_REFS_MAX in one call, the last of them as long as may be."""
        texts = [f"ref-{number}" for number in range(1, EVENT_REFS_MAX)] + ["x" * REFERENCE_CHARS_MAX]
        with store.write(SCOPE) as tx:
            append(tx)
            numbers = {text: number for number, text in enumerate(texts, start=1)}
            tx.refs.add(texts, 1, [(number, 1, False) for number in numbers.values()])
        with store.read(SCOPE) as tx:
            assert tx.refs.find(texts) == numbers
            assert len(tx.refs.texts(numbers.values())) == EVENT_REFS_MAX
            assert len(list(tx.refs.all_sightings())) == EVENT_REFS_MAX

    def test_sightings_are_the_newest_first_up_to_a_seq(self, store: Store) -> None:
        """I9, I16: the last-known place of a reference is found from any revision, and not more than was asked for."""
        with store.write(SCOPE) as tx:
            append(tx, 9)
            tx.refs.add(["a", "b"], 1, [(1, 1, False), (1, 2, True), (2, 3, True), (1, 4, False)])
            tx.refs.add(["c"], 3, [(1, 6, True), (3, 6, False), (3, 7, True), (1, 8, False)])
            tx.refs.add([], 4, [(1, 9, True)])
        with store.read(SCOPE) as tx:
            whole = [(9, True), (8, False), (6, True), (4, False), (2, True), (1, False)]
            assert tx.refs.sightings(1, FAR, 10) == whole
            assert [tx.refs.sightings(1, seq, 10) for seq in (8, 7, 6)] == [whole[1:], whole[2:], whole[2:]]
            assert [tx.refs.sightings(1, FAR, limit) for limit in range(7)] == [whole[:limit] for limit in range(7)]
            assert tx.refs.sightings(1, 5, 10) == [(4, False), (2, True), (1, False)]
            assert tx.refs.sightings(1, 4, 2) == [(4, False), (2, True)]
            assert tx.refs.sightings(1, 0, 10) == []
            assert tx.refs.sightings(2, FAR, 10) == [(3, True)]
            assert tx.refs.sightings(3, FAR, 10) == [(7, True), (6, False)]

    def test_a_batch_that_saw_it_often_hides_no_earlier_one(self, store: Store) -> None:
        """C4: an older sighting is found behind a batch that lies partly after the seq that is asked for."""
        with store.write(SCOPE) as tx:
            append(tx, 60)
            tx.refs.add(["a"], 1, [(1, 1, True)])
            tx.refs.add([], 2, [(1, seq, False) for seq in range(10, 50)])
        with store.read(SCOPE) as tx:
            for through in (9, 10, 11, 30, 49, 60):
                expected = [(seq, False) for seq in range(min(through, 49), 9, -1)] + [(1, True)]
                for limit in (1, 5, 20, 41, 100):
                    assert tx.refs.sightings(1, through, limit) == expected[:limit]

    def test_all_sightings_are_there(self, store: Store) -> None:
        """I9: `verify` recounts the manifest from them: all of them, as (seq, ref_id, declared), in any order."""
        with store.write(SCOPE) as tx:
            append(tx, 3)
            tx.refs.add(["a", "b"], 1, [(2, 1, True), (1, 1, False), (2, 2, True)])
            tx.refs.add([], 3, [(1, 3, False)])
        with store.read(SCOPE) as tx:
            found = list(tx.refs.all_sightings())
        assert sorted(found) == [(1, 1, False), (1, 2, True), (2, 2, True), (3, 1, False)]
