"""Plan a compaction from one snapshot; nothing is written and no lock is held (DESIGN §2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from strandline.codec import decode_sightings, job_id, read_body
from strandline.engine.environment import Environment
from strandline.engine.read_context import first_set
from strandline.engine.reading import (
    check_reach,
    check_register_whole,
    find_view,
    open_calls_of,
    read_log,
    read_one,
    read_summary,
    register_event,
    to_source,
    visible,
)
from strandline.limits import EXPIRES_US_MAX, UNKNOWN_CALL_ANCHORS_MAX
from strandline.model.candidate import CompactionPlan, CompactionRecipe
from strandline.model.event import Event, SourceEvent
from strandline.model.register import Fact, FactKey, FactKind, FactState
from strandline.model.summary import Anchor, Summary
from strandline.model.view import ViewHead
from strandline.ports import AsyncSummarizer, Summarizer, Transaction
from strandline.rules.anchors import ANCHORS_HEADING, anchor_line, choose_anchors, make_anchor, render_anchors
from strandline.rules.planning import Nothing, TailPoint, plan_compaction
from strandline.rules.register import Register

ALGORITHM = "segments-1"
PROMPT = "1"
SCHEMA = 1


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


@dataclass(frozen=True, slots=True, kw_only=True)
class AnchorSet:
    """The mandatory facts as of an event, and their text."""

    anchors: tuple[Anchor, ...]
    text: str
    tokens: int
    ref_ids: frozenset[int]  # sighted in the events that state them
    older_calls: tuple[Anchor, ...]  # of unknown outcome, too old to be anchors: for the ledger (I8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One compaction that is to be done."""

    candidate_id: str
    plan: CompactionPlan
    recipe: CompactionRecipe
    view: ViewHead
    base: Summary | None
    facts: AnchorSet
    sources: tuple[SourceEvent, ...]  # the tail as a reader sees it
    tail: tuple[Event, ...]  # the events behind the base's watermark, as they were read and checked
    tail_tokens: int  # of those that stay behind the new watermark
    tokens_before: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NoJob:
    """Nothing is to be done."""

    reason: str


def plan_job(env: Environment, order: Order) -> Job | NoJob:
    """Read one snapshot and decide.

    Raises:
        ContextOverflowError, InvalidInputError: as `plan_compaction`.
        CorruptRecordError: the base summary or the tail is not what was written.
    """
    with env.store.read(env.scope) as tx:
        head = tx.log.head()
        view = find_view(tx, order.view, str(env.scope))
        base = read_summary(tx, view)
        check_reach(view, head.revision, env.scope.workflow)
        tail = list(read_log(tx, view.watermark + 1, head.revision, env.scope.workflow))
        sources = [to_source(event, env.counter) for event in visible(view, tail)]
        tail_tokens = sum(source.tokens for source in sources)
        before = (base.tokens if base else 0) + tail_tokens
        if order.when_tokens is not None and before < order.when_tokens:
            return NoJob(reason=f"{before} tokens, and compaction was asked for from {order.when_tokens}")
        facts = _Facts(env, tx, view, tail)
        plan = plan_compaction(
            view=view,
            segments=[segment.head for segment in base.segments] if base else (),
            compactions=base.compactions if base else 0,
            tail=facts.points(sources),
            tail_tokens=tail_tokens,
            anchors=facts.now,
            open_calls=open_calls_of(tx.register.open_calls(), sources),
            context_tokens=before,
            revision=head.revision,
            budget=first_set(order.budget, view.budget),
            through=order.through,
            window_tokens=order.summarizer.window_tokens,
        )
        if isinstance(plan, Nothing):
            return NoJob(reason=plan.reason)
        recipe = CompactionRecipe(
            algorithm=ALGORITHM,
            model=f"{order.summarizer.name}@{order.summarizer.version}",
            prompt=PROMPT,
            schema=SCHEMA,
            token_counter=env.counter.name,
            strict=order.strict,
            extractor=env.references.name,
        )
        return Job(
            candidate_id=_candidate_id(env, view, plan, recipe),
            plan=plan,
            recipe=recipe,
            view=view,
            base=base,
            facts=facts.at(plan.watermark),
            sources=tuple(sources),
            tail=tuple(tail),
            tail_tokens=sum(source.tokens for source in sources if source.seq > plan.watermark),
            tokens_before=before,
        )


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
        plan.revision if recipe.strict else None,
        recipe,
    )


