"""A checkpoint from before a compaction is resumed without a word.

The run goes on with the messages that the compaction had replaced, and compacts them again, in another way. Two
summaries of one history now exist, and nothing says which one the agent acted on.
"""

from __future__ import annotations

from pathlib import Path

from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.sqlite import SqliteSaver

from bench.faults.chat import ScriptedChat
from bench.faults.shown import Shown

PACKAGE = "langgraph"
TURNS = 4


def stock(folder: Path) -> Shown:
    summarizer = ScriptedChat(answers=("First telling.", "Second telling."))
    compacting = SummarizationMiddleware(summarizer, trigger=("messages", 7), keep=("messages", 2))
    with SqliteSaver.from_conn_string(str(folder / "agent.db")) as saver:
        agent = create_agent(ScriptedChat(), middleware=[compacting], checkpointer=saver)
        thread = {"configurable": {"thread_id": "release-42"}}
        for turn in range(TURNS):
            agent.invoke({"messages": [HumanMessage(f"Question {turn}?")]}, thread)
        summary = summary_of(agent.get_state(thread).values["messages"])
        before = next(state for state in agent.get_state_history(thread) if len(state.values["messages"]) == 6)
        again = agent.invoke({"messages": [HumanMessage("Publish?")]}, before.config)
    telling = summary_of(again["messages"])
    said = f"the thread's summary: {summary!r}; resumed from before it, without an error: {telling!r}"
    return Shown(held=telling == summary, said=said)


def summary_of(messages: list[HumanMessage]) -> str:
    return messages[0].text.splitlines()[-1]
