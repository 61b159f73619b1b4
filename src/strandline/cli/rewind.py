"""`strandline rewind`: go on from an earlier event, on a new branch (C22)."""

from __future__ import annotations

from typing import Annotated

import typer

from strandline.cli.command import Answer, Target, number
from strandline.cli.output import count, pick, span
from strandline.cli.revert import By, Why

To = Annotated[int | None, typer.Argument(metavar="TO", parser=number(0), help="The last event that stays; 0: none.")]
_CHECKPOINT_HELP = "In place of TO: a checkpoint, as `lineage` prints it; `recover` then restores it."
CheckpointSeq = Annotated[int | None, typer.Option(metavar="LINEAGE", parser=number(1), help=_CHECKPOINT_HELP)]
_FIELDS = "to_revision revision branch from_seq through_seq events generations lineage_seq restated fenced"


def rewind(target: Target, by: By, why: Why, to: To = None, checkpoint: CheckpointSeq = None) -> Answer:
    """Go on from an earlier event, on a new branch.

    Events after it are abandoned, not deleted: `recall` still finds them, and no context holds them.
    """
    if (to is None) == (checkpoint is None):
        raise typer.BadParameter("give TO or --checkpoint, and not both", param_hint="TO")
    with target.open() as workflow:
        done = workflow.rewind(to, checkpoint_seq=checkpoint, by=by, why=why)
    moved = ", ".join(f"{view}: {generation}" for view, generation in done.generations.items())
    return Answer(
        value=pick(done, _FIELDS),
        heading=f"went back to event {done.to_revision}; branch {done.branch} goes on behind event {done.revision}",
        facts=[
            ("abandoned", f"{count(done.events, 'event')} of {span(done.from_seq, done.through_seq)}"),
            ("generation", moved),
            ("lineage", done.lineage_seq),
            ("stated again", ", ".join(f"event {old} as {new}" for new, old in done.restated)),
            ("fenced", done.fenced and f"{', '.join(done.fenced)}, which was in flight"),
        ],
        hint="Read the context anew: what was made from an older one is of another branch.",
    )
