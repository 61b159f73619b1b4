"""What every guest does with a workflow: record what a framework's history holds, compact when due, read the context.

A framework hands over its whole history at each turn. What the log lacks of it is found by event keys, from the end
backwards, so that the cost follows what is new. A summary that can't be made never ends a turn: the agent goes on with
the prior summary and a longer tail (C14, C19).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from strandline import (
    Appended,
    CompactionOutcome,
    CompactionResult,
    Context,
    ContextOverflowError,
    CorruptRecordError,
    InvalidInputError,
    NewEvent,
    Shares,
    Workflow,
)
from strandline.limits import (
    CONTEXT_BUDGET_TOKENS,
    CONTEXT_BUDGET_TOKENS_MIN,
    LEDGER_SHARE,
    RECORD_PAGE_EVENTS,
    SEGMENTS_SHARE,
    SUMMARIZER_DEADLINE_S,
    TAIL_SHARE,
    UNSEEN_SHARE_MAX,
)

Told = Callable[[str, CompactionOutcome | Exception], None]

_GOOD = {CompactionResult.ACTIVATED, CompactionResult.NOTHING_TO_DO}
_log = logging.getLogger("strandline.integrations")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What a turn added to the log: the seq of each event that was handed over, known or new, and the revision."""

    seqs: dict[str, int]  # by key; of the events that were looked at
    added: int
    revision: int


