"""The store as one process reaches it: a real one, behind crossings at which others go on and things go wrong."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from strandline.errors import OutcomeUnknownError, StoreUnavailableError
from strandline.model.due import DueKey
from strandline.model.figures import StoreFigures
from strandline.model.ids import Scope
from strandline.ports import Transaction
from strandline.stores.memory import MemoryStore
from strandline.testing.simulator.faults import Fault, Point, ProcessDeathError
from strandline.testing.simulator.tearing import Tear, torn


class Crossing(Protocol):
    """What a process does where it crosses a port."""

    def cross(self, point: Point) -> Fault:
        """Let others go on, or something go wrong. Return what goes wrong and is the caller's to bring about.

        Raises:
            ProcessDeathError: the process is dead, from here on or already.
        """
        ...

    def tear(self) -> Tear:
        """Return what is torn in the transaction whose beginning was crossed."""
        ...

    def committed(self, scope: Scope, inner: MemoryStore) -> None:
        """Take note of a transaction that was committed."""
        ...


class SimulatedStore:
    """A `strandline.ports.Store` for one process: once it is dead, nothing of it reaches the store any more."""

    def __init__(self, inner: MemoryStore, process: Crossing) -> None:
        self._inner = inner
        self._process = process
        self._writing = 0

    @property
    def digest_key(self) -> bytes:
        """The key of the store that all processes share."""
        return self._inner.digest_key

    @property
    def path(self) -> None:
        """Nobody else can open it."""
        return

    @contextmanager
    def read(self, scope: Scope) -> Iterator[Transaction]:
        """Take a snapshot; others may go on before it, while it is held, and after it."""
        if self._writing:  # within a write of its own: the lock is held
            with self._inner.read(scope) as tx:
                yield tx
            return
        _fail(self._process.cross(Point.READ))
        with self._inner.read(scope) as tx:
            fault = self._process.cross(Point.HELD)
            _fail(fault)
            yield torn(tx, self._process.tear()) if fault is Fault.TORN else tx
        self._process.cross(Point.READ_DONE)

    @contextmanager
    def write(self, scope: Scope, *, joins: bool = True) -> Iterator[Transaction]:
        """Write; others may go on before it and after it. The commit, or its answer, may be lost."""
        fault = self._process.cross(Point.WRITE)
        _fail(fault)
        with self._inner.write(scope, joins=joins) as tx:
            self._writing += 1
            try:
                yield torn(tx, self._process.tear()) if fault is Fault.TORN else tx
            finally:
                self._writing -= 1
            _fail(self._process.cross(Point.COMMIT))
        self._process.committed(scope, self._inner)
        _fail(self._process.cross(Point.WRITTEN))

    def scopes(self, tenant: str | None = None) -> list[Scope]:
        """Return the workflows."""
        return self._inner.scopes(tenant)

    def due(self, now_us: int, limit: int, per_tenant: int) -> list[DueKey]:
        """Return what is due."""
        _fail(self._process.cross(Point.READ))
        return self._inner.due(now_us, limit, per_tenant)

    def figures(self, tenant: str | None, now_us: int) -> StoreFigures:
        """Return counts and ages."""
        return self._inner.figures(tenant, now_us)

    def problems(self) -> list[str]:
        """Return nothing: there are no files."""
        return []

    def close(self) -> None:
        """Do nothing: the store is the simulation's."""


def _fail(fault: Fault) -> None:
    if fault is Fault.LOST:
        raise OutcomeUnknownError("the connection was lost; what was committed is not known")
    if fault is Fault.UNAVAILABLE:
        raise StoreUnavailableError("the store does not answer; nothing was written")
    if fault is Fault.FULL:
        raise StoreUnavailableError("no space left on the device; nothing was written")
    if fault is Fault.CRASH:
        raise ProcessDeathError
