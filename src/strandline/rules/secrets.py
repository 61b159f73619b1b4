"""Which parts of a text are secrets, and what stands in their place (C12).

The log keeps what was said, byte for byte. What is derived from it (the references, the events that a summarizer is
shown, and so summary, manifest and ledger) is made from texts in which every secret is replaced by a mark that names
its kind. Three sorts are found:

- values of a known form: keys and tokens of well-known services, JSON web tokens, private keys;
- values in a known place: behind `password=` and its kin, in an Authorization or Cookie header, in a URL before the @;
- what a user's patterns match (`rules.reference_rules`).

A value in a known place is a secret only if it looks like one: a placeholder, a word or a call is left as it is. Time
is linear in the text: every search begins at a literal, and every repetition is bounded.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from itertools import chain
from typing import Final, NamedTuple

MARK: Final = "REDACTED-"  # and the kind: one token, so that the text around it reads as before
VALUE_CHARS_MAX: Final = 4_096  # of one secret; a private key may be longer
KEY_BLOCK_CHARS_MAX: Final = 16_384


Spans = Callable[[str], Iterable[tuple[int, int]]]


class SecretKind(enum.StrEnum):
    """What a secret is."""

    API_KEY = "api-key"
    TOKEN = "token"  # noqa: S105  a kind
    JWT = "jwt"
    PRIVATE_KEY = "private-key"
    PASSWORD = "password"  # noqa: S105  a kind
    COOKIE = "cookie"


class Secret(NamedTuple):
    """A secret in a text: from `start` to `end`. `kind` is a SecretKind, or the name of a user's pattern."""

    start: int
    end: int
    kind: str


def mark_of(kind: str) -> str:
    """Return what stands in the place of a secret."""
    return f"{MARK}{kind}"


def _form(literal: str, rest: str) -> re.Pattern[str]:
    """Compile a form: behind its literal, by which it is found fast, it says that no token begins before it."""
    return re.compile(rf"{literal}(?<![A-Za-z0-9_-]{literal}){rest}(?![A-Za-z0-9])")


_FORMS: Final = (
    (SecretKind.API_KEY, _form("sk-", r"(?=[\w-]{0,200}[0-9])(?=[\w-]{0,200}[A-Z]|[a-f0-9]{32})[\w-]{20,300}")),
    (SecretKind.API_KEY, _form("sk_", r"(?:live|test)_\w{16,200}")),
    (SecretKind.API_KEY, _form("rk_", r"(?:live|test)_\w{16,200}")),
    (SecretKind.API_KEY, _form("AKIA", r"[A-Z0-9]{16}")),
    (SecretKind.API_KEY, _form("ASIA", r"[A-Z0-9]{16}")),
    (SecretKind.API_KEY, _form("AIza", r"[\w-]{35}")),
    (SecretKind.API_KEY, _form(r"SG\.", r"[\w-]{16,64}\.[\w-]{16,128}")),
    (SecretKind.TOKEN, _form("gh", r"[opsur]_[A-Za-z0-9]{20,255}")),
    (SecretKind.TOKEN, _form("github_pat_", r"\w{22,255}")),
    (SecretKind.TOKEN, _form("glpat-", r"[\w-]{20,255}")),
    (SecretKind.TOKEN, _form("npm_", r"[A-Za-z0-9]{36}")),
    (SecretKind.TOKEN, _form("pypi-", r"AgE[\w-]{40,1000}")),
    (SecretKind.TOKEN, _form("hf_", r"[A-Za-z0-9]{30,100}")),
    (SecretKind.TOKEN, _form("xox", r"[abeoprs]-[A-Za-z0-9-]{10,255}")),
    (SecretKind.TOKEN, _form(r"ya29\.", r"[\w-]{20,2000}")),
    (SecretKind.TOKEN, _form("GOCSPX-", r"[\w-]{20,100}")),
    (SecretKind.TOKEN, _form("dop_v1_", r"[a-f0-9]{40,100}")),
    (SecretKind.TOKEN, _form("shp", r"(?:at|ca|pa|ss)_[a-fA-F0-9]{20,100}")),
    (SecretKind.API_KEY, _form("whsec_", r"[A-Za-z0-9+/=]{20,200}")),
    (SecretKind.TOKEN, _form(r"hooks\.slack\.com/services/", r"T\w{6,20}/B\w{6,20}/\w{16,64}")),
    (SecretKind.JWT, _form("eyJ", r"[\w-]{8,4096}\.eyJ[\w-]{2,4096}\.[\w-]{8,4096}")),
)
"""Secrets that are known by their form."""

