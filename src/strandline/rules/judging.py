"""What became of a fact in a summary: the verdict per claim (C13).

A fact is *preserved* where it stands verbatim, on token boundaries, as a statement of its own; *paraphrased* where a
sentence provably says the same (`rules.statements`). Neither counts where something takes it back: the words beside it
("we dropped the idea that …"), its heading ("Obsolete rules:"), the sentence next to it ("This no longer applies."), or
any other sentence that says the opposite, names another value, or lifts it. What is left is told by how the nearest
sentence differs: weakened, mutated, contradicted, unverifiable; dropped where no sentence is near.

Nothing is certified that can't be told: a sentence that is not understood refuses, and never accepts.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from strandline.model.judgement import ClaimStatus, JudgedClaim, Judgement
from strandline.rules.differences import CANT_TELL, Difference, difference, lifts, nearness, sweeps
from strandline.rules.passages import Passage, passages
from strandline.rules.statement_words import HEDGES, LABELS, PREPOSITIONS, TAKES_BACK
from strandline.rules.statements import Statement, opened, says_the_same, statement
from strandline.rules.values import tokens
from strandline.rules.verbatim import stands_at
from strandline.rules.wording import one_line, plain

NEIGHBOURS: Final = 2  # sentences behind a statement in which "this" or "it" may mean it
REMARK_WORDS_MAX: Final = 4  # a shorter sentence has no subject of its own: "(outdated)"
NEAR_MIN: Final = 0.5  # of a fact's content words: a sentence with fewer of them does not speak of it
AGAINST_MIN: Final = 2 / 3  # from here on a sentence elsewhere that differs speaks against a fact that stands

_MEANS_IT: Final = re.compile(
    r"\b(?:this|that|it|these|those|they|the (?:above|former|latter|rule|constraint|requirement|restriction|decision"
    r"|statement|previous|preceding|last|first)|above|aforementioned|both)\b",
    re.IGNORECASE,
)
_MEANS_NEXT: Final = re.compile(r"\b(?:following|next|below)\b", re.IGNORECASE)
_GOES_ON: Final = re.compile(
    r"\s*(?:[,;—–-]+|\()\s*(?:and|so|because|since|which is why|see|event|seq|stated|said)\b", re.IGNORECASE
)
_ANNOUNCES: Final = re.compile(r"(?::|;|\bthat|—)[\s\"'(\[{|«]*$", re.IGNORECASE)
_NUMBERED: Final = re.compile(r"\(?\d{1,3}[.)]\s*$")
_CLOSED: Final = re.compile(r"[\s.!;,:\"')\]}|»]*$")
_OPENED: Final = re.compile(r"[\s\"'(\[{|«]*$")


def judge_facts(facts: Sequence[str], summary: str, tail: Sequence[str] = ()) -> Judgement:
    """Return what became of each fact in a summary and the tail behind it (C13).

    Args:
        facts: statements that must hold for the reader, one or a few sentences each.
        summary: the text that is judged.
        tail: the texts behind it, verbatim events: what stands there need not stand in the summary.
    """
    texts = [_Text(summary), *(_Text(text, in_tail=True) for text in tail)]
    return Judgement(claims=tuple(_judged(fact, texts) for fact in facts))


class _Text:
    """One text, read once for all facts."""

    def __init__(self, text: str, *, in_tail: bool = False) -> None:
        self.in_tail = in_tail
        self.passages = list(passages(text))

    @cached_property
    def statements(self) -> list[Statement]:
        """The form of each passage."""
        return [statement(passage.text) for passage in self.passages]

    @cached_property
    def _by_word(self) -> dict[str, list[int]]:
        places: dict[str, list[int]] = {}
        for at, said in enumerate(self.statements):
            for word in said.stems | said.values:
                places.setdefault(word, []).append(at)
        return places

    @cached_property
    def _sweeping(self) -> list[int]:
        return [at for at, passage in enumerate(self.passages) if sweeps(passage.text)]

    def speaking_of(self, fact: Statement) -> list[int]:
        """Return the passages that share a word or a value with a fact, or take back everything, in order."""
        found = set(self._sweeping)
        for word in fact.stems | fact.values:
            found.update(self._by_word.get(word, ()))
        return sorted(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """Where a fact, or one sentence of it, stands."""

    text: _Text
    at: int  # the passage
    status: ClaimStatus

    def holds(self, text: _Text, passage: Passage) -> bool:
        """Tell whether a passage is part of the lines in which the fact stands."""
        own = self.text.passages[self.at]
        return text is self.text and own.bridge and own.line <= passage.line and passage.through <= own.through


def _judged(fact: str, texts: Sequence[_Text]) -> JudgedClaim:
    parts = [passage.text for passage in passages(fact) if not passage.bridge]
    if not parts:
        return JudgedClaim(claim=fact, status=ClaimStatus.UNVERIFIABLE, reason="the fact states nothing")
    own = _in_a_row(parts, texts) if len(parts) > 1 else frozenset()
    judged = [_part_judged(part, texts, own) for part in parts]
    worst = max(judged, key=lambda claim: _SEVERITY.index(claim.status))
    return JudgedClaim(
        claim=fact,
        status=worst.status,
        reason=worst.reason,
        sentence=worst.sentence,
        line=worst.line,
        in_tail=worst.in_tail,
    )


def _in_a_row(parts: Sequence[str], texts: Sequence[_Text]) -> frozenset[tuple[int, int]]:
    """Return the passages, as (text, place), in which a fact of several sentences stands verbatim, one behind the
    other: none of them speaks against another.
    """
    found: set[tuple[int, int]] = set()
    for number, text in enumerate(texts):
        places = [at for at, passage in enumerate(text.passages) if not passage.bridge]
        said = [_bare(text.passages[at].text) for at in places]
        wanted = [_bare(part) for part in parts]
        for start in range(len(said) - len(wanted) + 1):
            if said[start : start + len(wanted)] == wanted:
                found.update((number, at) for at in places[start : start + len(wanted)])
    return frozenset(found)


_SEVERITY: Final = [
    ClaimStatus.PRESERVED,
    ClaimStatus.PARAPHRASED,
    ClaimStatus.UNVERIFIABLE,
    ClaimStatus.DROPPED,
    ClaimStatus.WEAKENED,
    ClaimStatus.MUTATED,
    ClaimStatus.INVENTED,
    ClaimStatus.CONTRADICTED,
]


def _part_judged(fact: str, texts: Sequence[_Text], own: frozenset[tuple[int, int]]) -> JudgedClaim:
    form = statement(fact)
    found: _Found | None = None
    stands: set[tuple[int, int]] = set()
    against: tuple[_Text, int, Difference] | None = None
    for number, text in enumerate(texts):
        beside_it = {place for of, place in own if of == number}
        for at in text.speaking_of(form):
            status = _stands(fact, form, text.passages[at], text.statements[at])
            if status is None:
                continue
            stands.add((number, at))
            taken = _taken_back(text, at, beside_it)
            if taken:
                against = against or (text, at, Difference(status=ClaimStatus.CONTRADICTED, reason=taken))
            elif found is None or status is ClaimStatus.PRESERVED:
                found = _Found(text=text, at=at, status=status)
    against = against or _against(form, texts, found, stands | own)
    if against is not None:
        return _told(fact, *against)
    if found is not None:
        passage = found.text.passages[found.at]
        return JudgedClaim(
            claim=fact, status=found.status, sentence=passage.text, line=passage.line, in_tail=found.text.in_tail
        )
    nearest = _nearest(form, texts)
    if nearest is None:
        return JudgedClaim(claim=fact, status=ClaimStatus.DROPPED, reason="nothing speaks of it")
    return _told(fact, *nearest)


def _told(fact: str, text: _Text, at: int, found: Difference) -> JudgedClaim:
    passage = text.passages[at]
    return JudgedClaim(
        claim=fact,
        status=found.status,
        reason=found.reason,
        sentence=passage.text,
        line=passage.line,
        in_tail=text.in_tail,
    )


def _stands(fact: str, form: Statement, passage: Passage, said: Statement) -> ClaimStatus | None:
    """Tell whether a passage states the fact, verbatim or in other words. What is asked is not stated."""
    if _asks(passage.text) and not _asks(fact):
        return None
    if _verbatim(fact, passage.text):
        return ClaimStatus.PRESERVED
    return ClaimStatus.PARAPHRASED if says_the_same(form, said) else None


def _asks(sentence: str) -> bool:
    return sentence.rstrip(" \"')").endswith("?")


def _verbatim(fact: str, passage: str) -> bool:
    """Tell whether the fact stands in a passage, asserted, with nothing beside it that takes it back or narrows it."""
    wanted = _bare(fact)
    return bool(wanted) and any(
        stands_at(passage, at, at + len(wanted)) and _opens(passage[:at]) and _closes(passage[at + len(wanted) :])
        for at in _starts(wanted, passage)
    )


def _bare(text: str) -> str:
    return one_line(plain(text).replace("`", "")).rstrip(" .!;,").lstrip(" -•")


def _starts(wanted: str, passage: str) -> Iterator[int]:
    """Yield where it stands; the case of its first letter is that of its place."""
    for first in {wanted[0], wanted[0].lower(), wanted[0].upper()}:
        spelled = first + wanted[1:]
        at = passage.find(spelled)
        while at >= 0:
            yield at
            at = passage.find(spelled, at + 1)


def _opens(before: str) -> bool:
    """Tell whether what stands before a fact, in one sentence with it, only announces it."""
    if "~~" in before:
        return False
    before = _NUMBERED.sub("", before)
    if _OPENED.match(before) or not opened(tokens(before)):
        return True
    if _TAKING.search(before) or not _ANNOUNCES.search(before):
        return False
    said = {token.text for token in tokens(before)}
    first = before.split(maxsplit=1)[0].lower()
    return first not in PREPOSITIONS and bool(said & LABELS) and not said & HEDGES


def _closes(after: str) -> bool:
    if _CLOSED.match(after):
        return True
    return _GOES_ON.match(after) is not None and not _TAKING.search(after)


_TAKING: Final = re.compile(rf"\b(?:{'|'.join(sorted(TAKES_BACK, key=len, reverse=True))})\b|n't\b|\?", re.IGNORECASE)


def _taken_back(text: _Text, at: int, own: Container[int]) -> str:
    """Return what takes a passage back that states a fact: its heading, or a sentence beside it that is none of the
    fact's `own`; "" if nothing does.
    """
    passage = text.passages[at]
    if passage.heading and lifts(passage.heading, strong=False):
        return f"it stands under {passage.heading!r}"
    if "~~" in passage.text:
        return "it is struck out"
    following = enumerate(text.passages[at + 1 : at + 1 + 2 * NEIGHBOURS], start=at + 1)
    behind = [beside for place, beside in following if not beside.bridge and place not in own]
    for beside in behind[:NEIGHBOURS]:
        means_it = _MEANS_IT.search(beside.text) or beside.text.count(" ") < REMARK_WORDS_MAX
        if beside.block == passage.block and means_it and lifts(beside.text, strong=False):
            return f"the sentence behind it takes it back: {beside.text!r}"
    for place, beside in enumerate(text.passages[max(0, at - 1) : at], start=max(0, at - 1)):
        if place in own:
            continue
        means_next = beside.block == passage.block and _MEANS_NEXT.search(beside.text)
        if means_next and lifts(beside.text, strong=False):
            return f"the sentence before it takes it back: {beside.text!r}"
    return ""


def _against(
    form: Statement, texts: Sequence[_Text], standing: _Found | None, stands: Container[tuple[int, int]]
) -> tuple[_Text, int, Difference] | None:
    """Return a passage that says otherwise, wherever it stands; not one in which the fact stands, or a line of it."""
    for number, text in enumerate(texts):
        for at in text.speaking_of(form):
            passage, said = text.passages[at], text.statements[at]
            if passage.bridge or (number, at) in stands or (standing and standing.holds(text, passage)):
                continue
            near = nearness(form, said)
            found = difference(form, said, passage.text, near)
            if found is None or not found.sure or not (near >= AGAINST_MIN or found.broad):
                continue
            if standing or found.status is ClaimStatus.CONTRADICTED:
                return text, at, found
    return None


def _nearest(form: Statement, texts: Sequence[_Text]) -> tuple[_Text, int, Difference] | None:
    best: tuple[float, _Text, int] | None = None
    for text in texts:
        for at in text.speaking_of(form):
            near = nearness(form, text.statements[at])
            if near >= NEAR_MIN and (best is None or near > best[0]):
                best = (near, text, at)
    if best is None:
        return None
    near, text, at = best
    found = difference(form, text.statements[at], text.passages[at].text, near)
    return (
        text,
        at,
        found or Difference(status=ClaimStatus.UNVERIFIABLE, reason=CANT_TELL),
    )
