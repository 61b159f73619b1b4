"""Summaries and manifests: what an activated version says and what it left out."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

from strandline.model.register import FactKey, FactState
from strandline.model.segment import Segment


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """A mandatory fact, carried verbatim by Strandline and never by the model (SPEC §2, I10)."""

    key: FactKey
    state: FactState
    seq: int  # the event that states it
    text: str  # the statement as it stands in that event
    note: str = ""  # what the envelope adds: who granted it, scope, expiry, the tool called


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """A reference carried verbatim within a share of the budget (DESIGN §3, the ledger)."""

    ref_id: int
    text: str
    declared: bool
    used_seq: int  # last sighting in words or arguments of the agent or the user; 0: never
    weight: float  # log2 of the decayed sum over sightings; comparable between entries of one summary chain
    last_seq: int


class DropReason(enum.StrEnum):
    """Why a reference does not stand in the summary."""

    NOT_IN_SUMMARY = "not_in_summary"  # neither the draft nor the ledger had room for it
    MERGED_AWAY = "merged_away"  # it stood in a segment that was merged or made anew
    REDACTED = "redacted"
    ERASED = "erased"


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedRef:
    """One change of the manifest against the base summary: dropped here, or standing verbatim again."""

    ref_id: int
    dropped: bool
    last_seq: int
    reason: DropReason


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestEntry:
    """A reference that covered events hold and the summary does not (SPEC §2, I9). `ref` is None once erased."""

    ref: str | None
    ref_id: int
    last_seq: int
    generation_dropped: int
    reason: DropReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest(Sequence[ManifestEntry]):
    """The drop manifest of a view: a sequence of its entries, the newest sighting first."""

    generation: int
    dropped: tuple[ManifestEntry, ...]

    @overload
    def __getitem__(self, index: int) -> ManifestEntry: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[ManifestEntry]: ...
    def __getitem__(self, index: int | slice) -> ManifestEntry | Sequence[ManifestEntry]:
        return self.dropped[index]

    def __len__(self) -> int:
        return len(self.dropped)


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """An activated version, or one prepared by an attempt: segments that cover 1..watermark, anchors, ledger."""

    summary_no: int  # 1, 2, … within the workflow
    summary_id: str  # the attempt that made it
    view: str
    base_no: int  # the summary it was built on; 0: the empty one
    generation: int  # the generation that it becomes when it is activated: one after its base
    compactions: int  # compactions on the chain of its bases, itself included (N of I12)
    watermark: int
    event_count: int  # events that it speaks for
    source_digest: bytes  # over the source digests of its segments, which are over the body digests of the events
    depth: int
    tokens: int
    token_counter: str
    segments: tuple[Segment, ...]
    anchors: tuple[Anchor, ...]
    ledger: tuple[LedgerEntry, ...]
    anchors_text: str
    ledger_text: str
    ref_ids: tuple[int, ...]  # references that stand verbatim in anchors and ledger
    salt: bytes
    text_digest: bytes  # over anchors and ledger
    refs_seen: int  # different references sighted in covered events
    dropped_count: int  # entries of the whole manifest after this summary
    manifest_digest: bytes  # over this summary's own changes of the manifest
    revision: int  # of the log when it was planned

    @property
    def erased(self) -> bool:
        """Whether an erasure took anchors and ledger, or the text of a segment, away (C31)."""
        return not self.salt or any(segment.erased for segment in self.segments)
