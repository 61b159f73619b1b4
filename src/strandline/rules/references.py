"""Extract the references of a text or of decoded JSON (C3): what has to survive compaction verbatim (I9).

`docs/references.md` describes the classes. Two laws hold for every text: each extracted reference stands in it verbatim
(`rules.verbatim`), and the work is linear in its length.

How it works: what a split at white space would tear apart (addresses, `24,000 tokens`) is cut out first. In the rest
the characters that can't continue a token are blanked, and it is split at white space. The references of a token are
remembered, since most tokens of a transcript recur, as are short texts; tokens not seen before are worked through
together, step by step. A caller that refuses more than so many references says so, and the work ends there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import chain, filterfalse, islice
from typing import Final, Generic, TypeVar

from strandline.model.reference import ReferenceClass
from strandline.rules.reference_classes import HASH_CHARS_SURE, NUMBER, UNITS, classify
from strandline.rules.verbatim import stands_at

T = TypeVar("T")

EXTRACTOR: Final = "refs-2"
"""Stored with what it found; a change of what is extracted needs a new name."""

SCAN_TOKENS: Final = 8_192  # worked through together
TOKEN_MEMO_TOKENS_MAX: Final = 65_536
TOKEN_MEMO_CHARS_MAX: Final = 96  # a longer token is seldom seen twice, and would make the memo heavy
SHORT_TEXT_CHARS_MAX: Final = 64
SHORT_TEXTS_MAX: Final = 8_192
EMBEDDED_JSON_CHARS_MAX: Final = 1024 * 1024
EMBEDDED_JSON_DEPTH_MAX: Final = 4
URL_SCHEME_CHARS_MAX: Final = 32
QUANTITY_CHARS_MAX: Final = 64

_Found = tuple[tuple[str, ReferenceClass], ...]
_Candidate = tuple[int, str, ReferenceClass]  # its place in the part
_Span = tuple[int, int]

_KEY_CLASSES: Final = frozenset({ReferenceClass.UUID, ReferenceClass.HASH, ReferenceClass.HANDLE, ReferenceClass.PATH})
_INTEGER: Final = re.compile(r"-?[0-9]{3,511}")
NAMES_CHARS_MAX: Final = 4_000  # of a message of a user that is said, not pasted
_NAME: Final = re.compile(r"(?<=[a-z,;:] )[A-Z][a-z]{2,58}\b|\b[A-Z]{3,58}\b")
_PLAIN_VALUE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:@/+-]{1,58}[A-Za-z0-9]")
"""A word that is a value of JSON: an airport's code, a first name, a state. JSON escapes nothing in it."""
_INTEGER_CEILING: Final = 10**511

_LOWER_WORD: Final = re.compile(r"[a-z]{3,31}")

_JOINT: Final = "\0"  # for the blank in a token that was cut out; no other token holds one
_BLANKED: Final = '"`()[]{}<>|;=&*!?^\0→—“”…│'
_BLANKED_ASCII: Final = "".join(filter(str.isascii, _BLANKED))
_NOT_FINE: Final = re.compile(r"[^\w./\\@~,:$€£%#+\-\n]")
_SIGN: Final = re.compile(r"[0-9_/\\]|\.\w|[a-z][A-Z]|[A-Z]{2}[a-z]{2}|[0-9a-fA-F]{32}")
"""What has none of them holds no reference of any class."""
_LETTER_OR_FIGURE: Final = re.compile(
    r"[^\W\d_]|[$€£][0-9]|[0-9]%|#[0-9]|[0-9]\.[0-9]{1,9}\.[0-9]|[0-9]-[01][0-9]-|:[0-5][0-9]:|[0-9]_|\\\\\w|[0-9]{32}|\0"
)
"""What has none of them, either: a token of digits and signs that is no amount, issue, version, time or hash."""
_SIMPLE_TOKEN: Final = re.compile(r"(?:~?/|\.{0,2}/|\.)?\w{1,128}+(?:[./-]\w{1,128}+){0,64}+")
_SEPARATOR: Final = re.compile(r"[,:+](?:(?<=[,:])(?:(?!\d)|(?<!\d.))|(?<=\+)(?!\d\d:))")
_PART: Final = re.compile(r"[#$€£]?[^ #$€£%\n]+%?")
_LEADING_NOISE: Final = ",:%+-"
_TRAILING_NOISE: Final = ".,:+-#@~$€£\\"
_LEADING_SIGNS: Final = (
    _LEADING_NOISE + "./@~#$€£"
)  # no backslash: behind one stands the rest of an escape, `\nfoo_bar`
_TRAILING_SIGNS: Final = _TRAILING_NOISE + "/%"
_JOINS_CUT: Final = frozenset("\\€£$%#+/@~.-")  # next to a cut they would make a token of both its sides

