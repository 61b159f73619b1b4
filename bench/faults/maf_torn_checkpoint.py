"""Where the newest checkpoint is torn, an older one counts as the latest; a warning in a log is all that is said."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from agent_framework import CheckpointStorage, FileCheckpointStorage, WorkflowCheckpoint

import strandline
from bench.faults.shown import Shown
from strandline.integrations.agent_framework import StrandlineCheckpointStorage

PACKAGE = "agent-framework-core"
STEPS, TORN_BYTES = 3, 20


def stock(folder: Path) -> Shown:
    def tear(newest: str) -> None:
        path = folder / f"{newest}.json"
        path.write_bytes(path.read_bytes()[:-TORN_BYTES])

    return asyncio.run(torn(FileCheckpointStorage(folder), tear))


def ours(folder: Path) -> Shown:
    path = folder / "agent.db"

    def tear(newest: str) -> None:
        with closing(sqlite3.connect(path)) as connection, connection:
            torn = "UPDATE saved_state SET meta = substr(meta, 1, length(meta) - ?) WHERE position = ?"
            assert connection.execute(torn, (TORN_BYTES, STEPS)).rowcount == 1

    with strandline.open(path) as db:
        return asyncio.run(torn(StrandlineCheckpointStorage(db.tenant("acme"), "release-42"), tear))


async def torn(storage: CheckpointStorage, tear: Callable[[str], None]) -> Shown:
    saved: list[str] = []
    for step in range(1, STEPS + 1):
        before = saved[-1] if saved else None
        checkpoint = WorkflowCheckpoint("release", "graph-1", previous_checkpoint_id=before, state={"step": step})
        saved.append(await storage.save(checkpoint))
    tear(saved[-1])
    try:
        latest = await storage.get_latest(workflow_name="release")
    except Exception as error:  # noqa: BLE001 # whatever a storage raises is what its reader is told
        return Shown(held=True, said=f"the newest of {STEPS} is torn; the reader is told: {type(error).__name__}")
    step = latest.state["step"] if latest else 0
    return Shown(
        held=step == STEPS,
        said=f"the newest of {STEPS} is torn; the latest is number {step}; the reader is told: nothing",
    )
