"""What a search finds: words, what is asked for, and where it stands in a text (C4).

A text is read folded: upper and lower case, wide and narrow forms, composed and decomposed letters are the same. Its
words are runs of letters, digits and `_`; a letter of a script that is written without blanks is a word by itself.
Stores index words; whether an event is a hit is decided here, on its text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import groupby
from typing import Final
from unicodedata import combining, normalize

from strandline.errors import InvalidInputError
from strandline.limits import (
    SEARCH_CHARS_MAX,
    SEARCH_EVENT_WORDS_MAX,
    SEARCH_EXCERPT_CHARS,
    SEARCH_INDEXED_CHARS_MAX,
    SEARCH_TERMS_MAX,
    SEARCH_WORD_CHARS_MAX,
)

ANY_WORD: Final = ""  # stands in the index for an event that has more words than are indexed: it may hold each

# Thai, Lao; Myanmar; Khmer; kana; Han
_BLANKLESS: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff"
)
_LETTER: Final = rf"[^\W{_BLANKLESS}]"
_LETTERS: Final = re.compile(_LETTER)
_WORD: Final = re.compile(rf"[{_BLANKLESS}]|{_LETTER}+")
_ASCII_WORD: Final = re.compile("[a-z0-9_]+")  # the same, in a third of the time
_ASKED: Final = re.compile(r'"(?P<phrase>[^"]*)"(?P<open>\*?)|(?P<piece>\S+)')
_BLANKS: Final = re.compile(r"\s+")
# What folds by itself: a run of ASCII, but its last character goes with what follows that is not ASCII.
_FOLDED_ALONE: Final = re.compile(r"[\x00-\x7f]+(?![^\x00-\x7f])|[\x00-\x7f]?[^\x00-\x7f]+")

Span = tuple[int, int]
Posting = tuple[int, int]  # the first event of a chunk, and a bit for each event of it from there on, the lowest first


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One thing that has to stand in a text, folded."""

    part: str  # its longest part without blanks: where that is not, the term is not
    pattern: re.Pattern[str]
    words: tuple[str, ...]  # that a text with it has, as they are indexed
    beginning: str | None  # with which one of its words begins, as it is indexed


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Where a query stands in a text: an excerpt of it, and the places in the excerpt."""

    excerpt: str
    matches: tuple[Span, ...]
    cut: tuple[bool, bool]  # whether more text stands before the excerpt, and behind it


def fold(text: str) -> str:
    """Return a text as it is compared (Unicode, NFKC and full case folding)."""
    return text.lower() if text.isascii() else normalize("NFKC", normalize("NFKC", text).casefold())


def words_of(text: str) -> set[str]:
    """Return the words under which a text is indexed; ANY_WORD alone, if they are too many."""
    if len(text) > SEARCH_INDEXED_CHARS_MAX:
        return {ANY_WORD}
    folded = fold(text)
    words = set((_ASCII_WORD if folded.isascii() else _WORD).findall(folded))
    if len(words) > SEARCH_EVENT_WORDS_MAX:
        return {ANY_WORD}
    is_short = max(map(len, words), default=0) <= SEARCH_WORD_CHARS_MAX
    return words if is_short else {word[:SEARCH_WORD_CHARS_MAX] for word in words}


def parse(text: str) -> tuple[Term, ...]:
    """Return what a query asks for: each of its pieces between blanks, or between quotes, has to stand in the text.

    A piece stands there as it is written, with whole words at both ends. Signs around a piece don't count, those in it
    do, and between quotes all do. A `*` behind it leaves the last word open.

    Raises:
        InvalidInputError: empty, too long, a quote without an end, a `*` with nothing before it.
    """
    if len(text) > SEARCH_CHARS_MAX:
        raise InvalidInputError(f"a search of {len(text):,} characters; at most {SEARCH_CHARS_MAX:,} are allowed")
    terms = []
    for found in _ASKED.finditer(text):
        piece, phrase = found["piece"], found["phrase"]
        if piece is None:
            terms.append(_term(fold(phrase).strip(), is_open=bool(found["open"])))
        elif piece.startswith('"'):
            raise InvalidInputError(f"the quote at character {found.start() + 1} of the search has no end")
        else:
            terms.append(_term(_bare(fold(piece.removesuffix("*")), piece), is_open=piece.endswith("*")))
    if not terms:
        raise InvalidInputError("a search needs words: a text that is not empty")
    if len(terms) > SEARCH_TERMS_MAX:
        raise InvalidInputError(f"a search for {len(terms)} words or phrases; at most {SEARCH_TERMS_MAX} are allowed")
    return tuple(dict.fromkeys(terms))


def _bare(folded: str, piece: str) -> str:
    """Return a piece without the signs around it; one of signs only stays as it is."""
    words = list(_WORD.finditer(folded))
    if not words:
        return folded
    return folded[words[0].start() : None if piece.endswith("*") else words[-1].end()]


def _term(folded: str, *, is_open: bool) -> Term:
    if not folded:
        raise InvalidInputError('a search for nothing: empty quotes, or a "*" with no beginning of a word before it')
    parts = _BLANKS.split(folded)
    pattern = r"\s+".join(map(re.escape, parts))
    ends_in_letter = bool(_LETTERS.match(folded[-1]))
    if _LETTERS.match(folded[0]):
        pattern = f"(?<!{_LETTER}){pattern}"
    if ends_in_letter and not is_open:
        pattern = f"{pattern}(?!{_LETTER})"
    words = [word[:SEARCH_WORD_CHARS_MAX] for word in _WORD.findall(folded)]
    beginning = words.pop() if is_open and ends_in_letter else None
    return Term(
        part=max(parts, key=len), pattern=re.compile(pattern), words=tuple(dict.fromkeys(words)), beginning=beginning
    )


def find(terms: Sequence[Term], text: str) -> Found | None:
    """Return where a query stands in a text, around its longest term; None if a term of it does not stand there."""
    folded = fold(text)
    if any(term.part not in folded for term in terms):
        return None
    firsts = [term.pattern.search(folded) for term in terms]
    centre = max((found for found in firsts if found is not None), key=lambda found: len(found[0]), default=None)
    if centre is None or None in firsts:
        return None
    place = _Places(text)
    first, last = place.span(*centre.span())
    start, end = _window(text, first, last)
    low, high = place.folded_at(start), place.folded_at(end)
    spans = {place.span(*found.span()) for term in terms for found in term.pattern.finditer(folded, low, high)}
    matches = sorted((begin - start, stop - start) for begin, stop in spans if start <= begin and stop <= end)
    return Found(excerpt=text[start:end], matches=_apart(matches), cut=(start > 0, end < len(text)))


def _window(text: str, first: int, last: int) -> Span:
    """Return what is shown around a place: whole words, where a blank is near."""
    start, end = max(0, first - SEARCH_EXCERPT_CHARS), min(len(text), last + SEARCH_EXCERPT_CHARS)
    if start:
        start = text.find(" ", start, first) + 1 or start
    if end < len(text):
        blank = text.rfind(" ", last, end)
        end = end if blank < 0 else blank
    return start, end


def _apart(spans: Sequence[Span]) -> tuple[Span, ...]:
    """Return sorted spans with those joined that overlap."""
    apart: list[Span] = []
    for start, end in spans:
        if apart and start < apart[-1][1]:
            apart[-1] = apart[-1][0], max(end, apart[-1][1])
        else:
            apart.append((start, end))
    return tuple(apart)


class _Places:
    """Which place of a text a place of its folded form is. Where folding changed a length, as near as can be told."""

    def __init__(self, text: str) -> None:
        self._folded: list[int] = []  # where each run begins in the folded text
        self._plain: list[int] = []  # and in the text
        at = 0
        for run in _FOLDED_ALONE.finditer(text):
            start = run.start()
            for part in _parts(run[0]):
                self._folded.append(at)
                self._plain.append(start)
                at += len(fold(part))
                start += len(part)
        self._folded.append(at)
        self._plain.append(len(text))

    def span(self, start: int, end: int) -> Span:
        """Return the span of the text that a span of the folded one means, which is not empty."""
        first, last = self._run(start), self._run(end - 1)
        begin = self._plain[first] + (start - self._folded[first] if self._is_even(first) else 0)
        stop = self._plain[last] + end - self._folded[last] if self._is_even(last) else self._plain[last + 1]
        return begin, stop

    def folded_at(self, place: int) -> int:
        """Return the place of the folded text that a place of the text means."""
        run = bisect_right(self._plain, place) - 1
        within = place - self._plain[run]
        return self._folded[run] + (within if within and self._is_even(run) else 0)

    def _run(self, place: int) -> int:
        return min(bisect_right(self._folded, place), len(self._folded) - 1) - 1

    def _is_even(self, run: int) -> bool:
        return self._folded[run + 1] - self._folded[run] == self._plain[run + 1] - self._plain[run]


def _parts(run: str) -> list[str]:
    """Return a run that folds by itself in parts that do: letter by letter, where folding changed its length."""
    if run.isascii() or len(fold(run)) == len(run):
        return [run]
    parts: list[str] = []
    for letter in run:
        if parts and combining(letter):
            parts[-1] += letter
        else:
            parts.append(letter)
    return parts if "".join(map(fold, parts)) == fold(run) else [run]


# ---------------------------------------------------------------------------------------------- postings


def in_all(streams: Sequence[Iterator[Posting]]) -> Iterator[Posting]:
    """Yield the events that are in all streams, chunk by chunk; each stream comes with its newest chunk first."""
    heads = [next(stream, None) for stream in streams]
    while heads and all(heads):
        lowest = min(head[0] for head in heads if head)
        behind = [number for number, head in enumerate(heads) if head and head[0] > lowest]
        if not behind:
            common = -1
            for head in heads:
                common &= head[1] if head else 0
            if common:
                yield lowest, common
        for number in behind or range(len(streams)):
            heads[number] = next(streams[number], None)


def in_any(one: Iterator[Posting], other: Iterator[Posting]) -> Iterator[Posting]:
    """Yield the events that are in either stream, chunk by chunk, the newest chunk first."""
    for first, postings in groupby(merge(one, other, key=lambda head: -head[0]), key=lambda head: head[0]):
        union = 0
        for _, events in postings:
            union |= events
        yield first, union


def united(postings: Iterable[Posting]) -> Iterator[Posting]:
    """Yield the events of postings that come in any order, chunk by chunk, the newest chunk first."""
    union: defaultdict[int, int] = defaultdict(int)
    for first, events in postings:
        union[first] |= events
    return iter(sorted(union.items(), reverse=True))


def events_of(postings: Iterator[Posting], from_seq: int, through_seq: int) -> Iterator[int]:
    """Yield the events from_seq..through_seq of postings, the newest first."""
    for first, mask in postings:
        while mask:
            bit = mask.bit_length() - 1
            mask ^= 1 << bit
            if first + bit < from_seq:
                return
            if first + bit <= through_seq:
                yield first + bit
