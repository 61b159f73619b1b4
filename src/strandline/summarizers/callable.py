"""Any function as a summarizer."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from strandline.errors import InvalidInputError, MalformedDraftError, TransientSummarizerError
from strandline.limits import NAME_CHARS_MAX
from strandline.model.candidate import Draft
from strandline.ports import AsyncSummarizer, Summarizer, SummaryRequest
from strandline.summarizers.extractive import ExtractiveSummarizer


class CallableSummarizer:
    """Drafts with a function that returns the text, or a Draft that also says how it ended.

    A TimeoutError or ConnectionError of the function is worth another try. Any other exception is a fault of the
    function, and passes as it is, so that its author sees it; the active summary is untouched.

    Args:
        function: gets the request; stays within `request.budget_tokens`.
        name: part of the candidate's identity; by default the function's module and qualified name.
        version: change it when the output changes.
        window_tokens: the most that it can be shown; None: no bound.

    Raises:
        InvalidInputError: not callable, a coroutine function, an empty or overlong name, a window below 1.
    """

    def __init__(
        self,
        function: Callable[[SummaryRequest], str | Draft],
        *,
        name: str | None = None,
        version: str = "1",
        window_tokens: int | None = None,
    ) -> None:
        if _is_async(function):
            raise InvalidInputError(f"{function!r} is awaited: use AsyncCallableSummarizer")
        self._function = function
        self.name, self.version, self.window_tokens = _identity(function, name, version, window_tokens)

    def summarize(self, request: SummaryRequest) -> Draft:
        """Return the function's draft.

        Raises:
            TransientSummarizerError: it ended by TimeoutError or ConnectionError.
            MalformedDraftError: it returned neither str nor Draft.
        """
        with _mapped_errors(self.name):
            return _as_draft(self._function(request), self.name)


class AsyncCallableSummarizer:
    """As CallableSummarizer, for a coroutine function."""

    def __init__(
        self,
        function: Callable[[SummaryRequest], Awaitable[str | Draft]],
        *,
        name: str | None = None,
        version: str = "1",
        window_tokens: int | None = None,
    ) -> None:
        self._function = function
        self.name, self.version, self.window_tokens = _identity(function, name, version, window_tokens)

    async def summarize(self, request: SummaryRequest) -> Draft:
        """As CallableSummarizer.summarize, awaited."""
        with _mapped_errors(self.name):
            answer: object = self._function(request)
            if inspect.isawaitable(answer):
                answer = await answer
            return _as_draft(answer, self.name)


def as_summarizer(thing: object = None) -> Summarizer | AsyncSummarizer:
    """Return the summarizer that is meant: None for the extractive one, a summarizer, or a function, awaited or not.

    Raises:
        InvalidInputError: something else.
    """
    if thing is None:
        return ExtractiveSummarizer()
    if isinstance(thing, type):
        raise InvalidInputError(f"{thing.__qualname__} is a class: give an object made of it")
    if isinstance(thing, Summarizer | AsyncSummarizer):
        _check_name("name", thing.name)
        _check_name("version", thing.version)
        _check_window(thing.window_tokens)
        return thing
    if not callable(thing):
        raise InvalidInputError(f"a summarizer is a Summarizer or a function from a request to text, not {thing!r}")
    return AsyncCallableSummarizer(thing) if _is_async(thing) else CallableSummarizer(thing)


def qualified_name(function: object) -> str:
    """Return `module:qualname` of a function, of the function inside a partial, or of a callable object's class.

    Lambdas of one scope share a name, so theirs has the line too.
    """
    while isinstance(function, functools.partial):
        function = function.func
    named = function if hasattr(function, "__qualname__") else type(function)
    module = getattr(named, "__module__", None) or "builtins"
    name = f"{module}:{getattr(named, '__qualname__', '?')}"
    code = getattr(named, "__code__", None)
    return f"{name}:{code.co_firstlineno}" if "<lambda>" in name and code is not None else name


def _is_async(function: object) -> bool:
    call = getattr(type(function), "__call__", None)  # noqa: B004
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


def _identity(
    function: object, name: str | None, version: str, window_tokens: int | None
) -> tuple[str, str, int | None]:
    """Check what goes into a candidate's identity, and fill in the name."""
    if not callable(function):
        raise InvalidInputError(f"a summarizer is a Summarizer or a function from a request to text, not {function!r}")
    name = qualified_name(function)[-NAME_CHARS_MAX:] if name is None else name
    _check_name("name", name)
    _check_name("version", version)
    _check_window(window_tokens)
    return name, version, window_tokens


def _check_name(what: str, value: object) -> None:
    if not isinstance(value, str) or not 0 < len(value) <= NAME_CHARS_MAX:
        raise InvalidInputError(f"a summarizer's {what} has 1 to {NAME_CHARS_MAX} characters; it is {value!r}")


def _check_window(value: object) -> None:
    if value is not None and (not isinstance(value, int) or value < 1):
        raise InvalidInputError(f"a summarizer's window_tokens is None or at least 1; it is {value!r}")


@contextmanager
def _mapped_errors(name: str) -> Iterator[None]:
    try:
        yield
    except (TimeoutError, ConnectionError) as error:
        raise TransientSummarizerError(f"{name}: {type(error).__name__}: {error}") from error


def _as_draft(answer: object, name: str) -> Draft:
    if isinstance(answer, Draft):
        return answer
    if isinstance(answer, str):
        return Draft(text=answer, finish="stop")
    if inspect.iscoroutine(answer):
        answer.close()  # else Python warns later, far from the cause
        raise MalformedDraftError(f"{name} returned a coroutine: wrap it in AsyncCallableSummarizer")
    raise MalformedDraftError(f"{name} returned {type(answer).__name__}, neither str nor Draft")
