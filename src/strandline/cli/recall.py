"""`strandline recall`: the verbatim events that hold a reference (C4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from strandline.cli.options import STORE, TENANT, VIEW, Json, Store, TenantName, ViewName, WorkflowName
from strandline.cli.output import Block, Heading, count, show
from strandline.cli.target import Target
from strandline.limits import RECALL_HITS_MAX

if TYPE_CHECKING:
    from strandline import RecallHit

Ref = Annotated[str, typer.Argument(metavar="REF", help="The reference; put -- before one that begins with a dash.")]
Limit = Annotated[
    int, typer.Option("--limit", metavar="N", min=1, max=RECALL_HITS_MAX, help="Events, newest first, at most.")
]
_TEXT_CHARS_MAX: Final = 2_000  # of a hit, for people; JSON has all of it
_EXCERPT_CHARS: Final = 400  # before the reference, and behind it


def recall(
    ref: Ref,
    limit: Limit = RECALL_HITS_MAX,
    store: Store = STORE,
    tenant: TenantName = TENANT,
    workflow: WorkflowName = None,
    view: ViewName = VIEW,
    as_json: Json = False,
) -> None:
    """Print the events in which a reference stands, newest first."""
    target = Target(store=store, tenant=tenant, workflow=workflow, view=view)
    with target.open() as opened:
        hits = opened.recall(ref, limit)
        name = opened.name
    value = {"tenant": tenant, "workflow": name, "ref": ref, "hits": hits}
    show(value, _blocks(f"{tenant}/{name}", ref, hits, limit), as_json=as_json)


def _blocks(name: str, ref: str, hits: list[RecallHit], limit: int) -> list[Block]:
    if not hits:
        return [Heading(f"{name}: no event holds {ref!r}", good=False)]
    more = "; there may be more" if len(hits) == limit else ""
    blocks: list[Block] = [Heading(f"{name}: {count(len(hits), 'event')} with {ref!r}{more}")]
    for hit in hits:
        who = f"{hit.actor}/{hit.kind}" if hit.actor else hit.kind
        declared = ", declared" if hit.declared else ""
        blocks += ["", Heading(f"[{hit.seq}] {who}{declared}"), _excerpt(hit.text, ref)]
    return blocks


def _excerpt(text: str, ref: str) -> str:
    if len(text) <= _TEXT_CHARS_MAX:
        return text
    at = max(0, text.find(ref))
    first, last = max(0, at - _EXCERPT_CHARS), at + len(ref) + _EXCERPT_CHARS
    before, behind = "… " if first else "", " …" if last < len(text) else ""
    return f"{before}{text[first:last]}{behind}\n({len(text):,} characters; --json prints them all)"
