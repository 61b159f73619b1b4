"""Law (I1–I20): whatever is done in whatever order, the workflow shows what the pure model says (tests/model/model.py).

Random interleavings of append, compact, a compaction in flight, checkpoint, crash, recover, reconcile, revert, rewind,
fork, effect and guard, on SQLite and on PostgreSQL. After each step: the lineage is one total order that only grows;
each context is the output of one generation plus its tail, without a gap, and without an abandoned event; no effect ran
twice; no permit stands without its facts.
"""

from __future__ import annotations

import itertools
from collections import Counter
from typing import ClassVar, Final

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import strandline
from strandline.engine.compact import compact
from strandline.engine.flow import Done, Summarize, advance
from strandline.model.candidate import Draft
from strandline.model.event import EventKind
from strandline.model.ids import Scope
from strandline.testing import SeededEntropy, VirtualClock
from strandline.testing.fakes import START_US
from strandline.testing.protocol import conforms
from tests.model.model import Checkpoint, Content, Event, Workflow, World
from tests.unit.test_engine_stage import WHOLE, quiet

pytestmark = pytest.mark.long

EXAMPLES: Final = 130  # of each of SHARDS, with at most STEPS rules each
STEPS: Final = 55
SHARDS: Final = 4
RULES_MIN: Final = 20_000 // SHARDS
POSTGRES_EXAMPLES: Final = 118
POSTGRES_RULES_MIN: Final = 5_000
POSTGRES_STORES: Final = 3  # pools that crashes go round among
BUDGETS: Final = (300, 500)
SUBJECTS: Final = ("release", "deploy")
ISSUES: Final = ("scope", "leak")
EFFECTS: Final = ("pay", "mail", "bucket")
HAPPENS: Final = (
    "restore", "replay", "refusal", "revert", "rewind", "fork", "landed", "landed and refused", "permit used",
    "permit void", "effect ran", "effect replayed", "effect probed", "effect broke", "effect unknown",
)  # fmt: skip
WHO: Final = {"by": "ops", "why": "a test"}

_stores = itertools.count(1)
_counted: Counter[str] = Counter()
_folder: dict[str, str] = {}


def said(number: int) -> str:
    """Return the text of a message: with more references than a ledger can carry."""
    return f"Step {number} wrote bucket-{number:04x} from {', '.join(paths(number))}."


def paths(number: int) -> list[str]:
    return [f"/srv/out/{number:04x}/{part}/report-{number}-{part}.json" for part in range(8)]


class BrokenError(Exception):
    """The connection broke: it is not known whether the effect happened."""


