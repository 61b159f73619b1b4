"""The lineage: what happened to the memory, in one total order (SPEC §2, I13)."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field


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
    ERASURE = "erasure"


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
    branch: int = 0
    summary_no: int = 0  # the highest number given to a summary
    ref_id: int = 0  # the highest number given to a reference
    live_events: int = 0
    facts: int = 0  # of the register, that hold now
    attempts: int = 0  # at compactions, of all candidates
    foreign_summaries: int = 0
