"""The door for programs that block: Strandline, a tenant, a workflow. One line per verb over the engine."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from types import TracebackType

from strandline.client.action_verbs import ActionVerbs
from strandline.client.background_verbs import BackgroundVerbs
from strandline.client.erasure_verbs import ErasureVerbs
from strandline.client.foreign_verbs import ForeignVerbs
from strandline.client.memory_verbs import MemoryVerbs
from strandline.client.moving import MoveProgress, back_up
from strandline.client.opening import open_store
from strandline.client.patterns import references_with
from strandline.client.recovery_verbs import RecoveryVerbs
from strandline.client.states import States
from strandline.client.tenant_erasure import TenantErasure
from strandline.client.verbs import basis_of
from strandline.client.witness_verbs import Witnessed, WitnessVerbs
from strandline.codec import keyed_hex
from strandline.engine import append as append_verb
from strandline.engine.checkpoint import checkpoint
from strandline.engine.cooling import list_cooldowns
from strandline.engine.define_view import define_view, list_views
from strandline.engine.delete_states import delete_states
from strandline.engine.environment import Environment
from strandline.engine.external import Load, Loader
from strandline.engine.import_transcript import Progress, import_conversations, import_transcript
from strandline.engine.read_context import Context, read_basis
from strandline.engine.read_events import read_events, seqs_of
from strandline.engine.recover import Recovery, RecoveryRequest, recover
from strandline.engine.verify import told_narrowly, verify
from strandline.errors import InvalidInputError
from strandline.model.checkpoint import Checkpoint
from strandline.model.cooldown import Cooling
from strandline.model.event import Appended, Basis, NewEvent, SourceEvent
from strandline.model.figures import Figures, StoreFigures
from strandline.model.ids import DEFAULT_VIEW, TENANT_RULES, Scope, check_name, check_workflow
from strandline.model.moving import BackupReport
from strandline.model.outcome import VerifyReport
from strandline.model.transcript import ImportReport
from strandline.model.view import View
from strandline.ports import Clock, ClockedStore, Controller, Entropy, Hook, Store
from strandline.rules.reference_rules import ReferenceRules
from strandline.summarizers import as_counter
from strandline.system import SystemClock, SystemEntropy
from strandline.transcripts import Known, Transcript, open_transcript

VerifyProgress = Callable[[int, int], None]


def open(
    url: str | os.PathLike[str],
    *,
    create: bool = True,
    durability: str = "full",
    counter: object = None,
    hooks: Sequence[Hook] = (),
    references: ReferenceRules | None = None,
    clock: Clock | None = None,
    entropy: Entropy | None = None,
) -> Strandline:
    """Open a store.

    Args:
        url: a path, "sqlite:///path", or ":memory:".
        create: make the file when it is not there.
        durability: "full" survives power loss, "normal" survives process death only (I2).
        counter: a TokenCounter or a function text -> tokens; None: UTF-8 bytes / 3.
        hooks: told of what happened, after each commit.
        references: what is a reference beside what the extractor knows, and what is none (C3); None: as it is.
        clock: the source of time; None: the store's own, as PostgreSQL has one, or the machine's.
        entropy: the source of randomness; None: the machine's.

    Raises:
        StoreUnavailableError: the file can't be opened, is not there with create=False, or is no Strandline store.
        InvalidInputError: a URL of another kind, or a pattern that is none.
    """
    machine, entropy = clock or SystemClock(), entropy or SystemEntropy()
    references_with(references)  # is refused before a file is made
    store = open_store(url, create=create, durability=durability, clock=machine, entropy=entropy)
    if clock is None and isinstance(store, ClockedStore):
        machine = store.clock
    return Strandline(store, counter=counter, hooks=hooks, references=references, clock=machine, entropy=entropy)


class Strandline(BackgroundVerbs, WitnessVerbs):
    """An open store. It is a context manager; its methods may be called from any thread."""

    def __init__(
        self,
        store: Store,
        *,
        counter: object = None,
        hooks: Sequence[Hook] = (),
        references: ReferenceRules | None = None,
        clock: Clock | None = None,
        entropy: Entropy | None = None,
    ) -> None:
        self.store = store
        self._counter = as_counter(counter)
        self._hooks = list(hooks)
        self._references = references_with(references)
        self._clock = clock or SystemClock()
        self._entropy = entropy or SystemEntropy()

    def __enter__(self) -> Strandline:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def tenant(self, name: str) -> Tenant:
        """Return a tenant: the unit of isolation. Nothing is written.

        Raises:
            TenantScopeError: no valid name (I21).
        """
        return Tenant(self, check_name("tenant", name))

    def verify(self, progress: VerifyProgress | None = None) -> VerifyReport:
        """Prove the whole store (C5)."""
        return self._verify(self.store.scopes(), progress)

    def _verify(self, scopes: list[Scope], progress: VerifyProgress | None) -> VerifyReport:
        return verify(self._environment(_any_of(scopes)), scopes, progress)

    def _witnessed(self) -> Witnessed:
        scopes = self.store.scopes()
        return self._environment(_any_of(scopes)), scopes, None

    def backup(self, path: str | os.PathLike[str], progress: MoveProgress | None = None) -> BackupReport:
        """Copy the store as it is now into a new SQLite file, while it is written to (C6).

        Args:
            path: where no file is. It gets this name when it is whole and flushed; its mode is 0600.
            progress: told of how much, of how much, is done.

        Raises:
            InvalidInputError: the path is taken, or the store is one in memory; nothing was written.
            StoreUnavailableError: the store or the file can't be read or written.
        """
        return back_up(self.store, path, progress)

    def figures(self) -> StoreFigures:
        """Return counts and ages of all tenants, out of the store's rows: for who operates it (C27)."""
        return self.store.figures(None, self._clock.now_us())

    def close(self) -> None:
        """Release the store; calling it again does nothing."""
        self.store.close()

    def _environment(self, scope: Scope) -> Environment:
        return Environment(
            store=self.store,
            clock=self._clock,
            entropy=self._entropy,
            counter=self._counter,
            scope=scope,
            hooks=self._hooks,
            references=self._references,
        )


