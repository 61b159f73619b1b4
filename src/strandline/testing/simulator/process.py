"""A simulated process: its handle on the store, its clock, and its death."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from strandline import KeptContext, Strandline, Workflow
from strandline.engine.flow import Sleep, Summarize, Verb, drive, summarize
from strandline.errors import TransientSummarizerError
from strandline.limits import LEASE_TTL_S
from strandline.model.candidate import Draft
from strandline.model.event import Basis
from strandline.model.ids import Scope
from strandline.ports import SummaryRequest
from strandline.stores.memory import MemoryStore
from strandline.testing.fakes import SeededEntropy
from strandline.testing.simulator.activation import CUT, LIE
from strandline.testing.simulator.faults import Fault, Point, ProcessDeathError
from strandline.testing.simulator.store import SimulatedStore
from strandline.testing.simulator.tearing import Tear

if TYPE_CHECKING:
    from strandline.testing.simulator.simulation import Simulation

T = TypeVar("T")


_PROCESSES_PER_SEED = 64


class ProcessClock:
    """The clock that all processes share; who sleeps lets others go on."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._clock = process.simulation.clock

    def now_us(self) -> int:
        """Return the wall-clock time."""
        return self._clock.now_us()

    def monotonic_s(self) -> float:
        """Return the seconds that went by."""
        return self._clock.monotonic_s()

    def sleep_s(self, seconds: float) -> None:
        """Let others go on, then the time go by."""
        self._process.cross(Point.SLEEP)
        self._clock.advance(seconds)


@dataclass(slots=True)
class Memory:
    """What a process holds in its memory: it is gone with it."""

    basis: dict[str, Basis] = field(default_factory=dict)
    revision: dict[str, int] = field(default_factory=dict)
    permit: dict[str, str] = field(default_factory=dict)
    kept: dict[tuple[str, str], KeptContext] = field(default_factory=dict)  # by place and view


class Process:
    """One life of an actor. After a crash the actor goes on as another process."""

    def __init__(self, simulation: Simulation, actor: int, life: int) -> None:
        self.simulation = simulation
        self.actor = actor
        self.name = f"p{actor + 1}" + "'" * life
        self.dead = False
        self.memory = Memory()
        self.clock = ProcessClock(self)
        number = simulation.schedule.seed * _PROCESSES_PER_SEED + actor * 8 + life
        self.db = Strandline(
            SimulatedStore(simulation.inner, self),
            clock=self.clock,
            entropy=SeededEntropy(number),
        )

    def workflow(self, tenant: str, workflow: str, view: str = "main") -> Workflow:
        """Return a workflow through this process' handle."""
        opened = self.db.tenant(tenant).workflow(workflow)
        return opened if view == "main" else opened.view(view)

    def cross(self, point: Point) -> Fault:
        """As `Crossing.cross`."""
        if self.dead:
            raise ProcessDeathError
        fault = self.simulation.cross(self, point)
        if fault is Fault.CRASH:
            self.dead = True
            raise ProcessDeathError
        return fault

    def tear(self) -> Tear:
        """As `Crossing.tear`."""
        return self.simulation.tear(self)

    def committed(self, scope: Scope, inner: MemoryStore) -> None:
        """As `Crossing.committed`."""
        self.simulation.committed(self, scope)

    def drive(self, verb: Verb[T]) -> T:
        """Drive a verb as `engine.flow.run` does, but for deadlines: no thread is needed where time is virtual."""
        return drive(verb, self._wait)

    def _wait(self, wait: Any) -> Draft | None:  # noqa: ANN401  what a verb yields
        if isinstance(wait, Sleep):
            self.clock.sleep_s(wait.seconds)
            return None
        assert isinstance(wait, Summarize)
        return summarize(wait.summarizer, wait.request)


class SimulatedSummarizer:
    """Drafts as it is told to: honestly, cut off, with a lie, not at all, or long after its lease has ended."""

    name = "simulated"
    version = "1"
    window_tokens: int | None = None

    def __init__(self, process: Process, script: tuple[str, ...]) -> None:
        self._process = process
        self._script = script
        self._asked = 0

    def summarize(self, request: SummaryRequest) -> Draft:
        """Take the next step of the script; after its end it is honest."""
        step = self._script[self._asked] if self._asked < len(self._script) else "honest"
        self._asked += 1
        simulation = self._process.simulation
        simulation.tell(self._process, f"the summarizer of {request.from_seq}..{request.through_seq} is {step}")
        if self._process.cross(Point.DRAFT) is Fault.BROKEN:
            raise ConnectionError("the summarizer's connection broke")
        if step == "late":
            simulation.clock.advance(LEASE_TTL_S + 1)
            self._process.cross(Point.DRAFT)
        if step == "silent":
            raise TransientSummarizerError("no answer")
        if step == "cut":
            return Draft(text=CUT, finish="length")
        if step == "liar":
            return Draft(text=f"Everything moved to {LIE} by itself.")
        return Draft(text=f"Work went on from event {request.from_seq}.")
