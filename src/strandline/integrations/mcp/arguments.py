"""What a caller may ask with each tool. A field that is not here is refused, `tenant` above all (I21)."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from strandline.limits import (
    CONTEXT_BUDGET_TOKENS,
    CONTEXT_BUDGET_TOKENS_MIN,
    MCP_CONTEXT_TOKENS_MAX,
    MCP_HITS,
    MCP_LISTED_MAX,
    NAME_CHARS_MAX,
    NEEDS_OF_ACTION_MAX,
    REFERENCE_CHARS_MAX,
)

SEQ_MAX: Final = 2**63 - 1
Name = Annotated[str, Meta(min_length=1, max_length=NAME_CHARS_MAX)]
Reference = Annotated[str, Meta(min_length=1, max_length=REFERENCE_CHARS_MAX)]
References = Annotated[tuple[Reference, ...], Meta(max_length=MCP_LISTED_MAX)]
Count = Annotated[int, Meta(ge=0, le=SEQ_MAX)]
Listed = Annotated[int, Meta(ge=1, le=MCP_LISTED_MAX)]
_BUDGET_SAID: Final = f"Tokens, at most. Left out: the view's own, or {CONTEXT_BUDGET_TOKENS}."
Budget = Annotated[int, Meta(ge=CONTEXT_BUDGET_TOKENS_MIN, le=MCP_CONTEXT_TOKENS_MAX, description=_BUDGET_SAID)]
KINDS: Final = (
    "message",
    "note",
    "decision",
    "failed_attempt",
    "issue",
    "artifact",
    "pin",
    "tool_call",
    "tool_result",
    "abandoned",
)
Kind = Annotated[str, Meta(max_length=NAME_CHARS_MAX, extra_json_schema={"enum": list(KINDS)})]
NeedKind = Literal["approved", "resolved", "no_open_issue", "in_force", "not_in_force"]


class Asked(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What every tool takes."""

    workflow: Annotated[
        Name | None, Meta(description="The workflow. Leave it out where the credential allows one only.")
    ] = None


class GivenBasis(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Generation and revision of a context, as `read_context` gave them."""

    generation: Count
    revision: Count


class AppendEvent(Asked, frozen=True, kw_only=True):
    """Arguments of `append_event`."""

    kind: Kind
    text: Annotated[str | UnsetType, Meta(description="What it says; of all kinds but tool_call and tool_result.")] = (
        UNSET
    )
    subject: Annotated[Name | UnsetType, Meta(description="Of decision, failed_attempt, issue, artifact.")] = UNSET
    handle: Annotated[Reference | UnsetType, Meta(description="Of an artifact: by what it is found again.")] = UNSET
    ref: Annotated[Reference | UnsetType, Meta(description="Of a pin: a reference that an earlier event holds.")] = (
        UNSET
    )
    call_id: Annotated[Name | UnsetType, Meta(description="Of tool_call, tool_result, abandoned.")] = UNSET
    tool: Annotated[Name | UnsetType, Meta(description="Of a tool_call.")] = UNSET
    input: Annotated[object | UnsetType, Meta(description="Of a tool_call: any JSON value.")] = UNSET
    content: Annotated[object | UnsetType, Meta(description="Of a tool_result: text, or any JSON value.")] = UNSET
    is_error: Annotated[bool | UnsetType, Meta(description="Of a tool_result.")] = UNSET
    key: Annotated[
        Name | UnsetType, Meta(description="Names the event: the same key with the same content is appended once.")
    ] = UNSET
    refs: Annotated[
        References | UnsetType, Meta(description="Identifiers, paths, numbers that must survive word for word.")
    ] = UNSET
    expected_revision: Annotated[
        Count | None, Meta(description="Refuse if the workflow has another revision by now.")
    ] = None
    basis: Annotated[GivenBasis | None, Meta(description="The context that it was made from.")] = None


class ReadContext(Asked, frozen=True, kw_only=True):
    """Arguments of `read_context`."""

    budget: Budget | None = None
    needs: Annotated[References, Meta(description="References that must stand in it word for word.")] = ()


class FindReference(Asked, frozen=True, kw_only=True):
    """Arguments of `find_reference`."""

    ref: Annotated[Reference, Meta(description="The reference, exactly as it was written.")]
    limit: Listed = MCP_HITS


class GetEvent(Asked, frozen=True, kw_only=True):
    """Arguments of `get_event`."""

    seq: Annotated[int, Meta(ge=1, le=SEQ_MAX, description="The event's number.")]
    from_char: Annotated[Count, Meta(description="Where to begin; of a long text, `next_char` of the page before.")] = 0


class Need(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One thing that must hold."""

    kind: NeedKind
    subject: Annotated[str, Meta(max_length=NAME_CHARS_MAX)] = ""
    scope: Name | None = None
    quorum: Annotated[int, Meta(ge=1, le=NEEDS_OF_ACTION_MAX)] = 1
    granters: Annotated[tuple[Name, ...], Meta(max_length=NEEDS_OF_ACTION_MAX)] = ()


class CheckReady(Asked, frozen=True, kw_only=True):
    """Arguments of `check_ready`."""

    action: Annotated[Name, Meta(description="What is to be done.")]
    needs: Annotated[
        tuple[Need, ...],
        Meta(max_length=NEEDS_OF_ACTION_MAX, description="What must hold; scope, quorum, granters: of approved."),
    ] = ()
    references: Annotated[References, Meta(description="References that must stand in the context word for word.")] = ()


class RequestCompaction(Asked, frozen=True, kw_only=True):
    """Arguments of `request_compaction`."""

    budget: Budget | None = None


class Status(Asked, frozen=True, kw_only=True):
    """Arguments of `status`."""


class ListCases(Asked, frozen=True, kw_only=True):
    """Arguments of `list_cases`."""

    include_answered: bool = False
    limit: Listed = MCP_LISTED_MAX
