"""A placeholder replaces the history, though no model was asked for a summary.

The window that the summarizer would be shown begins with a user's message. Where a long run of tools holds none, the
window is empty; a sentence that says so becomes the summary, and the history goes.
"""

from __future__ import annotations

from pathlib import Path

from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.messages import BaseMessage, HumanMessage

from bench.faults.chat import ScriptedChat, answered, called
from bench.faults.shown import Shown

PACKAGE = "langchain"
STEPS, HANDLE = 20, "bucket-7f3a"


def stock(folder: Path) -> Shown:
    model, summarizer = ScriptedChat(), ScriptedChat(answers=(f"The tools made {HANDLE}.",))
    compacting = SummarizationMiddleware(summarizer, trigger=("messages", 30), keep=("messages", 4))
    state = create_agent(model, middleware=[compacting]).invoke({"messages": tools_at_work()})
    lost = not any(HANDLE in message.text for message in state["messages"])
    asked, summary = len(summarizer.shown), state["messages"][0].text.splitlines()[-1]
    return Shown(held=not lost, said=f"summarizer calls: {asked}; summary: {summary!r}; {HANDLE} is lost: {lost}")


def tools_at_work() -> list[BaseMessage]:
    """Return one question and many calls; the first result names what was made, each is a thousand words long."""
    found: list[BaseMessage] = [HumanMessage("Make a bucket and fill it.")]
    for step in range(STEPS):
        text = f"made {HANDLE}. " if step == 0 else ""
        found += [called(f"call-{step}"), answered(f"call-{step}", text + "line " * 1_000)]
    return found
