"""`strandline permits`: every decision about an action (I20)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strandline.cli.command import Answer, Target
from strandline.cli.output import at, count, plain, table_of

if TYPE_CHECKING:
    from strandline import Permit


def permits(target: Target) -> Answer:
    """Print what was decided about actions, granted and denied, and what was used."""
    with target.open() as workflow:
        found = workflow.permits()
    rows = [(at(p.decided_us), p.state.value, p.action, p.by, p.revision, p.permit_id, _detail(p)) for p in found]
    return Answer(
        value={"permits": [plain(permit) for permit in found]},
        heading=count(len(found), "decision"),
        text=table_of([("time", "state", "action", "by", "revision", "permit", "detail"), *rows]) if rows else "",
    )


def _detail(permit: Permit) -> str:
    said = list(permit.reasons)
    if permit.facts:
        events = dict.fromkeys(fact.seq for fact in permit.facts if fact.seq)
        said += [f"rests on event{'s' if len(events) > 1 else ''} {', '.join(map(str, events))}"] if events else []
    if permit.expires_us is not None:
        said.append(f"expires {at(permit.expires_us)}")
    if permit.consumed_us is not None:
        said.append(f"used by {permit.consumed_by!r} at {at(permit.consumed_us)}")
    return "; ".join(said)
