"""`strandline recover`: continue from a state that really existed, or stop and say what is missing (I15, I16)."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from strandline.cli.command import Answer, Budget, CheckpointName, Needs, Target
from strandline.cli.context import context_object, provenance
from strandline.cli.output import count, pick, to_json
from strandline.model.ids import DEFAULT_CHECKPOINT_NAME

DryRun = Annotated[bool, typer.Option("--dry-run", help="Decide, and write nothing.")]
Prior = Annotated[bool, typer.Option("--prior-state", help="On replay, print the newest state too; it is stale.")]
_FIELDS: Final = "kind name lineage_seq generation revision turn checkpoint_seq state prior_state dry_run"


def recover(
    target: Target,
    name: CheckpointName = DEFAULT_CHECKPOINT_NAME,
    needs: Needs = None,
    budget: Budget = None,
    dry_run: DryRun = False,
    prior_state: Prior = False,
) -> Answer:
    """Restore the newest valid checkpoint, or replay."""
    with target.open() as workflow:
        found = workflow.recover(needs or (), name=name, budget=budget, dry_run=dry_run, prior_state=prior_state)
    restored = found.kind == "restore"
    if restored:
        heading = f"checkpoint {found.name!r} of turn {found.turn} restored"
    elif found.turn is not None:
        heading = f"replayed, with the context-free state {found.name!r} of turn {found.turn}"
    else:
        heading = "replayed from the active summary and its tail; no state is restored"
    since = sum(part.since_checkpoint for part in found.context.parts)
    states = [to_json(found.state, indent=2)] if found.turn is not None else []
    if found.prior_state is not None:
        states += [f"stale state of turn {found.prior_state.turn}:", to_json(found.prior_state.state, indent=2)]
    return Answer(
        value={**pick(found, _FIELDS), "context": context_object(found.context)},
        heading=heading,
        facts=[
            ("lineage", "dry run: nothing was written" if found.dry_run else found.lineage_seq),
            ("checkpoint", f"lineage {found.checkpoint_seq}" if found.checkpoint_seq is not None else ""),
            ("since then", count(since, "event") + " that the state does not know" if restored else ""),
            *((" " if i else "context", said) for i, said in enumerate(provenance(found.context))),
        ],
        text="\n".join(states),
    )