class Lifecycle(RuleBasedStateMachine):
    """One store, a family of workflows of which one is at work, and their models."""

    look_every: ClassVar[int] = 1  # steps, until the invariants are looked at again

    def __init__(self) -> None:
        super().__init__()
        self.clock = self.new_clock()
        self.world = World()
        self.numbers = itertools.count(1)
        self.names = itertools.count(1)  # nothing drawn may depend on what other examples did
        number = next(_stores)
        self.path, self.tenant = f"{_folder['stores']}/{number}.db", self.new_tenant(number)
        self.opened = [self.open()]
        self.name = "run"
        self.models = {self.name: Workflow()}
        self.lineages: dict[str, list[tuple[object, ...]]] = {}
        self.basis: dict[str, strandline.Context] = {}
        self.flight: tuple[object, object, int, str] | None = None
        self.permit: tuple[strandline.Permit, str, str, tuple[int, int], str] | None = None
        self.case_refs: dict[str, str] = {}
        self.asked = False  # something may have opened a case
        self.steps = 0

    def new_clock(self) -> VirtualClock:
        return VirtualClock()

    def new_tenant(self, number: int) -> str:
        return "acme"

    def open(self) -> strandline.Strandline:
        return strandline.open(
            self.path, clock=self.clock, entropy=SeededEntropy(next(self.names)), durability="normal"
        )

    @property
    def db(self) -> strandline.Strandline:
        return self.opened[-1]

    @property
    def wf(self) -> strandline.Workflow:
        return self.db.tenant(self.tenant).workflow(self.name)

    @property
    def model(self) -> Workflow:
        return self.models[self.name]

    # ------------------------------------------------------------------------------------------ log

    def add(self, *made: tuple[strandline.NewEvent, str, str, str]) -> None:
        seqs = self.wf.append([event for event, *_ in made]).seqs
        self.model.append(
            Event(seq, kind, subject, ref, event.key)
            for seq, (event, kind, subject, ref) in zip(seqs, made, strict=True)
        )

    @initialize()
    def begin(self) -> None:
        _counted["rules"] -= 1  # what begins an example is none
        self.say(3)

    @rule(count=st.integers(2, 6))
    def say(self, count: int) -> None:
        made = []
        for _ in range(count):
            number = next(self.numbers)
            made.append(
                (strandline.message("assistant", said(number), key=f"m{number}"), "message", "", paths(number)[-1])
            )
        self.add(*made)

    @rule(data=st.data())
    def say_again(self, data: st.DataObject) -> None:
        """A key that a live event holds gives its seq again; one that was abandoned is free (I3)."""
        keyed = [event for event in self.model.events.values() if event.key is not None]
        event = data.draw(st.sampled_from(keyed))
        number = int(event.key[1:])
        held = self.model.holder(event.key)
        answer = self.wf.append(strandline.message("assistant", said(number), key=event.key))
        if held is not None:
            assert (answer.seqs, answer.added) == ((held.seq,), 0)
        else:
            self.model.append([Event(answer.seq, "message", "", paths(number)[-1], event.key)])

    @rule(subject=st.sampled_from(SUBJECTS), revoked=st.booleans())
    def approve_or_revoke(self, subject: str, revoked: bool) -> None:
        if revoked:
            self.add((strandline.revoke(subject, "Not now."), "revoke", subject, ""))
        else:
            self.add((strandline.approval(subject, "Go.", granter="alice"), "approval", subject, ""))

    @rule(subject=st.sampled_from(ISSUES))
    def raise_or_resolve(self, subject: str) -> None:
        if subject in self.model.open_issues():
            self.add((strandline.resolve(subject, "Fixed."), "resolve", subject, ""))
        else:
            self.add((strandline.issue(subject, "It leaks."), "issue", subject, ""))

    # ------------------------------------------------------------------------------------------ compaction

    @rule(budget=st.sampled_from(BUDGETS), good=st.booleans())
    def compact(self, budget: int, good: bool) -> None:
        base = self.model.content
        draft = quiet if good else (lambda _: "Everything moved to bucket-ffff0 by itself.")
        try:
            out = self.wf.compact(budget, draft)
        except strandline.UnreconciledSummaryError:
            assert base.number in self.model.blocked
            return
        except strandline.ContextOverflowError:
            return
        assert base.number not in self.model.blocked or out.outcome == "nothing_to_do"
        if out.attempts:  # a job that ended before is not claimed again
            self.model.fences += 1
        self.asked |= not good
        self.activated(out)

    def activated(self, out: strandline.CompactionOutcome) -> None:
        if out.outcome == "activated":
            self.model.activate(out.summary.summary_no, out.watermark, out.lineage_seq)
            assert out.refs_unaccounted == 0
        assert out.generation == self.model.generation

    @precondition(lambda self: self.flight is None)
    @rule(budget=st.sampled_from(BUDGETS))
    def take_off(self, budget: int) -> None:
        """Begin a compaction, and let its summarizer take its time."""
        verb = compact(self.wf._env, self.wf._order(budget, quiet))
        try:
            state = advance(verb.send, None)
        except (strandline.UnreconciledSummaryError, strandline.ContextOverflowError):
            return
        if isinstance(state, Summarize):
            self.model.fences += 1
            self.flight = (verb, state, self.model.fences, self.name)
        else:
            assert isinstance(state, Done)
            self.activated(state.value)

    @precondition(lambda self: self.flight is not None)
    @rule()
    def land(self) -> None:
        """What comes back after anything took the view is refused, however late (I6)."""
        verb, state, fence, name = self.flight
        self.flight = None
        model = self.models[name]
        while isinstance(state, Summarize):
            state = advance(verb.send, Draft(text=quiet(state.request)))
        outcome = state.value
        self.asked = True
        fenced = fence != model.fences
        blocked = model.content.number in model.blocked
        assert outcome.outcome != "activated" or not (fenced or blocked)
        _counted["landed and refused" if fenced else "landed"] += 1
        if name == self.name:
            self.activated(outcome)
        elif outcome.outcome == "activated":
            model.activate(outcome.summary.summary_no, outcome.watermark, outcome.lineage_seq)

    # ------------------------------------------------------------------------------------------ checkpoint, recovery

    @rule()
    def read(self) -> None:
        self.basis[self.name] = self.wf.context(WHOLE)

    @precondition(lambda self: self.name in self.basis)
    @rule(fresh=st.booleans())
    def checkpoint(self, fresh: bool) -> None:
        """A state is stamped only while the generation that it was made from is the view's (I14)."""
        if fresh:
            self.read()
        basis, number = self.basis[self.name], next(self.numbers)
        try:
            made = self.wf.checkpoint({"number": number}, number, basis=basis)
        except strandline.CompactionLineageError:
            assert basis.generation != self.model.generation
            return
        assert basis.generation == self.model.generation
        self.model.checkpoints.append(Checkpoint(made.lineage_seq, made.revision, str(number)))

    @rule()
    def crash(self) -> None:
        """Another process takes over; what the dead one had begun may still land, as a zombie's does."""
        self.opened.append(self.open())
        self.basis.clear()

    @rule(data=st.data())
    def recover(self, data: st.DataObject) -> None:
        """Restore the newest checkpoint that passes the gate, else replay, else say what is missing (I15, I16)."""
        model = self.model
        refs = [event.ref for event in model.live if event.ref]
        ref = data.draw(st.sampled_from(["", *refs]))
        target = model.target()
        before = len(self.wf.cases())
        model.fences += 1
        try:
            got = self.wf.recover([ref] if ref else [], budget=WHOLE)
        except strandline.SummaryReconciliationError as error:
            self.refused(error, ref, before)
            return
        assert (got.kind == "restore") == (target is not None)
        _counted[got.kind.value] += 1
        if target is not None:
            assert (got.checkpoint_seq, got.state) == (target.lineage_seq, {"number": int(target.state)})
            model.restores.append((got.lineage_seq, target.lineage_seq))
        assert [event.seq for event in events_of(got.context)] == model.tail()
        assert not ref or ref in got.context.text
        self.basis[self.name] = got.context

    def refused(self, error: strandline.SummaryReconciliationError, ref: str, before: int) -> None:
        """One question is one case, however often it is asked (I11)."""
        _counted["refusal"] += 1
        self.asked = True
        assert error.missing_refs == (ref,)
        assert error.last_known is not None
        assert error.last_known.seq in {event.seq for event in self.model.live if event.ref == ref}
        cases = self.wf.cases()
        assert len(cases) <= before + 1
        assert error.case_id in {case.case_id for case in cases}
        with pytest.raises(strandline.SummaryReconciliationError) as again:
            self.wf.recover([ref], budget=WHOLE)
        assert again.value.case_id == error.case_id
        assert self.wf.cases() == cases
        self.model.blocked.add(self.model.content.number)
        self.case_refs[error.case_id] = ref

    @precondition(lambda self: self.asked and self.wf.cases())
    @rule(data=st.data(), replay=st.booleans())
    def reconcile(self, data: st.DataObject, replay: bool) -> None:
        """The first answer wins, and is one entry of the lineage; what the log holds is pinned (I17)."""
        # Ids hold the tenant, which differs from example to example: they must not tell which case is drawn.
        case = data.draw(st.sampled_from(sorted(self.wf.cases(), key=what_it_asks)))
        exact = replay and case.kind == "missing_dependency"
        if exact and not any(event.ref == self.case_refs.get(case.case_id) for event in self.model.live):
            exact = False  # the branch that held it was left
        answer = strandline.ReplayFromExact() if exact else strandline.Abandon()
        entries = len(self.wf.lineage())
        answered = self.wf.reconcile(case.case_id, answer, **WHO)
        if case.kind == "effect_unknown":
            self.world.given_up.add(case.subject)
        assert len(self.wf.lineage()) == entries + 1
        other = strandline.Abandon() if exact else strandline.ReplayFromExact()
        with pytest.raises(strandline.CaseAnsweredError):
            self.wf.reconcile(case.case_id, other, by="someone else", why="too late")
        self.catch_up()
        if exact:
            assert self.wf.recover(answered.missing_refs, budget=WHOLE, dry_run=True)
        still = {case.summary_no for case in self.wf.cases() if case.blocking}
        self.model.blocked &= still

    def catch_up(self) -> None:
        """Take over the events that a verb appended by itself."""
        for event in self.wf.events(self.model.revision + 1):
            self.model.append([Event(event.seq, event.kind.value, event.subject or "")])

    # ------------------------------------------------------------------------------------------ revert, rewind, fork

    @rule(data=st.data())
    def revert(self, data: st.DataObject) -> None:
        generation = data.draw(st.integers(0, self.model.generation))
        allowed = self.model.may_revert(generation)
        try:
            done = self.wf.revert(generation, **WHO)
        except strandline.InvalidInputError:
            assert not allowed
            return
        assert allowed
        _counted["revert"] += 1
        self.asked = True
        self.model.revert(generation, done.lineage_seq)
        assert done.generation == self.model.generation

    @rule(data=st.data())
    def rewind(self, data: st.DataObject) -> None:
        """What is left is in no context any more; revocations are not given back (C22)."""
        model = self.model
        to = data.draw(st.integers(0, model.revision) | st.integers(max(0, model.revision - 5), model.revision))
        live = {event.seq for event in model.live}
        allowed = (to == 0 or to in live) and any(seq > to for seq in live)
        lost = model.lost_grants(to)
        try:
            done = self.wf.rewind(to, **WHO)
        except strandline.InvalidInputError:
            assert not allowed
            return
        assert allowed
        _counted["rewind"] += 1
        model.rewind(to, done.lineage_seq)
        for event in self.wf.events(model.revision + 1):
            assert event.kind in (EventKind.REVOKE, EventKind.LIFT_CONSTRAINT)
            model.append([Event(event.seq, event.kind.value, event.subject or "")])
        assert not lost & model.approvals().keys()

    @precondition(lambda self: len(self.models) < 3)
    @rule(data=st.data())
    def fork(self, data: st.DataObject) -> None:
        """A fork begins with the past as it was live, and goes its own way."""
        live = [event.seq for event in self.model.live]
        at = data.draw(st.sampled_from(live)) if live else None
        if at is None:
            return
        _counted["fork"] += 1
        name = f"{self.name}-f{next(self.names)}"
        self.wf.fork(at, name, **WHO)
        parent = self.model
        made = Workflow()
        made.events = {seq: event for seq, event in parent.events.items() if seq <= at}
        made.abandoned = {seq for seq in parent.abandoned if seq <= at}
        made._abandoned_at = dict.fromkeys(made.abandoned, 0)
        made.revision = at
        self.models[name] = made
        self.name = name
        self.adopt(made)

    def adopt(self, made: Workflow) -> None:
        """Take over where the pointer of a fork begins: its summary is a copy of one of its parent's."""
        context = self.wf.context(WHOLE)
        made.generation = context.generation
        with self.db.store.read(Scope(tenant=self.tenant, workflow=self.name)) as tx:
            head = tx.views.get("main")
        if head is not None and head.generation:
            made.contents[head.generation] = Content(head.summary_no, head.watermark)
            made.moved_at = head.moved_lineage_seq

    @precondition(lambda self: len(self.models) > 1)
    @rule(data=st.data())
    def turn_to(self, data: st.DataObject) -> None:
        self.name = data.draw(st.sampled_from(sorted(self.models)))

    # ------------------------------------------------------------------------------------------ effects, guards

    @rule(key=st.sampled_from(EFFECTS), how=st.sampled_from(("well", "refused", "late", "lost")), probed=st.booleans())
    def effect(self, key: str, how: str, probed: bool) -> None:
        """Whatever happens while it runs: it happens once, or somebody is asked (I18)."""
        self.do(key, how, probed=probed, permit=None)

    def do(self, key: str, how: str, *, probed: bool, permit: strandline.Permit | None) -> None:
        world, tool = self.world, permit.action if permit else key

        def run() -> dict[str, str]:
            if how == "refused":
                raise strandline.EffectFailedError("the other side says no")
            if how == "lost":
                raise BrokenError
            assert world.happened[key] == 0, f"{key} would run twice"
            world.happened[key] += 1
            if how == "late":
                raise BrokenError
            return {"id": f"{key}-done"}

        def probe() -> object:
            if world.happened[key]:
                return strandline.EffectDone({"id": f"{key}-done"})
            return strandline.EffectNeverHappened()

        refused = ""
        try:
            outcome = self.wf.effect(key, tool, {"of": key}, run, probe if probed else None, permit=permit)
        except (BrokenError, strandline.EffectFailedError):
            assert how != "well"
            _counted["effect broke"] += 1
            self.asked = True
        except strandline.EffectUnknownError as error:
            refused = error.case_id or "given up"
        else:
            assert (outcome.result, world.happened[key]) == ({"id": f"{key}-done"}, 1)
            world.recorded.add(key)
            _counted[f"effect {outcome.kind}"] += 1
        finally:
            self.catch_up()
        if refused:
            assert key not in world.recorded
            assert not probed or key in world.given_up
            self.asked = True
            _counted["effect unknown"] += 1

    @rule(subject=st.sampled_from(SUBJECTS), issue=st.sampled_from(ISSUES), prepared=st.booleans())
    def guard(self, subject: str, issue: str, prepared: bool) -> None:
        """A permit stands on durable facts, and on nothing else (I20)."""
        if prepared:
            self.add((strandline.approval(subject, "Go.", granter="alice"), "approval", subject, ""))
            if issue not in self.model.open_issues():
                self.add((strandline.issue(issue, "It leaks."), "issue", issue, ""))
            self.add((strandline.resolve(issue, "Fixed."), "resolve", issue, ""))
        allowed = self.model.permits(subject, issue)
        try:
            permit = self.wf.guard(subject, needs=[strandline.approved(subject), strandline.resolved(issue)], by="bot")
        except strandline.ActionDeniedError:
            assert not allowed
            return
        assert allowed
        self.permit = (permit, subject, issue, self.model.versions(subject, issue), self.name)

    @precondition(lambda self: self.permit is not None and self.permit[4] == self.name)
    @rule(revoked=st.booleans())
    def use(self, revoked: bool) -> None:
        """It is used once, and only while the facts are those that it rests on (I20)."""
        if revoked:
            self.add((strandline.revoke(self.permit[1], "Not now."), "revoke", self.permit[1], ""))
        permit, subject, issue, versions, _ = self.permit
        self.permit = None
        stands = self.model.permits(subject, issue) and self.model.versions(subject, issue) == versions
        key = f"act-{permit.permit_id}"
        try:
            self.do(key, "well", probed=False, permit=permit)
        except strandline.ActionDeniedError:
            assert not stands
            assert self.world.happened[key] == 0
            _counted["permit void"] += 1
            return
        assert stands
        _counted["permit used"] += 1
        with pytest.raises(strandline.ActionDeniedError):
            self.wf.effect(f"{key}-again", subject, {}, lambda: pytest.fail("it ran"), permit=permit)
        self.catch_up()

    # ------------------------------------------------------------------------------------------ what always holds

    @invariant()
    def the_context_is_one_generation_and_its_tail(self) -> None:
        if self.name not in getattr(self, "models", {}) or not self.model.revision:
            return
        _counted["rules"] += 1
        self.steps += 1
        if self.steps % self.look_every:
            return
        context = self.wf.context(WHOLE)
        model = self.model
        assert (context.generation, context.watermark) == (model.generation, model.content.watermark)
        assert context.revision == model.revision
        assert [event.seq for event in events_of(context)] == model.tail()

    @invariant()
    def the_lineage_only_grows(self) -> None:
        if not self.model.revision or self.steps % self.look_every:
            return
        entries = self.wf.lineage()
        told = [(entry.lineage_seq, entry.kind, entry.op_key, entry.generation) for entry in entries]
        assert [seq for seq, *_ in told] == list(range(1, len(told) + 1))
        before = self.lineages.get(self.name, [])
        assert told[: len(before)] == before
        self.lineages[self.name] = told

    def teardown(self) -> None:
        if self.model.revision:
            for name in self.models:
                workflow = self.db.tenant(self.tenant).workflow(name)
                report, refused = workflow.verify(), conforms(workflow)
                assert report.ok, report.problems
                assert refused is None, refused
        if self.flight is not None:
            self.flight[0].close()
        self.close()

    def close(self) -> None:
        for db in self.opened:
            db.close()


