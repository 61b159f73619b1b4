"""What each class of reference looks like: the table behind `rules.references`.

`classify` judges one short span as a whole, never a text. All quantifiers are bounded, and what follows a quantifier
can't begin with what it repeats, so that no pattern searches back over more than one span.
"""

from __future__ import annotations

import re
from typing import Final

from strandline.limits import REFERENCE_CHARS_MAX
from strandline.model.reference import ReferenceClass


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


MONEY_SIGNS: Final = ("$", "€", "£")
HASH_CHARS_SURE: Final = 32  # from here on hexadecimal digits are a hash, also without a digit or without a letter
HANDLE_CHARS_MIN: Final = 5
CAMEL_CHARS_MIN: Final = 4

UNITS: Final = (
    r"[nuµμm]?s|secs?|seconds?|milliseconds?|mins?|minutes?|h|hrs?|hours?|days?|weeks?|months?|years?"
    r"|(?:[kKMGTP]i?)?B(?:/s|ps)?|[kmgt]b|[kKMG]?bps|[kMG]bit(?:/s)?|bytes?|bits?"
    r"|[kMGT]?Hz|fps|[rqt]ps|rpm|(?:tokens?|requests?|req)/(?:s|sec|min|h|day)|tokens?|chars?|characters?"
    r"|[kcm]?m|[mk]?g|lbs?|mi|ft|k?W|kWh|mAh|°[CF]|px|dpi|%|percent|USD|EUR|GBP|JPY|CHF|dollars?|cents?|euros?"
)
"""The units that count after one space, and directly after the number."""

_ATTACHED_UNITS: Final = r"[kKMBx]|[dw]|bn|r?em|pt|v[hw]|V|A|€|£"
NUMBER: Final = r"(?:[0-9]{1,3}(?:,[0-9]{3}){1,6}+|[0-9]{1,18}+)(?:\.[0-9]{1,12}+)?"
_QUANTITY: Final = re.compile(rf"{NUMBER}[kKM]? (?:{UNITS})")
_URL: Final = r"[A-Za-z][A-Za-z0-9+.-]{0,31}://[\w.~:/?#@!$&*+,;=%()-]{1,511}(?<![.,;:!?*])"
_OCTET: Final = r"(?:25[0-5]|2[0-4][0-9]|1?[0-9]{1,2})"
_TOP_LEVEL: Final = r"(?:com|org|net|io|dev|ai|app|cloud|local|internal|example|test)"

_EXTENSIONS: Final = _words(
    "py pyi ipynb go rs ts tsx js jsx mjs cjs java kt kts swift rb php cs cc cpp hpp hs erl exs scala lua dart sh"
    " bash zsh bat ps1 sql html htm css scss less vue svelte graphql proto tf json jsonl ndjson yaml yml toml ini"
    " cfg conf xml csv tsv txt md mdx rst tex pdf doc docx xls xlsx ppt pptx png jpg jpeg gif svg webp ico mp3 mp4"
    " wav zip gz tgz tar bz2 xz whl jar exe dll parquet sqlite sqlite3 db log lock pem crt patch diff traj tmpl"
    " bak service c h"
)
_NO_FILE_STEMS: Final = _words(
    "console logger math Math this self process module e event req res resp response request obj np"
)
"""`console.log` is code: a name with a file's extension after one of these is no file."""

_PATH_ROOTS: Final = _words(
    "api app apps assets backend bin build client cmd components config configs data db deploy dev dist docs etc"
    " examples feat feature fix fixtures frontend home hooks internal lib libs main migrations models modules"
    " node_modules opt origin packages pages pkg public refs release root routes scripts server services shared"
    " src static styles templates test testdata tests tmp tools upstream usr utils var vendor work"
)
"""A relative path of plain words is known by its first one; `and/or` is none."""

_COMMON: Final = _words(
    "utf-8 utf-16 utf-32 utf_8 iso-8601 iso-8859-1 sha-1 sha-256 sha-512 sha256 sha384 sha512 base64 base32"
    " x86_64 x86-64 github gitlab bitbucket javascript typescript postgresql mysql nosql macos iphone openai"
    " chatgpt youtube linkedin devops graphql langchain node.js next.js vue.js"
)
"""Names, in lower case, that have the form of an identifier and identify nothing."""

