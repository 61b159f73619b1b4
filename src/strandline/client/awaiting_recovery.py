"""`recovery_verbs` for event loops."""

from __future__ import annotations

from collections.abc import Collection

from strandline.client.recovery_verbs import RecoveryVerbs
from strandline.client.verbs import in_thread
from strandline.engine.read_context import Context
from strandline.limits import CASES_LISTED_MAX
from strandline.model.case import Case, CaseAnswer
from strandline.model.checkpoint import Checkpoint
from strandline.model.event import Basis
from strandline.model.outcome import Forked, Reverted, Rewound


class AsyncRecoveryVerbs:
    """A part of `AsyncWorkflow`."""

    _workflow: RecoveryVerbs

    async def register_checkpoint(
        self,
        address: str,
        digest: str,
        turn: int,
        *,
        basis: Context | Basis | None = None,
        name: str | None = None,
        context_free: bool = False,
    ) -> Checkpoint:
        """As `Workflow.register_checkpoint`."""
        return await in_thread(
            self._workflow.register_checkpoint,
            address,
            digest,
            turn,
            basis=basis,
            name=name,
            context_free=context_free,
        )

    async def revert(self, to_generation: int, *, by: str, why: str) -> Reverted:
        """As `Workflow.revert`."""
        return await in_thread(self._workflow.revert, to_generation, by=by, why=why)

    async def report_regression(self, generation: int, *, by: str, why: str) -> Case:
        """As `Workflow.report_regression`."""
        return await in_thread(self._workflow.report_regression, generation, by=by, why=why)

    async def rewind(
        self,
        to_revision: int | None = None,
        *,
        checkpoint_seq: int | None = None,
        keep: Collection[int] = (),
        expected_revision: int | None = None,
        by: str,
        why: str,
    ) -> Rewound:
        """As `Workflow.rewind`."""
        return await in_thread(
            self._workflow.rewind,
            to_revision,
            checkpoint_seq=checkpoint_seq,
            keep=keep,
            expected_revision=expected_revision,
            by=by,
            why=why,
        )

    async def cases(self, include_answered: bool = False, limit: int = CASES_LISTED_MAX) -> list[Case]:
        """As `Workflow.cases`."""
        return await in_thread(self._workflow.cases, include_answered, limit)

    async def case(self, case_id: str) -> Case:
        """As `Workflow.case`."""
        return await in_thread(self._workflow.case, case_id)

    async def reconcile(self, case: Case | str, answer: CaseAnswer, *, by: str, why: str) -> Case:
        """As `Workflow.reconcile`."""
        return await in_thread(self._workflow.reconcile, case, answer, by=by, why=why)

    async def fork(self, at_revision: int | None, name: str, *, by: str, why: str) -> Forked:
        """As `Workflow.fork`."""
        return await in_thread(self._workflow.fork, at_revision, name, by=by, why=why)
