"""The machine's clock and randomness behind their ports: the only place that reads either."""

from __future__ import annotations

import os
import platform
import random
import time


class SystemClock:
    """The clock of the machine."""

    def now_us(self) -> int:
        """Return the wall-clock time in microseconds since 1970."""
        return time.time_ns() // 1_000

    def monotonic_s(self) -> float:
        """Return seconds that never go back."""
        return time.monotonic()

    def sleep_s(self, seconds: float) -> None:
        """Block the calling thread."""
        time.sleep(seconds)


class SystemEntropy:
    """The randomness of the machine."""

    def salt(self) -> bytes:
        """Return 16 random bytes."""
        return os.urandom(16)

    def fraction(self) -> float:
        """Return a random number in [0, 1)."""
        return random.random()


def worker_name() -> str:
    """Return what a worker calls itself in the store: machine and process."""
    return f"{platform.node()}:{os.getpid()}"
