"""`action_verbs` for event loops."""

from __future__ import annotations

from collections.abc import Sequence

from strandline.client.action_verbs import ActionVerbs
from strandline.client.verbs import in_thread
from strandline.engine.read_context import Context
from strandline.model.action import ActionNeed, Permit
from strandline.model.event import Basis


class AsyncActionVerbs:
    """A part of `AsyncWorkflow`."""

    _workflow: ActionVerbs

    async def guard(
        self, action: str, needs: Sequence[ActionNeed], *, by: str = "", basis: Context | Basis | None = None
    ) -> Permit:
        """As `Workflow.guard`."""
        return await in_thread(self._workflow.guard, action, needs, by=by, basis=basis)

    async def permits(self) -> list[Permit]:
        """As `Workflow.permits`."""
        return await in_thread(self._workflow.permits)
