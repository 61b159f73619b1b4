"""`strandline constraints`: those that nobody declared, listed, confirmed and dismissed (C11)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from strandline.cli.command import Answer, Target
from strandline.cli.output import count, fitted, pick

if TYPE_CHECKING:
    from strandline import FoundConstraint

Confirm = Annotated[str | None, typer.Option(metavar="NAME", help="Declare this one, in its own words.")]
Subject = Annotated[str | None, typer.Option(metavar="SUBJECT", help="With --confirm: its subject. Else its name.")]
Dismiss = Annotated[str | None, typer.Option(metavar="NAME", help="State that this one is none, or holds no longer.")]
By = Annotated[str, typer.Option(metavar="WHO", help="With --confirm or --dismiss: who decides.")]
Why = Annotated[str, typer.Option(metavar="TEXT", help="With --dismiss: why; it is kept.")]
All = Annotated[bool, typer.Option("--all", help="Those that were lifted or replaced, too.")]
_FIELDS: Final = "name seq text sure state by audience"


def constraints(
    target: Target,
    confirm: Confirm = None,
    subject: Subject = None,
    dismiss: Dismiss = None,
    by: By = "",
    why: Why = "",
    include_all: All = False,
) -> Answer:
    """Print the constraints that were found in users' messages and that nobody declared.

    Those that are sure are pinned by every compaction, until a later message lifts or replaces them.
    """
    if confirm is not None and dismiss is not None:
        raise typer.BadParameter("give --confirm or --dismiss, and not both", param_hint="--confirm")
    with target.open() as workflow:
        if confirm is not None:
            done = workflow.confirm_constraint(confirm, subject=subject, actor=by)
            return Answer(
                value={"confirmed": confirm, "subject": subject or confirm, **pick(done, "seqs revision")},
                heading=f"declared {confirm!r} as the constraint {subject or confirm!r}, event {done.seqs[0]}",
            )
        if dismiss is not None:
            done = workflow.dismiss_constraint(dismiss, why=why, actor=by)
            return Answer(
                value={"dismissed": dismiss, **pick(done, "seqs revision")},
                heading=f"dismissed {dismiss!r}, event {done.seq}",
            )
        found = workflow.found_constraints()
    shown = [one for one in found if include_all or one.state.value == "standing"]
    rows = [(one.name, _state(one), one.text) for one in shown]
    return Answer(
        value={"constraints": [pick(one, _FIELDS) for one in shown]},
        heading=f"{count(len(shown), 'constraint')} found, declared by nobody",
        text=fitted(("name", "state", "said"), rows, cut={"said": 30}, spare=["state"]),
        hint="Declare one by --confirm NAME; dismiss one by --dismiss NAME." if shown else "",
    )


def _state(one: FoundConstraint) -> str:
    if one.by is not None:
        return f"{one.state} by {one.by}"
    return "pinned" if one.sure else "quoted, doubtful"
