"""Compare the summaries that another tool wrote with ours over the same events, at the same length (C29).

Ours is made as any other: the events go into an empty store, in their order, and are compacted there at the places
where the other tool compacted. So a later summary of ours stands on an earlier one, as theirs does. Nothing is written
to the store that is compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from strandline.engine.append import LogWriter, again, prepare
from strandline.engine.compact import compact
from strandline.engine.environment import PART_JOINT, Environment, check_whole
from strandline.engine.flow import Verb
from strandline.engine.plan_job import NoJob, Order, plan_job
from strandline.engine.reading import abandoned_of, find_view, read_live, visible, with_references
from strandline.engine.watching import watched_flow
from strandline.errors import ContextOverflowError, InvalidInputError
from strandline.limits import COMPARE_DROPPED_MAX, COMPARE_SUMMARIES_MAX, CONTEXT_BUDGET_TOKENS_MIN, LOG_PAGE_EVENTS
from strandline.model.candidate import Shares
from strandline.model.comparison import ComparedSummary, Comparison
from strandline.model.event import Envelope, Event, EventKind, NewEvent, SourceEvent
from strandline.model.outcome import CompactionResult, ForeignSummary
from strandline.model.summary import LedgerEntry, Summary
from strandline.ports import AsyncSummarizer, Summarizer
from strandline.rules.branches import Abandoned
from strandline.rules.comparison import Kept, budget_within, uses_after
from strandline.rules.ledger import score, select
from strandline.rules.verbatim import verbatim_subset

CompareProgress = Callable[[int, int], None]

AMPLE: Final = 4  # times their length: room to plan in, before the budget of a summary that is as long is known


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonOrder:
    """What was asked for. `scratch` has an empty store, in which ours is made."""

    view: str
    scratch: Environment
    summarizer: Summarizer | AsyncSummarizer
    deadline_s: float | None
    ledger_tokens: int
    shares: Shares
    progress: CompareProgress | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Log:
    """The log without its texts: who speaks where, and of what."""

    events: tuple[SourceEvent, ...]
    foreign: tuple[ForeignSummary, ...]
    ref_ids: dict[str, int]
    revision: int


@watched_flow("compare")
def compare(env: Environment, order: ComparisonOrder) -> Verb[Comparison]:
    """Compare every foreign summary of the workflow.

    Raises:
        InvalidInputError: ledger_tokens is no whole number from 0, or there are more than COMPARE_SUMMARIES_MAX.
        CorruptRecordError: an event is not what was written.
    """
    check_whole("ledger_tokens", order.ledger_tokens)
    if order.ledger_tokens < 0:
        raise InvalidInputError(f"ledger_tokens is {order.ledger_tokens}; a ledger takes 0 tokens or more")
    log = _read(env, order.view)
    ours = _Ours(env, order)
    carried: list[LedgerEntry] = []
    last_seen: dict[str, int] = {}
    compared: list[ComparedSummary] = []
    done = 0
    for number, foreign in enumerate(log.foreign):
        if order.progress is not None:
            order.progress(number, len(log.foreign))
        covered = [event for event in log.events if done < event.seq <= foreign.through_seq]
        carried = score(carried, covered, log.ref_ids)
        shown = verbatim_subset(last_seen, log.foreign[number - 1].text) if number else ()
        last_seen = {ref: last_seen[ref] for ref in shown}
        last_seen |= {ref: event.seq for event in covered for ref in (*event.declared, *event.extracted)}
        done = max(done, foreign.through_seq)
        theirs_tokens = env.counter.count(foreign.text)
        made = yield from ours.at(foreign.through_seq, theirs_tokens)
        _, ledger = select(
            carried,
            standing={log.ref_ids[ref] for ref in verbatim_subset(last_seen, foreign.text)},
            budget_tokens=order.ledger_tokens,
            count=env.counter.count,
        )
        following = log.foreign[number + 1].through_seq if number + 1 < len(log.foreign) else log.revision
        uses = uses_after(last_seen, (event for event in log.events if event.seq > foreign.through_seq))
        kept = Kept.of(uses, theirs=foreign.text, ledger=ledger, ours=made.text)
        mildly = Kept.of(uses, theirs=foreign.text, ledger=ledger, ours=made.text, by_name=True)
        needed = [use for use in uses if not use.shown_first]
        soon = [use for use in needed if use.used_seq <= following]
        compared.append(
            ComparedSummary(
                foreign=foreign,
                until_seq=following,
                theirs_tokens=theirs_tokens,
                ledger_tokens=env.counter.count(ledger),
                ours_tokens=made.tokens,
                ours_prose_tokens=made.prose_tokens,
                ours_reason=made.reason,
                needed=kept.tally(soon),
                needed_by_name=mildly.tally(soon),
                used_again=kept.tally(use for use in uses if use.used_seq <= following),
                needed_to_end=kept.tally(needed),
                used_again_to_end=kept.tally(uses),
                needed_by_class=kept.by_class(soon),
                dropped=kept.dropped(soon, COMPARE_DROPPED_MAX),
            )
        )
    return Comparison(
        token_counter=env.counter.name,
        revision=log.revision,
        ledger_budget=order.ledger_tokens,
        summaries=tuple(compared),
    )


def _read(env: Environment, view: str) -> _Log:
    """Read one snapshot."""
    events: list[SourceEvent] = []
    ref_ids: dict[str, int] = {}
    with env.read() as tx:
        reader = find_view(tx, view, str(env.scope))
        if reader.narrow:
            raise InvalidInputError(
                f"view {view!r} can't be compared: a summary of another tool speaks of what it may not read",
                hint="Compare through the view `main`, which reads everything.",
            )
        revision = tx.log.head().revision
        for page in _pages(read_live(tx, 1, revision, env.scope.workflow)):
            sources, found = with_references(tx, list(visible(reader, page)), env.counter)
            ref_ids |= found
            events += (source._replace(text="", payload=None) for source in sources)
        foreign = tuple(summary for summary in tx.summaries.foreign() if not summary.erased)
    if len(foreign) > COMPARE_SUMMARIES_MAX:
        raise InvalidInputError(
            f"{len(foreign):,} foreign summaries; at most {COMPARE_SUMMARIES_MAX:,} are compared", hint="Cut the file."
        )
    return _Log(events=tuple(events), foreign=foreign, ref_ids=ref_ids, revision=revision)


def _pages(events: Iterator[Event]) -> Iterator[list[Event]]:
    page: list[Event] = []
    for event in events:
        page.append(event)
        if len(page) == LOG_PAGE_EVENTS:
            yield page
            page = []
    if page:
        yield page


@dataclass(frozen=True, slots=True, kw_only=True)
class _Made:
    """A summary of ours, or why there is none."""

    text: str = ""
    tokens: int = 0
    prose_tokens: int = 0
    reason: str = ""


class _Ours:
    """The summaries of ours, made one after the other in the scratch store."""

    def __init__(self, env: Environment, order: ComparisonOrder) -> None:
        self._env = env
        self._scratch = order.scratch
        self._order = Order(
            view=order.view,
            budget=None,
            summarizer=order.summarizer,
            strict=False,
            through=None,
            when_tokens=None,
            deadline_s=order.deadline_s,
            shares=order.shares,
        )
        self._copied = 0

    def at(self, seq: int, tokens: int) -> Verb[_Made]:
        """Make a summary through event `seq` of at most so many tokens, or say why there is none."""
        through = self._copy(seq)
        try:
            order = replace(self._order, through=through, budget=self._budget(through, tokens))
            outcome = yield from compact(self._scratch, order)
        except ContextOverflowError as error:
            return _Made(reason=error.message)
        summary = outcome.summary
        if outcome.outcome not in (CompactionResult.ACTIVATED, CompactionResult.NOTHING_TO_DO) or summary is None:
            return _Made(reason=f"{outcome.outcome}: {outcome.reason}")
        if summary.tokens > tokens:
            return _Made(reason=f"ours takes {summary.tokens} tokens, theirs {tokens}")
        return _Made(
            text=_text(summary),
            tokens=summary.tokens,
            prose_tokens=sum(segment.head.tokens for segment in summary.segments),
        )

    def _budget(self, through: int, tokens: int) -> int:
        """Return the budget at which a summary is as long as theirs at most."""
        job = plan_job(
            self._scratch, replace(self._order, through=through, budget=tokens * AMPLE + CONTEXT_BUDGET_TOKENS_MIN)
        )
        anchors = 0 if isinstance(job, NoJob) else job.facts.tokens
        budget = budget_within(tokens, anchors, self._order.shares)
        if budget is None:
            raise ContextOverflowError(
                f"{tokens} tokens, the length of theirs, leave no room for a summary of ours with {anchors} tokens of "
                "mandatory facts",
                needed=anchors + CONTEXT_BUDGET_TOKENS_MIN,
                budget=tokens,
            )
        return budget

    def _copy(self, through: int) -> int:
        """Copy the events up to `through`, and abandon what is open there; return the scratch's revision.

        The other tool compacted there whatever was open, and a watermark of ours never passes an open call (I8).
        """
        with self._env.read() as source, self._scratch.write() as tx:
            writer = LogWriter(self._scratch, tx)
            reader, left = find_view(source, self._order.view, str(self._env.scope)), abandoned_of(source)
            for page in _pages(read_live(source, self._copied + 1, through, self._env.scope.workflow)):
                writer.add([again(source, _answering(event, left)) for event in visible(reader, page)])
            for call in writer.open_calls:
                envelope = Envelope(call_id=call.key.subject, thread=call.lane)
                writer.add([prepare(NewEvent(kind=EventKind.ABANDONED, body="", envelope=envelope))])
            self._copied = max(self._copied, through)
            return writer.revision


def _answering(event: Event, left: Abandoned) -> Event:
    """Return the event; as a note, where it is the late result of a call that a rewind abandoned and is not copied."""
    return event._replace(kind=EventKind.NOTE) if event.call_seq is not None and event.call_seq in left else event


def _text(summary: Summary) -> str:
    """Return all that a summary says."""
    parts = [*(segment.text for segment in summary.segments), summary.anchors_text, summary.ledger_text]
    return PART_JOINT.join(part for part in parts if part)
