"""The verbs of the simulation: each calls the client as a program would, and says what it was answered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from strandline import KeyedProbe, Workflow
from strandline.engine.compact import compact
from strandline.engine.read_context import Context
from strandline.engine.run_due import DueOrder
from strandline.engine.run_due import run_due as run_due_verb
from strandline.model import constructors as make
from strandline.model.case import Abandon, AcceptDivergence, CaseKind, ReplayFromExact
from strandline.model.due import DueKey
from strandline.model.event import Basis
from strandline.model.ids import Scope
from strandline.model.needs import approved
from strandline.model.outcome import CompactionResult
from strandline.testing.simulator.arguments import SUBJECTS, VIEW, VIEW_AUDIENCES, batch_of, paths_of, said
from strandline.testing.simulator.faults import Fault, Point
from strandline.testing.simulator.process import Process, SimulatedSummarizer
from strandline.testing.simulator.schedule import Step

WHOLE: Final = 10_000_000  # tokens: a budget in which every context fits
BY: Final = "ops"
WHY: Final = "simulated"
_BUDGETS: Final = (180, 240, 320)
_SCRIPTS: Final = (
    (), (), (), (), ("late",), ("late",), ("cut",), ("liar",), ("silent",), ("liar", "cut"),
)  # fmt: skip
_EFFECTS: Final = ("pay", "mail", "bucket")


@dataclass(frozen=True, slots=True)
class Answer:
    """What a verb answered, as far as the history is checked by it."""

    text: str
    keys: tuple[tuple[str, int], ...] = ()  # appended under a key: where it stands
    seqs: tuple[int, ...] = ()
    added: int = 0
    lineage_seq: int | None = None  # of what this verb recorded
    context: Context | None = None


@dataclass(frozen=True, slots=True)
class Play:
    """One verb that is played by a process."""

    process: Process
    step: Step

    @property
    def wf(self) -> Workflow:
        """The workflow that the step is about."""
        return self.process.workflow(self.step.tenant, self.step.workflow)

    @property
    def place(self) -> str:
        """Where it is, as a key of what a process remembers."""
        return f"{self.step.tenant}/{self.step.workflow}"

    @property
    def told(self) -> Basis:
        """Where the workflow is now, as somebody told the process: what it does with that may come too late."""
        scope = Scope(tenant=self.step.tenant, workflow=self.step.workflow)
        return self.process.simulation.checker.basis(scope)

    def pick(self, *options: object, of: int = 1) -> object:
        """Pick by the step's argument; `of` parts the picks of one step from each other."""
        return options[self.step.argument // of % len(options)]


def append(play: Play) -> Answer:
    """Append a batch, now and then only if nobody else wrote meanwhile."""
    batch, number = batch_of(play.step.argument), play.step.argument
    memory = play.process.memory
    expected = memory.revision.get(play.place) if number % 5 == 0 else None
    basis = memory.basis.get(play.place) if number % 11 == 0 else None
    done = play.wf.append(batch, expected_revision=expected, basis=basis)
    memory.revision[play.place] = done.revision
    keys = tuple((event.key, seq) for event, seq in zip(batch, done.seqs, strict=True) if event.key is not None)
    return Answer(f"seqs {list(done.seqs)}, {done.added} new", keys=keys, seqs=done.seqs, added=done.added)


def revoke(play: Play) -> Answer:
    """Revoke an approval."""
    done = play.wf.append(make.revoke(str(play.pick(*SUBJECTS, of=3)), "Not now.", actor="alice"))
    return Answer(f"seq {done.seq}", seqs=done.seqs, added=1)


def run_compact(play: Play) -> Answer:
    """Compact, by a summarizer that does what its script says."""
    wf, number = play.wf, play.step.argument
    summarizer = SimulatedSummarizer(play.process, _SCRIPTS[number // 3 % len(_SCRIPTS)])
    order = wf._order(_BUDGETS[number % 3], summarizer, strict=number % 9 == 0, fallback=number % 4 == 0)
    out = play.process.drive(compact(wf._env, replace(order, deadline_s=None)))
    activated = out.outcome is CompactionResult.ACTIVATED
    text = f"{out.outcome.value}, generation {out.generation}, watermark {out.watermark}"
    return Answer(text, lineage_seq=out.lineage_seq if activated else None)


def compact_later(play: Play) -> Answer:
    """Ask for a compaction in the background."""
    row = play.wf.compact_later(_BUDGETS[play.step.argument % 3])
    return Answer(f"due at {row.due_us}")


def run_due(play: Play) -> Answer:
    """Run what is due, as a worker whose message may be late or twice."""
    process, step = play.process, play.step
    scope = Scope(tenant=step.tenant, workflow=step.workflow)
    key = DueKey(tenant=step.tenant, workflow=step.workflow, view="main") if step.argument % 2 else None
    swept = process.db.sweep() if key is None else []
    if key is None:
        key = next((found for found in swept if found.scope == scope), None)
    if key is None:
        return Answer("nothing is due")
    summarizer = SimulatedSummarizer(process, _SCRIPTS[step.argument // 3 % len(_SCRIPTS)])
    order = DueOrder(key=key, worker=process.name, summarizer=summarizer, deadline_s=None)
    done = process.drive(run_due_verb(process.db._environment(scope), order))
    return Answer(done.result.value)


def context(play: Play) -> Answer:
    """Read a context, by half from what the process keeps of it, and remember it as the basis of what comes."""
    narrow, memory = play.step.argument % 2 == 1, play.process.memory
    wf = play.process.workflow(play.step.tenant, play.step.workflow, VIEW) if narrow else play.wf
    if play.step.argument % 4 < 2:
        got = wf.context(WHOLE)
    else:
        got = memory.kept.setdefault((play.place, wf.view_name), wf.keep_context(WHOLE)).read()
    if not narrow:
        memory.basis[play.place] = got.basis
    return Answer(f"{got.view}: generation {got.generation}, revision {got.revision}", context=got)


def checkpoint(play: Play) -> Answer:
    """Keep a state: one that was made from a context, or one that needs none."""
    number, memory = play.step.argument, play.process.memory
    if number % 4 == 0:
        made = play.wf.checkpoint({"number": number}, number % 100, context_free=True)
    else:
        basis = memory.basis.get(play.place) or play.told
        made = play.wf.checkpoint({"number": number}, number % 100, basis=basis)
    return Answer(f"lineage {made.lineage_seq}", lineage_seq=made.lineage_seq)


def recover(play: Play) -> Answer:
    """Recover without a need."""
    return _recover(play, [])


def recover_needs(play: Play) -> Answer:
    """Recover with a need that the summary may have dropped."""
    number = play.step.argument % 7 + 1
    asked = play.process.simulation.schedule.world == "asked"
    return _recover(play, [paths_of(number)[-1] if asked else f"/srv/out/{number:04x}/report.json"])


def _recover(play: Play, needs: list[str]) -> Answer:
    got = play.wf.recover(needs, budget=WHOLE)
    play.process.memory.basis[play.place] = got.context.basis
    text = f"{got.kind.value}, lineage {got.lineage_seq}, generation {got.generation}"
    return Answer(text, lineage_seq=got.lineage_seq, context=got.context)


def rewind(play: Play) -> Answer:
    """Go back to an earlier event."""
    revision = play.told.revision
    done = play.wf.rewind(max(0, revision - 1 - play.step.argument % 5), by=BY, why=WHY)
    return Answer(f"to {done.to_revision}, lineage {done.lineage_seq}", lineage_seq=done.lineage_seq)


def revert(play: Play) -> Answer:
    """Go back to an earlier generation."""
    generation = play.told.generation
    done = play.wf.revert(max(0, generation - 1 - play.step.argument % 2), by=BY, why=WHY)
    return Answer(f"generation {done.generation}", lineage_seq=done.lineage_seq)


def fork(play: Play) -> Answer:
    """Begin another workflow from an earlier event."""
    revision = play.told.revision
    name = f"fork{play.step.argument % 3}"
    done = play.wf.fork(max(1, revision - play.step.argument % 3), name, by=BY, why=WHY)
    return Answer(f"{name} at {done.revision}")


def reconcile(play: Play) -> Answer:
    """Answer the oldest open case."""
    wf, number = play.wf, play.step.argument
    cases = wf.cases()
    if not cases:
        return Answer("no case is open")
    case = cases[number % len(cases)]
    if case.kind is CaseKind.EFFECT_UNKNOWN:
        outside = play.process.simulation.outside
        answer: object = outside.look(f"{play.step.tenant}/{case.subject}", knows=True)
        if number % 3 == 0:
            answer = Abandon()
    elif case.kind is CaseKind.MISSING_DEPENDENCY:
        exact = ReplayFromExact()
        other = AcceptDivergence(case.missing_refs[0] if case.missing_refs else "-", said(1).split()[3])
        answer = (exact, exact, other, Abandon())[number % 4]
    else:
        answer = Abandon()
    done = wf.reconcile(case.case_id, answer, by=BY, why=WHY)  # type: ignore[arg-type]
    return Answer(f"{type(answer).__name__} to {case.kind.value}", lineage_seq=done.answered_seq)


def effect(play: Play) -> Answer:
    """Ask for an effect that others ask for, too."""
    return _effect(play, _EFFECTS[play.step.argument % len(_EFFECTS)], {"to": "a"})


def effect_twin(play: Play) -> Answer:
    """Ask for the same effect as others under another key: in other words."""
    key = _EFFECTS[play.step.argument % len(_EFFECTS)]
    return _effect(play, f"{key}-{play.process.actor}", {"to": "a"}, tool=key)


def effect_permitted(play: Play) -> Answer:
    """Do what a permit allows."""
    permit = play.process.memory.permit.get(play.place)
    if permit is None:
        return Answer("it has no permit")
    return _effect(play, f"act-{play.process.actor}-{play.step.argument % 4}", {}, tool="release", permit=permit)


def _effect(play: Play, key: str, args: dict[str, str], tool: str | None = None, permit: str | None = None) -> Answer:
    process, number = play.process, play.step.argument
    simulation = process.simulation
    outside = simulation.outside
    name = f"{play.step.tenant}/{key}"  # a tenant's forks share its effects
    promises = outside.promised[name]

    def run() -> dict[str, str]:
        simulation.about_to_happen(process, play.step, key, permit)
        if process.cross(Point.RUN) is Fault.BROKEN:
            raise ConnectionError("it was not reached")
        result = outside.happen(name, promises)
        simulation.happened(process, name)
        if process.cross(Point.HAPPENED) is Fault.BROKEN:
            raise ConnectionError("the answer was lost")
        return result

    def look(asked: str) -> object:
        nonlocal promises
        if process.cross(Point.PROBE) is Fault.BROKEN:
            raise ConnectionError("it was not reached")
        answer = outside.look(f"{play.step.tenant}/{asked}", knows=number % 5 != 0)
        promises = outside.promised[name]
        return answer

    probe = (None, lambda: look(key), KeyedProbe(look), KeyedProbe(look))[number % 4]  # without, of its own key, of any
    done = play.wf.effect(key, tool or key, args, run, probe, permit=permit)
    return Answer(f"{key}: {done.kind.value}")


def guard(play: Play) -> Answer:
    """Ask for a permit, now and then after an approval."""
    wf = play.wf
    if play.step.argument % 3 == 0:
        wf.append(make.approval("release", "Go.", granter="alice", single_use=play.step.argument % 2 == 0))
    permit = wf.guard("release", needs=[approved("release")], by="bot")
    play.process.memory.permit[play.place] = permit.permit_id
    return Answer("granted")


def erase(play: Play) -> Answer:
    """Erase an event, or whatever holds a reference."""
    wf, number = play.wf, play.step.argument
    if number % 2:
        done = wf.erase(events=[number % 6 + 1], scan=False, by=BY, why=WHY)
    else:
        done = wf.erase(refs=[f"/srv/out/{number % 6 + 1:04x}/report.json"], scan=False, by=BY, why=WHY)
    return Answer(f"events {list(done.seqs)}" if hasattr(done, "seqs") else "erased")


def define_view(play: Play) -> Answer:
    """Make the narrow view, or give it other audiences."""
    audiences = VIEW_AUDIENCES[: play.step.argument % 3]
    view = play.wf.define_view(VIEW, audiences=audiences, budget=WHOLE)
    return Answer(f"{VIEW} reads {list(audiences)}, generation {view.generation}")


def compact_narrow(play: Play) -> Answer:
    """Compact the narrow view."""
    wf = play.process.workflow(play.step.tenant, play.step.workflow, VIEW)
    order = wf._order(_BUDGETS[play.step.argument % 3], SimulatedSummarizer(play.process, ()))
    out = play.process.drive(compact(wf._env, replace(order, deadline_s=None)))
    activated = out.outcome is CompactionResult.ACTIVATED
    return Answer(out.outcome.value, lineage_seq=out.lineage_seq if activated else None)


def nothing(_: Play) -> Answer:
    """Do nothing: what a verb becomes that a shrunk run can do without."""
    return Answer("nothing")


PLAYS: Final[dict[str, Callable[[Play], Answer]]] = {
    "append": append,
    "checkpoint": checkpoint,
    "compact": run_compact,
    "compact_later": compact_later,
    "compact_narrow": compact_narrow,
    "context": context,
    "define_view": define_view,
    "effect": effect,
    "effect_permitted": effect_permitted,
    "effect_twin": effect_twin,
    "erase": erase,
    "fork": fork,
    "guard": guard,
    "reconcile": reconcile,
    "nothing": nothing,
    "recover": recover,
    "recover_needs": recover_needs,
    "revert": revert,
    "revoke": revoke,
    "rewind": rewind,
    "run_due": run_due,
}
