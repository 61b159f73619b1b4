"""`recovery_verbs` for event loops."""

from __future__ import annotations

from strandline.client.recovery_verbs import RecoveryVerbs
from strandline.client.verbs import in_thread
from strandline.model.case import Case
from strandline.model.outcome import Reverted, Rewound


class AsyncRecoveryVerbs:
    """A part of `AsyncWorkflow`."""

    _workflow: RecoveryVerbs

    async def revert(self, to_generation: int, *, by: str, why: str) -> Reverted:
        """As `Workflow.revert`."""
        return await in_thread(self._workflow.revert, to_generation, by=by, why=why)

    async def report_regression(self, generation: int, *, by: str, why: str) -> Case:
        """As `Workflow.report_regression`."""
        return await in_thread(self._workflow.report_regression, generation, by=by, why=why)

    async def rewind(
        self, to_revision: int | None = None, *, checkpoint_seq: int | None = None, by: str, why: str
    ) -> Rewound:
        """As `Workflow.rewind`."""
        return await in_thread(self._workflow.rewind, to_revision, checkpoint_seq=checkpoint_seq, by=by, why=why)
