"""Which of the constraints that were found in a user's messages still stand: the newest word on a matter counts (C11).

A statement ends an earlier one only when it says of what: it shares the words that carry meaning. "Ignore the rules
above, they are obsolete" names no rule, and ends none. Where it speaks of a part only, or for once, both stand, in
order. Declared constraints are not asked here: nothing but a `lift_constraint` ends them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from strandline.model.found import FoundConstraint, FoundState, Said
from strandline.rules.lifting_words import AMOUNT, BESIDE, CHANGES, LIFTS, NO_LIFT, SWAPPED
from strandline.rules.sentence_words import CLAUSE
from strandline.rules.standing_words import ONCE
from strandline.rules.wording import STOPWORDS, stem, word_set

_SAME: Final = 0.75  # of their words, for two statements to be of the same matter
_MOST: Final = 0.66  # of an earlier one's words that a later one names when it speaks of it
_FORCE: Final = word_set(  # how a constraint is put, not what it is about
    "ban bans freeze embargo never always must mustn shall should need needs have please only ever don doesn do"
    " not no any all every each make sure keep mind remember note rule rules constraint constraints restriction"
    " restrictions requirement policy limit from now going forward future instead rather than actually longer more"
    " again anymore allowed permitted forbidden prohibited banned ok okay fine want would like prefer could can"
    " may might let lift lifted drop dropped scrap forget ignore disregard cancel revoke remove obsolete outdated"
    " void moot above earlier previous prior instruction instructions everything anything told said say says"
    " things thing other applies apply holds hold stop feel free go ahead changed change switch new update updated"
    " correction important also too well just really current currently unless without until anyone anybody nobody"
    " someone under circumstances time times rest session point case"
)
_WORD: Final = re.compile(r"[$€£]?\d[\w.,:%-]*\w%?|[$€£]?\d|[^\W\d_][\w'-]*(?:[./_][\w./_-]+)?")
_NEGATIVE: Final = re.compile(
    r"\b(?:never|not|no|nobody|nothing|none|avoid|refrain|without|stop|forbidden|prohibited|banned|off[- ]limits)\b"
    r"|n't\b",
    re.IGNORECASE,
)
_REMEMBER: Final = re.compile(
    r"\b(?:don'?t|do not|never) (?:ever )?forget\b|\bno matter\b|\bno exceptions?\b", re.IGNORECASE
)


@dataclass(slots=True)
class _Matter:
    """What a statement is about."""

    stems: frozenset[str]  # of the words that carry meaning, values aside
    values: frozenset[str]  # numbers, names and other words that another value may take the place of
    negative: bool

    @property
    def all(self) -> frozenset[str]:
        return self.stems | self.values


@dataclass(slots=True)
class _Stands:
    said: Said
    matter: _Matter
    found: FoundConstraint


def resolve(statements: Sequence[Said]) -> list[FoundConstraint]:
    """Return what became of each constraint, in the order of the messages; what only lifts is none."""
    settled: list[_Stands] = []
    for said in statements:
        matter = matter_of(said.text)
        takes_place, only_lifts = _supersede(said, matter, settled)
        binds = (said.sure or said.perhaps) and not only_lifts
        if binds or takes_place:
            found = FoundConstraint(
                name=said.name,
                seq=said.seq,
                text=said.text,
                sure=said.sure or takes_place,
                state=FoundState.STANDING,
                audience=said.audience,
            )
            settled.append(_Stands(said, matter, found))
    return [one.found for one in settled]


def _supersede(said: Said, matter: _Matter, settled: Iterable[_Stands]) -> tuple[bool, bool]:
    """Let a statement end those before it; return whether it stands in the place of one, or beside one, itself; and
    whether it says no more than that one is lifted.
    """
    takes_place = only_lifts = False
    for one in settled:
        if one.found.state is not FoundState.STANDING or one.found.audience != said.audience:
            continue
        if one.said.seq == said.seq and one.said.text == said.text:
            continue
        lifted = _lifts(said, one.matter) if said.lifts else None
        if lifted:
            one.found = replace(one.found, state=FoundState.LIFTED, by=said.name)
            only_lifts = only_lifts or matter.all <= one.matter.all
        elif _replaces(said, matter, one.matter):
            one.found = replace(one.found, state=FoundState.REPLACED, by=said.name)
            takes_place = takes_place or one.found.sure
        takes_place = takes_place or lifted is False
    return takes_place, only_lifts


def matter_of(text: str) -> _Matter:
    """Return what a statement is about."""
    stems, values = set(), set()
    for found in _WORD.finditer(text):
        word = found[0]
        folded = word.casefold().rstrip(".,:")
        if folded in _FORCE or folded in STOPWORDS or folded.split("'")[0] in _FORCE:
            continue
        before = text[: found.start()].rstrip()
        named = word[0].isupper() and before != "" and before[-1] not in ".!?:"
        if named or not word.isalpha():
            values.add(folded)
        else:
            stems.add(stem(stem(folded)))  # answering, answer
    plain = _REMEMBER.sub(" ", text)
    return _Matter(frozenset(stems), frozenset(values), len(_NEGATIVE.findall(plain)) % 2 == 1)


def _replaces(said: Said, new: _Matter, old: _Matter) -> bool:
    """Tell whether a statement says something else of what an earlier one is about, or says it again."""
    if not new.all & old.all:
        return False
    changes = CHANGES.search(said.text) is not None
    if new.negative != old.negative:
        return (said.sure or (said.perhaps and changes)) and _likeness(new.all, old.all) >= _SAME
    if new.all == old.all:
        return said.sure
    if changes and _swapped(said, new, old):
        return True
    if BESIDE.search(said.text):
        return False
    return _other_value(said, new, old) if changes else said.sure and _other_amount(said, new, old)


def _other_amount(said: Said, new: _Matter, old: _Matter) -> bool:
    """Tell whether a statement gives another amount for the same; another number may name another thing."""
    if new.values == old.values or _shapes(new.values) != _shapes(old.values) or not AMOUNT.search(said.text):
        return False
    return bool(old.stems) and _likeness(new.stems, old.stems) >= _SAME


def _other_value(said: Said, new: _Matter, old: _Matter) -> bool:
    """Tell whether a statement that speaks of a change gives another value for the same, also in fewer words."""
    if new.values == old.values or _shapes(new.values) != _shapes(old.values):
        return False
    if new.negative and not AMOUNT.search(said.text):
        return False  # not to touch one thing does not permit to touch another
    alike = bool(old.stems) and _likeness(new.stems, old.stems) >= _SAME
    numbers = any(value[:1] in "$€£" or value[:1].isdigit() for value in new.values)
    fewer = new.stems <= old.stems and bool(new.stems if numbers else new.values & old.values)
    return alike or fewer


def _swapped(said: Said, new: _Matter, old: _Matter) -> bool:
    """Tell whether a statement says what it takes the place of, and that is what the earlier one demands."""
    swapped = SWAPPED.search(said.text)
    if swapped is None:
        return False
    gone = matter_of(swapped["old"]).all
    return bool(gone) and gone <= old.all and bool((new.all - gone) & old.all) and len(old.all - new.all) <= 1


def _lifts(said: Said, old: _Matter) -> bool | None:
    """Tell whether a statement lifts an earlier one: False, a part of it or for once, so that both stand; None, no."""
    cue = LIFTS.search(said.text)
    if cue is None or NO_LIFT.search(said.text):
        return None
    named = matter_of(_clause(said.text, cue.start())).all
    common = named & old.all
    if not common or (len(common) < 2 and len(old.all) > 1 and len(named) > 1):
        return None
    other_scope = named - old.all and old.all - named  # staging, production
    if len(common) >= _MOST * len(old.all) and not other_scope:
        return ONCE.search(said.text) is None
    return False if len(common) >= 2 and len(common) >= _MOST * len(named) else None


def _clause(text: str, at: int) -> str:
    """Return the clause of a sentence in which a place lies."""
    cuts = [0, *(cut.end() for cut in CLAUSE.finditer(text) if cut["bare"] != "and"), len(text)]
    return next(text[start:end] for start, end in pairwise(cuts) if start <= at <= end)


def _likeness(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one | other else 1.0


def _shapes(values: Iterable[str]) -> list[str]:
    """Return the shapes of values, in any order: `$500` and `$1,200` have one shape, `8am` and `$8` two."""
    shapes = (re.sub(r"\d[\d.,:]*", "9", value) for value in values)
    return sorted("name" if shape.isalpha() else shape for shape in shapes)
