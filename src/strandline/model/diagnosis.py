"""What a look at a store from outside finds: one check after the other, each with what to do (C5)."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field


class CheckStatus(enum.StrEnum):
    """How a check ended."""

    OK = "ok"
    WARN = "warn"  # it works, and something should be done
    FAIL = "fail"  # it does not work, or what was written is in danger


class Trouble(enum.StrEnum):
    """What a failed check means for whoever opens the store."""

    UNAVAILABLE = "unavailable"  # it can't be opened, read or written now
    CORRUPT = "corrupt"  # its bytes are damaged
    UNSAFE = "unsafe"  # it can be opened, and should not be relied on


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One check: its name, how it ended, what was measured, and what to do about it."""

    name: str
    status: CheckStatus
    value: str
    advice: str = ""
    trouble: Trouble | None = None
    measured: Mapping[str, object] = field(default_factory=dict)


def passed(name: str, value: str, **measured: object) -> Check:
    """Return a check in which nothing is wrong."""
    return Check(name=name, status=CheckStatus.OK, value=value, measured=measured)


def warned(name: str, value: str, advice: str, **measured: object) -> Check:
    """Return a check about which something should be done."""
    return Check(name=name, status=CheckStatus.WARN, value=value, advice=advice, measured=measured)


def failed(name: str, value: str, advice: str, trouble: Trouble, **measured: object) -> Check:
    """Return a check that failed."""
    return Check(name=name, status=CheckStatus.FAIL, value=value, advice=advice, trouble=trouble, measured=measured)