_KEY_BEGINS: Final = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_ENDS: Final = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_BODY: Final = re.compile(r"(?:[A-Za-z0-9+/=:,.\-\s]|\\[nr]){0,16384}")

_NAMES: Final = (
    ("password", SecretKind.PASSWORD, None),
    ("passwd", SecretKind.PASSWORD, None),
    ("passphrase", SecretKind.PASSWORD, None),
    ("pwd", SecretKind.PASSWORD, None),
    ("secret", SecretKind.TOKEN, None),
    ("token", SecretKind.TOKEN, re.compile(r"(?s)(?!.*(?:next|page|sync|ation|cursor|design)[_-]?$)")),
    ("signature", SecretKind.TOKEN, None),
    ("credential", SecretKind.TOKEN, None),
    ("key", SecretKind.API_KEY, re.compile(r"(?s).*(?:api|access|account|private|encryption|signing|secret)[_-]?$")),
)
"""Words behind which a value stands, what it is, and what has to stand before the word. They may be part of a longer
name: `DB_PASSWORD`, `authTokens`. A token that turns a page is none that opens a door."""

_BEFORE_CHARS_MAX: Final = 24
_MARK_BEGINS: Final = tuple(
    {f"{MARK}{kind.value[: -len(word)]}" for kind in SecretKind for word, *_ in _NAMES if kind.endswith(word)}
)
_ASSIGNED: Final = re.compile(
    r"""(?P<rest>[\w.-]{0,40})(?:\\{0,3}["'])?(?:\s{0,4}(?::=|=>|=|:)\s{0,4}|\sis\s{1,4})(?P<quote>\\{0,3}["'`])?"""
    r"""(?P<value>[^\s"'`\\<>(){}\[\],;&|]{1,4096})"""
)
_FLAG: Final = re.compile(r"(?s).*--[\w-]{0,20}$")  # before the word of a name on a command line
_FLAGGED: Final = re.compile(
    r"""(?P<rest>[\w-]{0,40})[ \t]{1,4}(?P<quote>["'])?(?P<value>(?!-)[^\s"'`\\<>(){}\[\],;&|]{1,4096})"""
)
_OF_ANOTHER: Final = (
    *("id", "name", "arn", "path", "file", "dir", "url", "uri", "endpoint", "address", "type", "algo", "algorithm"),
    *("version", "format", "policy", "prefix", "stdin", "izer"),
)
"""How a name goes on behind its word where the value is none: `token_id`, `passwordFile`, `tokenizer`."""
_PATH: Final = re.compile(r"(?:~|\.{1,2})?/[\w.+@-]+(?:/[\w.+@-]*)*$")  # as in PWD=/srv/app
_QUOTED: Final = re.compile(r"""(?P<value>[^"'`\\\r\n]{1,4096}?)\\{0,3}["'`]""")
_HEADER: Final = re.compile(
    r"""(?:\\{0,3}["'])?\s{0,4}[:=]\s{0,4}(?:\\{0,3}["'])?(?P<scheme>(?i:bearer|basic|token|digest|apikey)\s{1,4})?"""
    r"""(?P<value>[\w.~+/=:-]{8,4096})"""
)
_BEARER: Final = re.compile(r"\s{1,4}(?P<value>[\w.~+/=-]{16,4096})")
_COOKIES: Final = re.compile(r"""(?:\\{0,3}["'])?\s{0,4}[:=]\s{0,4}(?:\\{0,3}["'])?(?P<value>[^"'\r\n\\]{1,4096})""")
_COOKIE: Final = re.compile(r"[\w.!#$%&*+^|~-]{1,128}=(?P<value>[^\s;,]{8,4096})")
_SIGNED: Final = re.compile(r"sig=(?P<value>[\w%+/=.~-]{16,4096})")  # of a URL that grants what it names
_ADDRESS: Final = re.compile(r"""://[^\s:/@"'`<>\\]{0,200}:(?P<value>[^\s/@"'`<>\\]{1,400})@""")

_SIGN: Final = re.compile(
    r"sk[-_]|rk_|a[ks]ia|aiza|sg\.|gh[opsur]_|github_pat|ya29|gocspx|dop_v1|shp[acps]|whsec|hooks\.slack|glpat|npm_|pypi-|hf_|xox|eyj|-----b|://|sig="
    r"|passw|passphrase|pwd|secret|token|signature|credential|key|authorization|bearer|cookie"
)
SHORT_CHARS_MAX: Final = 400
SIGN_CHARS_MIN: Final = 3

