"""The commands under one roof, and the one place where whatever goes wrong becomes a message and an exit code."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer
from typer.core import TyperGroup

from strandline.cli.append import append
from strandline.cli.backup import backup
from strandline.cli.bench import app as bench
from strandline.cli.cases import cases, reconcile
from strandline.cli.check import check
from strandline.cli.checkpoint import checkpoint
from strandline.cli.claude_code import app as claude_code
from strandline.cli.command import FILE_STEM, ONLY_WORKFLOW, command
from strandline.cli.compact import compact
from strandline.cli.compare import compare
from strandline.cli.constraints import constraints
from strandline.cli.context import context
from strandline.cli.copy import copy
from strandline.cli.doctor import doctor
from strandline.cli.drill import drill
from strandline.cli.due import due, run_due
from strandline.cli.effects import effects
from strandline.cli.erase import erase
from strandline.cli.events import events
from strandline.cli.export import export
from strandline.cli.failures import INTERRUPTED, report
from strandline.cli.fork import fork
from strandline.cli.guard import guard
from strandline.cli.import_transcript import import_transcript
from strandline.cli.lineage import lineage
from strandline.cli.manifest import manifest
from strandline.cli.mcp import app as mcp
from strandline.cli.metrics import metrics
from strandline.cli.migrate import migrate
from strandline.cli.output import print_version
from strandline.cli.permits import permits
from strandline.cli.preview import preview
from strandline.cli.recall import recall
from strandline.cli.recover import recover
from strandline.cli.refs import refs
from strandline.cli.retention import holds, readers, retain, rules
from strandline.cli.revert import report_regression, revert
from strandline.cli.rewind import rewind
from strandline.cli.search import search
from strandline.cli.sections import Formatter, in_sections
from strandline.cli.states import states
from strandline.cli.verify import verify
from strandline.cli.view import app as views
from strandline.cli.witness import witness
from strandline.cli.worker import compact_when, worker

Version = Annotated[bool, typer.Option("--version", callback=print_version, is_eager=True, help="Print the version.")]


class Root(TyperGroup):
    """A group of commands that answers every failure in the form that was asked for."""

    def main(  # type: ignore[override]  # the base takes Any
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **settings: object
    ) -> None:
        """Run a command and exit: 0 done, or a code of DESIGN §6."""
        words = list(sys.argv[1:] if args is None else args)
        as_json = "--json" in words[: words.index("--") if "--" in words else None]
        settings["standalone_mode"] = False
        try:
            code = super().main(words, prog_name, **settings)  # type: ignore[arg-type]
            if code == INTERRUPTED:
                raise KeyboardInterrupt
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  the last resort: type and message, and no traceback
            code = report(error, as_json=as_json)
        sys.exit(code if isinstance(code, int) else 0)

    def format_commands(self, ctx: typer.Context, formatter: Formatter) -> None:  # type: ignore[override]  # as above
        """Write the commands in sections: nobody reads fifty in one list."""
        width = formatter.width - 6 - max(map(len, self.commands))
        for title, names in in_sections(self.commands).items():
            with formatter.section(title):
                formatter.write_dl([(name, self.commands[name].get_short_help_str(width)) for name in names])


app = typer.Typer(
    cls=Root,
    help="Memory for long-running agents: an immutable log, validated summaries, recovery that fails closed.",
    epilog="Exit codes: 0 done, 1 error, 2 usage, 3 reconciliation required, 4 lineage refused, 5 rejected, "
    "quarantined or dead letter, 6 conflict, 7 store unavailable, 8 corrupt, 75 try again, 130 interrupted.",
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def root(
    ctx: typer.Context,
    version: Version = False,  # noqa: ARG001  its callback answers
) -> None:
    """Answer a call without a command with the help."""
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())


app.command("import")(command(import_transcript, FILE_STEM))
app.command("export")(command(export, unused=("refs_config",)))
app.command("append")(command(append, f"{FILE_STEM}; else {ONLY_WORKFLOW}", ("view",)))
app.command("compact")(command(compact, f"{FILE_STEM}; else {ONLY_WORKFLOW}"))
app.command("preview")(command(preview))
app.command("compare")(command(compare, f"{FILE_STEM}; else {ONLY_WORKFLOW}"))
for verb in (context, checkpoint, recover, recall, search, manifest):
    app.command(verb.__name__)(command(verb, unused=("refs_config",)))
app.command("fork")(command(fork, unused=("refs_config",)))
app.command("due")(command(due, "all of the tenant's", ("view", "refs_config")))
app.command("run-due")(command(run_due, unused=("tenant", "workflow", "view")))
app.command("worker")(command(worker, unused=("tenant", "workflow", "view")))
app.command("compact-when")(command(compact_when, unused=("refs_config",)))
app.command("lineage")(command(lineage, unused=("refs_config",)))
app.command("cases")(command(cases, "all of the tenant's; with --view its only one", ("refs_config",)))
app.command("reconcile")(command(reconcile))
app.command("revert")(command(revert, unused=("refs_config",)))
app.command("report-regression")(command(report_regression, unused=("refs_config",)))
app.command("rewind")(command(rewind, unused=("refs_config",)))
app.command("guard")(command(guard, unused=("refs_config",)))
app.command("permits")(command(permits, unused=("refs_config",)))
app.command("events")(command(events, unused=("refs_config",)))
app.command("constraints")(command(constraints, unused=("refs_config",)))
app.command("effects")(command(effects, unused=("refs_config",)))
app.command("states")(command(states, unused=("view", "refs_config")))
app.command("erase")(command(erase, unused=("view", "refs_config")))
app.command("retain")(command(retain, unused=("workflow", "view", "refs_config")))
app.add_typer(rules, name="retention")
app.add_typer(holds, name="hold")
app.add_typer(readers, name="reader")
app.add_typer(views, name="view")
app.add_typer(claude_code, name="claude-code")
app.command("refs")(refs)
app.command("check")(check)
app.command("verify")(command(verify, "all of the store", ("view", "refs_config")))
app.command("witness")(command(witness, "all of the store", ("workflow", "view", "refs_config")))
app.command("backup")(command(backup, "all of the store", ("tenant", "workflow", "view", "refs_config")))
app.command("copy")(copy)
app.command("migrate")(command(migrate, unused=("tenant", "workflow", "view", "refs_config")))
app.command("doctor")(command(doctor, unused=("tenant", "workflow", "view", "refs_config")))
app.command("metrics")(metrics)
app.command("drill")(drill)
app.add_typer(bench, name="bench")
app.add_typer(mcp, name="mcp")
