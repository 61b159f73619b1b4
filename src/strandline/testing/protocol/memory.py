"""What the model keeps of one workflow: what its store has on disk, and nothing else.

All of it is immutable and hashable. Sets of events are numbers whose bit `seq` is set, so that "covers exactly" is one
comparison. An attempt's place in the world (who works at it, and how far he has come) is no part of it: that dies with
the process.
"""

from __future__ import annotations

from typing import Final, NamedTuple

RUNNING: Final = "running"
VALIDATED: Final = "validated"
ACTIVATED: Final = "activated"
FENCED: Final = "fenced"  # taken over, or voided by a rewind
FAILED: Final = "failed"
NOT_TOLD: Final = -1  # by the records of a store


class Summary(NamedTuple):
    """One summary. Number 0 is the empty one."""

    covers: int = 0  # the events that its drafts were really made from
    watermark: int = 0
    base: int = 0
    complete: bool = True


class Plan(NamedTuple):
    """What a compaction was planned on, in one snapshot."""

    view: int
    generation: int
    base: int  # the summary that was active
    watermark: int
    covers: int
    revision: int


class Attempt(NamedTuple):
    """One try. Its number is the first fencing token that it had; who takes it over gives it another token."""

    number: int
    fence: int
    plan: Plan
    state: str
    claimed_at: int  # lineage_seq that was the newest then
    summary: int = 0  # that it stored


class View(NamedTuple):
    """A pointer, and who may move it."""

    generation: int = 0
    summary: int = 0
    moved_at: int = 0  # lineage_seq of its last move
    fence: int = 0  # the highest fencing token handed out
    holder: int = 0  # number of the attempt that holds the lease; 0: nobody
    leased: bool = False  # the lease has not run out
    narrow: bool = False
    defined_at: int = 0  # lineage_seq at which it got the audiences that it has


class Move(NamedTuple):
    """One move of a pointer."""

    at: int  # lineage_seq
    kind: str
    view: int
    generation: int
    summary: int
    restored: int = 0  # the checkpoint that a rewind went back to


class Checkpoint(NamedTuple):
    """Agent state, and what it was made from. `stamp` is its place in the lineage."""

    stamp: int
    name: int
    view: int  # of the basis; of one that is context-free, the view that keeps it
    generation: int
    summary: int  # that the state was made from
    past: int  # the last live event when it was made
    made_at: int  # lineage_seq that was the newest when its context was read
    free: bool = False  # context-free
    foreign: bool = False  # kept by another saver, which has no entry of its own


class Recovery(NamedTuple):
    """A restore or a replay; or a rewind to a checkpoint, which leaves a past as a restore does."""

    at: int
    name: int
    restored: int  # stamp of the checkpoint; 0: replay
    paired: int = 0  # stamp of a context-free one, whose state goes with a replay
    is_rewind: bool = False


class Case(NamedTuple):
    """An open case that blocks a summary."""

    name: int
    view: int
    summary: int
    missing: int = 0  # the event whose reference is missing; 0: the summary itself is bad


class Memory(NamedTuple):
    """Everything that one workflow has on disk, as far as the model knows it."""

    revision: int = 0
    live: int = 0
    lineage: int = 0
    views: tuple[View, ...] = (View(),)
    summaries: tuple[Summary | None, ...] = (Summary(),)
    attempts: tuple[Attempt, ...] = ()
    moves: tuple[Move, ...] = ()
    checkpoints: tuple[Checkpoint, ...] = ()
    recoveries: tuple[Recovery, ...] = ()
    cases: tuple[Case, ...] = ()  # the open ones
    asked: int = 0  # cases that were opened, ever
    bad: tuple[int, ...] = ()  # summaries that a revert left
    calls: tuple[tuple[int, int], ...] = ()  # (call, its result or 0)
    pins: tuple[tuple[int, int], ...] = ()  # (event whose reference is pinned, event that pins it)
    passed: tuple[int, ...] = ()  # checkpoints that an answer said to pass over
    erased: tuple[int, ...] = ()  # summaries that an erasure took away, sooner or later


def through(seq: int) -> int:
    """Return the set of the events 1..seq."""
    return (2 << seq) - 2


def last_of(events: int) -> int:
    """Return the last event of a set; 0: it is empty."""
    return max(events.bit_length() - 1, 0)


def content_of(memory: Memory, view: int, generation: int) -> int:
    """Return the summary that a generation of a view had; -1: it never had one."""
    if generation == 0:
        return 0
    for move in reversed(memory.moves):
        if move.view == view and move.generation == generation:
            return move.summary
    return -1


def bases_of(memory: Memory, summary: int) -> list[int]:
    """Return a summary and the chain of its bases, the newest first, down to the empty one."""
    chain = [summary]
    while chain[-1]:
        made = memory.summaries[chain[-1]]
        chain.append(made.base if made is not None else 0)
    return chain


def watermark_of(memory: Memory, summary: int) -> int:
    """Return the watermark of a summary."""
    made = memory.summaries[summary]
    return made.watermark if made is not None else 0
