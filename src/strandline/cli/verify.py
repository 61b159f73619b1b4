"""`strandline verify`: prove a store from its bytes (C5)."""

from __future__ import annotations

from strandline.cli.command import Answer, Target
from strandline.cli.failures import CORRUPT
from strandline.cli.output import count, pick, table_of
from strandline.cli.progress import progress


def verify(target: Target) -> Answer:
    """Prove the store, or one workflow, from its bytes."""
    whole = target.workflow is None
    with target.open_store() if whole else target.open() as proved, progress("verifying") as tell:
        report = proved.verify(tell)
    workflows = report.workflows if target.found else 0  # what is not there was not verified
    what = f"{count(workflows, 'workflow')}, {count(report.events, 'event')}"
    value = {**pick(report, "ok events problems"), "workflows": workflows}
    if report.ok:
        return Answer(value=value, heading=f"ok: {what}")
    rows = [(problem.workflow, problem.place, problem.reason) for problem in report.problems]
    found = count(len(rows), "problem")
    return Answer(
        value=value,
        heading=f"{found}: {what}",
        text=table_of([("workflow", "place", "reason"), *rows]),
        error={
            "type": "CorruptRecordError",
            "message": f"{found} found in {target.store}",
            "hint": "Restore the file from a backup; nothing was repaired or skipped.",
            **pick(report.problems[0], "place reason"),
        },
        code=CORRUPT,
    )
