"""What is carried past a summary that another tool makes, and what is said of one that it made (I9, I10)."""

from __future__ import annotations

from dataclasses import dataclass

from strandline.model.candidate import Violation
from strandline.model.judgement import CERTIFIED, JudgedClaim
from strandline.model.register import OpenCall
from strandline.model.summary import Anchor


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """What a reader must have beside a summary that is not ours: mandatory facts, open calls, a ledger of references.

    All of it is verbatim from the log, as of its revision.
    """

    revision: int
    facts: tuple[Anchor, ...]
    facts_text: str  # one a line, under a heading; "" where there is none
    open_calls: tuple[OpenCall, ...]
    ledger_text: str  # one reference a line, under a heading; "" where nothing fits
    tokens: int  # of facts and ledger
    token_counter: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedReference:
    """A reference that covered events hold and a foreign summary does not hold verbatim."""

    ref: str
    last_seq: int  # its newest event


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignJudgement:
    """What a summary that another tool made keeps of the events before it, and what it says that they don't."""

    through_seq: int  # the last event that it speaks for
    read_from: int  # the first event whose words were held against it; earlier ones only by facts and references
    facts: tuple[JudgedClaim, ...]  # one for each fact in force: those that were declared first, then found ones
    violations: tuple[Violation, ...]  # what it says and the log does not; grave ones first
    refs_seen: int
    dropped: tuple[DroppedReference, ...]  # the manifest: all of them, the newest first
    reasons: tuple[str, ...] = ()  # why a case was opened; empty: it may stand
    case_id: str | None = None

    @property
    def dropped_facts(self) -> tuple[JudgedClaim, ...]:
        """The facts that it does not certainly hold."""
        return tuple(claim for claim in self.facts if claim.status not in CERTIFIED)
