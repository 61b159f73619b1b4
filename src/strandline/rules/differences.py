"""How a sentence that speaks of a fact differs from it: the diagnosis behind a verdict (C13).

What is *sure* speaks against the fact also where that stands elsewhere: the opposite, a permission of what is
forbidden, a lifting, another figure for the same thing. All else only explains why a sentence does not certify it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from strandline.model.judgement import ClaimStatus
from strandline.rules.claim_words import ALL_LIFTED, LIFTED, LIMIT_WORDS
from strandline.rules.statement_words import (
    ANTONYMS,
    BINDING,
    GUARDS,
    HEDGES,
    MUST,
    MUST_NOT,
    NEGATIVE,
    NOT_NEEDED,
    PERMITTING,
    STATUSES,
)
from strandline.rules.statements import COMING, THEN, Statement
from strandline.rules.values import UNIT_WORDS
from strandline.rules.wording import stem, words

SAME_THING_MIN: Final = 0.75  # of the content words: then another figure is one for the same thing
NEAR_ENOUGH: Final = 0.5
CANT_TELL: Final = "whether it says the same can't be told"
UNITS: Final = frozenset(stem(word) for word in UNIT_WORDS)
VALUE_PREFIX: Final = re.compile(r"[A-Za-z]+(?=[-_#]?\d)")

_NOT_IN_FORCE: Final = re.compile(
    r"\b(?:no longer|any ?more|lifted|waived|obsolete|rescinded|relaxed|superseded|repealed|outdated|overrid\w+"
    r"|overrul\w+"
    r"|void(?:ed)?|moot|ignored?|disregard\w*|forget|dropped|withdrawn|withdrew|revoked|cancell?ed|expired|ended"
    r"|suspended|paused|reversed|rejected|denied|wrong|false|untrue|incorrect|mistaken|mistake|invalid|retracted"
    r"|taken back|took (?:it|this|that) back|changed (?:his|her|their) minds?|abandoned|discarded|hypothetical\w*"
    r"|examples?|proposals?|proposed|suggested|ideas?|considered|unconfirmed|exceptions?|exempt\w*|unless|optional"
    r"|scratch|never mind|allow\w*|permit\w*|correction|actually|kidding|joking|opposite|skip(?:ped)?|decided against"
    r"|make (?:that|it)|nope"
    r"|replaced|undecided|not decided|to be decided|former(?:ly)?|deprecated|legacy|historical|stale|doubt\w*"
    r"|not (?:true|apply|valid|in force|in effect|the case|so|correct|binding|hold|agreed|meant|final|certain|anymore)"
    r"|n't (?:true|apply|valid|the case|so|correct|binding|hold|agreed|meant|final|certain)"
    r"|never (?:agreed|said|true|applied|happened|decided)|only (?:applie[sd]|holds|counts|until|for|on|in|if|when)"
    r"|applies only|(?:old|previous|earlier|past|prior) (?:rules?|constraints?|requirements?|decisions?|instructions?"
    r"|polic\w+|limits?|values?|settings?|plans?|versions?|facts?)|(?:open )?questions?|was (?:before|then)|used to)\b",
    re.IGNORECASE,
)
_EVERYTHING: Final = re.compile(
    r"\b(?:ignore|disregard|forget|drop|skip) (?:all|any|every|everything|the)\b[^.;]{0,40}\b(?:above|previous"
    r"|earlier|prior|before|rules"
    r"|constraints|instructions|restrictions)\b"
    r"|\b(?:all|every|none of the) (?:of the )?(?:above|previous|earlier|prior|these"
    r"|those)\b[^.;]{0,60}\b(?:obsolete|void|lifted|outdated"
    r"|appl\w+|false|wrong|invalid|no longer|hold|holds)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What a sentence does to a fact."""

    status: ClaimStatus
    reason: str
    sure: bool = False  # it speaks against the fact wherever that stands
    broad: bool = False  # it takes back more than one fact, or a rule by its name: half of the words will do


def nearness(fact: Statement, said: Statement) -> float:
    """Return which part of the fact's content words a sentence has: 0..1. Statuses that differ are left out."""
    stems = fact.stems
    if fact.times and stems & STATUSES - said.stems and said.stems & STATUSES - fact.stems and stems - STATUSES:
        stems = stems - STATUSES
    if not stems:
        return float(bool(fact.values & said.values))
    return len(stems & said.stems) / len(stems)