def what_it_asks(case: strandline.Case) -> tuple[object, ...]:
    return case.kind, case.summary_no, case.revision, case.missing_ids, case.reason


def events_of(context: strandline.Context) -> list[strandline.SourceEvent]:
    return [part.event for part in context.parts if part.event is not None]


class OnPostgres(Lifecycle):
    """The same on PostgreSQL: an example is a tenant of its own, and a crash goes on through another pool.

    What a look finds wrong stays wrong, so that a look at every third step sees it, too, at half the price.
    """

    look_every = 3
    stores: ClassVar[list[strandline.Store]]
    shared_clock: ClassVar[VirtualClock]

    def new_clock(self) -> VirtualClock:
        self.shared_clock.jump_to(START_US)
        return self.shared_clock

    def new_tenant(self, number: int) -> str:
        return f"acme-{number}"

    def open(self) -> strandline.Strandline:
        number = next(self.names)
        store = self.stores[number % len(self.stores)]
        return strandline.Strandline(store, clock=self.clock, entropy=SeededEntropy(number))

    def close(self) -> None:
        """The next example takes the stores over."""


@pytest.mark.parametrize("shard", range(SHARDS))
def test_any_order_of_verbs_shows_what_the_model_says(shard: int, tmp_path) -> None:
    _folder["stores"] = str(tmp_path)
    check(Lifecycle, f"Lifecycle{shard}", EXAMPLES, RULES_MIN)


