"""For graphs without middleware: a node that puts the model's messages together, and the wrapper of a `ToolNode` (C34).

    builder.add_node("memory", compaction_node(tenant, budget=8_000))
    builder.add_node("tools", ToolNode(tools, wrap_tool_call=tool_ledger(tenant)))

The model is called with what the node leaves in the state under `llm_input_messages`; what it answers is recorded when
the node runs the next time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, Final

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langgraph.prebuilt.tool_node import ToolCallRequest

from strandline import ActionNeed, InvalidInputError, LangChainSummarizer, Tenant, Workflow
from strandline.integrations.agent_memory import Told
from strandline.integrations.langgraph.ledger import TELL, Answer, ToolLedger, ToolProbe, ToolSubject
from strandline.integrations.langgraph.place import BASIS_KEY, Home, basis_of, place_now, place_of
from strandline.integrations.langgraph.sizes import Size, Trigger, sizes_of
from strandline.integrations.langgraph.turns import STRICT, Turns
from strandline.limits import SUMMARIZER_DEADLINE_S

OUTPUT_KEY: Final = "llm_input_messages"


def compaction_node(
    memory: Tenant | Workflow,
    *,
    agent: str = "agent",
    view: str | None = None,
    own_workflow: bool = False,
    budget: int | None = None,
    trigger: Trigger | None = None,
    keep: Size | None = None,
    summarizer: object = None,
    deadline_s: float = SUMMARIZER_DEADLINE_S,
    background: bool = False,
    told: Told | None = None,
    restore: str = STRICT,
    messages_key: str = "messages",
    output_key: str = OUTPUT_KEY,
) -> RunnableLambda[Mapping[str, Any], dict[str, Any]]:
    """Return a node to be run before the model's: it records the messages, compacts if that is due, and leaves the
    context as messages. It removes nothing.

    Args:
        memory, agent, view, own_workflow, budget, trigger, keep, summarizer: as of `StrandlineMiddleware`.
        deadline_s, background, told, restore: as of the same.
        messages_key: of the state, where the messages are.
        output_key: of the state, where the context is left; not the same one.

    Raises:
        InvalidInputError: an argument that can't be.
    """
    if messages_key == output_key:
        raise InvalidInputError(f"output_key is {output_key!r}, as messages_key: the messages would be overwritten")
    turns = Turns(
        Home(memory=memory, agent=agent, view=view, own_workflow=own_workflow),
        sizes_of(budget, trigger, keep),
        summarizer=LangChainSummarizer(summarizer) if isinstance(summarizer, BaseChatModel) else summarizer,
        deadline_s=deadline_s,
        background=background,
        told=told,
        restore=restore,
    )

    def node(state: Mapping[str, Any], config: RunnableConfig) -> dict[str, Any]:
        messages = state[messages_key]
        turn = turns.begin(place_of(config), messages, basis_of(state))
        return {output_key: turn.rendered.messages, BASIS_KEY: turns.end(turn, messages, ())}

    async def awaited(state: Mapping[str, Any], config: RunnableConfig) -> dict[str, Any]:
        return await asyncio.to_thread(node, state, config)

    return RunnableLambda(node, awaited, name="strandline")


class _Wrapper:
    """What a `ToolNode` takes as `wrap_tool_call`."""

    def __init__(self, home: Home, ledger: ToolLedger) -> None:
        self._home = home
        self._ledger = ledger

    def __call__(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Answer]) -> Answer:
        """Call a tool through the ledger."""
        return self._ledger.call(self._home.workflow(place_now()), request, handler, None)

    async def awaited(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Answer]]
    ) -> Answer:
        """Call a tool through the ledger, in the event loop of the graph: what `awrap_tool_call` takes."""
        return await self._ledger.acall(self._home.workflow(place_now()), request, handler, None)


def tool_ledger(
    memory: Tenant | Workflow,
    *,
    agent: str = "agent",
    view: str | None = None,
    own_workflow: bool = False,
    reads: Collection[str] = (),
    probes: Mapping[str, ToolProbe] | None = None,
    subjects: Mapping[str, ToolSubject] | None = None,
    guards: Mapping[str, Sequence[ActionNeed]] | None = None,
    asks: Collection[str] = (),
    refusals: str = TELL,
) -> _Wrapper:
    """Return the wrapper of a `ToolNode`, by which each tool call runs once; its `awaited` is for async graphs.

    Args:
        memory, agent, view, own_workflow, reads, probes, subjects, guards, asks, refusals: as of
            `StrandlineMiddleware`, and the same as of the node beside it.
    """
    home = Home(memory=memory, agent=agent, view=view, own_workflow=own_workflow)
    return _Wrapper(
        home,
        ToolLedger(
            agent=agent,
            reads=reads,
            probes=probes or {},
            subjects=subjects or {},
            guards=guards or {},
            asks=asks,
            refusals=refusals,
        ),
    )