def sweeps(text: str) -> bool:
    """Tell whether a sentence takes back all rules at once, by name of none."""
    return ALL_LIFTED.search(text) is not None or _EVERYTHING.search(text) is not None


def lifts(text: str, *, strong: bool = True) -> bool:
    """Tell whether a sentence says that something no longer holds; not `strong`: or holds in part, or is in doubt."""
    return LIFTED.says(text) if strong else _NOT_IN_FORCE.search(text) is not None


def difference(fact: Statement, said: Statement, text: str, near: float) -> Difference | None:
    """Return how a sentence differs from a fact, or None where it does not speak of it."""
    binds = bool(BINDING & set(fact.force)) or fact.ordered
    if binds and sweeps(text):
        return _against("it takes back all rules at once", broad=True)
    if near < NEAR_ENOUGH:
        return None
    if not lifts_itself(fact) and _lifted(text):
        return _against("it says that this no longer holds", broad=True)
    return _of_an_order(fact, said, near) if binds else _of_a_state(fact, said, near)


def lifts_itself(fact: Statement) -> bool:
    """Tell whether the fact is itself that something ended."""
    return bool(fact.words & {"lifted", "obsolete", "longer", "waived", "revoked", "void", "expired", "cancelled"})


def _lifted(text: str) -> bool:
    """Tell whether a sentence lifts something: a weak wording ("dropped") counts next to a word for a rule."""
    names_a_rule = bool(words(text) & LIMIT_WORDS)
    return any(names_a_rule or LIFTED.strong(text, at) for at in LIFTED.claims(text))


def _against(reason: str, *, broad: bool = False) -> Difference:
    return Difference(status=ClaimStatus.CONTRADICTED, reason=reason, sure=True, broad=broad)


def _of_an_order(fact: Statement, said: Statement, near: float) -> Difference | None:
    """Compare what must be, or must not be, with a sentence about it."""
    forbids = MUST_NOT in fact.force
    permits = bool(PERMITTING & set(said.force))
    same_values = fact.values <= said.values
    if forbids and permits and not said.negations and same_values:
        return _against("it permits what is forbidden")
    if not forbids and NOT_NEEDED in said.force and same_values:
        return _against("it says that this need not be")
    opposite = (said.force == (MUST,) or (said.ordered and not said.force)) if forbids else MUST_NOT in said.force
    if opposite and same_values and said.negations % 2 != fact.negations % 2 and near >= SAME_THING_MIN:
        return _against("it demands the opposite")
    turned = _turned(fact, said, near)
    if turned:
        return turned
    if said.times and not said.force:
        return None  # it reports what was done, which is no rule
    weaker = said.force != fact.force and not (said.force and set(said.force) <= BINDING)
    if weaker and said.force:
        return Difference(
            status=ClaimStatus.WEAKENED, reason=f"{said.force[0]!r} is less binding", sure=near >= 1 and same_values
        )
    return _of_details(fact, said, near)


def _of_a_state(fact: Statement, said: Statement, near: float) -> Difference | None:
    """Compare what is, was or will be with a sentence about it."""
    turned = _turned(fact, said, near) or _revalued(fact, said, near)
    if turned and turned.sure:
        return turned
    same_values = fact.values <= said.values
    whole = near >= 1 and same_values
    if same_values and fact.negations % 2 != said.negations % 2 and not said.force:
        return Difference(
            status=ClaimStatus.CONTRADICTED, reason="one of the two is negated", sure=whole and said.times == fact.times
        )
    if said.force and said.force != fact.force:
        status = ClaimStatus.CONTRADICTED if set(said.force) & NEGATIVE and not fact.negations else ClaimStatus.WEAKENED
        sure = whole and status is ClaimStatus.CONTRADICTED
        return Difference(status=status, reason=f"it says {said.force[0]!r} of what is", sure=sure)
    replaced = _status_replaced(fact, said)
    if replaced and same_values:
        return Difference(
            status=ClaimStatus.MUTATED, reason=replaced, sure=near >= 1 and len(said.stems - fact.stems) <= 2
        )
    if fact.times != said.times and fact.times and said.times and COMING in fact.times ^ said.times:
        return Difference(
            status=ClaimStatus.MUTATED, reason=f"{_time(fact)} became {_time(said)}", sure=whole and THEN in said.times
        )
    return _of_details(fact, said, near)