_UUID: Final = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_TIMESTAMP: Final = (
    r"[0-9]{4}-[01][0-9]-[0-3][0-9]"
    r"(?:T[0-2][0-9]:?[0-5][0-9](?::?[0-6][0-9](?:[.,][0-9]{1,9})?)?(?:Z|[+-][0-2][0-9]:?[0-5][0-9])?)?"
    r"|[0-2][0-9]:[0-5][0-9]:[0-6][0-9](?:[.,][0-9]{1,9})?Z?"
)
_ADDRESS: Final = rf"(?:{_OCTET}\.){{3}}{_OCTET}(?:/[0-9]{{1,2}}|:[0-9]{{1,5}})?"
_HOST: Final = (
    rf"{_ADDRESS}|localhost:[0-9]{{1,5}}"
    rf"|(?:[a-z0-9][a-z0-9-]{{0,62}}\.){{1,8}}{_TOP_LEVEL}:[0-9]{{1,5}}"
)
_VERSION: Final = (
    r"(?:[A-Za-z][A-Za-z0-9_.-]{0,63}@)?(?:[vV][0-9]{1,9}(?:\.[0-9]{1,9}){1,3}|[0-9]{1,9}(?:\.[0-9]{1,9}){2,3})"
    r"(?:[-+][0-9A-Za-z.+-]{1,64}|(?:a|b|rc)[0-9]{1,4}|\.(?:dev|post)[0-9]{1,6})?"
)
_AMOUNT: Final = (
    rf"[$€£]{NUMBER}(?:bn|[kKMB])?(?:/[A-Za-z]{{1,8}})?"
    rf"|(?:[0-9]{{1,6}}[dhm]){{0,3}}{NUMBER}(?:{UNITS}|{_ATTACHED_UNITS})(?:/[A-Za-z]{{1,8}})?"
)
_HASH: Final = r"[0-9a-fA-F]{7,128}|0x[0-9a-fA-F]{4,128}|(?:sha(?:1|256|384|512)|md5):[0-9a-fA-F]{7,128}"
_ISSUE: Final = r"(?:[A-Za-z][A-Za-z0-9_.-]{0,63}(?:/[A-Za-z0-9_.-]{1,100})?)?#[0-9]{1,9}|GH-[0-9]{1,9}"
_TICKET: Final = r"[A-Z][A-Z0-9]{1,9}-[0-9]{1,9}"
_EMAIL: Final = r"[A-Za-z0-9_.+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}"
_FILE: Final = (
    rf"[A-Za-z0-9_][A-Za-z0-9_.+-]{{0,200}}\.(?:{'|'.join(sorted(_EXTENSIONS))})|go\.(?:mod|sum|work)"
    r"|\.(?:env(?:\.[a-z]{2,16})?|(?:git|docker|npm|prettier|eslint)ignore|gitattributes|[a-z]{2,16}rc|editorconfig)"
)
_PATH: Final = (
    r"[@\w~.+%-]{0,255}+(?:/[@\w~.+%-]{1,255}+){1,64}+/?|(?:~|[\w.-]{1,255}+)/"
    r"|[A-Za-z]:(?:[\\/]{1,2}[\w.~@+%-]{1,255}+){1,64}+[\\/]?|\\\\[\w.-]{1,255}+(?:\\{1,2}[\w.$~@+%-]{1,255}+){1,64}+"
)
_NAME: Final = r"_{0,2}[A-Za-z0-9]{1,512}(?:[_.-]{1,2}[A-Za-z0-9]{1,512}){0,64}_{0,2}"

_SOLID: Final = (
    r"(?=[0-9]{0,511}+[A-Z])[A-Z0-9]{6,512}|[A-Z]{1,4}[0-9]{4,18}"
    r"|(?=.{8})[A-Za-z]{0,512}+[0-9]{1,512}+[A-Za-z]{1,512}+[0-9][A-Za-z0-9]{0,512}"
)


