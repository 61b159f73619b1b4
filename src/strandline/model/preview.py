"""What a compaction would do, before anything is done (C16)."""

from __future__ import annotations

from dataclasses import dataclass

from strandline.model.candidate import Violation
from strandline.model.summary import Summary


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewedDrop:
    """A reference that the manifest would name anew. `ref` is None once erased."""

    ref: str | None
    ref_id: int
    last_seq: int  # the last covered event that holds it
    in_tail: bool  # it stands in an event behind the watermark, too: the context does not lose it


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What a compaction would do now. Nothing was written, no lease was taken.

    `summary` is what would become active; None where nothing is to be done, or where the draft was refused.
    """

    view: str
    revision: int
    reason: str  # why nothing is to be done; "" otherwise
    from_watermark: int
    watermark: int
    events_covered: int  # that the summary would speak for, and does not yet
    tokens_before: int
    summary_tokens: int
    tail_tokens: int
    token_counter: str
    budget: int
    summary: Summary | None
    violations: tuple[Violation, ...]  # for which the draft would be refused
    dropped: tuple[PreviewedDrop, ...]  # the newest first

    @property
    def tokens_after(self) -> int:
        """Tokens of the assembled context right after it: summary and tail."""
        return self.summary_tokens + self.tail_tokens

    @property
    def lost(self) -> tuple[PreviewedDrop, ...]:
        """Those of the dropped references that the context would hold nowhere. The log holds them all."""
        return tuple(drop for drop in self.dropped if not drop.in_tail)

    def __repr__(self) -> str:
        if self.reason:
            return f"Preview({self.reason})"
        return (
            f"Preview(watermark {self.from_watermark} -> {self.watermark}, "
            f"{self.tokens_before:,} -> {self.tokens_after:,} tokens, "
            f"{len(self.dropped):,} references dropped, {len(self.violations)} violations)"
        )
