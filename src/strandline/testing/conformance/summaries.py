"""Summaries, segments, the manifest's fold, foreign summaries."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import pytest

from strandline.model.register import FactKey, FactKind, FactState
from strandline.model.summary import Anchor, DropReason, LedgerEntry, ManifestEntry, Summary
from strandline.ports import Store, Transaction
from strandline.testing.conformance.base import REFUSALS, StoreLaws
from strandline.testing.conformance.stage import SCOPE, activate, append, intern, prepare
from strandline.testing.values import make_digest, make_dropped, make_foreign, make_segment, make_summary


def dropped(tx: Transaction, summary_no: int) -> list[str | None]:
    """Return the references of a manifest, in its order."""
    return [entry.ref for entry in tx.summaries.manifest(summary_no)]


def rich_summary() -> Summary:
    """Return a summary in which every field says something."""
    first = replace(make_segment("s-1", 1, 4, text="été\x00 🜁"), ref_ids=(2, 1), made_by="attempt-0")
    second = replace(make_segment("s-2", 5, 5, text=""), event_count=0)
    anchor = Anchor(
        key=FactKey(kind=FactKind.APPROVAL, subject="deploy", holder="ann"),
        state=FactState.UNKNOWN,
        seq=3,
        text="ann approved «deploy»",
        note="scope: production",
    )
    entry = LedgerEntry(ref_id=1, text="bucket-7f3a", declared=True, used_seq=4, weight=-0.1, last_seq=5)
    return replace(
        make_summary(7, [first, second], base_no=3, generation=4),
        anchors=(anchor, replace(anchor, seq=4)),
        ledger=(entry, replace(entry, ref_id=2, weight=1e300)),
        anchors_text="anchors: é",
        ledger_text="ledger: 🜁",
        ref_ids=(1, 2, 300),
        compactions=6,
        depth=3,
        dropped_count=9,
        revision=12,
    )


def _told(summary: Summary | None) -> tuple[list[str], str, str, bytes] | None:
    """Return what a reader of a context needs of a summary."""
    if summary is None:
        return None
    texts = [segment.text for segment in summary.segments]
    return texts, summary.anchors_text, summary.ledger_text, summary.text_digest


class SummaryLaws(StoreLaws):
    """Laws of `SummaryFacet`."""

    def test_a_summary_comes_back_whole(self, store: Store) -> None:
        """I7: segments in order, anchors, ledger, weights to the last bit, digests."""
        summary = rich_summary()
        with store.write(SCOPE) as tx:
            append(tx, 5)
            intern(tx, "a", "b")
            tx.summaries.add(summary, [])
            assert tx.summaries.get(7) == summary
            assert _told(tx.summaries.get(7, texts_only=True)) == _told(summary)
        with store.read(SCOPE) as tx:
            assert tx.summaries.get(7) == summary
            assert _told(tx.summaries.get(7, texts_only=True)) == _told(summary)
            assert tx.summaries.by_id(summary.summary_id) == summary
            assert tx.summaries.get(6) is None
            assert tx.summaries.get(0) is None
            assert tx.summaries.by_id("summary-6") is None

    def test_summaries_share_segments_in_any_order_of_theirs(self, store: Store) -> None:
        """C9: a new version adds only the segments that are new; each version keeps its own order."""
        old, older, new = make_segment("z", 1, 2), make_segment("y", 3, 4), make_segment("x", 5, 6)
        with store.write(SCOPE) as tx:
            append(tx, 6)
            tx.summaries.add(make_summary(1, [old, older]), [])
        with store.write(SCOPE) as tx:
            tx.summaries.add(make_summary(2, [old, older, new], base_no=1), [])
        with store.read(SCOPE) as tx:
            assert tx.summaries.get(1) == make_summary(1, [old, older])
            assert tx.summaries.get(2) == make_summary(2, [old, older, new], base_no=1)

    def test_a_stored_segment_never_changes(self, store: Store) -> None:
        """C9: old segments stay byte-identical: another text under a known id is refused or ignored."""
        segment = make_segment("s", 1, 2)
        with store.write(SCOPE) as tx:
            append(tx, 2)
            tx.summaries.add(make_summary(1, [segment]), [])
        with contextlib.suppress(*REFUSALS), store.write(SCOPE) as tx:
            tx.summaries.add(make_summary(2, [replace(segment, text="another")], base_no=1), [])
        with store.read(SCOPE) as tx:
            for number in (1, 2):
                summary = tx.summaries.get(number)
                assert summary is None or summary.segments == (segment,)
            assert tx.summaries.get(1) is not None

    def test_a_summary_is_added_once(self, store: Store) -> None:
        """I5: neither its number nor its id is given to another one."""
        first = make_summary(1, [make_segment("s", 1, 1)], summary_id="attempt-1")
        with store.write(SCOPE) as tx:
            append(tx)
            tx.summaries.add(first, [])
        with pytest.raises(REFUSALS), store.write(SCOPE) as tx:
            tx.summaries.add(make_summary(1, [], summary_id="attempt-2"), [])
        with pytest.raises(REFUSALS), store.write(SCOPE) as tx:
            tx.summaries.add(make_summary(2, [], summary_id="attempt-1"), [])
        with store.read(SCOPE) as tx:
            assert tx.summaries.get(1) == first
            assert tx.summaries.by_id("attempt-1") == first
            assert tx.summaries.get(2) is None

    def test_changes_come_back_by_reference(self, store: Store) -> None:
        """I9: the summary's own, with reason and last-known seq; another summary's are not among them."""
        changes = [
            replace(make_dropped(number, number + 10, dropped=number != 2), reason=reason)
            for number, reason in enumerate(DropReason, start=1)
        ]
        with store.write(SCOPE) as tx:
            append(tx, 20)
            intern(tx, "a", "b", "c", "d")
            tx.summaries.add(make_summary(1, [make_segment("s", 1, 20)]), list(reversed(changes)))
            tx.summaries.add(make_summary(2, [], base_no=1), [make_dropped(1, 11, dropped=False)])
        with store.read(SCOPE) as tx:
            assert tx.summaries.changes(1) == changes
            assert tx.summaries.changes(2) == [make_dropped(1, 11, dropped=False)]
            assert tx.summaries.changes(3) == []

    def test_the_manifest_is_the_fold_along_the_bases(self, store: Store) -> None:
        """I9: the newest change of a reference wins: dropped, standing verbatim again, and dropped anew."""
        with store.write(SCOPE) as tx:
            append(tx, 9)
            intern(tx, "a", "b", "c")
            activate(tx, [make_dropped(1, 3), make_dropped(2, 5)])
            activate(tx, [make_dropped(1, 3, dropped=False)])
            activate(tx, [make_dropped(1, 8), make_dropped(3, 1)])
            activate(tx)
        with store.read(SCOPE) as tx:
            assert dropped(tx, 0) == []
            assert dropped(tx, 1) == ["b", "a"]
            assert dropped(tx, 2) == ["b"]
            assert dropped(tx, 3) == ["a", "b", "c"]
            assert tx.summaries.manifest(4) == [
                ManifestEntry(ref="a", ref_id=1, last_seq=8, generation_dropped=3, reason=DropReason.NOT_IN_SUMMARY),
                ManifestEntry(ref="b", ref_id=2, last_seq=5, generation_dropped=1, reason=DropReason.NOT_IN_SUMMARY),
                ManifestEntry(ref="c", ref_id=3, last_seq=1, generation_dropped=3, reason=DropReason.NOT_IN_SUMMARY),
            ]

    def test_dropped_by_names_the_generation(self, store: Store) -> None:
        """I16: where a missing reference was dropped, seen from any summary; None where it isn't."""
        with store.write(SCOPE) as tx:
            append(tx, 9)
            intern(tx, "a", "b")
            activate(tx, [make_dropped(1, 3)])
            activate(tx, [make_dropped(1, 3, dropped=False)])
            activate(tx, [make_dropped(1, 8)])
        with store.read(SCOPE) as tx:
            assert [tx.summaries.dropped_by(number, [1]) for number in range(4)] == [{}, {1: 1}, {}, {1: 3}]
            assert [tx.summaries.dropped_by(number, [2]) for number in range(4)] == [{}, {}, {}, {}]

    def test_the_fold_leaves_side_branches_out(self, store: Store) -> None:
        """I9: of two summaries on one base neither sees the other's changes, though its number is higher."""
        with store.write(SCOPE) as tx:
            append(tx, 9)
            intern(tx, "a", "b", "c")
            activate(tx, [make_dropped(1, 1)])
            prepare(tx, [make_dropped(1, 1, dropped=False), make_dropped(2, 2)], mark="lost ")
            activate(tx, [make_dropped(3, 3)])
            activate(tx)
        with store.read(SCOPE) as tx:
            last = tx.summaries.get(4)
            assert last is not None
            assert last.base_no == 3
            assert dropped(tx, 2) == ["b"]
            assert dropped(tx, 3) == ["c", "a"]
            assert dropped(tx, 4) == ["c", "a"]
            assert tx.summaries.dropped_by(4, [1, 2, 3]) == {1: 1, 3: 2}
            assert tx.summaries.dropped_by(2, [1, 2, 3]) == {2: 2}

    def test_a_generation_is_not_a_summary_number(self, store: Store) -> None:
        """I9: the manifest names the generation that the summary became; lost attempts leave holes in the numbers."""
        with store.write(SCOPE) as tx:
            append(tx, 3)
            intern(tx, "a")
            prepare(tx, mark="lost ")
            summary = activate(tx, [make_dropped(1, 2)])
        with store.read(SCOPE) as tx:
            assert (summary.summary_no, summary.generation) == (2, 1)
            assert [entry.generation_dropped for entry in tx.summaries.manifest(2)] == [1]
            assert tx.summaries.dropped_by(2, [1]) == {1: 1}

    def test_foreign_summaries_are_kept_once(self, store: Store) -> None:
        """C2: by through_seq; one whose key is known is left as it is, in the same call or a later one."""
        first = replace(make_foreign("k-2", 4, text="é\x00"), detail={"a": [1, None, {"b": "c"}], "f": 0.1})
        with store.write(SCOPE) as tx:
            append(tx, 4)
            assert tx.summaries.add_foreign([first, replace(first, text="another")]) == 1
        with store.write(SCOPE) as tx:
            others = [make_foreign("k-1", 2), make_foreign("k-2", 1), make_foreign("K-2", 3)]
            assert tx.summaries.add_foreign(others) == 2
            tx.summaries.add_foreign([])
        with store.read(SCOPE) as tx:
            assert tx.summaries.foreign() == [make_foreign("k-1", 2), make_foreign("K-2", 3), first]

    def test_a_digest_is_kept_byte_for_byte(self, store: Store) -> None:
        """I7: digests and salts with NUL and high bytes in them."""
        odd = bytes(range(240, 256)) + bytes(16)
        summary = replace(make_summary(1, [make_segment("s", 1, 1)]), source_digest=odd, text_digest=make_digest(0))
        with store.write(SCOPE) as tx:
            append(tx)
            tx.summaries.add(summary, [])
        with store.read(SCOPE) as tx:
            assert tx.summaries.get(1) == summary
