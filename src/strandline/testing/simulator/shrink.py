"""Make a run that breaks smaller, while it breaks the same law: fewer processes, verbs, faults and turns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from strandline.testing.simulator.baton import Crew
from strandline.testing.simulator.choices import Choice, Given, Place
from strandline.testing.simulator.schedule import Schedule
from strandline.testing.simulator.simulation import Report, Simulation

T = TypeVar("T")
RUNS_MAX: Final = 400  # of one shrinking


class Shrinking:
    """A run that breaks, and what is left of it."""

    def __init__(self, schedule: Schedule, report: Report, crew: Crew) -> None:
        assert report.violation is not None
        self.schedule = schedule
        self.choices: dict[Place, Choice] = dict(report.choices)
        self._law = report.violation.law
        self._crew = crew
        self._runs = 0

    def shrink(self) -> Report:
        """Return the told run of what can't be made smaller any more."""
        size = None
        while size != (size := self._size()):
            self._shorten()
            self._calm()
        return Simulation(self.schedule, Given(self.choices), self._crew, told=True).run()

    def _size(self) -> tuple[int, int]:
        return sum(map(len, self.schedule.actors)), len(self.choices)

    def _breaks(self, schedule: Schedule, choices: dict[Place, Choice]) -> bool:
        if self._runs >= RUNS_MAX:
            return False
        self._runs += 1
        report = Simulation(schedule, Given(choices), self._crew).run()
        return report.violation is not None and report.violation.law == self._law

    def _shorten(self) -> None:
        """Leave verbs out, where the choices of the others stay as they are: a verb becomes one that does nothing."""
        for actor, steps in enumerate(self.schedule.actors):
            for number, step in enumerate(steps):
                if step.verb == "nothing":
                    continue
                kept = [*steps]
                kept[number] = replace(step, verb="nothing")
                actors = [*self.schedule.actors]
                actors[actor] = tuple(kept)
                smaller = replace(self.schedule, actors=tuple(actors))
                choices = {place: one for place, one in self.choices.items() if place[:2] != (actor, number)}
                if self._breaks(smaller, choices):
                    self.schedule, self.choices = smaller, choices
                    steps = tuple(kept)

    def _calm(self) -> None:
        """Leave choices out, by halves, then one by one (delta debugging)."""
        kept = minimal(list(self.choices.items()), lambda some: self._breaks(self.schedule, dict(some)))
        self.choices = dict(kept)


def minimal(items: Sequence[T], breaks: Callable[[Sequence[T]], bool]) -> Sequence[T]:
    """Return fewer of the items that still break (Zeller, Hildebrandt: Simplifying and isolating failure-inducing
    input, 2002; complements only).
    """
    parts = 2
    while len(items) >= 1:
        size = max(1, len(items) // parts)
        for start in range(0, len(items), size):
            fewer = [*items[:start], *items[start + size :]]
            if breaks(fewer):
                items, parts = fewer, max(parts - 1, 2)
                break
        else:
            if size == 1:
                return items
            parts = min(parts * 2, len(items))
    return items
