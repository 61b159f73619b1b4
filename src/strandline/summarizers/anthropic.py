"""A summarizer over Anthropic's Messages API, or any server that speaks it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from strandline.errors import InvalidInputError, SummarizerSetupError
from strandline.limits import MODEL_DEADLINE_S, MODEL_STALL_S
from strandline.summarizers.model import ModelSummarizer, Piece, ReportUsage, missing_extra, named
from strandline.summarizers.prompt import Prompt

if TYPE_CHECKING:
    import anthropic
    from anthropic.types import RawMessageStreamEvent, Usage

OUTPUT_TOKENS: Final = 8_192  # of an answer, where no other number is asked for: every present model can write so much
_SETUP_HINT: Final = (
    "Set ANTHROPIC_API_KEY, or give api_key; for a server that asks for none, any text does. base_url or "
    "ANTHROPIC_BASE_URL says where the server is."
)


class AnthropicSummarizer(ModelSummarizer):
    """Drafts with a model of Anthropic, or of any server that speaks its Messages API; extra `anthropic`.

    Args:
        model: as the server knows it.
        base_url: of the server; None: ANTHROPIC_BASE_URL, or Anthropic.
        api_key: None: what the SDK finds, ANTHROPIC_API_KEY first.
        json_schema: let the server hold the answer to its schema; False for a model that can't: the form is only asked
            for.
        output_tokens: the most that the model may write; an answer that is cut off there is no draft.
        options: further fields of the request, such as `{"temperature": 0}`.
        client: makes the SDK's asynchronous client in place of base_url and api_key, for Bedrock or Vertex say; one for
            each answer, since its connections belong to one event loop. Its own retries are switched off.
        window_tokens, deadline_s, stall_s, report_usage: as of every summarizer over a model.

    Raises:
        InvalidInputError: the extra is not installed, or an argument is out of its range.
        SummarizerSetupError: there is no key.
    """

    finished = frozenset({"end_turn"})

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        json_schema: bool = True,
        output_tokens: int = OUTPUT_TOKENS,
        options: Mapping[str, object] | None = None,
        client: Callable[[], anthropic.AsyncAnthropic] | None = None,
        window_tokens: int | None = None,
        deadline_s: float = MODEL_DEADLINE_S,
        stall_s: float = MODEL_STALL_S,
        report_usage: ReportUsage | None = None,
    ) -> None:
        try:
            import anthropic
        except ImportError as error:
            raise missing_extra("anthropic", "anthropic", error) from error
        if not isinstance(output_tokens, int) or output_tokens < 1:
            raise InvalidInputError(f"output_tokens is at least 1; it is {output_tokens!r}")
        self._options: dict[str, Any] = dict(options or {})
        super().__init__(
            named("anthropic", model),
            settings={"base_url": base_url, "options": self._options, "json_schema": None if json_schema else False},
            window_tokens=window_tokens,
            deadline_s=deadline_s,
            stall_s=stall_s,
            report_usage=report_usage,
        )
        self._model, self._json_schema, self._output_tokens = model, json_schema, output_tokens
        self._made = client or (lambda: anthropic.AsyncAnthropic(api_key=api_key, base_url=base_url))
        try:
            made = self._client()  # so that a missing key is told now, and not by the first compaction
            known = client is not None or made.api_key or made.auth_token or made.credentials
        except anthropic.AnthropicError as error:
            raise SummarizerSetupError(f"{self.name}: {error}", hint=_SETUP_HINT) from error
        if not known:
            raise SummarizerSetupError(f"{self.name}: there is no key", hint=_SETUP_HINT)

    def _client(self) -> anthropic.AsyncAnthropic:
        return self._made().with_options(max_retries=0, timeout=self._deadline_s)

    async def _pieces(self, prompt: Prompt) -> AsyncGenerator[Piece, None]:
        body = dict(self._options)
        if self._json_schema:
            form = {"format": {"type": "json_schema", "schema": prompt.schema}}
            body["output_config"] = {**body.get("output_config", {}), **form}
        async with self._client() as client:
            stream = await client.messages.create(
                model=self._model,
                max_tokens=self._output_tokens,
                system=prompt.instructions,
                messages=[{"role": "user", "content": prompt.text}],
                stream=True,
                extra_body=body,
            )
            async with stream:
                async for event in stream:
                    yield _piece(event)


def _piece(event: RawMessageStreamEvent) -> Piece:
    if event.type == "message_start":
        return Piece(model=event.message.model, prompt_tokens=_prompt_tokens(event.message.usage))
    if event.type == "content_block_delta" and event.delta.type == "text_delta":
        return Piece(text=event.delta.text)
    if event.type == "message_delta":
        return Piece(finish=event.delta.stop_reason)
    return Piece()


def _prompt_tokens(usage: Usage) -> int:
    return usage.input_tokens + (usage.cache_read_input_tokens or 0) + (usage.cache_creation_input_tokens or 0)