class Tenant(TenantErasure, WitnessVerbs):
    """One tenant of a store."""

    def __init__(self, db: Strandline, name: str) -> None:
        self._db = db
        self.name = name
        self._rules = db._environment(Scope(tenant=name, workflow=TENANT_RULES))

    def __repr__(self) -> str:
        return f"Tenant({self.name!r})"

    def workflow(self, name: str) -> Workflow:
        """Return a workflow: one log, one lineage. It is made by its first append.

        Raises:
            TenantScopeError: no valid name.
        """
        return Workflow(self._db._environment(Scope(tenant=self.name, workflow=check_workflow(name))))

    def import_conversations(
        self,
        path: str | os.PathLike[str],
        name: str,
        progress: Progress | None = None,
        *,
        salvage: bool = False,
    ) -> list[ImportReport]:
        """Import each conversation of a transcript into a workflow of its own: `name-1`, `name-2` and so on (C2).

        Each is all or nothing by itself; importing again adds what is new.

        Raises:
            ImportFormatError: the file is damaged; nothing was imported.
            IdempotencyConflictError: a conversation does not continue what was imported of it.
        """
        check_name("workflow", name)
        transcript = _transcript(self._db.store, path, salvage=salvage, split=True)
        return import_conversations(lambda number: self.workflow(f"{name}-{number}")._env, transcript, progress)

    def workflows(self) -> list[str]:
        """Return the names of the tenant's workflows."""
        return [s.workflow for s in self._db.store.scopes(self.name) if s.workflow != TENANT_RULES]

    def state_workflows(self) -> list[str]:
        """Return the names of the tenant's workflows that hold saved states."""
        return [name for name in self.workflows() if self.workflow(name).states.lines()]

    def delete_states(self, runs: Collection[str]) -> dict[str, int]:
        """Delete the saved states of some runs in all workflows of the tenant, each in a transaction of its own.

        Args:
            runs: as they were given to `States.save`.

        Returns how many were deleted, by workflow.

        Raises:
            ErasureRefusedError: a legal hold covers a workflow that holds some; what was deleted before stays deleted.
        """
        if isinstance(runs, str):
            raise InvalidInputError(f"runs are several names, not the text {runs!r}; nothing was deleted")
        found = {name: delete_states(self.workflow(name)._env, frozenset(runs)) for name in self.workflows()}
        return {name: count for name, count in found.items() if count}

    def cooldowns(self) -> list[Cooling]:
        """Return the summarizers that nobody calls now, since they did not answer (C14): until when, and after what."""
        scopes = self._db.store.scopes(self.name)
        return list_cooldowns(self._db._environment(scope) for scope in scopes)

    def verify(self, progress: VerifyProgress | None = None) -> VerifyReport:
        """Prove the tenant's workflows, and the storage engine's own structures (C5)."""
        return self._db._verify(self._db.store.scopes(self.name), progress)

    def _witnessed(self) -> Witnessed:
        scopes = self._db.store.scopes(self.name)
        return self._db._environment(_any_of(scopes)), scopes, self.name

    def figures(self) -> Figures:
        """Return the tenant's own counts and ages, out of the store's rows (C27, I21)."""
        return self._db.store.figures(self.name, self._db._clock.now_us()).of(self.name)


