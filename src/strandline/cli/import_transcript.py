"""`strandline import`: a transcript becomes events of the log (C2)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from strandline.cli.command import Answer, Target
from strandline.cli.output import count, pick, table_of
from strandline.cli.progress import progress
from strandline.cli.spool import spooled

if TYPE_CHECKING:
    from strandline import Workflow
    from strandline.model.transcript import ImportReport

_COUNTS: Final = "events_imported events_known foreign_summaries calls_abandoned"
_OF_FILE: Final = "format lines lines_skipped left_out left_out_count"
_SALVAGE_HINT: Final = (
    "Nothing was imported. Repair or cut the file at the place named, or leave out what is damaged with `--salvage`; "
    "then import again."
)
_SHOWN_MAX: Final = 20  # of what was left out, to people
_FILE_HELP: Final = "A session of Claude Code or another tool, OpenAI messages, or our own JSONL; - is stdin."
File = Annotated[Path, typer.Argument(metavar="FILE", help=_FILE_HELP)]
Salvage = Annotated[bool, typer.Option("--salvage", help="Leave out what is damaged, and list it.")]
Split = Annotated[bool, typer.Option("--split", help="One workflow for each conversation: NAME-1, NAME-2 and so on.")]


def import_transcript(target: Target, file: File, salvage: Salvage = False, split: Split = False) -> Answer:
    """Import a transcript; again, to add what is new."""
    begun = time.perf_counter()
    with spooled(file) as path:
        check_file(path)
        with nullcontext() if salvage else hinted(_SALVAGE_HINT):
            reports = _split(target, path, salvage=salvage) if split else [_whole(target, path, salvage=salvage)]
    spent_ms = round((time.perf_counter() - begun) * 1_000, 3)
    value: dict[str, object] = {"view": target.view}
    facts: list[tuple[str, object]] = []
    listed = ""
    for report in reports[:1]:
        value |= pick(report, _OF_FILE)
        of_file, listed = _told_of_file(report)
        facts += of_file
    value |= {name: sum(getattr(report, name) for report in reports) for name in _COUNTS.split()}
    if split:
        target.workflow = None  # there are several
        value["tenant"] = target.tenant
        value["workflows"] = [pick(report, f"workflow revision {_COUNTS}") for report in reports]
        facts.append(
            ("workflows", f"{len(reports):,}: {reports[0].workflow} to {reports[-1].workflow}" if reports else "")
        )
    else:
        value["revision"] = reports[0].revision
        facts.append(("revision", reports[0].revision))
    return Answer(
        value={**value, "duration_ms": spent_ms},
        heading=f"{count(sum(report.events_imported for report in reports), 'event')} imported",
        facts=[
            *facts,
            ("known already", value["events_known"]),
            ("foreign summaries", value["foreign_summaries"]),
            ("calls abandoned", value["calls_abandoned"]),
            ("time", f"{spent_ms:,.0f} ms"),
        ],
        text=listed,
    )


def check_file(file: Path) -> None:
    """Refuse what is no transcript before a store is made for it."""
    from strandline.transcripts import open_transcript

    open_transcript(file, digest=lambda _: "")


@contextmanager
def hinted(hint: str) -> Iterator[None]:
    """Say of a file whose format is known, and that is damaged, how a salvage helps."""
    from strandline.errors import ImportFormatError

    try:
        yield
    except ImportFormatError as error:
        error.hint = hint
        raise


def import_file(workflow: Workflow, file: Path, *, salvage: bool = False) -> ImportReport:
    """Import with progress."""
    size = file.stat().st_size
    with progress(f"importing {file.name}") as tell:
        return workflow.import_transcript(file, lambda done: tell(done, size), salvage=salvage)


def _whole(target: Target, file: Path, *, salvage: bool) -> ImportReport:
    with target.open(create=True, file=file) as workflow:
        return import_file(workflow, file, salvage=salvage)


def _split(target: Target, file: Path, *, salvage: bool) -> list[ImportReport]:
    size = file.stat().st_size
    with target.open_store(create=True) as db, progress(f"importing {file.name}") as tell:
        tenant, name = db.tenant(target.tenant), target.workflow or file.stem
        return tenant.import_conversations(file, name, lambda done: tell(done, size), salvage=salvage)


def _told_of_file(report: ImportReport) -> tuple[list[tuple[str, object]], str]:
    """Return facts on the file, and a list of what was left out, for people."""
    skipped = ", ".join(f"{what} {number:,}" for what, number in sorted(report.lines_skipped.items()))
    rows = [(f"  line {left.line}", f"byte {left.byte}", left.size_bytes, left.reason) for left in report.left_out]
    more = report.left_out_count - len(rows[:_SHOWN_MAX])
    listed = table_of(rows[:_SHOWN_MAX]) + (f"\n  and {more:,} more; --json lists them" if more else "") if rows else ""
    left_out = count(report.left_out_count, "record") if rows else ""
    form = f"{report.format}, {count(report.lines, 'line')}"
    return [("format", form), ("no events", skipped), ("left out", left_out)], listed
