"""The door for event loops: the same verbs, the same arguments, the same errors as `blocking`."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Collection, Generator, Sequence
from itertools import islice
from types import TracebackType

from strandline.client.awaiting_actions import AsyncActionVerbs
from strandline.client.awaiting_erasure import AsyncErasureVerbs, AsyncTenantErasure
from strandline.client.awaiting_foreign import AsyncForeignVerbs
from strandline.client.awaiting_recovery import AsyncRecoveryVerbs
from strandline.client.blocking import Strandline, Tenant, VerifyProgress, Workflow, open
from strandline.client.kept_context import AsyncKeptContext
from strandline.client.moving import MoveProgress
from strandline.client.states import AsyncStates
from strandline.client.verbs import in_thread
from strandline.client.worker import Told, Worker
from strandline.engine.compact import compact
from strandline.engine.compare import CompareProgress
from strandline.engine.external import Load
from strandline.engine.import_transcript import Progress
from strandline.engine.preview import preview
from strandline.engine.read_context import Context
from strandline.engine.recover import Recovery
from strandline.limits import (
    COMPARE_LEDGER_TOKENS,
    EXPORT_PAGE_EVENTS,
    RECALL_HITS_MAX,
    SEARCH_HITS,
    SUMMARIZER_DEADLINE_S,
    SWEEP_ROWS,
    SWEEP_ROWS_PER_TENANT,
)
from strandline.model.candidate import Shares
from strandline.model.checkpoint import Checkpoint
from strandline.model.comparison import Comparison
from strandline.model.cooldown import Cooling
from strandline.model.due import PRIORITY_USUAL, DueCompaction, DueKey, DueRun
from strandline.model.event import Appended, Basis, NewEvent, SourceEvent
from strandline.model.figures import Figures, StoreFigures
from strandline.model.found import FoundConstraint
from strandline.model.lineage import LineageEntry
from strandline.model.moving import BackupReport
from strandline.model.outcome import CompactionOutcome, RecallHit, SearchHit, VerifyReport
from strandline.model.preview import Preview
from strandline.model.summary import Manifest
from strandline.model.transcript import ImportReport
from strandline.model.view import View
from strandline.model.witness import Witness, WitnessReport
from strandline.ports import Clock, Controller, Entropy, Hook
from strandline.rules.reference_rules import ReferenceRules
from strandline.transcripts import ExportFormat


class aopen:  # noqa: N801  the name is fixed by the design: await strandline.aopen(…), async with strandline.aopen(…)
    """Open a store for an event loop. Await it, or enter it as an async context manager. Arguments are `open`'s."""

    def __init__(
        self,
        url: str | os.PathLike[str],
        *,
        create: bool = True,
        durability: str = "full",
        counter: object = None,
        hooks: Sequence[Hook] = (),
        references: ReferenceRules | None = None,
        clock: Clock | None = None,
        entropy: Entropy | None = None,
    ) -> None:
        self._open = lambda: open(
            url,
            create=create,
            durability=durability,
            counter=counter,
            hooks=hooks,
            references=references,
            clock=clock,
            entropy=entropy,
        )
        self._db: AsyncStrandline | None = None

    def __await__(self) -> Generator[object, object, AsyncStrandline]:
        return self._opened().__await__()

    async def _opened(self) -> AsyncStrandline:
        return AsyncStrandline(await in_thread(self._open))

    async def __aenter__(self) -> AsyncStrandline:
        self._db = await self._opened()
        return self._db

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._db is not None:
            await self._db.close()


