"""One writer at a time, and those who wait for it share its commit (DESIGN §5).

A write runs in its caller's thread, on the store's one writing connection. When it is done and others are waiting, it
leaves the transaction open for the next of them, and waits in its turn for the commit, which the last one makes for
all: one flush to the disk for a whole group. Each write after the first stands in a savepoint, so that one that fails
takes nothing of the others away. A commit that fails is of unknown outcome for every member (I19).

An interrupt may fall between any two steps here. So nothing is committed unless the write before was marked as whole,
what the connection says counts more than what was noted, and a turn belongs to an object of the write's own frame: when
that is gone, so is the turn.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from strandline.errors import OutcomeUnknownError, StoreUnavailableError
from strandline.limits import GROUP_COMMIT_AGE_S, GROUP_COMMIT_WRITES_MAX, STORE_BUSY_TIMEOUT_S, STORE_TURN_CHECK_S
from strandline.ports import Clock
from strandline.stores.sqlite.session import SQLITE_RAISES, locked_hint


class _Turn:
    """The right to write, held by one write or by nobody."""

    __slots__ = ("__weakref__", "over", "thread")

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.over = False  # its write has ended, whether or not the turn was given back


class _Group:
    """Writes that one commit makes durable."""

    def __init__(self, begun_s: float) -> None:
        self.begun_s = begun_s
        self.writes = 0
        self.half_written = False  # a write has begun, and is neither whole nor taken back
        self.error: BaseException | None = None
        self.settled: threading.Event | None = None  # made for those who don't commit it themselves


class GroupCommit:
    """The queue of a store's writes.

    Args:
        path: the store's file, for errors.
        clock: for the age of a group.
        connect: returns the writing connection; it is asked once per group.
    """

    def __init__(self, path: str, clock: Clock, connect: Callable[[], sqlite3.Connection]) -> None:
        self._path = path
        self._clock = clock
        self._connect = connect
        self._lock = threading.Lock()  # entered as it is: an interrupt can't fall between its taking and its `with`
        self._changed = threading.Condition(self._lock)
        self._holder: weakref.ref[_Turn] | None = None
        self._waiting = 0
        self._group: _Group | None = None
        self._connection: sqlite3.Connection | None = None
        _QUEUES.add(self)

    @contextmanager
    def write(self, *, joins: bool = True) -> Iterator[sqlite3.Connection]:
        """Wait for the turn, and yield the connection within a transaction; leaving normally makes it durable.

        `joins` is False for a write that may take long: no other one is to wait for it.

        A write may be refused because of another one in its group. The refusal leaves here when that one is durable, so
        that whoever looks for the reason finds it.

        Raises:
            StoreUnavailableError: the turn did not come within STORE_BUSY_TIMEOUT_S; or a refusal rests on a write that
                was not committed.
            OutcomeUnknownError: the commit was sent and not acknowledged.
        """
        turn, group, refusal = _Turn(), None, None
        try:
            self._take(turn)
            if not joins:
                self._settle()
            group, connection = self._begin()
            first = group.writes == 0
            group.half_written = True
            if not first:
                connection.execute("SAVEPOINT one_write")
            try:
                yield connection
            except BaseException as error:
                self._take_back(group, connection, first=first)
                if first or not connection.in_transaction or not isinstance(error, Exception):
                    raise  # nothing of its group can be its reason: it was alone, undid it all, or was interrupted
                refusal = error
            else:
                if not first:
                    connection.execute("RELEASE one_write")
                group.writes += 1
                group.half_written = False
        finally:
            turn.over = True
            self._give_back(turn, joins=joins)
        if refusal is not None:
            try:
                raise self._refused(group, refusal)
            finally:
                refusal = None  # an error that knows this frame would keep the turn's object
        self._await(group)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the turn, with nothing open; raises as `write`."""
        turn = _Turn()
        try:
            self._take(turn)
            self._settle()
            yield
        finally:
            turn.over = True
            self._give_back(turn, joins=False)

    # ------------------------------------------------------------------------------------------ the turn

    @property
    def _turn(self) -> _Turn | None:
        return self._holder() if self._holder is not None else None

    def _take(self, turn: _Turn) -> None:
        held = self._turn
        if held is not None and held.thread == turn.thread:
            if not held.over:
                raise StoreUnavailableError(f"{self._path}: a write inside a write of the same thread")
            self._holder = None  # an interrupt kept this thread from giving it back
        with self._lock:
            self._waiting += 1
            try:
                for _ in range(round(STORE_BUSY_TIMEOUT_S / STORE_TURN_CHECK_S)):
                    if self._changed.wait_for(lambda: self._turn is None, STORE_TURN_CHECK_S):
                        break
            finally:
                self._waiting -= 1
                if self._turn is None:  # also when it was interrupted: what was left open for it is not forgotten
                    self._holder = weakref.ref(turn)
        if self._turn is not turn:
            waited = f"another thread has been writing for {STORE_BUSY_TIMEOUT_S:g} s"
            raise StoreUnavailableError(f"{self._path}: {waited}; nothing was written", hint=locked_hint(self._path))

    def _give_back(self, turn: _Turn, *, joins: bool) -> None:
        """End the turn, if it is this one: leave the group to one who waits, or commit it."""
        if self._turn is not turn:
            return
        try:
            with self._lock:
                group = self._group
                if joins and group is not None and self._may_go_on(group):
                    group.settled = group.settled or threading.Event()
                    return
            self._settle()
        finally:
            self._holder = None
            with self._lock:
                self._changed.notify()

    def _may_go_on(self, group: _Group) -> bool:
        """Tell whether the open group can take another write, and there is one. Whoever waits takes the turn, for he
        looks again before he gives up.
        """
        if self._waiting == 0 or group.half_written or group.writes >= GROUP_COMMIT_WRITES_MAX:
            return False
        return self._clock.monotonic_s() - group.begun_s < GROUP_COMMIT_AGE_S

    # ------------------------------------------------------------------------------------------ the transaction

    def _begin(self) -> tuple[_Group, sqlite3.Connection]:
        group, connection = self._group, self._connection
        if group is None or connection is None or group.half_written or not connection.in_transaction:
            self._settle()
            connection = self._connection = self._connect()
            connection.execute("BEGIN IMMEDIATE")
            group = self._group = _Group(self._clock.monotonic_s())
        return group, connection

    def _take_back(self, group: _Group, connection: sqlite3.Connection, *, first: bool) -> None:
        """Undo one write. Where SQLite undid the whole transaction, as some errors make it, `_settle` says so."""
        if not first and connection.in_transaction:
            connection.execute("ROLLBACK TO one_write")
            connection.execute("RELEASE one_write")
            group.half_written = False

    def _settle(self) -> None:
        """Commit what is open and whole, undo what is not, and tell the members."""
        group, connection = self._group, self._connection
        try:
            if group is not None and group.writes and (group.half_written or connection is None):
                group.error = StoreUnavailableError("another write of the same commit was cut off")
            elif group is not None and group.writes and connection is not None:
                if not connection.in_transaction:
                    raise sqlite3.OperationalError("SQLite undid the transaction because of another write in it")
                connection.execute("COMMIT")
        except BaseException as error:
            if group is not None:
                group.error = error
            if not isinstance(error, SQLITE_RAISES):
                raise
        finally:
            if connection is not None and connection.in_transaction:
                connection.execute("ROLLBACK")
            self._group = self._connection = None
            if group is not None and group.settled is not None:
                group.settled.set()

    def _await(self, group: _Group) -> None:
        if group.settled is not None and not group.settled.wait(STORE_BUSY_TIMEOUT_S):
            raise OutcomeUnknownError(f"{self._path}: the commit was not acknowledged in {STORE_BUSY_TIMEOUT_S:g} s")
        if group.error is not None:
            raise OutcomeUnknownError(f"{self._path}: the commit was not acknowledged: {group.error}") from group.error

    def _refused(self, group: _Group, refusal: Exception) -> Exception:
        """Return what a write refused, when what it saw of its group is durable."""
        try:
            self._await(group)
        except OutcomeUnknownError:
            said = "a write that this one came behind was not committed; nothing of this one was written"
            unsure = StoreUnavailableError(f"{self._path}: {said}")
            unsure.__cause__ = refusal
            return unsure
        return refusal

    # ------------------------------------------------------------------------------------------ fork

    def hold_for_fork(self) -> _Turn | None:
        """Take the turn and settle, so that a child inherits no open transaction; None where that can't be had."""
        turn = _Turn()
        try:
            self._take(turn)
        except StoreUnavailableError:  # a fork within a write of this thread, or one that takes too long
            return None
        self._settle()
        return turn

    def release_after_fork(self, turn: _Turn | None) -> None:
        """Give the turn back, in the parent."""
        if turn is not None:
            self._give_back(turn, joins=False)

    def forget_after_fork(self) -> None:
        """Begin anew in the child: threads that held or waited for something are not there, and connections are not its
        own.
        """
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._holder = self._group = self._connection = None
        self._waiting = 0


_QUEUES: weakref.WeakSet[GroupCommit] = weakref.WeakSet()
_held: list[tuple[GroupCommit, _Turn | None]] = []


def _before_fork() -> None:
    _held.extend((queue, queue.hold_for_fork()) for queue in list(_QUEUES))


def _in_parent() -> None:
    for queue, turn in _held:
        queue.release_after_fork(turn)
    _held.clear()


def _in_child() -> None:
    for queue, _ in _held:
        queue.forget_after_fork()
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_in_parent, after_in_child=_in_child)
