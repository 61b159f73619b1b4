"""One run of a schedule: processes in turn, faults, and the checks after each commit."""

from __future__ import annotations

import hashlib
from array import array
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Final

from strandline.errors import CorruptRecordError, OutcomeUnknownError, StoreUnavailableError, StrandlineError
from strandline.limits import LEASE_TTL_S
from strandline.model.ids import Scope
from strandline.testing.fakes import VirtualClock
from strandline.testing.simulator.baton import Crew
from strandline.testing.simulator.checker import Checker
from strandline.testing.simulator.choices import Choice, Drawn, Given, Place
from strandline.testing.simulator.ending import VERIFIED_EVERY, recover_all
from strandline.testing.simulator.faults import FAULT_WORDS, POINT_WORDS, Fault, Point, ProcessDeathError
from strandline.testing.simulator.history import BrokenInvariantError, Op, check_history
from strandline.testing.simulator.process import Process
from strandline.testing.simulator.schedule import VERBS, Schedule, Step
from strandline.testing.simulator.tearing import Tear
from strandline.testing.simulator.verbs import PLAYS, Play
from strandline.testing.simulator.world import Outside
from strandline.testing.simulator.worlds import world_of

TRIES_MAX: Final = 3  # of one step: after a crash, or where the store gave no answer
CROSSINGS_MAX: Final = 4_000  # of one run: one that has more goes round in circles
_JUMP_S: Final = 3_600.0
_TICK_S: Final = 0.000_001  # that each crossing takes: an entry of the lineage is told from another by its time, too
_VERB_NUMBERS: Final = {verb: number for number, verb in enumerate(VERBS)}
_UNANSWERED: Final = (OutcomeUnknownError, StoreUnavailableError)


@dataclass(frozen=True, slots=True)
class Violation:
    """An invariant that broke, or something that no program should be answered with."""

    law: str
    what: str


@dataclass(slots=True)
class Report:
    """What came of a run."""

    violation: Violation | None
    story: list[str]
    choices: dict[Place, Choice]
    crossings: int
    trace: bytes  # digest of who crossed what, and what went wrong there
    met: Counter[str] = field(default_factory=Counter)


class _StoppedError(BaseException):
    """The run is over: something broke elsewhere."""


