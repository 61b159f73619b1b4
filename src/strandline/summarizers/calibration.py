"""Counters that learn from what a provider reports (DESIGN §3).

A provider tells how many tokens a request held: those of the texts, and of a system prompt and tools that nobody has
counted. The difference of two requests holds no part of these. So what teaches is how much a request grew, beside what
was counted of the texts that were added to it.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Final, NamedTuple

from strandline.errors import InvalidInputError
from strandline.limits import (
    CALIBRATION_FACTOR_MAX,
    CALIBRATION_HEADROOM,
    CALIBRATION_STEP_SLACK_TOKENS,
    CALIBRATION_WINDOW_TOKENS,
    CALIBRATION_WINDOWS_MAX,
)
from strandline.ports import TokenCounter
from strandline.summarizers.counting import as_counter

_VERSION: Final = 1  # of the way in which factors are learnt; part of every name


class Window(NamedTuple):
    """Steps of one run of requests that follow each other: what was counted, and what the provider reported."""

    counted: int
    reported: int


class CalibratedCounter:
    """Counts as another counter does, times a factor.

    Args:
        factor: tokens to one of the other counter's; above 0, at most CALIBRATION_FACTOR_MAX. It is rounded up to
            hundredths, so that learning a little more leaves the name as it was.
        counter: as `open` takes it; None: the default one.
        upper: whether the factor is an upper bound, for the name.

    Raises:
        InvalidInputError: no such factor or counter.
    """

    def __init__(self, factor: float, counter: object = None, *, upper: bool = False) -> None:
        if not (math.isfinite(factor) and 0 < factor <= CALIBRATION_FACTOR_MAX):
            raise InvalidInputError(f"factor must be above 0 and at most {CALIBRATION_FACTOR_MAX}, not {factor!r}")
        self._base = as_counter(counter)
        self.factor = max(1, math.ceil(round(factor * 100, 6))) / 100
        self.name = f"{self._base.name}*{self.factor:.2f}{'-upper' if upper else ''}/calibrated-{_VERSION}"

    def count(self, text: str) -> int:
        """Return what the other counter says, times the factor, rounded up."""
        return math.ceil(self._base.count(text) * self.factor)


class Calibration:
    """Learns factors from steps; a counter that is made of it keeps the factor that it was made with.

    Args:
        counter: what counts the texts, as `open` takes it; None: the default one.
    """

    def __init__(self, counter: object = None) -> None:
        self.counter: TokenCounter = as_counter(counter)
        self._steps: deque[Window] = deque()  # of this run, as many as are less than a window
        self._in_steps = 0
        self._windows: deque[Window] = deque(maxlen=CALIBRATION_WINDOWS_MAX)

    @property
    def windows(self) -> tuple[Window, ...]:
        """What was learnt from, the newest CALIBRATION_WINDOWS_MAX: a window begins at each step of a run."""
        return tuple(self._windows)

    def report(self, counted: int, reported: int) -> None:
        """Take one step: by how many tokens a request grew beside what was counted of the texts added to it.

        A request that shrank, or grew by far more than its texts can explain, held something else: it teaches nothing,
        and the run of steps ends there, as by `interrupt`.
        """
        if not 0 <= reported <= CALIBRATION_FACTOR_MAX * counted + CALIBRATION_STEP_SLACK_TOKENS or counted < 0:
            self.interrupt()
            return
        self._steps.append(Window(counted, reported))
        self._in_steps += counted
        while self._in_steps >= CALIBRATION_WINDOW_TOKENS:  # a window begins at each step
            self._windows.append(Window(self._in_steps, sum(step.reported for step in self._steps)))
            self._in_steps -= self._steps.popleft().counted

    def interrupt(self) -> None:
        """Say that the next step does not follow the last one: a compaction, another session."""
        self._steps.clear()
        self._in_steps = 0

    def learn(self, other: Calibration) -> None:
        """Take what another calibration of the same counter has learnt.

        Raises:
            InvalidInputError: it is of another counter.
        """
        if other.counter.name != self.counter.name:
            raise InvalidInputError(f"a calibration of {other.counter.name!r} teaches none of {self.counter.name!r}")
        self._windows.extend(other.windows)

    def typical(self) -> CalibratedCounter:
        """Return the counter that is right on the whole: for what things cost.

        Raises:
            InvalidInputError: nothing was learnt yet.
        """
        self._check()
        counted = sum(window.counted for window in self._windows)
        return CalibratedCounter(sum(window.reported for window in self._windows) / counted, self.counter)

    def upper(self) -> CalibratedCounter:
        """Return the counter whose windows are no smaller than the provider's: for what must fit.

        It is as large as the window that was most above its count, and CALIBRATION_HEADROOM more.

        Raises:
            InvalidInputError: nothing was learnt yet.
        """
        self._check()
        highest = max(window.reported / window.counted for window in self._windows)
        return CalibratedCounter(min(highest * CALIBRATION_HEADROOM, CALIBRATION_FACTOR_MAX), self.counter, upper=True)

    def _check(self) -> None:
        if not self._windows:
            raise InvalidInputError(
                f"nothing was learnt yet: no run of requests grew by {CALIBRATION_WINDOW_TOKENS} counted tokens",
                hint="Report more steps, or calibrate with longer sessions.",
            )
