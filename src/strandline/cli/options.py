"""The options that commands share."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from strandline.limits import CONTEXT_BUDGET_TOKENS, CONTEXT_BUDGET_TOKENS_MIN
from strandline.model.ids import DEFAULT_CHECKPOINT_NAME, DEFAULT_TENANT, DEFAULT_VIEW

STORE: Final = "strandline.db"
TENANT: Final = DEFAULT_TENANT
VIEW: Final = DEFAULT_VIEW
CHECKPOINT: Final = DEFAULT_CHECKPOINT_NAME
COUNT_MAX: Final = 2**63 - 1  # what every store can hold

Store = Annotated[
    str,
    typer.Option("--store", envvar="STRANDLINE_STORE", metavar="PATH", help="The store: a path, or sqlite:///PATH."),
]
TenantName = Annotated[str, typer.Option("--tenant", metavar="NAME", help="The tenant.")]
WorkflowName = Annotated[
    str | None,
    typer.Option(
        "--workflow",
        metavar="NAME",
        show_default=False,
        help="The workflow. By default the file's name without its suffix, else the only one in the store.",
    ),
]
ViewName = Annotated[str, typer.Option("--view", metavar="NAME", help="The view.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, also on failure.")]
Budget = Annotated[
    int | None,
    typer.Option(
        "--budget",
        metavar="N",
        min=CONTEXT_BUDGET_TOKENS_MIN,
        max=COUNT_MAX,
        show_default=str(CONTEXT_BUDGET_TOKENS),
        help="Tokens of the assembled context, at most.",
    ),
]
Needs = Annotated[
    list[str] | None,
    typer.Option("--needs", metavar="REF", help="A reference that must stand verbatim. Repeatable."),
]
CheckpointName = Annotated[str, typer.Option("--name", metavar="NAME", help="Whose checkpoint: an agent, a thread.")]


def print_version(asked: bool) -> None:
    """Print the version and exit, if that was asked for."""
    if asked:
        from importlib.metadata import version

        print(f"strandline {version('strandline')}")
        raise SystemExit(0)
