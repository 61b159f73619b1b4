"""`strandline verify`: prove a store from its bytes (C5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strandline.cli.failures import CORRUPT, fail
from strandline.cli.options import STORE, TENANT, VIEW, Json, Store, TenantName, ViewName, WorkflowName
from strandline.cli.output import Block, Heading, Table, count, show
from strandline.cli.progress import progress
from strandline.cli.target import Target

if TYPE_CHECKING:
    from strandline import VerifyReport


def verify(
    store: Store = STORE,
    tenant: TenantName = TENANT,
    workflow: WorkflowName = None,
    view: ViewName = VIEW,
    as_json: Json = False,
) -> None:
    """Check every byte: gaps, digests, references, coverage, lineage. All workflows, unless --workflow names one."""
    target = Target(store=store, tenant=tenant, workflow=workflow, view=view)
    report = _verify_store(target) if workflow is None else _verify_workflow(target)
    value = {
        "ok": report.ok,
        "workflows": report.workflows,
        "events": report.events,
        "problems": report.problems,
    }
    what = f"{count(report.workflows, 'workflow')}, {count(report.events, 'event')}"
    if report.ok:
        show(value, [Heading(f"ok: {what}")], as_json=as_json)
        return
    found = count(len(report.problems), "problem")
    rows = [(problem.workflow, problem.place, problem.reason) for problem in report.problems]
    blocks: list[Block] = [Heading(f"{found}: {what}", good=False), Table(("workflow", "place", "reason"), rows)]
    error = {
        "type": "CorruptRecordError",
        "message": f"{found} found in {store}",
        "hint": "Restore the file from a backup; nothing was repaired or skipped.",
        "place": report.problems[0].place,
        "reason": report.problems[0].reason,
    }
    fail(value, blocks, as_json=as_json, error=error, code=CORRUPT)


def _verify_store(target: Target) -> VerifyReport:
    with target.open_store() as db, progress("verifying") as tell:
        return db.verify(tell)


def _verify_workflow(target: Target) -> VerifyReport:
    with target.open() as opened, progress(f"verifying {opened.name}") as tell:
        return opened.verify(tell)
