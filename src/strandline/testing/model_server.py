"""A server that plays a language model over HTTP: scripted, on this machine only, standard library only.

    with ScriptedModel("The answer.", Reply(text="cut o", finish="length"), Failure(status=429)) as model:
        OpenAISummarizer("any", base_url=f"{model.url}/v1", api_key="none")
        AnthropicSummarizer("any", base_url=model.url, api_key="none")

It speaks OpenAI's chat completions and Anthropic's Messages, always as a stream. Each request takes the next of the
script; the last one is repeated.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Final, Self

PIECE_CHARS: Final = 40
CHARS_PER_TOKEN: Final = 4
_MESSAGES_PATH: Final = "/v1/messages"
_STOP_REASONS: Final = {"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the model says, and how its stream ends.

    Args:
        text: all of it.
        finish: in OpenAI's words, such as `stop` or `length`; None: the stream just ends.
        pause_s: before each piece but the first.
        kept_alive: fill the pauses with lines that are no pieces, as proxies do.
        error: of an error that ends the stream in place of a finish: its type, as the provider names it.
        refusal: it is no answer but a refusal, which OpenAI sends apart from the text.
    """

    text: str
    finish: str | None = "stop"
    pause_s: float = 0.0
    kept_alive: bool = False
    error: str | None = None
    refusal: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """An HTTP error in place of an answer; `headers` as they are sent."""

    status: int
    message: str = "scripted"
    kind: str = "scripted_error"
    headers: dict[str, str] = field(default_factory=dict)


class ScriptedModel:
    """The server; `with` starts it on a free port and ends it. `requests` are the bodies that it was sent, in order."""

    def __init__(self, *script: str | Reply | Failure) -> None:
        self.script = [Reply(text=step) if isinstance(step, str) else step for step in script]
        self.requests: list[dict[str, Any]] = []
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(self))
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    @property
    def url(self) -> str:
        """The server's address, without a path."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def next_step(self, request: dict[str, Any]) -> Reply | Failure:
        """Note a request, and return what it is answered with."""
        with self._lock:
            self.requests.append(request)
            return self.script[min(len(self.requests), len(self.script)) - 1]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _handler_of(model: ScriptedModel) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            step = model.next_step(body)
            try:
                self._fail(step) if isinstance(step, Failure) else self._stream(step, body)
            except OSError:
                return  # the client hung up: it had waited for long enough

        def _fail(self, failure: Failure) -> None:
            error = {"type": failure.kind, "code": failure.kind, "message": failure.message}
            body = json.dumps({"type": "error", "error": error}).encode()
            self.send_response_only(failure.status)  # a date is sent only by the script
            for name, value in {**failure.headers, "content-type": "application/json"}.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _stream(self, reply: Reply, asked: dict[str, Any]) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            events = (_anthropic if self.path == _MESSAGES_PATH else _openai)(
                reply, str(asked["model"]), _tokens(asked)
            )
            for number, event in enumerate(events):
                if number:
                    self._pause(reply)
                self.wfile.write(event)

        def _pause(self, reply: Reply) -> None:
            until = time.monotonic() + reply.pause_s
            while reply.kept_alive and time.monotonic() < until:
                self.wfile.write(b": at work\n\n")
                time.sleep(min(0.02, reply.pause_s))
            time.sleep(max(0.0, until - time.monotonic()))

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    return Handler


def _pieces(text: str) -> list[str]:
    return [text[at : at + PIECE_CHARS] for at in range(0, len(text), PIECE_CHARS)]


def _tokens(asked: dict[str, Any]) -> int:
    return len(json.dumps([asked.get("system"), asked["messages"]])) // CHARS_PER_TOKEN


def _event(data: object, name: str | None = None) -> bytes:
    return (f"event: {name}\n" if name else "").encode() + f"data: {json.dumps(data)}\n\n".encode()


def _openai(reply: Reply, name: str, prompt_tokens: int) -> Iterator[bytes]:
    def chunk(*choices: dict[str, object], **more: object) -> bytes:
        whole = {"id": "scripted", "object": "chat.completion.chunk", "created": 0, "model": name, "choices": choices}
        return _event({**whole, **more})

    for piece in _pieces(reply.text):
        yield chunk({"index": 0, "delta": {"refusal" if reply.refusal else "content": piece}, "finish_reason": None})
    if reply.error is not None:
        yield _event({"error": {"type": reply.error, "message": "scripted"}})
    elif reply.finish is not None:
        yield chunk({"index": 0, "delta": {}, "finish_reason": reply.finish})
        written = len(reply.text) // CHARS_PER_TOKEN
        total = prompt_tokens + written
        yield chunk(usage={"prompt_tokens": prompt_tokens, "completion_tokens": written, "total_tokens": total})
        yield b"data: [DONE]\n\n"


def _anthropic(reply: Reply, name: str, prompt_tokens: int) -> Iterator[bytes]:
    def event(kind: str, **data: object) -> bytes:
        return _event({"type": kind, **data}, kind)

    usage = {"input_tokens": prompt_tokens, "output_tokens": 1}
    message = {"id": "scripted", "type": "message", "role": "assistant", "model": name, "content": [], "usage": usage}
    yield event("message_start", message={**message, "stop_reason": None, "stop_sequence": None})
    yield event("content_block_start", index=0, content_block={"type": "text", "text": ""})
    for piece in _pieces(reply.text):
        yield event("content_block_delta", index=0, delta={"type": "text_delta", "text": piece})
    if reply.error is not None:
        yield event("error", error={"type": reply.error, "message": "scripted"})
    elif reply.finish is not None:
        yield event("content_block_stop", index=0)
        reason = "refusal" if reply.refusal else _STOP_REASONS.get(reply.finish, reply.finish)
        yield event("message_delta", delta={"stop_reason": reason, "stop_sequence": None}, usage=usage)
        yield event("message_stop")
