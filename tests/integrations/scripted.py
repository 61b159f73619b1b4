"""A chat model that plays a script: it answers by what it is shown. No key, no network."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from pydantic import PrivateAttr

Script = Callable[[list[BaseMessage]], AIMessage]


class ScriptedModel(BaseChatModel):
    """Answers by a function, and keeps what it was shown."""

    script: Script
    profile: Any = None
    _shown: list[list[BaseMessage]] = PrivateAttr(default_factory=list)

    @property
    def shown(self) -> list[list[BaseMessage]]:
        return self._shown

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, Any]:
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        self._shown.append(list(messages))
        return ChatResult(generations=[ChatGeneration(message=self.script(list(messages)))])


def answers(*steps: AIMessage | str) -> Script:
    """Play these answers one after the other, and then the last one for ever."""
    left = list(steps)

    def script(messages: list[BaseMessage]) -> AIMessage:
        step = left.pop(0) if len(left) > 1 else left[0]
        return AIMessage(step) if isinstance(step, str) else step.model_copy(update={"id": f"answer-{uuid.uuid4()}"})

    return script


def call(call_id: str, tool: str, text: str = "", **arguments: Any) -> AIMessage:
    return AIMessage(text, tool_calls=[{"id": call_id, "name": tool, "args": arguments}])


def texts(messages: Sequence[BaseMessage]) -> list[str]:
    return [f"{said.type}: {said.text}" for said in messages]
