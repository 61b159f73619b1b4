"""Which store and which workflow a command works on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from strandline.cli.options import VIEW
from strandline.cli.output import warn

if TYPE_CHECKING:
    from strandline import Strandline, Workflow


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Store, tenant, workflow and view, as the options name them."""

    store: str
    tenant: str
    workflow: str | None
    view: str

    @contextmanager
    def open(self, *, create: bool = False, file: Path | None = None) -> Iterator[Workflow]:
        """Open the workflow, and close the store at the end.

        Args:
            create: make store and workflow when they are not there.
            file: a transcript whose name stands for that of the workflow.

        Raises:
            StoreUnavailableError: the store can't be opened, or is not there and create is False.
            TenantScopeError: no valid name, or no such view.
            typer.BadParameter: the workflow is not named, and it is not clear which one is meant.
        """
        with self.open_store(create=create) as db:
            tenant = db.tenant(self.tenant)
            name = self.workflow if self.workflow is not None else file.stem if file is not None else None
            if name is None:
                name = _only(tenant.workflows(), self.tenant)
            workflow = tenant.workflow(name)
            if not create and name not in tenant.workflows():
                warn(f"the store holds no workflow {name!r} of tenant {self.tenant!r}; it is taken as empty")
            yield workflow

    def open_store(self, *, create: bool = False) -> Strandline:
        """Open the store; names are checked before anything is created."""
        import strandline
        from strandline.model.ids import check_name

        for what, name in (("tenant", self.tenant), ("workflow", self.workflow), ("view", self.view)):
            if name is not None:
                check_name(what, name)
        if self.view != VIEW:
            raise strandline.TenantScopeError(f"{self.tenant}/{self.workflow or '…'} has no view {self.view!r}")
        return strandline.open(self.store, create=create)


def _only(workflows: list[str], tenant: str) -> str:
    if len(workflows) == 1:
        return workflows[0]
    held = f"it holds {len(workflows)}: {', '.join(workflows)}" if workflows else "it holds none"
    raise typer.BadParameter(f"needed for this store: of tenant {tenant!r} {held}", param_hint="--workflow")
