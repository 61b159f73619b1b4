"""`strandline mcp`: let other agents read a memory and append to it, over the Model Context Protocol (C33)."""

from __future__ import annotations

import signal
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from strandline.cli.command import Answer, AsJson, Target, command, named, number, show
from strandline.cli.output import tell
from strandline.cli.summarizer import DEFAULT, Chosen, summarizer_of
from strandline.model.ids import DEFAULT_TENANT, DEFAULT_VIEW

if TYPE_CHECKING:
    from strandline.integrations.mcp import Access, TokenFile

app = typer.Typer(rich_markup_mode=None)

_PORT_MAX: Final = 65_535
_HOST: Final = "127.0.0.1"
_PORT: Final = 8765
_TOKENS_HELP: Final = "Each request needs a token of this file, and reaches what that one says. With --http."
_ACTOR_HELP: Final = "In whose name the caller appends.  [default: mcp]"
Http = Annotated[bool, typer.Option("--http", help="Serve over HTTP instead of stdin and stdout.")]
Host = Annotated[str, typer.Option(metavar="HOST", help="Where to listen; beyond this machine only with --tokens.")]
Port = Annotated[int, typer.Option(metavar="N", parser=number(0, _PORT_MAX), help="0 takes a free one.")]
Tokens = Annotated[Path | None, typer.Option(metavar="FILE", help=_TOKENS_HELP)]
Actor = Annotated[str | None, typer.Option(metavar="NAME", parser=named("caller"), help=_ACTOR_HELP)]
Worker = Annotated[bool, typer.Option("--worker", help="Run what is due in the background, too: in this process.")]


def serve(
    target: Target,
    http: Http = False,
    host: Host = _HOST,
    port: Port = _PORT,
    tokens: Tokens = None,
    actor: Actor = None,
    worker: Worker = False,
    summarizer: Chosen = DEFAULT,
) -> Answer:
    """Serve a memory to other agents: on stdin and stdout, or over HTTP, until they end or SIGTERM.

    They may append, read and ask. They can't approve, accept, activate, revert or erase. This command line, or their
    token, says whose memory it is.
    """
    from strandline.integrations.mcp import TokenFile, serve_http, serve_stdio

    who = _who(target, tokens, actor)
    if not http and target.as_json:
        raise typer.BadParameter("stdout is what the caller reads", param_hint="--json")
    drafting = summarizer_of(summarizer) if worker else None
    with target.open_store(create=True) as db, db.worker(drafting) if worker else nullcontext():
        if http:
            signal.signal(signal.SIGTERM, lambda *_: sys.exit())  # the server ends first, then what is around it
            serve_http(db, who, host=host, port=port, told=lambda url: tell("serving", url, "green"))
        elif isinstance(who, TokenFile):
            raise typer.BadParameter("a caller on stdin has no token", param_hint="--tokens")
        else:
            # A read of stdin can't be called off. What was committed stays, so the process may end at once.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            serve_stdio(db, who)
    return Answer(value={"served": True})


Name = Annotated[str, typer.Argument(metavar="NAME", help="Of the token: in whose name its holder appends.")]
File = Annotated[Path, typer.Option("--file", metavar="FILE", help="The token file; it holds no token, only digests.")]
Tenant = Annotated[str, typer.Option(metavar="NAME", parser=named("tenant"), help="The tenant that it reaches.")]
_WORKFLOW_HELP: Final = "A workflow that it reaches. Repeatable.  [default: all of the tenant's]"
Workflows = Annotated[list[str] | None, typer.Option("--workflow", metavar="NAME", help=_WORKFLOW_HELP)]
View = Annotated[str, typer.Option(metavar="NAME", parser=named("view"), help="The view that it reads through.")]
_FILE: Final = Path("mcp-tokens.json")


@app.command()
def token(
    name: Name,
    file: File = _FILE,
    tenant: Tenant = DEFAULT_TENANT,
    workflows: Workflows = None,
    view: View = DEFAULT_VIEW,
    as_json: AsJson = False,
) -> None:
    """Make a token for a caller over HTTP, and print it: it is shown this once, and kept nowhere."""
    from strandline.integrations.mcp import TokenFile

    made = TokenFile(file).add(name, tenant=tenant, workflows=workflows or None, view=view)
    value: dict[str, object] = {"token": made, "name": name, "tenant": tenant, "workflows": workflows, "view": view}
    of = ", ".join(map(repr, workflows)) if workflows else "all workflows"
    note = f"{name!r} reaches {of} of tenant {tenant!r}; {file} has the token's digest"
    show(Answer(value=value, text=made, text_alone=True, note=note), as_json=as_json)


@app.command()
def revoke(name: Name, file: File = _FILE, as_json: AsJson = False) -> None:
    """Take a token out of the file. A server that runs lets its holder in no more, from the next request on."""
    from strandline.integrations.mcp import TokenFile

    TokenFile(file).revoke(name)
    show(Answer(value={"revoked": name}, heading=f"the token {name!r} is revoked"), as_json=as_json)


def _who(target: Target, tokens: Path | None, actor: str | None) -> Access | TokenFile:
    """Return whose memory a caller reaches."""
    from strandline.integrations.mcp import Access, TokenFile

    if tokens is None:
        workflows = None if target.workflow is None else (target.workflow,)
        given = {} if actor is None else {"actor": actor}
        return Access(tenant=target.tenant, workflows=workflows, view=target.view, **given)
    said = (target.tenant_named, target.workflow is not None, target.view != DEFAULT_VIEW, actor is not None)
    for option, is_given in zip(("--tenant", "--workflow", "--view", "--actor"), said, strict=True):
        if is_given:
            raise typer.BadParameter("that is what each token of --tokens says", param_hint=option)
    return TokenFile(tokens)


app.callback(invoke_without_command=True)(command(serve, "all of the tenant's"))
