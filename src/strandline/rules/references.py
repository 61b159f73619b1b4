"""Extract the references of a text or of decoded JSON (C3): what has to survive compaction verbatim (I9).

`docs/references.md` describes the classes. Two laws hold for every text: each extracted reference stands in it verbatim
(`rules.verbatim`), and the work is linear in its length.

How it works: what a split at white space would tear apart (addresses, `24,000 tokens`) is cut out first. In the rest
the characters that can't continue a token are blanked, and it is split at white space. The references of a token are
remembered, since most tokens of a transcript recur.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import chain
from typing import Final

from strandline.model.reference import ReferenceClass
from strandline.rules.reference_classes import HASH_CHARS_SURE, NUMBER, UNITS, classify
from strandline.rules.verbatim import stands_at

EXTRACTOR: Final = "refs-1"
"""Stored with what it found; a change of what is extracted needs a new name."""

TOKEN_MEMO_TOKENS_MAX: Final = 65_536
TOKEN_MEMO_CHARS_MAX: Final = 96  # a longer token is seldom seen twice, and would make the memo heavy
EMBEDDED_JSON_CHARS_MAX: Final = 1024 * 1024
EMBEDDED_JSON_DEPTH_MAX: Final = 4
URL_SCHEME_CHARS_MAX: Final = 32
QUANTITY_CHARS_MAX: Final = 64

_Found = tuple[tuple[str, ReferenceClass], ...]
_Span = tuple[int, int]

_KEY_CLASSES: Final = frozenset({ReferenceClass.UUID, ReferenceClass.HASH, ReferenceClass.HANDLE, ReferenceClass.PATH})
_INTEGER: Final = re.compile(r"-?[0-9]{4,511}")
_INTEGER_CEILING: Final = 10**511

_BLANKED: Final = '"`()[]{}<>|;=&*!?^\0→—“”…│'
_FINE_TOKEN: Final = re.compile(r"[\w./\\@~,:$€£%#+\-]+")
_SIMPLE_TOKEN: Final = re.compile(r"(?:~?/|\.{0,2}/|\.)?\w{1,128}+(?:[./-]\w{1,128}+){0,64}+")
_DULL: Final = re.compile(r"[^\w$€£#./]*+(?:[A-Za-z]?[a-z]{0,30}+|[0-9]{0,31}+)(?:['’][a-z]{1,2})?[^\w%€/]*+")
_SEPARATOR: Final = re.compile(r"[,:+](?:(?<=[,:])(?:(?!\d)|(?<!\d.))|(?<=\+)(?!\d\d:))")
_PART: Final = re.compile(r"[#$€£]?[^ #$€£%]+%?")
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


def extract(text: str) -> dict[str, ReferenceClass]:
    """Return the distinct references of `text` with their classes, in order of first appearance."""
    cuts = list(_quantities(text))
    if "://" in text:
        cuts = sorted([*cuts, *_urls(text)])
    blanked = text
    for char in _BLANKED:
        blanked = blanked.replace(char, " ")
    tokens: list[str] = []
    at = 0
    for start, end in cuts:
        tokens += blanked[at:start].split()
        tokens.append(text[start:end])
        at = end
    tokens += blanked[at:].split()
    return dict(chain.from_iterable(filter(None, map(_MEMO.__getitem__, tokens))))


def extract_json(value: object) -> dict[str, ReferenceClass]:
    """Return the distinct references of decoded JSON with their classes, in order of first appearance.

    String leaves are texts, or JSON in turn where they parse as such. An integer of four digits or more is a reference
    as it stands, also when it is written as a string. A key is none, unless it looks like an identifier.
    """
    refs: dict[str, ReferenceClass] = {}
    pending: list[tuple[object, int, bool]] = [(value, 0, False)]  # an item, the JSON texts around it, is it a key?
    while pending:
        item, depth, is_key = pending.pop()
        if isinstance(item, dict):
            for key, inner in reversed(item.items()):
                pending += ((inner, depth, False), (key, depth, True))
        elif isinstance(item, list):
            pending += ((inner, depth, False) for inner in reversed(item))
        elif isinstance(item, str):
            embedded = _embedded_json(item) if depth < EMBEDDED_JSON_DEPTH_MAX and not is_key else None
            if embedded is not None:
                pending.append((embedded, depth + 1, False))
            else:
                for ref, name in _of_leaf(item, is_key=is_key):
                    refs.setdefault(ref, name)
        elif isinstance(item, int) and abs(item) < _INTEGER_CEILING and _INTEGER.fullmatch(str(int(item))):
            refs.setdefault(str(int(item)), ReferenceClass.NUMBER)
    return refs


def _of_leaf(text: str, *, is_key: bool) -> Iterator[tuple[str, ReferenceClass]]:
    if not is_key and _INTEGER.fullmatch(text):
        yield text, ReferenceClass.NUMBER
        return
    for ref, name in extract(text).items():
        if not is_key or name in _KEY_CLASSES:
            yield ref, name


def _embedded_json(text: str) -> object:
    """Return the object or list that `text` is the JSON of, or None."""
    if len(text) > EMBEDDED_JSON_CHARS_MAX or text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


class _Memo(dict[str, _Found]):
    """The references of each token seen. A pure function's results: clearing it when it is full loses nothing."""

    __slots__ = ()

    def __missing__(self, token: str) -> _Found:
        found = _scan(token)
        if len(token) <= TOKEN_MEMO_CHARS_MAX:
            if len(self) >= TOKEN_MEMO_TOKENS_MAX:
                self.clear()
            self[token] = found
        return found


