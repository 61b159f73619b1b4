"""Law: a chain asks the next where one gives no draft, and its failure is the most hopeful of theirs (C8)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import strandline
from strandline.errors import (
    InvalidInputError,
    MalformedDraftError,
    PromptTooLongError,
    StrandlineError,
    SummarizerSetupError,
    TransientSummarizerError,
)
from strandline.limits import CHAIN_SUMMARIZERS_MAX
from strandline.model.candidate import Draft
from strandline.summarizers import CallableSummarizer, ChainSummarizer, ExtractiveSummarizer, as_summarizer
from tests.unit.test_model_prompt import event, request

REQUEST = request(event(1, "Build it."), event(2, "It is built."))


def raising(error: Exception) -> Callable[[object], str]:
    def summarize(request: object) -> str:
        raise error

    return summarize


async def awaited(request: object) -> str:
    await asyncio.sleep(0)
    return "Awaited."


def draft_of(*members: Any) -> Draft:
    return asyncio.run(ChainSummarizer(*members).summarize(REQUEST))


@pytest.mark.parametrize(
    "failing",
    [
        raising(TransientSummarizerError("slow")),
        raising(TimeoutError("slow")),
        raising(PromptTooLongError("long")),
        raising(MalformedDraftError("bad")),
        raising(SummarizerSetupError("no key")),
        lambda request: "",
        lambda request: Draft(text="cut o", finish="length"),
        lambda request: 5,
    ],
)
def test_the_next_is_asked_where_one_gives_no_draft(failing: Any) -> None:
    assert draft_of(failing, awaited, raising(AssertionError("never asked"))).text == "Awaited."


def test_a_fault_of_a_function_passes_as_it_is() -> None:
    with pytest.raises(KeyError):
        draft_of(raising(KeyError("a fault")), awaited)


def test_the_extractive_one_is_none() -> None:
    assert draft_of(raising(TimeoutError()), None).text == ExtractiveSummarizer().summarize(REQUEST).text


@pytest.mark.parametrize(
    ("errors", "kind"),
    [
        (
            [SummarizerSetupError("a"), TransientSummarizerError("b"), MalformedDraftError("c")],
            TransientSummarizerError,
        ),
        ([MalformedDraftError("a"), ConnectionError("b")], TransientSummarizerError),
        ([MalformedDraftError("a"), PromptTooLongError("b"), SummarizerSetupError("c")], PromptTooLongError),
        ([SummarizerSetupError("a"), MalformedDraftError("b")], MalformedDraftError),
        ([SummarizerSetupError("a"), SummarizerSetupError("b")], SummarizerSetupError),
    ],
)
def test_its_failure_is_the_most_hopeful_and_tells_all(errors: list[Exception], kind: type[StrandlineError]) -> None:
    with pytest.raises(StrandlineError) as caught:
        draft_of(*map(raising, errors))
    assert type(caught.value) is kind
    assert all(str(error) in str(caught.value) for error in errors)


def test_the_shortest_wait_that_was_asked_for_counts() -> None:
    errors = [TransientSummarizerError("a", retry_after_s=9.0), TransientSummarizerError("b", retry_after_s=4.0)]
    with pytest.raises(TransientSummarizerError) as caught:
        draft_of(*map(raising, errors))
    assert caught.value.retry_after_s == 4.0


def test_its_identity_is_that_of_its_members_and_its_window_the_smallest() -> None:
    small = CallableSummarizer(lambda request: "a", name="small", window_tokens=100)
    large = CallableSummarizer(lambda request: "a", name="large", window_tokens=1_000)
    changed = CallableSummarizer(lambda request: "a", name="small", version="2", window_tokens=100)
    chain = ChainSummarizer(large, small)
    assert (chain.name, chain.window_tokens) == ("chain(large > small)", 100)
    assert (
        len({ChainSummarizer(*members).version for members in [(large, small), (small, large), (large, changed)]}) == 3
    )
    assert ChainSummarizer(large).version == ChainSummarizer(large).version
    assert as_summarizer(chain) is chain


def test_what_is_no_summarizer_is_refused() -> None:
    with pytest.raises(InvalidInputError):
        ChainSummarizer(5)
    with pytest.raises(InvalidInputError, match=str(CHAIN_SUMMARIZERS_MAX)):
        ChainSummarizer(*[None] * (CHAIN_SUMMARIZERS_MAX + 1))


def test_both_drivers_run_it() -> None:
    async def through_the_awaiting_door() -> str:
        async with strandline.aopen(":memory:") as db:
            wf = db.tenant("acme").workflow("chain")
            await wf.append([strandline.note(f"Step {number} is done.") for number in range(99)])
            return (await wf.compact(400, ChainSummarizer(raising(TimeoutError()), None))).outcome.value

    with strandline.open(":memory:") as db:
        wf = db.tenant("acme").workflow("chain")
        wf.append([strandline.note(f"Step {number} is done.") for number in range(99)])
        assert wf.compact(400, ChainSummarizer(raising(TimeoutError()), None)).outcome == "activated"
    assert asyncio.run(through_the_awaiting_door()) == "activated"
