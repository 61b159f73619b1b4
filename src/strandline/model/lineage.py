"""The lineage: what happened to the memory, in one total order (SPEC §2, I13)."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final


class LineageKind(enum.StrEnum):
    """What a lineage entry records."""

    COMPACTION = "compaction"
    CHECKPOINT = "checkpoint"
    RESTORE = "restore"
    REPLAY = "replay"
    FENCE = "fence"
    REVERT = "revert"
    REWIND = "rewind"
    FORK = "fork"
    DIVERGENCE = "divergence"
    ANSWER = "answer"  # of a case, other than a divergence
    ERASURE = "erasure"
    DEFINE = "define"  # a view came to be, or got other audiences
    HOLD = "hold"  # a legal hold was set
    RELEASE = "release"  # and lifted
    RETENTION = "retention"  # a rule of the tenant for what is kept, and how long


MOVES: Final = frozenset(
    {
        LineageKind.COMPACTION,
        LineageKind.REVERT,
        LineageKind.REWIND,
        LineageKind.FORK,
        LineageKind.ERASURE,
        LineageKind.DEFINE,
    }
)
"""The kinds that move a view's pointer: such an entry names the view and its new generation (I13)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineageEntry:
    """One entry. `op_key` is unique in the workflow and answers "did my commit land?" (I19)."""

    lineage_seq: int
    kind: LineageKind
    op_key: str
    revision: int
    at_us: int
    view: str | None = None
    generation: int | None = None
    name: str | None = None  # whose checkpoint
    restored_seq: int | None = None  # lineage_seq of the checkpoint that a restore took
    digest: bytes | None = None  # of the draft, or of the checkpoint
    by: str | None = None
    why: str | None = None
    detail: Mapping[str, object] = field(default_factory=dict)
    chain: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowHead:
    """Head, lock and counters of one workflow."""

    revision: int = 0
    chain: bytes = b""
    lineage_seq: int = 0
    lineage_chain: bytes = b""
    branch: int = 0  # rewinds so far: as many ranges of events are abandoned
    summary_no: int = 0  # the highest number given to a summary
    ref_id: int = 0  # the highest number given to a reference
    live_events: int = 0
    facts: int = 0  # of the register, that hold now
    attempts: int = 0  # at compactions, of all candidates
    foreign_summaries: int = 0
    epoch: int = 0  # lineage_seq of the last divergence that was accepted; events from then on carry it (I17)
    cases: int = 0  # rows of each, so that a missing one is found
    effects: int = 0
    permits: int = 0
    approval_uses: int = 0
    due_rows: int = 0
    readers: int = 0
    cooldowns: int = 0
    states: int = 0  # rows of saved states
    state_positions: int = 0  # the highest position given to one
    state_lines: int = 0
    state_nodes: int = 0  # the highest number given to a node
    state_changes: int = 0  # transactions that changed saved states: an equal head means equal rows
    parent: str | None = None  # the workflow that this one was forked from
    fork_seq: int = 0  # the last event that it shares with its parent
    fork_ref_id: int = 0  # the highest number of a reference that it shares


@dataclass(frozen=True, slots=True, kw_only=True)
class AbandonedRange:
    """Events from_seq..through_seq that a rewind abandoned: readable, and in no context of a later branch (C22)."""

    branch: int  # the one that the rewind began: 1, 2, …
    from_seq: int
    through_seq: int
