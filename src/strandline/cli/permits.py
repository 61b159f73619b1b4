"""`strandline permits`: every decision about an action (I20)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strandline.cli.command import Answer, Target
from strandline.cli.output import count, fitted, plain, when

if TYPE_CHECKING:
    from strandline import Permit

_TIME: Final = "time (UTC)"
_HEAD: Final = (_TIME, "state", "action", "by", "revision", "permit", "detail")


def permits(target: Target) -> Answer:
    """Print what was decided about actions, granted and denied, and what was used; --json has all of each."""
    with target.open() as workflow:
        found = workflow.permits()
    rows = [(when(p.decided_us), p.state.value, p.action, p.by, p.revision, p.permit_id, _detail(p)) for p in found]
    return Answer(
        value={"permits": [plain(permit) for permit in found]},
        heading=count(len(found), "decision"),
        text=fitted(_HEAD, rows, cut={"detail": 38, "action": 16, "by": 12}, spare=["permit", "revision", _TIME]),
    )


def _detail(permit: Permit) -> str:
    said = list(permit.reasons)
    if permit.facts:
        events = dict.fromkeys(fact.seq for fact in permit.facts if fact.seq)
        said += [f"rests on event{'s' if len(events) > 1 else ''} {', '.join(map(str, events))}"] if events else []
    if permit.expires_us is not None:
        said.append(f"expires {when(permit.expires_us)}")
    if permit.consumed_us is not None:
        said.append(f"used by {permit.consumed_by!r} at {when(permit.consumed_us)}")
    return "; ".join(said)
