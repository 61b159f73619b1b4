"""Which stretches of a text are worth a quote: lines and sentences, each with a factor for what it says.

All offsets are into the text as it stands. No stretch begins or ends inside a word; `unbroken` names the references
with spaces in them, which are not parted either, and a number is not parted from the unit after it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from strandline.rules.shapes import HEADING, SENTENCE_GAP
from strandline.rules.wording import word_set

SPAN_CHARS_MAX: Final = 400
LINE_CHARS_READ: Final = 4_000  # of one line; what lies beyond is not looked at
HEAD_LINES: Final = 120
TAIL_LINES: Final = 60
EDGE_LINES: Final = 2
RESULT_SPANS_MAX: Final = 24
HITS_PER_NEEDLE_MAX: Final = 6
CUT_TRIES_MAX: Final = 8
FACTOR_CHARS_READ: Final = 200
ACKNOWLEDGEMENT_WORDS_MAX: Final = 6
SHORT_CHARS: Final = 16

OPENING_FACTOR: Final = 1.5  # how a message begins: the answer, or what is asked
STATUS_FACTOR: Final = 1.5
MARKUP_FACTOR: Final = 0.4  # rows of a table, tags
INTENT_FACTOR: Final = 0.3
CODE_FACTOR: Final = 0.3
LABEL_FACTOR: Final = 0.5
SHORT_FACTOR: Final = 0.4
NEEDLE_FACTOR: Final = 3.0
VALUE_FACTOR: Final = 1.5  # of what somebody says: it holds a value, or says what is to be; 1 for the rest
RULE_FACTOR: Final = 1.5
HEADING_FACTOR: Final = 0.1  # what kind of statement follows
LEANING_FACTOR: Final = 0.3  # a sentence that speaks of the one before

_LINE = re.compile(r"[^\s][^\n\r\v\f\x1c-\x1e\x85\u2028\u2029]*")
_WORD_GAP = re.compile(r"(?<=[^\d\s])\s+")
_DIGIT = re.compile(r"\d")
_ALNUM = re.compile(r"[^\W_]")
_UNQUOTABLE = re.compile("[\ud800-\udfff\x00]")
_WORD = re.compile(r"[a-z']+")
_CODE = re.compile(
    r"[;{}]\s*$|^\s*\d+\s*[→|\t]|=>|:=|^\s*(?:[-+@]{1,3} ?\S*[({]|//|#include|"
    r"(?:def|func|function|import|return|if|for|class|const|let|var|type|public|private)\b.*[({:=\"'])"
)
_VALUE = re.compile(r"\d|\w[/@_]\w|(?<=[^\s.!?:] )[^\W\d_a-z]")
_LEANS = re.compile(r"(?:It|This|That|These|Those|They|He|She)\b|[A-Z]\w+ (?:it|this|that|them|these|those)\b")
_RULE_WORDS: Final = word_set(
    "never always must mustn't only not no don't won't shouldn't ever every nobody want wants prefer prefers preferred"
    " need needs require requires next current keep stay until unless except before"
)
_NEEDLES: Final = (
    "rror:",
    "FAIL",
    "Exception",
    "fatal:",
    "panic:",
    "denied",
    "not found",
    "annot ",
    "failed",
    "passed",
    "conflict",
)
_STATUS_WORDS: Final = word_set(
    "decided decision chose chosen instead because therefore never rejected approved agreed confirmed fixed done"
    " completed complete finished merged committed pushed created deleted passed passes passing failed fails failing"
    " failure error errors broken cannot can't couldn't wrong bug cause caused root todo remaining pending blocked"
    " unresolved missing blocker"
)
_INTENTS: Final = ("let me", "now let", "now i", "i'll", "i will", "i'm going", "let's", "first, let", "next, i")
_ACKNOWLEDGEMENTS: Final = word_set(
    "ok okay yes yep yeah no thanks thank you great perfect good nice cool sure fine right absolutely got it go ahead"
    " on continue please proceed done all set understood sounds looks lgtm hi hello hey welcome you're i see agreed do"
    " that is this so well excellent awesome noted and recorded acknowledged"
)


class Span(NamedTuple):
    """A stretch text[start:end], and what its words make of its value."""

    start: int
    end: int
    factor: float
    beside: int = -1  # it says nothing without the stretch that begins here


def prose(
    text: str,
    unbroken: Sequence[str] = (),
    *,
    head: int = HEAD_LINES,
    tail: int = TAIL_LINES,
    factor: Callable[[str], float] | None = None,
) -> Iterator[Span]:
    """Yield the sentences of a text in which someone speaks: of its head and its tail.

    A heading in capitals, and a sentence that speaks of the one before, say nothing alone.
    """
    weigh = factor or _factor
    fenced = False
    opening = OPENING_FACTOR
    for start, end in _edges(text, head, tail):
        if text.startswith("```", start):
            fenced = not fenced
            continue
        heading = HEADING.match(text, start, end)
        if heading and heading.end() < end:
            start = heading.end()
        before = -1
        for low, high in _pieces(text, start, end, unbroken):
            worth = weigh(text[low:high])
            if worth:
                leans = before >= 0 and _LEANS.match(text, low)
                worth *= CODE_FACTOR if fenced else opening
                yield Span(low, high, worth * LEANING_FACTOR, before) if leans else Span(low, high, worth)
                opening = 1.0
                if before < 0 and heading and start == heading.end():
                    yield Span(heading.start(), start - 1, worth * HEADING_FACTOR, low)
                before = low if not leans else before


def result(text: str, *, is_error: bool, refs: Iterable[str], unbroken: Sequence[str] = ()) -> Iterator[Span]:
    """Yield the lines of a tool's result that say how it went, its edges, and the lines that hold one of `refs`."""
    found: dict[int, tuple[int, float]] = {}
    for start, end in _edges(text, EDGE_LINES, EDGE_LINES):
        found[start] = (end, 1.0)
    for needle in _NEEDLES:
        at = -1
        for _ in range(HITS_PER_NEEDLE_MAX):
            at = text.find(needle, at + 1)
            if at < 0:
                break
            start, end = _line_around(text, at, unbroken)
            found[start] = (end, NEEDLE_FACTOR)
            at = end
    for ref in refs:
        at = text.find(ref)
        if at >= 0:
            start, end = _line_around(text, at, unbroken)
            found.setdefault(start, (end, 1.0))
    free = 0
    for start in sorted(found)[:RESULT_SPANS_MAX]:
        end, worth = found[start]
        end = cut(text, start, end, SPAN_CHARS_MAX, unbroken)
        if start < free or end <= start:
            continue
        factor = _factor(text[start:end])
        if _CODE.search(text, start, end):
            factor *= CODE_FACTOR if is_error else 0.0
        if factor:
            free = end
            yield Span(start, end, factor * worth)


