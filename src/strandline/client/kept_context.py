"""A context that is read again and again by one process."""

from __future__ import annotations

from collections.abc import Sequence

from strandline.client.verbs import in_thread
from strandline.engine.environment import Environment
from strandline.engine.kept_tail import KeptTail
from strandline.engine.read_context import Context, read_context


class KeptContext:
    """The working context of a view, for one that reads it at every turn: what it has read it does not read again.

    It answers as `Workflow.context` does. What it keeps was verified when it was read, and is used as long as the
    view's pointer and the chains of log and lineage say that the store holds it still; after a compaction, a rewind or
    an erasure all is read anew (I4, I7). It holds its last context in memory, of at most KEPT_CONTEXT_BYTES_MAX, until
    its next read. May be used from any thread.
    """

    def __init__(self, env: Environment, view: str, budget: int | None) -> None:
        self._env, self._view, self._budget = env, view, budget
        self._kept = KeptTail()

    def read(self, needs: Sequence[str] = ()) -> Context:
        """Read it, as `Workflow.context`; with needs, all of it.

        Args:
            needs: references that must stand verbatim in it.

        Raises:
            ContextOverflowError, SummaryReconciliationError, CorruptRecordError: as `Workflow.context`.
        """
        return read_context(self._env, self._view, self._budget, needs, self._kept)


class AsyncKeptContext:
    """`KeptContext` for an event loop."""

    def __init__(self, kept: KeptContext) -> None:
        self._kept = kept

    async def read(self, needs: Sequence[str] = ()) -> Context:
        """As `KeptContext.read`."""
        return await in_thread(self._kept.read, needs)
