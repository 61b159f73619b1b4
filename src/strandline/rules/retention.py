"""Which events a tenant's retention rules have come to the end of (C31)."""

from __future__ import annotations

from collections.abc import Sequence

from strandline.model.erasure import RetentionRule
from strandline.model.event import EventKind


def rules_for(rules: Sequence[RetentionRule], workflow: str) -> list[RetentionRule]:
    """Return the rules that cover a workflow; one that names none covers all."""
    return [rule for rule in rules if not rule.workflows or workflow in rule.workflows]


def is_over(rules: Sequence[RetentionRule], kind: EventKind, at_us: int, now_us: int) -> bool:
    """Tell whether one of the rules says that an event of this kind, appended at this time, is kept no longer.

    Times are the store's clock, read when the event was appended. The strictest rule counts. A clock that went back
    makes an event younger, never older than it is.
    """
    return any(
        (not rule.kinds or kind in rule.kinds) and now_us - at_us >= rule.older_than_s * 1_000_000 for rule in rules
    )
