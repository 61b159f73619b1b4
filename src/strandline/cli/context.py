"""`strandline context`: what is handed to the model, with the provenance of every part (C18)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from strandline.cli.command import Answer, Budget, Needs, Target
from strandline.cli.output import count, pick, span, to_json

if TYPE_CHECKING:
    from strandline import Context


Form = Literal["text", "openai", "anthropic"]
Format = Annotated[Form, typer.Option("--format", help="Text, or the messages for a provider.")]
_FIELDS: Final = "view revision generation watermark tokens budget token_counter rung omitted"
_PART_FIELDS: Final = "kind from_seq through_seq tokens text since_checkpoint"


def context(target: Target, budget: Budget = None, needs: Needs = None, form: Format = "text") -> Answer:
    """Print the working context: the summary, then the tail."""
    with target.open() as workflow:
        read = workflow.context(budget, needs or ())
    value, text = context_object(read), read.text
    if form != "text":
        value["messages"] = read.messages(form)
        text = to_json(value["messages"], indent=2)
    return Answer(value=value, text=text, note="; ".join(provenance(read)))


def context_object(read: Context) -> dict[str, object]:
    """Return a context as the JSON that others rely on."""
    parts = [{**pick(p, _PART_FIELDS), "event_kind": p.event.kind if p.event else None} for p in read.parts]
    return {**pick(read, _FIELDS), "parts": parts}


def provenance(read: Context) -> list[str]:
    """Return what a context is made of, and what it leaves out."""
    said = [f"basis {read.generation}@{read.revision}, {read.tokens:,} of {read.budget:,} tokens"]
    for kind in dict.fromkeys(part.kind for part in read.parts):
        parts = [part for part in read.parts if part.kind is kind]
        what = kind if kind in ("anchors", "ledger") else count(len(parts), kind)
        said.append(f"{what} {span(parts[0].from_seq, parts[-1].through_seq)} ({sum(p.tokens for p in parts):,})")
    said += [
        f"left out: {left.kind} {span(left.from_seq, left.through_seq)} ({left.tokens:,})" for left in read.omitted
    ]
    return said
