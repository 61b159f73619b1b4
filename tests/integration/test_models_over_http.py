"""Law: over real HTTP, each way in which a model or its server fails is told as what it is (C8, C14).

Every summarizer over a model is asked; the server is `llmock`, and where that can't fail so, a scripted one of ours.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import anthropic
import openai
import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from pydantic_ai import Agent
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

from strandline import (
    AnthropicSummarizer,
    InvalidInputError,
    LangChainSummarizer,
    MalformedDraftError,
    OpenAISummarizer,
    PromptTooLongError,
    PydanticAISummarizer,
    SummarizerSetupError,
    TransientSummarizerError,
)
from strandline.model.candidate import Draft
from strandline.summarizers.model import ModelSummarizer
from strandline.summarizers.prompt import answer_schema, write_prompt
from strandline.testing import Failure, Reply, ScriptedModel
from tests.conftest import Llmock
from tests.unit.test_model_prompt import event, request

pytestmark = pytest.mark.long

EVENTS = [event(seq, f"Step {seq} of the build went into bucket-{seq:04x}, as asked.") for seq in range(1, 20)]
REQUEST = request(*EVENTS, budget=300)
ANSWER = json.dumps({"claims": [{"text": f"Step {seq} is done.", "events": [seq]} for seq in range(1, 9)]})
SHORT_S = 0.3
PLENTY_S = 20.0
MODEL = "a-model"


class OverTheSdk(BaseChatModel):
    """A chat model of LangChain, as an integration would make it of OpenAI's SDK: it passes on what that says."""

    base_url: str
    model_name: str = MODEL

    @property
    def _llm_type(self) -> str:
        return "sdk"

    def _generate(self, messages: list[BaseMessage], *args: Any, **options: Any) -> ChatResult:
        raise NotImplementedError("it is awaited")

    async def _astream(
        self, messages: list[BaseMessage], *args: Any, **options: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        roles = {"system": "system", "human": "user"}
        async with openai.AsyncOpenAI(base_url=self.base_url, api_key="none", max_retries=0) as client:
            stream = await client.chat.completions.create(
                model=self.model_name,
                messages=[{"role": roles[m.type], "content": m.text} for m in messages],  # type: ignore[misc]
                stream=True,
            )
            async for chunk in stream:
                for choice in chunk.choices:
                    told = {"finish_reason": choice.finish_reason} if choice.finish_reason else {}
                    message = AIMessageChunk(choice.delta.content or "", response_metadata=told)
                    yield ChatGenerationChunk(message=message)


def over_openai(url: str, **options: Any) -> ModelSummarizer:
    return OpenAISummarizer(MODEL, base_url=f"{url}/v1", api_key="none", **options)


def over_anthropic(url: str, **options: Any) -> ModelSummarizer:
    return AnthropicSummarizer(MODEL, base_url=url, api_key="none", **options)


def over_langchain(url: str, **options: Any) -> ModelSummarizer:
    return LangChainSummarizer(OverTheSdk(base_url=f"{url}/v1"), **options)


def over_pydantic_ai(url: str, **options: Any) -> ModelSummarizer:
    client = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
    return PydanticAISummarizer(OpenAIChatModel(MODEL, provider=OpenAIProvider(openai_client=client)), **options)


def over_agent(url: str, **options: Any) -> ModelSummarizer:
    client = anthropic.AsyncAnthropic(base_url=url, api_key="none", max_retries=0)
    model = AnthropicModel(MODEL, provider=AnthropicProvider(anthropic_client=client))
    return PydanticAISummarizer(Agent(model, model_settings={"max_tokens": 4_000}), **options)


MAKERS = [over_openai, over_anthropic, over_langchain, over_pydantic_ai, over_agent]
Maker = Callable[..., ModelSummarizer]


@pytest.fixture(params=MAKERS, ids=lambda maker: maker.__name__)
def over(request: pytest.FixtureRequest) -> Maker:
    return request.param


@pytest.fixture
def made(over: Maker, llmock: Llmock) -> Callable[..., ModelSummarizer]:
    """Make the summarizer over llmock."""
    speaks_anthropic = over in (over_anthropic, over_agent)
    url = llmock.anthropic_url if speaks_anthropic else llmock.openai_url.removesuffix("/v1")
    return lambda **options: over(url, **options)


def asked(summarizer: ModelSummarizer, request: Any = REQUEST) -> Draft:
    """Ask as an event loop does; what is asked for it holds the clients that were made for it."""

    async def ask() -> Draft:
        try:
            return await summarizer.summarize(request)
        finally:
            await close_client(summarizer)

    return asyncio.run(ask())


async def close_client(summarizer: ModelSummarizer) -> None:
    client = getattr(getattr(summarizer, "_model", None), "client", None)
    if client is not None:
        await client.close()


def reply(text: str = ANSWER, **more: Any) -> dict[str, Any]:
    return {"type": "reply", "text": text, **more}


def named(behaviors: list[dict[str, Any]]) -> str:
    """Name a case by what is special about it."""
    last = behaviors[-1]
    return str(last.get("status") or last.get("kind") or last.get("finish_reason") or last["text"][:30] or "empty")


def test_a_whole_answer_becomes_a_draft(made: Callable[..., ModelSummarizer], llmock: Llmock) -> None:
    llmock.script(reply())
    draft = asked(made())
    assert draft.text.splitlines()[0] == "- Step 1 is done. [1]"
    assert (draft.finish, len(draft.claims)) == ("stop", 8)
    (sent,) = llmock.requests()
    assert json.loads(json.dumps(sent["body"]))["stream"] is True


@pytest.mark.parametrize(
    ("behaviors", "kind", "said"),
    [
        ([{"type": "fail", "status": 429, "retry_after": 7}], TransientSummarizerError, "429"),
        ([{"type": "fail", "status": 500}], TransientSummarizerError, "500"),
        ([{"type": "fail", "status": 503}], TransientSummarizerError, "503"),
        ([{"type": "fail", "status": 529}], TransientSummarizerError, "529"),
        ([{"type": "fail", "status": 400}], SummarizerSetupError, "400"),
        ([{"type": "fail", "status": 401}], SummarizerSetupError, "401"),
        ([{"type": "fail", "status": 403}], SummarizerSetupError, "403"),
        ([{"type": "fail", "status": 404}], SummarizerSetupError, "404"),
        ([{"type": "fail", "status": 413}], PromptTooLongError, "413"),
        (
            [{"type": "fail", "status": 400, "message": "prompt is too long: 9 tokens > 8 maximum"}],
            PromptTooLongError,
            "too long",
        ),
        ([reply(), {"type": "stream_fault", "kind": "disconnect", "after_chunks": 5}], TransientSummarizerError, ""),
        ([reply(), {"type": "stream_fault", "kind": "truncate", "after_chunks": 5}], MalformedDraftError, "no finish"),
        ([reply(), {"type": "stream_fault", "kind": "malformed", "after_chunks": 5}], MalformedDraftError, ""),
        ([reply(finish_reason="length")], MalformedDraftError, "finish reason"),
        ([reply(finish_reason="content_filter")], MalformedDraftError, "finish reason"),
        ([reply("")], MalformedDraftError, "empty"),
        ([reply("I don't see any events to summarize.")], MalformedDraftError, "nothing_to_summarize"),
        ([reply("Error: upstream connect error")], MalformedDraftError, "error_text"),
        ([reply("[Summary goes here]")], MalformedDraftError, "placeholder"),
        ([reply(ANSWER[:-4])], MalformedDraftError, "not the JSON"),
        ([reply('{"claims": [{"text": "Done.", "events": [4000]}]}')], MalformedDraftError, "not shown: 4000"),
        ([reply('{"summary": "Done."}')], MalformedDraftError, "summary"),
    ],
    ids=lambda value: named(value) if isinstance(value, list) else "",
)
def test_each_failure_is_told_as_what_it_is(
    made: Callable[..., ModelSummarizer],
    llmock: Llmock,
    behaviors: list[dict[str, Any]],
    kind: type[Exception],
    said: str,
) -> None:
    llmock.script(*behaviors)
    with pytest.raises(kind) as caught:
        asked(made())
    assert type(caught.value) is kind
    assert said in str(caught.value)
    assert len(llmock.requests()) == 1  # no package repeats anything by itself
    if isinstance(caught.value, TransientSummarizerError) and "429" in said:
        assert caught.value.retry_after_s == 7


def test_a_stream_that_stalls_is_left(made: Callable[..., ModelSummarizer], llmock: Llmock) -> None:
    llmock.script(reply(), {"type": "stream_fault", "kind": "stall", "after_chunks": 3, "stall_seconds": 5})
    begun = time.monotonic()
    with pytest.raises(TransientSummarizerError, match=r"no piece of the answer within 0\.3 s"):
        asked(made(stall_s=SHORT_S))
    assert time.monotonic() - begun < 5


def test_an_answer_that_takes_too_long_is_left(made: Callable[..., ModelSummarizer], llmock: Llmock) -> None:
    llmock.script(reply(), {"type": "delay", "seconds": 5})
    begun = time.monotonic()
    with pytest.raises(TransientSummarizerError, match=r"no whole answer within 0\.3 s"):
        asked(made(deadline_s=SHORT_S))
    assert time.monotonic() - begun < 5


def test_a_server_that_is_not_there_is_a_passing_failure(over: Maker) -> None:
    with ScriptedModel(ANSWER) as model:
        gone = model.url
    with pytest.raises(TransientSummarizerError):
        asked(over(gone))


# --------------------------------------------------------------- what llmock can't do


@pytest.mark.parametrize("over", [over_openai, over_anthropic, over_langchain])
def test_slow_pieces_are_progress_and_lines_that_keep_alive_are_none(over: Maker) -> None:
    with ScriptedModel(Reply(text=ANSWER, pause_s=0.1)) as model:
        assert asked(over(model.url, stall_s=SHORT_S * 3, deadline_s=PLENTY_S)).claims
    with (
        ScriptedModel(Reply(text=ANSWER, pause_s=2.0, kept_alive=True)) as model,
        pytest.raises(TransientSummarizerError, match="no piece"),
    ):
        asked(over(model.url, stall_s=SHORT_S, deadline_s=PLENTY_S))


@pytest.mark.parametrize("over", [over_openai, over_anthropic])
@pytest.mark.parametrize(
    ("error", "kind"),
    [("overloaded_error", TransientSummarizerError), ("invalid_request_error", SummarizerSetupError)],
)
def test_an_error_within_a_stream_is_told_by_its_type(over: Maker, error: str, kind: type[Exception]) -> None:
    with ScriptedModel(Reply(text=ANSWER[:50], error=error)) as model, pytest.raises(kind):
        asked(over(model.url))


@pytest.mark.parametrize("over", [over_openai, over_anthropic])
def test_a_refusal_is_no_answer(over: Maker) -> None:
    with (
        ScriptedModel(Reply(text="I can't help with that.", refusal=True)) as model,
        pytest.raises(MalformedDraftError, match="refusal"),
    ):
        asked(over(model.url))


@pytest.mark.parametrize("over", MAKERS, ids=lambda maker: maker.__name__)
def test_a_stream_that_just_ends_is_no_summary_even_when_its_text_is_whole(over: Maker) -> None:
    with ScriptedModel(Reply(text=ANSWER, finish=None)) as model, pytest.raises(MalformedDraftError, match="no finish"):
        asked(over(model.url))


def test_a_date_says_how_long_to_wait() -> None:
    headers = {"retry-after": "Wed, 21 Oct 2099 07:28:30 GMT", "date": "Wed, 21 Oct 2099 07:28:00 GMT"}
    with (
        ScriptedModel(Failure(status=429, headers=headers)) as model,
        pytest.raises(TransientSummarizerError) as caught,
    ):
        asked(over_openai(model.url))
    assert caught.value.retry_after_s is not None


def test_what_is_sent_is_the_prompt_and_the_schema_in_the_words_of_each_provider() -> None:
    prompt = write_prompt(REQUEST)
    with ScriptedModel(ANSWER) as model:
        asked(over_openai(model.url, options={"temperature": 0}))
        asked(over_anthropic(model.url, options={"temperature": 0}))
        asked(over_openai(model.url, json_schema=False))
        asked(over_pydantic_ai(model.url, settings={"temperature": 0.0}))
        first, second, bare, third = model.requests
    assert [message["content"] for message in first["messages"]] == [prompt.instructions, prompt.text]
    assert first["response_format"]["json_schema"]["schema"] == answer_schema(False)
    assert second["system"] == prompt.instructions
    assert second["messages"] == [{"role": "user", "content": prompt.text}]
    assert second["output_config"]["format"] == {"type": "json_schema", "schema": answer_schema(False)}
    assert (first["temperature"], second["temperature"], third["temperature"]) == (0, 0, 0)
    assert "response_format" not in bare
    assert third["response_format"]["json_schema"]["schema"] == answer_schema(False)
    assert [message["content"] for message in third["messages"]] == [prompt.instructions, prompt.text]


@pytest.mark.parametrize("over", [over_openai, over_anthropic, over_pydantic_ai], ids=lambda maker: maker.__name__)
def test_the_usage_that_is_reported_is_handed_on(over: Maker) -> None:
    told: list[tuple[int, int]] = []
    with ScriptedModel(ANSWER) as model:
        asked(over(model.url, report_usage=lambda counted, reported: told.append((counted, reported))))
    ((counted, reported),) = told
    assert counted == write_prompt(REQUEST).tokens
    assert 0.3 < counted / reported < 3


@pytest.mark.parametrize("over", MAKERS, ids=lambda maker: maker.__name__)
def test_without_a_budget_nothing_is_asked(over: Maker) -> None:
    with ScriptedModel(ANSWER) as model:
        assert asked(over(model.url), request(*EVENTS, budget=0)) == Draft(text="")
        assert model.requests == []


# --------------------------------------------------------------- setting up


def test_what_an_answer_depends_on_is_part_of_the_version() -> None:
    made = [
        OpenAISummarizer(MODEL, api_key="none", **options)
        for options in (
            {},
            {"base_url": "http://127.0.0.1:1/v1"},
            {"json_schema": False},
            {"options": {"temperature": 0}},
            {"options": {"temperature": 1}},
        )
    ]
    assert len({each.version for each in made}) == len(made)
    assert {each.name for each in made} == {f"openai:{MODEL}"}
    again = OpenAISummarizer(MODEL, api_key="other", options={}, deadline_s=1.0)
    assert again.version == made[0].version == "prompt-1,schema-1"


@pytest.mark.parametrize(
    "options",
    [
        {"deadline_s": 0},
        {"stall_s": -1},
        {"deadline_s": "long"},
        {"window_tokens": 1},
        {"window_tokens": 2.5},
        {"options": {"temperature": object()}},
    ],
)
def test_arguments_out_of_range_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        OpenAISummarizer(MODEL, api_key="none", **options)


def test_a_window_leaves_room_for_what_is_no_event() -> None:
    assert OpenAISummarizer(MODEL, api_key="none", window_tokens=100_000).window_tokens == 60_000


@pytest.mark.parametrize("make", [OpenAISummarizer, AnthropicSummarizer])
def test_a_missing_key_is_told_when_the_summarizer_is_made(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/nonexistent")
    with pytest.raises(SummarizerSetupError) as caught:
        make(MODEL)
    assert "API_KEY" in caught.value.hint


@pytest.mark.parametrize("model", ["", "x" * 300, None])
def test_a_model_has_a_name_that_can_be_kept(model: Any) -> None:
    with pytest.raises(InvalidInputError):
        OpenAISummarizer(model, api_key="none")


def test_a_model_that_pydantic_ai_does_not_know_is_refused() -> None:
    with pytest.raises(SummarizerSetupError, match="can't be made"):
        PydanticAISummarizer("nobody:nothing")
    with pytest.raises(InvalidInputError):
        PydanticAISummarizer(Agent())
    with pytest.raises(InvalidInputError):
        LangChainSummarizer("gpt")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("package", "call", "extra"),
    [
        ("openai", "OpenAISummarizer('m')", "openai"),
        ("anthropic", "AnthropicSummarizer('m')", "anthropic"),
        ("langchain_core", "LangChainSummarizer('m')", "langchain"),
        ("pydantic_ai", "PydanticAISummarizer('m')", "pydantic-ai"),
    ],
)
def test_a_missing_package_is_told_with_its_extra_and_importing_strandline_needs_none(
    package: str, call: str, extra: str
) -> None:
    program = (
        f"import sys; sys.modules[{package!r}] = None\nimport strandline\n"
        "loaded = {name for name, module in sys.modules.items() if module}\n"
        "assert not {'openai', 'anthropic', 'langchain_core', 'pydantic_ai', 'asyncio'} & loaded\n"
        f"try: strandline.{call}\nexcept strandline.InvalidInputError as error: print(error.hint)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert f"[{extra}]" in done.stdout
