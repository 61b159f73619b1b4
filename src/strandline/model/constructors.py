"""How events are made: one function for each kind that a caller may state.

Every function takes these arguments too, by keyword:
    key: names the event in its workflow, so that appending it again adds nothing (I3).
    actor: who states it.
    audience: who may read it (I21); None: everyone, and for a result its call's audience.
    refs: references declared by the caller, besides those that are extracted.
    thread: the lane in which a user turn closes open calls (I8); the actor when absent.
    origin: the record of another framework that the event was made from, as text; kept beside it, verbatim, for who
        appended it. No model and no search reads it, and it goes with the event when that is erased.

All raise InvalidInputError, which names the argument, when an argument has the wrong type or must not be empty.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict, Unpack, overload

from strandline.errors import InvalidInputError
from strandline.model.event import Envelope, EventKind, NewEvent, Role


class Common(TypedDict, total=False):
    """The arguments that every constructor takes."""

    key: str | None
    actor: str
    audience: str | None
    refs: Sequence[str]
    thread: str | None
    origin: str | None


def message(role: Role | str, text: str, **common: Unpack[Common]) -> NewEvent:
    """Say something: `role` is user, assistant or system, `text` holds more than white space."""
    try:
        voice = Role(role)
    except ValueError:
        raise InvalidInputError(f"role must be one of {', '.join(Role)}, got {role!r}") from None
    return _event(EventKind.MESSAGE, _said(text), Envelope(role=voice), **common)


def thinking(text: str, **common: Unpack[Common]) -> NewEvent:
    """Keep a thought of a model. It is never rendered to providers."""
    return _event(EventKind.THINKING, _said(text), Envelope(), **common)


def tool_call(call_id: str, tool: str, input: object, **common: Unpack[Common]) -> NewEvent:
    """Call a tool. `input` is any JSON value; the call is open until its result comes (I8)."""
    envelope = Envelope(call_id=_named("call_id", call_id), tool=_named("tool", tool))
    body = {"type": "tool_use", "id": call_id, "name": tool, "input": input}
    return _event(EventKind.TOOL_CALL, body, envelope, **common)


def tool_result(call_id: str, content: object, *, is_error: bool = False, **common: Unpack[Common]) -> NewEvent:
    """Give the result of an earlier call. `content` is a text or any JSON value."""
    if not isinstance(is_error, bool):
        raise InvalidInputError(f"is_error must be a bool, got {_type(is_error)}")
    body: dict[str, object] = {"type": "tool_result", "tool_use_id": call_id, "content": content}
    if is_error:
        body["is_error"] = True
    envelope = Envelope(call_id=_named("call_id", call_id), is_error=is_error)
    return _event(EventKind.TOOL_RESULT, body, envelope, **common)


def abandoned(call_id: str, text: str = "", **common: Unpack[Common]) -> NewEvent:
    """State that no result of this call will be waited for; its outcome stays unknown (I8)."""
    return _event(EventKind.ABANDONED, _text("text", text), Envelope(call_id=_named("call_id", call_id)), **common)


def constraint(subject: str, text: str, **common: Unpack[Common]) -> NewEvent:
    """Set a constraint. It is in force until `lift_constraint` of the same subject."""
    return _of_subject(EventKind.CONSTRAINT, subject, text, common)


def lift_constraint(subject: str, text: str = "", **common: Unpack[Common]) -> NewEvent:
    """Lift the constraint of this subject."""
    return _of_subject(EventKind.LIFT_CONSTRAINT, subject, text, common)


def approval(
    subject: str,
    text: str,
    *,
    granter: str,
    scope: str | None = None,
    expires_us: int | None = None,
    single_use: bool = False,
    **common: Unpack[Common],
) -> NewEvent:
    """Approve a subject. `granter` gave the approval; `expires_us` is in UTC microseconds since 1970; `single_use`: the
    first effect that rests on it uses it up (I20).
    """
    if not isinstance(single_use, bool):
        raise InvalidInputError(f"single_use must be a bool, got {_type(single_use)}")
    if expires_us is not None and type(expires_us) is not int:
        raise InvalidInputError(f"expires_us must be an int (microseconds since 1970), got {_type(expires_us)}")
    envelope = Envelope(
        subject=_named("subject", subject),
        granter=_named("granter", granter),
        scope=_named("scope", scope, optional=True),
        expires_us=expires_us,
        single_use=single_use,
    )
    return _event(EventKind.APPROVAL, _text("text", text), envelope, **common)


def revoke(subject: str, text: str = "", **common: Unpack[Common]) -> NewEvent:
    """Revoke the approval of this subject."""
    return _of_subject(EventKind.REVOKE, subject, text, common)


def decision(text: str, *, subject: str | None = None, **common: Unpack[Common]) -> NewEvent:
    """Record a decision."""
    envelope = Envelope(subject=_named("subject", subject, optional=True))
    return _event(EventKind.DECISION, _said(text), envelope, **common)


def issue(subject: str, text: str, **common: Unpack[Common]) -> NewEvent:
    """Open an issue. It is open until `resolve` of the same subject."""
    return _of_subject(EventKind.ISSUE, subject, text, common)


def resolve(subject: str, text: str = "", **common: Unpack[Common]) -> NewEvent:
    """Resolve the issue of this subject."""
    return _of_subject(EventKind.RESOLVE, subject, text, common)


def artifact(subject: str, handle: str, text: str = "", **common: Unpack[Common]) -> NewEvent:
    """Record something made. Its `handle` is a declared reference, live until `release_artifact` of the subject."""
    body = {"type": "artifact", "handle": _named("handle", handle), "text": _text("text", text)}
    envelope = Envelope(subject=_named("subject", subject))
    return _event(EventKind.ARTIFACT, body, envelope, first_ref=handle, **common)


def release_artifact(subject: str, text: str = "", **common: Unpack[Common]) -> NewEvent:
    """State that the artifact of this subject is no longer needed."""
    return _of_subject(EventKind.RELEASE_ARTIFACT, subject, text, common)


def failed_attempt(text: str, *, subject: str | None = None, **common: Unpack[Common]) -> NewEvent:
    """Record what was tried and did not work."""
    envelope = Envelope(subject=_named("subject", subject, optional=True))
    return _event(EventKind.FAILED_ATTEMPT, _said(text), envelope, **common)


def pin(ref: str, text: str = "", **common: Unpack[Common]) -> NewEvent:
    """Make a reference an anchor until it is unpinned."""
    body = _text("text", text) or _named("ref", ref)
    return _event(EventKind.PIN, body, Envelope(), first_ref=_named("ref", ref), **common)


def unpin(ref: str, text: str = "", **common: Unpack[Common]) -> NewEvent:
    """Make a pinned reference an ordinary one again."""
    body = _text("text", text) or _named("ref", ref)
    return _event(EventKind.UNPIN, body, Envelope(), first_ref=_named("ref", ref), **common)


def note(text: str, **common: Unpack[Common]) -> NewEvent:
    """Record anything else."""
    return _event(EventKind.NOTE, _said(text), Envelope(), **common)


# ---------------------------------------------------------------------------------------------- checks


def _of_subject(kind: EventKind, subject: str, text: str, common: Common) -> NewEvent:
    return _event(kind, _text("text", text), Envelope(subject=_named("subject", subject)), **common)


def _event(
    kind: EventKind,
    body: str | dict[str, object] | dict[str, str],
    envelope: Envelope,
    *,
    first_ref: str | None = None,
    key: str | None = None,
    actor: str = "",
    audience: str | None = None,
    refs: Sequence[str] = (),
    thread: str | None = None,
    origin: str | None = None,
) -> NewEvent:
    if thread is not None:
        envelope = envelope._replace(thread=_named("thread", thread))
    if origin is not None:
        block = {"type": "text", "text": body} if isinstance(body, str) else body
        body = {**block, "origin": _text("origin", origin)}
    return NewEvent(
        kind=kind,
        body=body,
        envelope=envelope,
        actor=_text("actor", actor),
        audience=_named("audience", audience, optional=True),
        key=_named("key", key, optional=True),
        refs=_references(refs, first_ref),
    )


def _references(refs: Sequence[str], first: str | None) -> tuple[str, ...]:
    if isinstance(refs, str) or not isinstance(refs, Sequence):
        raise InvalidInputError(f"refs must be a sequence of strings, got {_type(refs)}")
    for index, ref in enumerate(refs):
        _named(f"refs[{index}]", ref)
    if first is None or first in refs:
        return tuple(refs)
    return (first, *refs)


def _said(text: str) -> str:
    if not _text("text", text).strip():
        raise InvalidInputError("text must hold more than white space")
    return text


def _text(argument: str, value: str) -> str:
    if not isinstance(value, str):
        raise InvalidInputError(f"{argument} must be a string, got {_type(value)}")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            found = value[error.start]
            raise InvalidInputError(f"{argument} holds {found!r} at {error.start}, which UTF-8 can't hold") from None
    return value


@overload
def _named(argument: str, value: str) -> str: ...
@overload
def _named(argument: str, value: str | None, *, optional: bool) -> str | None: ...
def _named(argument: str, value: str | None, *, optional: bool = False) -> str | None:
    if value is None and optional:
        return None
    if not _text(argument, value):  # type: ignore[arg-type]
        raise InvalidInputError(f"{argument} must not be empty")
    return value


def _type(value: object) -> str:
    return type(value).__name__
