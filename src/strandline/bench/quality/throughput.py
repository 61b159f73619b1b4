"""Throughput: one session imported and compacted, in megabytes of its file per processor second."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import strandline
from strandline.bench.quality.row import Row
from strandline.bench.rounds import WARM_UP_ROUNDS, timed

SESSION: Final = Path("claude_code_entire", "6113e919.jsonl")
ROUNDS: Final = 5  # after those that warm up
IMPORT_MARK: Final = 15.0
COMPACT_MARK: Final = 20.0

IMPORT: Final = Row(
    id="import_mb_s",
    measure="import, with references and register, per processor second",
    data=SESSION.as_posix(),
    mark=IMPORT_MARK,
    unit="MB/s",
)
COMPACTION: Final = Row(
    id="compact_mb_s",
    measure="one compaction of it, per processor second",
    data=SESSION.as_posix(),
    mark=COMPACT_MARK,
    unit="MB/s",
)


def measure(data: Path, tell: Callable[[int, int], None]) -> Iterator[Row]:
    """Import and compact the session in a new SQLite store each round, and take the medians."""
    file = data / SESSION
    if not file.is_file():
        yield IMPORT.measured(None, f"{SESSION} is not there")
        yield COMPACTION.measured(None, f"{SESSION} is not there")
        return
    megabytes = file.stat().st_size / 1e6
    imports, compactions = [], []
    for number in range(ROUNDS + WARM_UP_ROUNDS):
        tell(number, ROUNDS + WARM_UP_ROUNDS)
        with tempfile.TemporaryDirectory(prefix="strandline-bench-") as folder, strandline.open(f"{folder}/s.db") as db:
            workflow = db.tenant("bench").workflow("session")
            imported = timed(lambda workflow=workflow: workflow.import_transcript(file))  # type: ignore[misc]
            compacted = timed(workflow.compact)
        if number >= WARM_UP_ROUNDS:
            imports.append(megabytes / imported.cpu_s)
            compactions.append(megabytes / compacted.cpu_s)
    yield IMPORT.measured(statistics.median(imports))
    yield COMPACTION.measured(statistics.median(compactions))
