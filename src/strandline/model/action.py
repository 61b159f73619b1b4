"""Critical actions: what they need, and the permits that say they may be done (I20, C24)."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from strandline.model.event import Basis


class NeedKind(enum.StrEnum):
    """What a durable fact must say."""

    APPROVED = "approved"
    RESOLVED = "resolved"
    NO_OPEN_ISSUE = "no_open_issue"
    IN_FORCE = "in_force"
    NOT_IN_FORCE = "not_in_force"


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionNeed:
    """One thing that must hold for an action; made by `approved` and its siblings."""

    kind: NeedKind
    subject: str = ""  # "": any
    scope: str | None = None
    quorum: int = 1  # different granters
    granters: tuple[str, ...] = ()  # only these may grant; (): anyone
    author: str | None = None  # whose own approvals don't count


@dataclass(frozen=True, slots=True, kw_only=True)
class FactVersion:
    """A fact as a permit rests on it: the event that states it, or the one that ended it; 0: there is none.

    `workflow` is the one whose log holds that event: a fork's facts may be its ancestors'.
    """

    need: int  # which of the needs it meets, from 0
    subject: str
    seq: int
    workflow: str
    holder: str = ""  # who granted it
    expires_us: int | None = None
    single_use: bool = False


class PermitState(enum.StrEnum):
    """GRANTED → CONSUMED; DENIED. Every decision is kept."""

    GRANTED = "granted"
    DENIED = "denied"
    CONSUMED = "consumed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Permit:
    """A decision about an action, bound to the versions of the facts that it rests on (I20)."""

    permit_id: str
    action: str
    state: PermitState
    needs: tuple[ActionNeed, ...]
    facts: tuple[FactVersion, ...]
    workflow: str
    revision: int
    decided_us: int
    by: str = ""  # who acts
    basis: Basis | None = None
    reasons: tuple[str, ...] = ()  # why it was denied
    expires_us: int | None = None  # when the first of the approvals expires
    consumed_by: str | None = None  # the key of the effect
    consumed_us: int | None = None

    @property
    def single_uses(self) -> tuple[tuple[str, int], ...]:
        """Where the single-use approvals stand that it rests on, each once: workflow and seq."""
        return tuple(dict.fromkeys((fact.workflow, fact.seq) for fact in self.facts if fact.single_use))
