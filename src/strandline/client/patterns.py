"""Users' patterns, matched by RE2, which takes time linear in the text whatever the pattern is (ADR 25)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from strandline.errors import InvalidInputError, extra_hint
from strandline.rules.reference_rules import BUILT_IN, ReferenceRules, References

if TYPE_CHECKING:
    import re2

PATTERN_MEMORY_BYTES_MAX: Final = 1024 * 1024  # of a compiled pattern: bounds what a character can cost


def is_installed() -> bool:
    """Tell whether the extra that matches patterns is there."""
    return find_spec("re2") is not None


def references_with(rules: ReferenceRules | None) -> References:
    """Return the extractor with a user's rules.

    Raises:
        InvalidInputError: a pattern can't be read, or the extra that matches patterns is not installed.
    """
    if rules is None:
        return BUILT_IN
    if not isinstance(rules, ReferenceRules):
        raise InvalidInputError(f"references is a ReferenceRules, not a {type(rules).__name__}")
    return References(rules, _compiled(rules.patterns), _compiled(rules.secrets))


def _compiled(patterns: Mapping[str, str]) -> dict[str, _Re2]:
    return {name: _Re2(name, pattern) for name, pattern in patterns.items()}


class _Re2:
    def __init__(self, name: str, pattern: str) -> None:
        try:
            import re2
        except ModuleNotFoundError as error:
            raise InvalidInputError(
                f"pattern {name!r} needs the package google-re2, which is not installed", hint=extra_hint("patterns")
            ) from error
        options = re2.Options()
        options.never_nl = True  # a match ends with its line, so that each of many tokens is matched for itself
        options.log_errors = False
        options.max_mem = PATTERN_MEMORY_BYTES_MAX
        try:
            self._anywhere: re2._Regexp = re2.compile(pattern, options)  # first alone: `a)(b` is none
            self._whole: re2._Regexp = re2.compile(f"(?m)^(?:{pattern})$", options)
        except UnicodeEncodeError as error:
            raise InvalidInputError(f"pattern {name!r} holds a lone surrogate") from error
        except re2.error as error:
            said = error.args[0].decode() if error.args and isinstance(error.args[0], bytes) else str(error)
            raise InvalidInputError(
                f"pattern {name!r}: {said}",
                hint="Patterns have RE2's syntax: no backreferences, no lookaround, counted repeats up to 1,000.",
            ) from error

    def whole(self, tokens: Sequence[str]) -> set[str]:
        """Return those of the tokens that the pattern matches from end to end."""
        return {match.group().decode() for match in self._whole.finditer("\n".join(tokens).encode())}

    def spans(self, line: str) -> Iterator[tuple[int, int]]:
        """Yield where in a line the pattern matches."""
        text = line.encode("utf-8", "replace").decode()  # a lone surrogate becomes one character, too
        return ((match.start(), match.end()) for match in self._anywhere.finditer(text))
