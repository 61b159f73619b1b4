"""`strandline compare`: what another tool's summaries kept of what was needed later, beside ours (C29)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from strandline.cli.command import Answer, Target, number
from strandline.cli.import_transcript import check_file, import_file
from strandline.cli.output import count, pick, span, table_of
from strandline.cli.progress import progress
from strandline.cli.shares import SharesOption
from strandline.limits import COMPARE_DROPPED_MAX, COMPARE_LEDGER_TOKENS, CONTEXT_BUDGET_TOKENS

if TYPE_CHECKING:
    from strandline import ComparedSummary, Comparison, DroppedUse, Tally

_FILE_HELP: Final = "A transcript; it is compared in memory, and no store is made.  [default: the store's workflow]"
File = Annotated[Path | None, typer.Argument(metavar="FILE", help=_FILE_HELP, show_default=False)]
Picture = Annotated[Path | None, typer.Option(metavar="FILE.svg", help="Draw it, too.")]
Ledger = Annotated[
    int, typer.Option(metavar="N", parser=number(0, CONTEXT_BUDGET_TOKENS), help="Tokens of our ledger beside theirs.")
]
Dropped = Annotated[
    int, typer.Option(metavar="N", parser=number(0, COMPARE_DROPPED_MAX), help="Dropped references shown of each.")
]
_SHOWN: Final = 3
_FIELDS: Final = (
    "until_seq theirs_tokens ledger_tokens ours_tokens ours_prose_tokens ours_reason needed needed_by_name"
    " used_again needed_to_end used_again_to_end needed_by_class"
)
_SUMS: Final = "token_counter revision ledger_budget needed needed_by_name used_again needed_by_class"
_HELD: Final = "in_ledger in_ours"
_LEGEND: Final = (
    ("needed", "the agent used it after the compaction, before anybody showed it again"),
    ("theirs, ours", "it stands word for word in that summary; ours has the same length at most"),
    ("ledger", "it stands in theirs, or in our ledger of {ledger:,} tokens beside it"),
    ("by file name", "the same, where the name at the end of a path may stand for the path"),
    ("shown again too", "also what a user or a tool result showed the agent before it used it"),
)


def compare(
    target: Target,
    file: File = None,
    picture: Picture = None,
    ledger: Ledger = COMPARE_LEDGER_TOKENS,
    dropped: Dropped = _SHOWN,
    shares: SharesOption = None,
) -> Answer:
    """Compare another tool's summaries in a transcript with ours.

    Says what each kept of the references that the agent needed later.
    """
    if picture is not None:
        _check_picture(picture)
    if file is not None:
        check_file(file)
        target.store = ":memory:"
    with target.open(create=file is not None, file=file) as workflow:
        if file is not None:
            import_file(workflow, file)
        with progress(f"comparing {workflow.name}") as tell:
            found = workflow.compare(ledger_tokens=ledger, shares=shares, progress=tell)
    name = target.workflow or ""
    drawn = picture if found.summaries else None
    if drawn is not None:
        _draw(found, name, drawn)
    value = {
        "view": target.view,
        **pick(found, _SUMS),
        "summaries": [_object(each) for each in found.summaries],
        "picture": str(drawn) if drawn is not None else None,
    }
    if not found.summaries:
        undrawn = ", or to draw" if picture is not None else ""
        said = f"no summary of another tool stands in it: there is nothing to compare{undrawn}"
        return Answer(value=value, heading=said)
    return Answer(
        value=value,
        heading=f"{count(len(found.summaries), 'summary', 'summaries')} of another tool, beside ours",
        text="\n\n".join(part for part in (_table(found), _legend(found), _dropped(found, dropped)) if part),
        facts=[("tokens", f"as {found.token_counter} counts them"), ("picture", drawn or "")],
    )


def share(kept: int, needed: int) -> str:
    """Return a share in percent; of nothing, a dash."""
    return f"{100 * kept / needed:.0f} %" if needed else "–"


def _object(each: ComparedSummary) -> dict[str, object]:
    """Return one comparison as JSON; the summary's own text stays in the transcript."""
    return {
        **pick(each.foreign, "key through_seq detail"),
        **pick(each, _FIELDS),
        "dropped": [{**pick(d.use, "ref reference_class last_seq used_seq"), **pick(d, _HELD)} for d in each.dropped],
    }


def _table(found: Comparison) -> str:
    heads = ("summary", "covers", "needed until", "tokens", "needed", "theirs", "", "ledger", "", "ours", "")
    rows: list[tuple[object, ...]] = [heads]
    for place, each in enumerate(found.summaries, start=1):
        covers = span(1, each.foreign.through_seq)
        rows.append((place, covers, each.until_seq, each.theirs_tokens, *_cells(each.needed)))
    if len(found.summaries) > 1:
        rows.append(("all", "", "", "", *_cells(found.needed)))
    rows.append(("", "by file name", "", "", *_cells(found.needed_by_name)))
    rows.append(("", "shown again too", "", "", *_cells(found.used_again)))
    reasons = [f"summary {n}: none of ours, {s.ours_reason}" for n, s in enumerate(found.summaries, 1) if s.ours_reason]
    return "\n".join([table_of(rows), *reasons])


def _legend(found: Comparison) -> str:
    return table_of([(word, meaning.format(ledger=found.ledger_budget)) for word, meaning in _LEGEND])


def _cells(tally: Tally) -> tuple[object, ...]:
    kept = (tally.theirs, tally.theirs_and_ledger, tally.ours)
    return (tally.needed, *(cell for number_kept in kept for cell in (number_kept, share(number_kept, tally.needed))))


def _dropped(found: Comparison, most: int) -> str:
    """List what their summaries dropped and the agent needed, the soonest needed first."""
    rows = [
        (place, use.ref, use.reference_class, use.last_seq, use.used_seq, _where(each))
        for place, summary in enumerate(found.summaries, start=1)
        for each in summary.dropped[:most]
        for use in (each.use,)
    ]
    if not rows:
        return ""
    heads = ("summary", "reference", "class", "last seen", "needed at", "kept by")
    return f"theirs dropped, among others:\n{table_of([heads, *rows])}"


def _where(dropped: DroppedUse) -> str:
    held = (("ledger", dropped.in_ledger), ("ours", dropped.in_ours))
    return ", ".join(name for name, holds in held if holds) or "–"


def _check_picture(picture: Path) -> None:
    if picture.suffix.lower() != ".svg":
        raise typer.BadParameter(f"what is drawn is an SVG; {str(picture)!r} ends otherwise", param_hint="--picture")
    if not picture.parent.is_dir():
        raise typer.BadParameter(f"there is no folder {str(picture.parent)!r}", param_hint="--picture")


def _draw(found: Comparison, name: str, picture: Path) -> None:
    from strandline import InvalidInputError
    from strandline.cli.compare_picture import draw

    try:
        picture.write_text(draw(found, name), encoding="utf-8")
    except OSError as error:
        raise InvalidInputError(f"{str(picture)!r} can't be written: {error.strerror}") from error
