"""Law: what a provider's error means is told by its status, type and class, whichever package raised it (C14)."""

from __future__ import annotations

from typing import Any

import pytest

from strandline.errors import (
    MalformedDraftError,
    PromptTooLongError,
    SummarizerSetupError,
    TransientSummarizerError,
)
from strandline.summarizers.provider_errors import meaning_of


class Response:
    def __init__(self, **headers: str) -> None:
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


class StatusError(Exception):
    """As the SDKs have it."""

    def __init__(self, status: int, message: str = "no", body: object = None, **headers: str) -> None:
        super().__init__(message)
        self.status_code, self.body, self.response = status, body, Response(**headers)


def class_named(name: str, *bases: type[Exception]) -> Exception:
    return type(name, bases or (Exception,), {})("it broke")


def anthropic_body(kind: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": "…"}}


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        *(
            (StatusError(status), TransientSummarizerError)
            for status in (408, 409, 425, 429, 499, 500, 502, 503, 504, 529)
        ),
        *((StatusError(status), SummarizerSetupError) for status in (400, 401, 402, 403, 404, 405, 422)),
        (StatusError(413), PromptTooLongError),
        (StatusError(400, "prompt is too long: 210000 tokens > 200000 maximum"), PromptTooLongError),
        (StatusError(400, "This model's maximum context length is 8192 tokens. However, …"), PromptTooLongError),
        (StatusError(400, "the request exceeds the available context size, try increasing it"), PromptTooLongError),
        (StatusError(400, "Input is too long for requested model."), PromptTooLongError),
        (StatusError(400, "no", {"code": "context_length_exceeded"}), PromptTooLongError),
        (StatusError(400, "max_tokens: 9000 > 4096, which is the maximum of this model"), SummarizerSetupError),
        (StatusError(500, "context length of the queue exceeded"), TransientSummarizerError),
        (StatusError(429, "no", {"type": "insufficient_quota", "code": "insufficient_quota"}), SummarizerSetupError),
        (StatusError(400, "no", anthropic_body("billing_error")), SummarizerSetupError),
        (StatusError(200, "no", anthropic_body("overloaded_error")), None),  # within a stream; by its class, see below
        (class_named("APIConnectionError"), TransientSummarizerError),
        (class_named("APITimeoutError", type("APIConnectionError", (Exception,), {})), TransientSummarizerError),
        (class_named("ReadError", type("TransportError", (Exception,), {})), TransientSummarizerError),
        (class_named("ModelConnectionError"), TransientSummarizerError),
        (TimeoutError(), TransientSummarizerError),
        (ConnectionResetError(), TransientSummarizerError),
        (class_named("JSONDecodeError", ValueError), MalformedDraftError),
        (class_named("UnexpectedModelBehavior"), MalformedDraftError),
        (class_named("OpenAIError"), SummarizerSetupError),
        (class_named("UserError", RuntimeError), SummarizerSetupError),
        (KeyError("a fault in somebody's code"), None),
        (ValueError("a fault in somebody's code"), None),
    ],
    ids=lambda value: f"{value!r}" if isinstance(value, Exception) else None,
)
def test_what_an_error_means(error: Exception, kind: type[Exception] | None) -> None:
    meaning = meaning_of(error, "some model")
    assert type(meaning) is (kind or type(None))
    assert meaning is None or str(meaning).startswith(f"some model: {type(error).__name__}")


@pytest.mark.parametrize(
    ("kind", "meaning"),
    [
        ("overloaded_error", TransientSummarizerError),
        ("server_error", TransientSummarizerError),
        ("a_new_one", TransientSummarizerError),
        ("invalid_request_error", SummarizerSetupError),
        ("authentication_error", SummarizerSetupError),
        ("request_too_large", PromptTooLongError),
    ],
)
def test_an_error_within_a_stream_is_told_by_its_type(kind: str, meaning: type[Exception]) -> None:
    within = type("APIError", (StatusError,), {})
    assert type(meaning_of(within(200, "no", anthropic_body(kind)), "m")) is meaning
    assert type(meaning_of(within(200, "no", {"type": kind}), "m")) is meaning


def test_the_cause_of_a_wrapper_tells() -> None:
    wrapper = RuntimeError("the framework says so")
    wrapper.__cause__ = StatusError(429, retry_after="7")
    meaning = meaning_of(wrapper, "m")
    assert isinstance(meaning, TransientSummarizerError)
    assert meaning.retry_after_s == 7


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry_after": "12"}, 12.0),
        ({"retry_after": "0.5"}, 0.5),
        ({"retry_after_ms": "250", "retry_after": "1"}, 0.25),
        ({"retry_after": "Wed, 21 Oct 2026 07:28:30 GMT", "date": "Wed, 21 Oct 2026 07:28:00 GMT"}, 30.0),
        ({"retry_after": "Wed, 21 Oct 2026 07:27:00 GMT", "date": "Wed, 21 Oct 2026 07:28:00 GMT"}, 0.0),
        ({"retry_after": "Wed, 21 Oct 2026 07:28:30 GMT"}, None),
        ({"retry_after": "soon"}, None),
        ({}, None),
    ],
)
def test_how_long_to_wait_is_read_as_providers_write_it(headers: dict[str, str], seconds: float | None) -> None:
    meaning = meaning_of(StatusError(429, **headers), "m")
    assert isinstance(meaning, TransientSummarizerError)
    assert meaning.retry_after_s == seconds


def test_a_wait_that_the_package_has_read_counts() -> None:
    error = StatusError(429)
    error.retry_after = 3  # type: ignore[attr-defined]
    meaning = meaning_of(error, "m")
    assert isinstance(meaning, TransientSummarizerError)
    assert meaning.retry_after_s == 3.0


def test_a_chain_of_causes_that_has_no_end_is_left() -> None:
    error = KeyError("a")
    error.__cause__ = KeyError("b")
    error.__cause__.__cause__ = error
    assert meaning_of(error, "m") is None
