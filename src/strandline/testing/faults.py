"""A store at which things go wrong where a test says so: crashes, lost answers, outages, a full disk (C40).

    with crash_at("activate.after_commit"):
        agent.run_one_turn()  # your code, which opens its store with strandline.open, or holds a FaultyStore
    # the process has died there: what it still holds is refused by the store; open it anew, and look

`crash_at` plays the death within this process; `kill_at` kills the process, by SIGKILL. While either is open, or
`fault_at`, what `strandline.open` opens is watched; a store that was opened before is put into a FaultyStore.
"""

from __future__ import annotations

import enum
import os
import signal
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final, cast
from unittest import mock

from strandline.client import blocking
from strandline.client.opening import open_store
from strandline.errors import InvalidInputError, OutcomeUnknownError, StoreUnavailableError
from strandline.model.due import DueKey
from strandline.model.erasure import FileScan
from strandline.model.figures import StoreFigures
from strandline.model.ids import Scope
from strandline.ports import Clock, ClockedStore, Entropy, ScrubbedStore, Store, Transaction
from strandline.system import SystemClock
from strandline.testing.fault_points import (
    AFTER_COMMIT,
    BEFORE_COMMIT,
    BEGIN,
    WATCHED,
    Moment,
    Write,
    check_point,
    kind_of,
    points,
)

__all__ = ["Armed", "CrashError", "Fault", "FaultyStore", "armed", "crash_at", "fault_at", "kill_at", "points"]

CROSSED_MAX: Final = 10_000  # of the names that a test is told of


class CrashError(BaseException):
    """The process is played dead: it died at a fault point, or goes on after it. Like a signal, it is no Exception."""


class Fault(enum.StrEnum):
    """What goes wrong."""

    CRASH = "crash"  # the process dies; its store refuses all that it does from then on
    KILL = "kill"  # this very process is killed by SIGKILL
    LOST_ANSWER = "lost_answer"  # the caller is not told whether it was committed (I19)
    UNAVAILABLE = "unavailable"  # the store does not answer, and nothing was written
    FULL = "full"  # no space is left, and nothing was written
    SLOW = "slow"  # it takes its time


_AT: Final = {
    BEGIN: (Fault.CRASH, Fault.KILL, Fault.UNAVAILABLE, Fault.SLOW),
    BEFORE_COMMIT: tuple(Fault),
    AFTER_COMMIT: (Fault.CRASH, Fault.KILL, Fault.LOST_ANSWER, Fault.SLOW),
}


class Armed:
    """A fault that waits at its point. `met` says whether it was met, `crossed` which points were, in their order."""

    def __init__(self, point: str, fault: Fault, nth: int, seconds: float) -> None:
        self.point, self.fault, self.seconds = point, fault, seconds
        self.met = False
        self.crossed: list[str] = []
        self._left = nth

    def takes(self, point: str) -> bool:
        """Take note that a point is crossed, and tell whether it is this one's turn."""
        if len(self.crossed) < CROSSED_MAX:
            self.crossed.append(point)
        if point != self.point:
            return False
        self._left -= 1
        self.met = self.met or self._left == 0
        return self._left == 0


_armed: list[Armed] = []
_lock = threading.Lock()
_stores: weakref.WeakSet[FaultyStore] = weakref.WeakSet()


def armed() -> list[str]:
    """Return the points at which a fault waits now."""
    with _lock:
        return [waiting.point for waiting in _armed]


