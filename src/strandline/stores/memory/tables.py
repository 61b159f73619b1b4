"""Versioned rows in dictionaries.

A snapshot reads the newest version that is not after it, so the readers and the writer of a workflow never wait for
each other, in one thread or in several; a writer's own version becomes visible with its commit. Rolling back plays a
journal of what the transaction wrote. Both cost what the transaction wrote, not what is stored.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

from strandline.errors import CorruptRecordError, InvalidInputError

K = TypeVar("K", bound="int | str | tuple[int, int] | tuple[str, int]")
V = TypeVar("V")
ONLY: Final = 0  # the key of a table with one row, and the group of an index with one group


class History:
    """Which versions of a workflow there are: the last committed one, and those that open snapshots read."""

    def __init__(self, committed: int = 0) -> None:
        self.latch = threading.RLock()  # guards a single step in the tables; nobody waits while holding it
        self.committed = committed
        self.readers: Counter[int] = Counter()

    def begin_read(self) -> Moment:
        with self.latch:
            self.readers[self.committed] += 1
            return Moment(self, self.committed, writable=False)

    def end_read(self, moment: Moment) -> None:
        moment.end()
        with self.latch:
            self.readers[moment.version] -= 1
            self.readers += Counter()  # drops the versions that nobody reads

    def begin_write(self) -> Moment:
        return Moment(self, self.committed + 1, writable=True)

    def oldest_read(self) -> int:
        return min(self.readers, default=self.committed)


class Moment:
    """A version to read at and, when writing, to write; with the journal that takes it back."""

    def __init__(self, history: History, version: int, *, writable: bool) -> None:
        self.history = history
        self.version = version
        self.journal: list[Callable[[], None]] = []
        self._writable = writable
        self._over = False

    def check_open(self) -> None:
        if self._over:
            raise InvalidInputError("the transaction is over; open another one")

    def check_writable(self) -> None:
        self.check_open()
        if not self._writable:
            raise InvalidInputError("a read transaction can't write; open one with `write`")

    def commit(self) -> None:
        if self.journal:
            with self.history.latch:
                self.history.committed = self.version

    def roll_back(self) -> None:
        with self.history.latch:
            while self.journal:
                self.journal.pop()()

    def end(self) -> None:
        self._over = True


class Table(Generic[K, V]):
    """Rows by key. A named index groups keys, sorted, by a property of the row that never changes; None: left out."""

    def __init__(self, name: str, **group_of: Callable[[V], Hashable]) -> None:
        self._name = name
        self._rows: dict[K, tuple[tuple[int, V], ...]] = {}
        self._group_of = group_of
        self._keys: dict[tuple[str, Hashable], list[K]] = {}

    def copied(self) -> Table[K, V]:
        """Return a table with the same rows, which are immutable; what is written to one is not in the other."""
        table: Table[K, V] = Table(self._name)
        table._rows = self._rows.copy()
        table._group_of = self._group_of
        table._keys = {place: keys.copy() for place, keys in self._keys.items()}
        return table

    def get(self, moment: Moment, key: K) -> V | None:
        moment.check_open()
        for version, value in reversed(self._rows.get(key, ())):
            if version <= moment.version:
                return value
        return None

    def expect(self, moment: Moment, key: K) -> V:
        value = self.get(moment, key)
        if value is None:
            raise CorruptRecordError("no such row", place=f"{self._name} {key!r}")
        return value

    def all(self, moment: Moment) -> list[V]:
        """Return all rows, by key."""
        with moment.history.latch:
            keys = sorted(self._rows)
        return [value for key in keys if (value := self.get(moment, key)) is not None]

    def range(self, moment: Moment, index: str, low: K, high: K, limit: int | None = None) -> list[V]:
        """Return the first rows low..high of an index with one group, by key."""
        with moment.history.latch:
            keys = self._keys.get((index, ONLY), [])
            start, stop = bisect_left(keys, low), bisect_right(keys, high)
            keys = keys[start : stop if limit is None else min(stop, start + limit)]
        return [value for key in keys if (value := self.get(moment, key)) is not None]

    def newest(
        self, moment: Moment, index: str, group: Hashable, high: K | None = None, limit: int | None = 1
    ) -> list[V]:
        """Return the last rows of a group at or before `high`, last first."""
        found: list[V] = []
        with moment.history.latch:
            keys = self._keys.get((index, group), [])
            at = len(keys) if high is None else bisect_right(keys, high)
            while at > 0 and (limit is None or len(found) < limit):
                at -= 1
                if (value := self.get(moment, keys[at])) is not None:
                    found.append(value)
        return found

    def add(self, moment: Moment, key: K, value: V) -> None:
        if self.get(moment, key) is not None:
            raise CorruptRecordError("the row is there already; nothing was written", place=f"{self._name} {key!r}")
        self.put(moment, key, value)

    def put(self, moment: Moment, key: K, value: V) -> None:
        moment.check_writable()
        with moment.history.latch:
            old = self._rows.get(key)
            moment.journal.append(lambda: self._restore(key, old))
            kept = [(version, row) for version, row in old or () if version < moment.version]
            while len(kept) > 1 and kept[1][0] <= moment.history.oldest_read():
                del kept[0]  # nobody reads it any more
            self._rows[key] = (*kept, (moment.version, value))
            if old is None:
                for index, group in self._groups(value):
                    insort(self._keys.setdefault((index, group), []), key)

    def _restore(self, key: K, old: tuple[tuple[int, V], ...] | None) -> None:
        if old is not None:
            self._rows[key] = old
            return
        ((_, value),) = self._rows.pop(key)
        for index, group in self._groups(value):
            keys = self._keys[index, group]
            del keys[bisect_left(keys, key)]
            if not keys:
                del self._keys[index, group]

    def _groups(self, value: V) -> list[tuple[str, Hashable]]:
        groups = [(index, group_of(value)) for index, group_of in self._group_of.items()]
        return [(index, group) for index, group in groups if group is not None]
