"""One writer at a time, and those who wait for it share its commit (DESIGN §5).

A write runs in its caller's thread, on the store's one writing connection. When it is done and others are waiting, it
leaves the transaction open for the next of them, and waits in its turn for the commit, which the last one makes for
all: one flush to the disk for a whole group. Each write after the first stands in a savepoint, so that one that fails
takes nothing of the others away. A commit that fails is of unknown outcome for every member (I19).
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from strandline.errors import OutcomeUnknownError, StoreUnavailableError
from strandline.limits import GROUP_COMMIT_AGE_S, GROUP_COMMIT_WRITES_MAX, STORE_BUSY_TIMEOUT_S
from strandline.ports import Clock


class _Group:
    """Writes that one commit makes durable."""

    def __init__(self, begun_s: float) -> None:
        self.begun_s = begun_s
        self.writes = 0
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
        self._turn = threading.Condition(threading.Lock())
        self._writing: int | None = None  # the thread whose turn it is
        self._waiting = 0
        self._group: _Group | None = None
        self._connection: sqlite3.Connection | None = None

    @contextmanager
    def write(self, *, joins: bool = True) -> Iterator[sqlite3.Connection]:
        """Wait for the turn, and yield the connection within a transaction; leaving normally makes it durable.

        `joins` is False for a write that may take long: no other one is to wait for it.

        Raises:
            StoreUnavailableError: the turn did not come within STORE_BUSY_TIMEOUT_S.
            OutcomeUnknownError: the commit was sent and not acknowledged.
        """
        self._enter()
        group: _Group | None = None
        try:
            if not joins:
                self._settle()
            group, connection = self._begin()
            first = group.writes == 0
            if not first:
                connection.execute("SAVEPOINT one_write")
            try:
                yield connection
            except BaseException:
                self._take_back(group, connection, first=first)
                group = None
                raise
            if not first:
                connection.execute("RELEASE one_write")
            group.writes += 1
        finally:
            self._leave(joins=joins)
        self._await(group)

    def _enter(self) -> None:
        me = threading.get_ident()
        if self._writing == me:
            raise StoreUnavailableError(f"{self._path}: a write inside a write of the same thread")
        try:
            self._take_turn(me)
        except BaseException:  # interrupted: a group that was left open for this thread is not to be forgotten
            if self._writing == me:
                self._leave(joins=False)
            raise
        if self._writing != me:
            waited = f"another thread has been writing for {STORE_BUSY_TIMEOUT_S:g} s"
            raise StoreUnavailableError(f"{self._path}: {waited}")

    def _take_turn(self, me: int) -> None:
        with self._turn:
            self._waiting += 1
            try:
                self._turn.wait_for(lambda: self._writing is None, STORE_BUSY_TIMEOUT_S)
            finally:
                self._waiting -= 1
                if self._writing is None:
                    self._writing = me

    def _begin(self) -> tuple[_Group, sqlite3.Connection]:
        if self._group is None or self._connection is None:
            connection = self._connect()
            connection.execute("BEGIN IMMEDIATE")
            self._group, self._connection = _Group(self._clock.monotonic_s()), connection
        return self._group, self._connection

    def _take_back(self, group: _Group, connection: sqlite3.Connection, *, first: bool) -> None:
        """Undo one write. Some errors make SQLite undo the whole transaction: then the others' writes are gone too."""
        if first or not connection.in_transaction:
            if not first:
                group.error = sqlite3.OperationalError("SQLite undid the transaction because of another write in it")
            _roll_back(connection)
            self._close_group()
        else:
            connection.execute("ROLLBACK TO one_write")
            connection.execute("RELEASE one_write")

    def _leave(self, *, joins: bool) -> None:
        """End the turn: leave the group to one who waits, or commit it."""
        with self._turn:
            group = self._group
            if joins and group is not None and self._may_go_on(group):
                group.settled = group.settled or threading.Event()
                self._end_turn()
                return
        try:
            self._settle()
        finally:
            with self._turn:
                self._end_turn()

    def _end_turn(self) -> None:
        self._writing = None
        self._turn.notify()

    def _may_go_on(self, group: _Group) -> bool:
        """Tell whether the open group can take another write, and there is one. Whoever waits takes the turn, for he
        looks again before he gives up.
        """
        if self._waiting == 0 or group.writes >= GROUP_COMMIT_WRITES_MAX:
            return False
        return self._clock.monotonic_s() - group.begun_s < GROUP_COMMIT_AGE_S

    def _settle(self) -> None:
        """Commit the open group, and tell its members."""
        group, connection = self._group, self._connection
        if group is None or connection is None:
            return
        try:
            connection.execute("COMMIT")
        except BaseException as error:
            group.error = error
            _roll_back(connection)
            if not isinstance(error, sqlite3.Error):
                raise
        finally:
            self._close_group()

    def _close_group(self) -> None:
        group, self._group, self._connection = self._group, None, None
        if group is not None and group.settled is not None:
            group.settled.set()

    def _await(self, group: _Group) -> None:
        if group.settled is not None and not group.settled.wait(STORE_BUSY_TIMEOUT_S):
            raise OutcomeUnknownError(f"{self._path}: the commit was not acknowledged in {STORE_BUSY_TIMEOUT_S:g} s")
        if group.error is not None:
            raise OutcomeUnknownError(f"{self._path}: the commit was not acknowledged: {group.error}") from group.error


def _roll_back(connection: sqlite3.Connection) -> None:
    if connection.in_transaction:
        connection.execute("ROLLBACK")
