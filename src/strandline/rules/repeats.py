"""Is an effect that is asked for after a recovery one that was run before it, asked in other words? (I18)"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from strandline.model.effect import Effect, EffectState

REQUEST_FIELDS: Final = frozenset(
    {
        "clientrequestid",
        "clientrequesttoken",
        "clienttoken",
        "correlationid",
        "idempotencykey",
        "nonce",
        "requestedat",
        "requestid",
        "requesttoken",
        "spanid",
        "timestamp",
        "traceid",
        "traceparent",
        "xcorrelationid",
        "xidempotencykey",
        "xrequestid",
        "xtraceid",
    }
)
"""Fields of arguments that name a request and not what it does: in lower case, letters and digits only."""

EXECUTED: Final = frozenset({EffectState.DONE, EffectState.INTENDED, EffectState.UNKNOWN})
"""States of an effect that happened, or may have."""

_ON_PURPOSE: Final = 2  # executions of the same request, from which on they are polling


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """One time that a request was executed: by an effect, or by a call that only stands in the log."""

    call_seq: int
    result_seq: int | None  # None: its outcome is unknown
    effect: Effect | None = None


def request_identity(tool: str, subject: str | None, args: object) -> list[object]:
    """Return what two wordings of one request share, as a JSON value.

    With a subject it is tool and subject; else the arguments, but for REQUEST_FIELDS at any depth. The order of
    arguments is lost when it is encoded with sorted keys.
    """
    if subject is not None:
        return [tool, "subject", subject]
    return [tool, "arguments", _canonical(args)]


def _canonical(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _canonical(item) for key, item in value.items() if not names_request(key)}
    if isinstance(value, list | tuple):
        return [_canonical(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def names_request(field: str) -> bool:
    """Tell whether a field names a request, in whatever case and style it is written."""
    return "".join(letter for letter in field.lower() if letter.isalnum()) in REQUEST_FIELDS


def likely_repeat(effects: Sequence[Execution], calls: Sequence[Execution]) -> Execution | None:
    """Return the earlier execution of which a new key asks once more, or None.

    Both lists hold what was executed between the basis of the checkpoint and the recovery. An effect may stand in
    both, so the longer one counts: what was executed twice there was so on purpose, and may be again.
    """
    if max(len(effects), len(calls)) >= _ON_PURPOSE:
        return None
    return next(iter((*effects, *calls)), None)
