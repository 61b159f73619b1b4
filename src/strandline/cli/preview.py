"""`strandline preview`: what a compaction would do, before anything is done (C16)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from strandline.cli.command import Answer, Budget, Target, number
from strandline.cli.compact import Through
from strandline.cli.failures import REJECTED
from strandline.cli.output import count, fitted, pick, span
from strandline.cli.progress import progress
from strandline.cli.shares import SharesOption
from strandline.cli.summarizer import DEFAULT, Chosen, summarizer_of

if TYPE_CHECKING:
    from strandline import Preview

Shown = Annotated[int, typer.Option("--drops", metavar="N", parser=number(0), help="Show so many dropped references.")]
_FIELDS: Final = (
    "view revision reason from_watermark watermark events_covered tokens_before tokens_after summary_tokens tail_tokens"
    " token_counter budget"
)
_HEAD: Final = ("last seen", "in the tail", "reference")


def preview(
    target: Target,
    budget: Budget = None,
    summarizer: Chosen = DEFAULT,
    through: Through = None,
    shares: SharesOption = None,
    drops: Shown = 20,
) -> Answer:
    """Say what `compact` would do now: what it covers, carries and drops. Nothing is written.

    A model that is named is asked for the draft, as `compact` would ask it. Exit code 5: the draft would be refused.
    """
    drafting = summarizer_of(summarizer)
    with target.open() as workflow, progress(f"previewing {workflow.name}"):
        seen = workflow.preview(budget, drafting, through=through, shares=shares)
    refused = bool(seen.violations)
    shown = [(drop.last_seq, "yes" if drop.in_tail else "", drop.ref) for drop in seen.dropped[:drops]]
    error: dict[str, object] = {
        "type": "Preview",
        "message": f"the draft would be refused: {'; '.join(violation.detail for violation in seen.violations)}",
        "hint": "Nothing was written. Another summarizer or budget makes another draft.",
    }
    return Answer(
        value={
            **pick(seen, _FIELDS),
            "dropped": [pick(drop, "ref last_seq in_tail") for drop in seen.dropped],
            "violations": [pick(violation, "failure rule detail") for violation in seen.violations],
            "summary": _texts(seen),
        },
        heading="nothing to do" if seen.reason else "the draft would be refused" if refused else "would be activated",
        facts=_facts(seen),
        text=fitted(_HEAD, shown, cut={"reference": 80}, spare=[]) if shown else "",
        note="" if len(shown) == len(seen.dropped) else f"{len(seen.dropped) - len(shown):,} more dropped: --drops N",
        error=error if refused else {},
        code=REJECTED if refused else 0,
    )


def _texts(seen: Preview) -> dict[str, object] | None:
    """Return the summary that would become active, part by part."""
    if seen.summary is None:
        return None
    segments = [pick(segment, "text") | pick(segment.head, "from_seq through_seq") for segment in seen.summary.segments]
    return {"segments": segments, **pick(seen.summary, "anchors_text ledger_text")}


def _facts(seen: Preview) -> list[tuple[str, object]]:
    if seen.summary is None:
        return [("reason", seen.reason)]
    first, last = seen.from_watermark + 1, seen.watermark
    summary = seen.summary
    return [
        ("covers", f"events {span(first, last)}: {count(seen.events_covered, 'event')} more"),
        ("tokens", f"{seen.tokens_before:,} before, {seen.tokens_after:,} after ({seen.token_counter})"),
        ("summary", f"{count(len(summary.segments), 'segment')}, {count(seen.summary_tokens, 'token')}"),
        ("tail", f"events {span(last + 1, seen.revision)}, {count(seen.tail_tokens, 'token')}"),
        ("carried", f"{count(len(summary.anchors), 'fact')}, {count(len(summary.ledger), 'reference')} in the ledger"),
        ("dropped", f"{count(len(seen.dropped), 'reference')} more; {len(seen.lost):,} of them not in the tail either"),
    ]
