"""`StrandlineMemory`: a capability that records messages, and shows the model summary and tail (ADR 61).

The run's own history stays whole, as the framework and its stores keep it; only what a request holds is assembled anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.run import AgentRunResult
from pydantic_ai.tools import AgentDepsT, RunContext
from pydantic_ai.toolsets import AbstractToolset

from strandline.client.tools import ToolProbe, ToolText
from strandline.integrations.agent_memory import AgentMemory
from strandline.integrations.pydantic_ai.history import assemble, record
from strandline.integrations.pydantic_ai.toolset import EffectToolset

Needs = Callable[[RunContext[Any]], Sequence[str]]


@dataclass
class StrandlineMemory(AbstractCapability[AgentDepsT]):
    """Records each message, compacts when due, gives the model the working context, and runs tools as effects.

    Attributes:
        memory: whose log it is, and how much of it a model is shown.
        effects: run the agent's tools through the ledger of effects.
        reads: the tools that change nothing: they run each time.
        probes: of some tools: tell, of the arguments by name, whether a call happened.
        subjects: of some tools: what it is done to, of the arguments by name.
        needs: tells which references must stand verbatim in the next request.
    """

    memory: AgentMemory
    effects: bool = True
    reads: Collection[str] = ()
    probes: Mapping[str, ToolProbe] = field(default_factory=dict)
    subjects: Mapping[str, ToolText] = field(default_factory=dict)
    needs: Needs | None = None

    async def before_model_request(
        self, ctx: RunContext[AgentDepsT], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Record what is new, and put the working context in the place of the request's messages.

        Raises:
            ContextOverflowError, SummaryReconciliationError: the context can't be made; the model is not called.
            CorruptRecordError: a record is not what was written (I4).
        """
        needs = tuple(self.needs(ctx)) if self.needs is not None else ()
        messages = await asyncio.to_thread(self._turn, list(request_context.messages), needs)
        return replace(request_context, messages=messages)

    async def after_run(self, ctx: RunContext[AgentDepsT], *, result: AgentRunResult[Any]) -> AgentRunResult[Any]:
        """Record the answer."""
        await asyncio.to_thread(record, self.memory, result.all_messages())
        return result

    def get_wrapper_toolset(self, toolset: AbstractToolset[AgentDepsT]) -> AbstractToolset[AgentDepsT] | None:
        """Let the tools run as effects."""
        if not self.effects:
            return None
        return EffectToolset(
            toolset,
            workflow=self.memory.workflow,
            reads=self.reads,
            probes=self.probes,
            subjects=self.subjects,
        )

    def _turn(self, messages: list[ModelMessage], needs: Sequence[str]) -> list[ModelMessage]:
        record(self.memory, messages)
        self.memory.compact_if_due()
        return assemble(self.memory.context(needs), messages)
