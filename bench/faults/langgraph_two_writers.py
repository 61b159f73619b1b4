"""Of two writers on one thread the slower one wins, and the other's turn is gone from the thread.

Both began at the same checkpoint, and each wrote its turn behind it. Neither is told; the newest checkpoint is that of
the writer who ended last, and holds nothing of the other's.
"""

from __future__ import annotations

from pathlib import Path

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.sqlite import SqliteSaver

from bench.faults.graphs import answering, say, texts
from bench.faults.shown import Shown, told
from strandline.integrations.langgraph import StrandlineSaver

PACKAGE = "langgraph-checkpoint-sqlite"


def stock(folder: Path) -> Shown:
    with SqliteSaver.from_conn_string(str(folder / "agent.db")) as saver:
        return overtaken(saver)


def ours(folder: Path) -> Shown:
    with StrandlineSaver.from_conn_string(str(folder / "agent.db"), tenant="acme") as saver:
        return overtaken(saver)


def overtaken(saver: BaseCheckpointSaver) -> Shown:
    quick = answering(saver)
    say(quick, "Prepare the release.")
    slow = answering(saver, meanwhile=lambda: say(quick, "Stop, it is revoked."))
    slow_is_told = told(lambda: say(slow, "Publish?"))
    lost = "Stop, it is revoked." not in texts(quick)
    said = f"the slower writer is told: {slow_is_told}; the quick writer's message is lost: {lost}"
    return Shown(held=not lost and slow_is_told != "nothing", said=said)
