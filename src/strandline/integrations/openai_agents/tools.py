"""Tools of the OpenAI Agents SDK as effects: what the log holds already is not run again (I18, C23)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from strandline import EffectFailedError, EffectUnknownError, StrandlineError, Workflow
from strandline.integrations.extra import needs_extra

if TYPE_CHECKING:
    from agents import FunctionTool
    from agents.tool_context import ToolContext

    from strandline.client.tools import ToolProbe, ToolText

Function = Callable[..., object]


def effect_tool(
    workflow: Workflow,
    *,
    probe: ToolProbe | None = None,
    subject: ToolText | None = None,
    **options: Any,  # noqa: ANN401  those of the SDK's own decorator
) -> Callable[[Function], FunctionTool]:
    """Return a decorator as the SDK's `function_tool`, whose tool runs once for each call id.

    The intent is in the log before the function runs, the result after it. A call that comes again, by a run that is
    resumed from a saved state for instance, gets the recorded result. EffectFailedError says that it did not happen;
    after any other exception its outcome is unknown and a case is open. The model is told either.

    Args:
        workflow: whose log and ledger; give it to `StrandlineSession` too.
        probe: tells, of the arguments by name, whether the call happened.
        subject: what it is done to, of the arguments by name.
        options: of `function_tool`; `failure_error_function` is ours.

    Raises:
        InvalidInputError: the extra `openai-agents` is not installed.
    """
    with needs_extra("effect_tool", "openai-agents"):
        from agents import ModelBehaviorError, function_tool

    def decorate(function: Function) -> FunctionTool:
        tool = function_tool(function, failure_error_function=None, **options)
        inner = tool.on_invoke_tool

        async def once(context: ToolContext[Any], arguments: str) -> object:
            async def run(**_: object) -> object:
                try:
                    return _recorded(await inner(context, arguments))
                except ModelBehaviorError as error:  # the arguments don't fit: the function was not called
                    raise EffectFailedError(str(error)) from error

            toolset = workflow.toolset(
                {tool.name: run},
                probes={tool.name: probe} if probe else None,
                subjects={tool.name: subject} if subject else None,
            )
            try:
                return await toolset.acall(context.tool_call_id, tool.name, _arguments(arguments))
            except EffectUnknownError as error:
                return f"The outcome of this call is not known, and it was not run again: {error.message}"
            except EffectFailedError as error:
                return f"This call did not happen: {error.message}"
            except StrandlineError:
                raise
            except Exception as error:  # noqa: BLE001  a tool is somebody else's code, and raises what it will
                return f"This call raised {type(error).__name__}: {error}. Whether it happened is not known."

        tool.on_invoke_tool = once
        return tool

    return decorate


def _arguments(said: str) -> Mapping[str, object]:
    """Return what a model wrote as arguments.

    Raises:
        EffectFailedError: it is no JSON object; nothing ran.
    """
    try:
        asked = json.loads(said) if said.strip() else {}
    except (ValueError, RecursionError) as error:
        raise EffectFailedError(f"the arguments are no JSON: {error}") from error
    if not isinstance(asked, dict):
        raise EffectFailedError("the arguments are no JSON object")
    return asked


def _recorded(value: object) -> object:
    """Return a result as the log can hold it: JSON as it is, structured outputs dumped, anything else as its text."""
    if isinstance(value, list):
        return [_recorded(part) for part in value]
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(mode="json", exclude_none=True)
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return str(value)
    return value
