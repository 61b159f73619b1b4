"""What tasks wrote behind a checkpoint that is not saved yet: it waits in the saver that is to save it.

A graph that saves in the background may hand a task's writes over first. In the store they would stand behind nothing,
and stay there where the thread was deleted meanwhile and nobody saves that checkpoint (C34). Waiting loses nothing:
both are saved in one transaction, and a run that dies before it goes on from the checkpoint before.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from typing import Final

from strandline import StateConflictError, StateWrite
from strandline.limits import EARLY_BYTES_MAX, EARLY_STATES_MAX

_LOCKS: Final = 64  # saves that need not wait for each other mostly don't
_OBJECT_BYTES: Final = 500  # what a write, or a part of its value, takes beside its bytes

Place = tuple[str, str, str]
"""Of a checkpoint: thread, namespace, id."""
Write = Callable[[Sequence[StateWrite], bool], bool]
"""Keep writes behind a checkpoint; ahead of it, if so told, or else answer whether it was there."""


class EarlyWrites:
    """The writes that wait, by checkpoint. Those of runs that failed stay, so their number and size are bounded."""

    def __init__(self, replaced: Collection[int]) -> None:
        """Take the indexes of writes that take the place of an earlier one of their task; of others the first stays."""
        self._replaced = frozenset(replaced)
        self._waiting: dict[Place, tuple[StateWrite, ...]] = {}
        self._bytes = 0
        self._counting = threading.Lock()
        self._locks = tuple(threading.Lock() for _ in range(_LOCKS))

    def lock(self, place: Place) -> threading.Lock:
        """Return what is held while a checkpoint is saved, so that no write comes to wait for one that was."""
        return self._locks[hash(place) % _LOCKS]

    def keep(self, place: Place, writes: Sequence[StateWrite], write: Write) -> None:
        """Keep writes behind a checkpoint if it is there; otherwise they wait for it, or, if too many do, go ahead.

        Where that raises, they are not kept.
        """
        if place not in self._waiting and write(writes, False):
            return
        with self.lock(place):
            held = self._merged(place, writes)
            try:
                is_kept = write(held, not self._has_room(place, held))
            except StateConflictError:
                self.forget(place)
                raise
            self._hold(place, () if is_kept else held)

    def waiting(self, place: Place) -> tuple[StateWrite, ...]:
        """Return what waits for a checkpoint, each under a name of its own; the caller holds the lock."""
        return self._waiting.get(place, ())

    def forget(self, place: Place) -> None:
        """Let go what waits for a checkpoint that is saved, or can't be; the caller holds the lock."""
        self._hold(place, ())

    def _merged(self, place: Place, writes: Sequence[StateWrite]) -> tuple[StateWrite, ...]:
        held = {(write.task, write.index): write for write in self.waiting(place)}
        for name, write in {(write.task, write.index): write for write in reversed(writes)}.items():
            if name not in held or write.index in self._replaced:
                held[name] = write
        return tuple(held.values())

    def _has_room(self, place: Place, held: Sequence[StateWrite]) -> bool:
        """Say whether these may wait for a checkpoint; a few saves at once may each find the last room free."""
        before = self.waiting(place)
        size = self._bytes - _size(before) + _size(held)
        return size <= EARLY_BYTES_MAX and (bool(before) or len(self._waiting) < EARLY_STATES_MAX)

    def _hold(self, place: Place, held: tuple[StateWrite, ...]) -> None:
        with self._counting:
            self._bytes += _size(held) - _size(self._waiting.pop(place, ()))
            if held:
                self._waiting[place] = held


def _size(writes: Sequence[StateWrite]) -> int:
    parts = [part for write in writes for part in write.value.parts]
    return sum(len(part.data) for part in parts) + _OBJECT_BYTES * (len(writes) + len(parts))
