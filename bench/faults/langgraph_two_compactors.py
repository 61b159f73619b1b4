"""Two nodes that remove the same message in one step make the thread unreadable.

The second removal finds nothing and raises. Both writes are stored already, so reading the thread's state raises from
then on, and so does every further turn.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from langchain_core.messages import RemoveMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

from bench.faults.chat import turns
from bench.faults.shown import Shown

PACKAGE = "langgraph"
Node = Callable[[MessagesState], dict[str, Any]]


def stock(folder: Path) -> Shown:
    def forget_oldest(state: MessagesState) -> dict[str, Any]:
        return {"messages": [RemoveMessage(id=state["messages"][0].id)]}

    return two_at_once(forget_oldest, forget_oldest)


def two_at_once(one: Node, other: Node) -> Shown:
    graph = StateGraph(MessagesState)
    for name, node in (("one", one), ("other", other)):
        graph.add_node(name, node)
        graph.add_edge(START, name)
    compiled, thread = graph.compile(checkpointer=InMemorySaver()), {"configurable": {"thread_id": "release-42"}}
    steps = {
        "run": lambda: compiled.invoke({"messages": turns(3)}, thread),
        "read": lambda: compiled.get_state(thread),
        "resume": lambda: compiled.invoke(None, thread),
        "next turn": lambda: compiled.invoke({"messages": turns(1)}, thread),
    }
    raised = [name for name, step in steps.items() if raises(step)]
    return Shown(held=not raised, said=f"what raises: {', '.join(raised) or 'nothing'}")


def raises(step: Callable[[], object]) -> bool:
    try:
        step()
    except ValueError:
        return True
    return False