_URL_RUN: Final = re.compile(r"://[\w\-.~:/?#@!$&*+,;=%()]+")
_URL_SCHEME: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.-")
_SPACED_UNIT: Final = re.compile(rf" (?<=[0-9kKM] )(?:{UNITS})(?![.,:]{{0,3}}[\w/\\@~$€£%#+\-])")
_NUMBER_BEFORE: Final = re.compile(rf"(?<![\w./\\@$€£%#+])(?<!\w[~-])(?<!\d[,:]){NUMBER}[kKM]?\Z")


def extract(text: str, *, most: int | None = None) -> dict[str, ReferenceClass]:
    """Return the distinct references of `text` with their classes, in order of first appearance.

    With `most`, stop soon after more than that many are found: what is returned then is not all of them, but too many.
    """
    if len(text) <= SHORT_TEXT_CHARS_MAX:
        return dict(_of_short(text))
    return _of_text(text, most)


@lru_cache(SHORT_TEXTS_MAX)
def _of_short(text: str) -> _Found:
    """Remember what short texts hold: the values of JSON are such, and recur."""
    return tuple(_of_text(text, None).items())


def _of_text(text: str, most: int | None) -> dict[str, ReferenceClass]:
    refs: dict[str, ReferenceClass] = {}
    for found in _MEMO.of(_cut(text), most):
        refs.update(chain.from_iterable(found))
        if most is not None and len(refs) > most:
            break
    return refs


def _cut(text: str) -> list[str]:
    """Return the tokens of a text, in order: with blanks in those that were cut out only."""
    blanked = _blanked(text)
    cuts = list(_quantities(text))
    if "://" in text:
        cuts = sorted([*cuts, *_urls(text)])
    if not cuts:
        return blanked.split()
    parts: list[str] = []
    at = 0
    for start, end in cuts:
        parts += (blanked[at:start], text[start:end].replace(" ", _JOINT))
        at = end
    parts.append(blanked[at:])
    return "\n".join(parts).split()


def tokens_of(text: str) -> list[str]:
    """Return the distinct runs of `text` between blanks and characters that no token holds, in order."""
    return list(dict.fromkeys(_blanked(text).split()))


def runs_of(tokens: list[str]) -> tuple[list[str], list[str]]:
    """Return each of `tokens_of` with blanks for what ends a token, and once more with blanks for separators, too.

    All stays in its place. What is left may be tokens of their own, with or without noise around them: `bare_forms`.
    """
    fine = _NOT_FINE.sub(" ", "\n".join(tokens))
    return fine.split("\n"), _SEPARATOR.sub(" ", fine).split("\n")


def bare_forms(run: str) -> tuple[tuple[int, str], ...]:
    """Return a run with its place in itself, and what is left of it without noise at the beginning, the end or both."""
    if run[0].isalnum() and run[-1].isalnum():
        return ((0, run),)
    bare = run.lstrip(_LEADING_NOISE)
    at = len(run) - len(bare)
    forms = ((0, run), (0, run.rstrip(_TRAILING_NOISE)), (at, bare), (at, bare.rstrip(_TRAILING_NOISE)))
    return tuple(dict.fromkeys(form for form in forms if form[1]))


