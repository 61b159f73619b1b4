"""A checkpoint from before a compaction is resumed without a word.

The run goes on with the messages that the compaction had replaced, and compacts them again, in another way. Two
summaries of one history now exist, and nothing says which one the agent acted on.
"""

from __future__ import annotations

from pathlib import Path

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, SummarizationMiddleware
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.sqlite import SqliteSaver

import strandline
from bench.faults.chat import FILLER, ScriptedChat
from bench.faults.graphs import THREAD, say
from bench.faults.shown import Shown, told
from strandline.integrations.langgraph import StrandlineMiddleware, StrandlineSaver

PACKAGE = "langgraph"
TURNS, MESSAGES_BEFORE = 4, 6


def stock(folder: Path) -> Shown:
    summarizer = ScriptedChat(answers=("one telling", "another telling"))
    compacting = SummarizationMiddleware(summarizer, trigger=("messages", 7), keep=("messages", 2))
    with SqliteSaver.from_conn_string(str(folder / "agent.db")) as saver:
        return gone_back(saver, compacting)


def ours(folder: Path) -> Shown:
    with strandline.open(folder / "agent.db") as db:
        tenant = db.tenant("acme")
        compacting = StrandlineMiddleware(tenant, trigger=("messages", 7), keep=("messages", 2))
        return gone_back(StrandlineSaver(tenant), compacting)


def gone_back(saver: BaseCheckpointSaver, compacting: AgentMiddleware) -> Shown:
    model = ScriptedChat(answers=(f"Done. {FILLER}",))
    agent = create_agent(model, middleware=[compacting], checkpointer=saver)
    for turn in range(TURNS):
        say(agent, f"Question {turn}?")
    summary = summary_in(model)
    before = next(s for s in agent.get_state_history(THREAD) if len(s.values["messages"]) == MESSAGES_BEFORE)
    calls = len(model.shown)
    agent_is_told = told(lambda: agent.invoke({"messages": "Publish?"}, before.config))
    again = summary_in(model) if len(model.shown) > calls else "not called"
    said = f"the model was shown {summary!r}; gone back: {again!r}; who goes back is told: {agent_is_told}"
    return Shown(held=agent_is_told != "nothing", said=said)


def summary_in(model: ScriptedChat) -> str:
    """Return how the summary begins that the model was shown last."""
    return " ".join(model.shown[-1][0].text.split())[:62]
