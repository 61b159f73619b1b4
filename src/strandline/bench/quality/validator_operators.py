"""The operators that make the validators' corpus: what a summarizer does to a statement, well and badly.

Each takes a statement and yields what became of it, or nothing where it does not apply. `MUTATIONS` change what is
said, `SURROUNDINGS` leave it word for word and take it back by what stands around it, `FRAMES` only set it down in
another way. They know nothing of the rules that are measured with them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

Operator = Callable[[str], Iterator[str]]

_NUMBER: Final = re.compile(r"(?<![\w.:/@-])\d[\d,]*(?:\.\d+)?(?![\w:/@-]|\.\d)")
_VERSION: Final = re.compile(r"(?<![\w.])\d+\.\d+\.\d+(?![\w.])")
_DATE: Final = re.compile(r"\b(\d{4})-(\d\d)-(\d\d)\b")
_IDENTIFIER: Final = re.compile(r"\b[a-z]+-[0-9a-f]*\d[0-9a-f]*\b|\b[0-9a-f]{8}\b")
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def _swapped(pairs: str, *, whole: bool = True) -> Operator:
    """Return an operator that puts one of each pair in the place of the other; pairs as `a=b|c=d`."""
    table = [pair.split("=") for pair in pairs.split("|")]

    def swap(text: str) -> Iterator[str]:
        for one, other in table:
            edge = r"\b" if whole else ""
            found = re.compile(rf"{edge}{re.escape(one)}{edge}")
            if found.search(text):
                yield found.sub(other, text, count=1)

    return swap


def _number_changed(text: str) -> Iterator[str]:
    for found in _NUMBER.finditer(text):
        number = found[0].replace(",", "").partition(".")[0]
        for other in (str(int(number) + 1), f"{number}0", number[::-1] if number != number[::-1] else f"{number}7"):
            yield text[: found.start()] + other + text[found.end() :]


def _version_changed(text: str) -> Iterator[str]:
    for found in _VERSION.finditer(text):
        major, minor, patch = found[0].split(".")
        for other in (f"{major}.{minor}.{patch}1", f"{int(major) + 1}.{minor}.{patch}", f"{major}.{patch}.{minor}"):
            if other != found[0]:
                yield text[: found.start()] + other + text[found.end() :]


def _date_changed(text: str) -> Iterator[str]:
    for found in _DATE.finditer(text):
        year, month, day = found[1], found[2], found[3]
        for other in (f"{int(year) + 1}-{month}-{day}", f"{year}-{month}-{int(day) + 1:02}", f"{year}-05-{day}"):
            yield text[: found.start()] + other + text[found.end() :]
    for n, day in enumerate(_DAYS):
        if day in text:
            yield text.replace(day, _DAYS[(n + 2) % 7])


def _identifier_changed(text: str) -> Iterator[str]:
    for found in _IDENTIFIER.finditer(text):
        last = found[0][-1]
        other = found[0][:-1] + ("3" if last != "3" else "4")
        yield text[: found.start()] + other + text[found.end() :]
        yield text[: found.end()] + "0" + text[found.end() :]


_UNITS: Final = _swapped(
    "seconds=minutes|30 s=30 ms|30 s.=30 min.|dollars=euros|EUR=GBP|€=£|$=€| days= weeks|TB=GB|pm=am"
    "|percent=per mille|%=‰"
    "|per day=per hour|per week=per month",
    whole=False,
)
_NEGATED: Final = _swapped(
    "must not=must|must never=must always|Do not =|Never =Always |not to=to|is not=is|has not=has|without=with"
    "|No deploys=Deploys|are forbidden=are welcome|is forbidden=is fine|not paid=paid"
)
_DENIED: Final = _swapped(
    "must be=must not be|must stay=must not stay|must run=must not run|must answer=must not answer|is=is not"
    "|was=was not"
    "|has to=does not have to|have to=do not have to|may=may not|will=will not|depends=does not depend"
    "|owns=does not own"
    "|needs=does not need|holds=does not hold|prefers=does not prefer|are=are not|Copy=Do not copy|Use=Do not use"
    "|Send=Do not send|Keep=Do not keep|Ask=Do not ask"
)
_LOOSENED: Final = _swapped(
    "must not=should not|must never=should rarely|must=should|must=may|must=might|has to=can|have to=may|needs=can use"
    "|Never=Try not to|Do not=Try not to|Do not=Preferably do not|Never=Rarely|are forbidden=are discouraged"
    "|is forbidden=is not recommended|at least=about|at most=usually|Use=Consider using|Send=Try to send"
    "|Keep=Maybe keep"
    "|Copy=You may copy|Ask=Feel free to ask|Only=Preferably only"
)
_QUANTITIES: Final = _swapped(
    "at least=at most|at most=at least|up to=at least|up to=more than|over=under|no more than=no fewer than|All=Some"
    "|all=some|Every=Almost every|every=nearly every|Each=One|Only=Not only|within=not within|anyone=someone|any=some"
    "|twice=once|and=or| and = but not |two maintainers=one maintainer"
)
_PLACES: Final = _swapped(
    "production=staging|prod=dev|staging=production|before=after|after=before|from=to|until=after|inside=outside"
    "|outside=inside|public=private|business=private|nightly=weekly|weekly=yearly|French=German|main=develop"
    "|eu-west-1=eu-west-2|legal=sales|login=signup|frontend=app|Dana=Sam|Sam=Dana|Kim=Lee|customer=partner"
    "|client=server"
    "|publisher=tester|finance@=finances@|agent=user|logs=database|tabs=spaces|experiment=project|gateway=proxy"
)
_TIMES: Final = _swapped(
    "will run=ran|will run=has run|is going to run=has run|is scheduled to run=was run|is pending=was completed"
    "|pending=approved|pending=done|still pending=now done|is open=is closed|remains open=was resolved|open=resolved"
    "|has not been paid=has been paid|not been completed yet=been completed|has not finished=has finished"
    "|is running=ran"
    "|approved=will approve|has approved=is about to approve|was moved=will be moved|granted=will grant|failed=passed"
    "|was rotated=is to be rotated|rotated=will rotate|started=will start|started=completed|is built=will be built"
    "|is=was|are=were|depends=depended|must be=was|must be=had been|must run=ran"
)


def _narrowed(text: str) -> Iterator[str]:
    """Add a condition, an exception or a doubt."""
    bare = text.rstrip(".")
    for more in (
        "except for hotfixes",
        "unless it is urgent",
        "if possible",
        "in most cases",
        "only during the pilot",
        "for now",
        "when there is time",
        "apart from internal use",
        "until further notice",
        "unless Kim says otherwise",
        "at least in theory",
        "as far as we know",
    ):
        yield f"{bare}, {more}."
        yield f"{bare} {more}."


def _doubted(text: str) -> Iterator[str]:
    """Say that it is thought, asked, planned or wrong instead of so."""
    clause = _lowered(text.rstrip("."))
    for frame in (
        "It is not true that {}.",
        "It is unclear whether {}.",
        "Maybe {}.",
        "Sam suggested that {}.",
        "The claim that {} was wrong.",
        "Nobody said that {}.",
        "If the board agrees, {}.",
        "Previously, {}.",
        "The idea that {} was dropped.",
        "We considered the following: {}.",
        "The user no longer insists that {}.",
        "Probably {}.",
        "As an example, suppose that {}.",
        "{}, or so we hope.",
        "{} was the plan before the meeting.",
        "{}, but this is not certain.",
    ):
        yield frame.format(clause)
    yield f"{text.rstrip('.')}?"


def _halved(text: str) -> Iterator[str]:
    """Lose the end of it, or the beginning."""
    words = text.rstrip(".").split()
    if len(words) > 5:
        yield " ".join(words[: len(words) // 2]) + "."
        yield " ".join(words[:-2]) + "."
        yield " ".join(words[len(words) // 2 :]) + "."


MUTATIONS: Final[dict[str, Operator]] = {
    "number": _number_changed,
    "version": _version_changed,
    "date": _date_changed,
    "identifier": _identifier_changed,
    "unit": _UNITS,
    "negation gone": _NEGATED,
    "negated": _DENIED,
    "loosened": _LOOSENED,
    "quantity": _QUANTITIES,
    "scope or person": _PLACES,
    "time or status": _TIMES,
    "narrowed": _narrowed,
    "doubted": _doubted,
    "cut": _halved,
}


def _lowered(text: str) -> str:
    first, _, rest = text.partition(" ")
    return text if any(char.isdigit() for char in first) or first in NAMES else f"{first.lower()} {rest}"


NAMES: Final = ("Dana", "Sam", "Kim", "Issue", "API", "DB", "VAT")


def _surrounded(*frames: str) -> Operator:
    def surround(text: str) -> Iterator[str]:
        for frame in frames:
            yield frame.format(text=text, bare=text.rstrip("."))

    return surround


SURROUNDINGS: Final[dict[str, Operator]] = {
    "taken back behind it": _surrounded(
        "{text} This no longer applies.",
        "{text} That turned out to be wrong.",
        "{text} It was withdrawn later.",
        "{text} The statement above is outdated.",
        "{text} However, this was a misunderstanding and is not true.",
        "{text} That was later reversed.",
    ),
    "taken back before it": _surrounded(
        "The following is no longer valid. {text}",
        "Ignore the next sentence. {text}",
        "The user rejected this: {text}",
        "It was once said, and is obsolete now: {text}",
    ),
    "under a heading": _surrounded(
        "Obsolete:\n- {text}",
        "## Rejected proposals\n\n- {text}",
        "Examples of what we do not do:\n- {text}",
        "Outdated notes:\n1. {text}",
        "## No longer valid\n{text}",
        "Ideas that were dropped:\n* {text}\n* something else",
    ),
    "struck or marked": _surrounded("~~{text}~~", "{text} (outdated)", "{text} [withdrawn]", "[obsolete] {text}"),
}

FRAMES: Final[dict[str, Operator]] = {
    "alone": _surrounded("{text}"),
    "bullet": _surrounded("- {text}", "* {bare}", "3. {text}", "  - {text}", "- [ ] {text}", "• {text}"),
    "marked up": _surrounded("**{text}**", "- **{bare}**.", "`{bare}`", "_{text}_", "> {text}"),
    "labelled": _surrounded("[12] lead/message: {text}", "Rule: {text}", "Fact: {text}", "- Constraint: {text}"),
    "quoted": _surrounded(
        'The user said: "{text}"', 'The user wrote: "{bare}".', "“{text}”", "As the user said: {text}"
    ),
    "under a heading": _surrounded("## What holds\n\n{text}", "Standing facts:\n- {text}\n- The tests are green."),
    "beside others": _surrounded(
        "The parser is half written. {text} The user sleeps now.",
        "{text} The docs are next.",
        "The import works; {text}",
        "The tests are not green. {text} Nobody looked at the docs yet.",
        "The old parser was removed. {text} If there is time, the docs come next.",
    ),
}
"""Word for word, and nothing around it that takes it back."""


def wrapped(text: str) -> Iterator[str]:
    """Break the line within it, as a terminal does."""
    words = text.split()
    if len(words) > 4:
        half = len(words) // 2
        yield f"{' '.join(words[:half])}\n{' '.join(words[half:])}"


def contradicted(text: str) -> Iterator[str]:
    """Say it, and what goes against it in another place."""
    against = (*_number_changed(text), *_version_changed(text), *_UNITS(text), *_NEGATED(text), *_DENIED(text))
    for other in against:
        yield f"{text}\n\nThe parser is half written.\n\n{other}"
