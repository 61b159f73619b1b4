"""The family that forks make of a workflow (C22): they share the past, and one ledger of effects and permits."""

from __future__ import annotations

from strandline.errors import CorruptRecordError
from strandline.limits import FORK_DEPTH_MAX
from strandline.ports import Transaction


def ledger(tx: Transaction) -> Transaction:
    """Return the transaction of the family's root, whose effects, permits and used approvals are those of all. Where
    `tx` writes, the way up is locked (ADR 0038).

    Raises:
        CorruptRecordError: forks lead to more than FORK_DEPTH_MAX ancestors.
    """
    for _ in range(FORK_DEPTH_MAX + 1):
        parent = tx.log.head().parent
        if parent is None:
            return tx
        tx = tx.relative(parent, locked=True)
    raise CorruptRecordError(f"more than {FORK_DEPTH_MAX} ancestors", place="workflow")