def whole(text: str) -> Iterator[Span]:
    """Yield the text as one stretch, where it can be quoted."""
    factor = _factor(text) if text else 0.0
    if factor:
        yield Span(0, len(text), factor)


def cut(text: str, start: int, end: int, limit: int, unbroken: Sequence[str] = ()) -> int:
    """Return where text[start:end] may end within `limit` characters: between words, `start` if nowhere."""
    if end - start <= limit:
        return end
    at = start + limit
    for _ in range(CUT_TRIES_MAX):
        while at > start and not text[at].isspace():
            at -= 1
        kept = text[start:at].rstrip()
        if not kept:
            break
        at = start + len(kept)
        word = kept.rsplit(None, 1)[-1]
        if not _DIGIT.search(word) and not _parts(text, at, unbroken):
            return at
        at -= len(word)
    return start


def _edges(text: str, head: int, tail: int) -> Iterator[tuple[int, int]]:
    """Yield the first `head` and the last `tail` lines, without the blank ones and without the space around each."""
    first, last = len(text), 0
    if text.count("\n") >= head + tail:
        first, last = -1, len(text)
        for _ in range(head):
            first = text.find("\n", first + 1)
        for _ in range(tail):
            last = text.rfind("\n", 0, last)
    for low, high in ((0, first), (last, len(text))) if last else ((0, first),):
        for line in _LINE.finditer(text, low, high):
            yield line.start(), line.start() + len(line.group().rstrip())


def _pieces(text: str, start: int, end: int, unbroken: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the sentences of a line, each whole or by its head."""
    for gap in SENTENCE_GAP.finditer(text, start, min(end, start + LINE_CHARS_READ)):
        at = gap.start()
        if " " in text[start:at] and not _parts(text, at, unbroken):
            yield start, cut(text, start, at, SPAN_CHARS_MAX, unbroken)
            start = gap.end()
    yield start, cut(text, start, end, SPAN_CHARS_MAX, unbroken)


def _line_around(text: str, at: int, unbroken: Sequence[str]) -> tuple[int, int]:
    """Return the line at `at` without the space around it; of a long line what begins shortly before `at`."""
    start = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    end = len(text) if end < 0 else end
    if at - start > SPAN_CHARS_MAX // 2:
        gaps = _WORD_GAP.finditer(text, at - SPAN_CHARS_MAX // 2, at)
        start = next((gap.end() for gap in gaps if not _parts(text, gap.start(), unbroken)), end)
    line = text[start:end]
    return start + len(line) - len(line.lstrip()), start + len(line.rstrip())


def _parts(text: str, at: int, unbroken: Sequence[str]) -> bool:
    """Tell whether one of `unbroken` stands across `at`."""
    return any(text.find(ref, max(0, at - len(ref) + 1), at + len(ref) - 1) >= 0 for ref in unbroken)


def statement_factor(piece: str) -> float:
    """Return what the words of a line make of its value where somebody may state a fact or a rule by it."""
    factor = _factor(piece)
    if not factor:
        return 0.0
    low = piece[:FACTOR_CHARS_READ].lower()
    factor *= VALUE_FACTOR if _VALUE.search(piece, 0, FACTOR_CHARS_READ) else 1.0
    return factor * (RULE_FACTOR if not _RULE_WORDS.isdisjoint(_WORD.findall(low)) else 1.0)


def _factor(piece: str) -> float:
    """Return what the words of a line make of its value; 0: it says nothing, or can't be quoted."""
    if not piece.isprintable() and (_UNQUOTABLE.search(piece) or len(piece.splitlines()) > 1):
        return 0.0
    low = piece[:FACTOR_CHARS_READ].lower()
    words = _WORD.findall(low)
    if len(words) <= ACKNOWLEDGEMENT_WORDS_MAX:
        if not _ALNUM.search(piece):
            return 0.0
        if piece.isascii() and not _DIGIT.search(piece) and _ACKNOWLEDGEMENTS.issuperset(words):
            return 0.0
    factor = STATUS_FACTOR if not _STATUS_WORDS.isdisjoint(words) else 1.0
    if low.startswith(_INTENTS):
        factor *= INTENT_FACTOR
    if len(piece) < SHORT_CHARS:
        factor *= SHORT_FACTOR
    if piece[0] in "|<" and piece[-1] in "|>":
        factor *= MARKUP_FACTOR
    if piece[0] == "#" or piece.rstrip("*_ ")[-1:] == ":":
        factor *= LABEL_FACTOR
    return factor
