"""The verbs that read the memory of a workflow, and those that compact it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from strandline.client.kept_context import KeptContext
from strandline.client.verbs import Verbs, deadline_of, last_resort_of
from strandline.engine.compact import compact
from strandline.engine.compact_later import compact_later, list_due
from strandline.engine.compact_when import compact_when
from strandline.engine.compare import CompareProgress, ComparisonOrder, compare
from strandline.engine.export import export_events
from strandline.engine.flow import Verb, run
from strandline.engine.found import confirm_found, dismiss_found, list_found
from strandline.engine.lineage import list_entries
from strandline.engine.plan_job import Order
from strandline.engine.preview import preview
from strandline.engine.read_context import Context, read_context
from strandline.engine.recall import read_manifest, recall
from strandline.engine.search import search
from strandline.limits import COMPARE_LEDGER_TOKENS, RECALL_HITS_MAX, SEARCH_HITS, SUMMARIZER_DEADLINE_S
from strandline.model.candidate import Shares
from strandline.model.comparison import Comparison
from strandline.model.due import PRIORITY_USUAL, DueCompaction
from strandline.model.event import Appended
from strandline.model.found import FoundConstraint
from strandline.model.lineage import LineageEntry
from strandline.model.outcome import CompactionOutcome, RecallHit, SearchHit
from strandline.model.preview import Preview
from strandline.model.summary import Manifest
from strandline.model.triggers import Triggers
from strandline.stores.memory import MemoryStore
from strandline.summarizers import as_summarizer
from strandline.transcripts import ExportFormat, check_export, export_lines
from strandline.validators import as_judge


class MemoryVerbs(Verbs):
    """Part of `Workflow`."""

    def context(self, budget: int | None = None, needs: Sequence[str] = ()) -> Context:
        """Read the working context (C18).

        Args:
            budget: tokens; None: CONTEXT_BUDGET_TOKENS.
            needs: references that must stand verbatim in it.

        Raises:
            ContextOverflowError: what can't be left out exceeds the budget.
            SummaryReconciliationError: a need does not stand verbatim in it.
            CorruptRecordError: something that was read is not what was written.
        """
        return read_context(self._env, self._view, budget, needs)

    def keep_context(self, budget: int | None = None) -> KeptContext:
        """Return the working context for one that reads it at every turn: only what came since is read.

        Args:
            budget: as of `context`.
        """
        return KeptContext(self._env, self._view, budget)

    def export(self, format: ExportFormat = "strandline", *, abandoned: bool = False) -> Iterator[bytes]:
        """Return the lines of a transcript of the workflow as it is now, as the view reads it (C2).

        Nothing is held in memory but a page of events, and no transaction is open while a line is written.

        Args:
            format: `strandline`, which an import reads back exactly; messages of `openai` or `anthropic`.
            abandoned: with `strandline`, events that rewinds left behind too, marked; an import leaves them out.

        Raises:
            InvalidInputError: no such format, or one that can't mark what was left behind.
            CorruptRecordError: while iterating, at the first event that is not what was written.
        """
        check_export(format, abandoned=abandoned)
        return export_lines(export_events(self._env, self._view, abandoned=abandoned), format)

    def compact(
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
        """Compact: cover older events by a validated summary. No event is lost, and the old summary stands until then.

        Args:
            budget: tokens of the assembled context right after activation; None: CONTEXT_BUDGET_TOKENS.
            summarizer: a Summarizer, or a function SummaryRequest -> text, sync or async; None: the extractive one.
            strict: refuse if any event was appended meanwhile.
            through: the last event to cover; None: as the budget demands.
            when_tokens: do nothing below this size of the context.
            shares: what the budget is spent on; None: the shares of `limits`.
            deadline_s: seconds for one draft; the extractive summarizer has none.
            fallback: let the extractive summarizer draft where the other one says, told and in smaller parts too, what
                the log does not; False: such a candidate is quarantined at once.
            judge: a Judge, asked about each draft that the rules let pass; it can refuse one, and let none pass.

        Raises:
            ContextOverflowError: mandatory facts and what must stay verbatim exceed the budget (C11).
            InvalidInputError, CorruptRecordError, StoreUnavailableError: nothing was activated.
        """
        order = self._order(
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
        return run(compact(self._env, order), self._env.clock)

    def _order(
        self,
        budget: int | None,
        summarizer: object,
        *,
        strict: bool = False,
        through: int | None = None,
        when_tokens: int | None = None,
        shares: Shares | None = None,
        deadline_s: float = SUMMARIZER_DEADLINE_S,
        fallback: bool = False,
        judge: object = None,
    ) -> Order:
        chosen = as_summarizer(summarizer)
        return Order(
            view=self._view,
            budget=budget,
            summarizer=chosen,
            strict=strict,
            through=through,
            when_tokens=when_tokens,
            deadline_s=deadline_of(chosen, deadline_s),
            shares=shares or Shares(),
            last_resort=last_resort_of(fallback),
            judge=as_judge(judge),
        )

    def preview(
        self,
        budget: int | None = None,
        summarizer: object = None,
        *,
        through: int | None = None,
        shares: Shares | None = None,
        deadline_s: float = SUMMARIZER_DEADLINE_S,
    ) -> Preview:
        """Say what `compact` would do now, before anything is done: what is covered, carried and dropped (C16).

        The summarizer is really asked, the extractive one by default. Nothing is written, and no lease is taken.

        Args:
            budget, summarizer, through, shares, deadline_s: as `compact`.

        Raises:
            SummarizerError: the summarizer gave no draft.
            ContextOverflowError, InvalidInputError, CorruptRecordError, StoreUnavailableError: as `compact`.
        """
        order = self._order(budget, summarizer, through=through, shares=shares, deadline_s=deadline_s)
        return run(preview(self._env, order), self._env.clock)

    def compact_later(
        self,
        budget: int | None = None,
        *,
        when_tokens: int | None = None,
        strict: bool = False,
        delay_s: float = 0.0,
        priority: int = PRIORITY_USUAL,
    ) -> DueCompaction:
        """Ask for a compaction in the background: one short transaction, and no model is waited for.

        It is run by whoever calls `Strandline.run_due`. Asking again while it is due changes when and how it is run;
        asking while it runs makes it due again. No message can lose it: it stands in the store.

        Args:
            budget: as of `compact`.
            when_tokens: as of `compact`; it is looked at when it is run.
            strict: as of `compact`.
            delay_s: seconds from now, before which it is not run; at most DUE_DELAY_S_MAX.
            priority: 0 to 9; within a tenant, 9 is run first.

        Raises:
            QueueFullError: the tenant has DUE_PER_TENANT_MAX due compactions.
            InvalidInputError: an argument that can't be, or a workflow without events.
        """
        return compact_later(
            self._env,
            self._view,
            budget=budget,
            when_tokens=when_tokens,
            strict=strict,
            delay_s=delay_s,
            priority=priority,
        )

    def compact_when(
        self,
        *,
        tokens: int | None = None,
        events: int | None = None,
        age_s: float | None = None,
        idle_s: float | None = None,
        budget: int | None = None,
        priority: int = PRIORITY_USUAL,
    ) -> DueCompaction | None:
        """Let the view be compacted in the background by itself, from now on, whichever of these comes first (C7).

        It stands in the store: whatever process appends makes the compaction due, in the same transaction; a worker
        runs it. Set again, it takes the place of what was set; without any reason it is taken away.

        Args:
            tokens: of the context, by an estimate that each run sets right; clearly above `budget`.
            events: that came since the last run.
            age_s: seconds since the first of them came.
            idle_s: seconds since the last of them came.
            budget, priority: as of `compact_later`.

        Returns its row; None: there was none, and none was asked for.

        Raises:
            InvalidInputError: an argument that can't be, or a workflow without events.
        """
        triggers = Triggers(tokens=tokens, events=events, age_s=age_s, idle_s=idle_s)
        return compact_when(self._env, self._view, triggers, budget=budget, priority=priority)

    def due(self) -> list[DueCompaction]:
        """Return the compactions that were asked for in the background, one for each view that ever was: what is due,
        who runs it, and how the last run ended. `due_us` None: nothing is due.
        """
        return list_due(self._env, self._view)

    def compare(
        self,
        summarizer: object = None,
        *,
        ledger_tokens: int = COMPARE_LEDGER_TOKENS,
        shares: Shares | None = None,
        deadline_s: float = SUMMARIZER_DEADLINE_S,
        progress: CompareProgress | None = None,
    ) -> Comparison:
        """Compare the summaries that another tool wrote into an imported transcript with ours (C29).

        Nothing is written: ours are made in memory, at the same places and of the same length at most.

        Args:
            summarizer: what drafts ours, as for `compact`.
            ledger_tokens: how many tokens of our ledger are put beside theirs.
            shares: what the length of ours is spent on, as for `compact`.
            deadline_s: seconds for one draft; the extractive summarizer has none.
            progress: told how many summaries are done, of how many.

        Raises:
            InvalidInputError, CorruptRecordError: nothing was compared.
        """
        return run(self._comparison(summarizer, ledger_tokens, shares, deadline_s, progress), self._env.clock)

    def _comparison(
        self,
        summarizer: object,
        ledger_tokens: int,
        shares: Shares | None,
        deadline_s: float,
        progress: CompareProgress | None,
    ) -> Verb[Comparison]:
        chosen = as_summarizer(summarizer)
        scratch = MemoryStore(digest_key=self._env.store.digest_key)
        order = ComparisonOrder(
            view=self._view,
            scratch=replace(self._env, store=scratch, hooks=()),
            summarizer=chosen,
            deadline_s=deadline_of(chosen, deadline_s),
            ledger_tokens=ledger_tokens,
            shares=shares or Shares(),
            progress=progress,
        )
        return compare(self._env, order)

    def found_constraints(self) -> list[FoundConstraint]:
        """Return the constraints that were found in users' messages and that nobody declared, with what became of each.
        Those that are sure and stand are pinned, verbatim, by every compaction (C11).
        """
        return list_found(self._env, self._view)

    def confirm_constraint(self, name: str, *, subject: str | None = None, actor: str = "") -> Appended:
        """Declare a constraint that was found, in its own words: mandatory until `lift_constraint` of its subject.

        Args:
            name: of the constraint, as `found_constraints` tells it.
            subject: of the one that is declared; None: the name.
            actor: who confirms.

        Raises:
            InvalidInputError: no such constraint stands; nothing was appended.
        """
        return confirm_found(self._env, self._view, name, subject=subject, actor=actor)

    def dismiss_constraint(self, name: str, *, why: str = "", actor: str = "") -> Appended:
        """State that what was found is no constraint, or holds no longer; what it had replaced stands again.

        Raises:
            InvalidInputError: no such constraint is there; nothing was appended.
        """
        return dismiss_found(self._env, self._view, name, why=why, actor=actor)

    def recall(self, ref: str, limit: int = RECALL_HITS_MAX) -> list[RecallHit]:
        """Return the verbatim events that hold a reference, newest first (C4)."""
        return recall(self._env, ref, self._view, limit)

    def search(
        self, text: str, limit: int = SEARCH_HITS, *, before: int | None = None, reindex: bool = False
    ) -> list[SearchHit]:
        """Return the verbatim events in which all that is asked for stands, the newest first (C4).

        Args:
            text: words, each of which must stand there as it is written; phrases "in quotes"; a beginning with `*`.
            limit: events, at most.
            before: only events before this one: the next page begins at the last hit of the one before.
            reindex: make the index of words anew first.

        Raises:
            InvalidInputError: no words, too many, or a quote without an end.
            CorruptRecordError: an event, or the index, is not what was written.
        """
        return search(self._env, text, self._view, limit, before, reindex=reindex)

    def manifest(self) -> Manifest:
        """Return what covered events hold and the summary does not, newest first (I9)."""
        return read_manifest(self._env, self._view)

    def lineage(self) -> list[LineageEntry]:
        """Return what happened to the memory, in its one order (I13)."""
        return list_entries(self._env, self._view)
