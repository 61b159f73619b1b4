"""A statement as it is compared with others: its stems, and its values by shape.

A value is a token that names or measures something: it holds a digit or a sign (`$500`, `A-9`, `src/x.py`), is a date,
a day, or a name in the midst of a sentence. Its *shape* is what remains when runs of letters and digits are one each.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from strandline.rules.wording import STOPWORDS, stem, word_set

STATEMENT_CHARS_MAX: Final = 240
STATEMENT_WORDS_MIN: Final = 3

HEADING: Final = re.compile(r"[A-Z][A-Z _-]{1,30}: ")
"""What says of a line, in capitals, what kind of statement it is: `FACT: `."""

SENTENCE_GAP: Final = re.compile(r"(?<=[^\W_]{2}[.!?])[ \t]+(?=[\"'(\[`*]*[^\W\da-z_])|(?<=[。！？])")
"""What stands between two sentences of a line."""

_TOKEN = re.compile(r"[$€£]?\w(?:[\w./:@%+'’-]*[\w%])?|[.!?:]+(?=\s)")
_HEX = re.compile(r"(?=.*\d)[0-9a-f]{7,40}")
_RUNS = ((re.compile(r"[A-Z]+"), "A"), (re.compile(r"[a-z]+"), "a"), (re.compile(r"\d+"), "9"))
_DATES = frozenset({"9-9-9", "9/9/9", "9.9.9"})
_POSSESSIVE = re.compile(r"['’]s$")
_TITLE = re.compile(r"[A-Z]\w*[a-z]\w*")

_NEWS = word_set(
    "now update updated updates changed changes moved moves instead actually correction corrected wrong switched"
    " renamed rotated new latest anymore"
)
_UNSURE = word_set(
    "if maybe perhaps might could would suppose propose proposed proposal consider considering option possibly"
    " probably think guess unless whether proposes proposing suggest suggests suggested suggestion recommends"
    " recommended"
)
_LINKS = word_set("is are was were be has have had at to belongs")  # by which a statement says what something is
_IS = word_set("is are was were")
_BESIDE = word_set("also another second additional additionally besides")
_SINGLE = word_set("next current currently status progress state")
_RULES = word_set("never always must only not no keep requires don't")
_NOT = word_set("not no isn't wasn't never")
_LIGHT = STOPWORDS | word_set(
    "never always ever must only new current currently old previous instead update updated user please want wants keep"
    " use used using make be do does did done let ensure day days week weeks month months today tomorrow yesterday"
    " without within under above below past need needs require requires no"
)
_DAYS = word_set("monday tuesday wednesday thursday friday saturday sunday")
_MONTHS = word_set(
    "january february march april may june july august september october november december jan feb mar apr jun jul aug"
    " sep sept oct nov dec"
)


class Statement(NamedTuple):
    """A statement as it is compared."""

    text: str
    head: str  # what stands in capitals before it
    words: tuple[str, ...]  # in order: stems, light words as they are, each value as its shape
    values: frozenset[tuple[str, str]]  # shape and text
    stems: frozenset[str]  # of the words that carry meaning
    said: frozenset[str]  # its words in lower case
    modified: Mapping[str, str]  # from a stem to the one right before it

    @property
    def shapes(self) -> frozenset[str]:
        """The shapes of its values."""
        return frozenset(shape for shape, _ in self.values)

    @property
    def news(self) -> bool:
        """It says that something changed."""
        return not self.said.isdisjoint(_NEWS)

    @property
    def stands_alone(self) -> bool:
        """It says something for sure, and not beside or against something else."""
        if not self.said.isdisjoint(_UNSURE | _BESIDE):
            return False
        shapes = self.shapes
        return not any(
            word in _NOT and after in shapes for word, after in zip(self.words, self.words[1:], strict=False)
        )

    @property
    def states(self) -> bool:
        """It says that something is so: no request, no story."""
        return not self.said.isdisjoint(_IS) and self.said.isdisjoint(_UNSURE)

    @property
    def rules(self) -> bool:
        """It says what is to be, or not to be, from now on."""
        return not self.said.isdisjoint(_RULES)

    @property
    def single(self) -> frozenset[str]:
        """Its words for what there is only one of: what is next, what is current."""
        return _SINGLE & self.said

    @property
    def tells(self) -> bool:
        """Its first value is what it says of something: "the cap is 3", not "step 3 is done"."""
        at = self._first_value()
        return at > 0 and not _LINKS.isdisjoint(self.words[:at])

    @property
    def names(self) -> bool:
        """Its first value is what it speaks of: "step 3 is done"."""
        at = self._first_value()
        return at >= 0 and not self.tells and not _LINKS.isdisjoint(self.words[at + 1 : at + 3])

    def _first_value(self) -> int:
        shapes = self.shapes
        return next((at for at, word in enumerate(self.words) if word in shapes), -1)


def read_statement(text: str, head: str = "") -> Statement | None:
    """Return a statement as it is compared; None where it is none: a question, too long, too short.

    `text` is a sentence without its heading, `head`.
    """
    if len(text) > STATEMENT_CHARS_MAX or text.rstrip().endswith("?"):
        return None
    words: list[str] = []
    values: set[tuple[str, str]] = set()
    stems: set[str] = set()
    said: set[str] = set()
    modified: dict[str, str] = {}
    before = ""  # the stem right before
    opens = True  # a sentence begins
    tokens = _TOKEN.findall(text)
    for token, following in zip(tokens, [*tokens[1:], ""], strict=False):
        if token[0] in ".!?:":
            opens, before = token[0] != ":", ""
            continue
        plain = _POSSESSIVE.sub("", token)
        low = plain.lower()
        shape = _shape(plain, opens=opens and not _TITLE.fullmatch(following))
        opens = False
        said.add(low)
        if shape:
            values.add((shape, low))
        if shape or low in _LIGHT:
            words.append(shape or low)
            before = ""
            continue
        for root in map(stem, low.split("-")):
            if before:
                modified.setdefault(root, before)
            stems.add(root)
            words.append(root)
            before = root
    if len(words) < STATEMENT_WORDS_MIN:
        return None
    return Statement(text, head, tuple(words), frozenset(values), frozenset(stems), frozenset(said), modified)


def _shape(token: str, *, opens: bool) -> str:
    """Return the shape of a value, "" of a word; `opens`: its capital is that of a sentence."""
    if _HEX.fullmatch(token):
        return "hex"
    if any(map(str.isdigit, token)) or not token.replace("-", "").replace("'", "").isalpha():
        for run, sign in _RUNS:
            token = run.sub(sign, token)
        return "date" if token in _DATES else token
    low = token.lower()
    if low in _DAYS:
        return "day"
    if low in _MONTHS and token[0].isupper() and not (opens and low in {"may", "march"}):
        return "date"
    return "Aa" if _TITLE.fullmatch(token) and not opens else ""
