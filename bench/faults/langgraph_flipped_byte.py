"""A checkpoint whose bytes changed on the disk is read as if it had been written so."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.sqlite import SqliteSaver

from bench.faults.graphs import answering, say, texts
from bench.faults.shown import Shown, told

PACKAGE = "langgraph-checkpoint-sqlite"
WRITTEN, CHANGED = "Publish only after the review", "Publish only without a review"


def stock(folder: Path) -> Shown:
    path = folder / "agent.db"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        return changed(saver, path)


def changed(saver: BaseCheckpointSaver, path: Path) -> Shown:
    agent = answering(saver)
    say(agent, WRITTEN)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "UPDATE checkpoints SET checkpoint = CAST(replace(CAST(checkpoint AS TEXT), ?, ?) AS BLOB)",
            (WRITTEN, CHANGED),
        )
    reader_is_told = told(lambda: texts(agent))
    read = texts(agent)[0] if reader_is_told == "nothing" else None
    return Shown(held=read in (None, WRITTEN), said=f"read: {read!r}; the reader is told: {reader_is_told}")
