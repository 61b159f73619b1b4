"""`strandline bench quality`: how good a memory is on real transcripts, as one table with its marks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from strandline.cli.output import emit, pick, plain, table_of, tell, to_json
from strandline.cli.progress import progress

if TYPE_CHECKING:
    from strandline.bench.quality.row import Row

_FIELDS = "id measure data value mark at_most unit reached reason"
_REACHED = {True: "reached", False: "missed", None: "not measured"}

Data = Annotated[Path, typer.Option(metavar="FOLDER", help="The data sets, a folder of each.")]
Only = Annotated[list[str] | None, typer.Option(metavar="ID", help="This row only. Repeatable.  [default: all]")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object, also on failure.")]


def quality(data: Data, only: Only = None, as_json: AsJson = False) -> None:
    """Measure the quality of a memory on real transcripts: what was needed later and is still there.

    It is deterministic and goes without a network; what needs a data set that is not there is not measured.
    """
    from strandline.bench.machine import this_machine
    from strandline.bench.quality.table import IDS, entries, rows_of

    asked = only or ()
    unknown = sorted(set(asked) - set(IDS))
    if unknown:
        raise typer.BadParameter(f"no row {unknown[0]!r}; there are {', '.join(IDS)}", param_hint="--only")
    if not data.is_dir():
        raise typer.BadParameter(f"{data} is no folder", param_hint="--data")
    rows: list[Row] = []
    for entry in entries(asked):
        with progress(f"measuring {', '.join(entry.ids)}") as advance:
            found = list(rows_of(entry, data, advance, asked))
        for row in found:
            tell("bench", f"{row.id}: {row.value_text}", "cyan")
        rows += found
    machine = this_machine()
    if as_json:
        date = datetime.now(UTC).date().isoformat()
        emit(to_json({"date": date, "machine": plain(machine), "rows": [pick(row, _FIELDS) for row in rows]}))
        return
    emit(f"{machine.processor}, {machine.cores} cores; Strandline {machine.strandline}, {machine.python}")
    emit(_table(rows))


def _table(rows: Sequence[Row]) -> str:
    lines = [(row.id, row.value_text, row.mark_text, _REACHED[row.reached], row.measure, row.data) for row in rows]
    reasons = [f"  {row.id}: {row.reason}" for row in rows if row.reason]
    return "\n".join([table_of([("row", "value", "mark", "", "measure", "on"), *lines]), *reasons])
