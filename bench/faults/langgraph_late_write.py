"""A thread that was deleted while a run was under way comes back.

The run writes its next checkpoint after the delete, and what was to be forgotten stands in it whole.
"""

from __future__ import annotations

from pathlib import Path

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.sqlite import SqliteSaver

from bench.faults.graphs import THREAD, THREAD_ID, answering, say
from bench.faults.shown import Shown, told
from strandline.integrations.langgraph import StrandlineSaver

PACKAGE = "langgraph-checkpoint-sqlite"


def stock(folder: Path) -> Shown:
    with SqliteSaver.from_conn_string(str(folder / "agent.db")) as saver:
        return deleted_meanwhile(saver)


def ours(folder: Path) -> Shown:
    with StrandlineSaver.from_conn_string(str(folder / "agent.db"), tenant="acme") as saver:
        return deleted_meanwhile(saver)


def deleted_meanwhile(saver: BaseCheckpointSaver) -> Shown:
    agent = answering(saver, meanwhile=lambda: saver.delete_thread(THREAD_ID))
    late_is_told = told(lambda: say(agent, "My password is hunter2."))
    left = len(list(saver.list(THREAD)))
    return Shown(held=left == 0, said=f"checkpoints after the delete: {left}; the late writer is told: {late_is_told}")
