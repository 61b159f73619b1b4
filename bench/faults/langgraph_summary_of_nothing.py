"""A placeholder replaces the history, though no model was asked for a summary.

The window that the summarizer would be shown begins with a user's message. Where a long run of tools holds none, the
window is empty; a sentence that says so becomes the summary, and the history goes.
"""

from __future__ import annotations

from pathlib import Path

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, SummarizationMiddleware
from langchain_core.messages import BaseMessage, HumanMessage

import strandline
from bench.faults.chat import ScriptedChat, answered, called
from bench.faults.graphs import THREAD, THREAD_ID
from bench.faults.shown import Shown
from strandline.integrations.langgraph import StrandlineMiddleware

PACKAGE = "langchain"
STEPS, HANDLE = 20, "bucket-7f3a"


def stock(folder: Path) -> Shown:
    summarizer = ScriptedChat(answers=(f"The tools made {HANDLE}.",))
    shown = shown_by(SummarizationMiddleware(summarizer, trigger=("messages", 10), keep=("messages", 4)))
    placeholder, lost = shown[0].text.splitlines()[-1], is_lost(shown)
    said = f"summarizer calls: {len(summarizer.shown)}; summary: {placeholder!r}; {HANDLE} is lost: {lost}"
    return Shown(held=not lost, said=said)


def ours(folder: Path) -> Shown:
    with strandline.open(folder / "agent.db") as db:
        tenant = db.tenant("acme")
        lost = is_lost(shown_by(StrandlineMiddleware(tenant, trigger=("messages", 10), keep=("messages", 4))))
        watermark = tenant.workflow(THREAD_ID).context().watermark
    return Shown(held=not lost and watermark > 0, said=f"summary: of events 1 to {watermark}; {HANDLE} is lost: {lost}")


def shown_by(middleware: AgentMiddleware) -> list[BaseMessage]:
    model = ScriptedChat()
    create_agent(model, middleware=[middleware]).invoke({"messages": tools_at_work()}, THREAD)
    return model.shown[-1]


def is_lost(messages: list[BaseMessage]) -> bool:
    return not any(HANDLE in message.text for message in messages)


def tools_at_work() -> list[BaseMessage]:
    """Return one question and many calls; the first result names what was made, each is a thousand words long."""
    found: list[BaseMessage] = [HumanMessage("Make a bucket and fill it.")]
    for step in range(STEPS):
        text = f"made {HANDLE}. " if step == 0 else ""
        found += [called(f"call-{step}"), answered(f"call-{step}", text + "line " * 1_000)]
    return found
