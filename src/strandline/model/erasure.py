"""Erasure: what may stand in its way, what was erased, and the proof of it (SPEC C31)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Somebody outside who reads the log in order: an export, an audit, an indexer. What lies behind `seq` he still
    needs, until he has finished.
    """

    name: str
    seq: int  # the last event that he has read
    finished: bool
    seen_us: int  # when he last said so


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """A legal hold: while it stands nothing that it covers is erased, whoever asks."""

    name: str
    workflow: str | None  # None: every workflow of the tenant
    by: str
    why: str
    set_us: int
