"""A delete that fails leaves half a thread.

The saver commits whatever was done before the error: the checkpoints are gone, their pending writes are not.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph

from bench.faults.chat import turns
from bench.faults.shown import Shown

PACKAGE = "langgraph-checkpoint-sqlite"


def stock(folder: Path) -> Shown:
    path = folder / "agent.db"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        return failed_delete(saver, lambda: refuse_deletes(path, "writes"), lambda: count(path, "writes"))


def failed_delete(saver: BaseCheckpointSaver, fail: Callable[[], None], writes: Callable[[], int]) -> Shown:
    graph = StateGraph(MessagesState)
    graph.add_node("answer", lambda state: {"messages": turns(1)})
    graph.add_edge(START, "answer")
    thread = {"configurable": {"thread_id": "release-42"}}
    graph.compile(checkpointer=saver).invoke({"messages": turns(1)}, thread)
    before = len(list(saver.list(thread))), writes()
    fail()
    with suppress(sqlite3.Error):
        saver.delete_thread("release-42")
    after = len(list(saver.list(thread))), writes()
    return Shown(held=after in (before, (0, 0)), said=f"checkpoints and writes: {before} before, {after} afterwards")


def refuse_deletes(path: Path, table: str) -> None:
    """Let the database refuse a delete, as a full disk or a broken page does."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"CREATE TRIGGER broken BEFORE DELETE ON {table} BEGIN SELECT RAISE(ABORT, 'disk I/O'); END")


def count(path: Path, table: str) -> int:
    with closing(sqlite3.connect(path)) as connection:
        (rows,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()  # noqa: S608 # a name of ours
    return int(rows)
