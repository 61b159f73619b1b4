"""Which checkpoint a recovery takes: the newest of its name that passes the gate (I15)."""

from __future__ import annotations

from collections.abc import Iterable

from strandline.engine.lineage import check_entry, made_for, read_entries
from strandline.engine.reading import abandoned_of
from strandline.engine.reconcile import passed_over
from strandline.model.lineage import LineageEntry, LineageKind
from strandline.model.recovery import (
    RecoveryTarget,
)
from strandline.model.view import ViewHead
from strandline.ports import Transaction
from strandline.rules.branches import Abandoned
from strandline.rules.recovery import select_recovery_target


def choose_checkpoint(
    tx: Transaction, name: str, workflow: str, reader: ViewHead
) -> tuple[LineageEntry | None, LineageEntry | None]:
    """Return the entry of the newest checkpoint of a name that passes the gate, and of the newest of all (I15); to a
    narrow view there are only those that were made for it (I21).

    The choice is made in the lineage, so that a checkpoint that is gone is missed, and no older one slips into its
    place. Only numbers of the lineage are compared; a wall clock is never asked. A checkpoint with a basis can't pass
    below the smallest move of any pointer, so the search ends there; but a rewind to a checkpoint went back to it, and
    it passes until a newer one does, or the pointer moves on (I17).
    """
    moves = {view.name: view.moved_lineage_seq for view in tx.views.all()}
    floor = min(moves.values(), default=0)
    over = passed_over(tx, name)
    end = tx.log.head().lineage_seq + 1
    left, is_for_it = abandoned_of(tx), made_for(tx, reader)
    newest: list[LineageEntry] = []
    passing: list[LineageEntry] = []
    for context_free in (False, True):
        before = end
        while (made := tx.lineage.newest_checkpoint(name, before, context_free=context_free)) is not None:
            if not is_for_it(made):  # nor is one before it
                break
            if before == end:
                newest.append(made)
            before = made.lineage_seq
            if not tx.lineage.left_by_restore(name, before) and _passes(made, moves, left):
                passing.append(made)
                break
            if not context_free and before <= floor:
                break
    proved = min((floor, *(made.lineage_seq for made in passing)))  # what is context-free may stand far below the floor
    for _ in read_entries(tx, workflow, proved):  # proves each: a damaged one could hide the checkpoint to choose
        pass
    passing = [made for made in passing if made.lineage_seq > max(over, default=0)]  # nor one before it: it is a replay
    passing += [made for made in _gone_back_to(tx, name, moves) if made.lineage_seq not in over and is_for_it(made)]
    return _newest(passing), _newest(made for made in newest if made.lineage_seq not in over)


def _newest(entries: Iterable[LineageEntry]) -> LineageEntry | None:
    return max(entries, key=lambda made: made.lineage_seq, default=None)


def _gone_back_to(tx: Transaction, name: str, moves: dict[str, int]) -> list[LineageEntry]:
    """Return the checkpoint of this name that a rewind went back to, if that was the last move of its view."""
    for moved in moves.values():
        for entry in tx.lineage.read(moved - 1, 1) if moved else ():
            if entry.kind is LineageKind.REWIND and entry.name == name and entry.restored_seq is not None:
                check_entry(tx, entry)
                return tx.lineage.read(entry.restored_seq - 1, 1)
    return []


def _passes(made: LineageEntry, moves: dict[str, int], left: Abandoned) -> bool:
    """Ask the pure gate for the view that the state was built from; recovery has fenced what was in flight. What is
    context-free passes while its past is that of the live branch.
    """
    if made.view is None:
        branch = made.detail.get("branch", 0)
        return left.keeps(made.revision, branch if isinstance(branch, int) else 0)
    target = select_recovery_target(made.lineage_seq, moves.get(made.view, 0), compaction_in_flight=False)
    return target is RecoveryTarget.CHECKPOINT
