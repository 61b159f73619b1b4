"""The lineage, and checkpoints."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from strandline.model.checkpoint import CheckpointView, ExternalState
from strandline.model.lineage import LineageKind
from strandline.ports import Store
from strandline.testing.conformance.base import REFUSALS, StoreLaws
from strandline.testing.conformance.stage import FAR, SCOPE, append, record
from strandline.testing.values import make_checkpoint, make_digest, make_lineage


class LineageLaws(StoreLaws):
    """Laws of `LineageFacet` and `CheckpointFacet`."""

    def test_the_lineage_is_one_order(self, store: Store) -> None:
        """I13: entries of every kind come back in order, whole, page by page."""
        with store.write(SCOPE) as tx:
            append(tx)
            entries = [record(tx, kind) for kind in LineageKind]
        with store.read(SCOPE) as tx:
            assert tx.lineage.read(0, 100) == entries
            assert tx.lineage.read(0, 3) == entries[:3]
            assert tx.lineage.read(3, 4) == entries[3:7]
            assert tx.lineage.read(len(entries) - 1, 100) == entries[-1:]
            assert tx.lineage.read(len(entries), 100) == []
            assert tx.log.head().lineage_seq == len(entries)

    def test_an_entry_comes_back_whole(self, store: Store) -> None:
        """I13: digest, author, reason and detail."""
        entry = replace(
            make_lineage(1, LineageKind.RESTORE, name="agent é", restored_seq=8),
            view="publisher",
            generation=9,
            digest=make_digest("draft"),
            by="ann",
            why="the live store was damaged\nby another write",
            detail={"refs": ["a", "é"], "count": 3, "share": 0.1, "nested": {"none": None, "yes": True}},
        )
        with store.write(SCOPE) as tx:
            append(tx)
            tx.lineage.add(entry)
        with store.read(SCOPE) as tx:
            assert tx.lineage.read(0, 10) == [entry]

    def test_what_is_kept_is_out_of_the_callers_hands(self, store: Store) -> None:
        """I13: to change the mapping that was given, or the one that was read, changes no entry."""
        detail: dict[str, Any] = {"refs": ["a"]}
        with store.write(SCOPE) as tx:
            append(tx)
            tx.lineage.add(replace(make_lineage(1), detail=detail))
        detail["refs"].append("b")
        for _ in range(2):
            with store.read(SCOPE) as tx:
                (entry,) = tx.lineage.read(0, 10)
            assert entry.detail == {"refs": ["a"]}
            refs = entry.detail["refs"]
            assert isinstance(refs, list)
            refs.append("c")

    def test_an_operation_is_recorded_once(self, store: Store) -> None:
        """I13, I19: neither its key nor its lineage_seq is given twice; the first entry stays."""
        first = make_lineage(1, LineageKind.COMPACTION, op_key="attempt-1")
        with store.write(SCOPE) as tx:
            append(tx)
            tx.lineage.add(first)
        with pytest.raises(REFUSALS), store.write(SCOPE) as tx:
            tx.lineage.add(make_lineage(2, LineageKind.COMPACTION, op_key="attempt-1"))
        with pytest.raises(REFUSALS), store.write(SCOPE) as tx:
            tx.lineage.add(make_lineage(1, LineageKind.COMPACTION, op_key="attempt-2"))
        with store.read(SCOPE) as tx:
            assert tx.lineage.read(0, 10) == [first]

    def test_an_operation_is_found_by_its_key(self, store: Store) -> None:
        """I19: "did my commit land?" is answered by the entry, or by None."""
        with store.write(SCOPE) as tx:
            append(tx)
            entries = [record(tx, LineageKind.COMPACTION, f"attempt-{number}") for number in range(3)]
        with store.read(SCOPE) as tx:
            assert tx.lineage.by_op_key("attempt-1") == entries[1]
            assert tx.lineage.by_op_key("Attempt-1") is None
            assert tx.lineage.by_op_key("attempt-3") is None

    def test_a_past_that_a_restore_has_left(self, store: Store) -> None:
        """I15: between what was restored and any restore of this name, be it the newest or not; not a replay's."""
        with store.write(SCOPE) as tx:
            append(tx)
            for number in range(4):  # 1..4
                record(tx, LineageKind.CHECKPOINT, f"early-{number}", name="main")
            record(tx, LineageKind.RESTORE, name="main", restored_seq=2)  # 5
            record(tx, LineageKind.CHECKPOINT, "late", name="main")  # 6
            record(tx, LineageKind.REPLAY, name="main")  # 7
            record(tx, LineageKind.RESTORE, name="main", restored_seq=6)  # 8
            record(tx, LineageKind.CHECKPOINT, "last", name="main")  # 9
        with store.read(SCOPE) as tx:
            left = [seq for seq in range(1, 10) if tx.lineage.left_by_restore("main", seq)]
            assert left == [3, 4, 7]
            assert not any(tx.lineage.left_by_restore("Main", seq) for seq in range(1, 10))

    def test_a_past_that_a_rewind_to_a_checkpoint_has_left(self, store: Store) -> None:
        """I15, I17: as by a restore; a rewind to a mere event names no checkpoint, and leaves none of a name."""
        with store.write(SCOPE) as tx:
            append(tx)
            for number in range(3):  # 1..3
                record(tx, LineageKind.CHECKPOINT, f"early-{number}", name="main")
            record(tx, LineageKind.REWIND, "to an event")  # 4
            record(tx, LineageKind.REWIND, "to a checkpoint", name="main", restored_seq=1)  # 5
            record(tx, LineageKind.CHECKPOINT, "late", name="main")  # 6
        with store.read(SCOPE) as tx:
            assert [seq for seq in range(1, 7) if tx.lineage.left_by_restore("main", seq)] == [2, 3, 4]

    def test_a_checkpoint_comes_back_whole(self, store: Store) -> None:
        """I14: every view with generation and basis, the agent's state byte for byte, and where it lives elsewhere."""
        with store.write(SCOPE) as tx:
            append(tx)
            entry = record(tx, LineageKind.CHECKPOINT, name="agent é")
            checkpoint = replace(
                make_checkpoint(entry.lineage_seq, name="agent é", turn=40_000, state=b'{"a": "\\u0000\xc3\xa9"}\n'),
                revision=12,
                branch=3,
                context_free=True,
                in_flight=True,
                views=(
                    CheckpointView(view="main", generation=4),
                    CheckpointView(view="publisher", generation=2, basis_revision=11),
                ),
            )
            tx.checkpoints.add(checkpoint)
            elsewhere = replace(
                make_checkpoint(record(tx, LineageKind.CHECKPOINT, "elsewhere", name="main").lineage_seq),
                external=ExternalState(address="/srv/é state", digest="sha256:00ff"),
            )
            tx.checkpoints.add(elsewhere)
        with store.read(SCOPE) as tx:
            assert list(tx.checkpoints.all()) == [checkpoint, elsewhere]
            assert tx.checkpoints.get(entry.lineage_seq) == checkpoint
            assert tx.checkpoints.get(elsewhere.lineage_seq) == elsewhere
            assert tx.checkpoints.get(elsewhere.lineage_seq + 1) is None

    def test_the_newest_checkpoint_of_a_name_before_a_place(self, store: Store) -> None:
        """I15: `before` is no target itself; names are exact; a restore or a replay of the name is none."""
        names = ["main", "other", "main", "Main", "main"]
        with store.write(SCOPE) as tx:
            append(tx)
            for number, name in enumerate(names):
                record(tx, LineageKind.CHECKPOINT, f"checkpoint-{number}", name=name, view="main")
            record(tx, LineageKind.REPLAY, name="main", view="main")
        with store.read(SCOPE) as tx:
            newest = {
                before: tx.lineage.newest_checkpoint("main", before, context_free=False)
                for before in (0, 1, 2, 3, 5, 6, FAR)
            }
            found = {before: entry and entry.lineage_seq for before, entry in newest.items()}
            assert found == {0: None, 1: None, 2: 1, 3: 1, 5: 3, 6: 5, FAR: 5}
            assert tx.lineage.newest_checkpoint("nobody", FAR, context_free=False) is None

    def test_a_checkpoint_is_found_by_its_sort(self, store: Store) -> None:
        """I14, I15: one that is context-free and one that is not are never taken for each other."""
        with store.write(SCOPE) as tx:
            append(tx)
            for number, context_free in enumerate([True, False, True, False, False]):
                view = None if context_free else "main"
                record(tx, LineageKind.CHECKPOINT, f"checkpoint-{number}", name="main", view=view)
        with store.read(SCOPE) as tx:
            for before, newest in ((FAR, {True: 3, False: 5}), (5, {True: 3, False: 4}), (3, {True: 1, False: 2})):
                for context_free, lineage_seq in newest.items():
                    found = tx.lineage.newest_checkpoint("main", before, context_free=context_free)
                    assert found is not None
                    assert found.lineage_seq == lineage_seq
            assert tx.lineage.newest_checkpoint("main", 2, context_free=False) is None

    def test_a_checkpoint_is_added_once(self, store: Store) -> None:
        """I14: one checkpoint per entry of the lineage."""
        with store.write(SCOPE) as tx:
            append(tx)
            checkpoint = make_checkpoint(record(tx, LineageKind.CHECKPOINT, name="main").lineage_seq)
            tx.checkpoints.add(checkpoint)
        with pytest.raises(REFUSALS), store.write(SCOPE) as tx:
            tx.checkpoints.add(replace(checkpoint, state=b"{}"))
        with store.read(SCOPE) as tx:
            assert list(tx.checkpoints.all()) == [checkpoint]
