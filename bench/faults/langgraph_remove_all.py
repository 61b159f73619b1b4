"""A message that another node adds while the history is summarized is removed with it.

Both nodes run in one step, and their writes are applied in the order of the nodes' names: the summarizing node's
"remove all" comes after the message of the node whose name is first.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.messages import HumanMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.runtime import Runtime

import strandline
from bench.faults.chat import ScriptedChat, turns
from bench.faults.graphs import THREAD, THREAD_ID
from bench.faults.shown import Shown
from strandline.integrations.langgraph import compaction_node

PACKAGE = "langchain"
REVOKED = "The approval to publish is revoked."


class State(MessagesState):
    llm_input_messages: list[Any]  # where our node leaves what the model is to be shown


def stock(folder: Path) -> Shown:
    summarizer = ScriptedChat(answers=("They talked.",))
    compacting = SummarizationMiddleware(summarizer, trigger=("messages", 4), keep=("messages", 2))
    return two_at_once(lambda state: compacting.before_model(state, Runtime()))


def ours(folder: Path) -> Shown:
    with strandline.open(folder / "agent.db") as db:
        tenant = db.tenant("acme")
        seen = two_at_once(compaction_node(tenant, trigger=("messages", 4), keep=("messages", 2)))
        assert tenant.workflow(THREAD_ID).basis().generation == 1, "nothing was compacted"
    return seen


def two_at_once(compact: Any) -> Shown:
    graph = StateGraph(State)
    graph.add_node("announce", lambda state: {"messages": [HumanMessage(REVOKED)]})
    graph.add_node("compact", compact)
    graph.add_edge(START, "announce")
    graph.add_edge(START, "compact")
    messages = graph.compile().invoke({"messages": turns(3)}, THREAD)["messages"]
    lost = not any(message.text == REVOKED for message in messages)
    return Shown(held=not lost, said=f"messages afterwards: {len(messages)}; the revocation is lost: {lost}")
