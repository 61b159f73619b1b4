"""What an error of a provider, or of the package that speaks to it, means for an attempt (C14).

| told by | means |
| --- | --- |
| 408, 409, 425, 429, 499, 5xx, 529; no connection, a timeout, a broken stream | transient, with what it asks to wait |
| 413, or a complaint about the prompt's length | too long: smaller parts may do |
| any other 4xx; a used-up account, whatever its status | set up wrong: nothing is repeated |
| an answer that the package can't read, or a refusal that it raises | malformed |

No package of a provider is imported here. All of them name their classes and attributes alike, wrap each other's errors
(LangChain and Pydantic AI those of the SDKs), and report errors within a stream without a status: so the error is read
by `status_code`, by the `type` and `code` of its body, and by the names of its classes, along `__cause__`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from strandline.errors import (
    MalformedDraftError,
    PromptTooLongError,
    StrandlineError,
    SummarizerSetupError,
    TransientSummarizerError,
)

CAUSES_MAX: Final = 8  # errors that are looked through for what they tell
SHOWN_CHARS_MAX: Final = 500

_PASSING_STATUSES: Final = frozenset({408, 409, 425, 429, 499})
_TOO_LARGE: Final = 413
_USED_UP: Final = frozenset({"insufficient_quota", "billing_error", "billing_hard_limit_reached", "access_terminated"})
_TOO_LONG_KINDS: Final = frozenset({"context_length_exceeded", "request_too_large", "string_above_max_length"})
_SETUP_KINDS: Final = frozenset(
    {"authentication_error", "permission_error", "not_found_error", "invalid_request_error", "invalid_api_key"}
    | {"model_not_found"}
)
_TOO_LONG: Final = re.compile(
    r"(?:prompt|input|context|message|request|conversation)[\w ']{0,40}\b(?:is |are )?too (?:long|large)"
    r"|(?:maximum|exceeds?|exceeded|exceeding)[\w ']{0,40}\bcontext (?:length|window|size)"
    r"|context (?:length|window|size)\b[\w ']{0,30}\bexceed"
    r"|(?:maximum|exceeds?)[\w ']{0,40}\b(?:input|prompt) (?:length|tokens)"
    r"|exceeds the (?:maximum )?(?:number of tokens|available context)",
    re.IGNORECASE,
)
_CONNECTION_CLASSES: Final = frozenset(
    {"APIConnectionError", "TransportError", "ModelConnectionError", "ModelRequestTimeout", "ConcurrencyLimitExceeded"}
)
_STREAM_CLASSES: Final = frozenset({"APIError", "ModelAPIError"})  # without a status: told within a stream
_UNREADABLE_CLASSES: Final = frozenset(
    {"JSONDecodeError", "APIResponseValidationError", "UnexpectedModelBehavior", "OutputParserException"}
    | {"ModelRefusalError"}
)
_SETUP_CLASSES: Final = frozenset({"OpenAIError", "AnthropicError", "UserError"})  # bases: reached by nothing narrower


def meaning_of(error: BaseException, name: str) -> StrandlineError | None:
    """Return what is raised in an error's place, or None where it is no provider's: a fault in somebody's code.

    Args:
        error: what was raised while a model was asked.
        name: of the summarizer, for the message.
    """
    causes = list(_causes(error))
    said = f"{name}: {_told(causes)}"
    status = next((found for cause in causes if (found := _status(cause)) is not None), None)
    kinds = {kind for cause in causes for kind in _kinds(cause)}
    classes = {kind.__name__ for cause in causes for kind in type(cause).__mro__}
    if kinds & _USED_UP or "ModelQuotaExceededError" in classes:
        return SummarizerSetupError(said)
    if status == _TOO_LARGE or kinds & _TOO_LONG_KINDS or (_refused(status, kinds) and _TOO_LONG.search(str(error))):
        return PromptTooLongError(said)
    if status is not None and (status in _PASSING_STATUSES or status >= 500):
        return TransientSummarizerError(said, retry_after_s=_retry_after_s(causes))
    if _refused(status, kinds):
        return SummarizerSetupError(said)
    if classes & _UNREADABLE_CLASSES:
        return MalformedDraftError(said)
    passing = isinstance(error, OSError) or classes & (_CONNECTION_CLASSES | _STREAM_CLASSES)
    if passing:  # TimeoutError and ConnectionError are kinds of OSError
        return TransientSummarizerError(said, retry_after_s=_retry_after_s(causes))
    return SummarizerSetupError(said) if classes & _SETUP_CLASSES else None


def _told(causes: list[BaseException]) -> str:
    """Say what was raised, and the first cause of it, which often is all that tells: `Connection refused`."""
    said, first = (f"{type(cause).__name__}: {str(cause)[:SHOWN_CHARS_MAX]}" for cause in (causes[0], causes[-1]))
    return said if str(causes[-1]) in str(causes[0]) else f"{said} ({first})"


def _refused(status: int | None, kinds: set[str]) -> bool:
    """Tell whether the request itself was refused: as it stands, it never will do."""
    return bool(kinds & _SETUP_KINDS) if status is None else status not in _PASSING_STATUSES and status < 500


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    for _ in range(CAUSES_MAX):
        if cause is None:
            return
        yield cause
        cause = cause.__cause__


def _status(error: BaseException) -> int | None:
    """Return the HTTP status of an error; an error within a stream that began well has none."""
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) and status >= 400 else None


def _kinds(error: BaseException) -> Iterator[str]:
    """Yield the `type` and `code` that the provider gave the error."""
    body = getattr(error, "body", None)
    inner = body.get("error") if isinstance(body, Mapping) else None
    for told in (error, body, inner):
        for name in ("type", "code", "provider_error_code", "provider_error_type"):
            value = told.get(name) if isinstance(told, Mapping) else getattr(told, name, None)
            if isinstance(value, str):
                yield value


def _retry_after_s(causes: list[BaseException]) -> float | None:
    """Return the seconds that the other side asked to wait: told by the package, or by a header of the response."""
    for cause in causes:
        told = getattr(cause, "retry_after", None)
        if isinstance(told, int | float):
            return float(told)
        headers = getattr(getattr(cause, "response", None), "headers", None)
        if isinstance(headers, Mapping):
            seconds = _header_s(headers)
            if seconds is not None:
                return seconds
    return None


def _header_s(headers: Mapping[str, str]) -> float | None:
    """Read `retry-after-ms`, which some providers send, or Retry-After: seconds, or a date (RFC 9110, 10.2.3).

    A date is compared with the response's own, so that no clock of ours is asked.
    """
    from email.utils import parsedate_to_datetime  # loads the package email, and is seldom needed

    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            return float(headers[name]) * unit_s
        except (KeyError, ValueError):
            continue
    try:
        wait = parsedate_to_datetime(headers["retry-after"]) - parsedate_to_datetime(headers["date"])
    except (KeyError, ValueError, TypeError):  # TypeError: only one of them names its time zone
        return None
    return max(0.0, wait.total_seconds())
