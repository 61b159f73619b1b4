"""A kill between clear and add empties the session.

A manual compaction clears the stored items and adds the compacted ones in a second transaction. An exception in
between is rolled back by hand; `kill -9` leaves nobody to do so.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from agents import SQLiteSession
from agents.memory import OpenAIResponsesCompactionSession

from bench.faults.shown import Shown, die, killed

PACKAGE = "openai-agents"
ITEMS = [{"role": role, "content": f"Message {n}"} for n in range(4) for role in ("user", "assistant")]


def stock(folder: Path) -> Shown:
    killed(compact_stock, folder)
    return seen(asyncio.run(SQLiteSession("release-42", folder / "agent.db").get_items()))


def compact_stock(folder: Path) -> None:
    """Compact, and die as the compacted items are about to be added."""

    async def run() -> None:
        stored = SQLiteSession("release-42", folder / "agent.db")
        session = OpenAIResponsesCompactionSession("release-42", stored, client=compacting())
        await session.add_items(ITEMS)
        stored.add_items = dying
        await session.run_compaction({"force": True})

    asyncio.run(run())


async def dying(items: object) -> None:
    die()


def compacting() -> Any:
    """Return a client whose service answers with one compacted item."""

    async def compact(**request: object) -> object:
        return SimpleNamespace(output=[{"type": "compaction", "encrypted_content": "…"}], usage=None)

    return SimpleNamespace(responses=SimpleNamespace(compact=compact))


def seen(items: list[Any]) -> Shown:
    return Shown(held=bool(items), said=f"items before: {len(ITEMS)}; items after the kill: {len(items)}")
