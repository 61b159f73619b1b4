"""A summarizer that does not answer is left alone for a while, by everybody in the tenant (C14)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Cooldown:
    """How a summarizer answered the compactions of one workflow; those of the tenant's workflows are taken together.

    A row is written by who holds its workflow's lock, so nobody waits for another workflow.
    """

    summarizer: str  # its name
    failures: int = 0  # that passed, in a row
    failed_us: int = 0  # when the last of them was
    answered_us: int = 0  # when it last answered
    until_us: int = 0  # nobody calls it before
    steps: int = 0  # cooldowns in a row: each is twice as long


@dataclass(frozen=True, slots=True, kw_only=True)
class Cooling:
    """A summarizer that nobody in the tenant calls now."""

    summarizer: str
    until_us: int
    failures: int  # in a row, of all workflows
