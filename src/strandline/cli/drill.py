"""`strandline drill`: the three incidents, live: without protection, then with it (C41)."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import Annotated, Final, Literal

import typer

from strandline.cli.drill_story import Silent, Story
from strandline.cli.output import emit, to_json

NAMES: Final = ("lost-handle", "half-summary", "resurrected-checkpoint")
_NAME_HELP: Final = "Which incident."
_KEEP_HELP: Final = "Keep the stores and files there for a look: a folder that is empty, or not there yet."
Name = Annotated[
    Literal["lost-handle", "half-summary", "resurrected-checkpoint", "all"],
    typer.Argument(metavar="INCIDENT", help="lost-handle, half-summary, resurrected-checkpoint or all."),
]
Keep = Annotated[Path | None, typer.Option("--keep", metavar="DIR", help=_KEEP_HELP)]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object, also on failure.")]


def drill(name: Name = "all", keep: Keep = None, as_json: AsJson = False) -> None:
    """Show the three incidents, live: first what a naive agent does, then what Strandline does.

    Real processes are killed, a real service hangs; it takes about half a minute, more on a busy machine, and touches
    nothing of yours. The exit code is 0 if every promise was kept, else 1.
    """
    from strandline.drill.program import run

    with contextlib.ExitStack() as stack:
        if keep is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="strandline-drill-")))
        else:
            folder = _empty(keep)
        story = Silent() if as_json else Story()
        incidents = run(NAMES if name == "all" else [name], folder, story)
    ok = all(incident.ok for incident in incidents)
    if as_json:
        emit(to_json({"incidents": [incident.as_object() for incident in incidents], "ok": ok}))
    elif isinstance(story, Story):
        story.end(incidents, keep)
    if not ok:
        raise typer.Exit(1)


def _empty(folder: Path) -> Path:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise typer.BadParameter(f"{folder} is there and not empty", param_hint="--keep")
    folder.mkdir(parents=True, exist_ok=True)
    return folder.resolve()
