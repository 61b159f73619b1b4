"""`strandline verify`: prove a store from its bytes (C5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strandline.cli.command import Answer, Target
from strandline.cli.failures import CORRUPT, describe
from strandline.cli.output import count, pick, table_of
from strandline.cli.progress import progress
from strandline.model.ids import DEFAULT_VIEW

if TYPE_CHECKING:
    from strandline import VerifyReport


def verify(target: Target) -> Answer:
    """Prove the store, or one workflow, from its bytes.

    Events are counted log by log: the abandoned ones, too, and those that a fork shares once more with the fork.
    """
    from strandline import CorruptRecordError, VerifyReport
    from strandline.model.outcome import Problem

    try:
        whole = target.workflow is None and target.view == DEFAULT_VIEW
        with target.open_store() if whole else target.open() as proved, progress("verifying") as tell:
            report = proved.verify(tell)
    except CorruptRecordError as error:  # so damaged that it can't be opened
        problem = Problem(workflow="", place=error.place, reason=error.reason)
        report = VerifyReport(workflows=0, events=0, problems=(problem,))
    what = f"{count(report.workflows, 'workflow')}, {count(report.events, 'event')}"
    value = pick(report, "ok workflows events problems")
    if report.ok:
        return Answer(value=value, heading=f"ok: {what}")
    first, found = report.problems[0], count(len(report.problems), "problem")
    described = describe(CorruptRecordError(first.reason, place=first.place))
    hint = "Restore the file from a backup; nothing was repaired or skipped."
    return Answer(
        value=value,
        heading=f"{found}: {what}",
        text=problems_of(report),
        error={**described, "message": f"{found} found in {target.shown}", "hint": hint},
        code=CORRUPT,
    )


def problems_of(report: VerifyReport) -> str:
    """Return the problems that were found, as a table."""
    rows = [(problem.workflow, problem.place, problem.reason) for problem in report.problems]
    return table_of([("workflow", "place", "reason"), *rows])
