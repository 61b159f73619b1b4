"""`strandline context`: what is handed to the model, with the provenance of every part (C18)."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from strandline.cli.options import STORE, TENANT, VIEW, Budget, Json, Needs, Store, TenantName, ViewName, WorkflowName
from strandline.cli.output import count, show, span, tell, to_json
from strandline.cli.target import Target

if TYPE_CHECKING:
    from strandline import Context


class Format(enum.StrEnum):
    """The forms in which a context can be printed."""

    TEXT = "text"
    OPENAI = "openai"
    ANTHROPIC = "anthropic"


FormatOption = Annotated[Format, typer.Option("--format", help="Text, or a provider's messages as JSON.")]


def context(
    budget: Budget = None,
    needs: Needs = None,
    format_: FormatOption = Format.TEXT,
    store: Store = STORE,
    tenant: TenantName = TENANT,
    workflow: WorkflowName = None,
    view: ViewName = VIEW,
    as_json: Json = False,
) -> None:
    """Print the working context: summary, then the tail."""
    target = Target(store=store, tenant=tenant, workflow=workflow, view=view)
    with target.open() as opened:
        read = opened.context(budget, needs or ())
        name = opened.name
    value: dict[str, object] = {"tenant": tenant, "workflow": name, **as_object(read)}
    result = read.text
    if format_ is not Format.TEXT:
        value["messages"] = read.messages(format_)
        result = to_json(value["messages"], indent=2)
    if not as_json:
        tell("context", "; ".join(provenance(read)))
    show(value, [result] if result else [], as_json=as_json)


def as_object(read: Context) -> dict[str, object]:
    """Return a context as the JSON that others rely on."""
    return {
        "view": read.view,
        "revision": read.revision,
        "generation": read.generation,
        "watermark": read.watermark,
        "tokens": read.tokens,
        "budget": read.budget,
        "token_counter": read.token_counter,
        "rung": read.rung,
        "parts": [
            {
                "kind": part.kind,
                "from_seq": part.from_seq,
                "through_seq": part.through_seq,
                "tokens": part.tokens,
                "text": part.text,
                "event_kind": part.event.kind if part.event else None,
                "since_checkpoint": part.since_checkpoint,
            }
            for part in read.parts
        ],
        "omitted": read.omitted,
    }


def provenance(read: Context) -> Iterator[str]:
    """Yield what a context is made of, and what it leaves out."""
    yield f"generation {read.generation}, revision {read.revision}, {read.tokens:,} of {read.budget:,} tokens"
    kinds = dict.fromkeys(part.kind for part in read.parts)
    for kind in kinds:
        parts = [part for part in read.parts if part.kind is kind]
        where = span(parts[0].from_seq, parts[-1].through_seq)
        noun = f"{kind} {where}" if len(parts) == 1 else f"{count(len(parts), kind)} {where}"
        yield f"{noun} ({sum(part.tokens for part in parts):,})"
    for omission in read.omitted:
        yield (
            f"left out: {omission.kind} {span(omission.from_seq, omission.through_seq)} ({omission.tokens:,}, "
            f"{omission.reason.replace('_', ' ')})"
        )
