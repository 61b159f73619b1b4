"""What a failure says, and with which code the process ends (DESIGN §6)."""

from __future__ import annotations

import os
import traceback
from collections.abc import Mapping
from typing import Final

import typer

from strandline import errors
from strandline.cli.output import emit, pick, tell, to_json

UNRECONCILED: Final = 3
REJECTED: Final = 5
CONFLICT: Final = 6
UNAVAILABLE: Final = 7
CORRUPT: Final = 8
AGAIN: Final = 75
INTERRUPTED: Final = 130

_USAGE_ERROR, _CLICK_EXCEPTION = typer.BadParameter.__mro__[1:3]  # typer exports no more than their subclass
_CODES: Final[tuple[tuple[type[BaseException], int], ...]] = (  # the first that fits
    (errors.SummaryReconciliationError, UNRECONCILED),
    (errors.UnreconciledSummaryError, UNRECONCILED),
    (errors.EffectUnknownError, UNRECONCILED),
    (errors.CompactionLineageError, 4),
    (errors.CaseAnsweredError, CONFLICT),
    (errors.TransientSummarizerError, AGAIN),
    (errors.SummarizerError, REJECTED),
    (errors.IdempotencyConflictError, CONFLICT),
    (errors.StateConflictError, CONFLICT),
    (errors.StaleRevisionError, CONFLICT),
    (errors.StoreUnavailableError, UNAVAILABLE),
    (errors.CorruptRecordError, CORRUPT),
    (errors.NotContinuedError, CORRUPT),
    (errors.OutcomeUnknownError, AGAIN),
    (errors.QueueFullError, AGAIN),
    (_USAGE_ERROR, 2),
    (KeyboardInterrupt, INTERRUPTED),
)


def exit_code(error: BaseException) -> int:
    """Return the exit code of an exception."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), 1)


def describe(error: BaseException) -> dict[str, object]:
    """Return an error as the JSON that others rely on: type, message, hint, and its attributes."""
    kind, message, hint = type(error).__name__, str(error), ""
    if isinstance(error, errors.StrandlineError):
        return {"type": kind, "message": error.message, "hint": error.hint, **pick(error, " ".join(error.fields))}
    if isinstance(error, _CLICK_EXCEPTION):
        kind = "UsageError" if isinstance(error, _USAGE_ERROR) else kind
        message = getattr(error, "format_message", error.__str__)()
        hint = " ".join(getattr(error, "__notes__", ())) or _usage_hint(error)
    elif isinstance(error, KeyboardInterrupt):
        message = "interrupted"
    else:
        message = f"{kind}: {message}"
        hint = "This is a fault of Strandline or of its surroundings; STRANDLINE_DEBUG=1 shows where."
    return {"type": kind, "message": message, "hint": hint}


def _usage_hint(error: BaseException) -> str:
    path = getattr(getattr(error, "ctx", None), "command_path", "strandline")
    see = f"See `{path} --help`."
    if path.endswith(" recall") and type(error).__name__ == "NoSuchOption":
        return f"Put -- before a reference that begins with a dash: `{path} -- REF`. {see}"
    return see


def report(error: BaseException, *, as_json: bool) -> int:
    """Print what went wrong, and return the exit code."""
    if os.environ.get("STRANDLINE_DEBUG") == "1":
        traceback.print_exception(error)
    described = describe(error)
    emit(to_json({"error": described})) if as_json else report_described(described)
    return exit_code(error)


def report_described(error: Mapping[str, object]) -> None:
    """Print an error for people: the message, what recovery must name, the hint."""
    tell("error", str(error["message"]), "red")
    if error["type"] == errors.SummaryReconciliationError.__name__:
        known = error["last_known"]
        place = "no event holds it" if error["missing_ref"] is not None else None
        if isinstance(known, Mapping):
            place = "event {seq}, a {event_kind}".format_map(known)
            if known["generation_dropped"] is not None:
                place += f", dropped at generation {known['generation_dropped']}"
        shown = {name: error[name] for name in ("summary_generation", "checkpoint_turn", "missing_ref", "reason")}
        for name, value in {**shown, "last_known": place}.items():
            tell(f"  {name.replace('_', ' ')}", "none" if value is None else str(value), "")
    if error["hint"]:
        tell("hint", str(error["hint"]), "cyan")
