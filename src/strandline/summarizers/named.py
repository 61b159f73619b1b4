"""Summarizers by name, for programs that are told on a command line or in a setting which one to use."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from strandline.errors import InvalidInputError
from strandline.summarizers.anthropic import AnthropicSummarizer
from strandline.summarizers.extractive import ExtractiveSummarizer
from strandline.summarizers.openai import OpenAISummarizer

EXTRACTIVE: Final = "extractive"
PROVIDERS: Final[Mapping[str, Callable[[str], object]]] = {
    "openai": OpenAISummarizer,
    "anthropic": AnthropicSummarizer,
}
FORMS: Final = "'extractive', 'openai:MODEL', 'anthropic:MODEL' or 'package.module:factory'"


def check_summarizer_name(name: str) -> None:
    """Refuse what can't be a summarizer's name; nothing is imported.

    Raises:
        InvalidInputError: another form than one of FORMS.
    """
    place, parted, rest = name.partition(":") if isinstance(name, str) else ("", "", "")
    named = place and parted and rest and (place in PROVIDERS or ":" not in rest)  # models may have colons
    if name != EXTRACTIVE and not named:
        raise InvalidInputError(f"a summarizer is named {FORMS}, not {name!r}")


def summarizer_factory(name: str) -> Callable[[], object]:
    """Return the function that makes the summarizer of a name, each time it is called.

    Raises:
        InvalidInputError: another form, no such module, or nothing callable of that name in it.
    """
    check_summarizer_name(name)
    place, _, rest = name.partition(":")
    if name == EXTRACTIVE:
        return ExtractiveSummarizer
    if place in PROVIDERS:
        return partial(PROVIDERS[place], rest)
    try:
        found: object = importlib.import_module(place)
        for part in rest.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:  # ValueError: a module named `.` or the like
        raise InvalidInputError(f"the summarizer {name!r} can't be imported: {error}") from error
    if not callable(found):
        raise InvalidInputError(f"the summarizer {name!r} is {type(found).__name__}: name a function that makes one")
    return found
