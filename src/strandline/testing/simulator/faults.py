"""What can go wrong, and where: the crossings at which a process touches what is outside of it."""

from __future__ import annotations

import enum
from typing import Final


class ProcessDeathError(BaseException):
    """The process died here: no more of its code has any effect. No program catches it, and a store refuses it."""


class Point(enum.IntEnum):
    """Where a process crosses a port."""

    READ = 0  # before a snapshot is taken
    HELD = 1  # it is taken, and nothing of it is read yet
    READ_DONE = 2
    WRITE = 3  # before the workflow's lock is taken
    COMMIT = 4  # all is written, and not committed: nobody else can come in between
    WRITTEN = 5  # committed, and not answered yet
    DRAFT = 6  # the summarizer is asked
    SLEEP = 7
    RUN = 8  # an effect was asked for, and has not happened
    HAPPENED = 9  # it has, and nobody knows
    PROBE = 10
    STEP = 11  # between two verbs


class Fault(enum.IntEnum):
    """What goes wrong at a crossing."""

    NONE = 0
    CRASH = 1  # the process dies: before the commit, at COMMIT; after it, at WRITTEN
    LOST = 2  # the answer is lost: with the commit not made at COMMIT, with the commit made at WRITTEN
    UNAVAILABLE = 3
    FULL = 4  # no space: the commit is refused
    JUMP_FORTH = 5  # the wall clock is set ahead
    JUMP_BACK = 6
    EXPIRE = 7  # all stands still until every lease is over
    BROKEN = 8  # the connection to the world outside breaks
    TORN = 9  # one record comes back with another byte, this once


_ANYWHERE: Final = (Fault.CRASH, Fault.JUMP_FORTH, Fault.JUMP_BACK, Fault.EXPIRE)

FAULTS_AT: Final[dict[Point, tuple[Fault, ...]]] = {
    Point.READ: (Fault.CRASH, Fault.UNAVAILABLE),
    Point.HELD: (Fault.UNAVAILABLE, Fault.TORN),
    Point.READ_DONE: (Fault.CRASH,),
    Point.WRITE: (Fault.CRASH, Fault.UNAVAILABLE, Fault.EXPIRE, Fault.TORN),
    Point.COMMIT: (Fault.CRASH, Fault.LOST, Fault.FULL),
    Point.WRITTEN: (Fault.CRASH, Fault.LOST),
    Point.DRAFT: (*_ANYWHERE, Fault.BROKEN),
    Point.SLEEP: _ANYWHERE,
    Point.RUN: (Fault.CRASH, Fault.BROKEN, Fault.EXPIRE),
    Point.HAPPENED: (Fault.CRASH, Fault.BROKEN),
    Point.PROBE: (Fault.CRASH, Fault.BROKEN),
    Point.STEP: _ANYWHERE,
}

# How a story tells them.
FAULT_WORDS: Final[dict[Fault, str]] = {
    Fault.CRASH: "dies",
    Fault.LOST: "loses the answer",
    Fault.UNAVAILABLE: "gets no answer from the store",
    Fault.FULL: "finds the disk full",
    Fault.JUMP_FORTH: "sees the wall clock jump ahead",
    Fault.JUMP_BACK: "sees the wall clock jump back",
    Fault.EXPIRE: "stands still until all leases are over",
    Fault.BROKEN: "loses the connection",
    Fault.TORN: "meets a torn page",
}
POINT_WORDS: Final[dict[Point, str]] = {
    Point.READ: "the begin of a read",
    Point.HELD: "a read whose snapshot is taken",
    Point.READ_DONE: "the end of a read",
    Point.WRITE: "the begin of a write",
    Point.COMMIT: "a commit that is not made yet",
    Point.WRITTEN: "a commit that was made",
    Point.DRAFT: "the summarizer",
    Point.SLEEP: "a pause",
    Point.RUN: "an effect that has not happened",
    Point.HAPPENED: "an effect that has happened",
    Point.PROBE: "a probe",
    Point.STEP: "its next verb",
}
