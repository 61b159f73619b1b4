"""`erasure_verbs` and `tenant_erasure` for event loops."""

from __future__ import annotations

from collections.abc import Sequence

from strandline.client.erasure_verbs import ErasureVerbs
from strandline.client.tenant_erasure import TenantErasure
from strandline.client.verbs import in_thread
from strandline.model.erasure import Erased, Hold, Reader, Retained, RetentionRule
from strandline.model.event import EventKind


class AsyncErasureVerbs:
    """A part of `AsyncWorkflow`."""

    _workflow: ErasureVerbs

    async def erase(
        self,
        *,
        events: Sequence[int] = (),
        refs: Sequence[str] = (),
        actor: str | None = None,
        person: str | None = None,
        everything: bool = False,
        by: str,
        why: str,
        force: bool = False,
        scan: bool = True,
    ) -> Erased:
        """As `Workflow.erase`."""
        return await in_thread(
            self._workflow.erase,
            events=events,
            refs=refs,
            actor=actor,
            person=person,
            everything=everything,
            by=by,
            why=why,
            force=force,
            scan=scan,
        )

    async def hold(self, name: str, *, by: str, why: str) -> Hold:
        """As `Workflow.hold`."""
        return await in_thread(self._workflow.hold, name, by=by, why=why)

    async def lift_hold(self, name: str, *, by: str, why: str) -> Hold:
        """As `Workflow.lift_hold`."""
        return await in_thread(self._workflow.lift_hold, name, by=by, why=why)

    async def holds(self) -> list[Hold]:
        """As `Workflow.holds`."""
        return await in_thread(self._workflow.holds)

    async def read_through(self, reader: str, seq: int, *, finished: bool = False) -> Reader:
        """As `Workflow.read_through`."""
        return await in_thread(self._workflow.read_through, reader, seq, finished=finished)

    async def readers(self) -> list[Reader]:
        """As `Workflow.readers`."""
        return await in_thread(self._workflow.readers)


class AsyncTenantErasure:
    """A part of `AsyncTenant`."""

    _tenant: TenantErasure

    async def erase(
        self,
        *,
        refs: Sequence[str] = (),
        actor: str | None = None,
        person: str | None = None,
        everything: bool = False,
        workflows: Sequence[str] = (),
        by: str,
        why: str,
        force: bool = False,
        scan: bool = True,
    ) -> list[Retained]:
        """As `Tenant.erase`."""
        return await in_thread(
            self._tenant.erase,
            refs=refs,
            actor=actor,
            person=person,
            everything=everything,
            workflows=workflows,
            by=by,
            why=why,
            force=force,
            scan=scan,
        )

    async def hold(self, name: str, *, by: str, why: str) -> Hold:
        """As `Tenant.hold`."""
        return await in_thread(self._tenant.hold, name, by=by, why=why)

    async def lift_hold(self, name: str, *, by: str, why: str) -> Hold:
        """As `Tenant.lift_hold`."""
        return await in_thread(self._tenant.lift_hold, name, by=by, why=why)

    async def holds(self) -> list[Hold]:
        """As `Tenant.holds`."""
        return await in_thread(self._tenant.holds)

    async def set_retention(
        self,
        name: str,
        *,
        older_than_s: float,
        kinds: Sequence[EventKind | str] = (),
        workflows: Sequence[str] = (),
        by: str,
        why: str,
    ) -> RetentionRule:
        """As `Tenant.set_retention`."""
        return await in_thread(
            self._tenant.set_retention,
            name,
            older_than_s=older_than_s,
            kinds=kinds,
            workflows=workflows,
            by=by,
            why=why,
        )

    async def drop_retention(self, name: str, *, by: str, why: str) -> RetentionRule:
        """As `Tenant.drop_retention`."""
        return await in_thread(self._tenant.drop_retention, name, by=by, why=why)

    async def retention(self) -> list[RetentionRule]:
        """As `Tenant.retention`."""
        return await in_thread(self._tenant.retention)

    async def retain(
        self, *, apply: bool = False, by: str = "", why: str = "", force: bool = False, scan: bool = True
    ) -> list[Retained]:
        """As `Tenant.retain`."""
        return await in_thread(self._tenant.retain, apply=apply, by=by, why=why, force=force, scan=scan)
