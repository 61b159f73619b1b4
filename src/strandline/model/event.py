"""Events: what a caller hands in, what the log holds, what a reader sees.

What exists once per event that is read is a named tuple: as immutable as the frozen dataclasses elsewhere, and made in
a fifth of the time, which every read pays per event of its tail.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple


class EventKind(enum.StrEnum):
    """What an event states (SPEC §2)."""

    MESSAGE = "message"
    THINKING = "thinking"
    TOOL_CALL = "tool_call"
    TOOL_RESULT = "tool_result"
    ABANDONED = "abandoned"
    CONSTRAINT = "constraint"
    LIFT_CONSTRAINT = "lift_constraint"
    APPROVAL = "approval"
    REVOKE = "revoke"
    DECISION = "decision"
    ISSUE = "issue"
    RESOLVE = "resolve"
    ARTIFACT = "artifact"
    RELEASE_ARTIFACT = "release_artifact"
    FAILED_ATTEMPT = "failed_attempt"
    EFFECT = "effect"
    PIN = "pin"
    UNPIN = "unpin"
    DIVERGENCE = "divergence"
    NOTE = "note"


class Role(enum.StrEnum):
    """Whose voice a message is in."""

    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"


class BodyFormat(enum.IntEnum):
    """How the bytes of a body are read."""

    TEXT = 0  # UTF-8 text
    JSON = 1  # one JSON value: a string, or a content block in the shape of the Anthropic Messages API


class Envelope(NamedTuple):
    """What stands beside the body and is never erased: identifiers and times, no payload (I1, C31)."""

    role: Role | None = None
    thread: str | None = None  # the lane in which a user turn closes open calls; the actor when absent
    call_id: str | None = None
    tool: str | None = None
    is_error: bool = False
    late: bool = False  # a result that came after its call was closed (I8); set when it is appended
    subject: str | None = None
    granter: str | None = None
    scope: str | None = None
    expires_us: int | None = None
    source_at: str | None = None  # the time the source gives, as it stood
    parent: str | None = None  # key of the parent record in the source; metadata only
    message_id: str | None = None  # blocks with one message id were one provider message
    single_use: bool = False  # an approval that one effect uses up (I20)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEvent:
    """An event before it has a place in the log.

    `body` is text (str), one JSON value already encoded (bytes, kept verbatim), or a mapping that is encoded.
    """

    kind: EventKind
    body: str | bytes | Mapping[str, object]
    envelope: Envelope = field(default_factory=Envelope)
    actor: str = ""
    audience: str | None = None  # None: everyone, or for a result its call's audience (I21)
    key: str | None = None
    refs: Sequence[str] = ()  # declared references


class Sighting(NamedTuple):
    """A reference seen in an event: its number in the workflow, and how it was seen."""

    ref_id: int
    declared: bool


class Found(NamedTuple):
    """A statement found in a user's message that nobody declared: text[start:end] of it (`rules.standing`).

    It binds later turns surely, or perhaps, for it may have been meant for once; or it does no more than lift another.
    """

    start: int
    end: int
    sure: bool = False
    perhaps: bool = False
    lifts: bool = False  # it speaks of something that no longer holds


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """The context from which a state, an event, an effect or a permit was made (SPEC §2)."""

    view: str
    generation: int
    revision: int


class StoredEvent(NamedTuple):
    """An event as a store keeps it: bytes, whose meaning the codec knows and whose chain the engine checks (I4).

    `body` and `salt` are None after erasure; then `body_digest` stands in their place, so that the chain still
    verifies (I1). While the body is there its digest is computed, not stored.
    """

    seq: int
    key: str | None
    record: bytes  # codec.records
    body: bytes | None
    salt: bytes | None
    body_digest: bytes | None
    chain: bytes


class Event(NamedTuple):
    """One immutable fact of the log, checked and decoded. `body` and `salt` are None after erasure."""

    seq: int
    key: str | None
    kind: EventKind
    actor: str
    audience: str
    at_us: int
    branch: int
    call_seq: int | None  # the call that a result or an abandoned event speaks of
    basis: Basis | None
    envelope: Envelope
    sightings: bytes  # codec.decode_sightings
    format: BodyFormat
    body: bytes | None
    salt: bytes | None
    body_digest: bytes
    chain: bytes
    epoch: int = 0  # lineage_seq of the divergence in whose epoch it was appended; 0: before any (I17)
    found: bytes = b""  # codec.decode_found


class SourceEvent(NamedTuple):
    """An event as a reader sees it: decoded text, named references. What summarizers, ledger and contexts work on."""

    seq: int
    kind: EventKind
    role: Role | None
    actor: str
    text: str
    tokens: int
    call_id: str | None = None
    call_seq: int | None = None
    tool: str | None = None
    is_error: bool = False
    subject: str | None = None
    message_id: str | None = None
    declared: tuple[str, ...] = ()
    extracted: tuple[str, ...] = ()
    payload: object = None  # decoded: a call's input, a result's content
    late: bool = False  # a result that came after its call was closed (I8)
    epoch: int = 0  # lineage_seq of the divergence in whose epoch it was appended; 0: before any (I17)
    abandoned: bool = False  # by a rewind: it stands in no context any more (C22)
    origin: str | None = None  # the record of another framework that it was made from, verbatim
    erased: bool = False  # what it said is gone (C31)


@dataclass(frozen=True, slots=True, kw_only=True)
class Appended:
    """What an append answers: the seq of each event in the order given, and the revision after it."""

    seqs: tuple[int, ...]
    revision: int
    added: int  # events that were new; the others were there already under their key (I3)

    @property
    def seq(self) -> int:
        """The seq of the last event given."""
        return self.seqs[-1]
