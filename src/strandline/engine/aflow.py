"""The driver that awaits: a verb's database steps run in a thread, so that no event loop is blocked (DESIGN §3)."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import threading
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

from strandline.engine.flow import (
    Consult,
    Done,
    NotBegunError,
    Probe,
    Run,
    Sleep,
    Told,
    Verb,
    Wait,
    advance,
    checked,
    is_awaited,
    summarize,
    told,
    told_error,
)
from strandline.errors import TransientSummarizerError
from strandline.model.candidate import Draft
from strandline.ports import AsyncSummarizer, Clock

T = TypeVar("T")
R = TypeVar("R")


async def arun(verb: Verb[T], clock: Clock) -> T:
    """Drive a verb, awaiting what it waits for; its database steps run in a thread.

    When the caller is cancelled, the step in progress settles, the verb releases what it holds, and the cancellation
    goes on. What it would have run after that step is not begun.
    """
    step: Callable[[Any], Wait] = verb.send
    argument: object = None
    context = contextvars.copy_context()  # one for all steps, whichever thread they run in: spans nest in it

    def in_thread(step: Callable[[Any], Wait], argument: object) -> asyncio.Future[Wait | Done[Any]]:
        return asyncio.get_running_loop().run_in_executor(None, context.run, advance, step, argument)

    while True:
        task = in_thread(step, argument)
        try:
            state = await _settled(task)
        except asyncio.CancelledError as cancelled:
            if inspect.getgeneratorstate(verb) == inspect.GEN_SUSPENDED:
                thrown = NotBegunError() if isinstance(task.result(), Run) else cancelled
                with contextlib.suppress(NotBegunError):
                    await _settled(in_thread(verb.throw, thrown))
            raise
        if isinstance(state, Done):
            result: T = state.value
            return result
        try:
            answer = await _in_context(_await(state, clock), context.copy())
        except BaseException as error:  # noqa: BLE001  the verb settles its attempt, then re-raises
            step, argument = verb.throw, error
        else:
            step, argument = verb.send, answer


async def _in_context(waiting: Coroutine[Any, Any, R], context: contextvars.Context) -> R:
    """Await something in a context, so that what it begins is part of the phase that waits for it."""
    return await asyncio.get_running_loop().create_task(waiting, context=context)


async def _settled(task: asyncio.Future[Wait | Done[Any]]) -> Wait | Done[Any]:
    """Wait for a step. A cancellation waits for it, too: a commit in progress is never left half known."""
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([task])
        raise


async def _await(wait: Wait, clock: Clock) -> Draft | Told | None:
    if isinstance(wait, Sleep):
        await asyncio.to_thread(clock.sleep_s, wait.seconds)
        return None
    if isinstance(wait, Run | Probe):
        return await _told(wait.call)
    if isinstance(wait, Consult):
        try:
            return await asyncio.wait_for(_told(wait.call), wait.deadline_s)
        except TimeoutError as error:
            return told_error(error)
    summarizer, request = wait.summarizer, wait.request
    if isinstance(summarizer, AsyncSummarizer) and asyncio.iscoroutinefunction(summarizer.summarize):
        drafting: Coroutine[Any, Any, Draft] = summarizer.summarize(request)
    else:
        drafting = _in_own_thread(lambda: summarize(summarizer, request))
    try:
        return checked(await asyncio.wait_for(drafting, wait.deadline_s))
    except TimeoutError as error:
        if wait.deadline_s is None:
            raise
        raise TransientSummarizerError(f"the summarizer gave no draft within {wait.deadline_s:g} s") from error


async def _told(call: Callable[[], object]) -> Told:
    """Make a call, awaited or in a thread, and tell what came of it. A cancellation is thrown on: nobody waits."""
    if not is_awaited(call):
        return await _in_own_thread(lambda: told(call))
    try:
        coroutine: Any = call()
        return Told(value=await coroutine)
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # noqa: BLE001  the verb settles the effect, then re-raises
        return told_error(error)


async def _in_own_thread(call: Callable[[], R]) -> R:
    """Run a call in a thread of its own: one that is stuck must not hold a thread that others wait for."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[R] = loop.create_future()

    def settle(set_outcome: Callable[[], None]) -> None:
        if not future.done():  # else nobody waits any more
            set_outcome()

    def work() -> None:
        try:
            answer = call()
        except BaseException as error:  # noqa: BLE001  handed over to the waiting loop
            set_outcome = partial(future.set_exception, error)
        else:
            set_outcome = partial(future.set_result, answer)
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, set_outcome)

    context = contextvars.copy_context()
    threading.Thread(target=lambda: context.run(work), name="strandline-call", daemon=True).start()
    return await future
