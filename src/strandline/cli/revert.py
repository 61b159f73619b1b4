"""`strandline revert` and `strandline report-regression`: what to do about a bad summary (C14, C17)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from strandline.cli.cases import CASE_FIELDS, acted_on_table
from strandline.cli.command import Answer, Target, number
from strandline.cli.output import count, pick

if TYPE_CHECKING:
    from strandline import Case, Reverted

Generation = Annotated[int, typer.Argument(metavar="GENERATION", parser=number(0), help="As `lineage` prints it.")]
By = Annotated[str, typer.Option(metavar="WHO", help="Who decides.")]
Why = Annotated[str, typer.Option(metavar="TEXT", help="Why; it is kept.")]


def revert(target: Target, generation: Generation, by: By, why: Why) -> Answer:
    """Go back to the content of an earlier generation.

    It becomes a new generation. Lists what was made from the bad ones since, and opens a case on it.
    """
    with target.open() as workflow:
        done = workflow.revert(generation, by=by, why=why)
    left = ", ".join(map(str, done.left))
    return Answer(
        value=pick(
            done, "view to_generation generation watermark lineage_seq left fenced acted_on acted_on_count case_id"
        ),
        heading=f"generation {done.generation} has the content of generation {done.to_generation}",
        facts=[
            ("lineage", done.lineage_seq),
            ("covers events", f"1–{done.watermark}" if done.watermark else "none: the context is the whole log"),
            ("left as bad", f"generations {left}" if len(done.left) > 1 else f"generation {left}"),
            ("fenced", done.fenced and f"{done.fenced}, which was in flight"),
            ("case", done.case_id),
            (
                "made from it",
                f"{count(done.acted_on_count, 'thing')}, {_shown(done)}" if done.acted_on_count else "nothing",
            ),
        ],
        text=acted_on_table(done.acted_on),
        hint=_when_done(target, done),
    )


def _when_done(target: Target, done: Reverted) -> str:
    answer = target.command(f"reconcile {done.case_id} abandon --by WHO --why TEXT")
    look = "Look at each, undo or redo it, then close" if done.acted_on_count else "Close"
    return f"{look} the case: `{answer}`. The bad summary is left already."


def _shown(done: Reverted) -> str:
    """Say whether all that was acted on is listed."""
    return "below" if len(done.acted_on) == done.acted_on_count else f"the first {len(done.acted_on):,} below"


def report_regression(target: Target, generation: Generation, by: By, why: Why) -> Answer:
    """Report that the summary of a generation is bad.

    Opens a case. While that summary is active it is not compacted again; nothing is moved.
    """
    with target.open() as workflow:
        case = workflow.report_regression(generation, by=by, why=why)
    return Answer(
        value={"case": pick(case, CASE_FIELDS)},
        heading=f"case {case.case_id} is open on generation {case.generation}",
        hint=_way_back(target, case),
    )


def _way_back(target: Target, case: Case) -> str:
    exact = target.command(f"reconcile {case.case_id} replay-from-exact --by WHO --why TEXT")
    if case.summary_active:
        back = target.command(f"revert {case.generation - 1} --by WHO --why TEXT")
        return f"Go back with `{back}`, or further; or to the newest good generation by answering the case: `{exact}`."
    return (
        f"It is active no more, and blocks nothing. If the active one rests on it, this goes back behind it: `{exact}`."
    )
