"""`strandline import`: a transcript becomes events of the log (C2)."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from strandline.cli.command import Answer, Target
from strandline.cli.output import count, pick
from strandline.cli.progress import progress

if TYPE_CHECKING:
    from strandline import Workflow
    from strandline.model.transcript import ImportReport

_FIELDS: Final = "format lines events_imported events_known foreign_summaries calls_abandoned lines_skipped revision"
File = Annotated[Path, typer.Argument(metavar="FILE", help="Claude Code session JSONL, or our own JSONL.")]


def import_transcript(target: Target, file: File) -> Answer:
    """Import a transcript; again, to add what is new."""
    begun = time.perf_counter()
    check_file(file)
    with target.open(create=True, file=file) as workflow:
        report = import_file(workflow, file)
    spent_ms = round((time.perf_counter() - begun) * 1_000, 3)
    skipped = ", ".join(f"{what} {number:,}" for what, number in sorted(report.lines_skipped.items()))
    return Answer(
        value={"view": target.view, **pick(report, _FIELDS), "duration_ms": spent_ms},
        heading=f"{count(report.events_imported, 'event')} imported",
        facts=[
            ("format", f"{report.format}, {count(report.lines, 'line')}"),
            ("revision", report.revision),
            ("known already", report.events_known),
            ("no events", skipped),
            ("foreign summaries", report.foreign_summaries),
            ("calls abandoned", report.calls_abandoned),
            ("time", f"{spent_ms:,.0f} ms"),
        ],
    )


def check_file(file: Path) -> None:
    """Refuse what is no transcript before a store is made for it."""
    from strandline.transcripts import open_transcript

    open_transcript(file, digest=lambda _: "")


def import_file(workflow: Workflow, file: Path) -> ImportReport:
    """Import with progress."""
    size = file.stat().st_size
    with progress(f"importing {file.name}") as tell:
        return workflow.import_transcript(file, lambda done: tell(done, size))