class Simulation:
    """One run of a schedule. `told`: keep the story, which costs time."""

    def __init__(self, schedule: Schedule, choices: Drawn | Given, crew: Crew, *, told: bool = False) -> None:
        self.schedule = schedule
        self.clock = VirtualClock()
        self.outside = Outside()
        world = world_of(schedule.world)
        self.inner = world.store.copied()
        self.outside.happened.update(world.outside.happened)
        self.checker = Checker(self.inner, world.known)
        self.met: Counter[str] = Counter()
        self.ops: list[Op] = []
        self._choices = choices
        self._crew = crew
        self._told = told
        self._story: list[str] = []
        self._trace = array("L")
        self._violation: Violation | None = None
        self._running = list(range(len(schedule.actors)))
        self._steps = [0] * len(schedule.actors)  # the number of the step in which each actor is
        self._crossings = [0] * len(schedule.actors)  # in that step
        self._current: list[Op | None] = [None] * len(schedule.actors)

    def run(self) -> Report:
        """Run it to its end, or to what breaks."""
        for actor, _ in enumerate(self.schedule.actors):
            self._crew.seats[actor].task = partial(self._play, actor)
        if self._running:
            self._crew.start(0)
        if self._violation is None:
            self._guarded(self._finish)
        return Report(
            violation=self._violation,
            story=self._story,
            choices=self._choices.made,
            crossings=len(self._trace),
            trace=hashlib.blake2b(self._trace.tobytes(), digest_size=8).digest(),
            met=self.met,
        )

    # ------------------------------------------------------------------------------------------ crossings

    def cross(self, process: Process, point: Point) -> Fault:
        """Let the choice decide who goes on and what goes wrong. Return what the crossing itself must bring about."""
        actor = process.actor
        if self._violation is not None:
            raise _StoppedError
        others = [] if point is Point.COMMIT or len(self._running) < 2 else [n for n in self._running if n != actor]
        self.clock.advance(_TICK_S)
        crossing = self._crossings[actor]
        self._crossings[actor] = crossing + 1
        choice = self._choices.choose(Place(actor, self._steps[actor], crossing), point, others)
        fault = choice.fault
        op = self._current[actor]
        self._trace.append((((choice.turn or 0) * 4 + actor) * 16 + point) * 16 + fault + (_number(op) << 16))
        if len(self._trace) > CROSSINGS_MAX:
            raise BrokenInvariantError("I22", f"more than {CROSSINGS_MAX} crossings: it goes round in circles")
        if fault is not Fault.NONE:
            self.met[f"{fault.name.lower()} at {point.name.lower()}"] += 1
            if op is not None:
                self.met[f"{fault.name.lower()} in {op.step.verb}"] += 1
            self.tell(process, f"{FAULT_WORDS[fault]} at {POINT_WORDS[point]}")
            self._bring_about(fault)
        if choice.turn is not None and fault is not Fault.CRASH:
            if point is Point.HELD:
                self.met["stale read"] += 1
            self.tell(process, f"waits at {POINT_WORDS[point]}; p{choice.turn + 1} goes on")
            self._hand_over(actor, choice.turn)
            if self._violation is not None:
                raise _StoppedError
        return fault

    def _hand_over(self, actor: int, turn: int) -> None:
        seats = self._crew.seats
        seats[turn].wake()
        seats[actor].wait()

    def _bring_about(self, fault: Fault) -> None:
        if fault is Fault.JUMP_FORTH:
            self.clock.jump_to(self.clock.now_us() + round(_JUMP_S * 1_000_000))
        elif fault is Fault.JUMP_BACK:
            self.clock.jump_to(self.clock.now_us() - round(_JUMP_S * 1_000_000))
        elif fault is Fault.EXPIRE:
            self.clock.advance(LEASE_TTL_S + 1)

    def tear(self, process: Process) -> Tear:
        """Return what is torn in a transaction; the place of its crossing says so, whatever else is left out."""
        actor = process.actor
        op = self._current[actor]

        def read_torn(what: str) -> None:
            self.met["torn read"] += 1
            self.tell(process, what)
            if op is not None:
                op.torn = True

        place = f"{self.schedule.seed} {actor} {self._steps[actor]} {self._crossings[actor]}"
        return Tear(Random(place), read_torn)

    def committed(self, process: Process, scope: Scope) -> None:
        """Check what a commit left behind, before anybody goes on."""
        op = self._current[process.actor]
        changed = self.checker.committed(scope)
        if op is not None and changed:
            op.commits.append(self.checker.commits)
            op.made.extend(changed)
        if self._told:
            for change in changed:
                self.tell(process, f"commits {change.text}")

    # ------------------------------------------------------------------------------------------ processes

    def _play(self, actor: int) -> None:
        try:
            self._guarded(partial(self._live, actor))
        finally:
            self._running.remove(actor)
            if self._running:
                self._crew.seats[self._running[0]].wake()
            else:
                self._crew.end()

    def _guarded(self, run: object) -> None:
        """Run, and keep what breaks as the violation."""
        assert callable(run)
        try:
            run()
        except _StoppedError:
            pass
        except BrokenInvariantError as error:
            self._broke(error.law, error.what)
        except BaseException as error:  # noqa: BLE001  nothing else may come out of the library
            self._broke("unexpected", f"{type(error).__name__}: {error}")

    def _broke(self, law: str, what: str) -> None:
        if self._violation is None:
            self._violation = Violation(law, what)

    def _live(self, actor: int) -> None:
        life = 0
        process = Process(self, actor, life)
        for number, step in enumerate(self.schedule.actors[actor]):
            self._steps[actor], self._crossings[actor] = number, 0
            for tries in range(TRIES_MAX):
                op = Op(actor=actor, number=number, step=step, invoked=self.checker.commits)
                try:
                    again = self._try(process, op)
                except ProcessDeathError:
                    if self._violation is not None:
                        raise _StoppedError from None
                    op.lost = True
                    life += 1
                    process = Process(self, actor, life)
                    self.tell(process, "comes up in its place")
                    again = step.argument % 3 != 0
                finally:
                    self._current[actor] = None
                if not again or tries + 1 == TRIES_MAX:
                    break
                self.met["delivered again"] += 1

    def _try(self, process: Process, op: Op) -> bool:
        """Play a step once. Return whether to play it again: it was not answered."""
        self._current[process.actor] = op
        process.cross(Point.STEP)
        step = op.step
        self.met[step.verb] += 1
        op.invoked = self.checker.commits
        self.ops.append(op)
        self.tell(process, f"{step.verb} on {step.tenant}/{step.workflow} [{step.argument}]")
        try:
            op.answer = PLAYS[step.verb](Play(process, step))
        except CorruptRecordError as error:
            if not op.torn:
                raise BrokenInvariantError("I4", f"{step.verb} met damage where none was done: {error}") from error
            op.refused = type(error).__name__
            self.met["torn read found"] += 1
            self.tell(process, f"{step.verb} is refused: {op.refused}: {error}")
        except AssertionError as error:
            raise BrokenInvariantError("assertion", f"{step.verb} met what the engine rules out: {error}") from error
        except _UNANSWERED as error:
            op.lost = True
            self.tell(process, f"{step.verb} is not answered: {type(error).__name__}")
            return step.argument % 4 != 0
        except ConnectionError as error:
            self.tell(process, f"{step.verb} raised {error}")
        except StrandlineError as error:
            op.refused = type(error).__name__
            self.met[f"refused: {op.refused}"] += 1
            self.tell(process, f"{step.verb} is refused: {op.refused}: {error}")
        else:
            op.answered = self.checker.commits
            self.tell(process, f"{step.verb} is answered: {op.answer.text}")
            if op.answer.context is not None:
                self.checker.check_context(
                    Scope(tenant=step.tenant, workflow=step.workflow), op.answer.context, op.invoked
                )
        return False

    # ------------------------------------------------------------------------------------------ the end, the world

    def _finish(self) -> None:
        """A process that knows nothing recovers each workflow; the store is verified, and the history checked."""
        check_history(self.ops, self.checker)
        tell = self._story.append if self._told else _no_story
        verified = self.schedule.seed % VERIFIED_EVERY == 0 or self.met["torn read"] > 0
        recover_all(self.inner, self.clock, self.checker, self.schedule.seed, tell, verified=verified)

    def about_to_happen(self, process: Process, step: Step, key: str, permit: str | None) -> None:
        """An effect is asked for: its intent must be committed, and with it the use of its permit (I18, I20)."""
        self.checker.check_intent(Scope(tenant=step.tenant, workflow=step.workflow), key, permit)

    def happened(self, process: Process, key: str) -> None:
        """An effect happened."""
        self.tell(process, f"the effect {key} happens")
        self.met["effect happened"] += 1
        if self.outside.happened[key] > 1:
            raise BrokenInvariantError("I18", f"the effect {key!r} happened {self.outside.happened[key]} times")

    def tell(self, process: Process, what: str) -> None:
        """Add a line to the story."""
        if self._told:
            self._story.append(f"{process.name:<4} {what}")


def _no_story(_: str) -> None:
    """Keep no story: it costs time."""


def _number(op: Op | None) -> int:
    return 0 if op is None else _VERB_NUMBERS.get(op.step.verb, 0) + 1
