"""Run schedules one after the other, count what they met, and tell of each that broke an invariant."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from strandline.testing.simulator.baton import Crew
from strandline.testing.simulator.choices import Drawn
from strandline.testing.simulator.schedule import ACTORS_MAX, Schedule, draw_schedule
from strandline.testing.simulator.shrink import Shrinking
from strandline.testing.simulator.simulation import Report, Simulation

COMMAND: Final = "python -m strandline.testing.simulator --seed {seed} --count 1"
TOLD_MAX: Final = 5  # violations of one run that are shrunk and told; more are counted
_COLLECTED_EVERY: Final = 500  # schedules

Progress = Callable[[int], None]


@dataclass(slots=True)
class Tally:
    """What a range of seeds came to."""

    count: int = 0
    crossings: int = 0
    violations: int = 0
    stories: list[str] = field(default_factory=list)
    traces: set[bytes] = field(default_factory=set)  # one for each different interleaving
    met: Counter[str] = field(default_factory=Counter)

    def add(self, other: Tally) -> None:
        """Take the tally of another range over."""
        self.count += other.count
        self.crossings += other.crossings
        self.violations += other.violations
        self.stories += other.stories
        self.traces |= other.traces
        self.met += other.met


def run_schedules(seed: int, count: int, progress: Progress | None = None) -> Tally:
    """Run the schedules of the seeds from `seed` on, so many."""
    tally, crew = Tally(), Crew(ACTORS_MAX)
    collected = gc.isenabled()
    gc.disable()  # a run makes few cycles: they are collected now and then, and not within
    try:
        for number in range(seed, seed + count):
            _run_one(number, crew, tally)
            if tally.count % _COLLECTED_EVERY == 0:
                gc.collect()
                if progress is not None:
                    progress(_COLLECTED_EVERY)
    finally:
        if collected:
            gc.enable()
        crew.dismiss()
    return tally


def _run_one(seed: int, crew: Crew, tally: Tally) -> None:
    schedule = draw_schedule(seed)
    report = Simulation(schedule, Drawn(seed, schedule.switch, schedule.fault), crew).run()
    tally.count += 1
    tally.crossings += report.crossings
    tally.traces.add(report.trace)
    tally.met.update(report.met)
    if report.violation is not None:
        tally.violations += 1
        if len(tally.stories) < TOLD_MAX:
            tally.stories.append(story_of(schedule, report, crew))


def story_of(schedule: Schedule, report: Report, crew: Crew) -> str:
    """Return the story of a run that broke an invariant, made as small as it gets."""
    shrinking = Shrinking(schedule, report, crew)
    told = shrinking.shrink()
    violation = told.violation or report.violation
    assert violation is not None
    story = [
        f"seed {schedule.seed}: {violation.law} is broken: {violation.what}",
        f"  the world is {schedule.world!r}",
        *(f"  {line}" for line in told.story if " nothing on " not in line and "nothing is answered" not in line),
        f"  repeat it: {COMMAND.format(seed=schedule.seed)}",
    ]
    return "\n".join(story)
