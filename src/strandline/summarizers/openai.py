"""A summarizer over any server that speaks OpenAI's chat completions."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from typing import TYPE_CHECKING, Final

from strandline.errors import SummarizerSetupError
from strandline.limits import MODEL_DEADLINE_S, MODEL_STALL_S
from strandline.summarizers.model import ModelSummarizer, Piece, ReportUsage, missing_extra, named
from strandline.summarizers.prompt import SCHEMA_NAME, Prompt

if TYPE_CHECKING:
    import openai
    from openai.types.chat import ChatCompletionChunk

_SETUP_HINT: Final = (
    "Set OPENAI_API_KEY, or give api_key; for a server that asks for none, any text does. base_url or OPENAI_BASE_URL "
    "says where the server is."
)


class OpenAISummarizer(ModelSummarizer):
    """Drafts with a model of OpenAI, or of any server that speaks its chat completions; extra `openai`.

    Args:
        model: as the server knows it.
        base_url: of the server; None: OPENAI_BASE_URL, or OpenAI.
        api_key: None: OPENAI_API_KEY.
        json_schema: let the server hold the answer to its schema; False for one that can't: the form is only asked for.
        options: further fields of the request, such as `{"temperature": 0}` or `{"reasoning_effort": "low"}`.
        client: makes the SDK's asynchronous client in place of the two above, for Azure say. A client is made for each
            answer, since its connections belong to one event loop; its own retries are switched off.
        window_tokens, deadline_s, stall_s, report_usage: as of every summarizer over a model.

    Raises:
        InvalidInputError: the extra is not installed, or an argument is out of its range.
        SummarizerSetupError: there is no key.
    """

    finished = frozenset({"stop"})

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        json_schema: bool = True,
        options: Mapping[str, object] | None = None,
        client: Callable[[], openai.AsyncOpenAI] | None = None,
        window_tokens: int | None = None,
        deadline_s: float = MODEL_DEADLINE_S,
        stall_s: float = MODEL_STALL_S,
        report_usage: ReportUsage | None = None,
    ) -> None:
        try:
            import openai
        except ImportError as error:
            raise missing_extra("openai", "openai", error) from error
        self._options = dict(options or {})
        super().__init__(
            named("openai", model),
            settings={"base_url": base_url, "options": self._options, "json_schema": None if json_schema else False},
            window_tokens=window_tokens,
            deadline_s=deadline_s,
            stall_s=stall_s,
            report_usage=report_usage,
        )
        self._model, self._json_schema = model, json_schema
        self._made = client or (lambda: openai.AsyncOpenAI(api_key=api_key, base_url=base_url))
        try:
            self._client()  # so that a missing key is told now, and not by the first compaction
        except openai.OpenAIError as error:
            raise SummarizerSetupError(f"{self.name}: {error}", hint=_SETUP_HINT) from error

    def _client(self) -> openai.AsyncOpenAI:
        return self._made().with_options(max_retries=0, timeout=self._deadline_s)

    async def _pieces(self, prompt: Prompt) -> AsyncGenerator[Piece, None]:
        body = dict(self._options)
        if self._json_schema:
            form = {"name": SCHEMA_NAME, "strict": True, "schema": prompt.schema}
            body["response_format"] = {"type": "json_schema", "json_schema": form}
        if self._report_usage is not None:
            body["stream_options"] = {"include_usage": True}
        async with self._client() as client:
            stream = await client.chat.completions.create(
                model=self._model,
                messages=[
                    {"role": "system", "content": prompt.instructions},
                    {"role": "user", "content": prompt.text},
                ],
                stream=True,
                extra_body=body,
            )
            async with stream:
                async for chunk in stream:
                    yield _piece(chunk)


def _piece(chunk: ChatCompletionChunk) -> Piece:
    prompt_tokens = chunk.usage.prompt_tokens if chunk.usage else None
    choice = chunk.choices[0] if chunk.choices else None
    if choice is None:
        return Piece(model=chunk.model, prompt_tokens=prompt_tokens)
    refused = "refusal" if choice.delta.refusal else None  # then it ends with `stop`, too
    return Piece(
        text=choice.delta.content or "",
        finish=refused or choice.finish_reason,
        model=chunk.model,
        prompt_tokens=prompt_tokens,
    )
