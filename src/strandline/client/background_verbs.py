"""The verbs of a store by which somebody runs what is due in the background (C7, C15)."""

from __future__ import annotations

from strandline.client.verbs import deadline_of, last_resort_of
from strandline.client.worker import Told, Worker
from strandline.engine.environment import Environment
from strandline.engine.flow import Verb, run
from strandline.engine.run_due import DueOrder, run_due, sweep
from strandline.limits import SUMMARIZER_DEADLINE_S, SWEEP_ROWS, SWEEP_ROWS_PER_TENANT
from strandline.model.due import DueKey, DueRun
from strandline.model.ids import Scope
from strandline.ports import Clock, Hook, Store
from strandline.summarizers import as_summarizer
from strandline.system import worker_name


class BackgroundVerbs:
    """Part of `Strandline`."""

    store: Store
    _clock: Clock
    _hooks: list[Hook]

    def _environment(self, scope: Scope) -> Environment:
        raise NotImplementedError

    def sweep(self, limit: int = SWEEP_ROWS, *, per_tenant: int = SWEEP_ROWS_PER_TENANT) -> list[DueKey]:
        """Return what is due in the background, of all tenants: who have waited longest take the first turn.

        Args:
            limit: how many, at most.
            per_tenant: how many of one tenant, at most; its highest priority first.
        """
        return sweep(self.store, self._clock, limit, per_tenant)

    def run_due(
        self,
        key: DueKey,
        summarizer: object = None,
        *,
        worker: str | None = None,
        deadline_s: float = SUMMARIZER_DEADLINE_S,
        fallback: bool = True,
    ) -> DueRun:
        """Run a due compaction. It is safe to call twice, late, and by several workers: the store decides who runs it.

        Args:
            key: of `sweep`, or made from a message: tenant, workflow and view tell which.
            summarizer: as of `Workflow.compact`.
            worker: who runs it, for `Workflow.due`; None: machine and process.
            deadline_s: seconds for one draft; the extractive summarizer has none.
            fallback: as of `Workflow.compact`.

        Returns what came of it: what goes wrong with the job is in the answer, and in its row.

        Raises:
            StoreUnavailableError, OutcomeUnknownError: the store did not answer; when its lease ends, it is due again.
            CorruptRecordError: the row is not what was written.
        """
        return run(self._due_run(key, summarizer, worker, deadline_s, fallback), self._clock)

    def _due_run(
        self, key: DueKey, summarizer: object, worker: str | None, deadline_s: float, fallback: bool
    ) -> Verb[DueRun]:
        chosen = as_summarizer(summarizer)
        order = DueOrder(
            key=key,
            worker=worker_name() if worker is None else worker,
            summarizer=chosen,
            deadline_s=deadline_of(chosen, deadline_s),
            last_resort=last_resort_of(fallback),
        )
        return run_due(self._environment(key.scope), order)

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
        """Return a worker on this store: enter it, or call its `run`. Its threads compact what is due, of all tenants.

        Args:
            summarizer, deadline_s, fallback: as of `Workflow.compact`; it is called by several threads at once.
            threads: how many compactions run at once, 1 to WORKER_THREADS_MAX.
            name: who runs it, for `Workflow.due`; None: machine and process.
            told: called with the key and the `DueRun` of each run, or what it raised; with no key, and the error, where
                the store did not answer.

        Raises:
            InvalidInputError: threads that can't be.
        """
        return Worker(self, summarizer, threads=threads, name=name, deadline_s=deadline_s, fallback=fallback, told=told)

    def watch(self, hook: Hook) -> None:
        """Tell a hook from now on, as those of `open`; also of workflows that are open already."""
        if hook not in self._hooks:
            self._hooks.append(hook)

    def unwatch(self, hook: Hook) -> None:
        """Tell a hook no longer."""
        if hook in self._hooks:
            self._hooks.remove(hook)
