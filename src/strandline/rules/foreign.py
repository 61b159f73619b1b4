"""What a summary that another tool made does to the facts in force, and what of it is a question for somebody (I10).

A summary of ours carries its facts beside it, verbatim. One that is not ours has only its own words. So each fact is
looked for in them: a constraint or an issue by what it says (`rules.judging`); an approval or a revocation by its
subject, since the words of one ("Go.") say nothing by themselves; a pin, an artifact and a call of unknown outcome by
their names. What was found in a user's words and nobody declared is told of, and is no mandatory fact.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from strandline.model.candidate import Violation
from strandline.model.judgement import CERTIFIED, ClaimStatus, JudgedClaim
from strandline.model.register import FactKind
from strandline.model.summary import Anchor
from strandline.rules.anchors import anchor_line
from strandline.rules.judging import judge_facts
from strandline.rules.verbatim import stands_verbatim

GRAVE: Final = frozenset(
    {
        *("invented_approval", "revoked_approval_stands", "approval_by_another"),
        *("open_issue_resolved", "constraint_lifted", "unknown_call_succeeded"),
        *("fact_weakened", "fact_mutated", "fact_contradicted"),
    }
)
"""Violations on which somebody may act wrongly. Others, as a reference in other words, are told of only."""

OURS_ALONE: Final = frozenset({"forged_anchor"})
"""No violation of a foreign summary: it quotes the facts that were put before its author."""

_SAID: Final = frozenset({FactKind.CONSTRAINT, FactKind.ISSUE, FactKind.FOUND})


def fates(anchors: Iterable[Anchor], summary: str) -> list[JudgedClaim]:
    """Return what became of each fact in a summary; found ones come last.

    A fact that stands there as we write it is preserved: the summary quotes what was put before its author. Such a line
    says nothing of the facts beside it.
    """
    ordered = sorted(anchors, key=lambda anchor: anchor.key.kind is FactKind.FOUND)
    quoted = {anchor.key for anchor in ordered if anchor_line(anchor) in summary}
    rest = summary
    for anchor in ordered:
        rest = rest.replace(anchor_line(anchor), "")
    said = [anchor for anchor in ordered if anchor.key not in quoted and _is_said(anchor)]
    judged = dict(zip((a.key for a in said), judge_facts([a.text for a in said], rest).claims, strict=True))
    return [_named(a, judged.get(a.key) or _by_name(a, summary, quoted=a.key in quoted)) for a in ordered]


def _is_said(anchor: Anchor) -> bool:
    return anchor.key.kind in _SAID and bool(anchor.text.strip())


def _by_name(anchor: Anchor, summary: str, *, quoted: bool) -> JudgedClaim:
    name = anchor.text if anchor.key.kind in (FactKind.PIN, FactKind.ARTIFACT) else anchor.key.subject
    stands = quoted or stands_verbatim(name, summary)
    status = ClaimStatus.PRESERVED if stands else ClaimStatus.DROPPED
    return JudgedClaim(claim=anchor.text or name, status=status, reason="" if stands else "nothing names it")


def _named(anchor: Anchor, judged: JudgedClaim) -> JudgedClaim:
    return JudgedClaim(
        claim=judged.claim,
        status=judged.status,
        reason=judged.reason,
        sentence=judged.sentence,
        line=judged.line,
        fact=f"{anchor.key.kind} {anchor.key.subject}",
    )


def told(violations: Iterable[Violation]) -> tuple[Violation, ...]:
    """Return the violations of a foreign summary, grave ones first."""
    own = [violation for violation in violations if violation.rule not in OURS_ALONE]
    return tuple(sorted(own, key=lambda violation: violation.rule not in GRAVE))


def reasons(facts: Sequence[JudgedClaim], violations: Sequence[Violation]) -> tuple[str, ...]:
    """Return why somebody should look at it, without its words: mandatory facts that it does not hold, and what it says
    that nobody did.
    """
    return tuple(dict.fromkeys((*_of_facts(facts), *_of_violations(violations))))


def _of_facts(facts: Sequence[JudgedClaim]) -> Iterator[str]:
    for claim in facts:
        if claim.status not in CERTIFIED and not claim.fact.startswith(f"{FactKind.FOUND} "):
            yield f"{claim.fact}: {claim.status}"


def _of_violations(violations: Sequence[Violation]) -> Iterator[str]:
    for violation in violations:
        if violation.rule in GRAVE or violation.failure == "malformed":
            yield f"{violation.fact}: {violation.rule}" if violation.fact else violation.rule
