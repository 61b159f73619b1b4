"""`strandline compact`: cover older events by a validated summary, after an import where a file is given."""

from __future__ import annotations

import enum
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from strandline.cli.failures import CONFLICT, REJECTED, fail
from strandline.cli.import_transcript import check_file, import_file
from strandline.cli.options import (
    COUNT_MAX,
    STORE,
    TENANT,
    VIEW,
    Budget,
    Json,
    Store,
    TenantName,
    ViewName,
    WorkflowName,
)
from strandline.cli.output import Block, Facts, Heading, count, show, span
from strandline.cli.progress import progress
from strandline.cli.target import Target

if TYPE_CHECKING:
    from strandline import CompactionOutcome


class SummarizerName(enum.StrEnum):
    """The summarizers that can be named here."""

    EXTRACTIVE = "extractive"


File = Annotated[Path | None, typer.Argument(metavar="FILE", help="A transcript to import first.", show_default=False)]
Chosen = Annotated[SummarizerName, typer.Option("--summarizer", help="What drafts the summary.")]
Strict = Annotated[bool, typer.Option("--strict", help="Refuse if any event was appended meanwhile.")]
Through = Annotated[
    int | None,
    typer.Option("--through", metavar="SEQ", min=1, max=COUNT_MAX, help="The last event to cover.", show_default=False),
]
WhenTokens = Annotated[
    int | None,
    typer.Option(
        "--when-tokens", metavar="N", min=0, max=COUNT_MAX, help="Do nothing below this size.", show_default=False
    ),
]


def compact(
    file: File = None,
    budget: Budget = None,
    summarizer: Chosen = SummarizerName.EXTRACTIVE,  # noqa: ARG001  the one there is
    strict: Strict = False,
    through: Through = None,
    when_tokens: WhenTokens = None,
    store: Store = STORE,
    tenant: TenantName = TENANT,
    workflow: WorkflowName = None,
    view: ViewName = VIEW,
    as_json: Json = False,
) -> None:
    """Compact: with FILE, import it and compact in one go. No event is lost."""
    begun = time.perf_counter()
    imported, phases_ms = 0, {}
    if file is not None:
        check_file(file)
    target = Target(store=store, tenant=tenant, workflow=workflow, view=view)
    with target.open(create=file is not None, file=file) as opened:
        phases_ms["open"] = _since(begun)
        if file is not None:
            before = time.perf_counter()
            imported = import_file(opened, file).events_imported
            phases_ms["import"] = _since(before)
        with progress(f"compacting {opened.name}"):
            outcome = opened.compact(budget, strict=strict, through=through, when_tokens=when_tokens)
        name = opened.name
    value = _as_object(outcome, tenant, name, imported)
    value["duration_ms"] = _since(begun)
    value["phases_ms"] = {**phases_ms, **outcome.phases_ms}
    blocks = _blocks(outcome, value)
    if outcome.outcome in ("activated", "nothing_to_do"):
        show(value, blocks, as_json=as_json)
        return
    error = {
        "type": "CompactionOutcome",
        "message": f"the compaction ended as {outcome.outcome}: {outcome.reason}",
        "hint": "Nothing was lost: the summary before it stands, and so does the whole log.",
        "outcome": outcome.outcome,
        "reason": outcome.reason,
    }
    fail(value, blocks, as_json=as_json, error=error, code=CONFLICT if outcome.outcome == "conflict" else REJECTED)


def _since(begun: float) -> float:
    return round((time.perf_counter() - begun) * 1_000, 3)


def _as_object(outcome: CompactionOutcome, tenant: str, workflow: str, imported: int) -> dict[str, object]:
    return {
        "tenant": tenant,
        "workflow": workflow,
        "view": outcome.view,
        "outcome": outcome.outcome,
        "reason": outcome.reason,
        "revision": outcome.revision,
        "generation": outcome.generation,
        "watermark": outcome.watermark,
        "lineage_seq": outcome.lineage_seq,
        "depth": outcome.depth,
        "tokens_before": outcome.tokens_before,
        "tokens_after": outcome.tokens_after,
        "summary_tokens": outcome.summary_tokens,
        "tail_tokens": outcome.tail_tokens,
        "token_counter": outcome.token_counter,
        "refs_seen": outcome.refs_seen,
        "refs_verbatim": outcome.refs_verbatim,
        "refs_dropped": outcome.refs_dropped,
        "refs_unaccounted": outcome.refs_unaccounted,
        "events_imported": imported,
        "summary_id": outcome.summary_id,
        "attempts": len(outcome.attempts),
    }


def _blocks(outcome: CompactionOutcome, value: Mapping[str, object]) -> list[Block]:
    done = outcome.outcome == "activated"
    what = f"generation {outcome.generation} activated" if done else outcome.outcome.replace("_", " ")
    facts: list[tuple[str, object]] = []
    if value["events_imported"]:
        facts.append(("imported", f"{value['events_imported']:,} events"))
    facts += [
        ("tokens", f"{outcome.tokens_before:,} before, {outcome.tokens_after:,} now ({outcome.token_counter})"),
        ("summary", f"events {span(1, outcome.watermark)}, {outcome.summary_tokens:,} tokens"),
        ("tail", f"events {span(outcome.watermark + 1, outcome.revision)}, {outcome.tail_tokens:,} tokens"),
        (
            "references",
            f"{outcome.refs_seen:,} seen: {outcome.refs_verbatim:,} verbatim, {outcome.refs_dropped:,} in the manifest, "
            f"{outcome.refs_unaccounted:,} unaccounted for",
        ),
        ("depth", count(outcome.depth, "lossy pass").replace("passs", "passes")),
        ("time", f"{value['duration_ms']:,.0f} ms"),
    ]
    if outcome.reason:
        facts.insert(0, ("reason", outcome.reason))
    return [Heading(f"{value['tenant']}/{value['workflow']}: {what}", good=done or not outcome.attempts), Facts(facts)]
