"""Checkpoints: exact agent state, bound to the lineage (SPEC §2, I14)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointView:
    """A view as the checkpoint saw it; `basis_revision` is set when the state was built from it."""

    view: str
    generation: int
    basis_revision: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalState:
    """Agent state that lives elsewhere: where, and what it is. What lies at an address never changes (I14)."""

    address: str
    digest: str  # "sha256:" and 64 hexadecimal digits


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """Exact agent state with its place in the lineage. The digest covers all of it."""

    name: str
    lineage_seq: int
    turn: int
    revision: int
    branch: int
    context_free: bool
    in_flight: bool  # a compaction held a lease when it was taken; of an external one: the lease of its basis' view
    views: tuple[CheckpointView, ...]
    state: bytes  # JSON as it was encoded
    salt: bytes
    digest: bytes
    external: ExternalState | None = None  # then `state` is null
    state_digest: bytes | None = None  # of an erased one, in place of state and salt (C31)

    @property
    def erased(self) -> bool:
        """Whether an erasure took the state away."""
        return self.state_digest is not None
