"""`strandline backup`: copy a store into a file while it is written to (C6)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from strandline.cli.command import Answer, Target
from strandline.cli.failures import CORRUPT
from strandline.cli.output import count, pick
from strandline.cli.progress import progress
from strandline.cli.verify import problems_of

File = Annotated[Path, typer.Argument(metavar="FILE", help="The new SQLite file; what is there is never overwritten.")]
Verify = Annotated[bool, typer.Option("--verify", help="Prove the backup from its bytes, too.")]


def backup(target: Target, file: File, verify: Verify = False) -> Answer:
    """Copy the whole store as it is now into a new file. Writers go on meanwhile."""
    import strandline

    if target.workflow is not None:
        raise typer.BadParameter("backup takes the whole store", param_hint="--workflow")
    with target.open_store() as db, progress("backing up") as tell:
        report = db.backup(file, tell)
    value = pick(report, "path size_bytes workflows events")
    what = f"{count(report.workflows, 'workflow')}, {count(report.events, 'event')}, {report.size_bytes:,} bytes"
    if not verify:
        return Answer(value=value, heading=f"{report.path}: {what}", hint="`--verify` proves it, too.")
    with strandline.open(file, create=False) as copied, progress("verifying") as tell:
        proved = copied.verify(tell)
    value |= {"verify": pick(proved, "ok workflows events problems")}
    if proved.ok:
        return Answer(value=value, heading=f"{report.path}: {what}; verified")
    return Answer(
        value=value,
        heading=f"{report.path}: {what}",
        text=problems_of(proved),
        error={
            "type": "CorruptRecordError",
            "message": f"{count(len(proved.problems), 'problem')} found in the backup",
            "hint": "The file stays. Prove the store itself with `strandline verify`: damage is copied as it is.",
        },
        code=CORRUPT,
    )
