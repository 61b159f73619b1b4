"""The register: the fold of the log into current durable facts (SPEC §2)."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class FactKind(enum.StrEnum):
    """What a register fact is about."""

    CONSTRAINT = "constraint"
    APPROVAL = "approval"
    REVOCATION = "revocation"
    ISSUE = "issue"
    CALL = "call"
    ARTIFACT = "artifact"
    PIN = "pin"
    DIVERGENCE = "divergence"
    FOUND = "found"  # a statement of a user that may bind and that nobody declared; `found_name` is its subject


class FactState(enum.StrEnum):
    """STANDING: in force, granted, open, live. UNKNOWN: a call closed without a result (I8)."""

    STANDING = "standing"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class FactKey:
    """What makes two facts the same fact: kind, subject, for an approval who granted it, and for whom it is stated."""

    kind: FactKind
    subject: str
    holder: str = ""

    @property
    def granter(self) -> str:
        """Who granted an approval, with its scope; "" of any other fact."""
        if self.kind is not FactKind.APPROVAL:
            return ""
        size, at, rest = self.holder.partition("@")
        return rest[int(size) + 1 :] if at and size.isascii() and size.isdigit() else self.holder


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One fact over the interval of seqs in which it held: from_seq..through_seq, open when None.

    `source_seq` is the event that states it; the text stays there.
    """

    key: FactKey
    state: FactState
    source_seq: int
    from_seq: int
    ordinal: int = 0  # facts that begin at one seq are told apart by it
    through_seq: int | None = None
    lane: str = ""  # for a call: the thread or actor whose next user turn closes it
    audience: str = "all"
    expires_us: int | None = None


def found_name(seq: int, number: int) -> str:
    """Return the name of a statement that was found, the `number`-th of event `seq`; it tells nothing of its words."""
    return f"said-{seq}-{number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenCall:
    """A tool call that has no result yet; it holds the watermark until it is answered or abandoned (I8)."""

    call_id: str
    seq: int
    tool: str

    def __str__(self) -> str:
        return f"the call {self.call_id!r} (tool {self.tool!r}, event {self.seq})"


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterStep:
    """What one event does to the register: facts that end before it, facts that begin with it."""

    ended: tuple[Fact, ...] = ()
    begun: tuple[Fact, ...] = ()
    call: Fact | None = None  # the call that the event answers or closes
    late: bool = False  # the call was closed before this result came