class _AnchorMeter:
    """At most how many tokens the anchors take, kept up to date fact by fact."""

    def __init__(self, cost: Callable[[Fact], int]) -> None:
        self._cost = cost
        self._costs: dict[FactKey, int] = {}
        self._unknown: dict[FactKey, tuple[int, int]] = {}  # calls of unknown outcome: seq, cost
        self._total = 0

    @property
    def tokens(self) -> int:
        """Tokens of the anchors now; of the calls of unknown outcome only the newest are anchors (I8)."""
        newest = sorted(self._unknown.values())[-UNKNOWN_CALL_ANCHORS_MAX:]  # by the seq of the call
        return self._total + sum(cost for _, cost in newest)

    def begin(self, facts: Iterable[Fact]) -> None:
        """Count facts that hold from now on."""
        for fact in facts:
            if fact.key.kind is not FactKind.CALL:
                self._costs[fact.key] = self._cost(fact)
                self._total += self._costs[fact.key]
            elif fact.state is FactState.UNKNOWN:
                self._unknown[fact.key] = (fact.source_seq, self._cost(fact))

    def end(self, facts: Iterable[Fact]) -> None:
        """Leave facts out that hold no longer."""
        for fact in facts:
            self._total -= self._costs.pop(fact.key, 0)
            self._unknown.pop(fact.key, None)


class _Facts:
    """The mandatory facts as of any event behind the watermark, folded from the log."""

    def __init__(self, env: Environment, tx: Transaction, view: ViewHead, tail: Sequence[Event]) -> None:
        self._env = env
        self._tx = tx
        self._view = view
        self._tail = {event.seq: event for event in tail}
        self._base = tx.register.as_of(view.watermark) if view.watermark else []
        check_register_whole(tx)
        self._heading = env.part_tokens(ANCHORS_HEADING)
        self._meter = _AnchorMeter(self._cost)
        self._meter.begin(self._base)
        self.now = self._metered()  # tokens of the anchors as of the watermark

    def _register(self) -> Register:
        return Register(self._base, lambda call_id: self._tx.register.newest(FactKind.CALL, call_id))

    def _cost(self, fact: Fact) -> int:
        if not self._view.reads(fact.audience):
            return 0
        return self._env.counter.count(anchor_line(self._anchor(fact, self._event(fact))) + "\n")

    def _metered(self) -> int:
        tokens = self._meter.tokens
        return tokens + self._heading if tokens else 0

    def points(self, sources: Sequence[SourceEvent]) -> list[TailPoint]:
        """Return every place behind the watermark: tokens on both sides, anchors, and whether a call is open (I8)."""
        tokens = {source.seq: source.tokens for source in sources}
        total, through = sum(tokens.values()), 0
        register = self._register()
        points = []
        for event in self._tail.values():
            step = register.apply(register_event(event))
            self._meter.end(step.ended)
            self._meter.begin(step.begun)
            through += tokens.get(event.seq, 0)
            points.append(
                TailPoint(
                    seq=event.seq,
                    tokens_after=total - through,
                    tokens_through=through,
                    legal=not register.has_open_call,
                    anchors=self._metered(),
                )
            )
        return points

    def at(self, seq: int) -> AnchorSet:
        """Return the facts as of event `seq`."""
        register = self._register()
        for event in self._tail.values():
            if event.seq <= seq:
                register.apply(register_event(event))
        facts = [fact for fact in register.facts if self._view.reads(fact.audience)]
        chosen, older = choose_anchors(facts)
        events = [self._event(fact) for fact in chosen]
        anchors = tuple(self._anchor(fact, event) for fact, event in zip(chosen, events, strict=True))
        text = render_anchors(anchors)
        return AnchorSet(
            anchors=anchors,
            text=text,
            tokens=self._env.part_tokens(text),
            ref_ids=frozenset(sighting.ref_id for event in events for sighting in decode_sightings(event.sightings)),
            older_calls=tuple(self._anchor(fact, self._event(fact)) for fact in older),
        )

    def _event(self, fact: Fact) -> Event:
        return self._tail.get(fact.source_seq) or read_one(self._tx, fact.source_seq, self._env.scope.workflow)

    def _anchor(self, fact: Fact, event: Event) -> Anchor:
        return make_anchor(fact, event.envelope, self._statement(fact, event), _expiry(fact))

    def _statement(self, fact: Fact, event: Event) -> str:
        if fact.key.kind is FactKind.CALL:
            return ""
        if fact.key.kind is FactKind.PIN:
            return self._tx.refs.texts([int(fact.key.subject)]).get(int(fact.key.subject), "[erased]")
        return read_body(event)[0]


def _expiry(fact: Fact) -> str | None:
    if fact.expires_us is None:
        return None
    if not 0 <= fact.expires_us <= EXPIRES_US_MAX:
        return f"{fact.expires_us} us after 1970"
    return datetime.fromtimestamp(fact.expires_us / 1_000_000, UTC).isoformat(timespec="seconds")
