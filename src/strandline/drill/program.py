"""What runs the incidents: each first without protection, then with it, in a folder of its own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Final

from strandline.drill import half_summary, lost_handle, resurrected_checkpoint
from strandline.drill.report import Incident
from strandline.drill.stage import Teller, stage

INCIDENTS: Final[dict[str, ModuleType]] = {
    module.NAME: module for module in (lost_handle, half_summary, resurrected_checkpoint)
}


def run(names: Sequence[str], folder: Path, teller: Teller) -> list[Incident]:
    """Run incidents by name, and return what each came to.

    Raises:
        DrillError: a process of the drill did not do what it is there for.
    """
    incidents = []
    for name in names:
        module = INCIDENTS[name]
        with stage(folder, teller, name) as opened:
            teller.begin(module.TITLE, module.WHAT)
            teller.half("WITHOUT PROTECTION", "a naive agent, with one JSON file as its memory")
            module.naive(opened)
            teller.half("WITH STRANDLINE", "the same agent, with a store")
            module.protected(opened)
            teller.so(_so(opened.incident, module.SO))
        incidents.append(opened.incident)
    return incidents


def _so(incident: Incident, if_kept: str) -> str:
    """Return what an incident comes to."""
    if incident.ok:
        return if_kept
    broken = sum(not check.ok for check in incident.checks)
    if broken:
        return f"{broken} of {len(incident.checks)} promises broken; see FAILED above."
    return "the agent without protection was unharmed: this shows nothing."
