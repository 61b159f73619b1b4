"""What users add to the extractor and take away from it (C3): patterns, JSON paths, classes switched off.

A pattern describes a whole token. What it matches is a reference only where it stands verbatim (`rules.verbatim`), so
that it is found again in a summary by the one rule for all references. What decides whether a token matches comes from
outside, as a `Matcher`: it has to answer in time linear in the token. A JSON path names values in decoded JSON.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final, Protocol

from strandline.errors import InvalidInputError
from strandline.limits import REFERENCE_CHARS_MAX, REFERENCE_RULES_MAX
from strandline.model.reference import ReferenceClass
from strandline.rules.anchors import forged_anchor
from strandline.rules.json_paths import Path, json_roots, parse_path, select
from strandline.rules.references import (
    EXTRACTOR,
    Memo,
    bare_forms,
    embedded_json,
    extract,
    extract_json,
    names_in,
    runs_of,
    tokens_of,
)
from strandline.rules.secrets import MARK, SecretKind, Secrets
from strandline.rules.verbatim import stands_at, verbatim_subset

RULE_NAME_CHARS_MAX: Final = 40
PATTERN_CHARS_MAX: Final = 1_000
_RUN: Final = re.compile(r"[^ ]+")
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_CLASSES: Final = frozenset(name.value for name in ReferenceClass)
_SECRETS: Final = frozenset(kind.value for kind in SecretKind)
REDACTED: Final = "redacted"  # the class of the marks of secrets
MARKED: Final = re.compile(rf"{MARK}[A-Za-z][A-Za-z0-9_-]*")
_UNSTORABLE: Final = re.compile("[\\x00\\ud800-\\udfff]")
_NUMBER_CEILING: Final = 10**REFERENCE_CHARS_MAX  # beyond it an integer's text is too long, and costly to make


class Matcher(Protocol):
    """A pattern, compiled by something that answers in linear time."""

    def whole(self, tokens: Sequence[str]) -> Collection[str]:
        """Return those of the tokens that the pattern matches from end to end; none holds a line break."""
        ...

    def spans(self, line: str) -> Iterator[tuple[int, int]]:
        """Yield where in a line the pattern matches, wherever that is: for explanations."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceRules:
    """What is a reference beside the built-in classes, and which of those are none.

    Attributes:
        patterns: the name of a class, your own or a built-in one -> the pattern (RE2 syntax) of a whole token of it.
        json_paths: the name of a class -> where in JSON its values stand, such as `$.items[*].sku`.
        off: classes of which the built-in forms are not looked for; also kinds of secrets.
        secrets: the name of a kind -> the pattern (RE2 syntax) of what is a secret, too (C12). It need not be a token.
    """

    patterns: Mapping[str, str] = field(default_factory=dict)
    json_paths: Mapping[str, str] = field(default_factory=dict)
    off: Collection[str] = ()
    secrets: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_names("patterns", self.patterns)
        _check_names("json_paths", self.json_paths)
        _check_names("secrets", self.secrets)
        if isinstance(self.off, str) or not isinstance(self.off, Collection):
            raise InvalidInputError(f"off is a set of class names, not {self.off!r}")
        for name in self.off:
            if name not in _CLASSES and name not in _SECRETS:
                there = f"{_listed(_CLASSES)}, and of secrets {_listed(_SECRETS)}"
                raise InvalidInputError(f"there is no class {name!r} to switch off; there are {there}")
        for name, pattern in (*self.patterns.items(), *self.secrets.items()):
            if not pattern or len(pattern) > PATTERN_CHARS_MAX:
                raise InvalidInputError(f"pattern {name!r} has {len(pattern)} characters, not 1 to {PATTERN_CHARS_MAX}")
        for name, path in self.json_paths.items():
            parse_path(name, path)

    @property
    def extractor(self) -> str:
        """The name of the extractor with these rules: `refs-2`, and a digest of them if there are any."""
        if not (self.patterns or self.json_paths or self.off or self.secrets):
            return EXTRACTOR
        rules = [dict(self.patterns), dict(self.json_paths), sorted(map(str, self.off)), dict(self.secrets)]
        said = json.dumps(rules, sort_keys=True)
        return f"{EXTRACTOR}+{hashlib.sha256(said.encode('utf-8', 'backslashreplace')).hexdigest()[:8]}"


def _check_names(argument: str, rules: Mapping[str, str]) -> None:
    if not isinstance(rules, Mapping):
        raise InvalidInputError(f"{argument} is a mapping from names to texts, not {rules!r}")
    if len(rules) > REFERENCE_RULES_MAX:
        raise InvalidInputError(f"{len(rules)} {argument}; at most {REFERENCE_RULES_MAX} are allowed")
    for name, text in rules.items():
        if not isinstance(name, str) or not isinstance(text, str):
            raise InvalidInputError(f"{argument} is a mapping from names to texts; {name!r}: {text!r} is none")
        if len(name) > RULE_NAME_CHARS_MAX or not _NAME.fullmatch(name):
            raise InvalidInputError(
                f"{name!r} is no name of a class: 1 to {RULE_NAME_CHARS_MAX} ASCII letters, digits, - and _, "
                "a letter first"
            )


