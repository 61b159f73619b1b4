"""Tool calls of Strands through the ledger of effects: each runs once (C23, I18)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection
from typing import Any

from strands.hooks import BeforeToolCallEvent, HookProvider, HookRegistry
from strands.types._events import ToolInterruptEvent, ToolResultEvent
from strands.types.session import decode_bytes_values, encode_bytes_values
from strands.types.tools import AgentTool, ToolResult, ToolSpec, ToolUse

from strandline import AsyncWorkflow, EffectFailedError, EffectUnknownError, Workflow


class StrandlineEffects(HookProvider):
    """A hook that runs tools as effects: `Agent(hooks=[StrandlineEffects(workflow)])`.

    The intent is in the log before the tool runs, the result after it; the id of the call is the effect's key. Where
    nobody knows whether a call happened, the model is told so, a case is open, and it does not run again.
    """

    def __init__(self, workflow: Workflow, *, reads: Collection[str] = ()) -> None:
        """Take the agent's workflow.

        Args:
            workflow: whose log holds the ledger.
            reads: tools that change nothing outside: they run each time that they are called.
        """
        self._workflow = workflow
        self._reads = frozenset([reads] if isinstance(reads, str) else reads)

    def register_hooks(self, registry: HookRegistry, **kwargs: object) -> None:
        """Stand before each call of a tool."""
        registry.add_callback(BeforeToolCallEvent, self._before)

    def _before(self, event: BeforeToolCallEvent) -> None:
        tool = event.selected_tool
        if tool is not None and tool.tool_name not in self._reads:
            event.selected_tool = _Once(tool, self._workflow)


class _Once(AgentTool):
    """A tool that asks the ledger first."""

    def __init__(self, tool: AgentTool, workflow: Workflow) -> None:
        super().__init__()
        self._tool = tool
        self._workflow = AsyncWorkflow(workflow)

    @property
    def tool_name(self) -> str:
        return self._tool.tool_name

    @property
    def tool_spec(self) -> ToolSpec:
        return self._tool.tool_spec

    @property
    def tool_type(self) -> str:
        return self._tool.tool_type

    async def stream(
        self, tool_use: ToolUse, invocation_state: dict[str, Any], **kwargs: object
    ) -> AsyncGenerator[Any, None]:
        events: list[object] = []

        async def run() -> object:
            async for event in self._tool.stream(tool_use, invocation_state, **kwargs):
                events.append(event)
            return _recorded(events)

        call_id = tool_use["toolUseId"]
        try:
            done = await self._workflow.effect(f"strands:{call_id}", self.tool_name, tool_use["input"], run=run)
        except EffectFailedError as error:
            if not events:
                events = [_refusal(call_id, f"This call did not happen: {error.message}")]
        except EffectUnknownError as error:
            events = [_refusal(call_id, f"The outcome of this call is not known, and it was not run again: {error}")]
        except Exception:
            if not events:
                raise
        else:
            events = events or [ToolResultEvent(decode_bytes_values(done.result))]
        for event in events:
            yield event


def _recorded(events: list[object]) -> object:
    """Return a tool's result as the log holds it; what Strands made an answer of, an exception, is one again.

    Raises:
        EffectFailedError: it waits for a person, and did not happen yet.
        Exception: what the tool raised: the outcome is unknown.
    """
    last = events[-1] if events else None
    if isinstance(last, ToolInterruptEvent):
        raise EffectFailedError("it waits for a person, and did not happen yet")
    failed = last.exception if isinstance(last, ToolResultEvent) else None
    if failed is not None:
        raise failed
    result: object = encode_bytes_values(last.tool_result if isinstance(last, ToolResultEvent) else last)
    return result


def _refusal(call_id: str, text: str) -> ToolResultEvent:
    result: ToolResult = {"toolUseId": call_id, "status": "error", "content": [{"text": text}]}
    return ToolResultEvent(result)
