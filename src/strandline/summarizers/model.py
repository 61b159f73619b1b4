"""What all summarizers over models share: ask, read the answer piece by piece under two clocks, make a draft of it.

A provider's module yields the pieces of its stream; that is all that differs. A stream that ends is not a finished
summary (DESIGN §3): only a finish reason that says so is, and each provider's module says which do.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final

from strandline.codec import text_digest
from strandline.errors import (
    InvalidInputError,
    MalformedDraftError,
    StrandlineError,
    TransientSummarizerError,
    extra_hint,
)
from strandline.limits import DRAFT_BYTES_MAX, MODEL_EVENTS_SHARE, NAME_CHARS_MAX
from strandline.model.candidate import Draft
from strandline.ports import SummaryRequest
from strandline.summarizers.answer import read_answer
from strandline.summarizers.prompt import PROMPT_VERSION, SCHEMA_VERSION, Prompt, write_prompt
from strandline.summarizers.provider_errors import meaning_of

SETTINGS_DIGEST_CHARS: Final = 8

ReportUsage = Callable[[int, int], None]
"""Is told the tokens of a prompt as the store's counter counts them, and as the provider does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """What came next of an answer. Any piece is progress, one without text too: the model is at work."""

    text: str = ""
    finish: str | None = None  # why the answer ended, in the provider's word
    model: str | None = None  # which model answers, as it says itself
    prompt_tokens: int | None = None  # as the provider counts


