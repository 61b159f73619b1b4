"""The index of words."""

from __future__ import annotations

import contextlib

import pytest

from strandline.model.ids import Scope
from strandline.ports import Store
from strandline.testing.conformance.base import REFUSALS, StoreLaws
from strandline.testing.conformance.stage import FAR, SCOPE, append

WORDS = ["a", "ab", "b", "aé", "a数", "", "a%", "a_b", "z" * 48]


class SearchLaws(StoreLaws):
    """Laws of `SearchFacet`."""

    def test_nothing_is_indexed_at_first(self, store: Store) -> None:
        """C4: also where there is no workflow."""
        with store.read(SCOPE) as tx:
            assert (tx.search.ranges(), list(tx.search.all()), tx.search.beginning("", 9)) == ([], [], [])
            assert list(tx.search.postings("a", FAR)) == []

    def test_a_word_leads_to_its_events(self, store: Store) -> None:
        """C4: compared exactly, chunk by chunk, the newest first; however many events of a chunk hold it."""
        every, few, last = (1 << 1024) - 1, 1 | 1 << 700, 1 << 1023
        with store.write(SCOPE) as tx:
            append(tx, 1)
            tx.search.add(1, 1024, {"a": every, "ab": few, "b": last})
            tx.search.add(1025, 1030, {"a": 0b101, "ab": 1})
        with store.read(SCOPE) as tx:
            assert tx.search.ranges() == [(1, 1030)]
            assert list(tx.search.postings("a", FAR)) == [(1025, 0b101), (1, every)]
            assert list(tx.search.postings("ab", FAR)) == [(1025, 1), (1, few)]
            assert list(tx.search.postings("b", FAR)) == [(1, last)]
            assert list(tx.search.postings("a", 1025)) == [(1025, 0b101), (1, every)]
            assert list(tx.search.postings("a", 1024)) == [(1, every)]
            assert list(tx.search.postings("a", 0)) == []
            assert list(tx.search.postings("A", FAR)) == []
            assert sorted(tx.search.all()) == [
                ("a", 1, every),
                ("a", 1025, 0b101),
                ("ab", 1, few),
                ("ab", 1025, 1),
                ("b", 1, last),
            ]

    def test_many_chunks_are_all_there(self, store: Store) -> None:
        """C4: more than are read at once."""
        with store.write(SCOPE) as tx:
            append(tx, 1)
            for first in range(1, 200, 2):
                tx.search.add(first, first + 1, {"a": 1 if first % 4 == 1 else 2, f"w{first}": 3})
        with store.read(SCOPE) as tx:
            found = [(first, 1 if first % 4 == 1 else 2) for first in range(199, 0, -2)]
            assert list(tx.search.postings("a", FAR)) == found
            assert list(tx.search.postings("a", 100)) == [chunk for chunk in found if chunk[0] <= 100]
            one, other = tx.search.postings("a", FAR), tx.search.postings("w1", FAR)  # read in turn
            assert [next(one), next(other), next(one)] == [found[0], (1, 3), found[1]]

    def test_words_with_a_beginning(self, store: Store) -> None:
        """C4: in the order of their code points, no more rows than asked for; no sign is a wildcard."""
        with store.write(SCOPE) as tx:
            append(tx, 1)
            tx.search.add(1, 2, dict.fromkeys(WORDS, 1))
            tx.search.add(3, 4, dict.fromkeys(WORDS, 2))
        with store.read(SCOPE) as tx:
            rows = [(word, first, first // 2 + 1) for word in sorted(WORDS) for first in (1, 3)]
            for beginning in ("a", "aé", "a%", "", "q"):
                begun = [row for row in rows if row[0].startswith(beginning)]
                assert tx.search.beginning(beginning, 99) == begun
                assert tx.search.beginning(beginning, 3) == begun[:3]

    def test_a_chunk_lies_right_behind_what_is_indexed(self, store: Store) -> None:
        """C4: two that index at once leave neither a gap nor an overlap; a fork begins behind its fork point."""
        with store.write(SCOPE) as tx:
            append(tx, 1)
            tx.search.add(11, 20, {"a": 1})
        for first in (11, 20, 22, 1):
            with pytest.raises(REFUSALS), store.write(SCOPE) as tx:
                tx.search.add(first, 30, {"b": 1})
        with store.read(SCOPE) as tx:
            assert (tx.search.ranges(), list(tx.search.all())) == ([(11, 20)], [("a", 11, 1)])

    def test_an_event_is_taken_out(self, store: Store) -> None:
        """C31: of the words that are named, and nothing else; a word that no event holds any more is gone."""
        with store.write(SCOPE) as tx:
            append(tx, 1)
            tx.search.add(1, 4, {"a": 0b0110, "b": 0b0010, "c": 0b0001})
            tx.search.add(5, 8, {"a": 0b0001})
            tx.search.drop(2, ["a", "b", "c", "d"])
        with store.read(SCOPE) as tx:
            assert sorted(tx.search.all()) == [("a", 1, 0b0100), ("a", 5, 1), ("c", 1, 1)]
            assert sorted(tx.search.beginning("", 9)) == sorted(tx.search.all())
            assert tx.search.ranges() == [(1, 8)]

    def test_it_is_made_anew(self, store: Store) -> None:
        """C4: derived from the log, it may be forgotten at any time; the index of a neighbour stays."""
        others = [Scope(tenant="umbrella", workflow=SCOPE.workflow), Scope(tenant=SCOPE.tenant, workflow="another")]
        for scope in (SCOPE, *others):
            with store.write(scope) as tx:
                append(tx, 1)
                tx.search.add(1, 2, {"a": 0b01, scope.tenant: 0b10})
        with store.write(SCOPE) as tx:
            tx.search.reset()
            assert (tx.search.ranges(), list(tx.search.all()), tx.search.beginning("", 9)) == ([], [], [])
            tx.search.add(3, 4, {"a": 0b11})
            assert (tx.search.ranges(), list(tx.search.all())) == ([(3, 4)], [("a", 3, 0b11)])
        for scope in others:
            with store.read(scope) as tx:
                assert list(tx.search.postings("a", FAR)) == [(1, 1)]
                assert tx.search.beginning("a", 9) == [("a", 1, 1)] + [("acme", 1, 2)] * (scope.tenant == "acme")

    def test_a_rollback_leaves_no_word(self, store: Store) -> None:
        """C4: index and mark are one."""
        with contextlib.suppress(ZeroDivisionError), store.write(SCOPE) as tx:
            append(tx, 1)
            tx.search.add(1, 2, {"a": 1})
            raise ZeroDivisionError
        with store.read(SCOPE) as tx:
            assert (tx.search.ranges(), list(tx.search.all())) == ([], [])
