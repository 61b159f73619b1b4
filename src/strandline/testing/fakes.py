"""Clocks, randomness and a summarizer that a test owns."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from strandline.errors import InvalidInputError
from strandline.model.candidate import Draft
from strandline.ports import SummaryRequest

START_US: Final = 1_750_000_000_000_000  # where the clocks begin: 15 June 2025
SALT_BYTES: Final = 16
_FRACTION_BITS: Final = 53

# ---------------------------------------------------------------------------------------------- time and chance


@dataclass(frozen=True, slots=True)
class FixedClock:
    """A clock that stands still."""

    wall_us: int = START_US

    def now_us(self) -> int:
        """Return the same wall-clock time as ever."""
        return self.wall_us

    def monotonic_s(self) -> float:
        """Return 0.0."""
        return 0.0

    def sleep_s(self, seconds: float) -> None:
        """Return at once, and stand still."""


class VirtualClock:
    """A clock that moves when it is told to. One thread moves it; any thread may read it."""

    def __init__(self, wall_us: int = START_US) -> None:
        self._wall_us = wall_us
        self._monotonic_us = 0

    def now_us(self) -> int:
        """Return the wall-clock time in microseconds since 1970."""
        return self._wall_us

    def monotonic_s(self) -> float:
        """Return the seconds that `advance` has moved the clock by."""
        return self._monotonic_us / 1_000_000

    def advance(self, seconds: float) -> None:
        """Let time pass, for both clocks.

        Raises:
            InvalidInputError: seconds is negative; `jump_to` sets the wall clock back.
        """
        if seconds < 0:
            raise InvalidInputError(f"time can't pass by {seconds} s")
        step_us = round(seconds * 1_000_000)
        self._monotonic_us += step_us
        self._wall_us += step_us

    def sleep_s(self, seconds: float) -> None:
        """Return at once, with the time gone by."""
        self.advance(seconds)

    def jump_to(self, wall_us: int) -> None:
        """Set the wall clock, forward or back, as an operator or NTP does; the monotonic clock doesn't notice."""
        self._wall_us = wall_us


class SeededEntropy:
    """Randomness that is the same in every run with the same seed: a hash over a counter."""

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed
        self._drawn = 0
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[SeededEntropy], tuple[int]]:
        """Pickle as the seed: another process begins the sequence anew."""
        return type(self), (self._seed,)

    def salt(self) -> bytes:
        """Return 16 bytes that were not returned before."""
        return self._draw()[:SALT_BYTES]

    def fraction(self) -> float:
        """Return a number in [0, 1)."""
        return (int.from_bytes(self._draw()[:8], "big") >> (64 - _FRACTION_BITS)) / (1 << _FRACTION_BITS)

    def _draw(self) -> bytes:
        with self._lock:
            self._drawn += 1
            return hashlib.sha256(f"{self._seed}/{self._drawn}".encode()).digest()


# ---------------------------------------------------------------------------------------------- a scripted summarizer

ScriptStep = Draft | str | BaseException | Callable[[SummaryRequest], Draft]


class ScriptedSummarizer:
    """A `strandline.ports.Summarizer` that does what its script says, one step a call, and records the requests.

    Args:
        script: per call a draft, a text (a finished draft of it), an exception to raise, or a function of the request.
        name: the summarizer's name in a candidate's recipe.
        version: its version there.
        window_tokens: the most that it can be shown; None: no bound.
    """

    def __init__(
        self,
        script: Iterable[ScriptStep],
        *,
        name: str = "scripted",
        version: str = "1",
        window_tokens: int | None = None,
    ) -> None:
        self.name = name
        self.version = version
        self.window_tokens = window_tokens
        self.requests: list[SummaryRequest] = []
        self._script = list(script)
        self._lock = threading.Lock()

    @property
    def steps_left(self) -> int:
        """The steps of the script that no call has taken yet."""
        return max(len(self._script) - len(self.requests), 0)

    def summarize(self, request: SummaryRequest) -> Draft:
        """Take the next step of the script.

        Raises:
            AssertionError: the script is over. Not a SummarizerError, which would be retried.
        """
        with self._lock:
            self.requests.append(request)
            number = len(self.requests)
        if number > len(self._script):
            raise AssertionError(f"call {number} of a summarizer whose script has {len(self._script)} steps")
        step = self._script[number - 1]
        if isinstance(step, BaseException):
            raise step
        if isinstance(step, Draft):
            return step
        return Draft(text=step) if isinstance(step, str) else step(request)
