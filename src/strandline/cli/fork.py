"""`strandline fork`: begin a workflow from the state of another at one of its events (C22)."""

from __future__ import annotations

import shlex
from typing import Annotated, Final

import typer

from strandline.cli.command import Answer, Target, named, number
from strandline.cli.output import pick, span
from strandline.cli.revert import By, Why

Name = Annotated[str, typer.Argument(metavar="NAME", parser=named("workflow"), help="The new workflow.")]
At = Annotated[int | None, typer.Option(metavar="N", parser=number(1), help="The last event to share.  [default: now]")]
_FIELDS: Final = "parent revision lineage_seq facts watermarks"


def fork(target: Target, name: Name, by: By, why: Why, at: At = None) -> Answer:
    """Begin a new workflow from the state of one at an event; both go on by themselves."""
    with target.open() as workflow:
        forked = workflow.fork(at, name, by=by, why=why)
    return Answer(
        value={"forked": forked.workflow, **pick(forked, _FIELDS)},
        heading=f"{forked.workflow!r} begins behind event {forked.revision:,}",
        facts=[
            ("lineage", forked.lineage_seq),
            ("facts in force", forked.facts),
            *((f"summary of {view}", f"through event {mark:,}") for view, mark in forked.watermarks.items() if mark),
        ],
        hint=f"Work on it with `--workflow {shlex.quote(forked.workflow)}`; "
        f"it shares events {span(1, forked.revision)}, which are not copied.",
    )
