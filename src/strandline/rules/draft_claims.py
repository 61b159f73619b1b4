"""What a draft does to the facts in force, and to the events that it cites (I10, C13).

Facts stand verbatim beside the draft, as anchors; so a draft may be silent about them, or say them in words that can't
be told to be the same. It is refused only for what surely speaks against one: another figure, the opposite, a
permission of what is forbidden, "should" for "must". A sentence that stands verbatim in a source is never refused.

A sentence that cites events may cite none that was not covered, and none that does not speak of it; and where every
sentence of them that does surely says otherwise, it is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from strandline.limits import CITED_EVENTS_MAX
from strandline.model.candidate import CitedClaim
from strandline.model.event import EventKind, SourceEvent
from strandline.model.judgement import CERTIFIED, ClaimStatus, JudgedClaim
from strandline.model.register import FactKind
from strandline.model.summary import Anchor
from strandline.rules.claim_words import LIMIT_WORDS
from strandline.rules.differences import Difference, difference, nearness
from strandline.rules.judging import AGAINST_MIN, NEAR_MIN
from strandline.rules.passages import Passage, passages
from strandline.rules.quotes import Sources
from strandline.rules.statements import Statement, says_the_same, statement
from strandline.rules.wording import LABEL, Sentence, bare, plain, sentences, words

FACT_WORDS_MIN: Final = 2  # content words of a fact: with fewer, another sentence can't be told to speak of it
SPOKEN_OF_MIN: Final = 0.25  # of the words and values of a sentence that stand in the events that it cites

_STATED: Final = frozenset({FactKind.CONSTRAINT, FactKind.ISSUE})
_STATING: Final = frozenset(
    {
        *(EventKind.CONSTRAINT, EventKind.LIFT_CONSTRAINT, EventKind.APPROVAL, EventKind.REVOKE),
        *(EventKind.ISSUE, EventKind.RESOLVE, EventKind.DECISION),
    }
)
_CUT: Final = re.compile(r"…|\.{3,}|\[\.\.\.\]")
_WORD: Final = re.compile(r"[^\W_]+")
_NAMED_EVENT: Final = re.compile(r"[\[(](?:see )?events? #?(\d{1,12})[\])]", re.IGNORECASE)


def claims_on_facts(
    draft: str, facts: Iterable[Anchor], events: Sequence[SourceEvent], prior: Sequence[str]
) -> Iterator[JudgedClaim]:
    """Yield what a draft does to each constraint and open issue of which it speaks."""
    forms = [(fact, statement(fact.text)) for fact in facts if fact.key.kind in _STATED and fact.text]
    forms = [(fact, form) for fact, form in forms if len(form.stems) >= FACT_WORDS_MIN]
    if not forms:
        return
    sources = Sources(events, prior, touches=_anything, mentions=_anything)
    lines = plain(draft).splitlines()
    told = [passage for passage in passages(draft) if not passage.bridge]
    for fact, form in forms:
        judged = [claim for passage in told if (claim := _on_fact(fact, form, passage, lines, sources)) is not None]
        if judged:
            yield max(judged, key=lambda claim: claim.status not in CERTIFIED)


def _on_fact(
    fact: Anchor, form: Statement, passage: Passage, lines: Sequence[str], sources: Sources
) -> JudgedClaim | None:
    said = statement(passage.text)
    if says_the_same(form, said):
        same = passage.text.rstrip(".") == fact.text.strip().rstrip(".")
        status, reason = (ClaimStatus.PRESERVED if same else ClaimStatus.PARAPHRASED), ""
    else:
        near = nearness(form, said)
        found = difference(form, said, passage.text, near)
        if found is None or not found.sure or found.broad or near < AGAINST_MIN:
            return None
        of_the_rule = words(passage.text) & LIMIT_WORDS - words(fact.text)
        if of_the_rule or _quoted(fact, passage, lines, sources):
            return None  # what is said of a rule as such ("the freeze may be lifted") is read by `rules.claims`
        status, reason = found.status, found.reason
    return JudgedClaim(
        claim=fact.text,
        status=status,
        reason=reason,
        sentence=passage.text,
        line=passage.line,
        fact=f"{fact.key.kind} {fact.key.subject}",
    )


def _quoted(fact: Anchor, passage: Passage, lines: Sequence[str], sources: Sources) -> bool:
    """Tell whether a passage, or each of the lines that were read as one, stands verbatim in a source; what is cut out
    of the fact itself ("delete the database" of "never delete the database") is no quote.
    """
    said = bare(fact.text)

    def is_another(line: str) -> bool:
        return said not in line

    own = sentences("\n".join(lines[passage.line - 1 : passage.through]))
    return sources.quoted(Sentence(text=passage.text), 0, is_another) or (
        passage.line < passage.through and all(sources.quoted(line, 0, is_another) for line in own)
    )


def _anything(_: str) -> bool:
    return True


def claims_that_cite(claims: Sequence[CitedClaim], events: Sequence[SourceEvent]) -> Iterator[JudgedClaim]:
    """Yield the verdict on each sentence that cites events."""
    covered = {event.seq: event for event in events}
    for claim in claims:
        status, reason, sentence = _cited(claim, covered)
        yield JudgedClaim(claim=claim.text, status=status, reason=reason, sentence=sentence)


def _cited(claim: CitedClaim, covered: Mapping[int, SourceEvent]) -> tuple[ClaimStatus, str, str]:
    missing = [seq for seq in claim.seqs if seq not in covered]
    if missing:
        return ClaimStatus.INVENTED, f"event {missing[0]} is none of those that were shown", ""
    if not claim.seqs:
        return ClaimStatus.UNVERIFIABLE, "it cites no event", ""
    said = statement(" ".join(claim.text.split()))
    cited = [covered[seq] for seq in claim.seqs[:CITED_EVENTS_MAX]]
    told = [passage for event in cited for passage in passages(event.text)]
    forms = [statement(passage.text) for passage in told]
    for passage, form in zip(told, forms, strict=True):
        if passage.text.rstrip(".") == claim.text.strip().rstrip("."):
            return ClaimStatus.PRESERVED, "", passage.text
        if says_the_same(form, said):
            return ClaimStatus.PARAPHRASED, "", passage.text
    content = said.stems | said.values
    known = frozenset().union(*(form.stems | form.values for form in forms)) | _named_by(cited)
    if content and len(content & known) < SPOKEN_OF_MIN * len(content):
        return ClaimStatus.INVENTED, "the events that it cites do not speak of it", ""
    against = [
        (passage, found)
        for passage, form in zip(told, forms, strict=True)
        if len(form.stems) >= FACT_WORDS_MIN and nearness(form, said) >= NEAR_MIN
        for found in [_surely(form, said, claim.text, known)]
    ]
    if against and all(found is not None for _, found in against):
        passage, worst = against[0]
        if worst is not None:
            return worst.status, worst.reason, passage.text
    return ClaimStatus.UNVERIFIABLE, "whether the events say so can't be told", ""


def _surely(form: Statement, said: Statement, text: str, known: frozenset[str]) -> Difference | None:
    """Return how a sentence differs from a source, where it surely does; not by a figure that the events hold."""
    near = nearness(form, said)
    found = difference(form, said, text, near)
    if found is None or not found.sure or near < AGAINST_MIN:
        return None
    return None if found.status is ClaimStatus.MUTATED and said.values and said.values <= known else found


def _named_by(events: Iterable[SourceEvent]) -> frozenset[str]:
    """Return the words by which events are spoken of besides those of their texts."""
    return frozenset(
        word
        for event in events
        for name in (event.actor, event.tool, event.subject, event.kind.value)
        if name
        for word in statement(name).stems | statement(name).values
    )


def events_invented(draft: str, events: Sequence[SourceEvent], prior: Sequence[str]) -> Iterator[str]:
    """Yield the lines that carry the label or the number of an event that was not shown, and are no quote; and those
    that put into the mouth of an event that states a fact what it does not say.
    """
    if not events:
        return
    shown = {event.seq: event for event in events}
    stated: dict[int, str] = {}  # their words, by seq
    for line in draft.splitlines():
        label = LABEL.match(line)
        if label and label[3] and _misquotes(line, label.end(), label[3], shown.get(int(label[1])), stated):
            yield line
            continue
        named = [label[1]] if label else _NAMED_EVENT.findall(line)
        unknown = [number for number in named if int(number) not in shown]
        known_before = any(f"[{number}]" in text for number in unknown for text in prior)
        if unknown and not known_before and not any(line.strip() in text for text in _texts(events, prior)):
            yield line


def _misquotes(line: str, at: int, kind: str, event: SourceEvent | None, stated: dict[int, str]) -> bool:
    """Tell whether a line wears the label of an event that states a fact, and is no excerpt of such an event: by its
    words from `at`, in order, since marks and line ends are lost where an excerpt is put into one line.
    """
    if event is None or not {kind, event.kind.value} & _STATING:
        return False
    if kind != event.kind.value:
        return kind != EventKind.APPROVAL  # that is told by `rules.claims`
    if event.seq not in stated:
        stated[event.seq] = _in_words(event.text)
    return not all(_in_words(part) in stated[event.seq] for part in _CUT.split(plain(line[at:])))


def _in_words(text: str) -> str:
    return " ".join(_WORD.findall(plain(text).casefold()))


def _texts(events: Sequence[SourceEvent], prior: Sequence[str]) -> Iterator[str]:
    yield from prior
    for event in events:
        yield event.text
