"""`strandline manifest`: what covered events hold and the summary does not (I9)."""

from __future__ import annotations

from strandline.cli.command import Answer, Target
from strandline.cli.output import count, one_line, pick, table_of


def manifest(target: Target) -> Answer:
    """Print what the summary leaves out.

    Every reference that covered events hold and the summary does not hold verbatim, and where it was seen last.
    """
    from strandline.engine.recall import read_manifest

    with target.open() as workflow:
        generation, dropped = read_manifest(workflow._env, target.view)  # one snapshot of both
    rows = [(entry.last_seq, entry.generation_dropped, entry.reason, one_line(entry.ref or "")) for entry in dropped]
    return Answer(
        value={
            "view": target.view,
            "generation": generation,
            "dropped": [pick(entry, "ref last_seq generation_dropped reason") for entry in dropped],
        },
        heading=f"generation {generation} leaves out {count(len(dropped), 'reference')}",
        text=table_of([("last seen", "dropped at", "reason", "reference"), *rows]) if rows else "",
    )
