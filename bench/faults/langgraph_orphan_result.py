"""A summary takes a tool call away and leaves its result.

Two calls run side by side, so both results stand behind the second call. The boundary moves back to the call of one of
them only; a provider refuses the other result, which has no call any more.
"""

from __future__ import annotations

from pathlib import Path

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, SummarizationMiddleware

import strandline
from bench.faults.chat import ScriptedChat, answered, called, orphans, turns
from bench.faults.graphs import THREAD, THREAD_ID
from bench.faults.shown import Shown
from strandline.integrations.langgraph import StrandlineMiddleware

PACKAGE = "langchain"


def stock(folder: Path) -> Shown:
    summarizer = ScriptedChat(answers=("They looked at a and b.",))
    return shown_by(SummarizationMiddleware(summarizer, trigger=("messages", 20), keep=("messages", 2)))


def ours(folder: Path) -> Shown:
    with strandline.open(folder / "agent.db") as db:
        tenant = db.tenant("acme")
        seen = shown_by(StrandlineMiddleware(tenant, trigger=("messages", 20), keep=("messages", 2)))
        assert tenant.workflow(THREAD_ID).context().generation == 1, "nothing was compacted"
    return seen


def shown_by(middleware: AgentMiddleware) -> Shown:
    side_by_side = [called("call-a"), called("call-b"), answered("call-a", "a is 1"), answered("call-b", "b is 2")]
    model = ScriptedChat()
    create_agent(model, middleware=[middleware]).invoke({"messages": [*turns(10), *side_by_side]}, THREAD)
    found = orphans(model.shown[-1])
    return Shown(held=not found, said=f"results without their call in what the model is shown: {found or 'none'}")