def _listed(names: Collection[str]) -> str:
    return ", ".join(sorted(names))


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One thing that looked like a reference, and whether it was taken as one."""

    ref: str
    by: str  # its class: a built-in one, or the name of a rule
    refused: str = ""  # why it was not taken
    built_in: bool = False  # found by a built-in form


class References:
    """The extractor with a user's rules. Without any it is the built-in one. A secret is no reference: in its place the
    mark of its kind is one (C12).
    """

    def __init__(
        self,
        rules: ReferenceRules | None = None,
        matchers: Mapping[str, Matcher] | None = None,
        secret_matchers: Mapping[str, Matcher] | None = None,
    ) -> None:
        rules = rules or ReferenceRules()
        self.name = rules.extractor
        self._off = frozenset(rules.off)
        self.secrets = Secrets(self._off, {name: matcher.spans for name, matcher in (secret_matchers or {}).items()})
        self._paths: dict[str, Path] = {name: parse_path(name, path) for name, path in rules.json_paths.items()}
        self._matchers = dict(matchers or {})
        self._memo: Memo[tuple[str, str]] = Memo(self._scan)

    def of_text(self, text: str, *, most: int | None = None, said_by_user: bool = False) -> dict[str, str]:
        """Return the distinct references of a text with their classes: in order, those of the rules last.

        With `most`, stop soon after more than that many are found, of the classes that are on. What a user says gives
        names, too.
        """
        shown = self.secrets.redact(text)
        found = self._of_text(shown, most)
        if said_by_user and ReferenceClass.VALUE not in self._off:
            names = names_in(shown)
            standing = verbatim_subset(names, shown) if names else ()
            for name in names:
                if name in standing:
                    found.setdefault(name, ReferenceClass.VALUE.value)
        return found if shown is text else _with_marks(found, shown)

    def _of_text(self, text: str, most: int | None) -> dict[str, str]:
        value = embedded_json(text)
        if value is not None:
            found = self._of_json(value, most)
            standing = verbatim_subset(found, text)  # JSON may have escaped the others
            return {ref: name for ref, name in found.items() if ref in standing}
        found = self._built_in(extract(text, most=None if self._off else most))
        if self._matchers:
            self._add(found, self._matched(text))
        if self._paths and text.lstrip()[:1] in ("{", "["):
            self._add(found, self._by_path(list(json_roots(text))))
        return found

    def of_json(self, value: object, *, most: int | None = None) -> dict[str, str]:
        """Return the distinct references of decoded JSON with their classes; as `of_text` does."""
        shown = self.secrets.redact_json(value)
        found = self._of_json(shown, most)
        return found if shown is value else _with_marks(found, json.dumps(shown, ensure_ascii=False))

    def _of_json(self, value: object, most: int | None) -> dict[str, str]:
        found = self._built_in(extract_json(value, most=None if self._off else most))
        if self._matchers or self._paths:
            roots = list(json_roots(value))
            if self._matchers:
                for text in chain.from_iterable(map(_texts, roots)):
                    self._add(found, self._matched(text))
            self._add(found, self._by_path(roots))
        return found

    def explain(self, content: object) -> list[Seen]:
        """Return what looks like a reference in a text or in decoded JSON, with why it was taken or not; no secret."""
        if isinstance(content, str):
            taken, content = self.of_text(content), self.secrets.redact(content)
            built_in = extract(content)
        else:
            taken, content = self.of_json(content), self.secrets.redact_json(content)
            built_in = extract_json(content)
        seen = [Seen(ref=r, by=name, built_in=name == REDACTED or built_in.get(r) == name) for r, name in taken.items()]
        for ref, kind in built_in.items():
            if ref not in taken:
                seen.append(Seen(ref=ref, by=kind.value, refused="this class is switched off", built_in=True))
        roots = list(json_roots(content))
        texts = [content] if isinstance(content, str) else chain.from_iterable(map(_texts, roots))
        misses = chain(self._near_misses(texts, taken), self._unfit_values(roots))
        return seen + list(dict.fromkeys(misses))

    def _built_in(self, found: Mapping[str, ReferenceClass]) -> dict[str, str]:
        return {ref: name.value for ref, name in found.items() if name not in self._off}

    @staticmethod
    def _add(found: dict[str, str], more: Iterator[tuple[str, str]]) -> None:
        """Add references of the rules; one that a built-in class has found, too, is of the user's class."""
        for ref, name in more:
            if found.get(ref, name) == name or found[ref] in _CLASSES:
                found[ref] = name

    def _matched(self, text: str) -> Iterator[tuple[str, str]]:
        return chain.from_iterable(chain.from_iterable(self._memo.of(tokens_of(text))))

    def _scan(self, tokens: list[str], _most: int | None) -> Mapping[str, tuple[tuple[str, str], ...]]:
        lines, parted = runs_of(tokens)
        distinct = dict.fromkeys(chain.from_iterable(line.split() for line in chain(lines, parted)))
        runs = {run: bare_forms(run) for run in distinct}
        asked = {part: None for forms in runs.values() for _, part in forms if len(part) <= REFERENCE_CHARS_MAX}
        names: dict[str, str] = {}
        for name, matcher in self._matchers.items():
            for part in matcher.whole(list(asked)):
                names.setdefault(part, name)
        if not names:
            return {}
        hits = {run: found for run, forms in runs.items() if (found := [form for form in forms if form[1] in names])}
        return {
            token: tuple((ref, names[ref]) for ref in _standing(token, places, hits))
            for token, *places in zip(tokens, lines, parted, strict=True)
        }

    def _by_path(self, roots: Sequence[object]) -> Iterator[tuple[str, str]]:
        for name, path in self._paths.items():
            for value in chain.from_iterable(select(path, root) for root in roots):
                ref = _value_text(value)
                if ref is not None and not _unfit(ref):
                    yield ref, name

    def _near_misses(self, texts: Iterable[str], taken: Mapping[str, str]) -> Iterator[Seen]:
        for line in (line for text in texts for line in text.splitlines() if len(line) <= EXPLAINED_LINE_CHARS_MAX):
            for name, matcher in self._matchers.items():
                for start, end in matcher.spans(line):
                    ref = line[start:end]
                    if ref and ref not in taken:
                        yield Seen(ref=ref, by=name, refused=_why_not(line, start, end))

    def _unfit_values(self, roots: Sequence[object]) -> Iterator[Seen]:
        for name, path in self._paths.items():
            for value in chain.from_iterable(select(path, root) for root in roots):
                ref = _value_text(value)
                if ref is None:
                    yield Seen(ref=_kind_of(value), by=name, refused="the value is no text and no number")
                elif why := _unfit(ref):
                    yield Seen(ref=ref[:REFERENCE_CHARS_MAX], by=name, refused=why)