@contextmanager
def fault_at(point: str, fault: Fault | str, *, nth: int = 1, seconds: float = 1.0) -> Iterator[Armed]:
    """Let a fault happen once, when a point is crossed for the `nth` time within the block.

    Args:
        point: one of `points()`.
        fault: what goes wrong; see `Fault`.
        nth: from 1.
        seconds: how long SLOW takes, by the clock of the store.

    Raises:
        InvalidInputError: no such point or fault, or a fault that can't happen there: after a commit nothing is full.
        AssertionError: the block ended, and the point was not crossed so often: the test would prove nothing.
    """
    moment = check_point(point).rpartition(".")[2]
    if fault not in list(Fault) or fault not in _AT[moment] or not isinstance(nth, int) or nth < 1:
        allowed = ", ".join(_AT[moment])
        raise InvalidInputError(f"at {point!r} one of {allowed} may happen, at the first time or later; not {fault!r}")
    waiting = Armed(point, Fault(fault), nth, seconds)

    def open_watched(
        url: str | os.PathLike[str], *, create: bool, durability: str, clock: Clock, entropy: Entropy
    ) -> Store:
        store = open_store(url, create=create, durability=durability, clock=clock, entropy=entropy)
        return FaultyStore(store, clock=clock)

    with mock.patch.object(blocking, "open_store", open_watched):
        with _lock:
            _armed.append(waiting)
        try:
            yield waiting
        finally:
            with _lock:
                _armed.remove(waiting)
    if not waiting.met:
        crossed = (
            ", ".join(dict.fromkeys(waiting.crossed)) or "none: is its store a FaultyStore, or opened in the block?"
        )
        raise AssertionError(f"{point!r} was not crossed {nth} times; crossed were: {crossed}")


@contextmanager
def crash_at(point: str, *, nth: int = 1) -> Iterator[Armed]:
    """Play the death of the process at a point, as `fault_at`; the block ends there, and the test goes on behind it.

    All watched stores of this process are dead from then on: whatever still holds one is refused. Open them anew, or
    take `FaultyStore.restarted`.
    """
    waiting = None
    try:
        with fault_at(point, Fault.CRASH, nth=nth) as waiting:
            yield waiting
    except CrashError:
        if waiting is None or not waiting.met:
            raise


@contextmanager
def kill_at(point: str, *, nth: int = 1) -> Iterator[Armed]:
    """Kill this process by SIGKILL at a point, as `fault_at`; for a process that a test has started."""
    with fault_at(point, Fault.KILL, nth=nth) as waiting:
        yield waiting


