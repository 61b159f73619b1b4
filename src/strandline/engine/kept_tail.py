"""What a process keeps of a view between two reads of its context, so that only what came since is read (I4, I7).

What is kept was verified when it was read. It is what the store holds still, as long as the view's row is the same and
the event that was the last one then has the chain that it had: every compaction, revert, rewind and recovery, and every
erasure of an event that the view reads, in a fork's past too, moves the pointer in that row (I13, I15, C22, C31). Where
one of them differs, all is read anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from strandline.model.context import ContextPart
from strandline.model.lineage import WorkflowHead
from strandline.model.summary import Summary
from strandline.model.view import ViewHead
from strandline.ports import Transaction
from strandline.rules.newest import NewestEvents


@dataclass(slots=True, kw_only=True)
class ReadSoFar:
    """A view as far as it was read: its summary, and of its tail what a context within the budget may hold."""

    view: ViewHead
    revision: int  # the last event that was read
    summary: Summary | None
    newest: NewestEvents
    chain: bytes = b""  # of that event

    def stands(self, tx: Transaction, head: WorkflowHead, view: ViewHead) -> bool:
        """Tell whether the store holds still what was read."""
        if view != self.view or head.revision < self.revision:
            return False
        if head.revision == self.revision:
            return head.chain == self.chain
        last = next(iter(tx.log.read(self.revision, self.revision)), None)
        return last is not None and last.chain == self.chain


class KeptTail:
    """Keeps what was read last, by one view and one budget. It may be used from any thread: one of two that read at
    once reads all.
    """

    def __init__(self) -> None:
        self._kept: ReadSoFar | None = None
        self.parts: Mapping[int, ContextPart] = {}  # what was made of the tail's events, by their seqs

    def take(self, tx: Transaction, head: WorkflowHead, view: ViewHead) -> ReadSoFar | None:
        """Return what was kept, where it stands; it is kept no longer, so that a read that fails leaves nothing."""
        kept, self._kept = self._kept, None
        return kept if kept is not None and kept.stands(tx, head, view) else None

    def keep(self, read: ReadSoFar, head: WorkflowHead) -> None:
        """Keep what was read, up to a head."""
        read.revision, read.chain = head.revision, head.chain
        self._kept = read