class AsyncStrandline:
    """`Strandline` for an event loop: database steps run in a thread, summarizers are awaited."""

    def __init__(self, db: Strandline) -> None:
        self._db = db

    async def __aenter__(self) -> AsyncStrandline:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def tenant(self, name: str) -> AsyncTenant:
        """As `Strandline.tenant`."""
        return AsyncTenant(self._db.tenant(name))

    async def verify(self, progress: VerifyProgress | None = None) -> VerifyReport:
        """As `Strandline.verify`."""
        return await in_thread(self._db.verify, progress)

    async def witness(self, *, key: bytes | None = None) -> Witness:
        """As `Strandline.witness`."""
        return await in_thread(self._db.witness, key=key)

    async def check_witness(self, document: str | bytes | Witness, *, key: bytes | None = None) -> WitnessReport:
        """As `Strandline.check_witness`."""
        return await in_thread(self._db.check_witness, document, key=key)

    async def sweep(self, limit: int = SWEEP_ROWS, *, per_tenant: int = SWEEP_ROWS_PER_TENANT) -> list[DueKey]:
        """As `Strandline.sweep`."""
        return await in_thread(self._db.sweep, limit, per_tenant=per_tenant)

    async def run_due(
        self,
        key: DueKey,
        summarizer: object = None,
        *,
        worker: str | None = None,
        deadline_s: float = SUMMARIZER_DEADLINE_S,
        fallback: bool = True,
    ) -> DueRun:
        """As `Strandline.run_due`; a cancelled call lets the step in progress settle, and gives the row back."""
        verb = self._db._due_run(key, summarizer, worker, deadline_s, fallback)
        from strandline.engine.aflow import arun  # brings asyncio, which a blocking program can do without

        return await arun(verb, self._db._clock)

    def worker(
        self,
        summarizer: object = None,
        *,
        threads: int = 1,
        name: str | None = None,
        deadline_s: float = SUMMARIZER_DEADLINE_S,
        fallback: bool = True,
        told: Told | None = None,
    ) -> Worker:
        """As `Strandline.worker`: its threads are beside the event loop."""
        return self._db.worker(
            summarizer, threads=threads, name=name, deadline_s=deadline_s, fallback=fallback, told=told
        )

    def watch(self, hook: Hook) -> None:
        """As `Strandline.watch`."""
        self._db.watch(hook)

    def unwatch(self, hook: Hook) -> None:
        """As `Strandline.unwatch`."""
        self._db.unwatch(hook)

    async def backup(self, path: str | os.PathLike[str], progress: MoveProgress | None = None) -> BackupReport:
        """As `Strandline.backup`."""
        return await in_thread(self._db.backup, path, progress)

    async def figures(self) -> StoreFigures:
        """As `Strandline.figures`."""
        return await in_thread(self._db.figures)

    async def close(self) -> None:
        """As `Strandline.close`."""
        await in_thread(self._db.close)


class AsyncTenant(AsyncTenantErasure):
    """`Tenant` for an event loop."""

    _tenant: Tenant

    def __init__(self, tenant: Tenant) -> None:
        self._tenant = tenant
        self.name = tenant.name

    def workflow(self, name: str) -> AsyncWorkflow:
        """As `Tenant.workflow`."""
        return AsyncWorkflow(self._tenant.workflow(name))

    async def import_conversations(
        self,
        path: str | os.PathLike[str],
        name: str,
        progress: Progress | None = None,
        *,
        salvage: bool = False,
    ) -> list[ImportReport]:
        """As `Tenant.import_conversations`."""
        return await in_thread(self._tenant.import_conversations, path, name, progress, salvage=salvage)

    async def state_workflows(self) -> list[str]:
        """As `Tenant.state_workflows`."""
        return await in_thread(self._tenant.state_workflows)

    async def delete_states(self, runs: Collection[str]) -> dict[str, int]:
        """As `Tenant.delete_states`."""
        return await in_thread(self._tenant.delete_states, runs)

    async def cooldowns(self) -> list[Cooling]:
        """As `Tenant.cooldowns`."""
        return await in_thread(self._tenant.cooldowns)

    async def workflows(self) -> list[str]:
        """As `Tenant.workflows`."""
        return await in_thread(self._tenant.workflows)

    async def verify(self, progress: VerifyProgress | None = None) -> VerifyReport:
        """As `Tenant.verify`."""
        return await in_thread(self._tenant.verify, progress)

    async def witness(self, *, key: bytes | None = None) -> Witness:
        """As `Tenant.witness`."""
        return await in_thread(self._tenant.witness, key=key)

    async def check_witness(self, document: str | bytes | Witness, *, key: bytes | None = None) -> WitnessReport:
        """As `Tenant.check_witness`."""
        return await in_thread(self._tenant.check_witness, document, key=key)

    async def figures(self) -> Figures:
        """As `Tenant.figures`."""
        return await in_thread(self._tenant.figures)