def _blanked(text: str) -> str:
    for char in _BLANKED_ASCII if text.isascii() else _BLANKED:
        text = text.replace(char, " ")
    return text


def names_in(text: str) -> list[str]:
    """Return the names that a user gives in a message, in order: words with a capital letter inside of a sentence, and
    words of three or more capitals. A text of more than NAMES_CHARS_MAX was pasted, not said: it gives none.
    """
    return list(dict.fromkeys(_NAME.findall(text))) if len(text) <= NAMES_CHARS_MAX else []


def extract_json(value: object, *, most: int | None = None) -> dict[str, ReferenceClass]:
    """Return the distinct references of decoded JSON with their classes, in order of first appearance.

    String leaves are texts, or JSON in turn where they parse as such; a plain word is a reference by itself. So is an
    integer of three digits or more, as it stands, also when it is written as a string. A key is none, unless it looks
    like an identifier. `most` is that of `extract`.
    """
    refs: dict[str, ReferenceClass] = {}
    pending: list[tuple[object, int, bool]] = [(value, 0, False)]  # an item, the JSON texts around it, is it a key?
    seen: set[tuple[str, bool]] = set()  # texts that say nothing new, as values or as keys: JSON repeats itself
    while pending and (most is None or len(refs) <= most):
        item, depth, is_key = pending.pop()
        if isinstance(item, dict):
            for key, inner in reversed(item.items()):
                pending += ((inner, depth, False), (key, depth, True))
        elif isinstance(item, list):
            pending += ((inner, depth, False) for inner in reversed(item))
        elif isinstance(item, str):
            if (item, is_key) in seen:
                continue
            seen.add((item, is_key))
            embedded = embedded_json(item) if depth < EMBEDDED_JSON_DEPTH_MAX and not is_key else None
            if embedded is not None:
                pending.append((embedded, depth + 1, False))
            else:
                for ref, name in _of_leaf(item, most, is_key=is_key):
                    refs.setdefault(ref, name)
        elif isinstance(item, int) and abs(item) < _INTEGER_CEILING and _INTEGER.fullmatch(str(int(item))):
            refs.setdefault(str(int(item)), ReferenceClass.NUMBER)
    return refs


def _of_leaf(text: str, most: int | None, *, is_key: bool) -> Iterator[tuple[str, ReferenceClass]]:
    if not is_key and _INTEGER.fullmatch(text):
        yield text, ReferenceClass.NUMBER
        return
    if not is_key and _LOWER_WORD.fullmatch(text):  # it has no form that `extract` could find
        yield text, ReferenceClass.VALUE
        return
    found = extract(text, most=None if is_key else most)
    for ref, name in found.items():
        if not is_key or name in _KEY_CLASSES:
            yield ref, name
    if not is_key and text not in found and _PLAIN_VALUE.fullmatch(text):
        yield text, ReferenceClass.VALUE


def embedded_json(text: str) -> object:
    """Return the object or list that `text` is the JSON of, or None."""
    if len(text) > EMBEDDED_JSON_CHARS_MAX or text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


