"""`strandline recover`: continue from a state that really existed, or stop and say what is missing (I15, I16)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from strandline.cli.context import as_object as context_object
from strandline.cli.context import provenance
from strandline.cli.options import (
    CHECKPOINT,
    STORE,
    TENANT,
    VIEW,
    Budget,
    CheckpointName,
    Json,
    Needs,
    Store,
    TenantName,
    ViewName,
    WorkflowName,
)
from strandline.cli.output import Block, Facts, Heading, show, to_json
from strandline.cli.target import Target

if TYPE_CHECKING:
    from strandline import Recovery

DryRun = Annotated[bool, typer.Option("--dry-run", help="Decide, and write nothing.")]
Prior = Annotated[bool, typer.Option("--prior-state", help="On replay, print the newest state too; it is stale.")]


def recover(
    name: CheckpointName = CHECKPOINT,
    needs: Needs = None,
    budget: Budget = None,
    dry_run: DryRun = False,
    prior_state: Prior = False,
    store: Store = STORE,
    tenant: TenantName = TENANT,
    workflow: WorkflowName = None,
    view: ViewName = VIEW,
    as_json: Json = False,
) -> None:
    """Restore the newest valid checkpoint, or replay the summary and its tail; or refuse, with the reason."""
    target = Target(store=store, tenant=tenant, workflow=workflow, view=view)
    with target.open() as opened:
        recovered = opened.recover(needs or (), name=name, budget=budget, dry_run=dry_run, prior_state=prior_state)
        workflow = opened.name
    value = {
        "tenant": tenant,
        "workflow": workflow,
        "kind": recovered.kind,
        "name": recovered.name,
        "lineage_seq": recovered.lineage_seq,
        "generation": recovered.generation,
        "revision": recovered.revision,
        "turn": recovered.turn,
        "checkpoint_seq": recovered.checkpoint_seq,
        "state": recovered.state,
        "prior_state": recovered.prior_state,
        "dry_run": recovered.dry_run,
        "context": context_object(recovered.context),
    }
    show(value, _blocks(f"{tenant}/{workflow}", recovered), as_json=as_json)


def _blocks(name: str, recovered: Recovery) -> list[Block]:
    turn = f" of turn {recovered.turn}" if recovered.turn is not None else ""
    if recovered.kind == "restore":
        what = f"checkpoint {recovered.name!r}{turn} restored"
    elif recovered.turn is not None:
        what = f"replayed, with the context-free state {recovered.name!r}{turn}"
    else:
        what = "replayed from the active summary and its tail; no state is restored"
    facts: list[tuple[str, object]] = [
        ("lineage", "nothing was written (dry run)" if recovered.dry_run else recovered.lineage_seq)
    ]
    if recovered.checkpoint_seq is not None:
        facts.append(("checkpoint", f"lineage {recovered.checkpoint_seq}"))
    facts.append(("context", "\n".join(provenance(recovered.context)).split("\n", 1)[0]))
    since = sum(part.since_checkpoint for part in recovered.context.parts)
    if recovered.kind == "restore":
        facts.append(("since then", f"{since:,} events that the state does not know"))
    blocks: list[Block] = [Heading(f"{name}: {what}"), Facts(facts)]
    if recovered.turn is not None:
        blocks.append(to_json(recovered.state, indent=2))
    prior = recovered.prior_state
    if prior is not None:
        blocks += [f"stale state of turn {prior.turn} (lineage {prior.lineage_seq}):", to_json(prior.state, indent=2)]
    return blocks
