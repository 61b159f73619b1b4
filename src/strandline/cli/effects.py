"""`strandline effects`: what was done outside, and what nobody knows (C23)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from strandline.cli.command import Answer, Target
from strandline.cli.output import at, count, fitted, pick, when
from strandline.errors import CorruptRecordError

if TYPE_CHECKING:
    from strandline import Effect, Workflow

_ARGS_CHARS_MAX: Final = 60  # of arguments, for people; JSON has all of them
_FIELDS: Final = (
    "key tool subject state attempt workflow call_seq result_seq intended_us settled_us permit_id actor basis"
)
_TIME: Final = "intended (UTC)"
_HEAD: Final = ("key", "tool", "state", "attempt", "workflow", "events", _TIME, "arguments")


def effects(target: Target) -> Answer:
    """Print the ledger of effects, in the order of their intents; --json has all of each."""
    with target.open() as workflow:
        ledger = [(effect, arguments_of(workflow, effect.key)) for effect in workflow.effects()]
    rows = [
        (e.key, e.tool, e.state, e.attempt, e.workflow, _events(e), when(e.intended_us), shown_args(args))
        for e, args in ledger
    ]
    return Answer(
        value={"effects": [{**pick(e, _FIELDS), "intended_at": at(e.intended_us), **args} for e, args in ledger]},
        heading=count(len(ledger), "effect", "effects"),
        text=fitted(
            _HEAD,
            rows,
            cut={"arguments": 12, "key": 20, "tool": 12, "workflow": 9, "events": 12},
            spare=[_TIME, "attempt", "workflow"],
        ),
    )


def arguments_of(workflow: Workflow, key: str) -> dict[str, object]:
    """Return the arguments of an effect as members of JSON; where they can't be read, the reason."""
    try:
        return {"args": workflow.effect_args(key)}
    except CorruptRecordError as error:
        return {"args": None, "args_error": str(error)}


def shown_args(args: dict[str, object]) -> str:
    """Return arguments on one line, cut."""
    if "args_error" in args:
        return "unreadable: `strandline verify`"
    line = json.dumps(args["args"], ensure_ascii=False)
    return line if len(line) <= _ARGS_CHARS_MAX else f"{line[: _ARGS_CHARS_MAX - 2]} …"


def _events(effect: Effect) -> str:
    return f"{effect.call_seq}, {effect.result_seq}" if effect.result_seq is not None else f"{effect.call_seq}"
