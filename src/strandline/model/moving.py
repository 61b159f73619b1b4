"""What a copy of a store and a backup answer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadState:
    """How far a workflow has come: its log and its lineage, each with the chain value of its last entry."""

    revision: int
    chain: bytes
    lineage_seq: int
    lineage_chain: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedHead:
    """The head of one workflow in both stores, read back after the last pass."""

    tenant: str
    workflow: str
    source: HeadState
    target: HeadState | None

    @property
    def same(self) -> bool:
        """Whether both have come to the same."""
        return self.source == self.target


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyReport:
    """What a copy answers: the target holds the state that the source had when the last pass began."""

    source: str
    target: str
    workflows: int
    events: int  # that the target holds; those that a fork shares are its parent's
    rows: int  # written by this call: 0 where the two were alike
    passes: int
    settled: bool  # the last pass found nothing new: the source stood still while it ran
    differing: int  # heads of the target that are not those of the source, as of the last pass
    heads: tuple[CopiedHead, ...]  # at most COPY_HEADS_LISTED_MAX, those that differ first

    @property
    def ok(self) -> bool:
        """Whether every head of the target is that of the source, as of the last pass."""
        return not self.differing


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupReport:
    """What a backup answers."""

    path: str
    size_bytes: int
    workflows: int
    events: int  # as in a `CopyReport`
