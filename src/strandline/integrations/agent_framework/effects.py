"""Tool calls of the Agent Framework through the ledger of effects: each runs once (C23, I18)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, cast

from agent_framework import Content, FunctionInvocationContext, FunctionMiddleware

from strandline import AsyncWorkflow, EffectFailedError, EffectUnknownError

if TYPE_CHECKING:
    from strandline.integrations.agent_framework.history import StrandlineHistoryProvider


class StrandlineEffects(FunctionMiddleware):
    """A middleware that runs tools as effects: `Agent(middleware=[StrandlineEffects(history)])`.

    The intent is in the log before the tool runs, the result after it; the id of the call is the effect's key. Where
    nobody knows whether a call happened, the model is told so, a case is open, and it does not run again.
    """

    def __init__(self, history: StrandlineHistoryProvider, *, reads: Collection[str] = ()) -> None:
        """Take the provider whose sessions' logs hold the ledger.

        Args:
            history: the one that the agent has.
            reads: tools that change nothing outside: they run each time that they are called.
        """
        self._history = history
        self._reads = frozenset([reads] if isinstance(reads, str) else reads)

    async def process(self, context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]) -> None:
        """Run the tool, or give the result that is recorded of the call.

        Raises:
            InvalidInputError: the agent runs without a session, which has no ledger; nothing ran.
        """
        name = context.function.name
        if name in self._reads:
            await call_next()
            return
        session = context.session
        workflow = AsyncWorkflow(self._history.workflow(None if session is None else session.session_id))
        given = context.arguments
        arguments = dict(given) if isinstance(given, Mapping) else given.model_dump(mode="json")
        call_id = context.metadata["call_id"]
        ran: list[object] = []

        async def run() -> object:
            await call_next()
            ran.append(context.result)
            return _recorded(context.result)

        try:
            done = await workflow.effect(f"agent-framework:{call_id}", name, arguments, run=run)
        except EffectFailedError as error:
            context.result = ran[0] if ran else f"Error: this call did not happen: {error.message}"
        except EffectUnknownError as error:
            context.result = f"Error: the outcome of this call is not known, and it was not run again: {error.message}"
        else:
            context.result = ran[0] if ran else _restored(done.result)


def _recorded(result: object) -> object:
    """Return a tool's result as the log holds it.

    Raises:
        EffectFailedError: it asks for an approval, and did not happen yet.
    """
    if isinstance(result, Content) and result.type == "function_approval_request":
        raise EffectFailedError("it waits for a person, and did not happen yet")
    if isinstance(result, list) and all(isinstance(item, Content) for item in result):
        return [item.to_dict() for item in result]
    return str(result)


def _restored(recorded: object) -> object:
    if not isinstance(recorded, list):
        return recorded
    return [Content.from_dict(cast("dict[str, Any]", item)) for item in recorded]