def test_any_order_of_verbs_shows_it_on_postgres(postgres_store_url: str) -> None:
    """It goes the way of SQLite's first shard, whose seed it has."""
    _folder["stores"] = ""
    OnPostgres.shared_clock = VirtualClock()
    opened = [strandline.open(postgres_store_url, clock=OnPostgres.shared_clock) for _ in range(POSTGRES_STORES)]
    OnPostgres.stores = [db.store for db in opened]
    check(OnPostgres, "Lifecycle0", POSTGRES_EXAMPLES, POSTGRES_RULES_MIN)
    for db in opened:
        db.close()


def check(machine: type[Lifecycle], name: str, examples: int, rules_min: int) -> None:
    _counted.clear()

    class Shard(machine):
        """A machine of its own name: a fixed seed is derived from it."""

    Shard.__qualname__ = Shard.__name__ = name
    run_state_machine_as_test(
        Shard,
        settings=settings(
            max_examples=examples,
            stateful_step_count=STEPS,
            deadline=None,
            derandomize=True,
            phases=(Phase.explicit, Phase.generate),  # to shrink takes minutes; the trace is told anyway
            suppress_health_check=list(HealthCheck),
        ),
    )
    assert _counted["rules"] >= rules_min
    assert not [what for what in HAPPENS if not _counted[what]], "a run in which this never happens would prove little"
