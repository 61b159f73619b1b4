"""`strandline witness`: keep outside of a store what would show that an older copy of it was put back (ADR 0071)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from strandline.cli.command import Answer, Target
from strandline.cli.output import count, pick
from strandline.cli.verify import tenant_of
from strandline.cli.witnesses import KeyFile, keep_line, key_of, read_file, refuse_unsigned

_KEEP_HELP: Final = "Add the witness to this file as a line. The store must continue what the file holds already."
_CHECK_HELP: Final = "Only prove that the store continues what this file holds."
Keep = Annotated[Path | None, typer.Option("--keep", metavar="FILE", help=_KEEP_HELP)]
Check = Annotated[Path | None, typer.Option("--check", metavar="FILE", help=_CHECK_HELP)]
_DIGITS: Final = 16  # of a digest, for people


def witness(target: Target, keep: Keep = None, check: Check = None, key_file: KeyFile = None) -> Answer:
    """Print how far every workflow is, as one line to be kept outside of the store; with --tenant, that tenant's alone.

    Keep it on another machine, or another disk: who puts back older copies of both sees no difference.
    """
    if keep is not None and check is not None:
        raise typer.BadParameter("--keep checks, too; give one of them", param_hint="--check")
    if target.workflow is not None:
        raise typer.BadParameter("a witness is of the whole store or of a tenant", param_hint="--workflow")
    key = key_of(key_file)
    kept = read_file(check) if check is not None else b"" if keep is None else read_file(keep, may_be_new=True)
    with target.open_store() as db:
        of = tenant_of(db, target) if target.tenant_named else db
        report = of.check_witness(kept, key=key) if check is not None or kept else None
        if keep is not None and key is None:
            refuse_unsigned(keep, kept)
        made = of.witness(key=key) if check is None else None
    fields = "witnesses workflows continued unwitnessed signed"
    checked: dict[str, object] = {} if report is None else {"checked": pick(report, fields)}
    told = "" if report is None else f"{count(report.workflows, 'workflow')} of {count(report.witnesses, 'line')}"
    if made is None:
        facts = [] if report is None else [("went on", report.continued), ("not witnessed", report.unwitnessed)]
        return Answer(value=checked, heading=f"the same, or continued: {told}", facts=facts)
    value = pick(made, "document digest taken_us") | {"workflows": len(made.heads)} | checked
    signed = "signed" if made.signature else "not signed"
    heading = f"{count(len(made.heads), 'workflow')}, digest {made.digest[:_DIGITS]}, {signed}"
    if keep is None:
        return Answer(value=value, heading=heading, text=made.document, text_alone=True)
    keep_line(keep, made.document, kept)
    return Answer(value=value | {"kept": str(keep)}, heading=f"{keep}: {heading}", facts=[("continues", told)])
