"""What the middleware costs a turn of an agent: the same agent on the same saver, with it and without it, in pairs."""

from __future__ import annotations

import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult

import strandline
from strandline.bench.rounds import Timing, timed
from strandline.integrations.langgraph import StrandlineMiddleware, StrandlineSaver

MODEL_S = 0.05
HOW: dict[str, Callable[[Timing], float]] = {"wall": lambda one: one.wall_s, "cpu": lambda one: one.cpu_s}
WARM = 5  # turns of each before anything is counted


class StubModel(BaseChatModel):
    """A model that thinks for as long as is said, calls a tool once for each question, and answers."""

    think_s: float = MODEL_S

    @property
    def _llm_type(self) -> str:
        return "stub"

    def bind_tools(self, tools: Sequence[object], **options: object) -> StubModel:  # type: ignore[override]
        """Take any tools: it calls the one that it knows."""
        del tools, options
        return self

    def _generate(self, messages: list[BaseMessage], *args: object, **options: object) -> ChatResult:
        del args, options
        time.sleep(self.think_s)
        number = sum(isinstance(said, HumanMessage) for said in messages)
        if isinstance(messages[-1], ToolMessage):
            answer = AIMessage(f"The order {number} is on its way.")
        else:
            call = {"name": "look_up", "args": {"order": number}, "id": f"call-{number}-{time.monotonic_ns()}"}
            answer = AIMessage("", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=answer)])


def look_up(order: int) -> str:
    """Look an order up."""
    return f"order {order}: sent"


def agent_turn(url: str, stack: ExitStack, *, guarded: bool, think_s: float = MODEL_S) -> Callable[[], object]:
    """Return a turn of an agent: a question, a call of a tool, an answer."""
    tenant = stack.enter_context(strandline.open(url)).tenant("bench")
    middleware = [StrandlineMiddleware(tenant)] if guarded else []
    agent: Any = create_agent(
        StubModel(think_s=think_s), [look_up], middleware=middleware, checkpointer=StrandlineSaver(tenant)
    )
    config = {"configurable": {"thread_id": "thread"}}
    asked = iter(range(1, 1_000_000))
    return lambda: agent.invoke(
        {"messages": [HumanMessage(f"Where is order {next(asked)}?")]}, config, durability="sync"
    )


def measure_gate(pairs: int, think_s: float = MODEL_S) -> dict[str, Any]:
    """Return what a turn takes without the middleware, and how much more with it, in pairs taken in turns; and, on the
    same disk, what the least takes that a log can do: one row, synced.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="strandline-bench-")))
        turns = [
            agent_turn(str(folder / f"{guarded}.db"), stack, guarded=guarded, think_s=think_s)
            for guarded in (False, True)
        ]
        commit = _raw_commit(stack, folder)
        for turn in turns:
            for _ in range(WARM):
                turn()
        taken: list[list[Timing]] = [[], []]
        commits = []
        for pair in range(pairs):
            for which in (0, 1) if pair % 2 else (1, 0):
                taken[which].append(timed(turns[which]))
            commits.append(timed(commit).wall_s * 1e3)
    found: dict[str, Any] = {"pairs": pairs, "model_ms": think_s * 1e3, "raw_commit_ms": _spread(commits)}
    for how, seconds in HOW.items():
        without = [seconds(one) * 1e3 for one in taken[0]]
        more = [(seconds(two) - seconds(one)) * 1e3 for one, two in zip(*taken, strict=True)]
        found[how] = {"without_ms": _spread(without), "more_ms": _spread(more)}
    found["more_share"] = found["wall"]["more_ms"]["median"] / found["wall"]["without_ms"]["median"]
    return found


def _raw_commit(stack: ExitStack, folder: Path) -> Callable[[], object]:
    """Return a commit of SQLite alone: half a kilobyte, with the durability of the store."""
    connection = sqlite3.connect(folder / "raw.db", isolation_level=None)
    stack.callback(connection.close)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE row (body BLOB)")
    return lambda: connection.execute("INSERT INTO row VALUES (zeroblob(500))")


def _spread(values: list[float]) -> dict[str, float]:
    """Return the median, and the range of the middle two thirds."""
    ordered = sorted(values)
    sixth = len(ordered) // 6
    return {"median": statistics.median(ordered), "least": ordered[sixth], "most": ordered[-1 - sixth]}
