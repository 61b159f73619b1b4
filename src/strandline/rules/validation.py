"""Is a draft fit to become active (I5, I10, C13)? What a summarizer returned is untrusted; this is where it is judged.

Two classes of violation, each with an answer of its own (C14, `rules.retry`):

- *malformed*: no finished summary, or too large. Such a draft is not read further, since it will never be used;
- *semantic*: a finished summary that says what the log doesn't: references that no covered event holds, approvals that
  nobody gave, open issues called resolved, constraints in force called lifted (`rules.claims`); facts in force in
  words that surely say otherwise, and sentences that cite what was not shown or does not say so (`rules.draft_claims`).

What stands verbatim in a covered event or in a prior text is never refused.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final

from strandline.limits import DRAFT_BYTES_MAX
from strandline.model.candidate import Draft, FailureClass, Verdict, Violation
from strandline.model.event import EventKind, SourceEvent
from strandline.model.judgement import ClaimStatus, JudgedClaim
from strandline.model.reference import ReferenceClass
from strandline.model.register import FactKind
from strandline.model.summary import Anchor
from strandline.rules.anchors import forged_anchor
from strandline.rules.claims import Claim, false_claims
from strandline.rules.draft_claims import claims_on_facts, claims_that_cite, events_invented
from strandline.rules.no_summary import what_it_is_instead
from strandline.rules.reference_rules import BUILT_IN, References
from strandline.rules.verbatim import stands_at, stands_verbatim, verbatim_subset
from strandline.rules.wording import bare, one_line, plain

VIOLATIONS_MAX: Final = 100  # told of one draft; the last one then says that there are more
CLAIMS_TOLD_MAX: Final = 100  # of one draft, those that are refused first
DETAIL_CHARS_MAX: Final = 240  # of a quoted sentence or reference
INDEXED_REFS_MIN: Final = 64  # from here on a text is indexed once, instead of searched for each reference
FINISHED: Final = "stop"

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_LABEL: Final = re.compile(rf"^\[(?:\d{{1,12}}→)?\d{{1,12}}\] [^\s/]{{0,200}}/(?:{'|'.join(EventKind)}):", re.MULTILINE)

_REFUSED: Final = {
    ClaimStatus.WEAKENED: "fact_weakened",
    ClaimStatus.MUTATED: "fact_mutated",
    ClaimStatus.CONTRADICTED: "fact_contradicted",
    ClaimStatus.INVENTED: "invented_claim",
}
_WHY: Final = {
    "invented_approval": "no approval in force backs this",
    "revoked_approval_stands": "the approval of {subject} was revoked",
    "approval_by_another": "the approval of {subject} was given by somebody else",
    "open_issue_resolved": "the issue {subject} is open",
    "constraint_lifted": "the constraint {subject} is in force",
    "unknown_call_succeeded": "the outcome of call {subject} is unknown",
}
_OF_FACT: Final = {
    "revoked_approval_stands": FactKind.REVOCATION,
    "approval_by_another": FactKind.APPROVAL,
    "open_issue_resolved": FactKind.ISSUE,
    "constraint_lifted": FactKind.CONSTRAINT,
    "unknown_call_succeeded": FactKind.CALL,
}  # the kind of the fact that a claim of this rule gets wrong


def validate(
    draft: Draft,
    *,
    budget_tokens: int,
    tokens: int,
    events: Sequence[SourceEvent],
    prior: Sequence[str],
    unknown_refs: Sequence[str],
    facts: Sequence[Anchor],
) -> Verdict:
    """Judge a draft (I5, I10). Total: it raises nothing, whatever the draft holds. Time is linear in the draft.

    Args:
        draft: what the summarizer returned for one segment.
        budget_tokens: the most tokens that the segment may have.
        tokens: the tokens of the draft's text, by the same counter.
        events: the covered events, as the summarizer was shown them.
        prior: the texts of older segments that stood in for events.
        unknown_refs: the references of the draft that nothing covered holds (`invented_refs`).
        facts: the register as of the watermark: approvals granted, revocations, open issues, constraints in force,
            calls of unknown outcome. Other kinds are not looked at.

    Returns:
        The verdict: malformed violations alone, or else the semantic ones; at most VIOLATIONS_MAX of them.
    """
    form = tuple(malformed(draft, budget_tokens, tokens))
    if form:
        return Verdict(violations=form)
    claims = [*claims_on_facts(draft.text, facts, events, prior), *claims_that_cite(draft.claims, events)]
    claims.sort(key=lambda claim: claim.status not in _REFUSED)
    found = tuple(islice(_semantic(draft, events, prior, unknown_refs, facts, claims), VIOLATIONS_MAX + 1))
    if len(found) > VIOLATIONS_MAX:
        more = Violation(failure=FailureClass.SEMANTIC, rule="more_violations", detail="more were found than are told")
        found = (*found[: VIOLATIONS_MAX - 1], more)
    return Verdict(violations=found, claims=tuple(_told(claim) for claim in claims[:CLAIMS_TOLD_MAX]))


def invented_refs(
    draft_text: str, known: Container[str], source_texts: Sequence[str], references: References = BUILT_IN
) -> list[str]:
    """Return the references of a draft that are neither known nor verbatim in a source, in the order of the draft.

    The end of a longer path that a source holds (`rules/x.py` of `src/rules/x.py`) abbreviates, and invents nothing.
    Labels of quoted lines, `[12] actor/kind:`, hold no references.

    Args:
        draft_text: the draft.
        known: references that are accounted for already, such as those sighted in covered events.
        source_texts: the covered events' texts and prior texts; searched only for references that are not known.
        references: the extractor that found those of the events.
    """
    found = references.of_text(_LABEL.sub("", draft_text))
    missing = [ref for ref in found if ref not in known]
    for text in source_texts:
        if not missing:
            break
        if len(missing) < INDEXED_REFS_MIN:
            standing = {ref for ref in missing if stands_verbatim(ref, text)}
        else:
            standing = verbatim_subset(missing, text)
        missing = [
            ref
            for ref in missing
            if ref not in standing and not (found[ref] == ReferenceClass.PATH and _ends_a_path(ref, text))
        ]
    return missing


def _ends_a_path(ref: str, text: str) -> bool:
    at = text.find(f"/{ref}")
    while at >= 0:
        end = at + 1 + len(ref)
        if stands_at(text[at + 1 : end + 2], 0, len(ref)):
            return True
        at = text.find(f"/{ref}", end)
    return False


def malformed(draft: Draft, budget_tokens: int, tokens: int) -> Iterator[Violation]:
    """Yield what makes a draft no finished summary of `tokens` tokens within the budget (I5)."""
    text = draft.text
    if draft.finish != FINISHED:
        yield _bad_form("not_finished", f"finish reason {_cut(draft.finish)!r}, not {FINISHED!r}")
    if not text.strip():
        yield _bad_form("empty", "the draft is empty")
        return
    if len(text) > DRAFT_BYTES_MAX or len(text.encode("utf-8", "surrogatepass")) > DRAFT_BYTES_MAX:
        yield _bad_form("too_long", f"the draft is longer than {DRAFT_BYTES_MAX} bytes")
        return
    if "\x00" in text:
        yield _bad_form("nul_character", f"a NUL at character {text.index(chr(0))}")
    surrogate = _SURROGATE.search(text)
    if surrogate:
        yield _bad_form("lone_surrogate", f"half a surrogate pair at character {surrogate.start()}")
    if tokens > budget_tokens:
        yield _bad_form("over_budget", f"{tokens} tokens, budget {budget_tokens}")
    instead = what_it_is_instead(plain(text))
    if instead:
        yield _bad_form(instead, f"the draft is no summary: {_cut(text)!r}")


def _semantic(
    draft: Draft,
    events: Sequence[SourceEvent],
    prior: Sequence[str],
    unknown_refs: Sequence[str],
    facts: Sequence[Anchor],
    claims: Sequence[JudgedClaim],
) -> Iterator[Violation]:
    forged = forged_anchor(draft.text)
    if forged is not None:
        yield Violation(
            failure=FailureClass.SEMANTIC,
            rule="forged_anchor",
            detail=f"it writes a fact as only we do: {_cut(forged)!r}",
        )
    for ref in unknown_refs:
        yield Violation(
            failure=FailureClass.SEMANTIC, rule="invented_reference", detail=f"no covered event holds {_cut(ref)!r}"
        )
    told: set[Claim] = set()
    for claim in false_claims(plain(draft.text), events, prior, facts):
        if claim not in told:
            told.add(claim)
            why = _WHY[claim.rule].format(subject=repr(_cut(claim.subject)))
            kind = _OF_FACT.get(claim.rule) if claim.subject else None
            yield Violation(
                failure=FailureClass.SEMANTIC,
                rule=claim.rule,
                detail=f"{why}: {_cut(claim.sentence)!r}",
                fact=f"{kind} {claim.subject}" if kind else "",
            )
    for line in dict.fromkeys(events_invented(draft.text, events, prior)):
        yield Violation(
            failure=FailureClass.SEMANTIC, rule="invented_event", detail=f"no such event was shown: {_cut(line)!r}"
        )
    for judged in claims:
        if judged.status in _REFUSED and bare(judged.sentence) not in {bare(claim.sentence) for claim in told}:
            of = f" of {_cut(judged.sentence)!r}" if judged.sentence else ""
            detail = f"{judged.reason}: {_cut(judged.claim)!r}{of}"
            yield Violation(
                failure=FailureClass.SEMANTIC, rule=_REFUSED[judged.status], detail=detail, fact=judged.fact
            )


def _told(claim: JudgedClaim) -> JudgedClaim:
    return replace(claim, claim=_cut(claim.claim), reason=_cut(claim.reason), sentence=_cut(claim.sentence))


def _bad_form(rule: str, detail: str) -> Violation:
    return Violation(failure=FailureClass.MALFORMED, rule=rule, detail=detail)


def _cut(text: str) -> str:
    line = one_line(text[: 4 * DETAIL_CHARS_MAX])
    return line if len(line) <= DETAIL_CHARS_MAX else f"{line[: DETAIL_CHARS_MAX - 1]}…"