class Memo(Generic[T]):
    """The references of each token seen: a pure function's results, so that clearing it when it is full loses nothing.

    `scan` returns those of distinct tokens that it is given, together; a token without any may be left out. It is told
    how many references of one token are enough, if any number is.
    """

    def __init__(self, scan: Callable[[list[str], int | None], Mapping[str, tuple[T, ...]]]) -> None:
        self._scan = scan
        self._known: dict[str, tuple[T, ...]] = {}  # with references
        self._dull: set[str] = set()  # without

    def __len__(self) -> int:
        return len(self._known) + len(self._dull)

    def of(self, tokens: list[str], most: int | None = None) -> Iterator[list[tuple[T, ...]]]:
        """Yield the references of each token that has any, in order of first appearance, some tokens at a time."""
        open_ = list(dict.fromkeys(filterfalse(self._dull.__contains__, tokens)))
        for at in range(0, len(open_), SCAN_TOKENS):
            yield self._of_some(open_[at : at + SCAN_TOKENS], most)

    def _of_some(self, tokens: list[str], most: int | None) -> list[tuple[T, ...]]:
        known = list(map(self._known.get, tokens))
        if None not in known:
            return known  # type: ignore[return-value]  # mypy does not see what was just asked
        new = [token for token, refs in zip(tokens, known, strict=True) if refs is None]
        scanned = self._scan(new, most)
        self._keep([token for token in new if len(token) <= TOKEN_MEMO_CHARS_MAX], scanned)
        return [refs for token, before in zip(tokens, known, strict=True) if (refs := before or scanned.get(token))]

    def _keep(self, tokens: list[str], scanned: Mapping[str, tuple[T, ...]]) -> None:
        if len(self) + len(tokens) > TOKEN_MEMO_TOKENS_MAX:
            self.clear()
        self._dull.update(filterfalse(scanned.get, tokens))
        self._known.update((token, refs) for token in tokens if (refs := scanned.get(token)))

    def clear(self) -> None:
        """Forget all."""
        self._known.clear()
        self._dull.clear()


def _scan(tokens: list[str], most: int | None) -> dict[str, _Found]:
    """Find the references of distinct tokens, each a run without white space and blanked characters, or cut out.

    All are worked through together, step by step, since most of a step's cost is that of its beginning.
    """
    found: dict[str, _Found] = {}
    others: list[str] = []
    for token in _signed(tokens):
        body = token.lstrip("'+:%,").rstrip(".,:'-")
        if len(body) < HASH_CHARS_SURE and body.isdigit():
            continue
        if _SIMPLE_TOKEN.fullmatch(body):  # the usual case: nothing continues it, no smaller part of it can stand
            name = classify(body)
            if name is None and body[0] in "~./":
                body = body.lstrip("~./")
                name = classify(body)
            if name:
                found[token] = ((body, name),)
        elif _JOINT in token or "://" in token:  # what was cut out; an address that could not be is none
            ref = token.replace(_JOINT, " ")
            if name := classify(ref):
                found[token] = ((ref, name),)
        else:
            others.append(token)
    if others:
        found.update(_scan_fine(others, most))
    return found


def _signed(spans: Iterable[str]) -> Iterator[str]:
    """Return those that may hold a reference."""
    return filter(_LETTER_OR_FIGURE.search, filter(_SIGN.search, spans))


def _scan_fine(tokens: list[str], most: int | None) -> Iterator[tuple[str, _Found]]:
    """Yield the tokens that hold references: as a whole between characters of no token, or among their parts."""
    joined = "\n".join(tokens)
    fine = _NOT_FINE.sub(" ", joined)
    lines = tokens if fine == joined else fine.split("\n")
    pieces = tokens if fine == joined else dict.fromkeys(fine.split())
    found: dict[str, _Found] = {}
    parted: list[str] = []
    for piece in _signed(pieces):
        if piece[0].isalnum() and piece[-1].isalnum():  # nothing to take off
            body, name = piece, classify(piece)
        else:
            body = piece.lstrip(_LEADING_NOISE)
            start = len(piece) - len(body)
            body = body.rstrip(_TRAILING_NOISE)
            name = classify(body)
            if name and not stands_at(piece, start, start + len(body)):
                name = None
        if name:
            found[piece] = ((body, name),)
        elif not body.isdigit():
            parted.append(piece)
    if parted:
        found.update(_scan_parts(parted, most))
    if lines is tokens:
        yield from found.items()
    elif found:
        for token, line in zip(tokens, lines, strict=True):
            refs = tuple(chain.from_iterable(filter(None, map(found.get, line.split()))))
            if refs:
                yield token, refs


