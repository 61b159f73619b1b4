"""Two nodes that remove the same message in one step make the thread unreadable.

The second removal finds nothing and raises. Both writes are stored already, so reading the thread's state raises from
then on, and so does every further turn.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from langchain_core.messages import RemoveMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

import strandline
from bench.faults.chat import turns
from bench.faults.graphs import THREAD, THREAD_ID
from bench.faults.shown import Shown, told
from strandline.integrations.langgraph import StrandlineSaver, compaction_node

PACKAGE = "langgraph"


class State(MessagesState):
    shown_by_one: list[Any]  # where our nodes leave what a model is to be shown
    shown_by_other: list[Any]


def stock(folder: Path) -> Shown:
    def forget_oldest(state: MessagesState) -> dict[str, Any]:
        return {"messages": [RemoveMessage(id=state["messages"][0].id)]}

    return two_at_once(InMemorySaver(), forget_oldest, forget_oldest)


def ours(folder: Path) -> Shown:
    with strandline.open(folder / "agent.db") as db:
        tenant = db.tenant("acme")
        one, other = (
            compaction_node(tenant, trigger=("messages", 4), output_key=key)
            for key in ("shown_by_one", "shown_by_other")
        )
        seen = two_at_once(StrandlineSaver(tenant), one, other)
        assert tenant.workflow(THREAD_ID).basis().generation > 0, "nothing was compacted"
    return seen


def two_at_once(saver: BaseCheckpointSaver, one: Any, other: Any) -> Shown:
    graph = StateGraph(State)
    for name, node in (("one", one), ("other", other)):
        graph.add_node(name, node)
        graph.add_edge(START, name)
    agent = graph.compile(checkpointer=saver)
    steps = {
        "run": lambda: agent.invoke({"messages": turns(3)}, THREAD),
        "read": lambda: agent.get_state(THREAD),
        "resume": lambda: agent.invoke(None, THREAD),
        "next turn": lambda: agent.invoke({"messages": turns(1)}, THREAD),
    }
    raised = {name: told(step) for name, step in steps.items()}
    failed = [f"{name} ({error})" for name, error in raised.items() if error != "nothing"]
    return Shown(held=not failed, said=f"what raises: {', '.join(failed) or 'nothing'}")
