"""An agent that makes buckets, and is killed on the way: `python langgraph_program.py FOLDER DURABILITY KILLED_IN`.

It asks for each bucket that it does not see, each time under a new call id. The other side is a file of their names.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
import uuid
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite import SqliteSaver

import strandline
from strandline import EffectDone, EffectNeverHappened
from strandline.integrations.langgraph import StrandlineMiddleware
from tests.integrations.scripted import ScriptedModel

FOLDER, DURABILITY, KILLED_IN = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
BUCKETS = 8
OTHER_SIDE = FOLDER / "buckets"
KILLED = FOLDER / "killed"


def die(where: str) -> None:
    """Die there, the first time that a process comes to it."""
    if where == KILLED_IN and not KILLED.exists() and len(made()) >= BUCKETS // 2:
        KILLED.touch()
        os.kill(os.getpid(), signal.SIGKILL)


def made() -> list[str]:
    return OTHER_SIDE.read_text().split() if OTHER_SIDE.exists() else []


@tool
def create_bucket(name: str) -> str:
    """Create a bucket."""
    die("tool before")
    with OTHER_SIDE.open("a") as file:
        file.write(f"{name}\n")
    die("tool after")
    return f"created bucket-{name}-7f3a, " + "as the contract says " * 12


def look(arguments: Any) -> EffectDone | EffectNeverHappened:
    name = arguments["name"]
    return EffectDone(f"created bucket-{name}-7f3a") if name in made() else EffectNeverHappened()


def script(messages: list[BaseMessage]) -> AIMessage:
    die("model")
    seen = "\n".join(said.text for said in messages)
    for number in range(BUCKETS):
        if f"bucket-n{number}-7f3a" not in seen:
            call = {"id": uuid.uuid4().hex, "name": "create_bucket", "args": {"name": f"n{number}"}}
            return AIMessage(f"Next is number {number}.", tool_calls=[call])
    return AIMessage("DONE")


def summarize(request: strandline.SummaryRequest) -> str | strandline.Draft:
    die("compaction")
    return strandline.ExtractiveSummarizer().summarize(request)


def main() -> None:
    with strandline.open(FOLDER / "memory.db") as db:
        middleware = StrandlineMiddleware(
            db.tenant("acme"),
            trigger=("messages", 6),
            budget=2_000,
            summarizer=summarize,
            probes={"create_bucket": look},
        )
        saver = SqliteSaver(sqlite3.connect(FOLDER / "states.db", check_same_thread=False))
        graph = create_agent(ScriptedModel(script=script), [create_bucket], middleware=[middleware], checkpointer=saver)
        config: Any = {"configurable": {"thread_id": "t"}, "recursion_limit": 200}
        goes_on = bool(graph.get_state(config).tasks)
        given = None if goes_on else {"messages": [{"role": "user", "content": f"Make {BUCKETS} buckets."}]}
        state = graph.invoke(given, config, durability=DURABILITY)  # type: ignore[call-overload]
        workflow = db.tenant("acme").workflow("t")
        print(state["messages"][-1].text, workflow.basis().generation, db.verify().ok)  # noqa: T201


main()
