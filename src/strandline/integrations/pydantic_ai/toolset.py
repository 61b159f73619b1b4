"""Tools of Pydantic AI as effects: a call that the log holds already is not run again (I18, C23)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pydantic
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ModelRetry
from pydantic_ai.tools import AgentDepsT, RunContext
from pydantic_ai.toolsets import ToolsetTool, WrapperToolset

from strandline import EffectFailedError, EffectUnknownError, InvalidInputError, Workflow
from strandline.client.tools import ToolProbe, ToolText

_NOT_RUN: Final = (ApprovalRequired, CallDeferred, ModelRetry)
_ANY: Final = pydantic.TypeAdapter(object, config=pydantic.ConfigDict(ser_json_bytes="base64"))


@dataclass
class EffectToolset(WrapperToolset[AgentDepsT]):
    """A toolset whose calls run once for each call id, but for those that only read.

    The intent is in the log before a tool runs, its result after it. What raises EffectFailedError, or asks the model
    to try again, did not happen; after any other exception the outcome is unknown, a case is open, and the run ends
    with the exception.
    """

    workflow: Workflow = field(kw_only=True)
    reads: Collection[str] = field(default=(), kw_only=True)
    probes: Mapping[str, ToolProbe] = field(default_factory=dict, kw_only=True)
    subjects: Mapping[str, ToolText] = field(default_factory=dict, kw_only=True)

    def __post_init__(self) -> None:
        self.reads = frozenset([self.reads] if isinstance(self.reads, str) else self.reads)

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[AgentDepsT], tool: ToolsetTool[AgentDepsT]
    ) -> Any:  # noqa: ANN401  what a tool returns
        """Call a tool, or give the recorded result of the call: as JSON, and of a ToolReturn its return value."""
        if name in self.reads:
            return await super().call_tool(name, tool_args, ctx, tool)
        if ctx.tool_call_id is None:
            raise InvalidInputError(f"the call of {name!r} has no id, by which it could be known again; nothing ran")
        ran: list[Any] = []
        refused: list[Exception] = []

        async def run(**_: object) -> object:
            try:
                value = await self.wrapped.call_tool(name, tool_args, ctx, tool)
            except _NOT_RUN as error:
                refused.append(error)
                raise EffectFailedError(f"{type(error).__name__}: {error}") from error
            ran.append(value)
            return _as_json(getattr(value, "return_value", value))

        toolset = self.workflow.toolset(
            {name: run},
            probes={name: self.probes[name]} if name in self.probes else None,
            subjects={name: self.subjects[name]} if name in self.subjects else None,
        )
        try:
            recorded = await toolset.acall(ctx.tool_call_id, name, _as_json(tool_args))
        except EffectFailedError as error:
            if refused:
                raise refused[0] from None
            return f"This call did not happen: {error.message}"
        except EffectUnknownError as error:
            return f"The outcome of this call is not known, and it was not run again: {error.message}"
        return ran[0] if ran else recorded


def _as_json(value: object) -> Any:  # noqa: ANN401  JSON is what it is
    """Return a value as JSON, as the framework would serialize it; what it could not is text."""
    return _ANY.dump_python(value, mode="json", fallback=str)