class FaultyStore:
    """A `strandline.ports.Store` over another one, watched at every fault point.

    Args:
        inner: the store; it keeps the data.
        clock: by it a slow store takes its time; None: the machine's.
    """

    def __new__(cls, inner: Store, *, clock: Clock | None = None) -> FaultyStore:
        """Make one that can what its inner store can."""
        if isinstance(inner, ClockedStore):
            return object.__new__(_FaultyClockedStore)
        return object.__new__(_FaultyScrubbedStore if isinstance(inner, ScrubbedStore) else FaultyStore)

    def __init__(self, inner: Store, *, clock: Clock | None = None) -> None:
        self._inner = inner
        self._clock = clock or SystemClock()
        self._dead = self._handed_over = False
        with _lock:
            _stores.add(self)

    @property
    def digest_key(self) -> bytes:
        """The key of the inner store."""
        return self._inner.digest_key

    @property
    def path(self) -> str | None:
        """The path of the inner store."""
        return self._inner.path

    def restarted(self) -> FaultyStore:
        """Return the store as a new process opens it. This one is dead from now on."""
        self._dead = self._handed_over = True
        return FaultyStore(self._inner, clock=self._clock)

    @contextmanager
    def read(self, scope: Scope) -> Iterator[Transaction]:
        """Open one snapshot, as `Store.read`."""
        self._cross(str(Moment.SNAPSHOT))
        with self._inner.read(scope) as tx:
            yield tx

    @contextmanager
    def write(self, scope: Scope, *, joins: bool = True) -> Iterator[Transaction]:
        """Open a writing transaction, as `Store.write`."""
        self._cross(str(Moment.TRANSACTION))
        writes: list[Write] = []
        with self._inner.write(scope, joins=joins) as tx:
            yield cast("Transaction", _Watched(tx, writes))
            kind = kind_of(writes)
            self._cross(f"{kind}.{BEFORE_COMMIT}")
        self._cross(f"{kind}.{AFTER_COMMIT}")

    def _cross(self, point: str) -> None:
        """Let happen what waits at a point."""
        self._check_alive()
        with _lock:
            now = [waiting for waiting in _armed if waiting.takes(point)]
        for waiting in now:
            self._fail(waiting)

    def _fail(self, waiting: Armed) -> None:
        where = f"played at {waiting.point!r}"
        if waiting.fault is Fault.KILL:
            os.kill(os.getpid(), signal.SIGKILL)
        if waiting.fault is Fault.CRASH:
            with _lock:
                for store in _stores:
                    store._dead = True
            raise CrashError(f"the process died, {where}")
        if waiting.fault is Fault.LOST_ANSWER:
            raise OutcomeUnknownError(f"the connection was lost, {where}")
        if waiting.fault is Fault.UNAVAILABLE:
            raise StoreUnavailableError(f"the store does not answer, {where}")
        if waiting.fault is Fault.FULL:
            raise StoreUnavailableError(f"no space is left on the device, {where}")
        self._clock.sleep_s(waiting.seconds)

    def _check_alive(self) -> None:
        if self._dead:
            raise CrashError("the process that opened this store is dead: open the store anew")

    def scopes(self, tenant: str | None = None) -> list[Scope]:
        """Return the workflows."""
        self._cross(str(Moment.SNAPSHOT))
        return self._inner.scopes(tenant)

    def due(self, now_us: int, limit: int, per_tenant: int) -> list[DueKey]:
        """Return due compactions, as `Store.due`."""
        self._cross(str(Moment.SNAPSHOT))
        return self._inner.due(now_us, limit, per_tenant)

    def figures(self, tenant: str | None, now_us: int) -> StoreFigures:
        """Return counts and ages."""
        self._cross(str(Moment.SNAPSHOT))
        return self._inner.figures(tenant, now_us)

    def problems(self) -> list[str]:
        """Return what the inner store finds wrong with itself."""
        self._cross(str(Moment.SNAPSHOT))
        return self._inner.problems()

    def close(self) -> None:
        """Close the inner store, unless a restarted one has it; a dead process closes nothing, but its test does."""
        if not self._handed_over:
            self._inner.close()


class _FaultyClockedStore(FaultyStore):
    """Over a store that has a clock."""

    @property
    def clock(self) -> Clock:
        """The clock of the inner store."""
        return cast("ClockedStore", self._inner).clock


class _FaultyScrubbedStore(FaultyStore):
    """Over a store whose files are here."""

    def scrub(self, needles: Sequence[bytes]) -> FileScan:
        """Search the files of the inner store."""
        self._cross(str(Moment.TRANSACTION))
        return cast("ScrubbedStore", self._inner).scrub(needles)


class _Watched:
    """A transaction whose facets tell what is written."""

    def __init__(self, tx: Transaction, writes: list[Write]) -> None:
        self._tx, self._writes = tx, writes

    def __getattr__(self, name: str) -> object:
        facet: object = getattr(self._tx, name)
        return _WatchedFacet(name, facet, self._writes) if name in WATCHED else facet

    def relative(self, workflow: str, *, locked: bool = False) -> Transaction:
        """Return another workflow's facets, watched as well."""
        return cast("Transaction", _Watched(self._tx.relative(workflow, locked=locked), self._writes))


class _WatchedFacet:
    """A facet that tells what is written."""

    def __init__(self, name: str, facet: object, writes: list[Write]) -> None:
        self._name, self._facet, self._writes = name, facet, writes

    def __getattr__(self, method: str) -> object:
        call = getattr(self._facet, method)
        if method not in WATCHED[self._name]:
            return call

        def told(*args: object, **kwargs: object) -> object:
            answer = call(*args, **kwargs)
            self._writes.append(Write(self._name, method, args[0] if args else None))
            return answer

        return told
