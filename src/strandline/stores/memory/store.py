"""The store: its workflows, their locks, and the life of a transaction."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cached_property
from typing import Final

from strandline.errors import InvalidInputError, StoreUnavailableError
from strandline.limits import STORE_BUSY_TIMEOUT_S
from strandline.model.due import DueCompaction, DueKey
from strandline.model.figures import StoreFigures, fold_figures
from strandline.model.ids import Scope
from strandline.model.lineage import WorkflowHead
from strandline.ports import Transaction
from strandline.stores.memory.cooldowns import MemoryCooldowns
from strandline.stores.memory.decisions import MemoryCases, MemoryEffects, MemoryPermits
from strandline.stores.memory.due import MemoryDue, sweep
from strandline.stores.memory.figures import add_up, count_workflow
from strandline.stores.memory.log import MemoryLog, MemoryRefs, MemoryRegister
from strandline.stores.memory.memory import (
    MemoryCheckpoints,
    MemoryJobs,
    MemoryLineage,
    MemoryReaders,
    MemorySummaries,
    MemoryViews,
)
from strandline.stores.memory.schema import Tables
from strandline.stores.memory.search import MemorySearch
from strandline.stores.memory.states import MemoryNodes, MemoryStates
from strandline.stores.memory.tables import ONLY, History, Moment

DIGEST_KEY_BYTES: Final = 32


Begin = Callable[[str, bool], tuple[Tables, Moment]]
Others = Callable[[str], Iterator[tuple[Tables, Moment]]]
Forks = Callable[[str], list[str]]


class MemoryTransaction:
    """`ports.Transaction` over the tables of one workflow, at one moment. `begin` opens those of a relative, `others`
    gives the committed tables of the tenant's other workflows, `forks` the names of those that were forked from one.
    """

    def __init__(
        self,
        workflow: str,
        begin: Begin,
        others: Others,
        forks: Forks,
        relatives: dict[str, MemoryTransaction],
        *,
        locked: bool = True,
    ) -> None:
        tables, moment = begin(workflow, locked)
        self._workflow = workflow
        self._tables = tables
        self._moment = moment
        self._begin = begin
        self._others = others
        self._forks = forks
        self._relatives = relatives
        self._locked = locked
        relatives[workflow] = self

    # A facet is made when it is first asked for: most transactions need few of them.

    @cached_property
    def log(self) -> MemoryLog:
        return MemoryLog(self._tables, self._moment)

    @cached_property
    def refs(self) -> MemoryRefs:
        return MemoryRefs(self._tables, self._moment)

    @cached_property
    def register(self) -> MemoryRegister:
        return MemoryRegister(self._tables, self._moment)

    @cached_property
    def search(self) -> MemorySearch:
        return MemorySearch(self._tables, self._moment)

    @cached_property
    def views(self) -> MemoryViews:
        return MemoryViews(self._tables, self._moment)

    @cached_property
    def jobs(self) -> MemoryJobs:
        return MemoryJobs(self._tables, self._moment)

    @cached_property
    def summaries(self) -> MemorySummaries:
        return MemorySummaries(self._tables, self._moment)

    @cached_property
    def lineage(self) -> MemoryLineage:
        return MemoryLineage(self._tables, self._moment, lambda: self._forks(self._workflow))

    @cached_property
    def checkpoints(self) -> MemoryCheckpoints:
        return MemoryCheckpoints(self._tables, self._moment)

    @cached_property
    def cases(self) -> MemoryCases:
        return MemoryCases(self._tables, self._moment)

    @cached_property
    def effects(self) -> MemoryEffects:
        return MemoryEffects(self._tables, self._moment)

    @cached_property
    def permits(self) -> MemoryPermits:
        return MemoryPermits(self._tables, self._moment)

    @cached_property
    def readers(self) -> MemoryReaders:
        return MemoryReaders(self._tables, self._moment)

    @cached_property
    def cooldowns(self) -> MemoryCooldowns:
        return MemoryCooldowns(self._tables, self._moment, lambda: self._others(self._workflow))

    @cached_property
    def due(self) -> MemoryDue:
        return MemoryDue(self._tables, self._moment, lambda: self._others(self._workflow))

    @cached_property
    def states(self) -> MemoryStates:
        return MemoryStates(self._tables, self._moment)

    @cached_property
    def nodes(self) -> MemoryNodes:
        return MemoryNodes(self._tables, self._moment)

    def relative(self, workflow: str, *, locked: bool = False) -> MemoryTransaction:
        found = self._relatives.get(workflow)
        if found is None or (locked and not found._locked):
            found = MemoryTransaction(workflow, self._begin, self._others, self._forks, self._relatives, locked=locked)
        return found


def _beside(scope: Scope, workflow: str) -> Scope:
    return scope if workflow == scope.workflow else replace(scope, workflow=workflow)


class _Workflow:
    def __init__(self, tables: Tables | None = None, committed: int = 0) -> None:
        self.tables = tables or Tables()
        self.history = History(committed)
        self.lock = threading.Lock()
        self.writer: int | None = None  # the thread that holds the lock


class MemoryStore:
    """A `strandline.ports.Store` that forgets everything when it is closed.

    A read may be opened inside a write of the same thread; it sees the state before that write. A second write of the
    same thread to the same workflow would wait for itself: it is refused.
    """

    def __init__(self, digest_key: bytes) -> None:
        if len(digest_key) != DIGEST_KEY_BYTES:
            raise InvalidInputError(f"a digest key has {DIGEST_KEY_BYTES} bytes, not {len(digest_key)}")
        self._digest_key = digest_key
        self._workflows: dict[Scope, _Workflow] = {}
        self._families: dict[Scope, list[Scope]] = {}  # of forks and what they were made from; members share the list
        self._lock = threading.Lock()
        self._closed = False

    @property
    def digest_key(self) -> bytes:
        return self._digest_key

    @property
    def path(self) -> None:
        return None

    @contextmanager
    def read(self, scope: Scope) -> Iterator[Transaction]:
        with ExitStack() as stack:
            taken = self._family(scope, stack)

            def begin(name: str, _: bool) -> tuple[Tables, Moment]:
                return taken.get(name) or self._snapshot(_beside(scope, name), stack)

            yield self._transaction(scope, begin)

    @contextmanager
    def write(self, scope: Scope, *, joins: bool = True) -> Iterator[Transaction]:
        with ExitStack() as stack:
            written: list[tuple[Scope, _Workflow, Moment]] = []

            def begin(name: str, locked: bool) -> tuple[Tables, Moment]:
                if not locked:
                    return self._snapshot(_beside(scope, name), stack)
                workflow = stack.enter_context(self._locked(_beside(scope, name)))
                moment = stack.enter_context(self._writing(workflow.history))
                written.append((_beside(scope, name), workflow, moment))
                return workflow.tables, moment

            yield self._transaction(scope, begin)
            with self._lock:  # all at once: no snapshot of a family holds the half of a transaction
                for one, workflow, moment in written:
                    self._join_family(one, workflow.tables.head.get(moment, ONLY))
                    moment.commit()

    def _transaction(self, scope: Scope, begin: Begin) -> MemoryTransaction:
        others, forks = self._beside(scope.tenant), self._forks_in(scope.tenant)
        return MemoryTransaction(scope.workflow, begin, others, forks, {})

    def _family(self, scope: Scope, stack: ExitStack) -> dict[str, tuple[Tables, Moment]]:
        """Return the tables of a workflow and of all that forks bind it to, at one moment."""
        with self._lock:
            return {one.workflow: self._snapshot(one, stack) for one in self._families.get(scope, [scope])}

    def _join_family(self, scope: Scope, head: WorkflowHead | None) -> None:
        """Take note of a fork that is committed; what a workflow was forked from never changes."""
        if head is None or head.parent is None or scope in self._families:
            return
        parent = _beside(scope, head.parent)
        family = self._families[scope] = self._families.setdefault(parent, [parent])
        family.append(scope)

    def _snapshot(self, scope: Scope, stack: ExitStack) -> tuple[Tables, Moment]:
        workflow = self._open_workflows().get(scope) or _Workflow()
        moment = workflow.history.begin_read()
        stack.callback(workflow.history.end_read, moment)
        return workflow.tables, moment

    @contextmanager
    def _locked(self, scope: Scope) -> Iterator[_Workflow]:
        with self._lock:
            workflows = self._open_workflows()
            workflow = workflows.get(scope) or workflows.setdefault(scope, _Workflow())
        if workflow.writer == threading.get_ident():
            raise StoreUnavailableError(f"this thread is writing to {str(scope)!r} already; nothing was written")
        if not workflow.lock.acquire(timeout=STORE_BUSY_TIMEOUT_S):
            raise StoreUnavailableError(f"{str(scope)!r} was locked for {STORE_BUSY_TIMEOUT_S} s; nothing was written")
        try:
            workflow.writer = threading.get_ident()
            yield workflow
        finally:
            workflow.writer = None
            workflow.lock.release()

    @contextmanager
    def _writing(self, history: History) -> Iterator[Moment]:
        moment = history.begin_write()
        try:
            yield moment
        except BaseException:
            moment.roll_back()
            raise
        finally:
            moment.end()

    def scopes(self, tenant: str | None = None) -> list[Scope]:
        with self._lock:
            workflows = list(self._open_workflows().items())
        found = [
            scope for scope, workflow in workflows if workflow.history.committed and tenant in (None, scope.tenant)
        ]
        return sorted(found, key=lambda scope: (scope.tenant, scope.workflow))

    def due(self, now_us: int, limit: int, per_tenant: int) -> list[DueKey]:
        return sweep(self._all_due(), now_us, limit, per_tenant)

    def _beside(self, tenant: str) -> Others:
        def others(workflow: str) -> Iterator[tuple[Tables, Moment]]:
            return ((tables, moment) for scope, tables, moment in self._committed(tenant) if scope.workflow != workflow)

        return others

    def _forks_in(self, tenant: str) -> Forks:
        def forks(workflow: str) -> list[str]:
            heads = ((scope, self._head(scope)) for scope in self.scopes(tenant))
            return [scope.workflow for scope, head in heads if head is not None and head.parent == workflow]

        return forks

    def _head(self, scope: Scope) -> WorkflowHead | None:
        """Return the committed head row."""
        workflow = self._open_workflows()[scope]
        moment = workflow.history.begin_read()
        try:
            return workflow.tables.head.get(moment, ONLY)
        finally:
            workflow.history.end_read(moment)

    def _all_due(self) -> Iterator[tuple[Scope, DueCompaction]]:
        for scope, tables, moment in self._committed(None):
            yield from ((scope, row) for row in tables.due.all(moment))

    def _committed(self, tenant: str | None) -> Iterator[tuple[Scope, Tables, Moment]]:
        """Yield the tables of each workflow, at a moment that lasts until the next is asked for."""
        with self._lock:
            workflows = list(self._open_workflows().items())
        for scope, workflow in workflows:
            if tenant in (None, scope.tenant):
                moment = workflow.history.begin_read()
                try:
                    yield scope, workflow.tables, moment
                finally:
                    workflow.history.end_read(moment)

    def figures(self, tenant: str | None, now_us: int) -> StoreFigures:
        totals: dict[str, dict[tuple[str, str], int]] = {}
        for scope in self.scopes(tenant):
            workflow = self._open_workflows()[scope]
            moment = workflow.history.begin_read()
            try:
                found = count_workflow(scope.workflow, workflow.tables, moment, now_us)
                add_up(found, totals.setdefault(scope.tenant, {}))
            finally:
                workflow.history.end_read(moment)
        rows = [(name, *key, number) for name, total in totals.items() for key, number in total.items()]
        return fold_figures(rows, now_us)

    def problems(self) -> list[str]:
        return []

    def copied(self) -> MemoryStore:
        """Return a store with the same rows; what is written to one is not in the other. Nobody writes meanwhile."""
        copy = MemoryStore(self._digest_key)
        copy._workflows = {
            scope: _Workflow(workflow.tables.copied(), workflow.history.committed)
            for scope, workflow in self._open_workflows().items()
        }
        copies = {id(family): family.copy() for family in self._families.values()}
        copy._families = {scope: copies[id(family)] for scope, family in self._families.items()}
        return copy

    def versions(self) -> dict[Scope, int]:
        """Return how many transactions wrote to each workflow."""
        return {scope: workflow.history.committed for scope, workflow in self._open_workflows().items()}

    def close(self) -> None:
        self._closed = True
        self._workflows = {}

    def _open_workflows(self) -> dict[Scope, _Workflow]:
        if self._closed:
            raise StoreUnavailableError("the store is closed; nothing was read or written")
        return self._workflows
