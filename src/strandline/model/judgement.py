"""What is said of a claim when a summary is judged (C13): the fate of a fact, or of a sentence that cites events."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class ClaimStatus(enum.StrEnum):
    """The fate of one claim. Only the first two certify it; what can't be told is UNVERIFIABLE, never one of them."""

    PRESERVED = "preserved"  # it stands verbatim, and nothing takes it back
    PARAPHRASED = "paraphrased"  # it stands in other words that provably say the same
    WEAKENED = "weakened"  # less binding: must → may, a new exception, a hedge, a detail gone
    MUTATED = "mutated"  # another value, another time: 30 s → 30 min, pending → approved, will run → ran
    CONTRADICTED = "contradicted"  # the opposite is said, or that it no longer holds
    DROPPED = "dropped"  # nothing speaks of it
    INVENTED = "invented"  # nothing that was covered says it
    UNVERIFIABLE = "unverifiable"  # something speaks of it, and whether it says the same can't be told


CERTIFIED: frozenset[ClaimStatus] = frozenset({ClaimStatus.PRESERVED, ClaimStatus.PARAPHRASED})


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedClaim:
    """The verdict on one claim, with the place: the sentence that decides it, and its line."""

    claim: str
    status: ClaimStatus
    reason: str = ""  # which rule decided, in words
    sentence: str = ""  # of the judged text; "" where none speaks of the claim
    line: int | None = None  # of the judged text, from 1, on which that sentence begins
    fact: str = ""  # kind and subject, where the claim is a fact of the register
    in_tail: bool = False  # the sentence stands in the tail; then `line` counts in the text of that event


@dataclass(frozen=True, slots=True, kw_only=True)
class Objection:
    """What a judge has against a draft."""

    reason: str
    sentence: str = ""  # of the draft; "" where it is about the whole


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What is said of a summary: one verdict per fact, in the order of the facts."""

    claims: tuple[JudgedClaim, ...]

    @property
    def accepted(self) -> bool:
        """Whether every fact is preserved or provably paraphrased."""
        return all(claim.status in CERTIFIED for claim in self.claims)

    @property
    def refused(self) -> tuple[JudgedClaim, ...]:
        """The claims that are not certified."""
        return tuple(claim for claim in self.claims if claim.status not in CERTIFIED)
