"""`strandline manifest`: what covered events hold and the summary does not (I9)."""

from __future__ import annotations

from strandline.cli.options import STORE, TENANT, VIEW, Json, Store, TenantName, ViewName, WorkflowName
from strandline.cli.output import Block, Heading, Table, count, one_line, show
from strandline.cli.target import Target


def manifest(
    store: Store = STORE,
    tenant: TenantName = TENANT,
    workflow: WorkflowName = None,
    view: ViewName = VIEW,
    as_json: Json = False,
) -> None:
    """Print every reference that the active summary does not hold verbatim, and where it was seen last."""
    from strandline.engine.recall import read_manifest

    target = Target(store=store, tenant=tenant, workflow=workflow, view=view)
    with target.open() as opened:
        generation, dropped = read_manifest(opened._env, view)  # one snapshot; `Workflow.manifest` names no generation
        name = opened.name
    value = {
        "tenant": tenant,
        "workflow": name,
        "view": view,
        "generation": generation,
        "dropped": [
            {
                "ref": entry.ref,
                "last_seq": entry.last_seq,
                "generation_dropped": entry.generation_dropped,
                "reason": entry.reason,
            }
            for entry in dropped
        ],
    }
    blocks: list[Block] = [
        Heading(f"{tenant}/{name}: generation {generation} leaves out {count(len(dropped), 'reference')}")
    ]
    if dropped:
        head = ("last seen", "dropped at", "reason", "reference")
        rows = [
            (entry.last_seq, entry.generation_dropped, entry.reason, one_line(entry.ref or "(erased)"))
            for entry in dropped
        ]
        blocks.append(Table(head, rows))
    show(value, blocks, as_json=as_json)
