"""The verbs about actions outside: effects and guards (C23, C24)."""

from __future__ import annotations

from collections.abc import Sequence

from strandline.client.verbs import Verbs, basis_of
from strandline.engine.guard import guard, list_permits
from strandline.engine.read_context import Context
from strandline.model.action import ActionNeed, Permit
from strandline.model.event import Basis


class ActionVerbs(Verbs):
    """A part of `Workflow`."""

    def guard(
        self, action: str, needs: Sequence[ActionNeed], *, by: str = "", basis: Context | Basis | None = None
    ) -> Permit:
        """Decide by durable facts whether an action may be done, and record the decision (I20).

        Args:
            action: what is to be done.
            needs: what must hold: `approved`, `resolved`, `no_open_issue`, `in_force`, `not_in_force`.
            by: who acts; an approval by the same name does not count.
            basis: the context from which the action was decided on; None: the current one.

        Raises:
            ActionDeniedError: a need is not met; it says which and why, and the denial is recorded.
            InvalidInputError: no action, no need, a basis that never was.
        """
        found = None if basis is None else basis_of(basis)
        return guard(self._env, action, needs, by=by, basis=found, view=self._view)

    def permits(self) -> list[Permit]:
        """Return every decision about an action, granted and denied, the oldest first; with those of forks."""
        return list_permits(self._env)
