"""Errors as a caller is told them: type, what was wrong, what to do, and the error's own fields."""

from __future__ import annotations

from typing import Final

import msgspec

from strandline import (
    CorruptRecordError,
    QueueFullError,
    StaleRevisionError,
    StoreUnavailableError,
    StrandlineError,
    SummaryReconciliationError,
    UnreconciledSummaryError,
)


class ServerBusyError(StrandlineError):
    """Too many calls of the tenant wait for their turn; nothing was done."""

    hint = "Try again a little later."


class ServerFaultError(StrandlineError):
    """The server failed at this call, and says where in its log."""

    hint = "Tell the people who run this; what you sent is not to blame."


_TELL: Final = "Tell the people who run this; nothing that you can call mends it."
_HINTS: Final[tuple[tuple[type[StrandlineError], str], ...]] = (  # where our own speak of what only others can do
    (
        SummaryReconciliationError,
        "Ask `find_reference`. What no event holds was never known: don't invent it.",
    ),
    (StaleRevisionError, "Read again with `read_context`, decide anew, and append with the new revision."),
    (UnreconciledSummaryError, "A person or a program has to answer the case first; `list_cases` has it."),
    (QueueFullError, "Go on without it, and ask again later."),
    (CorruptRecordError, _TELL),
    (StoreUnavailableError, f"Try again. If it stays so: {_TELL[0].lower()}{_TELL[1:]}"),
)


def refusal(error: StrandlineError) -> dict[str, object]:
    """Return an error as JSON values.

    Where a store lies is not told: who runs the server finds it in the log.
    """
    hint = next((hint for kind, hint in _HINTS if isinstance(error, kind)), error.hint)
    if isinstance(error, StoreUnavailableError):
        return {"type": "StoreUnavailableError", "message": "the store can't be read or written now", "hint": hint}
    fields = {name: msgspec.to_builtins(getattr(error, name)) for name in error.fields}
    return {"type": type(error).__name__, "message": error.message, "hint": hint, **fields}
