"""`foreign_verbs` for event loops."""

from __future__ import annotations

from strandline.client.foreign_verbs import ForeignVerbs
from strandline.client.verbs import in_thread
from strandline.limits import CARRIED_TOKENS
from strandline.model.foreign import Carried, ForeignJudgement
from strandline.model.outcome import ForeignSummary


class AsyncForeignVerbs:
    """A part of `AsyncWorkflow`."""

    _workflow: ForeignVerbs

    async def foreign_summaries(self) -> list[ForeignSummary]:
        """As `Workflow.foreign_summaries`."""
        return await in_thread(self._workflow.foreign_summaries)

    async def carried(self, budget: int = CARRIED_TOKENS, *, beside: str = "") -> Carried:
        """As `Workflow.carried`."""
        return await in_thread(self._workflow.carried, budget, beside=beside)

    async def judge_foreign(self, text: str, *, through: int | None = None, by: str = "") -> ForeignJudgement:
        """As `Workflow.judge_foreign`."""
        return await in_thread(self._workflow.judge_foreign, text, through=through, by=by)
