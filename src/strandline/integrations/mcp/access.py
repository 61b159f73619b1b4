"""What a credential lets its holder reach. No argument of a tool says whose memory is meant (I21)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from strandline import InvalidInputError, Strandline, TenantScopeError, Workflow
from strandline.model.ids import DEFAULT_VIEW, check_name, check_workflow

DEFAULT_ACTOR: Final = "mcp"
_OWN: Final = "/"  # between an actor and what it named


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Whose memory a caller reads and appends to, and in whose name.

    Args:
        tenant: the only one that there is for the caller.
        workflows: the only ones; None: all of the tenant's, those to come too.
        view: the window through which the caller reads.
        actor: who states what the caller appends. It holds no "/".

    Raises:
        TenantScopeError: a name that can't be one.
        InvalidInputError: workflows that are none, or an actor with a "/".
    """

    tenant: str
    workflows: Sequence[str] | None = None
    view: str = DEFAULT_VIEW
    actor: str = DEFAULT_ACTOR

    def __post_init__(self) -> None:
        check_name("tenant", self.tenant)
        check_name("view", self.view)
        if _OWN in check_name("caller", self.actor):
            raise InvalidInputError(f"the actor {self.actor!r} holds a {_OWN!r}, which parts it from what it names")
        if self.workflows is not None:
            if isinstance(self.workflows, str) or not self.workflows:
                raise InvalidInputError(f"workflows are a list of names, or None for all; not {self.workflows!r}")
            object.__setattr__(self, "workflows", tuple(map(check_workflow, self.workflows)))

    def open(self, db: Strandline, name: str | None) -> Workflow:
        """Return the workflow of a name, through the caller's view; None: the only one.

        Raises:
            InvalidInputError: none is named, and there may be several.
            TenantScopeError: it is none of the caller's. Whether it is there is not told.
        """
        only = self.workflows[0] if self.workflows is not None and len(self.workflows) == 1 else None
        chosen = only if name is None else name
        if chosen is None:
            raise InvalidInputError("no workflow is named", hint="Name one: `status` lists those that there are.")
        if self.workflows is not None and chosen not in self.workflows:
            raise TenantScopeError(
                f"workflow {chosen!r} is none that this credential may use", hint="`status` lists those that it may."
            )
        return db.tenant(self.tenant).workflow(chosen).view(self.view)

    def own(self, name: str) -> str:
        """Return a name as the caller's own: what it names is never what somebody else named."""
        return f"{self.actor}{_OWN}{name}"
