"""Plan a compaction from one snapshot; nothing is written and no lock is held (DESIGN §2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from heapq import nlargest

from strandline.codec import decode_sightings, job_id, read_body
from strandline.engine.cases import check_unblocked, check_unquarantined
from strandline.engine.environment import Environment
from strandline.engine.found import FoundReader
from strandline.engine.read_context import first_set
from strandline.engine.reading import (
    check_reach,
    check_register_whole,
    find_view,
    open_calls_of,
    read_live,
    read_one,
    read_summary,
    register_event,
    to_source,
    visible,
)
from strandline.limits import EXPIRES_US_MAX, FOUND_SHARE, TAIL_HELD_TOKENS, UNKNOWN_CALL_ANCHORS_MAX
from strandline.model.candidate import CompactionPlan, CompactionRecipe, Shares
from strandline.model.event import Event, SourceEvent
from strandline.model.found import FoundConstraint
from strandline.model.register import Fact, FactKey, FactKind, FactState, OpenCall
from strandline.model.summary import Anchor, Summary
from strandline.model.view import ViewHead
from strandline.ports import AsyncSummarizer, Judge, Summarizer, Transaction
from strandline.rules.anchors import (
    ANCHORS_HEADING,
    anchor_line,
    choose_anchors,
    found_anchors,
    make_anchor,
    render_anchors,
)
from strandline.rules.ladder import AS_ASKED, LAST_RESORT, Form
from strandline.rules.planning import Nothing, Places, check_budget, plan_compaction
from strandline.rules.register import Register

ALGORITHM = "segments-1"
PROMPT = "1"
SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Background:
    """What makes a compaction one of the background: the row of `due_compaction` that it runs under."""

    run: int  # its number since it was asked for
    fence: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What was asked for."""

    view: str
    budget: int | None
    summarizer: Summarizer | AsyncSummarizer
    strict: bool
    through: int | None
    when_tokens: int | None
    deadline_s: float | None
    background: Background | None = None  # None: somebody waits for it
    shares: Shares = field(default_factory=Shares)  # what the budget is spent on
    halvings: int = 0  # of what is shown at once (`rules.ladder`)
    last_resort: Summarizer | None = None  # what drafts after semantic failures; it only computes
    judge: Judge | None = None  # asked about each draft that the rules let pass

    @property
    def judge_name(self) -> str:
        """Name and version of the judge; "": there is none."""
        return f"{self.judge.name}@{self.judge.version}" if self.judge else ""

    def as_asked(self) -> Form:
        """Return the form that is asked for first."""
        return LAST_RESORT if _same(self.summarizer, self.last_resort) else AS_ASKED

    def asked_for(self, form: Form) -> Order:
        """Return the order for a draft in a form."""
        if form.last_resort and self.last_resort is not None and not _same(self.summarizer, self.last_resort):
            return replace(self, summarizer=self.last_resort, deadline_s=None)
        return replace(self, halvings=form.halvings)