class Workflow(MemoryVerbs, RecoveryVerbs, ActionVerbs, ErasureVerbs, ForeignVerbs):
    """The verbs on one workflow, as one of its views sees it: `main`, which reads everything, or one of `view`."""

    def __init__(self, env: Environment, view: str = DEFAULT_VIEW) -> None:
        self._env = env
        self._view = view

    def __repr__(self) -> str:
        through = "" if self._view == DEFAULT_VIEW else f", view {self._view!r}"
        return f"Workflow({str(self._env.scope)!r}{through})"

    @property
    def name(self) -> str:
        """The workflow's name."""
        return self._env.scope.workflow

    @property
    def view_name(self) -> str:
        """The name of the view that the verbs read through."""
        return self._view

    @property
    def states(self) -> States:
        """The states that frameworks save of themselves.

        Raises:
            InvalidInputError: it is asked of a narrow view: nobody can tell which audiences a saved state speaks for.
        """
        self._check_wide("read or save states")
        return States(self._env)

    def define_view(self, name: str, *, audiences: Collection[str] | None = None, budget: int | None = None) -> View:
        """Make a view, or give it another budget or other audiences (C18, I21). The same again changes nothing.

        With other audiences it begins anew: with an empty summary, under a new generation; nothing that was made from
        the old ones comes back.

        Args:
            name: of the view; `main` may be given a budget.
            audiences: which it reads beside everyone's, at most VIEW_AUDIENCES_MAX; None: for `main` alone.
            budget: tokens of its contexts where a call names none; None: CONTEXT_BUDGET_TOKENS.

        Raises:
            InvalidInputError: no collection of names, audiences for `main`, more than VIEWS_MAX views, a budget that
                can't be, or it is asked through a narrow view; nothing was written.
            TenantScopeError: no view can have this name.
        """
        self._check_wide("define a view")
        return define_view(self._env, name, audiences, budget)

    def view(self, name: str) -> Workflow:
        """Return the same verbs, through a view. Nothing is read: a view that was never defined is refused by them.

        Raises:
            TenantScopeError: no view can have this name.
            InvalidInputError: it is asked of a narrow view, and for another one.
        """
        if check_name("view", name) != self._view:
            self._check_wide(f"open view {name!r}")
        return Workflow(self._env, name)

    def views(self) -> list[View]:
        """Return the views, `main` first; a narrow view is told of itself."""
        return list_views(self._env, self._view)

    def _check_wide(self, what: str) -> None:
        if self._view != DEFAULT_VIEW:
            raise InvalidInputError(
                f"view {self._view!r} can't {what}", hint="Ask the workflow itself: `tenant.workflow(name)`."
            )

    def append(
        self,
        events: NewEvent | Sequence[NewEvent],
        *,
        expected_revision: int | None = None,
        basis: Context | Basis | None = None,
    ) -> Appended:
        """Append one event or several as one (I1–I3, C1).

        Args:
            events: made by `strandline.message` and its siblings.
            expected_revision: refuse if the workflow has another revision.
            basis: the context from which the events were made.

        Raises:
            InvalidInputError, IdempotencyConflictError, StaleRevisionError: nothing was appended.
            StoreUnavailableError, OutcomeUnknownError: see their hints; repeating with the same keys is safe.
        """
        batch = [events] if isinstance(events, NewEvent) else events
        made_from = basis_of(basis, self._view)
        return append_verb.append(self._env, batch, expected_revision=expected_revision, basis=made_from)

    def import_transcript(
        self,
        path: str | os.PathLike[str],
        progress: Progress | None = None,
        *,
        salvage: bool = False,
        live: bool = False,
    ) -> ImportReport:
        """Import a transcript: a session of Claude Code or another tool, OpenAI messages or our own JSONL (C2).

        Args:
            path: a file; its format is told by its records. One JSON document has at most IMPORT_JSON_BYTES_MAX; JSONL
                may be of any size.
            progress: told how many bytes of the file are done.
            salvage: leave out what is damaged, and list it, instead of refusing the file.
            live: the file is still being written: a last line that is not whole yet is left for the next import, and of
                a session of Claude Code only what stands behind the newest record that the log holds is read.

        Raises:
            ImportFormatError: the file is damaged; nothing was imported.
            IdempotencyConflictError: the file does not continue what was imported of it; nothing was imported.
        """
        known = self.seqs_of if live and self.basis().revision else None
        transcript = _transcript(self._env.store, path, salvage=salvage, live=live, known=known)
        return import_transcript(self._env, transcript, progress)

    def events(self, from_seq: int = 1, through_seq: int | None = None) -> list[SourceEvent]:
        """Return events of the log in order, at most EVENTS_PAGE_MAX at once (C1).

        Raises:
            InvalidInputError: too many at once, or from_seq below 1.
            CorruptRecordError: one is not what was written.
        """
        return read_events(self._env, self._view, from_seq, through_seq)

    def seqs_of(self, keys: Collection[str]) -> dict[str, int]:
        """Return which of these keys live events bear, each with the event's seq (I3): what need not be appended again.

        Raises:
            InvalidInputError: more than EVENTS_PAGE_MAX keys at once.
            CorruptRecordError: one of the events is not what was written.
        """
        return seqs_of(self._env, self._view, keys)

    def basis(self) -> Basis:
        """Return generation and revision as they are now. A state made from a context has that context as its basis."""
        return read_basis(self._env, self._view)

    def checkpoint(
        self,
        state: object,
        turn: int,
        *,
        basis: Context | Basis | None = None,
        name: str | None = None,
        context_free: bool = False,
    ) -> Checkpoint:
        """Keep the agent's exact state (I14).

        Args:
            state: any JSON value.
            turn: the agent's own count of turns.
            basis: the context that the state was made from.
            name: whose checkpoint it is: an agent, a thread; None: that of the view's agent, by the view's name.
            context_free: the state holds control flow and references only; it needs no basis.

        Raises:
            CompactionLineageError: the basis' generation is no longer the view's; read the context anew.
            InvalidInputError: neither basis nor context_free, or a state that is no JSON.
        """
        return checkpoint(
            self._env,
            state,
            turn=turn,
            name=self._view if name is None else name,
            basis=basis_of(basis, self._view),
            context_free=context_free,
            view=self._view,
        )

    def recover(
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
        """Continue from a state that really existed, or stop and say what is missing (I15, I16).

        Args:
            needs: references that the next turn needs verbatim.
            name: whose checkpoint; None: that of the view's agent.
            budget: tokens of the context that is handed back.
            controller: asked about each case that stands in the way (C21); None: it is raised, and left open.
            dry_run: decide, and write nothing.
            prior_state: on replay, hand over the newest state too, with its turn, labelled stale.
            load: a function from the address of a registered checkpoint to the bytes that lie there; None: they are
                not fetched.

        Raises:
            SummaryReconciliationError, CompactionLineageError, ContextOverflowError: nothing was overwritten.
            CorruptRecordError: the log itself is damaged.
        """
        return recover(
            self._env,
            RecoveryRequest(
                name=self._view if name is None else name,
                view=self._view,
                needs=needs,
                budget=budget,
                dry_run=dry_run,
                with_prior_state=prior_state,
                controller=controller,
                loader=Loader(load),
            ),
        )

    def verify(self, progress: VerifyProgress | None = None) -> VerifyReport:
        """Prove this workflow (C5). A narrow view is told whether it is whole, and `main` what is wrong."""
        report = verify(self._env, [self._env.scope], progress)
        return report if self._view == DEFAULT_VIEW else told_narrowly(report)


def _any_of(scopes: Sequence[Scope]) -> Scope:
    """Return a workflow under whose name a verb on several tells the hooks."""
    return scopes[0] if scopes else Scope(tenant="-", workflow="-")


def _transcript(
    store: Store,
    path: str | os.PathLike[str],
    *,
    salvage: bool = False,
    split: bool = False,
    live: bool = False,
    known: Known | None = None,
) -> Transcript:
    key = store.digest_key
    return open_transcript(
        path, digest=lambda data: keyed_hex(key, data), salvage=salvage, split=split, live=live, known=known
    )
