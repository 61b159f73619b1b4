"""Saved states: who may save what after what, and how a list of parts is told as blocks."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import replace

from strandline.limits import STATE_BLOCK_NODES
from strandline.model.state import HeldWrite, StateLine, StateRow, StateStatus

Levels = tuple[tuple[bytes, ...], ...]
"""The nodes of a value by level, the parts first; those of a level before `loose_from` lie in blocks of the next."""


class StateRefusal(enum.StrEnum):
    """Why a saved state, or a write, is refused."""

    UNKNOWN_PARENT = "unknown parent"
    DELETED = "deleted"  # it, its parent, or one beside it: what is late brings nothing back
    TAKEN = "taken"  # its id is that of another content
    MOVED = "moved"  # somebody else has saved in the line since the writer read it


def levels_of(parts: Sequence[bytes], join: Callable[[int, Sequence[bytes]], bytes]) -> Levels:
    """Return the nodes of a list of parts, each by its digest.

    Every full run of STATE_BLOCK_NODES nodes of a level is one block of the next, so a list that grows by appending
    shares all blocks but the last with what it was: like the digits of a number that is counted up.

    Args:
        parts: digests of the parts, in order.
        join: the digest of a block, from its level and the digests that it holds.
    """
    levels = [tuple(parts)]
    while loose_from(levels[-1]):
        below = levels[-1]
        starts = range(0, loose_from(below), STATE_BLOCK_NODES)
        levels.append(tuple(join(len(levels), below[at : at + STATE_BLOCK_NODES]) for at in starts))
    return tuple(levels)


def loose_from(level: Sequence[object]) -> int:
    """Return where in a level those nodes begin that no block holds."""
    return len(level) // STATE_BLOCK_NODES * STATE_BLOCK_NODES


def refuse_save(
    line: StateLine | None, there: StateRow | None, named: str | None, parent: StateRow | None, seen: int | None
) -> StateRefusal | None:
    """Tell whether a state that is not saved yet may be saved.

    Args:
        line: where it is to be saved; None: nothing was saved there.
        there: the row of its id.
        named: the id that it names as its parent.
        parent: the row of that id.
        seen: the newest position of the line when the writer read it; None: he does not say.
    """
    if there is not None and there.status is StateStatus.DELETED:
        return StateRefusal.DELETED
    if named is not None and (parent is None or parent.status is StateStatus.AWAITED):
        return StateRefusal.UNKNOWN_PARENT
    if parent is not None and parent.status is StateStatus.DELETED:
        return StateRefusal.DELETED
    if seen is None or line is None or not line.newest or line.saved <= seen:
        return None  # nobody saved since, or all is deleted; going on from an older state is a branch that is meant
    on_newest = parent is not None and parent.position == line.newest
    return None if on_newest else StateRefusal.MOVED


def same_content(there: StateRow, row: StateRow) -> bool:
    """Tell whether a state that is to be saved says what the saved one of its id says."""
    return (there.parent, there.run, there.values, there.meta) == (row.parent, row.run, row.values, row.meta)


def merge_writes(there: Sequence[HeldWrite], new: Sequence[HeldWrite], *, replace_known: bool) -> tuple[HeldWrite, ...]:
    """Return the writes with new ones, by task and index; of two that bear one name the first stays, or the new one."""
    first, then = (new, there) if replace_known else (there, new)
    held = {(write.task, write.index): write for write in (*reversed(then), *reversed(first))}
    return tuple(held[name] for name in sorted(held))


def tombstone(row: StateRow) -> StateRow:
    """Return what stays of a state that is deleted: its id, and its place."""
    return replace(row, status=StateStatus.DELETED, parent=None, run=None, values=(), meta=b"", writes=())
