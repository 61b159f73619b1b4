"""A graph with one node, on a saver and a thread."""

from __future__ import annotations

from collections.abc import Callable

from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.state import CompiledStateGraph

THREAD_ID = "release-42"
THREAD = {"configurable": {"thread_id": THREAD_ID}}


def answering(saver: BaseCheckpointSaver, meanwhile: Callable[[], object] = lambda: None) -> CompiledStateGraph:
    """Return a graph that answers a message; `meanwhile` happens while it does."""

    def answer(state: MessagesState) -> MessagesState:
        meanwhile()
        return {"messages": [HumanMessage("Done.")]}

    graph = StateGraph(MessagesState)
    graph.add_node("answer", answer)
    graph.add_edge(START, "answer")
    return graph.compile(checkpointer=saver)


def say(graph: CompiledStateGraph, text: str) -> None:
    """Run a turn that begins with a message; each step is saved before the next begins."""
    graph.invoke({"messages": [HumanMessage(text)]}, THREAD, durability="sync")


def texts(graph: CompiledStateGraph) -> list[str]:
    """Return what the thread's messages say now."""
    return [message.text for message in graph.get_state(THREAD).values["messages"]]