class AsyncWorkflow(AsyncRecoveryVerbs, AsyncActionVerbs, AsyncErasureVerbs, AsyncForeignVerbs):
    """`Workflow` for an event loop: the same verbs, the same arguments, the same errors."""

    _workflow: Workflow

    def __init__(self, workflow: Workflow) -> None:
        self._workflow = workflow
        self.name = workflow.name
        self.view_name = workflow.view_name

    @property
    def states(self) -> AsyncStates:
        """As `Workflow.states`."""
        return AsyncStates(self._workflow.states)

    async def define_view(
        self, name: str, *, audiences: Collection[str] | None = None, budget: int | None = None
    ) -> View:
        """As `Workflow.define_view`."""
        return await in_thread(self._workflow.define_view, name, audiences=audiences, budget=budget)

    def view(self, name: str) -> AsyncWorkflow:
        """As `Workflow.view`."""
        return AsyncWorkflow(self._workflow.view(name))

    async def views(self) -> list[View]:
        """As `Workflow.views`."""
        return await in_thread(self._workflow.views)

    async def append(
        self,
        events: NewEvent | Sequence[NewEvent],
        *,
        expected_revision: int | None = None,
        basis: Context | Basis | None = None,
    ) -> Appended:
        """As `Workflow.append`."""
        return await in_thread(self._workflow.append, events, expected_revision=expected_revision, basis=basis)

    async def import_transcript(
        self,
        path: str | os.PathLike[str],
        progress: Progress | None = None,
        *,
        salvage: bool = False,
        live: bool = False,
    ) -> ImportReport:
        """As `Workflow.import_transcript`."""
        return await in_thread(self._workflow.import_transcript, path, progress, salvage=salvage, live=live)

    async def export(self, format: ExportFormat = "strandline", *, abandoned: bool = False) -> AsyncIterator[bytes]:
        """As `Workflow.export`: an async generator."""
        lines = await in_thread(self._workflow.export, format, abandoned=abandoned)
        while piece := await in_thread(list, islice(lines, EXPORT_PAGE_EVENTS)):
            for line in piece:
                yield line

    async def events(self, from_seq: int = 1, through_seq: int | None = None) -> list[SourceEvent]:
        """As `Workflow.events`."""
        return await in_thread(self._workflow.events, from_seq, through_seq)

    async def seqs_of(self, keys: Collection[str]) -> dict[str, int]:
        """As `Workflow.seqs_of`."""
        return await in_thread(self._workflow.seqs_of, keys)

    async def basis(self) -> Basis:
        """As `Workflow.basis`."""
        return await in_thread(self._workflow.basis)

    async def context(self, budget: int | None = None, needs: Sequence[str] = ()) -> Context:
        """As `Workflow.context`."""
        return await in_thread(self._workflow.context, budget, needs)

    def keep_context(self, budget: int | None = None) -> AsyncKeptContext:
        """As `Workflow.keep_context`; nothing is read yet."""
        return AsyncKeptContext(self._workflow.keep_context(budget))

    async def compact(
        self,
        budget: int | None = None,
        summarizer: object = None,
        strict: bool = False,
        *,
        through: int | None = None,
        when_tokens: int | None = None,
        shares: Shares | None = None,
        deadline_s: float = SUMMARIZER_DEADLINE_S,
        fallback: bool = True,
        judge: object = None,
    ) -> CompactionOutcome:
        """As `Workflow.compact`; a cancelled call lets the step in progress settle and gives its lease back."""
        workflow = self._workflow
        order = workflow._order(
            budget,
            summarizer,
            strict=strict,
            through=through,
            when_tokens=when_tokens,
            shares=shares,
            deadline_s=deadline_s,
            fallback=fallback,
            judge=judge,
        )
        from strandline.engine.aflow import arun  # brings asyncio, which a blocking program can do without

        return await arun(compact(workflow._env, order), workflow._env.clock)

    async def preview(
        self,
        budget: int | None = None,
        summarizer: object = None,
        *,
        through: int | None = None,
        shares: Shares | None = None,
        deadline_s: float = SUMMARIZER_DEADLINE_S,
    ) -> Preview:
        """As `Workflow.preview`."""
        workflow = self._workflow
        order = workflow._order(budget, summarizer, through=through, shares=shares, deadline_s=deadline_s)
        from strandline.engine.aflow import arun

        return await arun(preview(workflow._env, order), workflow._env.clock)

    async def compact_later(
        self,
        budget: int | None = None,
        *,
        when_tokens: int | None = None,
        strict: bool = False,
        delay_s: float = 0.0,
        priority: int = PRIORITY_USUAL,
    ) -> DueCompaction:
        """As `Workflow.compact_later`."""
        return await in_thread(
            self._workflow.compact_later,
            budget,
            when_tokens=when_tokens,
            strict=strict,
            delay_s=delay_s,
            priority=priority,
        )

    async def compact_when(
        self,
        *,
        tokens: int | None = None,
        events: int | None = None,
        age_s: float | None = None,
        idle_s: float | None = None,
        budget: int | None = None,
        priority: int = PRIORITY_USUAL,
    ) -> DueCompaction | None:
        """As `Workflow.compact_when`."""
        return await in_thread(
            self._workflow.compact_when,
            tokens=tokens,
            events=events,
            age_s=age_s,
            idle_s=idle_s,
            budget=budget,
            priority=priority,
        )

    async def due(self) -> list[DueCompaction]:
        """As `Workflow.due`."""
        return await in_thread(self._workflow.due)

    async def compare(
        self,
        summarizer: object = None,
        *,
        ledger_tokens: int = COMPARE_LEDGER_TOKENS,
        shares: Shares | None = None,
        deadline_s: float = SUMMARIZER_DEADLINE_S,
        progress: CompareProgress | None = None,
    ) -> Comparison:
        """As `Workflow.compare`."""
        workflow = self._workflow
        verb = workflow._comparison(summarizer, ledger_tokens, shares, deadline_s, progress)
        from strandline.engine.aflow import arun  # brings asyncio, which a blocking program can do without

        return await arun(verb, workflow._env.clock)

    async def checkpoint(
        self,
        state: object,
        turn: int,
        *,
        basis: Context | Basis | None = None,
        name: str | None = None,
        context_free: bool = False,
    ) -> Checkpoint:
        """As `Workflow.checkpoint`."""
        return await in_thread(
            self._workflow.checkpoint, state, turn, basis=basis, name=name, context_free=context_free
        )

    async def recover(
        self,
        needs: Sequence[str] = (),
        *,
        name: str | None = None,
        budget: int | None = None,
        controller: Controller | None = None,
        dry_run: bool = False,
        prior_state: bool = False,
        load: Load | None = None,
    ) -> Recovery:
        """As `Workflow.recover`."""
        return await in_thread(
            self._workflow.recover,
            needs,
            name=name,
            budget=budget,
            controller=controller,
            dry_run=dry_run,
            prior_state=prior_state,
            load=load,
        )

    async def recall(self, ref: str, limit: int = RECALL_HITS_MAX) -> list[RecallHit]:
        """As `Workflow.recall`."""
        return await in_thread(self._workflow.recall, ref, limit)

    async def search(
        self, text: str, limit: int = SEARCH_HITS, *, before: int | None = None, reindex: bool = False
    ) -> list[SearchHit]:
        """As `Workflow.search`."""
        return await in_thread(self._workflow.search, text, limit, before=before, reindex=reindex)

    async def found_constraints(self) -> list[FoundConstraint]:
        """As `Workflow.found_constraints`."""
        return await in_thread(self._workflow.found_constraints)

    async def confirm_constraint(self, name: str, *, subject: str | None = None, actor: str = "") -> Appended:
        """As `Workflow.confirm_constraint`."""
        return await in_thread(self._workflow.confirm_constraint, name, subject=subject, actor=actor)

    async def dismiss_constraint(self, name: str, *, why: str = "", actor: str = "") -> Appended:
        """As `Workflow.dismiss_constraint`."""
        return await in_thread(self._workflow.dismiss_constraint, name, why=why, actor=actor)

    async def manifest(self) -> Manifest:
        """As `Workflow.manifest`."""
        return await in_thread(self._workflow.manifest)

    async def lineage(self) -> list[LineageEntry]:
        """As `Workflow.lineage`."""
        return await in_thread(self._workflow.lineage)

    async def verify(self, progress: VerifyProgress | None = None) -> VerifyReport:
        """As `Workflow.verify`."""
        return await in_thread(self._workflow.verify, progress)
