"""`strandline manifest`: what covered events hold and the summary does not (I9)."""

from __future__ import annotations

from strandline.cli.command import Answer, Target
from strandline.cli.output import count, pick, table_of


def manifest(target: Target) -> Answer:
    """Print the references that the summary leaves out."""
    with target.open() as workflow:
        dropped = workflow.manifest()
    rows = [(entry.last_seq, entry.generation_dropped, entry.reason, entry.ref) for entry in dropped]
    return Answer(
        value={
            "view": target.view,
            "generation": dropped.generation,
            "dropped": [pick(entry, "ref last_seq generation_dropped reason") for entry in dropped],
        },
        heading=f"generation {dropped.generation} leaves out {count(len(dropped), 'reference')}",
        text=table_of([("last seen", "dropped at", "reason", "reference"), *rows]) if rows else "",
    )
