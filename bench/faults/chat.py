"""A chat model for LangChain that answers by a script and remembers what it was shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import Field

FILLER = "It was looked at, and all was well. " * 20


class ScriptedChat(BaseChatModel):
    """Gives its answers in turn, the last one again and again."""

    answers: tuple[str, ...] = ("Done.",)
    shown: list[list[BaseMessage]] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> ScriptedChat:  # type: ignore[override]
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        self.shown.append(messages)
        answer = self.answers[min(len(self.shown), len(self.answers)) - 1]
        return ChatResult(generations=[ChatGeneration(message=AIMessage(answer))])


def called(call_id: str, tool: str = "look", **arguments: str) -> AIMessage:
    """Return a message in which the model calls a tool."""
    return AIMessage("", tool_calls=[{"id": call_id, "name": tool, "args": arguments}])


def answered(call_id: str, text: str) -> ToolMessage:
    """Return a tool's result."""
    return ToolMessage(text, tool_call_id=call_id)


def turns(count: int) -> list[BaseMessage]:
    """Return that many exchanges of a question and an answer, the answers long enough to be summarized."""
    pairs = ((HumanMessage(f"Question {n}?"), AIMessage(f"Answer {n}. {FILLER}")) for n in range(count))
    return [message for pair in pairs for message in pair]


def orphans(messages: Sequence[BaseMessage]) -> list[str]:
    """Return the ids of results whose call does not stand before them: providers refuse such a request."""
    calls: set[str | None] = set()
    found = []
    for message in messages:
        if isinstance(message, AIMessage):
            calls.update(call["id"] for call in message.tool_calls)
        elif isinstance(message, ToolMessage) and message.tool_call_id not in calls:
            found.append(message.tool_call_id)
    return found