EXPLAINED_LINE_CHARS_MAX: Final = 4_096
BUILT_IN: Final = References()


def _with_marks(found: dict[str, str], shown: str) -> dict[str, str]:
    """Add the marks of a redacted text: each stands for what is accounted for without its value (I9)."""
    for mark in MARKED.findall(shown):
        found.setdefault(mark, REDACTED)
    return found


def _standing(token: str, spaced: Iterable[str], hits: Mapping[str, list[tuple[int, str]]]) -> dict[str, None]:
    """Return what of the hits in a token stands verbatim, in order."""
    found: dict[str, None] = {}
    for line in spaced:
        for run in _RUN.finditer(line):
            for offset, ref in hits.get(run.group(), ()):
                start = run.start() + offset
                if ref not in found and stands_at(token, start, start + len(ref)):
                    found[ref] = None
    return found


def _texts(root: object) -> Iterator[str]:
    """Yield the string leaves and the keys of decoded JSON, in order."""
    todo = [root]
    while todo:
        item = todo.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, Mapping):
            for key, inner in reversed(list(item.items())):
                todo.extend((inner, key))
        elif isinstance(item, list | tuple):
            todo.extend(reversed(item))


def _value_text(value: object) -> str | None:
    """Return a named value as the event's reader sees it: a string, or a number."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, int) and abs(value) >= _NUMBER_CEILING:
        return "0" * (REFERENCE_CHARS_MAX + 1)
    return json.dumps(value)


def _unfit(ref: str) -> str:
    """Say why a value can't be a reference; the same that a declared one is held to."""
    if not ref:
        return "it is empty"
    if len(ref) > REFERENCE_CHARS_MAX:
        return f"it is longer than {REFERENCE_CHARS_MAX} characters"
    if _UNSTORABLE.search(ref):
        return "it holds a NUL or a lone surrogate"
    if len(ref.splitlines()) != 1 or forged_anchor(ref) is not None:
        return "it has several lines, or would read as a fact of ours"
    return ""


def _why_not(line: str, start: int, end: int) -> str:
    ref = line[start:end]
    if len(ref) > REFERENCE_CHARS_MAX:
        return f"it is longer than {REFERENCE_CHARS_MAX} characters"
    if not stands_at(line, start, end):
        around = line[max(0, start - 8) : end + 8]
        return f"it is no token of its own in {around!r}"
    return "it holds a blank, a bracket, a quote or another character that ends a token"


def _kind_of(value: object) -> str:
    return {dict: "an object", list: "a list", bool: "a boolean"}.get(type(value), "null")