def _shapes(*shapes: tuple[ReferenceClass, str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?P<{name.value}>{pattern})" for name, pattern in shapes))


_UUIDS: Final = (ReferenceClass.UUID, _UUID)
_TIMESTAMPS: Final = (ReferenceClass.TIMESTAMP, _TIMESTAMP)
_ADDRESSES: Final = (ReferenceClass.HOST, _ADDRESS)
_VERSIONS: Final = (ReferenceClass.VERSION, _VERSION)
_AMOUNTS: Final = (ReferenceClass.NUMBER, _AMOUNT)
_HASHES: Final = (ReferenceClass.HASH, _HASH)
_ISSUES: Final = (ReferenceClass.ISSUE, _ISSUE)
_TICKETS: Final = (ReferenceClass.TICKET, _TICKET)
_PATHS: Final = (ReferenceClass.PATH, _PATH)
_FILES: Final = (ReferenceClass.PATH, _FILE)
_NAMES: Final = (ReferenceClass.HANDLE, _NAME)

# Which classes a span can be of depends on a character that it holds, and on its first one. Each list is a cut of one:
# URL, UUID, TIMESTAMP, HOST, VERSION, NUMBER, HASH, ISSUE, TICKET, EMAIL, PATH, HANDLE; the first that fits counts.
_WITH_SCHEME: Final = _shapes((ReferenceClass.URL, _URL), _PATHS)
_WITH_HASH_SIGN: Final = _shapes(_ISSUES)
_SLASHED_FIGURE: Final = _shapes(_ADDRESSES, _AMOUNTS, _PATHS)
_SLASHED: Final = _shapes(_PATHS)
_WITH_AT: Final = _shapes(_VERSIONS, (ReferenceClass.EMAIL, _EMAIL))
_WITH_COLON: Final = _shapes(_TIMESTAMPS, (ReferenceClass.HOST, _HOST), _HASHES)
_MONEY: Final = _shapes(_AMOUNTS)
_SOLID_FIGURE: Final = _shapes(_AMOUNTS, _HASHES, (ReferenceClass.HANDLE, _SOLID))
_FIGURE: Final = _shapes(_UUIDS, _TIMESTAMPS, _AMOUNTS, _HASHES, _NAMES)
_DOTTED_FIGURE: Final = _shapes(_TIMESTAMPS, _ADDRESSES, _VERSIONS, _AMOUNTS, _FILES, _NAMES)
_WORD: Final = _shapes(_UUIDS, _ISSUES, _TICKETS, _NAMES)
_DOTTED_WORD: Final = _shapes(_VERSIONS, _FILES, _NAMES)
_CLASSES: Final[dict[str | None, ReferenceClass]] = {name.value: name for name in ReferenceClass}

_DOTTED: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,255}(?:\.[A-Za-z_][A-Za-z0-9_]{0,255}){1,16}")
_HEX: Final = re.compile(r"[0-9a-fA-F]{7,128}")
_INNER_UNDERSCORE: Final = re.compile(r"[A-Za-z0-9]_{1,2}[A-Za-z0-9]")
_HUMP: Final = re.compile(r"[a-z][0-9]{0,4}[A-Z]|[A-Z]{2}[a-z]{2}")
_DIGIT: Final = re.compile(r"[0-9]")
_LETTER: Final = re.compile(r"[^\W\d_]")
_JOINED: Final = re.compile(r"_{0,2}[A-Za-z0-9]{1,512}[_-]")
_COMPOUND: Final = re.compile(r"[0-9]{1,18}(?:-[A-Za-z]{1,64}){1,8}")
_SOLID_HANDLE: Final = re.compile(_SOLID)
_GREP_CONTEXT: Final = re.compile(r"\.[A-Za-z]{1,8}-[0-9]{1,7}(?:-|\Z)")  # `main.go-17-`, a line around a match
_PATH_MARK: Final = re.compile(r"[0-9_-]|\w\.\w")


def classify(span: str) -> ReferenceClass | None:
    """Return the class of `span` if, as a whole, it is a reference; the same that `extract` finds it with."""
    if len(span) > REFERENCE_CHARS_MAX:
        return None
    if span.isidentifier():
        return _of_identifier(span) if span.isascii() else None
    if " " in span:
        return ReferenceClass.NUMBER if _QUANTITY.fullmatch(span) else None
    pattern = _pattern(span)
    if pattern is _DOTTED_WORD and _DOTTED.fullmatch(span):
        return _of_dotted(span)
    match = pattern.fullmatch(span)
    if match is None or (pattern is _WORD and not _DIGIT.search(span)):
        return None
    found = _CLASSES[match.lastgroup]
    if found is ReferenceClass.PATH:
        return found if "/" not in span or _is_path(span) else None
    if found is ReferenceClass.HASH:
        return found if len(span) >= HASH_CHARS_SURE or not span.isdigit() else None
    if found is ReferenceClass.HANDLE:
        return _of_name(span)
    if found is ReferenceClass.TICKET and span.lower() in _COMMON:
        return None
    return found


