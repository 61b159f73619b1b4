"""A stored item that was torn is skipped; the model is not shown the constraint that stood there."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

from agents import SQLiteSession

from bench.faults.shown import Shown

PACKAGE = "openai-agents"
ITEMS = [
    {"role": "user", "content": "Prepare the release."},
    {"role": "user", "content": "Never publish without the security review."},
    {"role": "assistant", "content": "It is prepared."},
]


def stock(folder: Path) -> Shown:
    path = folder / "agent.db"

    async def run() -> list[object]:
        session = SQLiteSession("release-42", path)
        await session.add_items(ITEMS)
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("UPDATE agent_messages SET message_data = substr(message_data, 1, 30) WHERE id = 2")
        return list(await session.get_items())

    items = asyncio.run(run())
    return Shown(held=items == ITEMS, said=f"{len(items)} of {len(ITEMS)} items are read, without an error")
