"""What came of a commit whose answer was not seen: the chains of the log and of the lineage say so (I19)."""

from __future__ import annotations

from contextlib import suppress

from strandline.errors import OutcomeUnknownError, StoreUnavailableError, StrandlineError
from strandline.model.ids import Scope
from strandline.model.lineage import WorkflowHead
from strandline.ports import Store, Transaction


class _ReadError(Exception):
    """What was to be read is read: the transaction is left without a commit of its own."""


def read_back(
    store: Store, scope: Scope, before: WorkflowHead, after: WorkflowHead, error: OutcomeUnknownError
) -> None:
    """Return if a transaction was committed.

    Each event is chained with a salt, and each entry of the lineage with a key, of its own: what has the chain value
    that the transaction gave it is its own, whoever wrote since. It is looked for under the workflow's lock, so
    whatever the server still did for a connection that broke has ended. Without the lock only a find proves something:
    a standby may be behind, and the commit may be on its way.

    Args:
        store, scope: where.
        before: the head as the transaction found it.
        after: the head as it left it.
        error: how its commit ended.

    Raises:
        StoreUnavailableError: it was not committed, and never will be; `unanswered` tells it from others.
        OutcomeUnknownError: the one that was given: the store can't be asked, or the transaction wrote neither an event
            nor an entry, and nothing tells it from another.
    """
    if (before.revision, before.lineage_seq) == (after.revision, after.lineage_seq):
        raise error
    landed: bool | None = None
    with suppress(_ReadError, StrandlineError), store.write(scope) as tx:
        landed = _stands(tx, before, after)
        raise _ReadError
    if landed is None:
        with suppress(StrandlineError), store.read(scope) as tx:
            landed = _stands(tx, before, after) or None
    if landed is None:
        raise error
    if not landed:
        raise StoreUnavailableError(
            f"the store did not commit, and nothing was written ({error.message})", hint="Do it again."
        ) from error


def _stands(tx: Transaction, before: WorkflowHead, after: WorkflowHead) -> bool:
    """Tell whether what the transaction wrote last is there."""
    if after.lineage_seq > before.lineage_seq:
        entry = next(iter(tx.lineage.read(after.lineage_seq - 1, 1)), None)
        return entry is not None and entry.chain == after.lineage_chain
    event = next(iter(tx.log.read(after.revision, after.revision)), None)
    return event is not None and event.chain == after.chain


def unanswered(error: BaseException) -> bool:
    """Tell whether an error is of a commit whose answer was not seen, whatever is known of it by now."""
    return isinstance(error, OutcomeUnknownError) or isinstance(error.__cause__, OutcomeUnknownError)
