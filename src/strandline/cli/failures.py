"""What a failure says, and with which code the process ends (DESIGN §6)."""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterable, Mapping
from typing import Final, NoReturn

import typer

from strandline import errors
from strandline.cli.output import Block, emit, plain, show, tell, to_json

USAGE: Final = 2
REJECTED: Final = 5
CONFLICT: Final = 6
CORRUPT: Final = 8

_CODES: Final[tuple[tuple[type[errors.StrandlineError], int], ...]] = (  # the first that fits
    (errors.SummaryReconciliationError, 3),
    (errors.UnreconciledSummaryError, 3),
    (errors.CompactionLineageError, 4),
    (errors.TransientSummarizerError, 75),
    (errors.SummarizerError, REJECTED),
    (errors.IdempotencyConflictError, CONFLICT),
    (errors.StaleRevisionError, CONFLICT),
    (errors.StoreUnavailableError, 7),
    (errors.CorruptRecordError, CORRUPT),
    (errors.OutcomeUnknownError, 75),
)
_UsageError: Final = typer.BadParameter.__mro__[1]  # typer exports its subclass only
_ClickException: Final = typer.BadParameter.__mro__[2]


class _Interrupted(Exception):  # noqa: N818  no error: somebody asked for it
    code = 130


interrupted: Final = _Interrupted("interrupted")


def exit_code(error: BaseException) -> int:
    """Return the exit code of an exception."""
    if isinstance(error, errors.StrandlineError):
        return next((code for kind, code in _CODES if isinstance(error, kind)), 1)
    if isinstance(error, _Interrupted):
        return error.code
    return USAGE if isinstance(error, _UsageError) else 1


def describe(error: BaseException) -> dict[str, object]:
    """Return the error as the JSON that others rely on: type, message, hint, and its attributes."""
    kind, message, hint = type(error).__name__, str(error), ""
    attributes: dict[str, object] = {}
    if isinstance(error, errors.StrandlineError):
        message, hint = error.message, error.hint
        attributes = {name: plain(getattr(error, name)) for name in error.fields}
    elif isinstance(error, _ClickException):
        kind = "UsageError" if isinstance(error, _UsageError) else kind
        message = error.format_message()
        command = getattr(getattr(error, "ctx", None), "command_path", "strandline")
        hint = f"See `{command} --help`."
    elif isinstance(error, _Interrupted):
        kind = "Interrupted"
    else:
        message = message or "no message"
        hint = "This is a fault of Strandline or its surroundings; STRANDLINE_DEBUG=1 shows where."
    return {"type": kind, "message": message, "hint": hint, **attributes}


def report(error: BaseException, *, as_json: bool) -> int:
    """Print what went wrong, and return the exit code."""
    if os.environ.get("STRANDLINE_DEBUG") == "1" and not isinstance(error, _Interrupted):
        traceback.print_exception(error)
    described = describe(error)
    if as_json:
        emit(to_json({"error": described}))
    else:
        _print(error, described)
    return exit_code(error)


def _print(error: BaseException, described: Mapping[str, object]) -> None:
    known = isinstance(error, errors.StrandlineError | _ClickException | _Interrupted)
    message = described["message"] if known else f"{described['type']}: {described['message']}"
    tell("error", str(message), "red")
    if isinstance(error, errors.SummaryReconciliationError):
        for name, value in _reconciliation(error):
            tell(f"  {name}", value)
    if described["hint"]:
        tell("hint", str(described["hint"]), "cyan")


def _reconciliation(error: errors.SummaryReconciliationError) -> Iterable[tuple[str, str]]:
    known = error.last_known
    place = "nowhere: no event holds it"
    if known is not None:
        dropped = known.generation_dropped
        place = f"event {known.seq} ({known.event_kind})"
        place += f", dropped at generation {dropped}" if dropped is not None else ", not dropped by a summary"
    if error.missing_refs:
        yield "missing", ", ".join(error.missing_refs)
        yield "last known", place
    yield "generation", "unknown" if error.summary_generation is None else str(error.summary_generation)
    yield "checkpoint turn", "none" if error.checkpoint_turn is None else str(error.checkpoint_turn)
    yield "reason", error.reason


def fail(
    value: Mapping[str, object],
    blocks: Iterable[Block],
    *,
    as_json: bool,
    error: errors.StrandlineError | Mapping[str, object],
    code: int,
) -> NoReturn:
    """Print a result that is no success, and exit: the JSON has both, the result and an `error`."""
    described = describe(error) if isinstance(error, errors.StrandlineError) else error
    show({**value, "error": described}, blocks, as_json=as_json)
    if not as_json:
        tell("error", str(described["message"]), "red")
        tell("hint", str(described["hint"]), "cyan")
    raise typer.Exit(code)