class _Heard:
    """An answer as far as it was heard."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.chars = 0
        self.finish: str | None = None
        self.model = ""
        self.prompt_tokens: int | None = None

    def take(self, piece: Piece) -> None:
        """Take the next piece."""
        self.parts.append(piece.text)
        self.chars += len(piece.text)
        self.finish = self.finish or piece.finish  # a refusal is followed by an ordinary end
        self.model = piece.model or self.model
        if piece.prompt_tokens is not None:
            self.prompt_tokens = piece.prompt_tokens


class ModelSummarizer(ABC):
    """Drafts with a language model; one code for both drivers, since a summarizer that is awaited serves each.

    Args:
        name: part of the job's identity: the provider and its model.
        settings: what else the answer depends on; a digest of it is part of `version`.
        window_tokens: the model's context window, as the store's counter counts; MODEL_EVENTS_SHARE of it is for
            events, and a source that exceeds that is shown in parts (C10). None: unknown, all is shown at once.
        deadline_s: for one answer, from the request to its last piece.
        stall_s: without a piece.
        report_usage: is told, after an answer, the prompt's tokens by the store's counter and by the provider, where it
            reports them; what it raises passes through.

    Raises:
        InvalidInputError: an argument is out of its range, or can't be written as JSON.
    """

    finished: frozenset[str]  # the finish reasons that say that the answer is whole

    def __init__(
        self,
        name: str,
        *,
        settings: Mapping[str, object],
        window_tokens: int | None,
        deadline_s: float,
        stall_s: float,
        report_usage: ReportUsage | None,
    ) -> None:
        if not 0 < len(name) <= NAME_CHARS_MAX:
            raise InvalidInputError(f"a summarizer's name has 1 to {NAME_CHARS_MAX} characters; it is {name!r}")
        for what, seconds in (("deadline_s", deadline_s), ("stall_s", stall_s)):
            if not isinstance(seconds, int | float) or not seconds > 0:
                raise InvalidInputError(f"{what} is a number of seconds above 0; it is {seconds!r}")
        if window_tokens is not None and (not isinstance(window_tokens, int) or window_tokens * MODEL_EVENTS_SHARE < 1):
            raise InvalidInputError(f"window_tokens is None or at least 2; it is {window_tokens!r}")
        self.name = name
        self.version = _version(settings)
        self.window_tokens = None if window_tokens is None else int(window_tokens * MODEL_EVENTS_SHARE)
        self._deadline_s, self._stall_s = deadline_s, stall_s
        self._report_usage = report_usage

    async def summarize(self, request: SummaryRequest) -> Draft:
        """Return the model's draft, within the budget; without a budget none is asked for.

        Raises:
            TransientSummarizerError: a rate limit, an overload, a lost connection; it stalled, or took too long.
            PromptTooLongError: the model can't be shown so much.
            MalformedDraftError: the answer ended without saying that it is whole, or is not what was asked for.
            SummarizerSetupError: the request is refused as it is: a key, the model's name, an option, the account.
        """
        if request.budget_tokens <= 0:
            return Draft(text="")
        prompt = write_prompt(request)
        heard = _Heard()
        try:
            await self._hear(prompt, heard)
        except StrandlineError:
            raise
        except Exception as error:
            meaning = meaning_of(error, self.name)
            if meaning is None:
                raise
            raise meaning from error
        if self._report_usage is not None and heard.prompt_tokens is not None:
            self._report_usage(prompt.tokens, heard.prompt_tokens)
        if heard.finish not in self.finished:
            ended = "no finish reason" if heard.finish is None else f"finish reason {heard.finish!r}"
            raise MalformedDraftError(f"{self.name}: the answer ended with {ended} after {heard.chars:,} characters")
        return read_answer("".join(heard.parts), request, strict=prompt.strict, model=heard.model)

    async def _hear(self, prompt: Prompt, heard: _Heard) -> None:
        """Take the pieces of the answer.

        Raises:
            TransientSummarizerError: no piece came within `stall_s`, or the last one not within `deadline_s`.
            MalformedDraftError: it is longer than any draft may be.
        """
        import asyncio  # a tenth of the start-up time of a command, and seldom needed

        deadline = asyncio.timeout(self._deadline_s)
        try:
            async with deadline, aclosing(self._pieces(prompt)) as pieces:
                while (piece := await self._next(pieces)) is not None:
                    heard.take(piece)
                    if heard.chars > DRAFT_BYTES_MAX:
                        raise MalformedDraftError(f"{self.name}: the answer exceeds {DRAFT_BYTES_MAX:,} characters")
        except TimeoutError as error:
            if not deadline.expired():
                raise
            raise TransientSummarizerError(
                f"{self.name}: no whole answer within {self._deadline_s:g} s, {heard.chars:,} characters of it"
            ) from error

    async def _next(self, pieces: AsyncGenerator[Piece, None]) -> Piece | None:
        """Return the next piece, or None after the last one."""
        import asyncio

        stall = asyncio.timeout(self._stall_s)
        try:
            async with stall:
                return await anext(pieces, None)
        except TimeoutError as error:
            if not stall.expired():
                raise
            raise TransientSummarizerError(f"{self.name}: no piece of the answer within {self._stall_s:g} s") from error

    @abstractmethod
    def _pieces(self, prompt: Prompt) -> AsyncGenerator[Piece, None]:
        """Ask, and yield what comes, until it ends; whatever the provider's package raises passes as it is."""


def named(provider: str, model: str) -> str:
    """Return the name of the summarizer of a provider's model.

    Raises:
        InvalidInputError: the model has no name.
    """
    if not isinstance(model, str) or not model.strip():
        raise InvalidInputError(f"a model is named as its server knows it, not {model!r}")
    return f"{provider}:{model}"


def missing_extra(package: str, extra: str, error: ImportError) -> InvalidInputError:
    """Return the error of a summarizer whose provider's package is not installed."""
    said = f"this summarizer needs the package {package}, which can't be imported: {error}"
    return InvalidInputError(said, hint=extra_hint(extra))


def _version(settings: Mapping[str, object]) -> str:
    """Return prompt, schema, and a digest of what else the answer depends on."""
    version = f"prompt-{PROMPT_VERSION},schema-{SCHEMA_VERSION}"
    given = {name: value for name, value in settings.items() if value not in (None, {})}
    if not given:
        return version
    try:
        written = json.dumps(given, sort_keys=True)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"options are what JSON can hold: {error}") from error
    return f"{version},settings-{text_digest(b'', written).hex()[:SETTINGS_DIGEST_CHARS]}"
