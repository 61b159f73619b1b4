"""What the engine's verbs answer."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from strandline.model.candidate import Attempt
from strandline.model.event import Basis, EventKind, SourceEvent
from strandline.model.summary import Summary


@dataclass(frozen=True, slots=True, kw_only=True)
class Forked:
    """A workflow that was begun from another one (C22)."""

    workflow: str
    parent: str
    revision: int  # the last event that it shares with its parent
    lineage_seq: int  # of the last entry that records it, in its own lineage
    facts: int  # of the register, that hold there
    watermarks: Mapping[str, int]  # of each view: what the summary covers that it took over; 0: there was none


class CompactionResult(enum.StrEnum):
    """How a compaction ended."""

    ACTIVATED = "activated"
    NOTHING_TO_DO = "nothing_to_do"
    REJECTED = "rejected"
    QUARANTINED = "quarantined"
    CONFLICT = "conflict"
    DEAD_LETTER = "dead_letter"
    POSTPONED = "postponed"  # in the background: it is due again; by hand: the summarizer is left alone for a while


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionOutcome:
    """How a compaction ended, and the state of the view after it.

    Tokens are counted by `token_counter` over the assembled context (summary and tail) before and after.
    `refs_unaccounted` is 0 by I9: every reference sighted in covered events stands in summary or manifest.
    """

    outcome: CompactionResult
    view: str
    revision: int
    generation: int
    watermark: int
    lineage_seq: int
    depth: int
    tokens_before: int
    summary_tokens: int
    tail_tokens: int
    token_counter: str
    refs_seen: int
    refs_verbatim: int
    refs_dropped: int
    refs_unaccounted: int
    summary: Summary | None
    attempts: tuple[Attempt, ...] = ()
    reason: str = ""
    case_id: str | None = None  # of a quarantined candidate or a dead letter
    phases_ms: Mapping[str, float] = field(default_factory=dict)
    duration_ms: float = 0.0
    again_after_s: float | None = None  # of one that was postponed; None: another compaction holds the view

    def __repr__(self) -> str:
        reason = f", {self.reason}" if self.reason else ""
        return (
            f"CompactionOutcome({self.outcome.value}, generation {self.generation}, watermark {self.watermark}, "
            f"{self.tokens_before:,} -> {self.tokens_after:,} tokens, {self.refs_dropped:,} references dropped{reason})"
        )

    @property
    def tokens_after(self) -> int:
        """Tokens of the assembled context now: summary and tail."""
        return self.summary_tokens + self.tail_tokens

    @property
    def summary_id(self) -> str | None:
        """The id of the active summary; None at generation 0."""
        return self.summary.summary_id if self.summary else None


class ActedOnKind(enum.StrEnum):
    """What was made from a context, the ones with consequences outside first."""

    EFFECT = "effect"
    PERMIT = "permit"
    ARTIFACT = "artifact"
    EVENT = "event"
    CHECKPOINT = "checkpoint"


@dataclass(frozen=True, slots=True, kw_only=True)
class ActedOn:
    """One thing that was made from a generation that a revert left behind: its basis says so (C17)."""

    kind: ActedOnKind
    name: str  # an effect's key, a permit's action and id, an artifact's subject, the kind of an event, a checkpoint's
    state: str  # of an effect or a permit
    seq: int  # of the event, or the call of an effect; of a permit and a checkpoint the revision at which it was made
    actor: str
    basis: Basis


@dataclass(frozen=True, slots=True, kw_only=True)
class Reverted:
    """What a revert answers."""

    view: str
    to_generation: int
    generation: int  # the new one, which has the content of `to_generation`
    watermark: int
    lineage_seq: int
    left: tuple[int, ...]  # the generations that were left as bad
    fenced: str | None  # the attempt that was in flight, and can't become active any more
    acted_on: tuple[ActedOn, ...]  # at most ACTED_ON_LISTED_MAX
    acted_on_count: int
    case_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewound:
    """What a rewind answers."""

    to_revision: int  # the last event that the new branch shares with the one that was left
    revision: int  # of the log now: seqs go on
    branch: int
    from_seq: int  # what was left behind: from_seq..through_seq
    through_seq: int
    events: int  # live ones among them; the others were abandoned before
    generations: Mapping[str, int]  # by view: its new generation
    lineage_seq: int  # of the last entry that records it
    restated: tuple[tuple[int, int], ...]  # (new seq, old seq) of what is never undone
    fenced: tuple[str, ...]  # the attempts that were in flight, and can't become active any more


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallHit:
    """A verbatim event in which the reference stands, with its provenance (C4)."""

    seq: int
    kind: EventKind
    actor: str
    text: str
    declared: bool
    abandoned: bool = False  # by a rewind: it stands in no context any more (C22)
    instead: str | None = None  # the reference that was accepted in the place of the one that was asked for (I17)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHit:
    """A verbatim event in which all that was searched for stands, with its provenance (C4)."""

    event: SourceEvent  # says whether a rewind abandoned it
    at_us: int  # when it was appended
    excerpt: str  # of its text, around a place
    matches: tuple[tuple[int, int], ...]  # places in the excerpt, from and to
    cut: tuple[bool, bool]  # whether more text stands before the excerpt, and behind it

    @property
    def seq(self) -> int:
        """The event's number."""
        return self.event.seq

    @property
    def text(self) -> str:
        """The event's whole text."""
        return self.event.text


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that `verify` found: which law, where, what."""

    workflow: str
    place: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyReport:
    """What `verify` proved (C5)."""

    workflows: int
    events: int
    problems: tuple[Problem, ...]
    states: int = 0  # that are saved; what was deleted or erased is none

    @property
    def ok(self) -> bool:
        """Whether nothing was found."""
        return not self.problems


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignSummary:
    """A summary that another tool wrote, as an import found it: kept for comparison, never read as context (C2)."""

    key: str
    through_seq: int  # the events of the log that stood before it
    text: str
    detail: Mapping[str, object] = field(default_factory=dict)
    erased: bool = False  # an erasure took the text away (C31)
