"""Constraints that a user stated and nobody declared, as they stand (C11)."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import NamedTuple


class Said(NamedTuple):
    """A statement that was found in a user's message, with its words."""

    name: str
    seq: int  # the message
    text: str
    sure: bool  # it surely binds later turns
    perhaps: bool  # it may have been meant for once
    lifts: bool  # it may lift an earlier one, or take its place
    audience: str = "all"


class FoundState(enum.StrEnum):
    """What became of a constraint that was found."""

    STANDING = "standing"
    LIFTED = "lifted"  # a later message of the user says that it no longer holds
    REPLACED = "replaced"  # a later one says something else of the same, or says it again


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundConstraint:
    """A constraint that was found in a user's message. It is pinned while it stands and is sure."""

    name: str  # lift_constraint of this subject dismisses it
    seq: int  # the message
    text: str  # verbatim
    sure: bool
    state: FoundState
    by: str | None = None  # the statement that lifted or replaced it; its name tells the message, as this one's does
    audience: str = "all"
