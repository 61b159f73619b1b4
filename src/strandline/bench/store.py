"""The benchmark of the store: its sections in order, and the report."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from strandline.bench.figures import Figure, Spread
from strandline.bench.machine import Machine, this_machine
from strandline.bench.memory import memory
from strandline.bench.peers import peers
from strandline.bench.postgres import postgres
from strandline.bench.reading import compact, context, last, recover
from strandline.bench.rounds import fsync_method, fsync_us
from strandline.bench.stage import Stage
from strandline.bench.storage import storage
from strandline.bench.transcript import source_of, transcript
from strandline.bench.writing import append, clients

Section = Callable[[Stage], list[Figure]]
# Reads come first: what is appended later changes the stores.
SECTIONS: dict[str, Section] = {
    "context": context,
    "recover": recover,
    "last": last,
    "storage": storage,
    "compact": compact,
    "append": append,
    "clients": clients,
    "transcript": transcript,
    "peers": peers,
    "postgres": postgres,
    "memory": memory,
}
SIZES = (1_000, 10_000, 100_000, 1_000_000)
RUNS = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a run found."""

    date: str
    machine: Machine
    fsync: str  # the method
    fsync_us: Spread
    load: tuple[float, float]  # processes that wanted to run, before and after; this run itself is about one
    sizes: tuple[int, ...]
    runs: int
    transcript: str
    figures: tuple[Figure, ...]
    notes: tuple[str, ...]


def run(stage: Stage, only: Sequence[str] = ()) -> Report:
    """Do the sections, all or those that are named, and report."""
    load, cost = os.getloadavg()[0], fsync_us(stage.folder)
    stage.say(f"fsync {fsync_method()}: {cost.median:.0f} µs")
    threshold = gc.get_threshold()
    gc.set_threshold(*_USUAL_THRESHOLD)
    figures: list[Figure] = []
    try:
        for name, section in SECTIONS.items():
            if not only or name in only:
                figures += section(stage)
    finally:
        gc.set_threshold(*threshold)
    return Report(
        date=datetime.now(UTC).date().isoformat(),
        machine=this_machine(),
        fsync=fsync_method(),
        fsync_us=cost,
        load=(round(load, 1), round(os.getloadavg()[0], 1)),
        sizes=tuple(stage.sizes),
        runs=stage.runs,
        transcript=source_of(stage.file),
        figures=tuple(figures),
        notes=tuple(stage.notes),
    )


_USUAL_THRESHOLD = (700, 10, 10)  # Python's own, whatever this program has set for itself