_PLACEHOLDER: Final = re.compile(
    r"(?i)[$%*.x_?-]|your|my[_-]|example|change|placeholder|dummy|secret$|password$|token$|none|null|true|false"
)
_CODE: Final = re.compile(r"[A-Za-z_]\w*(?:(?:\.|->|::)[A-Za-z_]\w*)+$")  # an attribute, not a value
_BLANK: Final = re.compile(r"\s")
_DIGIT: Final = re.compile(r"[0-9]")
_LETTER: Final = re.compile(r"[A-Za-z]")
PASSWORD_CHARS_MIN: Final = 6
TOKEN_CHARS_MIN: Final = 16


class Secrets:
    """What is a secret, by a user's rules; without any, by the built-in ones.

    Args:
        off: kinds that are not looked for.
        patterns: by the name of its kind, what finds more: it yields from where to where.
    """

    def __init__(self, off: Container[str] = (), patterns: Mapping[str, Spans] | None = None) -> None:
        self._off = off
        self._patterns = dict(patterns or {})

    def find(self, text: str) -> list[Secret]:
        """Return the secrets of a text, in order; none overlaps another."""
        found: list[Secret] = []
        if len(text) > SHORT_CHARS_MAX or _may_hold(text):
            found = [secret for secret in chain(_by_form(text), _by_place(text)) if secret.kind not in self._off]
        for kind, spans in self._patterns.items():
            found += [
                Secret(start, end, kind) for start, end in spans(text) if start < end and MARK not in text[start:end]
            ]
        return _apart(found) if found else []

    def redact(self, text: str) -> str:
        """Return the text with a mark in the place of every secret; the same text where there is none. Idempotent."""
        found = self.find(text)
        if not found:
            return text
        parts: list[str] = []
        at = 0
        for secret in found:
            parts += (text[at : secret.start], mark_of(secret.kind))
            at = secret.end
        return "".join((*parts, text[at:]))

    def redact_json(self, value: object) -> object:
        """Return decoded JSON with every secret of its texts replaced; the same object where there is none.

        A text behind a key is judged as in `"key": "text"`.
        """
        if isinstance(value, str):
            return self.redact(value)
        if isinstance(value, Mapping):
            changed = {key: self._behind(key, inner) for key, inner in value.items()}
            return changed if any(changed[key] is not inner for key, inner in value.items()) else value
        if isinstance(value, list | tuple):
            items = [self.redact_json(item) for item in value]
            return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
        return value

    def _behind(self, key: str, value: object) -> object:
        if not isinstance(value, str):
            return self.redact_json(value)
        if not _may_hold(key):
            return self.redact(value)
        lead = f'"{key}": "'
        for secret in self.find(f'{lead}{value}"'):
            if secret.start == len(lead) and secret.end == len(lead) + len(value):
                return mark_of(secret.kind)
        return self.redact(value)


def looks_secret(value: str, kind: SecretKind) -> bool:
    """Tell whether a value in a place of that kind is one: no placeholder, no word, no code."""
    if len(value) < PASSWORD_CHARS_MIN or MARK in value or _PLACEHOLDER.match(value) or _CODE.match(value):
        return False
    mixed = _DIGIT.search(value) is not None and _LETTER.search(value) is not None
    if kind is SecretKind.PASSWORD or kind is SecretKind.COOKIE:
        return mixed or not (value.isalpha() or value.isdecimal())
    return mixed and len(value) >= TOKEN_CHARS_MIN and not _BLANK.search(value)


def _may_hold(text: str) -> bool:
    """Tell whether a short text has a sign of a secret: most have none, and one look costs less than many."""
    return len(text) >= SIGN_CHARS_MIN and _SIGN.search(text.lower()) is not None


def _by_form(text: str) -> Iterator[Secret]:
    for kind, form in _FORMS:
        for found in form.finditer(text):
            yield Secret(*found.span(), kind)
    begun = _KEY_BEGINS.search(text)
    while begun is not None:
        ended = _KEY_ENDS.search(text, begun.end(), begun.end() + KEY_BLOCK_CHARS_MAX)
        body = _KEY_BODY.match(text, begun.end())
        end = ended.end() if ended is not None else body.end() if body is not None else begun.end()
        yield Secret(begun.start(), end, SecretKind.PRIVATE_KEY)
        begun = _KEY_BEGINS.search(text, end)


