"""Where the newest checkpoint is torn, an older one is the latest; a warning in the log is all that is said."""

from __future__ import annotations

import asyncio
from pathlib import Path

from agent_framework import CheckpointStorage, FileCheckpointStorage, WorkflowCheckpoint

from bench.faults.shown import Shown

PACKAGE = "agent-framework-core"
STEPS = 3


def stock(folder: Path) -> Shown:
    storage = FileCheckpointStorage(folder)

    async def run() -> WorkflowCheckpoint | None:
        newest = await save(storage)
        path = folder / f"{newest}.json"
        path.write_bytes(path.read_bytes()[:-20])
        return await storage.get_latest(workflow_name="release")

    latest = asyncio.run(run())
    step = latest.state["step"] if latest else None
    said = f"the newest checkpoint, of step {STEPS}, is torn; the latest is that of step {step}, without an error"
    return Shown(held=step == STEPS, said=said)


async def save(storage: CheckpointStorage) -> str:
    """Save a checkpoint after each step, and return the id of the newest."""
    saved: list[str] = []
    for step in range(1, STEPS + 1):
        before = saved[-1] if saved else None
        checkpoint = WorkflowCheckpoint("release", "graph-1", previous_checkpoint_id=before, state={"step": step})
        saved.append(await storage.save(checkpoint))
    return saved[-1]
