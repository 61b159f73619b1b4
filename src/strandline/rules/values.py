"""Words and values of a statement, written in one way: `$5k`, `5,000 dollars` and `$5000` are one value.

Only spellings that can't mean anything else are made one: `5m` stays `5m` (minutes, metres, millions), a version is
never read as a number (`1.10` is not `1.1`), and identifiers keep their letters' case. All
patterns are bounded, so time is linear in the text.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple


class Token(NamedTuple):
    """One word in lower case, one value in its one spelling, or one mark that ends a phrase."""

    text: str
    kind: str


WORD: Final = "word"
VALUE: Final = "value"
BREAK: Final = "break"

_CONTRACTIONS: Final = (
    (re.compile(r"\bwon't\b", re.IGNORECASE), "will not"),
    (re.compile(r"\b(?:can't|cannot|cant)\b", re.IGNORECASE), "can not"),
    (re.compile(r"\bshan't\b", re.IGNORECASE), "must not"),
    (re.compile(r"\bain't\b", re.IGNORECASE), "is not"),
    (re.compile(r"\b(\w{2,8})n't\b", re.IGNORECASE), r"\1 not"),
    (re.compile(r"\b(?:dont)\b", re.IGNORECASE), "do not"),
    (re.compile(r"\b(it|that|there|he|she|what|here|who)'s\b", re.IGNORECASE), r"\1 is"),
    (re.compile(r"\b(\w{1,8})'ll\b", re.IGNORECASE), r"\1 will"),
    (re.compile(r"\b(\w{1,8})'re\b", re.IGNORECASE), r"\1 are"),
    (re.compile(r"\b(\w{1,8})'ve\b", re.IGNORECASE), r"\1 have"),
    (re.compile(r"\bI'm\b", re.IGNORECASE), "I am"),
    (re.compile(r"(?<=\w)'s\b|(?<=s)'(?=\s)"), ""),  # possessive
)

_MONTHS: Final = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
_MONTH_NUMBERS: Final = {name[:cut]: n for n, name in enumerate(_MONTHS, 1) for cut in (3, len(name))} | {"sept": 9}
_MONTH: Final = rf"(?P<month>{'|'.join(sorted(_MONTH_NUMBERS, key=len, reverse=True))})\.?"
_DAY: Final = r"(?P<day>[0-3]?[0-9])(?:st|nd|rd|th)?"
_YEAR: Final = r"(?P<year>[12][0-9]{3})"
_DATES: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b{_MONTH} {_DAY}(?:, ?| ){_YEAR}\b",
        rf"\b{_DAY}(?: of)? {_MONTH},? {_YEAR}\b",
        rf"\b{_MONTH} {_DAY}\b(?!:)",
        rf"\b{_DAY}(?: of)? {_MONTH}\b",
    )
)
_HOUR: Final = re.compile(r"\b([01]?[0-9])(?::([0-5][0-9]))? ?([ap])\.?m\b\.?", re.IGNORECASE)
_WEEKDAYS: Final = {
    name[:cut]: name
    for name in ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
    for cut in (3, len(name))
} | {"tues": "tuesday", "thur": "thursday", "thurs": "thursday"}

_UNITS: Final = {
    spelling: unit
    for unit, spellings in {
        "ms": "ms millisecond milliseconds",
        "s": "s sec secs second seconds",
        "min": "min mins minute minutes",
        "h": "h hr hrs hour hours",
        "day": "d day days",
        "week": "week weeks",
        "month": "month months",
        "year": "year years",
        "%": "% percent pct",
        "$": "$ usd dollar dollars",
        "€": "€ eur euro euros",
        "£": "£ gbp",
        "kB": "kb kilobyte kilobytes",
        "MB": "mb megabyte megabytes",
        "GB": "gb gigabyte gigabytes",
        "TB": "tb terabyte terabytes",
        "‰": "‰",
    }.items()
    for spelling in spellings.split()
}
UNIT_WORDS: Final = frozenset(spelling for spelling in _UNITS if len(spelling) > 2)
"""Units that are words: "per day" is no "per hour"."""
_CURRENCIES: Final = {"$": "$", "€": "€", "£": "£", "usd": "$", "eur": "€", "gbp": "£"}
_ONES: Final = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
_TENS: Final = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_NUMBER_WORDS: Final = {word: n for n, word in enumerate(_ONES)} | {word: 10 * n for n, word in enumerate(_TENS, 2)}
_MULTIPLIERS: Final = {"hundred": 100, "thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000}
_SCALES: Final = {"k": 1_000, "K": 1_000, "bn": 1_000_000_000}

_AMOUNT: Final = re.compile(
    r"(?P<sign>[-+]?)(?P<before>[$€£]?)(?P<number>\d{1,3}(?:,\d{3}){1,6}|\d{1,18})(?P<part>\.\d{1,12})?"
    r"(?P<scale>k|K|M|bn)?(?P<unit>%|[$€£]|[A-Za-z]{1,12})?"
)
_OUTER: Final = "\"'`([{<>}])!?;«»|"
_PHRASE_END: Final = re.compile(r"[,:;()\[\]{}—–]|--")
_CAMEL: Final = re.compile(r"[a-z0-9][A-Z]")
_SPLIT: Final = re.compile(r"\S+")


def tokens(text: str) -> list[Token]:
    """Return the words, values and phrase ends of a plain one-line sentence, in order."""
    for pattern, instead in _CONTRACTIONS:
        text = pattern.sub(instead, text)
    for pattern in _DATES:
        text = pattern.sub(_date, text)
    text = _HOUR.sub(_time, text)
    found: list[Token] = []
    for run in _SPLIT.finditer(text):
        _take(run[0], found)
    return list(_joined(found))


def is_value(word: str) -> bool:
    """Tell whether a run of characters is a value: it has a digit, or the form of a path, address or identifier."""
    if any(char.isdigit() for char in word):
        return True
    inner = word[1:-1]
    return word[:1] in "$€£@#/~." or any(mark in inner for mark in "_/@:#\\.=&") or bool(_CAMEL.search(word))


def _take(run: str, found: list[Token]) -> None:
    """Take one run without blanks apart: the marks around it end a phrase, what is left is a value or words."""
    stripped = run.lstrip(_OUTER + ",:—–")
    if len(stripped) < len(run) and _PHRASE_END.search(run[: len(run) - len(stripped)]):
        found.append(Token(",", BREAK))
    word = stripped.rstrip(_OUTER + ",:.—–…")
    if word in ("&", "+"):
        word = "and"
    if word and word.strip("-—–") == "":
        found.append(Token(",", BREAK))
    elif word and is_value(word):
        found.append(Token(_canonical(word), VALUE))
    else:
        found.extend(Token(_weekday(part), WORD) for part in re.split(r"[-—–'’]+", word) if part)
    rest = stripped[len(word) :]
    if _PHRASE_END.search(rest):
        found.append(Token("," if ":" not in rest else ":", BREAK))


def _weekday(word: str) -> str:
    """Return the word in lower case; a day of the week, also where it is cut ("Fri", not "sat"), in full."""
    name = _WEEKDAYS.get(word.lower().removesuffix("s") if word.lower().endswith("days") else word.lower())
    return name if name and not word.islower() else word.lower()


def _canonical(word: str) -> str:
    amount = _AMOUNT.fullmatch(word)
    if amount is None:
        return word
    number = amount["number"].replace(",", "") + (amount["part"] or "")
    unit = amount["unit"] or ""
    scale = amount["scale"] or ""
    if scale and not unit:
        if scale in _SCALES or (scale == "M" and amount["before"]):
            number = _scaled(number, _SCALES.get(scale, 1_000_000))
        else:
            unit = scale
    elif scale:
        unit = scale + unit
    before = _CURRENCIES.get(amount["before"], "")
    known = _UNITS.get(unit.lower() if len(unit) > 1 else unit, unit)
    return f"{amount['sign']}{number}{before}{known}"


def _scaled(number: str, by: int) -> str:
    whole, _, part = number.partition(".")
    scaled = int(whole + part) * by
    return str(scaled // 10 ** len(part)) if scaled % 10 ** len(part) == 0 else f"{number}x{by}"


def _joined(found: list[Token]) -> list[Token]:
    """Write number words as digits, and join numbers with the multiplier and the unit behind them."""
    joined: list[Token] = []
    for token in found:
        last = joined[-1] if joined else None
        number = last is not None and last.kind == VALUE and last.text.isdigit()
        if token.kind == WORD and token.text in _NUMBER_WORDS and token.text != "one":
            ones = _NUMBER_WORDS[token.text]
            if last is not None and last.text in {str(10 * n) for n in range(2, 10)} and 0 < ones < 10:
                joined[-1] = Token(str(int(last.text) + ones), VALUE)
                continue
            joined.append(Token(str(ones), VALUE))
        elif number and last is not None and token.text in _MULTIPLIERS:
            joined[-1] = Token(str(int(last.text) * _MULTIPLIERS[token.text]), VALUE)
        elif last is not None and last.kind == VALUE and _scales(last.text, token.text):
            joined[-1] = Token(_scaled_text(last.text, _MULTIPLIERS[token.text]), VALUE)
        elif number and last is not None and token.kind == WORD and token.text in _UNITS:
            joined[-1] = Token(last.text + _UNITS[token.text], VALUE)
        elif token.kind == VALUE and token.text.isdigit() and last is not None and last.text in ("usd", "eur", "gbp"):
            joined[-1] = Token(token.text + _CURRENCIES[last.text], VALUE)
        else:
            joined.append(token)
    return joined


_DECIMAL: Final = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)([$€£]?)")


def _scales(value: str, word: str) -> bool:
    return word in _MULTIPLIERS and _DECIMAL.fullmatch(value) is not None


def _scaled_text(value: str, by: int) -> str:
    amount = _DECIMAL.fullmatch(value)
    return f"{_scaled(amount[1], by)}{amount[2]}" if amount else value


def _date(found: re.Match[str]) -> str:
    parts = found.groupdict()
    if parts["month"].islower() and len(parts["month"]) == 3:
        return found[0]  # "may 5 people", "mar 3"
    month, day = _MONTH_NUMBERS[parts["month"].lower()], int(parts["day"])
    if not 1 <= day <= 31:
        return found[0]
    year = f"{parts['year']}-" if parts.get("year") else ""
    return f"{year}{month:02}-{day:02}"


def _time(found: re.Match[str]) -> str:
    hour = int(found[1])
    if not 1 <= hour <= 12:
        return found[0]
    return f"{hour % 12 + (12 if found[3].lower() == 'p' else 0):02}:{found[2] or '00'}"
