"""Find standing constraints that a user states in a message and nobody declared (C11). Pure, English, by rules.

A sentence is judged clause by clause by the families of `rules.standing_words`. What is sure is pinned; what may have
been meant for once only is a candidate. A report ("I never push"), a question and what was pasted are neither. Whether
a later message lifted or replaced one is decided where they are read, by `rules.superseding`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from strandline.limits import FOUND_PER_EVENT_MAX, USER_SENTENCES_MAX
from strandline.model.event import Found
from strandline.rules.lifting_words import CHANGES, LIFTS, NEW_VALUE
from strandline.rules.sentence_words import CLAUSE, LEAD, QUESTION, REQUEST, SUBJECT, TAG_QUESTION
from strandline.rules.standing_words import FAMILIES, HEDGE, ONCE, RULE_HEADING
from strandline.rules.user_prose import user_sentences

_WORDS_MIN: Final = 2
_BY_CUE: Final = {  # the numbers of the families that a cue may mean
    cue: [number for number, family in enumerate(FAMILIES) if cue in family.cues]
    for cue in dict.fromkeys(cue for family in FAMILIES for cue in family.cues)
}


def find_standing(text: str) -> tuple[Found, ...]:
    """Return what a user's message states that may bind later turns, or lift what does, in order. Of more than
    FOUND_PER_EVENT_MAX the sure ones are taken first.
    """
    found: list[Found] = []
    through = 0
    for sentence in islice(user_sentences(text), USER_SENTENCES_MAX):
        if sentence.start < through:
            continue
        if sentence.heading:
            heading = sentence.text.split("\n", 1)[0].rstrip()
            if RULE_HEADING.search(heading):
                found.append(Found(sentence.start, sentence.end, sure=True))
                through = sentence.end
            continue
        said = demand_of(sentence.text)
        if said is None or len(said.split()) < _WORDS_MIN:
            continue
        sure, perhaps = binds(said)
        lifts = may_end_another(said)
        if sure or perhaps or lifts:
            found.append(Found(sentence.start, sentence.end, sure, perhaps, lifts))
    if len(found) > FOUND_PER_EVENT_MAX:
        first = sorted(found, key=lambda one: (not one.sure, not one.perhaps, one.start))[:FOUND_PER_EVENT_MAX]
        found = sorted(first)
    return tuple(found)


def binds(said: str) -> tuple[bool, bool]:
    """Tell of what a sentence demands whether it binds later turns: surely, or else perhaps."""
    folded = said.casefold()
    cued = {number for cue, numbers in _BY_CUE.items() if cue in folded for number in numbers}
    starts = sorted(set(_clause_starts(said))) if cued else ()
    families = (FAMILIES[number] for number in sorted(cued))  # sure ones come first
    found = next((family for family in families if family.states(said, starts)), None)
    sure = found is not None and found.sure and not ONCE.search(said) and not HEDGE.search(said)
    return sure, found is not None and not sure


def may_end_another(said: str) -> bool:
    """Tell whether what a sentence demands may lift an earlier constraint, or put another value in its place."""
    return LIFTS.search(said) is not None or bool(CHANGES.search(said) and NEW_VALUE.search(said))


def demand_of(sentence: str) -> str | None:
    """Return what a sentence demands; a polite question is a demand, any other one is None."""
    said = sentence.rstrip(" \"')")
    if said.endswith("?"):
        tagged = TAG_QUESTION.search(said)
        if tagged and tagged.start() > 0:
            return said[: tagged.start()]
        request = REQUEST.match(said)
        if request is None:
            return None
        rest = request["rest"] or f"make sure you {request['mind']}"
        return f"{'do ' if rest.startswith('not ') else ''}{rest}".rstrip("? ")
    if QUESTION.match(said):
        return None
    return said.rstrip(". ")


def _clause_starts(said: str) -> Iterator[int]:
    """Yield the places where a clause says what it says: behind its openers."""
    cuts = (cut for cut in CLAUSE.finditer(said) if not (cut["bare"] and SUBJECT.search(said, 0, cut.start())))
    for begin in (0, *(cut.end() for cut in cuts)):
        lead = LEAD.match(said, begin)
        at = lead.end() if lead else begin
        yield at
        if at != begin:
            yield begin
