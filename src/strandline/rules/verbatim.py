"""Does a reference stand verbatim in a text? The one answer to that question, for I9, I10 and I16.

A substring is not enough: `$500` is a substring of `$5000`, and `/a/b` of `/a/b/c`. A reference *stands* in a text
when at least one occurrence of it is not continued by its neighbours on either side. One that continues it is

1. a word character (a letter, a digit or `_`), whatever the reference's own edge is;
2. a connector (`.` `-` `/` `\\` `@` `~`) that has a word character beyond it;
3. a connector, where the reference's own edge is a connector too, so that both form one run (`/a/b` in `~/a/b`);
   only the single full stop after it that ends a sentence is no part of that run;
4. `,` or `:` between two decimal digits;
5. `$`, `€` or `£` directly left of a decimal digit, or `%` directly right of one.

Everything else (space, quote, bracket, other punctuation, either end of the text) ends a token and continues nothing.
The empty reference never stands.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

CONNECTORS: Final = "./\\@~-"
DIGIT_JOINERS: Final = ",:"
MONEY_SIGNS: Final = "$€£"
PERCENT: Final = "%"

_WORD_RUN: Final = re.compile(r"\w+")
_MAY_CONTINUE: Final = frozenset(CONNECTORS + DIGIT_JOINERS + MONEY_SIGNS + PERCENT)


def stands_verbatim(ref: str, text: str) -> bool:
    """Tell whether `ref` occurs in `text` as a token of its own, by the rule of this module (I9, I16)."""
    return first_standing(ref, text) is not None


def first_standing(ref: str, text: str) -> int | None:
    """Return where `ref` first occurs in `text` as a token of its own, or None."""
    if not ref:
        return None
    start = text.find(ref)
    while start >= 0:
        if stands_at(text, start, start + len(ref)):
            return start
        start = text.find(ref, start + 1)
    return None


def verbatim_subset(refs: Iterable[str], text: str) -> set[str]:
    """Return those of `refs` that stand verbatim in `text`; the same answer as `stands_verbatim` for each.

    By rule 1 each run of word characters in a standing reference is a whole run of the text, so an index of the text's
    runs leaves only the places of the reference's rarest run to look at. Made for tens of thousands of references.
    """
    places: dict[str, list[int]] = {}
    for run in _WORD_RUN.finditer(text):
        places.setdefault(run.group(), []).append(run.start())
    return {ref for ref in refs if _stands_by_index(ref, text, places)}


def stands_at(text: str, start: int, end: int) -> bool:
    """Tell whether neither neighbour of the non-empty span `text[start:end]` continues it."""
    if start == 0 and end == len(text):
        return True
    if start > 0:
        first, near = text[start], text[start - 1]
        if near in MONEY_SIGNS and first.isdecimal():
            return False
        if near in CONNECTORS and first in CONNECTORS:
            return False
        if _continues(first, near, text[start - 2] if start > 1 else ""):
            return False
    if end < len(text):
        last, near = text[end - 1], text[end]
        beyond = text[end + 1] if end + 1 < len(text) else ""
        if near == PERCENT and last.isdecimal():
            return False
        if near in CONNECTORS and last in CONNECTORS and not _ends_sentence(near, beyond):
            return False
        if _continues(last, near, beyond):
            return False
    return True


def ends_every_token(char: str) -> bool:
    """Tell whether a character continues nothing, whatever stands beside it: a text may be cut there."""
    return not _is_word(char) and char not in _MAY_CONTINUE


def _continues(edge: str, near: str, beyond: str) -> bool:
    """Apply rules 1, 2 and 4, which are the same on both sides; `beyond` is empty at the end of the text."""
    if _is_word(near):
        return True
    if near in CONNECTORS:
        return _is_word(beyond)
    return near in DIGIT_JOINERS and edge.isdecimal() and beyond.isdecimal()


def _ends_sentence(near: str, beyond: str) -> bool:
    return near == "." and not _is_word(beyond) and (not beyond or beyond not in CONNECTORS)


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_"


def _stands_by_index(ref: str, text: str, places: dict[str, list[int]]) -> bool:
    rarest: list[int] | None = None
    offset = 0
    for run in _WORD_RUN.finditer(ref):
        starts = places.get(run.group())
        if starts is None:
            return False
        if rarest is None or len(starts) < len(rarest):
            rarest, offset = starts, run.start()
    if rarest is None:  # punctuation only: there is no run to look up
        return stands_verbatim(ref, text)
    return any(
        at >= offset and text.startswith(ref, at - offset) and stands_at(text, at - offset, at - offset + len(ref))
        for at in rarest
    )
