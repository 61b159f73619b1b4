"""The verbs that `cuts.py` cuts, each with the workflow that it is called on, and all that can be seen of a store."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import strandline
from strandline import DueKey, DueRun, StateValue, StateWrite
from strandline.engine.reading import read_log
from strandline.model.ids import Scope
from strandline.model.state import Part

TENANT: Final = "acme"
WORKFLOW: Final = "run"
BUDGET: Final = 400  # tokens: what is prepared exceeds it
WHOLE: Final = 10_000_000  # tokens: a budget in which every context fits
WHO: Final = {"by": "ann", "why": "it must be"}
_LOST: Final = "bucket-0080"  # the summary does not hold it
_ID: Final = re.compile(r"[0-9a-f]{12,}(\.\d+)?")  # of candidates, attempts, cases, permits: random, or drawn from them


@dataclass
class Stand:
    """What a verb is called on: a store, and the world outside."""

    db: strandline.Strandline
    runs: list[str] = field(default_factory=list)  # what was done outside, by effects

    @property
    def wf(self) -> strandline.Workflow:
        return self.db.tenant(TENANT).workflow(WORKFLOW)

    @property
    def states(self) -> object:
        return self.wf.states

    def ship(self) -> dict[str, object]:
        self.runs.append("shipped")
        return {"shipped": "box-77ab01"}

    def look(self) -> object:
        """Tell, as a probe, what was done outside."""
        done = {"shipped": "box-77ab01"}
        return strandline.EffectDone(done) if self.runs else strandline.EffectNeverHappened()


@dataclass(frozen=True)
class Verb:
    """One verb, or one way of it.

    Attributes:
        name: of the way; the part before the first `:` is the verb.
        call: calls it, and returns what its answer must be, also when it is repeated.
        prepare: makes what it is called on, after `_begin`.
        keyed: repeating it without a look is safe, whatever was raised.
        otherwise: what may be seen otherwise, where it was called again: another one tells what came of the first.
    """

    name: str
    call: Callable[[Stand], object]
    prepare: Callable[[Stand], object] = lambda stand: None
    keyed: bool = True
    otherwise: Sequence[str] = ()

    @property
    def verb(self) -> str:
        return self.name.partition(":")[0]


def _talk(turns: int, start: int = 1) -> list[strandline.NewEvent]:
    events = []
    for number in range(start, start + turns):
        said = f"Step {number}: look at /srv/site/{number}/plan.md and at the pump room, as it was inspected again."
        events.append(strandline.message("user", said, key=f"u{number}", actor="zoe"))
        events.append(strandline.message("assistant", f"Step {number} wrote bucket-{number:04x}.", key=f"a{number}"))
    return events


def quiet(request: strandline.SummaryRequest) -> str:
    """Summarize honestly and shortly."""
    return f"Work went on from event {request.from_seq}."


def begin(stand: Stand) -> None:
    """Make what every verb is called on: some talk, and one fact of each kind."""
    facts = [
        strandline.constraint("tone", "Be brief.", key="tone"),
        strandline.issue("leak", "The pump leaks.", key="leak"),
        strandline.approval("ship", "Yes, ship it.", granter="ben", key="yes"),
    ]
    stand.wf.append([*_talk(8), *facts])


# ---------------------------------------------------------------------------------------------- what is prepared


def _compacted(stand: Stand) -> None:
    assert stand.wf.compact(BUDGET, quiet).outcome == "activated"
    stand.wf.append(_talk(2, 20))


def _dropped(stand: Stand) -> None:
    buckets = ", ".join(f"bucket-{number:04x}" for number in range(100, 220))
    stand.wf.append(strandline.note(f"There were {buckets}.", key="many"))
    _compacted(stand)
    assert _LOST in {entry.ref for entry in stand.wf.manifest()}


def _twice_compacted(stand: Stand) -> None:
    _compacted(stand)
    stand.wf.append(_talk(8, 30))
    assert stand.wf.compact(BUDGET, quiet).outcome == "activated"


def _checkpointed(stand: Stand) -> None:
    _compacted(stand)
    stand.wf.checkpoint({"at": 3}, 3, basis=stand.wf.context(WHOLE))
    stand.wf.append(_talk(1, 40))


def _asked(stand: Stand) -> None:
    stand.wf.compact_later(BUDGET)


def _case(stand: Stand) -> None:
    _dropped(stand)
    try:
        stand.wf.recover([_LOST])
    except strandline.SummaryReconciliationError:
        return
    raise AssertionError("nothing is missing")


def _viewed(stand: Stand) -> None:
    stand.wf.define_view("publisher", audiences={"release"}, budget=8_000)


def _saved(stand: Stand) -> None:
    stand.states.save("s1", {"messages": _list(3)}, run="r1")
    stand.states.save("s2", {"messages": _list(4)}, parent="s1", run="r2")
    stand.states.write("s2", [_write(0)])


def _searched(stand: Stand) -> None:
    stand.wf.search("pump")
    stand.wf.append(_talk(3, 50))


def _held(stand: Stand) -> None:
    stand.wf.hold("court-12", **WHO)


def _failed_effect(stand: Stand) -> None:
    def run() -> object:
        raise ConnectionError("the line went dead")

    try:
        stand.wf.effect("ship-1", "ship", {"to": "Ulm"}, run)
    except ConnectionError:
        return
    raise AssertionError("it did not fail")


def _list(count: int) -> StateValue:
    return StateValue(tuple(Part(kind="text", data=f"message {at}".encode()) for at in range(count)), many=True)


def _write(index: int) -> StateWrite:
    return StateWrite(task="t", index=index, channel="c", path="~", value=_list(1))


# ---------------------------------------------------------------------------------------------- the calls


def _append(*events: strandline.NewEvent, **more: object) -> Callable[[Stand], object]:
    def call(stand: Stand) -> object:
        appended = stand.wf.append(events if len(events) > 1 else events[0], **more)
        return appended.seqs, appended.revision

    return call


def _compact(stand: Stand) -> object:
    outcome = stand.wf.compact(BUDGET, quiet)
    if outcome.outcome == "nothing_to_do":  # it is compacted already: the call before did it
        view = stand.wf.basis()
        return "activated", view.generation
    return outcome.outcome.value, outcome.generation


def _later(stand: Stand) -> object:
    return stand.wf.compact_later(BUDGET).view


def _run_due(stand: Stand) -> object:
    key = DueKey(tenant=TENANT, workflow=WORKFLOW, view="main")
    told = stand.db.run_due(key, quiet, worker="w1")
    done = told.result.value == "done" or (told.result.value == "not_due" and not stand.wf.due()[0].due_us)
    if not done:
        raise strandline.StoreUnavailableError(f"not done: {told.result.value}: {told.reason}")
    return "done"


def _worker(stand: Stand) -> object:
    errors: list[BaseException] = []

    def stop_at_an_error(_: DueKey | None, told: DueRun | BaseException) -> None:
        if isinstance(told, BaseException):
            errors.append(told)
            worker.stop()  # what is cut stays cut until this call has ended

    worker = stand.db.worker(quiet, name="w1", told=stop_at_an_error)
    worker.run(once=True)
    if errors:
        raise errors[0]
    return _run_due(stand)


def _checkpoint(stand: Stand) -> object:
    made = stand.wf.checkpoint({"at": 5}, 5, basis=stand.wf.context(WHOLE))
    return made.turn, made.revision


def _recover(**more: object) -> Callable[[Stand], object]:
    def call(stand: Stand) -> object:
        recovery = stand.wf.recover(budget=WHOLE, **more)
        return recovery.kind.value, recovery.turn, recovery.state, recovery.generation

    return call


def _recover_refused(stand: Stand) -> object:
    try:
        stand.wf.recover([_LOST])
    except strandline.SummaryReconciliationError as error:
        return error.reason, error.missing_ref
    raise AssertionError("nothing is missing")


def _reconcile(stand: Stand) -> object:
    (case,) = stand.wf.cases(include_answered=True)
    answered = stand.wf.reconcile(case, strandline.ReplayFromExact(), **WHO)
    return answered.state.value, answered.answer


def _rewind(stand: Stand) -> object:
    rewound = stand.wf.rewind(12, **WHO)
    return rewound.branch, rewound.revision


def _revert(stand: Stand) -> object:
    reverted = stand.wf.revert(1, **WHO)
    return reverted.generation, reverted.watermark, reverted.left


def _regression(stand: Stand) -> object:
    return stand.wf.report_regression(1, **WHO).kind.value


def _fork(stand: Stand) -> object:
    forked = stand.wf.fork(12, "aside", **WHO)
    return forked.workflow, forked.revision


def _effect(**more: object) -> Callable[[Stand], object]:
    def call(stand: Stand) -> object:
        return stand.wf.effect("ship-1", "ship", {"to": "Ulm"}, stand.ship, stand.look, **more).result

    return call


def _permitted(stand: Stand) -> object:
    granted = [permit for permit in stand.wf.permits() if permit.state.value != "denied"]
    permit = granted[0] if granted else stand.wf.guard("ship", [strandline.approved("ship")])
    try:
        return _ship(stand, permit)
    except strandline.ActionDeniedError:
        if permit.consumed_by != "ship-1":
            raise
        return _ship(stand, stand.wf.guard("ship", [strandline.approved("ship")]))  # used up by what never happened


def _ship(stand: Stand, permit: strandline.Permit) -> object:
    return stand.wf.effect("ship-1", "ship", {"to": "Ulm"}, stand.ship, stand.look, permit=permit.permit_id).result


def _guard(stand: Stand) -> object:
    return stand.wf.guard("ship", [strandline.approved("ship")]).state.value


def _denied(stand: Stand) -> object:
    try:
        stand.wf.guard("publish", [strandline.resolved("leak")])
    except strandline.ActionDeniedError as error:
        return error.reasons
    raise AssertionError("it was permitted")


def _define(**more: object) -> Callable[[Stand], object]:
    def call(stand: Stand) -> object:
        view = stand.wf.define_view("publisher", **more)
        return view.name, view.audiences, view.budget

    return call


def _erase(stand: Stand) -> object:
    stand.wf.erase(events=[1, 2], **WHO)
    return [event.seq for event in stand.wf.events(1, 2)]


def _found(stand: Stand) -> object:
    appended = stand.wf.confirm_constraint(stand.wf.found_constraints()[0].name, actor="zoe")
    return appended.revision


_TOLD: Final = (
    "revision",
    "log",
    "context",
    "cases",
    "lineage",
    "attempts",
)  # the probe tells the outcome in events of its own
VERBS: Final = (
    Verb("append", _append(strandline.note("box-77ab01 stands at the gate", key="n1"))),
    Verb("append:without a key", _append(strandline.note("box-77ab01 stands at the gate")), keyed=False),
    Verb("append:at a revision", _append(strandline.note("box-77ab01 is gone", key="n1"), expected_revision=19)),
    Verb("append batch", _append(*_talk(2, 60))),
    Verb("append batch:some are there", _append(*_talk(3, 7))),
    Verb("append batch:without keys", _append(strandline.note("one"), strandline.note("two")), keyed=False),
    Verb("compact", _compact),
    Verb("compact:on a summary", _compact, lambda stand: (_compacted(stand), stand.wf.append(_talk(8, 30)))),
    Verb("compact_later", _later),
    Verb("run_due", _run_due, _asked),
    Verb("run_due:by a worker", _worker, _asked),
    Verb("checkpoint", _checkpoint, _compacted, keyed=False),
    Verb("recover", _recover(), _checkpointed, keyed=False),
    Verb("recover:replay", _recover(), _compacted, keyed=False),
    Verb("recover:refused", _recover_refused, _dropped),
    Verb("reconcile", _reconcile, _case),
    Verb("report_regression", _regression, _compacted),
    Verb("rewind", _rewind, _compacted, keyed=False),
    Verb("revert", _revert, _twice_compacted, keyed=False),
    Verb("fork", _fork, _compacted, keyed=False),
    Verb("effect", _effect(), otherwise=_TOLD),
    Verb("effect:of unknown outcome", _effect(), _failed_effect, otherwise=_TOLD),
    Verb("effect:with a permit", _permitted, otherwise=(*_TOLD, "permits")),
    Verb("guard", _guard, keyed=False),
    Verb("guard:denied", _denied, keyed=False),
    Verb("define_view", _define(audiences={"release"}, budget=8_000)),
    Verb("define_view:other audiences", _define(audiences={"press"}), _viewed),
    Verb("erase", _erase, _compacted),
    Verb("hold", lambda stand: stand.wf.hold("court-12", **WHO).name, keyed=False),
    Verb("hold:lifted", lambda stand: stand.wf.lift_hold("court-12", **WHO).name, _held, keyed=False),
    Verb("read_through", lambda stand: stand.wf.read_through("billing", 5).seq),
    Verb("states.save", lambda stand: stand.states.save("s3", {"messages": _list(5)}, parent="s2").position, _saved),
    Verb("states.write", lambda stand: stand.states.write("s2", [_write(1)]), _saved),
    Verb("states.delete", lambda stand: (stand.states.delete(), None)[1], _saved),
    Verb("states.prune", lambda stand: (stand.states.prune(), None)[1], _saved),
    Verb("states.copy_to", lambda stand: (stand.states.copy_to("copy"), None)[1], _saved),
    Verb("search", lambda stand: len(stand.wf.search("pump"))),
    Verb("search:what came since", lambda stand: len(stand.wf.search("pump")), _searched),
)


# ---------------------------------------------------------------------------------------------- what can be seen

Memory = dict[str, object]


def see(db: strandline.Strandline) -> Memory:
    """Return all that can be seen of the tenant, without ids, salts, times, fences and their count."""
    tenant = db.tenant(TENANT)
    seen: Memory = {}
    for name in sorted({*tenant.workflows(), *tenant.state_workflows()}):
        seen |= {f"{name}: {what}": value for what, value in _see_workflow(db, tenant.workflow(name)).items()}
    return seen


def _see_workflow(db: strandline.Strandline, wf: strandline.Workflow) -> Memory:
    context = wf.context(WHOLE)
    with db.store.read(Scope(tenant=TENANT, workflow=wf.name)) as tx:
        log = [
            (event.seq, event.kind.value, event.key, event.body, event.actor, event.audience)
            for event in read_log(tx, tx.log.head().fork_seq + 1, tx.log.head().revision, wf.name)
        ]
        checkpoints = [(made.turn, made.revision, made.name, made.state) for made in tx.checkpoints.all()]
        facts = sorted((fact.key.kind.value, fact.key.subject, fact.source_seq) for fact in tx.register.as_of(2**62))
    return {
        "revision": context.revision,
        "log": log,
        "facts": facts,
        "pointer": (context.generation, context.watermark),
        "context": [(part.kind.value, part.from_seq, part.through_seq, _plain(part.text)) for part in context.parts],
        "manifest": [(entry.ref, entry.last_seq, entry.generation_dropped) for entry in wf.manifest()],
        "views": [(view.name, view.audiences, view.budget) for view in wf.views()],
        "lineage": [
            (entry.kind.value, entry.view, entry.generation, entry.revision, entry.name, entry.by)
            for entry in wf.lineage()
            if entry.kind != "fence"
        ],
        "checkpoints": checkpoints,
        "cases": [
            (case.kind.value, case.state.value, case.generation, case.answer, case.missing_refs)
            for case in wf.cases(include_answered=True)
        ],
        "effects": [(effect.key, effect.state.value) for effect in wf.effects()],
        "attempts": [effect.attempt for effect in wf.effects()],
        "permits": [(permit.action, permit.state.value, permit.consumed_by) for permit in wf.permits()],
        "due": [(due.view, due.budget, due.due_us is None) for due in wf.due()],
        "holds": [hold.name for hold in wf.holds()],
        "readers": [(reader.name, reader.seq) for reader in wf.readers()],
        "states": [
            (state.state_id, state.position, state.parent, state.values, state.writes) for state in wf.states.list()
        ],
    }


def _plain(text: str) -> str:
    return _ID.sub("ID", text)


def differences(seen: Memory, other: Memory) -> str:
    """Name in what two memories differ."""
    names = [name for name in {**seen, **other} if seen.get(name) != other.get(name)]
    return ", ".join(names) or "nothing"
