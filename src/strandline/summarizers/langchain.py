"""A summarizer over any chat model of LangChain."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import TYPE_CHECKING, Any, Final

from strandline.errors import InvalidInputError
from strandline.limits import MODEL_DEADLINE_S, MODEL_STALL_S
from strandline.summarizers.model import ModelSummarizer, Piece, ReportUsage, missing_extra
from strandline.summarizers.prompt import Prompt

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage

FINISH_KEYS: Final = ("finish_reason", "stop_reason", "done_reason")  # under which integrations hand on the reason
MODEL_KEYS: Final = ("model_name", "model")


class LangChainSummarizer(ModelSummarizer):
    """Drafts with a chat model of LangChain; extra `langchain`.

    The answer's form is asked for in words. The model must hand on the provider's finish reason in its messages'
    `response_metadata`, as the integrations of providers do: without one no answer counts as whole. Retries are the
    engine's: give the model `max_retries=0`.

    Args:
        model: a `BaseChatModel`.
        name: part of the job's identity; by default the model's kind and its `model_name` or `model`.
        options: further arguments of a call, such as `{"temperature": 0}`.
        window_tokens, deadline_s, stall_s, report_usage: as of every summarizer over a model.

    Raises:
        InvalidInputError: the extra is not installed, the model is no chat model, or an argument is out of its range.
    """

    finished = frozenset({"stop", "STOP", "end_turn"})

    def __init__(
        self,
        model: BaseChatModel,
        *,
        name: str | None = None,
        options: Mapping[str, object] | None = None,
        window_tokens: int | None = None,
        deadline_s: float = MODEL_DEADLINE_S,
        stall_s: float = MODEL_STALL_S,
        report_usage: ReportUsage | None = None,
    ) -> None:
        try:
            from langchain_core.language_models import BaseChatModel
        except ImportError as error:
            raise missing_extra("langchain-core", "langchain", error) from error
        if not isinstance(model, BaseChatModel):
            raise InvalidInputError(f"a chat model of LangChain is wanted, not a {type(model).__name__}")
        self._options: dict[str, Any] = dict(options or {})
        super().__init__(
            f"langchain:{_name(model)}" if name is None else name,
            settings={"options": self._options},
            window_tokens=window_tokens,
            deadline_s=deadline_s,
            stall_s=stall_s,
            report_usage=report_usage,
        )
        self._model = model

    async def _pieces(self, prompt: Prompt) -> AsyncGenerator[Piece, None]:
        from langchain_core.messages import HumanMessage, SystemMessage

        asked = [SystemMessage(prompt.instructions), HumanMessage(prompt.text)]
        async for message in self._model.astream(asked, **self._options):
            yield _piece(message)


def _piece(message: AIMessage) -> Piece:
    told = message.response_metadata
    return Piece(
        text=message.text,
        finish=next((str(told[key]) for key in FINISH_KEYS if told.get(key)), None),
        model=next((str(told[key]) for key in MODEL_KEYS if told.get(key)), None),
        prompt_tokens=message.usage_metadata["input_tokens"] if message.usage_metadata else None,
    )


def _name(model: BaseChatModel) -> str:
    named = next((value for key in MODEL_KEYS if isinstance(value := getattr(model, key, None), str)), "")
    return f"{model._llm_type}:{named}" if named else model._llm_type
