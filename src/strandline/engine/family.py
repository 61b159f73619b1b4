"""The family that forks make of a workflow (C22): they share the past, and one ledger of effects and permits."""

from __future__ import annotations

from strandline.errors import CorruptRecordError, InvalidInputError
from strandline.limits import FAMILY_MAX, FORK_DEPTH_MAX
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


def members(tx: Transaction, workflow: str) -> dict[str, int]:
    """Return every workflow of the family, with how many forks lead from the root to it; those that are deepest first,
    which is an order in which all of them may be locked (ADR 0038). `tx` is that of `workflow`, its rows alone.

    Raises:
        CorruptRecordError: forks lead to more than FORK_DEPTH_MAX ancestors.
        InvalidInputError: there are more than FAMILY_MAX.
    """
    root, above = workflow, 0
    while (parent := tx.relative(root).log.head().parent) is not None:
        root, above = parent, above + 1
        if above > FORK_DEPTH_MAX:
            raise CorruptRecordError(f"more than {FORK_DEPTH_MAX} ancestors", place="workflow")
    depths, waiting = {root: 0}, [root]
    while waiting:
        name = waiting.pop()
        for fork in tx.relative(name).lineage.forks():
            depths[fork] = depths[name] + 1
            waiting.append(fork)
        if len(depths) > FAMILY_MAX:
            raise InvalidInputError(f"forks made more than {FAMILY_MAX} workflows of {root!r}; nothing was written")
    return dict(sorted(depths.items(), key=lambda member: (-member[1], member[0])))
