"""What one run found out: everything that the terminal and the page show was measured, and stands here."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from strandline import CompactionOutcome, SummaryReconciliationError


@dataclass(frozen=True, slots=True)
class Check:
    """A claim, and whether it held in this run."""

    claim: str
    held: bool


@dataclass(frozen=True, slots=True)
class Bar:
    """A size in tokens, to be drawn beside others."""

    label: str
    tokens: int


@dataclass(slots=True)
class Step:
    """One step of the story."""

    number: int
    title: str
    seconds: float = 0.0
    said: list[str] = field(default_factory=list)
    bars: list[Bar] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)

    def say(self, text: str) -> None:
        """Add a sentence."""
        self.said.append(text)

    def check(self, claim: str, held: bool) -> None:
        """Add a claim and whether it held."""
        self.checks.append(Check(claim, held))


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The transcript."""

    path: Path
    bundled: bool
    size_bytes: int
    lines: int
    part: str  # by which it is cut: line, or in one JSON document message or conversation
    parts: int
    first_parts: int  # how many of them the first import gets


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEvent:
    """An event as the log holds it, its text cut for the page only."""

    seq: int
    kind: str
    actor: str
    tool: str | None
    text: str
    chars: int  # of the whole text


@dataclass(frozen=True, slots=True, kw_only=True)
class Killed:
    """The attempt that was killed while it drafted."""

    pid: int
    signal: int
    from_seq: int
    through_seq: int
    written_bytes: int
    draft_bytes: int
    marker: str
    hits: int  # of the marker in the store
    control_hits: int  # of a text that must be there: proof that the search finds


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Recovery said no, and where the log still has what was asked for."""

    ref: str
    error: SummaryReconciliationError
    seq: int
    kind: str
    actor: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedRow:
    """One line of the drop manifest."""

    ref: str
    last_seq: int
    generation: int
    reason: str
    recalled: bool | None  # None: not asked, there were too many


@dataclass(frozen=True, slots=True, kw_only=True)
class LineageRow:
    """One entry of the lineage, in words."""

    seq: int
    kind: str
    generation: int | None
    revision: int
    detail: str


@dataclass(slots=True)
class Story:
    """One run, as it is told."""

    source: Source
    counter: str = ""
    format: str = ""
    tokens: int = 0  # of the whole transcript
    events: int = 0
    budget: int = 0
    log_digest: str = ""
    steps: list[Step] = field(default_factory=list)
    generations: list[CompactionOutcome] = field(default_factory=list)
    killed: Killed | None = None
    refusal: Refusal | None = None
    dropped: list[DroppedRow] = field(default_factory=list)
    lineage: list[LineageRow] = field(default_factory=list)
    log: list[LogEvent] = field(default_factory=list)
    told: Callable[[Step], None] = lambda _step: None
    begun: float = field(default_factory=time.perf_counter)
    seconds: float = 0.0

    @contextmanager
    def step(self, title: str) -> Iterator[Step]:
        """Measure a step, and tell it when it is done."""
        step = Step(len(self.steps) + 1, title)
        begun = time.perf_counter()
        yield step
        step.seconds = time.perf_counter() - begun
        self.steps.append(step)
        self.seconds = time.perf_counter() - self.begun
        self.told(step)

    @property
    def checks(self) -> list[Check]:
        """Every claim of the run."""
        return [check for step in self.steps for check in step.checks]

    @property
    def ok(self) -> bool:
        """Whether every claim held."""
        return all(check.held for check in self.checks)
