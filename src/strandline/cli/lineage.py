"""`strandline lineage`: what happened to the memory, in its one order (I13)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strandline.cli.command import Answer, Target
from strandline.cli.output import at, count, fitted, pick, when

if TYPE_CHECKING:
    from strandline.model.lineage import LineageEntry

_FIELDS: Final = "lineage_seq kind revision at_us view generation name restored_seq digest by why detail op_key chain"
_TIME: Final = "time (UTC)"
_HEAD: Final = ("lineage", "what", "generation", "revision", _TIME, "detail")


def lineage(target: Target) -> Answer:
    """Print what happened to the memory, in order; --json has all of each entry."""
    with target.open() as workflow:
        entries = workflow.lineage()
    rows = [(e.lineage_seq, e.kind, e.generation, e.revision, when(e.at_us), _detail(e)) for e in entries]
    return Answer(
        value={"entries": [{**pick(entry, _FIELDS), "at": at(entry.at_us)} for entry in entries]},
        heading=count(len(entries), "lineage entry", "lineage entries"),
        text=fitted(_HEAD, rows, cut={"detail": 24}, spare=[_TIME, "revision", "generation"]),
    )


def _detail(entry: LineageEntry) -> str:
    said = [f"name {entry.name!r}"] if entry.name is not None else []
    said += [f"of lineage {entry.restored_seq}"] if entry.restored_seq is not None else []
    said += [f"by {entry.by}"] if entry.by else []
    said += [f"why {entry.why!r}"] if entry.why else []
    return ", ".join([*said, *(f"{name} {value}" for name, value in entry.detail.items() if value is not None)])
