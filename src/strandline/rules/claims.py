"""Status claims of a draft against the facts in force (I10): what it calls approved, resolved, lifted or done.

Strandline carries the facts itself, as anchors, so a draft may be silent about them; it may not say otherwise. A claim
is a mention that is asserted (`rules.wording`) and that no source says in the same words (`rules.quotes`). Then:

- an *approval* needs an approval in force that the sentence is about, by the person that it names;
- a *resolution* must not be about an open issue, a *lifting* not about a constraint in force, a *success* not about a
  call whose outcome is unknown.

What a sentence is about is told by words: those of the fact's subject, or enough of those of its text. English only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from strandline.model.event import EventKind, SourceEvent
from strandline.model.register import FactKind, FactState
from strandline.model.summary import Anchor
from strandline.rules.claim_words import (
    ALL_LIFTED,
    ALL_RESOLVED,
    APPROVAL,
    APPROVAL_WORDS,
    GENERIC_HOLDERS,
    GENERIC_SUBJECTS,
    GENERIC_TOOLS,
    IRREGULAR,
    LIFTED,
    LIMIT_WORDS,
    NAMED_BY,
    NOT_NAMES,
    REOPENED,
    RESOLVED,
    REVOKED,
    SUCCEEDED,
    TURNED,
    Topic,
)
from strandline.rules.quotes import Sources
from strandline.rules.wording import Sentence, asserted, clause_at, sentences, stem, words

ARGUMENTS_CHARS_MAX: Final = 4_000  # of a call's arguments that are read for the words by which it may be meant

_TOOL_NOTE: Final = re.compile(r"\btool ([\w.-]{1,200})")
_LEADING_NAME: Final = re.compile(r"\s*([A-Za-z_][\w.-]{0,199})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A sentence of a draft that the facts speak against."""

    rule: str
    sentence: str
    subject: str = ""


def false_claims(
    draft: str, events: Sequence[SourceEvent], prior: Sequence[str], facts: Sequence[Anchor]
) -> Iterator[Claim]:
    """Yield each claim of a plain draft that a fact contradicts, or that no fact backs, in the order of the draft."""
    judge = _Judge(events, facts)
    folded = draft.casefold()
    if f"/{EventKind.APPROVAL}" not in folded and not judge.cued(folded):
        return
    sources = Sources(events, prior, touches=judge.cued, mentions=judge.hears)
    seen: set[Sentence] = set()
    for sentence in sentences(draft):
        if sentence in seen or not (judge.hears(sentence.text) or sentence.kind == EventKind.APPROVAL):
            continue
        seen.add(sentence)
        yield from _of_label(sentence, sources)
        for topic in judge.topics:
            for at in topic.claims(sentence.text):
                found = list(judge.against(topic, sentence, at))
                if found and not sources.quoted(sentence, at, topic.says):
                    yield from found


def _of_label(sentence: Sentence, sources: Sources) -> Iterator[Claim]:
    """Refuse the label of an approval on the number of an event that is none."""
    if sentence.kind == EventKind.APPROVAL and sentence.seq is not None:
        really = sources.kinds.get(sentence.seq, sentence.kind)
        if really != sentence.kind:
            label = f"[{sentence.seq}] …/{sentence.kind}: "
            yield Claim(rule="invented_approval", sentence=label + sentence.text, subject="")


