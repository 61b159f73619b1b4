"""A message that another node adds while the history is summarized is removed with it.

Both nodes run in one step, and their writes are applied in the order of the nodes' names: the summarizing node's
"remove all" comes after the message of the node whose name is first.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.messages import HumanMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.runtime import Runtime

from bench.faults.chat import ScriptedChat, turns
from bench.faults.shown import Shown

PACKAGE = "langchain"
REVOKED = "The approval to publish is revoked."


def stock(folder: Path) -> Shown:
    compacting = SummarizationMiddleware(
        ScriptedChat(answers=("They talked.",)), trigger=("messages", 4), keep=("messages", 2)
    )
    return two_at_once(lambda state: compacting.before_model(state, Runtime()))


def two_at_once(compact: Callable[[MessagesState], Any]) -> Shown:
    graph = StateGraph(MessagesState)
    graph.add_node("announce", lambda state: {"messages": [HumanMessage(REVOKED)]})
    graph.add_node("compact", compact)
    graph.add_edge(START, "announce")
    graph.add_edge(START, "compact")
    messages = graph.compile().invoke({"messages": turns(3)})["messages"]
    lost = not any(message.text == REVOKED for message in messages)
    return Shown(held=not lost, said=f"messages afterwards: {len(messages)}; the revocation is lost: {lost}")