def _pattern(span: str) -> re.Pattern[str]:
    """Return the pattern of the classes that a span can be of."""
    first = span[:1]
    figure = "0" <= first <= "9"
    if figure and span.isalnum():
        return _SOLID_FIGURE
    if "/" in span or "\\" in span:
        if "://" in span:
            return _WITH_SCHEME
        if "#" in span:
            return _WITH_HASH_SIGN
        return _SLASHED_FIGURE if figure or first in MONEY_SIGNS else _SLASHED
    if "#" in span:
        return _WITH_HASH_SIGN
    if "@" in span:
        return _WITH_AT
    if ":" in span:
        return _WITH_COLON
    if first in MONEY_SIGNS:
        return _MONEY
    if "." in span:
        return _DOTTED_FIGURE if figure else _DOTTED_WORD
    return _FIGURE if figure else _WORD


def _of_identifier(span: str) -> ReferenceClass | None:
    """Judge a run of ASCII letters, digits and underscores that begins with no digit."""
    if "_" in span and _INNER_UNDERSCORE.search(span):
        if span.isupper():
            return ReferenceClass.CONSTANT
        if not _DIGIT.search(span):
            return ReferenceClass.SNAKE_CASE
        return ReferenceClass.HANDLE if len(span) >= HANDLE_CHARS_MIN and span.lower() not in _COMMON else None
    if not span.isalpha():
        if _HEX.fullmatch(span) and _DIGIT.search(span):
            return ReferenceClass.HASH
        if _SOLID_HANDLE.fullmatch(span) and _DIGIT.search(span):
            return ReferenceClass.HANDLE if span.lower() not in _COMMON else None
    elif len(span) >= HASH_CHARS_SURE and _HEX.fullmatch(span):
        return ReferenceClass.HASH
    if len(span) >= CAMEL_CHARS_MIN and _HUMP.search(span) and span.lower() not in _COMMON:
        return ReferenceClass.CAMEL_CASE
    return None


def _of_dotted(span: str) -> ReferenceClass | None:
    """Judge identifiers joined by single dots: a file's name, or names of a program."""
    stem, _, last = span.rpartition(".")
    if (last in _EXTENSIONS and stem not in _NO_FILE_STEMS) or span in ("go.mod", "go.sum", "go.work"):
        return ReferenceClass.PATH if span.lower() not in _COMMON else None
    if "_" in span and _INNER_UNDERSCORE.search(span):
        return ReferenceClass.SNAKE_CASE
    return ReferenceClass.CAMEL_CASE if _HUMP.search(span) else None


def _of_name(span: str) -> ReferenceClass | None:
    """Judge ASCII letters and digits joined by `-`, `_` and `.` that have no other form."""
    if len(span) < HANDLE_CHARS_MIN or not _DIGIT.search(span) or not _LETTER.search(span):
        return None
    if not (_JOINED.match(span) or _SOLID_HANDLE.fullmatch(span)):
        return None
    if span.lower() in _COMMON or _COMPOUND.fullmatch(span):
        return None
    return ReferenceClass.HANDLE


def _is_path(span: str) -> bool:
    """Tell a path from `and/or`, `24/7`, `</div>` and `I/O`."""
    if not _LETTER.search(span) or "..." in span or _GREP_CONTEXT.search(span):
        return False
    body = span.strip("/")
    first, slash, _ = body.partition("/")
    if span.startswith(("./", "../", "~/", "@")) or first.lower() in _PATH_ROOTS:
        return True
    if span.startswith("/"):
        return bool(slash) or "." in body
    if span.isupper() or (first.isdigit() and body.count("/") == 1):
        return False
    return _PATH_MARK.search(body) is not None or body.count("/") > 2
