"""The two drivers of the engine's generators: one blocks, one awaits (DESIGN §3).

A verb is a generator that yields only what must be waited for. Its database steps run between the yields; the awaiting
driver runs them in a thread, so that no event loop is blocked.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import threading
from collections.abc import Callable, Coroutine, Generator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from strandline.errors import TransientSummarizerError
from strandline.model.candidate import Draft
from strandline.ports import AsyncSummarizer, Clock, Summarizer, SummaryRequest

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class Summarize:
    """Wait for a draft. `deadline_s` None: no deadline, for a summarizer that only computes."""

    summarizer: Summarizer | AsyncSummarizer
    request: SummaryRequest
    deadline_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sleep:
    """Wait before another try."""

    seconds: float


Wait = Summarize | Sleep
Verb = Generator[Wait, Any, T]


@dataclass(frozen=True, slots=True)
class Done(Generic[T]):
    """A verb's result. StopIteration can't cross a Future, so it never leaves `_advance`."""

    value: T


def _advance(step: Callable[[Any], Wait], argument: object) -> Wait | Done[Any]:
    try:
        return step(argument)
    except StopIteration as stop:
        return Done(stop.value)


def run(verb: Verb[T], clock: Clock) -> T:
    """Drive a verb in this thread."""
    state = _advance(verb.send, None)
    while not isinstance(state, Done):
        try:
            answer = _wait(state, clock)
        except BaseException as error:  # noqa: BLE001  the verb settles its attempt, then re-raises
            state = _advance(verb.throw, error)
        else:
            state = _advance(verb.send, answer)
    result: T = state.value
    return result


def _wait(wait: Wait, clock: Clock) -> Draft | None:
    if isinstance(wait, Sleep):
        clock.sleep_s(wait.seconds)
        return None
    summarizer, request = wait.summarizer, wait.request
    if wait.deadline_s is None:
        return _summarize(summarizer, request)
    return _with_deadline(lambda: _summarize(summarizer, request), wait.deadline_s)


def _summarize(summarizer: Summarizer | AsyncSummarizer, request: SummaryRequest) -> Draft:
    answer = summarizer.summarize(request)
    return asyncio.run(_as_coroutine(answer)) if not isinstance(answer, Draft) else answer


async def _as_coroutine(answer: Coroutine[Any, Any, Draft]) -> Draft:
    return await answer


def _with_deadline(call: Callable[[], R], deadline_s: float) -> R:
    """Run a call in a thread of its own and wait so long; what comes later is nobody's.

    Raises:
        TransientSummarizerError: it took longer.
    """
    outcome: list[R] = []
    failure: list[BaseException] = []
    context = contextvars.copy_context()

    def work() -> None:
        try:
            outcome.append(context.run(call))
        except BaseException as error:  # noqa: BLE001  handed over to the waiting thread
            failure.append(error)

    thread = threading.Thread(target=work, name="strandline-summarizer", daemon=True)
    thread.start()
    thread.join(deadline_s)
    if failure:
        raise failure[0]
    if not outcome:
        raise TransientSummarizerError(f"the summarizer gave no draft within {deadline_s:g} s")
    return outcome[0]


async def arun(verb: Verb[T], clock: Clock) -> T:
    """Drive a verb, awaiting what it waits for; its database steps run in a thread.

    When the caller is cancelled, the step in progress settles, the verb releases what it holds, and the cancellation
    goes on.
    """
    step: Callable[[Any], Wait] = verb.send
    argument: object = None
    while True:
        try:
            state = await _step(step, argument)
        except asyncio.CancelledError as cancelled:
            if inspect.getgeneratorstate(verb) == inspect.GEN_SUSPENDED:
                await _step(verb.throw, cancelled)
            raise
        if isinstance(state, Done):
            result: T = state.value
            return result
        try:
            answer = await _await(state, clock)
        except BaseException as error:  # noqa: BLE001  the verb settles its attempt, then re-raises
            step, argument = verb.throw, error
        else:
            step, argument = verb.send, answer


async def _step(step: Callable[[Any], Wait], argument: object) -> Wait | Done[Any]:
    """Run one step in a thread. A cancellation waits for it: a commit in progress is never left half known."""
    task = asyncio.ensure_future(asyncio.to_thread(_advance, step, argument))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([task])
        raise


async def _await(wait: Wait, clock: Clock) -> Draft | None:
    if isinstance(wait, Sleep):
        await asyncio.to_thread(clock.sleep_s, wait.seconds)
        return None
    summarizer, request = wait.summarizer, wait.request
    if isinstance(summarizer, AsyncSummarizer) and asyncio.iscoroutinefunction(summarizer.summarize):
        drafting: Coroutine[Any, Any, Draft] = summarizer.summarize(request)
    else:
        drafting = asyncio.to_thread(_summarize, summarizer, request)
    try:
        return await asyncio.wait_for(drafting, wait.deadline_s)
    except TimeoutError as error:
        if wait.deadline_s is None:
            raise
        raise TransientSummarizerError(f"the summarizer gave no draft within {wait.deadline_s:g} s") from error
