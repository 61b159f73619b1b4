"""A stored item that was torn is skipped; the model is not shown the constraint that stood there."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from agents import Session, SQLiteSession

import strandline
from bench.faults.shown import Shown, told
from strandline.integrations.openai_agents import StrandlineSession

PACKAGE = "openai-agents"
ITEMS: list[Mapping[str, object]] = [
    {"role": "user", "content": "Prepare the release."},
    {"role": "user", "content": "Never publish without the security review."},
    {"role": "assistant", "content": "It is prepared."},
]


def stock(folder: Path) -> Shown:
    path = folder / "agent.db"
    return torn(SQLiteSession("release-42", path), path, "agent_messages", "message_data")


def ours(folder: Path) -> Shown:
    path = folder / "agent.db"
    with strandline.open(path) as db:
        return torn(StrandlineSession(db.tenant("acme").workflow("release-42")), path, "event", "body")


def torn(session: Session, path: Path, table: str, column: str) -> Shown:
    asyncio.run(session.add_items(ITEMS))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DROP TRIGGER IF EXISTS event_is_never_changed")  # a torn page asks no trigger
        connection.execute(f"UPDATE {table} SET {column} = substr({column}, 1, 30) WHERE rowid = 2")  # noqa: S608
    read: list[object] = []
    reader_is_told = told(lambda: read.extend(asyncio.run(session.get_items())))
    said = f"items stored: {len(ITEMS)}; read: {len(read)}; the reader is told: {reader_is_told}"
    return Shown(held=read == ITEMS or reader_is_told != "nothing", said=said)
