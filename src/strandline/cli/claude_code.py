"""`strandline claude-code`: hooks of Claude Code (C38)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from strandline.cli.command import Answer, AsJson, show
from strandline.cli.output import plain
from strandline.model.ids import DEFAULT_TENANT

if TYPE_CHECKING:
    from strandline.integrations.claude_code import Installed

app = typer.Typer(
    help="Hooks of Claude Code: its sessions get a log, its summaries are judged, what they drop is put back.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

_SCOPE_HELP: Final = "project: .claude/settings.json; local: .claude/settings.local.json; user: the one in your home."
Scope = Annotated[str, typer.Option("--scope", metavar="SCOPE", help=_SCOPE_HELP)]
Folder = Annotated[
    Path | None, typer.Option("--folder", metavar="PATH", help="The project.  [default: here; your home for user]")
]
_STORE_HELP: Final = "The store, for a new strandline.json: a URL, or a path from its folder."
Store = Annotated[str, typer.Option("--store", metavar="PATH", help=_STORE_HELP)]
Tenant = Annotated[str, typer.Option("--tenant", metavar="NAME", help="The tenant, for a new strandline.json.")]
Event = Annotated[str, typer.Argument(metavar="EVENT", help="PreCompact, PostCompact, SessionStart and so on.")]
Config = Annotated[str, typer.Option("--config", metavar="FILE", help="The strandline.json.", show_default=False)]
_AGAIN: Final = "Say in {config} what guards which tool, and install again."


@app.command()
def install(
    scope: Scope = "project",
    folder: Folder = None,
    store: Store = "strandline.db",
    tenant: Tenant = DEFAULT_TENANT,
    as_json: AsJson = False,
) -> None:
    """Put the hooks into settings.json, and keep a backup; hooks of others stay. Again, it changes nothing."""
    from strandline.integrations.claude_code import HookConfig
    from strandline.integrations.claude_code import install as put_in

    made = put_in(scope, _folder(scope, folder), HookConfig(store=store, tenant=tenant))  # type: ignore[arg-type]  # it checks
    hint = "" if "PreToolUse" in made.events else _AGAIN.format(config=made.config)
    _show(made, "hooks installed" if made.changed else "hooks were installed already", as_json=as_json, hint=hint)


@app.command()
def uninstall(scope: Scope = "project", folder: Folder = None, as_json: AsJson = False) -> None:
    """Take the hooks out of settings.json, and keep a backup; the log stays."""
    from strandline.integrations.claude_code import uninstall as take_out

    made = take_out(scope, _folder(scope, folder))  # type: ignore[arg-type]  # it checks
    _show(made, "hooks taken out" if made.changed else "no hooks were installed", as_json=as_json)


@app.command()
def status(scope: Scope = "project", folder: Folder = None, as_json: AsJson = False) -> None:
    """Say which hooks are installed."""
    from strandline.integrations.claude_code import status as look

    made = look(scope, _folder(scope, folder))  # type: ignore[arg-type]  # it checks
    _show(made, "hooks are installed" if made.events else "no hooks are installed", as_json=as_json)


@app.command()
def hook(event: Event, config: Config) -> None:
    """Answer one hook: JSON on stdin, as Claude Code calls it. Exit codes: 0 done, 1 failed open, 2 failed closed."""
    from strandline.integrations.claude_code.hook import main

    raise typer.Exit(main([event, "--config", config]))


def _folder(scope: str, folder: Path | None) -> Path:
    if folder is not None:
        return folder
    return Path.home() if scope == "user" else Path.cwd()


def _show(made: Installed, heading: str, *, as_json: bool, hint: str = "") -> None:
    value = {
        "settings": str(made.settings),
        "config": str(made.config),
        "events": plain(made.events),
        "changed": made.changed,
        "backup": None if made.backup is None else str(made.backup),
    }
    facts = [
        ("settings", str(made.settings)),
        ("config", str(made.config)),
        ("hooks", ", ".join(made.events)),
        ("backup", str(made.backup or "")),
    ]
    show(Answer(value=value, heading=heading, facts=facts, hint=hint), as_json=as_json)
