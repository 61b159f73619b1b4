"""`strandline states`: what frameworks saved of themselves, line by line."""

from __future__ import annotations

from typing import Final

from strandline.cli.command import Answer, Target
from strandline.cli.output import count, fitted, plain

_HEAD: Final = ("line", "states", "newest", "position")


def states(target: Target) -> Answer:
    """Print the lines of saved states: how many states each holds, and which is the newest."""
    with target.open() as workflow:
        usage = workflow.states.usage()
    total = sum(line.states for line in usage.lines)
    heading = f"{count(total, 'saved state')} in {count(len(usage.lines), 'line')}"
    rows = [(repr(line.name), line.states, line.newest, line.position) for line in usage.lines]
    return Answer(
        value={"lines": plain(usage.lines), "parts": usage.parts, "part_bytes": usage.part_bytes},
        heading=f"{heading}; {count(usage.parts, 'part')} of {usage.part_bytes:,} bytes, each kept once",
        text=fitted(_HEAD, rows, cut={"line": 20, "newest": 36}, spare=["position"]),
    )
