"""`strandline lineage`: what happened to the memory, in its one order (I13)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strandline.cli.options import STORE, TENANT, VIEW, Json, Store, TenantName, ViewName, WorkflowName
from strandline.cli.output import Block, Heading, Table, at, count, show
from strandline.cli.target import Target

if TYPE_CHECKING:
    from strandline.model.lineage import LineageEntry


def lineage(
    store: Store = STORE,
    tenant: TenantName = TENANT,
    workflow: WorkflowName = None,
    view: ViewName = VIEW,
    as_json: Json = False,
) -> None:
    """Print every compaction, checkpoint, restore and replay, in order."""
    target = Target(store=store, tenant=tenant, workflow=workflow, view=view)
    with target.open() as opened:
        entries = opened.lineage()
        name = opened.name
    value = {"tenant": tenant, "workflow": name, "entries": [_as_object(entry) for entry in entries]}
    blocks: list[Block] = [
        Heading(f"{tenant}/{name}: {count(len(entries), 'lineage entrie').replace('entrie ', 'entry ')}")
    ]
    if entries:
        head = ("lineage", "what", "generation", "revision", "time", "detail")
        rows = [(e.lineage_seq, e.kind, e.generation, e.revision, at(e.at_us), _detail(e)) for e in entries]
        blocks.append(Table(head, rows))
    show(value, blocks, as_json=as_json)


def _as_object(entry: LineageEntry) -> dict[str, object]:
    return {
        "lineage_seq": entry.lineage_seq,
        "kind": entry.kind,
        "revision": entry.revision,
        "at": at(entry.at_us),
        "at_us": entry.at_us,
        "view": entry.view,
        "generation": entry.generation,
        "name": entry.name,
        "restored_seq": entry.restored_seq,
        "digest": entry.digest,
        "by": entry.by,
        "why": entry.why,
        "detail": entry.detail,
        "op_key": entry.op_key,
        "chain": entry.chain,
    }


def _detail(entry: LineageEntry) -> str:
    said = [f"name {entry.name!r}"] if entry.name is not None else []
    if entry.restored_seq is not None:
        said.append(f"restores lineage {entry.restored_seq}")
    said += [f"{name} {value}" for name, value in entry.detail.items() if value is not None]
    return ", ".join(said)
