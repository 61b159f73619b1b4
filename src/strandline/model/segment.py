"""Segments: immutable summaries of one closed range of events (SPEC §2, I12)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentHead:
    """A segment without its text: what planning needs."""

    segment_id: str
    from_seq: int
    through_seq: int
    level: int  # tier of the binary counter: how many merges of equals it stands for
    depth: int  # lossy passes that its content went through
    tokens: int
    source_tokens: int  # tokens of the events that it was made from


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """An immutable summary of the events from_seq..through_seq that its view may read."""

    head: SegmentHead
    event_count: int
    source_digest: bytes  # over the body digests of its events
    text: str
    salt: bytes
    text_digest: bytes
    ref_ids: tuple[int, ...]  # references of covered events that stand verbatim in the text
    made_by: str  # attempt id

    @property
    def erased(self) -> bool:
        """Whether an erasure took the text away: no salt is left to prove one by (C31)."""
        return not self.salt
