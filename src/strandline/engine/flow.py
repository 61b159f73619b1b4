"""What the engine's generators wait for, and the driver that blocks (DESIGN §3). `aflow` has the one that awaits.

A verb is a generator that yields only what must be waited for; its database steps run between the yields.
"""

from __future__ import annotations

import contextvars
import inspect
import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from strandline.codec import storable
from strandline.errors import MalformedDraftError, TransientSummarizerError
from strandline.limits import DRAFT_BYTES_MAX, DRAFT_CLAIMS_MAX, FAILURE_CHARS_MAX
from strandline.model.candidate import CitedClaim, Draft
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Wait for what runs an effect, outside any transaction. It has no deadline: what is cut off may have happened."""

    call: Callable[[], object]


class NotBegunError(Exception):
    """Thrown into a verb that waits for a `Run`: it was not begun, and nobody waits any more. Engine-internal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """Wait for what tells whether an effect happened, outside any transaction."""

    call: Callable[[], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What came of a call: its value, or what it raised. What is thrown into a verb instead means: nobody waits."""

    value: object = None
    error: BaseException | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Consult:
    """Wait for what a judge has against a draft, outside any transaction; what it says or raises comes as `Told`."""

    call: Callable[[], object]
    deadline_s: float


Wait = Summarize | Sleep | Run | Probe | Consult
Verb = Generator[Wait, Any, T]


@dataclass(frozen=True, slots=True)
class Done(Generic[T]):
    """A verb's result. StopIteration can't cross a Future, so it never leaves `advance`."""

    value: T


def advance(step: Callable[[Any], Wait], argument: object) -> Wait | Done[Any]:
    """Take one step of a verb."""
    try:
        return step(argument)
    except StopIteration as stop:
        return Done(stop.value)


def run(verb: Verb[T], clock: Clock) -> T:
    """Drive a verb in this thread."""
    return drive(verb, lambda wait: _wait(wait, clock))


def drive(verb: Verb[T], answer_to: Callable[[Wait], object]) -> T:
    """Drive a verb, with what answers its waits."""
    state = advance(verb.send, None)
    while not isinstance(state, Done):
        try:
            answer = answer_to(state)
        except BaseException as error:  # noqa: BLE001  the verb settles its attempt, then re-raises
            state = advance(verb.throw, error)
        else:
            state = advance(verb.send, answer)
    result: T = state.value
    return result


def _wait(wait: Wait, clock: Clock) -> Draft | Told | None:
    if isinstance(wait, Sleep):
        clock.sleep_s(wait.seconds)
        return None
    if isinstance(wait, Run | Probe):
        return told(wait.call)
    if isinstance(wait, Consult):
        call = wait.call
        return told(lambda: _with_deadline(lambda: awaited(call()), wait.deadline_s))
    summarizer, request = wait.summarizer, wait.request
    if isinstance(summarizer, AsyncSummarizer) and inspect.iscoroutinefunction(summarizer.summarize):
        from strandline.engine.shared_loop import await_in_shared_loop  # imports asyncio, see `awaited`

        return checked(await_in_shared_loop(summarizer.summarize(request), wait.deadline_s))
    if wait.deadline_s is None:
        return summarize(summarizer, request)
    return _with_deadline(lambda: summarize(summarizer, request), wait.deadline_s)


def summarize(summarizer: Summarizer | AsyncSummarizer, request: SummaryRequest) -> Draft:
    """Call a summarizer in this thread; one that is awaited gets an event loop of its own."""
    try:
        answer = summarizer.summarize(request)
    except StopIteration as error:  # can't be thrown into a verb
        raise MalformedDraftError("the summarizer raised StopIteration") from error
    return checked(awaited(answer))


def told(call: Callable[[], object]) -> Told:
    """Make a call in this thread, and tell what came of it."""
    try:
        return Told(value=awaited(call()))
    except BaseException as error:  # noqa: BLE001  the verb settles the effect, then re-raises
        return told_error(error)


def told_error(error: BaseException) -> Told:
    """Tell what a call raised; StopIteration can't leave a verb as it is."""
    if isinstance(error, StopIteration):
        renamed = RuntimeError("it raised StopIteration")
        renamed.__cause__ = error
        return Told(error=renamed)
    return Told(error=error)


def awaited(answer: object) -> object:
    """Return an answer; one that is awaited gets an event loop of its own."""
    if not inspect.isawaitable(answer):
        return answer
    import asyncio  # a tenth of the start-up time of a command, and seldom needed

    async def waiting() -> object:
        return await answer

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(waiting())
    return _with_deadline(lambda: asyncio.run(waiting()), None)  # this thread's loop runs already


def is_awaited(call: object) -> bool:
    """Tell whether a call is a coroutine function, or an object that is called as one."""
    return inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(getattr(call, "__call__", None))  # noqa: B004


def checked(answer: object) -> Draft:
    """Return what a summarizer gave, if it is a draft.

    Raises:
        MalformedDraftError: it is something else, a draft of something else than text and claims, or of more than
            DRAFT_CLAIMS_MAX of these.
    """
    if not isinstance(answer, Draft) or not all(type(p) is str for p in (answer.text, answer.finish, answer.model)):
        raise MalformedDraftError(f"the summarizer gave a {type(answer).__name__} that is no draft of text")
    if not isinstance(answer.claims, tuple) or not all(map(_is_claim, answer.claims)):
        raise MalformedDraftError("the summarizer gave a draft whose claims are no CitedClaims of text and numbers")
    if len(answer.claims) > DRAFT_CLAIMS_MAX:
        raise MalformedDraftError(f"the summarizer gave {len(answer.claims):,} claims; at most {DRAFT_CLAIMS_MAX:,}")
    claims = (replace(claim, text=storable(claim.text, DRAFT_BYTES_MAX)) for claim in answer.claims)
    return replace(answer, model=storable(answer.model, FAILURE_CHARS_MAX), claims=tuple(claims))


def _is_claim(claim: object) -> bool:
    if not isinstance(claim, CitedClaim) or type(claim.text) is not str or not isinstance(claim.seqs, tuple):
        return False
    return all(type(seq) is int for seq in claim.seqs)


def _with_deadline(call: Callable[[], R], deadline_s: float | None) -> R:
    """Run a call in a thread of its own and wait so long; what comes later is nobody's. None: wait for ever.

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
    if not outcome and deadline_s is not None:
        raise TransientSummarizerError(f"the summarizer gave no draft within {deadline_s:g} s")
    return outcome[0]
