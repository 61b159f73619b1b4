"""A delete that fails leaves half a thread.

The saver commits whatever was done before the error: the checkpoints are gone, their pending writes are not.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.sqlite import SqliteSaver

from bench.faults.graphs import THREAD, THREAD_ID, answering, say
from bench.faults.shown import Shown, told
from strandline.integrations.langgraph import StrandlineSaver

PACKAGE = "langgraph-checkpoint-sqlite"


def stock(folder: Path) -> Shown:
    path = folder / "agent.db"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        return failed_delete(saver, path, "writes")


def ours(folder: Path) -> Shown:
    path = folder / "agent.db"
    with StrandlineSaver.from_conn_string(str(path), tenant="acme") as saver:
        return failed_delete(saver, path, "state_node")


def failed_delete(saver: BaseCheckpointSaver, path: Path, table: str) -> Shown:
    say(answering(saver), "Prepare the release.")
    before, kept = len(list(saver.list(THREAD))), rows(path, table)
    refuse_deletes(path, table)
    deleter_is_told = told(lambda: saver.delete_thread(THREAD_ID))
    after, whole = len(list(saver.list(THREAD))), rows(path, table) == kept
    said = f"checkpoints before: {before}, after: {after}; every row of {table} is there: {whole}"
    return Shown(held=after == before and whole, said=f"{said}; the deleter is told: {deleter_is_told}")


def refuse_deletes(path: Path, table: str) -> None:
    """Let the database refuse a delete, as it does on a full disk or a broken page."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"CREATE TRIGGER broken BEFORE DELETE ON {table} BEGIN SELECT RAISE(ABORT, 'disk I/O'); END")


def rows(path: Path, table: str) -> int:
    with closing(sqlite3.connect(path)) as connection:
        (count,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()  # noqa: S608 # a name of ours
    return int(count)
