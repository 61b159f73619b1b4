"""What tasks wrote behind a checkpoint that is not saved yet: it waits in the saver that is to save it.

A graph that saves in the background may hand a task's writes over first. In the store they would stand behind nothing,
and stay there where the thread was deleted meanwhile and nobody saves that checkpoint (C34). Waiting loses nothing:
a run that dies before its checkpoint is saved goes on from the one before it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Final

from strandline import StateWrite
from strandline.limits import EARLY_STATES_MAX

_LOCKS: Final = 64  # saves that need not wait for each other mostly don't

Place = tuple[str, str, str]
"""Of a checkpoint: thread, namespace, id."""
Write = Callable[[Sequence[StateWrite], bool], bool]
"""Keep writes behind a checkpoint; ahead of it, if so told, or else answer whether it was there."""


class EarlyWrites:
    """The writes that wait, by checkpoint, in the order in which they came."""

    def __init__(self) -> None:
        self._waiting: dict[Place, list[Sequence[StateWrite]]] = {}
        self._locks = tuple(threading.Lock() for _ in range(_LOCKS))

    def lock(self, place: Place) -> threading.Lock:
        """Return what is held while a checkpoint is saved, so that no write comes to wait for one that was."""
        return self._locks[hash(place) % _LOCKS]

    def keep(self, place: Place, writes: Sequence[StateWrite], write: Write) -> None:
        """Keep writes behind a checkpoint if it is there; otherwise they wait for it."""
        if place not in self._waiting and write(writes, False):
            return
        with self.lock(place):
            if place not in self._waiting and len(self._waiting) >= EARLY_STATES_MAX:
                write(writes, True)
                return
            self._waiting.setdefault(place, []).append(writes)
            self.settle(place, write)

    def settle(self, place: Place, write: Write) -> None:
        """Keep what waits for a checkpoint, if that is there; the caller holds the lock."""
        if all(write(writes, False) for writes in self._waiting.get(place, ())):
            self.forget(place)

    def forget(self, place: Place) -> None:
        """Let go what waits for a checkpoint that can't be saved; the caller holds the lock."""
        self._waiting.pop(place, None)
