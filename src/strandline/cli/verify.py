"""`strandline verify`: prove a store from its bytes (C5)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from strandline.cli.command import Answer, Target
from strandline.cli.failures import CORRUPT, describe
from strandline.cli.output import count, pick, table_of
from strandline.cli.progress import progress
from strandline.cli.witnesses import WITNESS, KeyFile, key_of, not_continued, read_file
from strandline.errors import NotContinuedError, TenantScopeError
from strandline.model.ids import DEFAULT_VIEW

if TYPE_CHECKING:
    from strandline import Strandline, Tenant, VerifyReport


_WITNESS_HELP = "Prove also that the store continues what this file of `strandline witness --keep` says."
WitnessFile = Annotated[Path | None, typer.Option("--witness", metavar="FILE", help=_WITNESS_HELP)]


def verify(target: Target, witness: WitnessFile = None, key_file: KeyFile = None) -> Answer:
    """Prove the store, or one workflow, from its bytes; with --tenant and no workflow, that tenant's alone.

    Events are counted log by log: the abandoned ones, too, and those that a fork shares once more with the fork.
    """
    from strandline import CorruptRecordError, VerifyReport
    from strandline.model.outcome import Problem

    whole = target.workflow is None and target.view == DEFAULT_VIEW
    if witness is not None and not whole:
        raise typer.BadParameter("a witness is of the whole store or of a tenant", param_hint="--witness")
    kept = None if witness is None else read_file(witness)
    key = None if witness is None else key_of(key_file)
    try:
        with progress("verifying") as tell:
            if whole:
                with target.open_store() as db:
                    proved = tenant_of(db, target) if target.tenant_named else db
                    report = proved.verify(tell)
                    if kept is not None:
                        report = replace(report, problems=report.problems + not_continued(proved, kept, key))
            else:
                with target.open() as workflow:
                    report = workflow.verify(tell)
    except CorruptRecordError as error:  # so damaged that it can't be opened
        problem = Problem(workflow="", place=error.place, reason=error.reason)
        report = VerifyReport(workflows=0, events=0, problems=(problem,))
    what = f"{count(report.workflows, 'workflow')}, {count(report.events, 'event')}"
    what += f", {count(report.states, 'saved state')}" if report.states else ""
    value = pick(report, "ok workflows events states problems")
    if report.ok:
        return Answer(value=value, heading=f"ok: {what}")
    first, found = report.problems[0], count(len(report.problems), "problem")
    described = describe(CorruptRecordError(first.reason, place=first.place))
    hint = "Restore the file from a backup; nothing was repaired or skipped."
    if all(problem.place == WITNESS for problem in report.problems):  # whole, and not the one that was there
        hint = NotContinuedError.hint
    return Answer(
        value=value,
        heading=f"{found}: {what}",
        text=problems_of(report),
        error={**described, "message": f"{found} found in {target.shown}", "hint": hint},
        code=CORRUPT,
    )


def tenant_of(db: Strandline, target: Target) -> Tenant:
    """Return the tenant that is named; one that holds nothing is refused."""
    tenant = db.tenant(target.tenant)
    if not tenant.workflows():
        raise TenantScopeError(f"the store has no tenant {target.tenant!r}", hint="Name one that holds a workflow.")
    return tenant


def problems_of(report: VerifyReport) -> str:
    """Return the problems that were found, as a table."""
    rows = [(problem.workflow, problem.place, problem.reason) for problem in report.problems]
    return table_of([("workflow", "place", "reason"), *rows])
