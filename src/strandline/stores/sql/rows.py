"""Codes that stand for names in rows. A code is never given a second meaning."""

from __future__ import annotations

from typing import Final

from strandline.model.event import EventKind
from strandline.model.summary import DropReason

EVENT_KINDS: Final = {
    1: EventKind.MESSAGE,
    2: EventKind.THINKING,
    3: EventKind.TOOL_CALL,
    4: EventKind.TOOL_RESULT,
    5: EventKind.ABANDONED,
    6: EventKind.CONSTRAINT,
    7: EventKind.LIFT_CONSTRAINT,
    8: EventKind.APPROVAL,
    9: EventKind.REVOKE,
    10: EventKind.DECISION,
    11: EventKind.ISSUE,
    12: EventKind.RESOLVE,
    13: EventKind.ARTIFACT,
    14: EventKind.RELEASE_ARTIFACT,
    15: EventKind.FAILED_ATTEMPT,
    16: EventKind.EFFECT,
    17: EventKind.PIN,
    18: EventKind.UNPIN,
    19: EventKind.NOTE,
}
EVENT_CODES: Final = {kind: code for code, kind in EVENT_KINDS.items()}

DROP_REASONS: Final = {
    1: DropReason.NOT_IN_SUMMARY,
    2: DropReason.MERGED_AWAY,
    3: DropReason.REDACTED,
    4: DropReason.ERASED,
}
DROP_CODES: Final = {reason: code for code, reason in DROP_REASONS.items()}
