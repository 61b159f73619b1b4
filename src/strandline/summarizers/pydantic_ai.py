"""A summarizer over any model of Pydantic AI."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import TYPE_CHECKING, cast

from strandline.errors import InvalidInputError, SummarizerSetupError
from strandline.limits import MODEL_DEADLINE_S, MODEL_STALL_S
from strandline.summarizers.model import ModelSummarizer, Piece, ReportUsage, missing_extra
from strandline.summarizers.prompt import SCHEMA_NAME, Prompt

if TYPE_CHECKING:
    from pydantic_ai import Agent, ModelResponse, ModelSettings
    from pydantic_ai.models import Model, ModelRequestParameters


class PydanticAISummarizer(ModelSummarizer):
    """Drafts with a model of Pydantic AI; extra `pydantic-ai`.

    Of an agent, its model and its model settings are used, and neither its tools nor its instructions: a summary has no
    effects. Where the model's profile says that it knows JSON schemas, it holds the answer to ours.

    Args:
        model_or_agent: a `Model`, a name such as `openai:gpt-5`, or an `Agent` that has a model.
        settings: a model's settings, such as `{"temperature": 0}`; None: the agent's.
        window_tokens, deadline_s, stall_s, report_usage: as of every summarizer over a model.

    Raises:
        InvalidInputError: the extra is not installed, there is no model, or an argument is out of its range.
        SummarizerSetupError: the model that is named can't be made: no such one, no key, or its package is missing.
    """

    finished = frozenset({"stop"})

    def __init__(
        self,
        model_or_agent: Model | Agent[None, object] | str,
        *,
        settings: Mapping[str, object] | None = None,
        window_tokens: int | None = None,
        deadline_s: float = MODEL_DEADLINE_S,
        stall_s: float = MODEL_STALL_S,
        report_usage: ReportUsage | None = None,
    ) -> None:
        try:
            from pydantic_ai import Agent
            from pydantic_ai.exceptions import UserError
            from pydantic_ai.models import Model, infer_model
        except ImportError as error:
            raise missing_extra("pydantic-ai-slim", "pydantic-ai", error) from error
        given: object = model_or_agent
        if isinstance(given, Agent):
            own = given.model_settings
            settings = cast("Mapping[str, object]", own) if settings is None and isinstance(own, dict) else settings
            given = given.model
        if not isinstance(given, Model | str):
            raise InvalidInputError(f"a model of Pydantic AI, its name, or an agent that has one, not {given!r}")
        try:
            self._model = infer_model(given)
        except (UserError, ImportError, ValueError) as error:
            raise SummarizerSetupError(f"the model {given!r} can't be made: {error}") from error
        self._settings = dict(settings or {})
        super().__init__(
            f"pydantic-ai:{self._model.system}:{self._model.model_name}",
            settings={"settings": self._settings},
            window_tokens=window_tokens,
            deadline_s=deadline_s,
            stall_s=stall_s,
            report_usage=report_usage,
        )

    async def _pieces(self, prompt: Prompt) -> AsyncGenerator[Piece, None]:
        from pydantic_ai import ModelRequest
        from pydantic_ai.direct import model_request_stream

        asked = [ModelRequest.user_text_prompt(prompt.text, instructions=prompt.instructions)]
        settings = cast("ModelSettings", self._settings)
        async with model_request_stream(
            self._model, asked, model_settings=settings, model_request_parameters=self._parameters(prompt)
        ) as stream:
            async for _ in stream:
                yield Piece()  # the whole is put together by the package; here it counts as progress
            answer = stream.get()
        yield Piece(
            text=answer.text or "",
            finish=_finish(answer),
            model=answer.model_name,
            prompt_tokens=answer.usage.input_tokens or None,
        )

    def _parameters(self, prompt: Prompt) -> ModelRequestParameters:
        from pydantic_ai.models import ModelRequestParameters
        from pydantic_ai.output import OutputObjectDefinition

        if not self._model.profile.get("supports_json_schema_output"):
            return ModelRequestParameters()
        form = OutputObjectDefinition(json_schema=dict(prompt.schema), name=SCHEMA_NAME, strict=True)
        return ModelRequestParameters(output_mode="native", output_object=form)


def _finish(answer: ModelResponse) -> str | None:
    """Return why the answer ended, if the provider told it: the package says `stop` of a stream that just ends, too."""
    told = "finish_reason" in (answer.provider_details or {})
    return None if answer.finish_reason == "stop" and not told else answer.finish_reason
