"""A fact of the validators' corpus, with what a good and a bad summary may make of it; written by hand.

`good`: other words for the same. `bad`: what is near and not the same; more is made by `validator_operators`, also of
the good ones. They were written before the rules were run on them, as a summarizer might write them, not as the rules
would like them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A statement that must hold for the reader."""

    text: str
    good: tuple[str, ...] = ()
    bad: tuple[str, ...] = ()


def fact(text: str, good: str, bad: str) -> Fact:
    """Make a fact; the variants stand one a line."""
    return Fact(text=text, good=_lines(good), bad=_lines(bad))


def _lines(text: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in text.strip().splitlines())