def _by_place(text: str) -> Iterator[Secret]:
    folded = text.lower()
    if len(folded) != len(text):  # a letter that becomes two: places would not fit
        folded = text
    yield from _in_urls(text)
    yield from _behind_names(text, folded)
    yield from _in_headers(text, folded)


def _in_urls(text: str) -> Iterator[Secret]:
    for address in _ADDRESS.finditer(text):
        if MARK not in address["value"] and not _PLACEHOLDER.match(address["value"]):
            yield Secret(*address.span("value"), SecretKind.PASSWORD)
    for signed in _SIGNED.finditer(text):
        if text[signed.start() - 1 : signed.start()] in ("?", "&") and looks_secret(signed["value"], SecretKind.TOKEN):
            yield Secret(*signed.span("value"), SecretKind.TOKEN)


def _behind_names(text: str, folded: str) -> Iterator[Secret]:
    for name, kind, before in _NAMES:
        end = 0
        for at in _places(folded, name):
            begun = max(0, at - _BEFORE_CHARS_MAX)
            if (
                at < end  # inside of a value that was read
                or text.endswith(_MARK_BEGINS, begun, at)
                or (before is not None and not before.match(folded, begun, at))
            ):
                continue
            assigned = _assigned(text, begun, at, at + len(name))
            if assigned is None:
                continue
            value = _whole(text, assigned)
            end = value.end("value")
            if not _is_of_another(name, assigned["rest"]) and _stands_there(value["value"], kind):
                yield Secret(*value.span("value"), kind)


def _assigned(text: str, begun: int, at: int, end: int) -> re.Match[str] | None:
    """Match the value of the name whose word goes from `at` to `end`: assigned to it, or behind it as a flag."""
    assigned = _ASSIGNED.match(text, end)
    if assigned is None and _FLAG.match(text, begun, at):
        assigned = _FLAGGED.match(text, end)
    if assigned is None or text.startswith("(", assigned.end()):  # what is called there gives the value
        return None
    return assigned


def _whole(text: str, assigned: re.Match[str]) -> re.Match[str]:
    """Return the whole value: a quoted one may hold blanks."""
    quoted = None if assigned["quote"] is None else _QUOTED.match(text, assigned.end("quote"))
    return quoted or assigned


def _is_of_another(word: str, rest: str) -> bool:
    rest = rest.strip("_.-").lower()
    if word == "secret" and rest == "id":  # half of a login of some
        return False
    return rest.endswith(_OF_ANOTHER) or rest.removesuffix("s").endswith(_OF_ANOTHER)


def _stands_there(value: str, kind: SecretKind) -> bool:
    return looks_secret(value, kind) and not (kind is SecretKind.PASSWORD and _PATH.match(value))


def _in_headers(text: str, folded: str) -> Iterator[Secret]:
    for header in _behind(text, folded, "authorization", _HEADER):
        judged_as = SecretKind.TOKEN if header["scheme"] is None else SecretKind.PASSWORD
        if looks_secret(header["value"], judged_as):
            yield Secret(*header.span("value"), SecretKind.TOKEN)
    for bearer in _behind(text, folded, "bearer", _BEARER):
        if looks_secret(bearer["value"], SecretKind.TOKEN):
            yield Secret(*bearer.span("value"), SecretKind.TOKEN)
    for cookies in _behind(text, folded, "cookie", _COOKIES):
        for pair in _COOKIE.finditer(text, *cookies.span("value")):
            if looks_secret(pair["value"], SecretKind.COOKIE):
                yield Secret(*pair.span("value"), SecretKind.COOKIE)


def _behind(text: str, folded: str, word: str, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
    """Yield what the pattern matches behind each occurrence of a word that stands in no match before it."""
    end = 0
    for at in _places(folded, word):
        found = None if at < end else pattern.match(text, at + len(word))
        if found is not None:
            end = found.end()
            yield found


def _places(folded: str, word: str) -> Iterator[int]:
    at = folded.find(word)
    while at >= 0:
        yield at
        at = folded.find(word, at + len(word))


def _apart(found: list[Secret]) -> list[Secret]:
    """Return the secrets in order, those that overlap as one."""
    found.sort(key=lambda secret: (secret.start, -secret.end))
    apart = [found[0]]
    for secret in found[1:]:
        last = apart[-1]
        if secret.start >= last.end:
            apart.append(secret)
        elif secret.end > last.end:
            apart[-1] = last._replace(end=secret.end)
    return apart


BUILT_IN: Final = Secrets()
