"""`strandline effects`: what was done outside, and what nobody knows (C23)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strandline.cli.command import Answer, Target
from strandline.cli.output import at, count, pick, table_of

if TYPE_CHECKING:
    from strandline import Effect

_FIELDS: Final = (
    "key tool subject state attempt workflow call_seq result_seq intended_us settled_us permit_id actor basis"
)


def effects(target: Target) -> Answer:
    """Print the ledger of effects, in the order of their intents."""
    with target.open() as workflow:
        ledger = workflow.effects()
    rows = [(e.key, e.tool, e.state, e.attempt, e.workflow, _events(e), at(e.intended_us)) for e in ledger]
    return Answer(
        value={"effects": [{**pick(effect, _FIELDS), "intended_at": at(effect.intended_us)} for effect in ledger]},
        heading=count(len(ledger), "effect", "effects"),
        text=table_of([("key", "tool", "state", "attempt", "workflow", "events", "intended"), *rows]) if rows else "",
    )


def _events(effect: Effect) -> str:
    return f"{effect.call_seq}, {effect.result_seq}" if effect.result_seq is not None else f"{effect.call_seq}"