class AgentMemory:
    """The memory of one agent in a framework. Its methods may be called from any thread."""

    def __init__(
        self,
        workflow: Workflow,
        *,
        budget: int = CONTEXT_BUDGET_TOKENS,
        compact_at: int | None = None,
        compact_to: int | None = None,
        summarizer: object = None,
        deadline_s: float = SUMMARIZER_DEADLINE_S,
        background: bool = False,
        told: Told | None = None,
    ) -> None:
        """Take a workflow, or a view of it.

        Args:
            workflow: whose log it is; its view's window is what the agent reads (I21).
            budget: tokens of the context that the model sees.
            compact_at: tokens of the context from which a compaction is due; None: `budget`.
            compact_to: tokens that a compaction brings it down to; None: half of `compact_at`.
            summarizer: as of `Workflow.compact`.
            deadline_s: for one draft.
            background: ask for the compaction and go on; a worker runs it (`strandline worker`).
            told: called with what happened and how, when a summary could not be made; None: a line of the log.

        Raises:
            InvalidInputError: a budget that is none, or compact_to above compact_at.
        """
        for name, tokens in (("budget", budget), ("compact_at", compact_at), ("compact_to", compact_to)):
            if tokens is not None:
                check_tokens(name, tokens)
        self.workflow = workflow
        self._kept = workflow.keep_context(budget)
        self.budget = budget
        self.compact_at = min(compact_at or budget, budget)
        self.compact_to = compact_to or max(CONTEXT_BUDGET_TOKENS_MIN, self.compact_at // 2)
        if self.compact_to > self.compact_at:
            raise InvalidInputError(f"compact_to ({self.compact_to}) is above compact_at ({self.compact_at})")
        self._summarizer = summarizer
        self._deadline_s = deadline_s
        self._background = background
        self._told = told or self._say

    def record(self, events: Sequence[NewEvent], *, expected_revision: int | None = None) -> Recorded:
        """Append those of a history's events that the log lacks, in order, all or none (I2, I3).

        The newest are looked up first, page by page, until a whole page is known: what lies before it is taken as
        known. So a history may be handed over whole at each turn. What bears a known key is taken as the same: a guest
        whose framework changes what it holds makes the content a part of its keys.

        Args:
            events: the history, or its end, oldest first; each has a key of its own.
            expected_revision: refuse to add anything if the log is at another one.

        Raises:
            InvalidInputError: an event without a key; nothing was written.
            StaleRevisionError: the log is at another revision, and something would have been added.
        """
        keys = [event.key or "" for event in events]
        if "" in keys:
            refused = InvalidInputError("an event without a key; a history is recorded by its keys")
            refused.position = keys.index("")
            raise refused
        known: dict[str, int] = {}
        first = len(events)
        while first > 0:
            page = keys[max(0, first - RECORD_PAGE_EVENTS) : first]
            found = self.workflow.seqs_of(page)
            known |= found
            first -= len(page)
            if len(found) == len(page):
                break
        missing = [event for event, key in zip(events[first:], keys[first:], strict=True) if key not in known]
        if not missing:
            return Recorded(seqs=known, added=0, revision=self.workflow.basis().revision)
        added: Appended = self.workflow.append(missing, expected_revision=expected_revision)
        new = zip((event.key or "" for event in missing), added.seqs, strict=True)
        return Recorded(seqs=known | dict(new), added=added.added, revision=added.revision)

    def compact_if_due(self, *, force: bool = False, unseen: int | None = None) -> CompactionOutcome | None:
        """Compact when the context has grown to `compact_at`; None: a worker does it, or it has no outcome.

        A summary that can't be made raises nothing, whatever the reason: it is told, and the prior summary stands.

        Args:
            force: compact although the context is smaller.
            unseen: seq of the first event that the model was not shown yet; None: the newest event is that.

        Raises:
            InvalidInputError: the summarizer is none.
            CorruptRecordError: what is to be summarized is not what was written (I4).
        """
        when_tokens = None if force else self.compact_at
        try:
            if self._background:
                self.workflow.compact_later(self.compact_to, when_tokens=when_tokens)
                return None
            size, shares = self._room(unseen)
            outcome = self.workflow.compact(
                size, self._summarizer, shares=shares, when_tokens=when_tokens, deadline_s=self._deadline_s
            )
        except (InvalidInputError, CorruptRecordError):
            raise
        except Exception as error:  # noqa: BLE001 - a summarizer is somebody else's code, and raises what it will
            self._tell("a compaction was refused", error)
            return None
        if outcome.outcome not in _GOOD:
            self._tell("a compaction made no summary", outcome)
        return outcome

    def _tell(self, what: str, how: CompactionOutcome | Exception) -> None:
        """Tell of a summary that was not made; who is told ends no turn either."""
        try:
            self._told(what, how)
        except Exception:  # noqa: BLE001 - as above
            _log.exception("%s, and who was to be told of it raised this", what)

    def _say(self, what: str, how: CompactionOutcome | Exception) -> None:
        """Log it; names, ids and classes only, never what an event holds (C28)."""
        told = f"{what} in workflow {self.workflow.name!r}, view {self.workflow.view_name!r}"
        if isinstance(how, Exception):
            _log.warning("%s: %s; the agent goes on with the prior summary and a longer tail", told, type(how).__name__)
        else:
            _log.warning("%s: %s (generation %d)", told, how.outcome.value, how.generation)

    def _room(self, unseen: int | None) -> tuple[int, Shares | None]:
        """Return what a compaction comes down to, and its shares: what the model was not shown yet stays verbatim, the
        newest event always, those before it within a share of the budget.

        It is what the model is asked to answer. What is larger than the tail's share would be covered else.

        Raises:
            ContextOverflowError: the newest event leaves no room for a summary within the budget (C11).
        """
        revision = self.workflow.basis().revision
        first = revision if unseen is None else max(unseen, revision - RECORD_PAGE_EVENTS + 1)
        events = self.workflow.events(max(1, min(first, revision)), revision)
        sizes = [event.tokens for event in events if not event.abandoned]
        newest, room = sum(sizes[-1:]), int(self.budget * UNSEEN_SHARE_MAX)
        for tokens in reversed(sizes[:-1]):
            if newest + tokens > room:
                break
            newest += tokens
        if newest <= int(self.compact_to * TAIL_SHARE):
            return self.compact_to, None
        size = min(self.budget, self.compact_to + newest)
        if size - newest < CONTEXT_BUDGET_TOKENS_MIN:
            raise ContextOverflowError(
                "the newest event leaves no room for a summary",
                needed=newest + CONTEXT_BUDGET_TOKENS_MIN,
                budget=self.budget,
            )
        tail = (newest + 1) / size  # a token more, so that rounding takes none away
        rest = (1 - tail) / (SEGMENTS_SHARE + LEDGER_SHARE)
        return size, Shares(segments=SEGMENTS_SHARE * rest, ledger=LEDGER_SHARE * rest, tail=tail)

    def context(self, needs: Sequence[str] = ()) -> Context:
        """Read what the model is shown, within the budget (C18, C19).

        Raises:
            ContextOverflowError, SummaryReconciliationError, CorruptRecordError: as of `Workflow.context`.
        """
        return self._kept.read(needs)


def check_tokens(name: str, tokens: object) -> None:
    """Refuse what is no size of a context.

    Raises:
        InvalidInputError: it is no whole number, or below CONTEXT_BUDGET_TOKENS_MIN.
    """
    if not isinstance(tokens, int) or isinstance(tokens, bool) or tokens < CONTEXT_BUDGET_TOKENS_MIN:
        raise InvalidInputError(f"{name} is a number of tokens from {CONTEXT_BUDGET_TOKENS_MIN}, not {tokens!r}")
