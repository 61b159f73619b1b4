"""Candidates and attempts: the stored job for one summary (SPEC §2)."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from strandline.errors import InvalidInputError
from strandline.limits import LEDGER_SHARE, SEGMENTS_SHARE, SHARES_ROUNDING, TAIL_SHARE
from strandline.model.judgement import JudgedClaim
from strandline.model.segment import SegmentHead


class CandidateState(enum.StrEnum):
    """PENDING → VALIDATED → ACTIVE → SUPERSEDED | REVERTED; PENDING → REJECTED | QUARANTINED; any but ACTIVE → VOID.

    A revert goes back to one that was SUPERSEDED, which is ACTIVE again, and leaves those since then REVERTED.
    """

    PENDING = "pending"
    VALIDATED = "validated"
    ACTIVE = "active"
    SUPERSEDED = "superseded"
    REVERTED = "reverted"
    REJECTED = "rejected"
    QUARANTINED = "quarantined"
    VOID = "void"


class AttemptState(enum.StrEnum):
    """RUNNING → VALIDATED → ACTIVATED; RUNNING → FAILED | REJECTED | QUARANTINED | FENCED."""

    RUNNING = "running"
    VALIDATED = "validated"
    ACTIVATED = "activated"
    FAILED = "failed"
    REJECTED = "rejected"
    QUARANTINED = "quarantined"
    FENCED = "fenced"


class FailureClass(enum.StrEnum):
    """The classes of C14."""

    TRANSIENT = "transient"
    MALFORMED = "malformed"
    SEMANTIC = "semantic"
    CONFLICT = "conflict"
    STORAGE = "storage"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """What a budget is spent on, as fractions of it that come to no more than 1 together.

    Raises:
        InvalidInputError: a share that is no number of 0..1, no room for segments, or more than the whole.
    """

    segments: float = SEGMENTS_SHARE  # what the summarizer writes
    ledger: float = LEDGER_SHARE  # anchors and ledger; the ledger also takes what segments leave
    tail: float = TAIL_SHARE  # the newest events, verbatim

    def __post_init__(self) -> None:
        """Refuse shares that no budget can be spent by."""
        shares = {"segments": self.segments, "ledger": self.ledger, "tail": self.tail}
        for name, share in shares.items():
            if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
                raise InvalidInputError(f"the share of {name} is a fraction of the budget, 0..1, not {share!r}")
        if not self.segments:
            raise InvalidInputError("the share of segments is 0: no summary is written without room for it")
        if sum(shares.values()) > 1 + SHARES_ROUNDING:
            raise InvalidInputError(f"the shares come to {sum(shares.values()):g} of the budget: more than all of it")


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentJob:
    """One segment to be made: the closed range, what it is made from, and its bound."""

    from_seq: int
    through_seq: int
    level: int
    depth: int
    budget_tokens: int
    from_segments: tuple[str, ...] = ()  # segment ids whose texts stand in for their raw events; empty: raw throughout


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionPlan:
    """What one compaction will do, decided in one snapshot (DESIGN §2, tx1)."""

    base_generation: int
    base_summary_no: int
    revision: int
    watermark: int
    budget: int
    compactions: int
    kept: tuple[SegmentHead, ...]
    jobs: tuple[SegmentJob, ...]
    shares: Shares = field(default_factory=Shares)  # what the budget is spent on


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionRecipe:
    """How the summary is made: what makes two jobs over the same events different jobs."""

    algorithm: str
    model: str
    prompt: str
    schema: int
    token_counter: str
    strict: bool
    partition: int = 0
    judge: str = ""  # asked beside the rules; "": none
    extractor: str = "refs-2"  # what finds references in drafts; its name has a digest of the user's rules


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """The stored job for one summary with its provenance. The id is a digest of the job: a repeat finds its row."""

    candidate_id: str
    view: str
    audience_version: int
    plan: CompactionPlan
    recipe: CompactionRecipe
    state: CandidateState
    created_us: int
    not_before_us: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CitedClaim:
    """One claim of a draft, and the events that it says it came from: untrusted, as the draft is."""

    text: str  # as it stands in the draft's text
    seqs: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What a summarizer returned for one segment: untrusted (SPEC §2).

    `finish` says why it ended; only "stop" is a finished summary (DESIGN §3).
    """

    text: str
    finish: str = "stop"
    model: str = ""
    claims: tuple[CitedClaim, ...] = ()  # of a summarizer that cites; in the order of the text


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One reason why a draft does not pass: which rule, what, where."""

    failure: FailureClass
    rule: str
    detail: str
    fact: str = ""  # the mandatory fact that it gets wrong: its kind and subject


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What validation says of a draft; it passes only without violations (I5, I10).

    `claims` says what became of the facts that the draft speaks of, and of the sentences that cite events.
    """

    violations: tuple[Violation, ...] = ()
    claims: tuple[JudgedClaim, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the draft may become active."""
        return not self.violations


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One try at a candidate. It owns its draft and verdict; no other attempt writes them (I6)."""

    attempt_id: str
    candidate_id: str
    number: int
    fence: int
    state: AttemptState
    started_us: int
    ended_us: int | None = None
    failure: FailureClass | None = None
    failure_text: str | None = None
    drafts: tuple[Draft, ...] = ()
    draft_digest: bytes | None = None
    verdict: Verdict | None = None
    summary_no: int | None = None
