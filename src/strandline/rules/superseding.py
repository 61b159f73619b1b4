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
from strandline.rules.lifting_words import (
    AMOUNT,
    BESIDE,
    CHANGES,
    IN_PART,
    LIFTS,
    NO_LIFT,
    OF_A_RULE,
    QUOTED,
    SCOPE,
    SKIPS,
    SWAPPED,
)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Statement:
    """A statement, taken apart once: it is held against every one before it."""

    said: Said
    stems: frozenset[str]  # of the words that carry meaning, values aside
    values: frozenset[str]  # numbers, names and other words that another value may take the place of
    all: frozenset[str]
    shapes: tuple[str, ...]  # of the values
    negative: bool
    changes: bool  # it speaks of a change
    beside: bool  # it says that something else goes on to hold
    amount: bool
    in_part: bool  # for once, for a case, for a time, or by another's word
    gone: frozenset[str]  # what it takes the place of, where it says so
    lifted: frozenset[str]  # what it speaks of as lifted
    scope: frozenset[str]  # in which it is said to hold
    of_a_rule: bool  # it lifts by calling it a rule
    against: bool  # as `negative`; to skip is not to do


@dataclass(slots=True)
class _Settled:
    statement: _Statement
    found: FoundConstraint


def resolve(statements: Sequence[Said]) -> list[FoundConstraint]:
    """Return what became of each constraint, in the order of the messages; what only lifts is none."""
    settled: list[_Settled] = []
    for said in statements:
        new = _take_apart(said)
        takes_place, only_lifts = _supersede(new, settled)
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
            settled.append(_Settled(new, found))
    return [one.found for one in settled]


def _supersede(new: _Statement, settled: Iterable[_Settled]) -> tuple[bool, bool]:
    """Let a statement end those before it; return whether it stands in the place of one, or beside one, itself; and
    whether it says no more than that one is lifted.
    """
    takes_place = only_lifts = False
    for one in settled:
        old, found = one.statement, one.found
        if new.all.isdisjoint(old.all) or found.state is not FoundState.STANDING:
            continue
        if found.audience != new.said.audience:
            continue
        lifted = _lifts(new, old)
        if lifted:
            one.found = replace(found, state=FoundState.LIFTED, by=new.said.name)
            only_lifts = only_lifts or new.all <= old.all
        elif _replaces(new, old):
            one.found = replace(found, state=FoundState.REPLACED, by=new.said.name)
            takes_place = takes_place or found.sure
        takes_place = takes_place or lifted is False
    return takes_place, only_lifts


# ---------------------------------------------------------------------------------------------- one statement


def _take_apart(said: Said) -> _Statement:
    text = said.text
    stems, values = _matter_of(text)
    own = QUOTED.sub(lambda quoted: " " * len(quoted[0]), text)  # what a page says lifts nothing
    swapped, lift = SWAPPED.search(text), LIFTS.search(own) if said.lifts else None
    negations = len(_NEGATIVE.findall(_REMEMBER.sub(" ", text)))
    return _Statement(
        said=said,
        stems=stems,
        values=values,
        all=stems | values,
        shapes=_shapes(values),
        negative=negations % 2 == 1,
        changes=CHANGES.search(text) is not None,
        beside=BESIDE.search(text) is not None,
        amount=AMOUNT.search(text) is not None,
        in_part=ONCE.search(text) is not None or IN_PART.search(text) is not None,
        gone=frozenset().union(*_matter_of(swapped["old"])) if swapped else frozenset(),
        lifted=(
            frozenset().union(*_matter_of(_clause(text, lift.start())))
            if lift and not NO_LIFT.search(text)
            else frozenset()
        ),
        scope=frozenset().union(*(part for found in SCOPE.finditer(own) for part in _matter_of(found["scope"]))),
        of_a_rule=OF_A_RULE.search(own) is not None,
        against=(negations + len(SKIPS.findall(text))) % 2 == 1,
    )


def _matter_of(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return what a text is about: the stems of its words, and the values among them."""
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
    return frozenset(stems), frozenset(values)


def _shapes(values: Iterable[str]) -> tuple[str, ...]:
    """Return the shapes of values, in any order: `$500` and `$1,200` have one shape, `8am` and `$8` two."""
    shapes = (re.sub(r"\d[\d.,:]*", "9", value) for value in values)
    return tuple(sorted("name" if shape.isalpha() else shape for shape in shapes))


def _clause(text: str, at: int) -> str:
    """Return the clause of a sentence in which a place lies."""
    cuts = [0, *(cut.end() for cut in CLAUSE.finditer(text) if cut["bare"] != "and"), len(text)]
    return next(text[start:end] for start, end in pairwise(cuts) if start <= at <= end)


# ---------------------------------------------------------------------------------------------- two statements


def _replaces(new: _Statement, old: _Statement) -> bool:
    """Tell whether a statement says something else of what an earlier one is about, or says it again."""
    sure = new.said.sure
    if new.negative != old.negative:
        return (sure or (new.said.perhaps and new.changes)) and _likeness(new.all, old.all) >= _SAME
    if new.all == old.all:
        return sure
    if new.changes and _swapped(new, old):
        return True
    if new.beside or new.values == old.values or new.shapes != old.shapes:
        return False
    return _other_value(new, old) if new.changes else sure and new.amount and _same_matter(new, old)


def _same_matter(new: _Statement, old: _Statement) -> bool:
    return bool(old.stems) and _likeness(new.stems, old.stems) >= _SAME


def _other_value(new: _Statement, old: _Statement) -> bool:
    """Tell whether a statement that speaks of a change gives another value for the same, also in fewer words."""
    if new.negative and not new.amount:
        return False  # not to touch one thing does not permit to touch another
    numbers = any(value[:1] in "$€£" or value[:1].isdigit() for value in new.values)
    fewer = new.stems <= old.stems and bool(new.stems if numbers else new.values & old.values)
    return fewer or _same_matter(new, old)


def _swapped(new: _Statement, old: _Statement) -> bool:
    """Tell whether a statement says what it takes the place of, and that is what the earlier one demands."""
    names_it = bool(new.gone) and new.gone <= old.all
    return names_it and bool((new.all - new.gone) & old.all) and len(old.all - new.all) <= 1


def _lifts(new: _Statement, old: _Statement) -> bool | None:
    """Tell whether a statement lifts an earlier one: False, a part of it or for once, so that both stand; None, no."""
    named = new.lifted
    common = named & old.all
    if not common or (len(common) < 2 and len(old.all) > 1 and len(named) > 1):
        return None
    if not new.of_a_rule and new.against == old.against and (new.against or old.all <= new.all):
        return None  # it says it again: "I don't want you to push to main any more"
    other_scope = named - old.all and old.all - named  # staging, production
    if len(common) >= _MOST * len(old.all) and not other_scope:
        return not (new.in_part or new.scope & (named - old.all))
    return False if len(common) >= 2 and len(common) >= _MOST * len(named) else None


def _likeness(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one | other else 1.0