def _same(one: Summarizer | AsyncSummarizer, other: Summarizer | None) -> bool:
    return other is not None and (one.name, one.version) == (other.name, other.version)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnchorSet:
    """The mandatory facts as of an event, and their text."""

    anchors: tuple[Anchor, ...]
    text: str
    tokens: int
    ref_ids: frozenset[int]  # sighted in the events that state them
    older_calls: tuple[Anchor, ...]  # of unknown outcome, too old to be anchors: for the ledger (I8)
    found: tuple[FoundConstraint, ...] = ()  # those that nobody declared; sure ones are anchors, others for the ledger


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One compaction that is to be done."""

    candidate_id: str
    plan: CompactionPlan
    recipe: CompactionRecipe
    view: ViewHead
    base: Summary | None
    facts: AnchorSet
    tail: tuple[Event, ...]  # the events that the view may read, as they were checked; () when over TAIL_HELD_TOKENS
    sources: tuple[SourceEvent, ...]  # the same as a reader sees them
    tail_tokens: int  # of those that stay behind the new watermark
    tokens_before: int

    @property
    def summarizer(self) -> str:
        """The name of what drafts, by which it is left alone when it does not answer."""
        return self.recipe.model.rpartition("@")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class NoJob:
    """Nothing is to be done."""

    reason: str


def plan_job(env: Environment, order: Order) -> Job | NoJob:
    """Read one snapshot and decide.

    Raises:
        ContextOverflowError, InvalidInputError: as `plan_compaction`.
        UnreconciledSummaryError: the base stands under an open blocking case (I11), or too many candidates of the view
            are quarantined for a compaction that nobody asked for (C13).
        CorruptRecordError: the base summary or the tail is not what was written.
    """
    with env.read() as tx:
        head, view = tx.log.head(), find_view(tx, order.view, str(env.scope))
        check_unblocked(env, tx, view)
        if order.background is not None:
            check_unquarantined(env, tx, view)
        base = read_summary(tx, view)
        check_reach(view, head.revision, env.scope.workflow)
        budget = check_budget(first_set(order.budget, view.budget))
        facts = _Facts(env, tx, view, budget)
        here = facts.tokens
        tail = _Tail(env, view, facts, Places(budget, order.shares, order.through), tx.register.open_calls())
        for event in read_live(tx, view.watermark + 1, head.revision, env.scope.workflow):
            tail.take(event)
        before = (base.tokens if base else 0) + tail.tokens
        if order.when_tokens is not None and before < order.when_tokens:
            return NoJob(reason=f"{before} tokens, and compaction was asked for from {order.when_tokens}")
        if order.when_tokens is not None:
            check_unquarantined(env, tx, view)
        points = tail.places.points()
        plan = plan_compaction(
            view=view,
            segments=[segment.head for segment in base.segments] if base else (),
            compactions=base.compactions if base else 0,
            tail=points,
            tail_tokens=tail.tokens,
            anchors=here,
            open_calls=tail.open_calls,
            context_tokens=before,
            revision=head.revision,
            budget=budget,
            shares=order.shares,
            through=order.through,
            window_tokens=order.summarizer.window_tokens,
        )
        if isinstance(plan, Nothing):
            return NoJob(reason=plan.reason)
        if plan.watermark > view.watermark and not 0 < tail.first <= plan.watermark:
            return NoJob(reason="it reads no event that is not covered yet")
        recipe = _recipe(env, order)
        return Job(
            candidate_id=_candidate_id(env, view, plan, recipe),
            plan=plan,
            recipe=recipe,
            view=view,
            base=base,
            facts=facts.at(plan.watermark),
            tail=tuple(tail.events),
            sources=tuple(tail.sources),
            tail_tokens=next((p.tokens_after for p in points if p.seq == plan.watermark), tail.tokens),
            tokens_before=before,
        )


def _recipe(env: Environment, order: Order) -> CompactionRecipe:
    return CompactionRecipe(
        algorithm=ALGORITHM,
        model=f"{order.summarizer.name}@{order.summarizer.version}",
        prompt=PROMPT,
        schema=SCHEMA,
        token_counter=env.counter.name,
        strict=order.strict,
        partition=order.halvings,
        extractor=env.references.name,
        judge=order.judge_name,
    )


def anchors_at(env: Environment, tx: Transaction, view: ViewHead, seq: int, budget: int) -> AnchorSet:
    """Return the facts that a view reads as of an event: mandatory ones, and found ones within their share."""
    return _Facts(env, tx, view, budget).at(seq)


def _candidate_id(env: Environment, view: ViewHead, plan: CompactionPlan, recipe: CompactionRecipe) -> str:
    """Name the job, so that a repeat of it finds its own row (DESIGN §2)."""
    return job_id(
        env.store.digest_key,
        env.scope.tenant,
        env.scope.workflow,
        view.name,
        view.audience_version,
        plan.base_generation,
        plan.watermark,
        plan.budget,
        plan.shares,
        plan.revision if recipe.strict else None,
        recipe,
    )


class _Tail:
    """The events behind the watermark, taken one by one. They are held while they are few (TAIL_HELD_TOKENS): more are
    read again, in pages, when a segment is made from them.
    """

    def __init__(
        self, env: Environment, view: ViewHead, facts: _Facts, places: Places, open_calls: Sequence[Fact]
    ) -> None:
        self.places = places
        self.first = 0  # the first that the view may read
        self.events: list[Event] = []
        self.sources: list[SourceEvent] = []
        self._env = env
        self._view = view
        self._facts = facts
        self._open = {fact.source_seq: fact for fact in open_calls}
        self._calls: list[SourceEvent] = []

    @property
    def tokens(self) -> int:
        """The tokens of the events so far."""
        return self.places.tokens

    @property
    def open_calls(self) -> tuple[OpenCall, ...]:
        """The open calls among them."""
        return open_calls_of(list(self._open.values()), self._calls)

    def take(self, event: Event) -> None:
        """Take the next event."""
        read = next(visible(self._view, (event,)), None)
        source = None if read is None else to_source(read, self._env.counter)
        self._facts.take(event)
        self.places.take(event.seq, source.tokens if source else 0, legal=self._facts.legal, anchors=self._facts.tokens)
        if source is not None:
            self.first = self.first or event.seq
        if source is not None and event.seq in self._open:
            self._calls.append(source)
        if self.tokens > TAIL_HELD_TOKENS:
            self.events, self.sources = [], []
        elif source is not None:
            self.events.append(event)
            self.sources.append(source)


class _AnchorMeter:
    """At most how many tokens the anchors take, kept up to date fact by fact."""

    def __init__(self, cost: Callable[[Fact], int], found_most: int) -> None:
        self._cost = cost
        self._found_most = found_most
        self._found = 0  # tokens of all that were found; those that exceed `found_most` are no anchors
        self._fitting = 0  # how many of them do not exceed it alone; without one there are none
        self._costs: dict[FactKey, int] = {}
        self._unknown: dict[FactKey, tuple[int, int]] = {}  # calls of unknown outcome: seq, cost
        self._total = 0
        self._newest: int | None = 0  # tokens of the newest of them; None: to be counted again

    @property
    def tokens(self) -> int:
        """Tokens of the anchors now; of the calls of unknown outcome only the newest are anchors (I8)."""
        if self._newest is None:
            newest = nlargest(UNKNOWN_CALL_ANCHORS_MAX, self._unknown.values())  # by the seq of the call
            self._newest = sum(cost for _, cost in newest)
        return self._total + self._newest + (min(self._found, self._found_most) if self._fitting else 0)

    def begin(self, facts: Iterable[Fact]) -> None:
        """Count facts that hold from now on."""
        for fact in facts:
            if fact.key.kind is not FactKind.CALL:
                self._costs[fact.key] = self._cost(fact)
                self._add(fact.key, self._costs[fact.key], 1)
            elif fact.state is FactState.UNKNOWN:
                self._unknown[fact.key] = (fact.source_seq, self._cost(fact))
                self._newest = None

    def end(self, facts: Iterable[Fact]) -> None:
        """Leave facts out that hold no longer."""
        for fact in facts:
            if fact.key in self._costs:
                self._add(fact.key, self._costs.pop(fact.key), -1)
            if self._unknown.pop(fact.key, None) is not None:
                self._newest = None

    def _add(self, key: FactKey, tokens: int, sign: int) -> None:
        if key.kind is FactKind.FOUND:
            self._found += sign * tokens
            self._fitting += sign * (tokens <= self._found_most)
        else:
            self._total += sign * tokens


class _Facts:
    """The mandatory facts as of any event behind the watermark, folded from the log."""

    def __init__(self, env: Environment, tx: Transaction, view: ViewHead, budget: int) -> None:
        self._env = env
        self._tx = tx
        self._view = view
        self._found = FoundReader(env, tx)
        self._found_tokens = int(budget * FOUND_SHARE)
        base = tx.register.as_of(view.watermark) if view.watermark else []
        check_register_whole(tx)
        self._register = Register(base, lambda call_id: tx.register.newest(FactKind.CALL, call_id))
        self._heading = env.part_tokens(ANCHORS_HEADING)
        self._event: Event | None = None  # the last one that was taken
        self._calls: dict[int, Event] = {}  # the open ones, without their bodies
        self._open = {fact.key for fact in base if self._holds(fact)}  # the calls that hold the watermark
        self._meter = _AnchorMeter(self._cost, self._found_tokens)
        self._meter.begin(self._read(base))

    @property
    def legal(self) -> bool:
        """Whether a watermark may stand behind the last event: no call that the view reads is open there (I8, I21)."""
        return not self._open

    @property
    def tokens(self) -> int:
        """At most how many tokens the anchors take as of the last event."""
        tokens = self._meter.tokens
        return tokens + self._heading if tokens else 0

    def take(self, event: Event) -> None:
        """Take the next event."""
        self._event = event
        step = self._register.apply(register_event(event))
        self._meter.end(step.ended)
        self._meter.begin(self._read(step.begun))
        self._open.difference_update(fact.key for fact in step.ended)
        self._open.update(fact.key for fact in step.begun if self._holds(fact))
        for fact in step.ended:
            if fact.key.kind is FactKind.CALL:
                self._calls.pop(fact.source_seq, None)
        for fact in step.begun:
            if fact.key.kind is FactKind.CALL and fact.state is FactState.STANDING:
                self._calls[fact.source_seq] = event._replace(body=None)

    def _read(self, facts: Iterable[Fact]) -> Iterable[Fact]:
        return (fact for fact in facts if self._view.reads(fact.audience))

    def _holds(self, fact: Fact) -> bool:
        is_open = fact.key.kind is FactKind.CALL and fact.state is FactState.STANDING
        return is_open and self._view.reads(fact.audience)

    def _cost(self, fact: Fact) -> int:
        if fact.key.kind is FactKind.FOUND:
            return self._found_cost(fact)
        return self._env.counter.count(anchor_line(self._anchor(fact, self._stating(fact))) + "\n")

    def _found_cost(self, fact: Fact) -> int:
        """Return at most what a statement takes that was found: one that is not sure may come to stand for another."""
        stating = self._event if self._event is not None and self._event.seq == fact.source_seq else None
        said = self._found.said(fact, stating)
        if said is None or not (said.sure or said.lifts):
            return 0
        anchor = Anchor(key=fact.key, state=fact.state, seq=said.seq, text=said.text)
        return self._env.counter.count(anchor_line(anchor) + "\n")

    def at(self, seq: int) -> AnchorSet:
        """Return the facts as of event `seq`."""
        facts = list(self._read(self._tx.register.as_of(seq))) if seq else []
        chosen, older = choose_anchors([fact for fact in facts if fact.key.kind is not FactKind.FOUND])
        stated = [(fact, self._stating(fact)) for fact in chosen]
        stated = [(fact, event) for fact, event in stated if not _is_void(fact, event)]
        found = self._found.resolve(fact for fact in facts if fact.key.kind is FactKind.FOUND)
        pinned, left_out = found_anchors(found, self._found_tokens, self._env.counter.count)
        anchors = (*(self._anchor(fact, event) for fact, event in stated), *pinned)
        text = render_anchors(anchors, left_out)
        return AnchorSet(
            anchors=anchors,
            text=text,
            tokens=self._env.part_tokens(text),
            ref_ids=frozenset(sighting.ref_id for _, event in stated for sighting in decode_sightings(event.sightings)),
            older_calls=tuple(self._anchor(fact, self._stating(fact)) for fact in older),
            found=tuple(found),
        )

    def _stating(self, fact: Fact) -> Event:
        """Return the event that states a fact; of a call that is or was open just now, without its body."""
        if self._event is not None and self._event.seq == fact.source_seq:
            return self._event
        held = self._calls.get(fact.source_seq) if fact.key.kind is FactKind.CALL else None
        return held or read_one(self._tx, fact.source_seq, self._env.scope.workflow)

    def _anchor(self, fact: Fact, event: Event) -> Anchor:
        return make_anchor(fact, event.envelope, self._statement(fact, event), _expiry(fact))

    def _statement(self, fact: Fact, event: Event) -> str:
        if fact.key.kind is FactKind.CALL:
            return ""
        if fact.key.kind is FactKind.PIN:
            return self._tx.refs.texts([int(fact.key.subject)]).get(int(fact.key.subject), "[erased]")
        return self._env.references.secrets.redact(read_body(event)[0])


def _is_void(fact: Fact, event: Event) -> bool:
    """Tell whether a fact counts no more because its event was erased: an approval does not, all else does (C31)."""
    return fact.key.kind is FactKind.APPROVAL and event.body is None


def _expiry(fact: Fact) -> str | None:
    if fact.expires_us is None:
        return None
    if not 0 <= fact.expires_us <= EXPIRES_US_MAX:
        return f"{fact.expires_us} us after 1970"
    return datetime.fromtimestamp(fact.expires_us / 1_000_000, UTC).isoformat(timespec="seconds")
