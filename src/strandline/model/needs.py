"""How the needs of a critical action are stated (C24).

All raise InvalidInputError, which names the argument, when an argument has the wrong type or must not be empty.
"""

from __future__ import annotations

from collections.abc import Sequence

from strandline.errors import InvalidInputError
from strandline.limits import CASE_TEXT_CHARS_MAX, NEEDS_OF_ACTION_MAX
from strandline.model.action import ActionNeed, NeedKind


def approved(
    subject: str,
    *,
    scope: str | None = None,
    quorum: int = 1,
    granters: Sequence[str] | None = None,
    author: str | None = None,
) -> ActionNeed:
    """Need an approval of the subject that is in force.

    Args:
        subject: what was approved.
        scope: for what it must have been given; an approval without a scope is for everything.
        quorum: how many different granters there must be.
        granters: only these may grant; None: anyone.
        author: whose own approval does not count.
    """
    if granters is not None and (isinstance(granters, str) or not isinstance(granters, Sequence)):
        raise InvalidInputError(f"granters must be a sequence of names, got {type(granters).__name__}")
    if granters is not None and not granters:
        raise InvalidInputError("granters is empty, so that nobody may grant; leave it out where anyone may")
    if isinstance(quorum, bool) or not isinstance(quorum, int) or not 1 <= quorum <= NEEDS_OF_ACTION_MAX:
        raise InvalidInputError(f"quorum must be a number from 1 to {NEEDS_OF_ACTION_MAX}, got {quorum!r}")
    names = tuple(dict.fromkeys(checked_text(f"granters[{index}]", name) for index, name in enumerate(granters or ())))
    if len(names) > NEEDS_OF_ACTION_MAX:
        raise InvalidInputError(f"{len(names)} granters; at most {NEEDS_OF_ACTION_MAX} may be named")
    eligible = len(set(names) - {author})
    if names and eligible < quorum:
        raise InvalidInputError(f"quorum {quorum} can't be reached: {eligible} of the granters may grant")
    return ActionNeed(
        kind=NeedKind.APPROVED,
        subject=checked_text("subject", subject),
        scope=None if scope is None else checked_text("scope", scope),
        quorum=quorum,
        granters=names,
        author=None if author is None else checked_text("author", author),
    )


def resolved(subject: str) -> ActionNeed:
    """Need that an issue of the subject was opened, and that none is open. One that never was is not resolved."""
    return ActionNeed(kind=NeedKind.RESOLVED, subject=checked_text("subject", subject))


def no_open_issue(subject: str = "") -> ActionNeed:
    """Need that no issue of the subject is open; without a subject, that none is open at all."""
    return ActionNeed(kind=NeedKind.NO_OPEN_ISSUE, subject=checked_text("subject", subject, empty=True))


def in_force(subject: str) -> ActionNeed:
    """Need that the constraint of the subject is in force."""
    return ActionNeed(kind=NeedKind.IN_FORCE, subject=checked_text("subject", subject))


def not_in_force(subject: str) -> ActionNeed:
    """Need that no constraint of the subject is in force: it never was set, or it was lifted."""
    return ActionNeed(kind=NeedKind.NOT_IN_FORCE, subject=checked_text("subject", subject))


def checked_need(need: ActionNeed) -> ActionNeed:
    """Return a need as the functions here make it: a `kind` that is mere text, or a quorum of 0, would ask nothing.

    Raises:
        InvalidInputError: none of them makes it.
    """
    makers = {NeedKind.RESOLVED: resolved, NeedKind.IN_FORCE: in_force, NeedKind.NOT_IN_FORCE: not_in_force}
    if need.kind == NeedKind.APPROVED:
        made = approved(
            need.subject, scope=need.scope, quorum=need.quorum, granters=need.granters or None, author=need.author
        )
    elif need.kind == NeedKind.NO_OPEN_ISSUE:
        made = no_open_issue(need.subject)
    elif need.kind in makers:
        made = makers[need.kind](need.subject)
    else:
        raise InvalidInputError(f"{need.kind!r} is no kind of need")
    if made != need:
        raise InvalidInputError(f"a need of kind {need.kind!r} that strandline.{made.kind.value}() would not make")
    return made


def checked_text(argument: str, value: object, *, empty: bool = False) -> str:
    """Return a name or a short text.

    Raises:
        InvalidInputError: no string, empty where it must not be, too long, or a character that UTF-8 can't hold.
    """
    if not isinstance(value, str):
        raise InvalidInputError(f"{argument} must be a string, got {type(value).__name__}")
    if not value.strip() and not (empty and value == ""):
        raise InvalidInputError(f"{argument} must not be empty")
    if len(value) > CASE_TEXT_CHARS_MAX:
        raise InvalidInputError(f"{argument} of {len(value)} characters; at most {CASE_TEXT_CHARS_MAX} are allowed")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidInputError(f"{argument} holds {value[error.start]!r}, which UTF-8 can't hold") from None
    return value
