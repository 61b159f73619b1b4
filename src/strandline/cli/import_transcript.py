"""`strandline import`: a transcript becomes events of the log (C2)."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from strandline.cli.options import STORE, TENANT, VIEW, Json, Store, TenantName, ViewName, WorkflowName
from strandline.cli.output import Block, Facts, Heading, count, plain, show
from strandline.cli.progress import progress
from strandline.cli.target import Target

if TYPE_CHECKING:
    from strandline import Workflow
    from strandline.model.transcript import ImportReport

File = Annotated[Path, typer.Argument(metavar="FILE", help="Claude Code session JSONL, or our own JSONL.")]


def import_transcript(
    file: File,
    store: Store = STORE,
    tenant: TenantName = TENANT,
    workflow: WorkflowName = None,
    view: ViewName = VIEW,
    as_json: Json = False,
) -> None:
    """Import a transcript. Importing it again adds what is new."""
    begun = time.perf_counter()
    check_file(file)
    target = Target(store=store, tenant=tenant, workflow=workflow, view=view)
    with target.open(create=True, file=file) as opened:
        report = import_file(opened, file)
        name = opened.name
    spent_ms = round((time.perf_counter() - begun) * 1_000, 3)
    value = {"tenant": tenant, "workflow": name, **_as_object(report), "duration_ms": spent_ms}
    show(value, _blocks(f"{tenant}/{name}", report, spent_ms), as_json=as_json)


def check_file(file: Path) -> None:
    """Refuse what is no transcript before a store is made for it."""
    from strandline.transcripts import open_transcript

    open_transcript(file, digest=lambda _: "")


def import_file(workflow: Workflow, file: Path) -> ImportReport:
    """Import with progress."""
    size = file.stat().st_size
    with progress(f"importing {file.name}") as tell:
        return workflow.import_transcript(file, lambda done: tell(done, size))


def _as_object(report: ImportReport) -> dict[str, object]:
    value = plain(report)
    assert isinstance(value, dict)
    return value


def _blocks(name: str, report: ImportReport, spent_ms: float) -> list[Block]:
    skipped = ", ".join(f"{what} {number:,}" for what, number in sorted(report.lines_skipped.items()))
    facts: list[tuple[str, object]] = [
        ("format", report.format),
        ("lines", f"{report.lines:,}"),
        ("revision", report.revision),
    ]
    if report.events_known:
        facts.append(("known already", count(report.events_known, "event")))
    if skipped:
        facts.append(("no events", skipped))
    if report.foreign_summaries:
        facts.append(("foreign summaries", f"{report.foreign_summaries:,}, kept for comparison"))
    if report.calls_abandoned:
        facts.append(("abandoned calls", f"{report.calls_abandoned:,}"))
    facts.append(("time", f"{spent_ms:,.0f} ms"))
    return [Heading(f"{name}: {count(report.events_imported, 'event')} imported"), Facts(facts)]
