"""Saved states: what a framework saves of itself, version by version, in lines; each value is kept once."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Bytes of a value, with the name of what serialised them."""

    kind: str
    data: bytes


@dataclass(frozen=True, slots=True)
class StateValue:
    """A value of a saved state: one part, or with `many` a list of parts, of which each is kept once.

    A list that is saved may begin with the first `after` parts of the parent's list of its name: then `parts` are those
    behind them, and what a save costs follows what is new. One that is read is whole.
    """

    parts: tuple[Part, ...]
    many: bool = False
    after: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StateWrite:
    """What a task wrote behind a saved state, before the next one was saved. `(task, index)` names it."""

    task: str
    index: int
    channel: str
    path: str = ""
    value: StateValue


@dataclass(frozen=True, slots=True, kw_only=True)
class NewState:
    """A state that is to be saved, as `States.save` takes it."""

    state_id: str
    values: Mapping[str, StateValue]
    meta: bytes = b""
    line: str = ""
    parent: str | None = None
    kept: tuple[str, ...] = ()  # names whose values are those of the parent
    run: str | None = None
    seen: int | None = None  # the newest position of the line when its writer read it; None: not checked
    beside: tuple[tuple[str, str], ...] = ()  # states of other lines that it comes with, by line and id
    writes: tuple[StateWrite, ...] = ()  # what tasks wrote behind it before it was saved


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedState:
    """One immutable version of a line."""

    state_id: str  # as the framework gave it
    line: str
    position: int  # in the order of saving, over all lines of the workflow: 1, 2, …; no clock decides it
    parent: str | None
    values: Mapping[str, StateValue]
    meta: bytes
    run: str | None
    writes: tuple[StateWrite, ...]  # by task and index
    seen: int  # the newest position of the line when this was read: what `save(seen=…)` takes
    erased: bool = False  # some of it was erased: what is left stands here
    lineage_seq: int = 0  # of the workflow when this was read: an erasure moves it


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """The answer of `save`."""

    position: int
    created: bool  # False: the same was saved before


@dataclass(frozen=True, slots=True, kw_only=True)
class LineUsage:
    """What a line holds."""

    name: str
    states: int  # that were not deleted
    newest: str  # the id of the newest of them
    position: int  # and its position


@dataclass(frozen=True, slots=True, kw_only=True)
class StatesUsage:
    """What the saved states of a workflow take."""

    lines: tuple[LineUsage, ...]  # in the order in which they began
    parts: int  # of all values, each counted once
    part_bytes: int  # before they are deflated


# ------------------------------------------------------------------------------------------ as they are stored


class StateStatus(enum.StrEnum):
    """What has become of a saved state. awaited -> saved -> erased | deleted ; awaited, erased -> deleted."""

    AWAITED = "awaited"  # written to, and not saved yet
    SAVED = "saved"
    ERASED = "erased"  # all that it said is gone
    DELETED = "deleted"  # a tombstone: its id is never given again


@dataclass(frozen=True, slots=True)
class HeldValue:
    """A value as the numbers of its nodes: level by level from the parts upward, those that no block holds."""

    many: bool
    digits: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class HeldWrite:
    """A write with its value as numbers of nodes."""

    task: str
    index: int
    channel: str
    path: str
    value: HeldValue


@dataclass(frozen=True, slots=True, kw_only=True)
class StateRow:
    """A saved state as it is stored."""

    number: int  # of the row: 1, 2, … in the workflow; rows are never taken away
    line: int  # number of the line
    state_id: str
    status: StateStatus = StateStatus.AWAITED
    position: int | None = None  # None: not saved yet, or deleted before it was
    previous: int = 0  # position of the state that was saved before it in the line; 0: none
    parent: str | None = None
    run: str | None = None
    values: tuple[tuple[str, HeldValue], ...] = ()  # by name
    meta: bytes = b""
    writes: tuple[HeldWrite, ...] = ()  # by task and index


@dataclass(frozen=True, slots=True, kw_only=True)
class StateLine:
    """A line: what was saved in it last, and the newest state that is still there."""

    number: int  # 1, 2, … in the workflow
    name: str
    saved: int = 0  # the highest position that was given in it
    newest: int = 0  # the highest of those that were not deleted; 0: none is left


@dataclass(frozen=True, slots=True)
class StateNode:
    """A part of a value (level 0), or a block: STATE_BLOCK_NODES nodes of the level below, in order."""

    node_id: int
    level: int
    kind: str  # of a part; "" of a block
    data: bytes | None  # of a block: the numbers of its nodes; None: erased
    digest: bytes  # keyed, of what it holds: the same content is kept once
