"""Erase what saved states repeat of erased events: the parts that hold it, once for all states that use them (C31)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from strandline.codec import part_text
from strandline.engine.save_state import count_change
from strandline.engine.state_values import PART
from strandline.model.state import StateRow, StateStatus
from strandline.ports import Transaction
from strandline.rules.erasure import Traces


def erase_states(tx: Transaction, traces: Traces) -> Counter[str]:
    """Take the parts away that repeat what is erased, and count what lost something.

    A state that used one of them answers that it was erased; its other values stay. One whose names or metadata repeat
    it loses everything. Where every text has to be taken for one that does, so does every state, and no part is left.
    """
    if not tx.log.head().states:
        return Counter()
    if traces.everywhere:
        parts = tx.nodes.ids()
        tx.nodes.drop(parts)
    else:
        parts = [
            node.node_id
            for node in tx.nodes.all()
            if node.level == PART and node.data is not None and traces.repeated_by(part_text(node.data))
        ]
        tx.nodes.erase(parts)
    emptied = [row for row in tx.states.all() if traces.stand_in(said_by_state(row)) and _emptied(row) != row]
    for row in emptied:
        tx.states.put(_emptied(row))
    if parts or emptied:
        count_change(tx)
    return Counter({"state_part": len(parts), "saved_state": len(emptied)})


def said_by_state(row: StateRow) -> str:
    """Return what the row of a state says beside its values: its metadata, and the names in it but for its own id."""
    names = [row.run or "", *(name for name, _ in row.values)]
    names += [text for write in row.writes for text in (write.task, write.channel, write.path)]
    return "\n".join((part_text(row.meta) if row.meta else "", *names))


def said_in_states(tx: Transaction) -> Iterator[tuple[str, str]]:
    """Yield what saved states say, with its place."""
    for line in tx.states.lines():
        yield f"state_line {line.number}", line.name
    for row in tx.states.all():
        yield f"saved_state {row.number}", f"{row.state_id}\n{row.parent or ''}\n{said_by_state(row)}"
    for node in tx.nodes.all():
        if node.level == PART and node.data is not None:
            yield f"state_node {node.node_id}", part_text(node.data)


def _emptied(row: StateRow) -> StateRow:
    """Return the row of a state without what it said; who may still save or write behind it may do so."""
    status = StateStatus.ERASED if row.status is StateStatus.SAVED else row.status
    return replace(row, status=status, run=None, values=(), meta=b"", writes=())
