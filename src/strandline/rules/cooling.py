"""When a summarizer is left alone (C14): after COOLDOWN_FAILURES of a tenant in a row, for a time that doubles.

Failures since its last answer count, of whatever workflow, while they are younger than COOLDOWN_FORGOTTEN_S. One of a
call that had begun before a cooldown makes it no longer. What a server asks for by Retry-After holds for everybody.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from strandline.limits import (
    COOLDOWN_BASE_S,
    COOLDOWN_CAP_S,
    COOLDOWN_FAILURES,
    COOLDOWN_FORGOTTEN_S,
    RETRY_AFTER_CAP_S,
)
from strandline.model.cooldown import Cooldown

_SECOND_US: Final = 1_000_000


def cools_until_us(rows: Sequence[Cooldown], now_us: int) -> int | None:
    """Return until when a summarizer is called by nobody; None: it may be called. A time that lies further ahead than
    any cooldown is that of a clock that had jumped.

    Args:
        rows: of the tenant, on one summarizer.
        now_us: the time.
    """
    cap_us = now_us + int(COOLDOWN_CAP_S * _SECOND_US)
    until_us = max((row.until_us for row in _since_answer(rows) if row.until_us <= cap_us), default=0)
    return until_us if until_us > now_us else None


def failed(own: Cooldown, others: Sequence[Cooldown], *, now_us: int, retry_after_s: float | None = None) -> Cooldown:
    """Return a workflow's row after a failure that passes.

    Args:
        own: the workflow's.
        others: those of the tenant's other workflows, on the same summarizer.
        now_us: the time.
        retry_after_s: the wait that the other side asked for; None: none.
    """
    known = _since_answer([own, *others])
    fresh_us = now_us - int(COOLDOWN_FORGOTTEN_S * _SECOND_US)
    mine = own.failures if own in known and own.failed_us >= fresh_us else 0
    row = replace(own, failures=mine + 1, failed_us=now_us)
    if retry_after_s is not None and retry_after_s > 0 and not math.isnan(retry_after_s):
        asked_us = now_us + int(min(retry_after_s, RETRY_AFTER_CAP_S) * _SECOND_US)
        row = replace(row, until_us=max(row.until_us, asked_us))
    count = row.failures + sum(other.failures for other in known if other is not own and other.failed_us >= fresh_us)
    if count < COOLDOWN_FAILURES or cools_until_us(known, now_us) is not None:
        return row
    steps = max((other.steps for other in known), default=0) + 1
    wait_s = min(COOLDOWN_CAP_S, math.ldexp(COOLDOWN_BASE_S, min(steps - 1, 62)))
    return replace(row, steps=steps, until_us=max(row.until_us, now_us + int(wait_s * _SECOND_US)))


def answered(own: Cooldown, others: Sequence[Cooldown], now_us: int) -> Cooldown | None:
    """Return a workflow's row after an answer; None: nothing is to be written, for nothing failed since the last."""
    if not any(row.failures for row in _since_answer([own, *others])):
        return None
    return replace(own, failures=0, answered_us=now_us, until_us=0, steps=0)


def _since_answer(rows: Sequence[Cooldown]) -> list[Cooldown]:
    """Return the rows whose last failure came after the last answer that any of them got."""
    newest_us = max((row.answered_us for row in rows if row.answered_us), default=-1)
    return [row for row in rows if row.failures and row.failed_us > newest_us]
