"""A checkpoint whose bytes changed on the disk is read as if it had been written so."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from pathlib import Path

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.sqlite import SqliteSaver

from bench.faults.graphs import answering, say, texts
from bench.faults.shown import Shown, told
from strandline.integrations.langgraph import StrandlineSaver

PACKAGE = "langgraph-checkpoint-sqlite"
WRITTEN = "Publish only after the review: NO"


def stock(folder: Path) -> Shown:
    path = folder / "agent.db"
    return changed(
        lambda: SqliteSaver.from_conn_string(str(path)),
        path,
        "checkpoints",
        "checkpoint",
        lambda body: body.replace(b": NO", b": OK"),
    )


def ours(folder: Path) -> Shown:
    path = folder / "agent.db"
    return changed(
        lambda: StrandlineSaver.from_conn_string(str(path), tenant="acme"),
        path,
        "state_node",
        "body",
        lambda body: bytes([*body[:-1], body[-1] ^ 1]),
    )


def changed(
    opened: Callable[[], AbstractContextManager[BaseCheckpointSaver]],
    path: Path,
    table: str,
    column: str,
    change: Callable[[bytes], bytes],
) -> Shown:
    with opened() as saver:
        say(answering(saver), WRITTEN)
    with closing(sqlite3.connect(path)) as connection, connection:
        rows = connection.execute(f"SELECT {column}, rowid FROM {table}").fetchall()  # noqa: S608 # names of ours
        bodies = [(change(body), row) for body, row in rows]
        connection.executemany(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", bodies)  # noqa: S608
    with opened() as saver:
        read: list[str] = []
        reader_is_told = told(lambda: read.extend(texts(answering(saver))))
    said = f"written: {WRITTEN!r}; read: {read[:1]}; the reader is told: {reader_is_told}"
    return Shown(held=read[:1] == [WRITTEN] or reader_is_told != "nothing", said=said)
