"""Several summarizers as one: where one gives no draft, the next is asked."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Final

from strandline.codec import text_digest
from strandline.errors import (
    InvalidInputError,
    MalformedDraftError,
    PromptTooLongError,
    StrandlineError,
    SummarizerError,
    SummarizerSetupError,
    TransientSummarizerError,
)
from strandline.limits import CHAIN_SUMMARIZERS_MAX, NAME_CHARS_MAX
from strandline.model.candidate import Draft
from strandline.ports import AsyncSummarizer, Summarizer, SummaryRequest
from strandline.summarizers.callable import as_summarizer

VERSION_DIGEST_CHARS: Final = 16
_FINISHED: Final = "stop"


class ChainSummarizer:
    """Asks its summarizers in turn until one gives a finished draft; `Draft.model` says which one did, if it says.

    What the chain raises when none does is the most hopeful of what they raised, so that a rate limit of one is waited
    for though another's key is wrong. A summarizer that blocks is called in a thread. Beside a deadline that is shorter
    than the ones of its summarizers together, the last of them may never be asked.

    Args:
        first, then: what `compact` takes for a summarizer, each; None is the extractive one, which always answers.

    Raises:
        InvalidInputError: one of them is no summarizer, or there are more than CHAIN_SUMMARIZERS_MAX.
    """

    def __init__(self, first: object, *then: object) -> None:
        self._members = tuple(as_summarizer(thing) for thing in (first, *then))
        if len(self._members) > CHAIN_SUMMARIZERS_MAX:
            raise InvalidInputError(
                f"a chain has at most {CHAIN_SUMMARIZERS_MAX} summarizers, not {len(self._members)}"
            )
        identities = [f"{member.name}@{member.version}" for member in self._members]
        self.name = f"chain({' > '.join(member.name for member in self._members)})"[:NAME_CHARS_MAX]
        self.version = text_digest(b"", *identities).hex()[:VERSION_DIGEST_CHARS]
        windows = [member.window_tokens for member in self._members if member.window_tokens is not None]
        self.window_tokens = min(windows, default=None)

    async def summarize(self, request: SummaryRequest) -> Draft:
        """Return the first finished draft.

        Raises:
            SummarizerError: none of them gave one; of several errors the most hopeful.
            SummarizerSetupError: none of them can work as it is set up.
        """
        failures: list[Exception] = []
        for member in self._members:
            try:
                return _finished(await _asked(member, request), member.name, request)
            except (SummarizerError, SummarizerSetupError, TimeoutError, ConnectionError) as error:
                failures.append(error)
        raise _together(failures) from failures[0]


async def _asked(member: Summarizer | AsyncSummarizer, request: SummaryRequest) -> object:
    if inspect.iscoroutinefunction(member.summarize):
        return await member.summarize(request)
    import asyncio

    answer: object = await asyncio.to_thread(member.summarize, request)
    return await answer if inspect.isawaitable(answer) else answer


def _finished(answer: object, name: str, request: SummaryRequest) -> Draft:
    if not isinstance(answer, Draft):
        raise MalformedDraftError(f"{name} gave a {type(answer).__name__}, which is no draft")
    if answer.finish != _FINISHED:
        raise MalformedDraftError(f"{name} gave a draft that ended with {answer.finish!r}")
    if not answer.text.strip() and request.budget_tokens > 0:
        raise MalformedDraftError(f"{name} gave an empty draft")
    return answer


def _together(failures: Sequence[Exception]) -> StrandlineError:
    """Return one error for all, by what may yet become of them: a wait, smaller parts, a stricter form, a person."""
    said = "; ".join(str(error) for error in failures)
    passing = [error for error in failures if isinstance(error, TransientSummarizerError | OSError)]
    if passing:
        waits = [getattr(error, "retry_after_s", None) or 0.0 for error in passing]
        return TransientSummarizerError(said, retry_after_s=min(waits) or None)
    if any(isinstance(error, PromptTooLongError) for error in failures):
        return PromptTooLongError(said)
    if any(isinstance(error, SummarizerError) for error in failures):
        return MalformedDraftError(said)
    return SummarizerSetupError(said)
