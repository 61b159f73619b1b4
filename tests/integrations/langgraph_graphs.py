"""Graphs for the tests of the LangGraph integration, small and without a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt
from typing_extensions import TypedDict


def thread(name: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": name}}


def talk(saver: BaseCheckpointSaver, meanwhile: Callable[[], None] | None = None) -> Any:
    """Answer each message; what happens meanwhile happens before the answer."""

    def answer(state: MessagesState) -> dict[str, Any]:
        if meanwhile is not None:
            meanwhile()
        return {"messages": [("ai", f"answer {len(state['messages'])}")]}

    graph = StateGraph(MessagesState)
    graph.add_node("answer", answer)
    graph.add_edge(START, "answer")
    return graph.compile(checkpointer=saver)


def asking(saver: BaseCheckpointSaver, *, keeps_its_own: bool, meanwhile: Callable[[], None] | None = None) -> Any:
    """A graph whose subgraph asks a person, with checkpoints of each call or of its own; `meanwhile` happens before."""

    def first(state: MessagesState) -> dict[str, Any]:
        if meanwhile is not None:
            meanwhile()
        return {"messages": [("ai", "first")]}

    def ask(state: MessagesState) -> dict[str, Any]:
        return {"messages": [("ai", f"told {interrupt('what?')}")]}

    inner = StateGraph(MessagesState)
    inner.add_node("before", lambda state: {"messages": [("ai", "before")]})
    inner.add_node("ask", ask)
    inner.add_edge(START, "before")
    inner.add_edge("before", "ask")
    graph = StateGraph(MessagesState)
    graph.add_node("first", first)
    graph.add_node("inner", inner.compile(checkpointer=True if keeps_its_own else None))
    graph.add_edge(START, "first")
    graph.add_edge("first", "inner")
    return graph.compile(checkpointer=saver)


def _append(held: list[str], writes: list[Any]) -> list[str]:
    return [*held, *(item for write in writes for item in (write if isinstance(write, list) else [write]))]


class Log(TypedDict):
    log: Annotated[list[str], DeltaChannel(_append, snapshot_frequency=7)]


def delta(saver: BaseCheckpointSaver) -> Any:
    """A graph on a delta channel, with a snapshot every seven writes."""
    graph = StateGraph(Log)
    graph.add_node("note", lambda state: {"log": [f"note {len(state['log'])}"]})
    graph.add_edge(START, "note")
    return graph.compile(checkpointer=saver)
