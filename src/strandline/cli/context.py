"""`strandline context`: what is handed to the model, with the provenance of every part (C18)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from strandline.cli.command import Answer, Budget, Needs, Target
from strandline.cli.output import count, pick, span, to_json

if TYPE_CHECKING:
    from strandline import Context, ContextPart


Form = Literal["text", "openai", "anthropic"]
Format = Annotated[Form, typer.Option("--format", help="Text, or the messages for a provider.")]
_FIELDS: Final = "view revision generation watermark tokens budget token_counter rung needs omitted divergences case_id"
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
    return {**pick(read, _FIELDS), "parts": [_part_object(part) for part in read.parts]}


def _part_object(part: ContextPart) -> dict[str, object]:
    value = {**pick(part, _PART_FIELDS), "event_kind": part.event.kind if part.event else None}
    if part.excerpts:
        value["excerpts"] = [pick(excerpt, "from_char to_char") for excerpt in part.excerpts]
    return value


def provenance(read: Context) -> list[str]:
    """Return what a context is made of, and what it leaves out."""
    rung = f", rung {read.rung}" if read.rung != "whole" else ""
    said = [f"its summary stands under the open case {read.case_id}"] if read.case_id is not None else []
    said += [f"basis {read.generation}@{read.revision}, {read.tokens:,} of {read.budget:,} tokens{rung}"]
    for kind in dict.fromkeys(part.kind for part in read.parts):
        parts = [part for part in read.parts if part.kind is kind]
        what = kind if kind in ("anchors", "ledger") else count(len(parts), kind)
        where = span(parts[0].from_seq, parts[-1].through_seq)
        if kind == "retrieved":
            what, where = "retrieved for needs: event", ", ".join(str(part.from_seq) for part in parts)
        said.append(f"{what} {where} ({sum(p.tokens for p in parts):,})")
    for left in read.omitted:
        what = "rest of event" if left.kind == "retrieved" else left.kind
        said.append(f"left out: {what} {span(left.from_seq, left.through_seq)} ({left.tokens:,})")
    return said
