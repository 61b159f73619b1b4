"""State that sessions share: of a user, of an app. A log of what was set, each under the event that set it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from strandline import Workflow, note
from strandline.integrations.items import item_events, part_key, read_items

_FRAMEWORK: Final = "google-adk-state"


def read_state(workflow: Workflow) -> dict[str, Any]:
    """Return the state: what was set last, by the order of the log."""
    state: dict[str, Any] = {}
    for item in read_items(workflow, _FRAMEWORK):
        state.update((item.frame or {}).get("set", {}))
    return state


def write_state(workflow: Workflow, changes: Mapping[str, Mapping[str, Any]]) -> None:
    """Set what each event set, in order; what the log holds of an event already is not set again.

    Args:
        workflow: that of the user or the app.
        changes: by event, which is named across sessions.
    """
    known = workflow.seqs_of([part_key(f"{_FRAMEWORK}:{name}") for name in changes])
    events = []
    for name, delta in changes.items():
        told = note(f"State was set: {', '.join(sorted(delta))}.")
        events += item_events(f"{_FRAMEWORK}:{name}", {"set": dict(delta)}, [(told, None)])
    missing = [event for event in events if event.key not in known]
    if missing:
        workflow.append(missing)