def _turned(fact: Statement, said: Statement, near: float) -> Difference | None:
    """Tell whether it is the same but for a negation, or for a preposition that turns it round."""
    if near < 1 or not fact.values <= said.values or said.stems - fact.stems:
        return None
    if fact.negations % 2 != said.negations % 2 and said.times == fact.times:
        return _against("one of the two is negated")
    for name, part in fact.phrases:
        other = ANTONYMS.get(name.partition(" at ")[0])
        if (
            other
            and (name, part) not in said.phrases
            and any(theirs.partition(" at ")[0] == other and words == part for theirs, words in said.phrases)
        ):
            return _against(f"{name!r} became {other!r}")
    return None


def _of_details(fact: Statement, said: Statement, near: float) -> Difference:
    revalued = _revalued(fact, said, near)
    if revalued:
        return revalued
    missing, new = fact.values - said.values, said.values - fact.values
    beyond = said.stems - fact.stems
    lost = (fact.stems - said.stems) | missing
    if lost & UNITS and beyond & UNITS:
        reason = f"{min(lost & UNITS)!r} became {min(beyond & UNITS)!r}"
        return Difference(status=ClaimStatus.MUTATED, reason=reason, sure=near >= SAME_THING_MIN)
    if fact.times != said.times and fact.times and said.times:
        return Difference(status=ClaimStatus.MUTATED, reason=f"{_time(fact)} became {_time(said)}")
    added = (said.words & (HEDGES | GUARDS)) - fact.words
    if added:
        return Difference(status=ClaimStatus.WEAKENED, reason=f"{min(added)!r} is new")
    if not beyond and not new:
        if lost:
            return Difference(status=ClaimStatus.WEAKENED, reason=f"{', '.join(sorted(lost))} got lost")
        return Difference(status=ClaimStatus.UNVERIFIABLE, reason="the same words, in other roles")
    return Difference(status=ClaimStatus.UNVERIFIABLE, reason=CANT_TELL)


def _revalued(fact: Statement, said: Statement, near: float) -> Difference | None:
    """Tell whether a value was replaced by another of its kind."""
    new = sorted(said.values - fact.values)
    for value in sorted(fact.values - said.values):
        instead = next((other for other in new if alike(value, other)), None)
        if instead is not None:
            return Difference(
                status=ClaimStatus.MUTATED,
                reason=f"{value!r} became {instead!r}",
                sure=_is_same_thing(fact, said, value, near),
            )
    return None


def _is_same_thing(fact: Statement, said: Statement, value: str, near: float) -> bool:
    """Tell whether a sentence with another value gives it to the same thing, and is no fact of its own.

    What is done several times has several figures; what is, or must be, has one. Another identifier names another
    thing, unless all else is the same and the identifier is not what the sentence is about.
    """
    if near < SAME_THING_MIN:
        return False
    beyond = len(said.stems - fact.stems)
    if is_figure(value):
        return THEN not in said.times or (near >= 1 and beyond <= 1)
    return near >= 1 and beyond <= 1 and THEN not in said.times and fact.core[:1] != (value,)


def _status_replaced(fact: Statement, said: Statement) -> str:
    was, now = fact.stems & STATUSES - said.stems, said.stems & STATUSES - fact.stems
    return f"{min(was)!r} became {min(now)!r}" if was and now else ""


def _time(statement: Statement) -> str:
    return " and ".join(sorted(statement.times)) or "no time"


def is_figure(value: str) -> bool:
    """Tell a figure (an amount, a date, a version) from an identifier, which names a thing of its own."""
    return value[:1].isdigit() or value[:1] in "$€£-+" or re.fullmatch(r"v\d[\d.]*\w*", value) is not None


def alike(value: str, other: str) -> bool:
    """Tell whether two values could stand for each other: both figures, or names of one form."""
    if is_figure(value) and is_figure(other):
        return True
    if any(mark in value and mark in other for mark in "/@"):
        return True
    prefix, others = VALUE_PREFIX.match(value), VALUE_PREFIX.match(other)
    return prefix is not None and others is not None and prefix[0].lower() == others[0].lower()
