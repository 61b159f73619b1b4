"""How a summary that another tool wrote compares with ours: what the agent needed later, and who kept it (C29)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from strandline.model.outcome import ForeignSummary

DECLARED = "declared"
"""Stands for the class of a reference that has none of the extractor's: a caller declared it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """A reference of covered events that the agent used again after the compaction."""

    ref: str
    reference_class: str  # a ReferenceClass, or DECLARED
    last_seq: int  # where it was last seen before the compaction
    used_seq: int  # where the agent first used it after the compaction
    shown_first: bool  # somebody else showed it again before that: the summary was not needed for it


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Of so many references, how many stand verbatim in which text."""

    needed: int = 0
    theirs: int = 0
    theirs_and_ledger: int = 0
    ours: int = 0

    @staticmethod
    def sum(tallies: Iterable[Tally]) -> Tally:
        """Return the sums."""
        parts = list(tallies)
        return Tally(
            needed=sum(part.needed for part in parts),
            theirs=sum(part.theirs for part in parts),
            theirs_and_ledger=sum(part.theirs_and_ledger for part in parts),
            ours=sum(part.ours for part in parts),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedUse:
    """A reference that the agent needed and the foreign summary does not hold, and which of the others hold it."""

    use: Use
    in_ledger: bool
    in_ours: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedSummary:
    """One foreign summary beside ours over the same events.

    Each tally counts references of covered events that the agent used again: `needed` those that nobody showed it again
    before, `used_again` all of them; both until the next foreign summary, or (`_to_end`) until the end of the log.
    Kept is what stands verbatim; in `needed_by_name` a path is kept where its last name stands.
    """

    foreign: ForeignSummary
    until_seq: int  # the last event before the next foreign summary
    theirs_tokens: int
    ledger_tokens: int  # of the ledger that is put beside theirs
    ours_tokens: int
    ours_prose_tokens: int  # of them what the summarizer wrote; the rest are anchors and ledger
    ours_reason: str  # why there is no summary of ours; empty if there is one
    needed: Tally
    needed_by_name: Tally
    used_again: Tally
    needed_to_end: Tally
    used_again_to_end: Tally
    needed_by_class: Mapping[str, Tally]
    dropped: tuple[DroppedUse, ...]  # needed and not in theirs, the soonest needed first; at most COMPARE_DROPPED_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Every foreign summary of a workflow, in log order, beside ours."""

    token_counter: str
    revision: int
    ledger_budget: int  # tokens that the ledger beside theirs may take
    summaries: tuple[ComparedSummary, ...] = field(default_factory=tuple)

    @property
    def needed(self) -> Tally:
        """The sum over the summaries."""
        return Tally.sum(each.needed for each in self.summaries)

    @property
    def needed_by_name(self) -> Tally:
        """The sum over the summaries."""
        return Tally.sum(each.needed_by_name for each in self.summaries)

    @property
    def used_again(self) -> Tally:
        """The sum over the summaries."""
        return Tally.sum(each.used_again for each in self.summaries)

    @property
    def needed_by_class(self) -> dict[str, Tally]:
        """The sums over the summaries, the most needed class first."""
        names = dict.fromkeys(name for each in self.summaries for name in each.needed_by_class)
        sums = {
            name: Tally.sum(each.needed_by_class[name] for each in self.summaries if name in each.needed_by_class)
            for name in names
        }
        return dict(sorted(sums.items(), key=lambda item: (-item[1].needed, item[0])))
