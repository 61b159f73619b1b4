"""Law: any function is a summarizer, and its identity is never empty.

Passing failures are told from faults of the function, which pass as they are; what is no draft is malformed.
"""

from __future__ import annotations

import asyncio
import functools

import pytest

from strandline.errors import InvalidInputError, MalformedDraftError, SummarizerError, TransientSummarizerError
from strandline.model.candidate import Draft
from strandline.ports import AsyncSummarizer, Summarizer, SummaryRequest
from strandline.summarizers import (
    AsyncCallableSummarizer,
    BytesPerToken,
    CallableSummarizer,
    ExtractiveSummarizer,
    as_summarizer,
)

REQUEST = SummaryRequest(from_seq=1, through_seq=1, budget_tokens=100, events=(), counter=BytesPerToken())


def short(request: SummaryRequest) -> str:
    return f"through {request.through_seq}"


async def awaited(request: SummaryRequest) -> str:
    await asyncio.sleep(0)
    return short(request)


class Callable:
    def __call__(self, request: SummaryRequest) -> str:
        return short(request)


class AwaitedCallable:
    async def __call__(self, request: SummaryRequest) -> str:
        return short(request)


def run(summarizer: Summarizer | AsyncSummarizer) -> Draft:
    answer = summarizer.summarize(REQUEST)
    return answer if isinstance(answer, Draft) else asyncio.run(answer)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (short, "short"),
        (functools.partial(short), "short"),
        (Callable(), "Callable"),
        (awaited, "awaited"),
        (functools.partial(awaited), "awaited"),
        (AwaitedCallable(), "AwaitedCallable"),
        (lambda request: f"through {request.through_seq}", "<lambda>"),
    ],
)
def test_any_function_becomes_a_summarizer_with_a_name(function: object, name: str) -> None:
    summarizer = as_summarizer(function)
    module, _, qualname = summarizer.name.partition(":")
    assert module == __name__
    assert name in qualname  # a lambda's line follows it: lambdas of one scope share a name
    assert (summarizer.version, summarizer.window_tokens) == ("1", None)
    assert run(summarizer) == Draft(text="through 1", finish="stop")


def test_name_version_and_window_can_be_given() -> None:
    summarizer = CallableSummarizer(short, name="mine", version="7", window_tokens=9)
    assert (summarizer.name, summarizer.version, summarizer.window_tokens) == ("mine", "7", 9)
    assert as_summarizer(summarizer) is summarizer
    assert isinstance(summarizer, Summarizer)


def test_nothing_means_the_extractive_one() -> None:
    assert isinstance(as_summarizer(), ExtractiveSummarizer)


def test_a_draft_is_kept_as_it_is() -> None:
    draft = Draft(text="cut off", finish="length", model="m-1")
    assert CallableSummarizer(lambda _: draft).summarize(REQUEST) is draft


@pytest.mark.parametrize("wrong", [4, "text", [], ExtractiveSummarizer, object()])
def test_the_rest_is_refused(wrong: object) -> None:
    with pytest.raises(InvalidInputError):
        as_summarizer(wrong)


@pytest.mark.parametrize(
    "wrong", [{"name": ""}, {"name": "x" * 201}, {"version": ""}, {"window_tokens": 0}, {"window_tokens": "9"}]
)
def test_an_identity_that_identifies_nothing_is_refused(wrong: dict[str, object]) -> None:
    for kind, function in ((CallableSummarizer, short), (AsyncCallableSummarizer, awaited)):
        with pytest.raises(InvalidInputError):
            kind(function, **wrong)  # type: ignore[arg-type]
    summarizer = CallableSummarizer(short)
    for field, value in wrong.items():
        setattr(summarizer, field, value)
    with pytest.raises(InvalidInputError):
        as_summarizer(summarizer)


def test_a_coroutine_function_is_refused_where_it_would_not_be_awaited() -> None:
    with pytest.raises(InvalidInputError, match="AsyncCallableSummarizer"):
        CallableSummarizer(awaited)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [None, 4, b"bytes", ["text"]])
def test_what_is_no_draft_is_malformed(wrong: object) -> None:
    async def later(_: SummaryRequest) -> object:
        return wrong

    for summarizer in (CallableSummarizer(lambda _: wrong), AsyncCallableSummarizer(later)):  # type: ignore[arg-type, return-value]
        with pytest.raises(MalformedDraftError, match=type(wrong).__name__):
            run(summarizer)


def test_a_coroutine_that_nobody_awaits_is_malformed_and_closed() -> None:
    with pytest.raises(MalformedDraftError, match="coroutine"):  # warnings are errors: it is closed
        CallableSummarizer(lambda _: awaited(REQUEST)).summarize(REQUEST)  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize(
    ("raised", "seen"),
    [
        (TimeoutError("slow"), TransientSummarizerError),
        (ConnectionResetError("gone"), TransientSummarizerError),
        (TransientSummarizerError("busy", retry_after_s=3), TransientSummarizerError),
        (MalformedDraftError("half"), MalformedDraftError),
        (SummarizerError("no"), SummarizerError),
        (KeyError("typo"), KeyError),
        (OSError("disk"), OSError),
    ],
)
def test_only_a_passing_failure_is_transient(raised: Exception, seen: type[Exception]) -> None:
    def fails(_: SummaryRequest) -> str:
        raise raised

    async def fails_later(request: SummaryRequest) -> str:
        return fails(request)

    for summarizer in (CallableSummarizer(fails), AsyncCallableSummarizer(fails_later)):
        with pytest.raises(seen) as caught:
            run(summarizer)
        assert type(caught.value) is seen
        assert caught.value is raised or caught.value.__cause__ is raised
