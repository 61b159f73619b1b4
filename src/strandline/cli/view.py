"""`strandline view`: define views, and list them (C18)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from strandline.cli.command import Answer, Budget, Target, command, named
from strandline.cli.output import count, pick, table_of
from strandline.model.ids import DEFAULT_VIEW

if TYPE_CHECKING:
    from strandline import View

app = typer.Typer(
    help="Views: windows onto the log, each with its audiences, its budget and its own summary.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Name = Annotated[str, typer.Argument(metavar="NAME", parser=named("view"), help="The view.")]
_AUDIENCE_HELP: Final = "An audience that it reads, beside what is for everyone. Repeatable. `main` reads everything."
Audiences = Annotated[list[str] | None, typer.Option("--audience", metavar="NAME", help=_AUDIENCE_HELP)]
_FIELDS: Final = "budget audience_version generation watermark"


def define(target: Target, name: Name, audiences: Audiences = None, budget: Budget = None) -> Answer:
    """Make a view, or give it another budget or other audiences.

    With other audiences it begins anew, with an empty summary. The same again changes nothing.
    """
    with target.open() as workflow:
        reads = None if name == DEFAULT_VIEW and not audiences else audiences or []
        made = workflow.define_view(name, audiences=reads, budget=budget)
    return Answer(
        value={"view": _object(made)},
        heading=f"view {made.name!r} at generation {made.generation}",
        facts=[("reads", _reads(made)), ("budget", made.budget or ""), ("version", made.audience_version)],
    )


def list_(target: Target) -> Answer:
    """Print the views of the workflow."""
    with target.open() as workflow:
        found = workflow.views()
    rows = [
        (view.name, _reads(view), f"{view.budget:,}" if view.budget else "", view.generation, view.watermark)
        for view in found
    ]
    return Answer(
        value={"views": [_object(view) for view in found]},
        heading=count(len(found), "view"),
        text=table_of([("view", "reads", "budget", "generation", "covers through"), *rows]),
    )


def _object(view: View) -> dict[str, object]:
    reads = None if view.audiences is None else sorted(view.audiences)
    return {"name": view.name, "audiences": reads, **pick(view, _FIELDS)}


def _reads(view: View) -> str:
    if view.audiences is None:
        return "everything"
    return ", ".join(["what is for everyone", *map(repr, sorted(view.audiences))])


app.command("define")(command(define, unused=("view", "refs_config")))
app.command("list")(command(list_, unused=("refs_config",)))
