"""What a process keeps of a view between two reads of its context, so that only what came since is read (I4, I7).

What is kept was verified when it was read. It is what the store holds still, as long as the view's row is the same, and
the event and the entry of the lineage that were the last ones then have the chains that they had: every compaction,
revert, rewind and recovery, and every erasure of an event that the view reads, in a fork's past too, moves the pointer
in that row, by an entry (I13, I15, C22, C31). Where one of them differs, all is read anew.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass

from strandline.limits import KEPT_CONTEXT_BYTES_MAX
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
    size: int = 0  # bytes of all bodies that were read, also of events that were let go since
    head: WorkflowHead | None = None  # of the snapshot in which it was read

    def stands(self, tx: Transaction, now: WorkflowHead, view: ViewHead) -> bool:
        """Tell whether the store holds still what was read."""
        then = self.head
        return (
            then is not None
            and view == self.view
            and _event_chain(tx, now, then.revision) == then.chain
            and (not then.lineage_seq or _lineage_chain(tx, now, then.lineage_seq) == then.lineage_chain)
        )


def _event_chain(tx: Transaction, head: WorkflowHead, seq: int) -> bytes | None:
    """Return the chain value of an event; None: the log has none of this seq."""
    if head.revision <= seq:
        return head.chain if head.revision == seq else None
    found = next(iter(tx.log.read(seq, seq)), None)
    return None if found is None else found.chain


def _lineage_chain(tx: Transaction, head: WorkflowHead, lineage_seq: int) -> bytes | None:
    """Return the chain value of an entry; None: the lineage has none of this number."""
    if head.lineage_seq <= lineage_seq:
        return head.lineage_chain if head.lineage_seq == lineage_seq else None
    found = next(iter(tx.lineage.read(lineage_seq - 1, 1)), None)
    return None if found is None else found.chain


class KeptTail:
    """Keeps what was read last, by one view and one budget. It may be used from any thread: one of two that read at
    once reads all.
    """

    def __init__(self) -> None:
        self._kept: ReadSoFar | None = None
        self._lock = threading.Lock()
        self.parts: Mapping[int, ContextPart] = {}  # what was made of the tail's events, by their seqs

    def take(self, tx: Transaction, head: WorkflowHead, view: ViewHead) -> ReadSoFar | None:
        """Return what was kept, where it stands; it is kept no longer, so that a read that fails leaves nothing."""
        with self._lock:
            kept, self._kept = self._kept, None
        return kept if kept is not None and kept.stands(tx, head, view) else None

    def keep(self, read: ReadSoFar, head: WorkflowHead) -> None:
        """Keep what was read, up to a head; nothing that is large. Whoever took it is done with it: another thread may
        have it from now on.
        """
        if read.size <= KEPT_CONTEXT_BYTES_MAX:
            read.revision, read.head = head.revision, head
            with self._lock:
                self._kept = read
