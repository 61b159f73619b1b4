"""Which events a caller may state (ADR 63).

What grants, revokes, lifts, resolves or releases is not among them, nor what a user said, for that binds later turns: a
model would state it on its own word. And what it names is its own, so that it can't take the place of somebody else's
issue or artifact, nor answer somebody else's call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from msgspec import UNSET

import strandline
from strandline import InvalidInputError, NewEvent, Role
from strandline.integrations.mcp.access import Access
from strandline.integrations.mcp.arguments import AppendEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How an event of one kind is made: of which fields, and which of them the caller names as its own."""

    make: Callable[..., NewEvent]
    required: tuple[str, ...]
    optional: tuple[str, ...] = ()
    own: tuple[str, ...] = ()


_CALL: Final = ("call_id",)
SHAPES: Final[Mapping[str, Shape]] = {
    "message": Shape(make=partial(strandline.message, Role.ASSISTANT), required=("text",)),
    "note": Shape(make=strandline.note, required=("text",)),
    "decision": Shape(make=strandline.decision, required=("text",), optional=("subject",)),
    "failed_attempt": Shape(make=strandline.failed_attempt, required=("text",), optional=("subject",)),
    "issue": Shape(make=strandline.issue, required=("subject", "text"), own=("subject",)),
    "artifact": Shape(make=strandline.artifact, required=("subject", "handle"), optional=("text",), own=("subject",)),
    "pin": Shape(make=strandline.pin, required=("ref",), optional=("text",)),
    "tool_call": Shape(make=strandline.tool_call, required=("call_id", "tool", "input"), own=_CALL),
    "tool_result": Shape(
        make=strandline.tool_result, required=("call_id", "content"), optional=("is_error",), own=_CALL
    ),
    "abandoned": Shape(make=strandline.abandoned, required=_CALL, optional=("text",), own=_CALL),
}
_NOT_HERE: Final = (
    f"The kinds are {', '.join(SHAPES)}. What grants, ends or binds is stated by people or programs, through the "
    "library or `strandline append`."
)
_COMMON: Final = ("key", "refs")
_FIELDS: Final = ("text", "subject", "handle", "ref", "call_id", "tool", "input", "content", "is_error", *_COMMON)


def event_of(asked: AppendEvent, access: Access) -> tuple[NewEvent, dict[str, str]]:
    """Return the event that is asked for, in the caller's name, and the names that are its own, as the log has them.

    Raises:
        InvalidInputError: a field is missing or does not fit the kind, or an argument can't be.
    """
    shape = SHAPES.get(asked.kind)
    if shape is None:
        raise InvalidInputError(f"kind {asked.kind!r} is not appended here", hint=_NOT_HERE)
    given = {name: getattr(asked, name) for name in _FIELDS if getattr(asked, name) is not UNSET}
    for name in given:
        if name not in (*shape.required, *shape.optional, *_COMMON):
            raise InvalidInputError(f"kind {asked.kind!r} takes no {name!r}", hint=_takes(asked.kind, shape))
    for name in shape.required:
        if name not in given:
            raise InvalidInputError(f"kind {asked.kind!r} needs {name!r}", hint=_takes(asked.kind, shape))
    names = {name: access.own(given[name]) for name in (*shape.own, "key") if name in given}
    return shape.make(**given | names, actor=access.actor), names


def _takes(kind: str, shape: Shape) -> str:
    may = f"; it may have {', '.join((*shape.optional, *_COMMON))}"
    return f"A {kind} needs {', '.join(shape.required)}{may}."
