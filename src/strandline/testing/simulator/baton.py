"""Threads of which one runs at a time: who has the baton. They are kept from schedule to schedule."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Seat:
    """A thread that plays one process at a time."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.task: Callable[[], None] | None = None
        self._go = threading.Lock()
        self._go.acquire()
        threading.Thread(target=self._play, name=f"strandline-simulated-{number}", daemon=True).start()

    def wake(self) -> None:
        """Give the baton to this thread."""
        self._go.release()

    def wait(self) -> None:
        """Wait for the baton; only this thread calls it."""
        self._go.acquire()

    def _play(self) -> None:
        while True:
            self.wait()
            task = self.task
            if task is None:
                return
            task()  # hands the baton over when it ends


class Crew:
    """The threads, and the one that waits for them all."""

    def __init__(self, seats: int) -> None:
        self.seats = [Seat(number) for number in range(seats)]
        self._home = threading.Lock()
        self._home.acquire()

    def start(self, first: int) -> None:
        """Give the baton away, and wait until it comes home."""
        self.seats[first].wake()
        self._home.acquire()

    def end(self) -> None:
        """Bring the baton home: every process has ended."""
        self._home.release()

    def dismiss(self) -> None:
        """Let all threads end."""
        for seat in self.seats:
            seat.task = None
            seat.wake()
