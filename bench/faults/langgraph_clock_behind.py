"""A turn from a machine whose clock is a minute behind is not seen by anybody.

The newest checkpoint is the one with the greatest id, and the id begins with the writer's clock.
"""

from __future__ import annotations

import time
from pathlib import Path
from unittest import mock

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.base import id as ids
from langgraph.checkpoint.sqlite import SqliteSaver

from bench.faults.graphs import answering, say, texts
from bench.faults.shown import Shown
from strandline.integrations.langgraph import StrandlineSaver

PACKAGE = "langgraph-checkpoint-sqlite"
BEHIND_NS = 60 * 10**9


def stock(folder: Path) -> Shown:
    with SqliteSaver.from_conn_string(str(folder / "agent.db")) as saver:
        return behind(saver)


def ours(folder: Path) -> Shown:
    with StrandlineSaver.from_conn_string(str(folder / "agent.db"), tenant="acme") as saver:
        return behind(saver)


def behind(saver: BaseCheckpointSaver) -> Shown:
    agent, clock = answering(saver), time.time_ns
    say(agent, "Prepare the release.")
    with (
        mock.patch.object(time, "time_ns", side_effect=lambda: clock() - BEHIND_NS),
        mock.patch.object(ids, "_last_v6_timestamp", None),  # another process, which gave out no ids yet
    ):
        say(agent, "Stop, it is revoked.")
    seen = "Stop, it is revoked." in texts(agent)
    return Shown(held=seen, said=f"the later turn is seen: {seen}")
