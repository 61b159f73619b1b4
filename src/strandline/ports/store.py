"""The store: where everything is kept, in transactions on one workflow."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol, runtime_checkable

from strandline.model.due import DueKey
from strandline.model.erasure import FileScan
from strandline.model.figures import StoreFigures
from strandline.model.ids import Scope
from strandline.ports.decisions import CaseFacet, EffectFacet, PermitFacet
from strandline.ports.log import LogFacet, RefFacet, RegisterFacet, SearchFacet
from strandline.ports.memory import (
    CheckpointFacet,
    CooldownFacet,
    DueFacet,
    JobFacet,
    LineageFacet,
    ReaderFacet,
    SummaryFacet,
    ViewFacet,
)
from strandline.ports.outside import Clock
from strandline.ports.states import NodeFacet, StateFacet


class Transaction(Protocol):
    """One transaction on one workflow: a snapshot when reading, the head's lock when writing. When it is over its
    facets refuse everything.
    """

    @property
    def log(self) -> LogFacet:
        """The events."""
        ...

    @property
    def refs(self) -> RefFacet:
        """The references."""
        ...

    @property
    def register(self) -> RegisterFacet:
        """The register."""
        ...

    @property
    def search(self) -> SearchFacet:
        """The index of words."""
        ...

    @property
    def views(self) -> ViewFacet:
        """Views and their pointers."""
        ...

    @property
    def jobs(self) -> JobFacet:
        """Candidates and attempts."""
        ...

    @property
    def summaries(self) -> SummaryFacet:
        """Summaries and manifests."""
        ...

    @property
    def lineage(self) -> LineageFacet:
        """The lineage."""
        ...

    @property
    def checkpoints(self) -> CheckpointFacet:
        """Checkpoints."""
        ...

    @property
    def cases(self) -> CaseFacet:
        """Cases."""
        ...

    @property
    def effects(self) -> EffectFacet:
        """The ledger of effects."""
        ...

    @property
    def permits(self) -> PermitFacet:
        """Permits."""
        ...

    @property
    def readers(self) -> ReaderFacet:
        """Readers of the log outside."""
        ...

    @property
    def cooldowns(self) -> CooldownFacet:
        """How summarizers answered."""
        ...

    @property
    def due(self) -> DueFacet:
        """Due compactions."""
        ...

    @property
    def states(self) -> StateFacet:
        """Saved states."""
        ...

    @property
    def nodes(self) -> NodeFacet:
        """What the values of saved states are made of."""
        ...

    def relative(self, workflow: str, *, locked: bool = False) -> Transaction:
        """Return the facets of another workflow of the tenant, in this same transaction: of the family that forks make
        (C22). With `locked` a write transaction takes its head's lock, too, and may write to it; without, it is read.
        Who locks goes upward, from himself to an ancestor and never back: so no two wait for each other (ADR 0038).
        """
        ...


@runtime_checkable
class ClockedStore(Protocol):
    """A store that has a clock of its own, which all processes on it share: by it leases and expiry are judged."""

    @property
    def clock(self) -> Clock:
        """The store's clock."""
        ...


@runtime_checkable
class ScrubbedStore(Protocol):
    """A store whose files are here, so that they can be searched for what was erased."""

    def scrub(self, needles: Sequence[bytes]) -> FileScan:
        """Search the files for strings of bytes; write them anew where one is found, and search them again (C31)."""
        ...


class Store(Protocol):
    """Where everything is kept. All methods may be called from any thread."""

    @property
    def digest_key(self) -> bytes:
        """The store's secret key of 32 bytes for digests of short content, made once."""
        ...

    @property
    def path(self) -> str | None:
        """What `--store` of the command line takes; None: nobody else can open it. Hints name it."""
        ...

    def read(self, scope: Scope) -> AbstractContextManager[Transaction]:
        """Open one snapshot. Nothing is written; a workflow that is not there is empty."""
        ...

    def write(self, scope: Scope, *, joins: bool = True) -> AbstractContextManager[Transaction]:
        """Open a writing transaction that holds the workflow's lock from its first statement. Leaving it normally
        commits, leaving it by an exception rolls back. `joins`: it is short, and may share a commit with others.

        Raises:
            StoreUnavailableError: not open, locked for too long, full, read-only.
            OutcomeUnknownError: the commit was sent and not acknowledged (I19).
        """
        ...

    def scopes(self, tenant: str | None = None) -> list[Scope]:
        """Return the workflows, of one tenant or of all."""
        ...

    def due(self, now_us: int, limit: int, per_tenant: int) -> list[DueKey]:
        """Return due compactions of all tenants that no worker holds (`DueCompaction.offered`), at most `limit`.

        Tenants take turns, the one that has waited longest first, and each has at most `per_tenant`; within a tenant
        the highest priority comes first, then what has been due for the longest time. It costs what is returned, and a
        step per tenant that has due rows; never what else waits. It sees keys, times and priorities only.
        """
        ...

    def figures(self, tenant: str | None, now_us: int) -> StoreFigures:
        """Return counts and ages out of the rows, of one tenant or of all, as one snapshot holds them (C27).

        It reads no event. Of a tenant it reads that tenant's rows only (I21); one that is not there has none.
        """
        ...

    def problems(self) -> list[str]:
        """Return what the storage engine itself finds wrong; for `verify`."""
        ...

    def close(self) -> None:
        """Release everything; calling it again does nothing."""
        ...