class _Subject:
    """The words by which a sentence is about a fact."""

    def __init__(self, anchor: Anchor) -> None:
        self.anchor = anchor
        self.subject = words(anchor.key.subject)
        self.text = words(anchor.text) | words(anchor.note)
        self.holder = words(anchor.key.granter)
        self.everything = self.subject | self.text | self.holder
        numbers = {word for word in self.subject if not word.isalpha()}
        names = self.subject - numbers
        self._numbers = numbers
        self._names = names
        self._names_min = len(names) if len(names) <= 2 else -(-2 * len(names) // 3)
        self._opaque = not (names - GENERIC_SUBJECTS)

    def named_in(self, said: frozenset[str]) -> bool:
        """Tell whether all numbers and (of three or more) two thirds of the names of the subject are said."""
        if not self.subject or not self._numbers <= said:
            return False
        return len(self._names & said) >= self._names_min

    def touched_by(self, said: frozenset[str]) -> bool:
        """Tell whether all numbers and half of the names of the subject are said."""
        shared = len((self._names - GENERIC_SUBJECTS) & said)
        return self._numbers <= said and shared > 0 and 2 * shared >= len(self._names)

    def meant_by(self, said: frozenset[str]) -> bool:
        """Tell whether the subject is named, or enough words of the text are said.

        Enough are three, and three fifths; where the subject is a mere number, two, and half of the first four.
        """
        if self.named_in(said):
            return True
        known = self.text - GENERIC_SUBJECTS
        shared = len(known & said)
        if self._opaque:
            return shared >= min(2, len(known)) > 0 and 2 * shared >= min(4, len(known))
        return shared >= 3 and 5 * shared >= 3 * len(known)


class _Judge:
    """The facts of one validation, by kind, with their words."""

    def __init__(self, events: Sequence[SourceEvent], facts: Sequence[Anchor]) -> None:
        self._approvals = _subjects(facts, FactKind.APPROVAL)
        self._revocations = _subjects(facts, FactKind.REVOCATION)
        self._issues = _subjects(facts, FactKind.ISSUE)
        self._constraints = _subjects(facts, FactKind.CONSTRAINT)
        self._calls = [
            _Call(anchor, events)
            for anchor in facts
            if anchor.key.kind is FactKind.CALL and anchor.state is FactState.UNKNOWN
        ]
        self.topics = (
            APPROVAL,
            *([RESOLVED] if self._issues else []),
            *([LIFTED] if self._constraints else []),
            *([SUCCEEDED] if self._calls else []),
        )
        actors = {word for event in events for word in words(event.actor)}
        holders = {word for fact in (*self._approvals, *self._revocations) for word in fact.holder}
        self._people = frozenset(actors | holders) - GENERIC_HOLDERS

    def cued(self, folded: str) -> bool:
        """Tell, fast, whether a text in lower case may mention a topic on which there is something to say."""
        return any(topic.cued(folded) for topic in self.topics)

    def hears(self, text: str) -> bool:
        """Tell whether the text mentions a topic on which there is something to say."""
        return any(topic.mentions(text) for topic in self.topics)

    def against(self, topic: Topic, sentence: Sentence, at: int) -> Iterator[Claim]:
        """Yield what speaks against a claim of this topic at this place of the sentence."""
        clause = clause_at(sentence.text, at)
        if topic is APPROVAL:
            yield from self._approval(sentence, clause, at)
        elif topic is RESOLVED:
            if not (REOPENED.search(clause) or TURNED.search(sentence.text, at)):
                everything = bool(ALL_RESOLVED.search(sentence.text))
                yield from _about("open_issue_resolved", sentence, clause, self._issues, everything=everything)
        elif topic is LIFTED:
            yield from self._lifting(sentence, clause, strong=topic.strong(sentence.text, at))
        else:
            for call in self._calls:
                if call.meant_by(clause):
                    yield Claim(rule="unknown_call_succeeded", sentence=sentence.text, subject=call.anchor.key.subject)

    def _lifting(self, sentence: Sentence, clause: str, *, strong: bool) -> Iterator[Claim]:
        """A weak wording ("removed") speaks of a constraint only next to a word for one; both together need less."""
        limits = bool(words(clause) & LIMIT_WORDS)
        if strong or limits:
            everything = bool(ALL_LIFTED.search(sentence.text))
            yield from _about(
                "constraint_lifted",
                sentence,
                clause,
                self._constraints,
                everything=everything,
                touched=strong and limits,
            )

    def _approval(self, sentence: Sentence, clause: str, at: int) -> Iterator[Claim]:
        if any(asserted(sentence.text, found.start()) for found in REVOKED.finditer(sentence.text)):
            return  # it says itself that the approval is gone
        said = words(clause)
        about = said - APPROVAL_WORDS
        if not about:  # "It was approved.": what it speaks of stands before
            said = words(sentence.text) | words(sentence.before)
            about = said - APPROVAL_WORDS
        backing = [fact for fact in self._approvals if fact.named_in(said) or (about and about <= fact.everything)]
        if not backing:
            revoked = next((fact for fact in self._revocations if fact.meant_by(said)), None)
            rule = "revoked_approval_stands" if revoked else "invented_approval"
            subject = revoked.anchor.key.subject if revoked else ""
            yield Claim(rule=rule, sentence=sentence.text, subject=subject)
            return
        named = _named(sentence.text, at, self._people) - frozenset().union(*(fact.subject for fact in backing))
        if named and not any(named & fact.everything or not fact.holder for fact in backing):
            yield Claim(rule="approval_by_another", sentence=sentence.text, subject=backing[0].anchor.key.subject)


class _Call:
    """A call whose outcome is unknown.

    It is meant by its id, by its tool's words where no other call of the tool was answered, or by tool and arguments.
    """

    def __init__(self, anchor: Anchor, events: Sequence[SourceEvent]) -> None:
        self.anchor = anchor
        call = next((event for event in events if event.seq == anchor.seq and event.tool), None)
        told = _TOOL_NOTE.search(anchor.note) or _LEADING_NAME.match(anchor.text)
        name = call.tool if call and call.tool else (told[1] if told else "")
        self._id = anchor.key.subject.casefold()
        self._id_words = words(self._id)
        self._tool = words(name)
        said = anchor.text + " " + (call.text[:ARGUMENTS_CHARS_MAX] if call else "")
        self._arguments = words(said) - self._tool - self._id_words
        answered = {event.call_id for event in events if event.kind is EventKind.TOOL_RESULT} - {anchor.key.subject}
        others = any(event.tool == name and event.call_id in answered for event in events)
        self._by_tool = bool(self._tool - GENERIC_TOOLS) and not others

    def meant_by(self, clause: str) -> bool:
        """Tell whether the clause is about the call."""
        said = words(clause)
        said |= {base for past, base in IRREGULAR.items() if past in said}
        if _stands_alone(self._id, clause.casefold()):
            return True
        if (
            any(word.isalpha() and len(word) > 3 for word in self._id_words - GENERIC_SUBJECTS)
            and self._id_words <= said
        ):
            return True
        if not self._tool or not self._tool <= said:
            return False
        return self._by_tool or len(self._arguments & said) >= (1 if len(self._tool) > 1 else 2)


def _subjects(facts: Iterable[Anchor], kind: FactKind) -> list[_Subject]:
    return [_Subject(anchor) for anchor in facts if anchor.key.kind is kind]


def _about(
    rule: str,
    sentence: Sentence,
    clause: str,
    facts: Iterable[_Subject],
    *,
    everything: bool = False,
    touched: bool = False,
) -> Iterator[Claim]:
    """Yield a claim for each fact that the clause is about; `touched`: half of a subject's words will do."""
    said = words(clause)
    if len(said) <= 1:  # "It is fixed.": what it speaks of stands before
        said |= words(sentence.before)
    for fact in facts:
        if everything or fact.meant_by(said) or (touched and fact.touched_by(said)):
            yield Claim(rule=rule, sentence=sentence.text, subject=fact.anchor.key.subject)


def _named(text: str, at: int, people: frozenset[str]) -> frozenset[str]:
    """Return the stems of the person whom an approval at this place is said to come from; empty: nobody is named."""
    by = NAMED_BY.search(text, at)
    if by:
        name = words(by["name"])
        proper = by["name"][0].isupper() or by["name"][0] == "@"
        if not name & GENERIC_HOLDERS and (name & people or (proper and not name & NOT_NAMES)):
            return name
        return frozenset()
    before = text[max(0, at - 60) : at].replace("'s", " ").split()[-2:]
    who = before[-1] if before else ""  # "Dora approved the deploy": a name, though she said nothing
    if who[:1].isupper() and who.isalpha() and not words(who) & (GENERIC_HOLDERS | NOT_NAMES) and len(words(who)) == 1:
        return words(who)
    return frozenset(stem(word.strip("@:,.()").casefold()) for word in before) & people


def _stands_alone(name: str, text: str) -> bool:
    return bool(name) and re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text) is not None
