"""Tool calls of ADK through the ledger of effects: each runs once, also when an invocation is resumed (C23, I18)."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.tool_context import ToolContext

from strandline import AsyncWorkflow, EffectFailedError, EffectUnknownError

if TYPE_CHECKING:
    from strandline.integrations.google_adk.sessions import StrandlineSessionService


class StrandlineEffects(BasePlugin):
    """A plugin that runs tools as effects. ADK itself runs a tool again when it resumes an invocation.

    The intent is in the log before the tool runs, the result after it; the id of the call is the effect's key. Where
    nobody knows whether a call happened, the model is told so, a case is open, and it does not run again.
    """

    def __init__(self, sessions: StrandlineSessionService, *, reads: Collection[str] = ()) -> None:
        """Take the service whose logs hold the ledger.

        Args:
            sessions: the one that the Runner has.
            reads: tools that change nothing outside: they run each time that they are called.
        """
        super().__init__(name="strandline_effects")
        self._sessions = sessions
        self._reads = frozenset([reads] if isinstance(reads, str) else reads)

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext
    ) -> dict[str, Any] | None:
        """Run the tool, or return what is recorded of the call; None: ADK runs it."""
        call_id = tool_context.function_call_id
        if tool.name in self._reads or tool.is_long_running or call_id is None:
            return None
        workflow = AsyncWorkflow(self._sessions.log(tool_context.session).workflow)
        waiting: list[dict[str, Any]] = []

        async def run() -> object:
            answer = _answer(await tool.run_async(args=tool_args, tool_context=tool_context))
            if _waits(tool_context, call_id):
                waiting.append(answer)
                raise EffectFailedError("it waits for a person, and did not happen yet")
            return answer

        try:
            done = await workflow.effect(f"google-adk:{call_id}", tool.name, tool_args, run=run)
        except EffectFailedError as error:
            return waiting[0] if waiting else {"error": f"This call did not happen: {error.message}"}
        except EffectUnknownError as error:
            return {"error": f"The outcome of this call is not known, and it was not run again: {error.message}"}
        return _answer(done.result)


def _waits(context: ToolContext, call_id: str) -> bool:
    actions = context.actions
    return call_id in actions.requested_tool_confirmations or call_id in actions.requested_auth_configs


def _answer(value: object) -> dict[str, Any]:
    """Return a tool's answer as ADK sends it and JSON holds it: an object; what is no JSON, as its text."""
    answer = value if isinstance(value, dict) else {"result": value}
    plain: dict[str, Any] = json.loads(json.dumps(answer, default=str))
    return plain