def _scan_parts(pieces: list[str], most: int | None) -> Iterator[tuple[str, _Found]]:
    """Yield the pieces that hold references among their parts, as the separators make them."""
    spaced = _SEPARATOR.sub(" ", "\n".join(pieces)).replace("..", "  ").replace("--", "  ")  # all stays where it was
    signed = frozenset(_signed(dict.fromkeys(_PART.findall(spaced))))
    judged: dict[str, _Candidate | None] = {}
    for piece, line in zip(pieces, spaced.split("\n"), strict=True):
        if not signed.isdisjoint(_PART.findall(line)):
            refs = tuple(islice(_standing(piece, line, signed, judged), None if most is None else most + 1))
            if refs:
                yield piece, refs


def _standing(
    piece: str, spaced: str, signed: frozenset[str], judged: dict[str, _Candidate | None]
) -> Iterator[tuple[str, ReferenceClass]]:
    done: set[str] = set()
    for match in _PART.finditer(spaced):
        part = match.group()
        if part not in signed:
            continue
        if part not in judged:
            judged[part] = _candidate(part)
        candidate = judged[part]
        if candidate:
            offset, ref, name = candidate
            start = match.start() + offset
            if ref not in done and stands_at(piece, start, start + len(ref)):
                done.add(ref)
                yield ref, name


def _candidate(part: str) -> _Candidate | None:
    """Return what of a part has a reference's form, with its place: without noise around it, else without any sign."""
    if len(part) < 2:
        return None
    if part[0].isalnum() and part[-1].isalnum():  # nothing to take off
        name = classify(part)
        return (0, part, name) if name else None
    judged = part + " "  # as no body is
    for leading, trailing in ((_LEADING_NOISE, _TRAILING_NOISE), (_LEADING_SIGNS, _TRAILING_SIGNS)):
        body = part.lstrip(leading)
        offset = len(part) - len(body)
        body = body.rstrip(trailing)
        if body != judged and (name := classify(body)):
            return offset, body, name
        judged = body
    return None


def _quantities(text: str) -> Iterator[_Span]:
    """Yield the spans of the numbers that one space and a unit follow; the patterns hold the rule of `stands_at`."""
    for unit in _SPACED_UNIT.finditer(text):
        end = unit.start()
        start = max(end - QUANTITY_CHARS_MAX, 0)
        number = _NUMBER_BEFORE.search(text, max(start, text.rfind(" ", start, end)), end)
        if number:
            yield number.start(), unit.end()


def _urls(text: str) -> Iterator[_Span]:
    """Yield the spans of the addresses; what remains on either side of one is a token's end, or punctuation."""
    done = 0
    for run in _URL_RUN.finditer(text):
        start, body = run.start(), run.start() + len("://")
        floor = max(done, start - URL_SCHEME_CHARS_MAX)
        while start > floor and text[start - 1] in _URL_SCHEME:
            start -= 1
        end = _url_end(text, body, run.end())
        if start == run.start() or end == body or not text[start].isalpha():
            continue
        if text[max(0, start - 1) : start] in _JOINS_CUT or text[run.end() : run.end() + 1] in _JOINS_CUT:
            continue
        if stands_at(text, start, end):
            yield start, end
            done = end


def _url_end(text: str, start: int, end: int) -> int:
    """Cut off a closing bracket that no bracket of the address opens, and the sentence's own punctuation."""
    depth = 0
    for at in range(start, end) if text.find(")", start, end) >= 0 else ():
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth < 0:
            end = at
            break
    return start + len(text[start:end].rstrip(".,;:!?*"))


_MEMO: Final[Memo[tuple[str, ReferenceClass]]] = Memo(_scan)


def forget() -> None:
    """Empty what is remembered of tokens and short texts: for measurements."""
    _MEMO.clear()
    _of_short.cache_clear()