_MEMO: Final = _Memo()


def _scan(token: str) -> _Found:
    """Find the references of one token: of a run without white space and blanked characters, or of what was cut out."""
    body = token.lstrip("'+:%,").rstrip(".,:'-")
    if len(body) < HASH_CHARS_SURE:
        if body.isalpha():
            if body.islower() or body.istitle():
                return ()
        elif body.isdigit():
            return ()
    if _SIMPLE_TOKEN.fullmatch(body):  # the usual case: nothing continues it, and no smaller part of it can stand
        name = classify(body)
        if name is None and body[0] in "~./":
            body = body.lstrip("~./")
            name = classify(body)
        return ((body, name),) if name else ()
    if _DULL.fullmatch(body):
        return ()
    if " " in token or "://" in token:  # what was cut out; an address that could not be is none
        name = classify(token)
        return ((token, name),) if name else ()
    found: dict[str, ReferenceClass] = {}
    for fine in _FINE_TOKEN.findall(token):
        if len(fine) > 1 and not _DULL.fullmatch(fine):
            found.update(_of_whole(fine) or _of_parts(fine))
    return tuple(found.items())


def _of_whole(token: str) -> dict[str, ReferenceClass]:
    body = token.lstrip(_LEADING_NOISE)
    start = len(token) - len(body)
    body = body.rstrip(_TRAILING_NOISE)
    name = classify(body)
    return {body: name} if name and stands_at(token, start, start + len(body)) else {}


def _of_parts(token: str) -> dict[str, ReferenceClass]:
    """Return the references among the parts of a token, as the separators make them."""
    found: dict[str, ReferenceClass] = {}
    judged: dict[str, tuple[int, str, ReferenceClass] | None] = {}
    parted = _SEPARATOR.sub(" ", token).replace("..", "  ").replace("--", "  ")  # each place stays where it was
    for match in _PART.finditer(parted):
        part = match.group()
        if part not in judged:
            judged[part] = _candidate(part)
        candidate = judged[part]
        if candidate:
            offset, ref, name = candidate
            start = match.start() + offset
            if ref not in found and stands_at(token, start, start + len(ref)):
                found[ref] = name
    return found


def _candidate(part: str) -> tuple[int, str, ReferenceClass] | None:
    """Return what of a part has a reference's form, with its place: without noise around it, else without any sign."""
    if len(part) < 2 or _DULL.fullmatch(part):
        return None
    for leading, trailing in ((_LEADING_NOISE, _TRAILING_NOISE), (_LEADING_SIGNS, _TRAILING_SIGNS)):
        body = part.lstrip(leading)
        offset = len(part) - len(body)
        body = body.rstrip(trailing)
        name = classify(body)
        if name:
            return offset, body, name
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
