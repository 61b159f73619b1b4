"""Messages of Pydantic AI as events, and back.

A message becomes an event for each part that says something. The first of them keeps the message itself, verbatim, as
its origin; the others name it. A message is known again by a digest of what it says, when, and in which run, since it
has no id of its own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter

import strandline
from strandline import CorruptRecordError, NewEvent, Role, SourceEvent
from strandline.integrations.origins import read_origin, storable, write_origin

Json = Mapping[str, Any]

FORMAT: Final = "pydantic-ai"
NO_TEXT: Final = "(no text)"
MARK: Final = "mark"  # in the place of a part, in the key of an event
_CALLS: Final = frozenset({"tool-call", "tool-search-call", "capability-load-call"})
_RETURNS: Final = frozenset({"tool-return", "tool-search-return", "capability-load-return"})
_FAILED: Final = frozenset({"failed", "denied", "interrupted", "retried"})
_SAID: Final = {
    "user-prompt": Role.USER,
    "retry-feedback": Role.USER,
    "text": Role.ASSISTANT,
    "builtin-tool-call": Role.ASSISTANT,
    "builtin-tool-return": Role.ASSISTANT,
    "builtin-tool-search-call": Role.ASSISTANT,
    "builtin-tool-search-return": Role.ASSISTANT,
    "file": Role.ASSISTANT,
    "compaction": Role.ASSISTANT,
}
_NO_PROSE: Final = frozenset(
    {"data", "id", "part_kind", "provider_details", "provider_name", "signature", "timestamp", "tool_call_id"}
)


@dataclass(frozen=True, slots=True)
class Kept:
    """What an event's origin says: which message it is of, and the message, where the event keeps it."""

    key: str
    message: Json | None


def dump(messages: Sequence[ModelMessage]) -> list[Json]:
    """Return messages as JSON values, as the framework serializes them."""
    return list(ModelMessagesTypeAdapter.dump_python(list(messages), mode="json"))


def load(messages: Sequence[Json]) -> list[ModelMessage]:
    """Return messages from JSON values.

    Raises:
        CorruptRecordError: they are none.
    """
    try:
        return ModelMessagesTypeAdapter.validate_python(list(messages))
    except ValueError as error:
        raise CorruptRecordError(f"no messages of Pydantic AI: {error}", place="origin of a message") from error


def key_of(message: Json) -> str:
    """Return what names a message in its workflow."""
    says = [message.get("kind"), message.get("run_id"), message.get("parts")]
    if message.get("kind") == "response":
        says.append(message.get("timestamp"))
    digest = hashlib.sha256(json.dumps(says, sort_keys=True).encode())
    return f"{FORMAT}:{digest.hexdigest()[:32]}"


def parts_of(message: Json, kinds: frozenset[str]) -> Iterator[tuple[int, Json]]:
    """Yield the parts of these kinds, each with its place."""
    for place, part in enumerate(message["parts"]):
        if part.get("part_kind") in kinds:
            yield place, part


def event_keys(key: str, parts: int) -> list[str]:
    """Return the keys that the events of a message with so many parts may have."""
    return [f"{key}#{place}" for place in (*range(parts), MARK)]


def calls_of(message: Json) -> Iterator[tuple[int, Json]]:
    """Yield the calls of the program's own tools that a response makes."""
    return parts_of(message, _CALLS)


def returns_of(message: Json) -> Iterator[tuple[int, Json]]:
    """Yield what a request says that such calls returned."""
    return parts_of(message, _RETURNS)


@dataclass(slots=True)
class Writer:
    """Makes the events of messages, in order.

    A call is written together with its return: until then nobody knows whether the program runs it itself, hands it to
    somebody, or asks a person first. A call that ran as an effect is in the log already, with its result. A message of
    which nothing is left to say is kept by a mark.
    """

    calls: Mapping[str, tuple[Json, int]]  # of the history: by its id, the response that makes it and its place there
    effects: frozenset[str]  # ids of the calls that ran as effects
    events: list[NewEvent] = field(default_factory=list)
    _keeps: set[str] = field(default_factory=set)

    def write(self, message: Json) -> None:
        """Add the events of a message."""
        before = len(self.events)
        for place, part in enumerate(message["parts"]):
            kind = part.get("part_kind")
            if kind in _RETURNS:
                self._returned(message, place, part)
            elif kind == "thinking":
                self._add(
                    strandline.thinking(_text(part.get("content")) or "[thinking]", **self._marks(message, place))
                )
            elif kind in _SAID:
                said = _text(part) or NO_TEXT
                self._add(strandline.message(_SAID[kind], said, **self._marks(message, place)))
        if len(self.events) == before:
            self._add(strandline.thinking("as its calls say", **self._marks(message, MARK)))

    def _returned(self, message: Json, place: int, part: Json) -> None:
        call_id = str(part["tool_call_id"])
        if call_id in self.effects:
            return
        made = self.calls.get(call_id)
        if made is None:
            said = f"[result of the call {call_id}, which is not in this history] {_text(part.get('content'))}"
            self._add(strandline.message(Role.USER, said, **self._marks(message, place)))
            return
        response, at = made
        call = response["parts"][at]
        self._add(
            strandline.tool_call(call_id, call["tool_name"], _arguments(call.get("args")), **self._marks(response, at))
        )
        is_error = part.get("outcome") in _FAILED
        said = _text(part.get("content"))
        self._add(strandline.tool_result(call_id, said, is_error=is_error, **self._marks(message, place)))

    def _marks(self, message: Json, place: int | str) -> Any:  # noqa: ANN401  the common arguments of constructors
        key = key_of(message)
        record: dict[str, object] = {"key": key}
        if key not in self._keeps:
            self._keeps.add(key)
            record["message"] = message
        return {"key": f"{key}#{place}", "origin": write_origin(FORMAT, record)}

    def _add(self, event: NewEvent) -> None:
        self.events.append(event)


def kept(event: SourceEvent) -> Kept | None:
    """Return what an event keeps of a message; None: it was not made from one, or was erased.

    Raises:
        CorruptRecordError: its origin is not what a `Writer` writes.
    """
    record = read_origin(FORMAT, event)
    if record is None or "key" not in record:
        return None
    key, message = record["key"], record.get("message")
    if not isinstance(key, str) or not (message is None or isinstance(message, dict)):
        raise CorruptRecordError("it keeps no message", place=f"origin of event {event.seq}")
    return Kept(key, message)


def calls_in(messages: Iterable[Json]) -> dict[str, tuple[Json, int]]:
    """Return the calls of messages by their ids, each with its response and its place there."""
    return {
        str(part["tool_call_id"]): (message, place)
        for message in messages
        if message["kind"] == "response"
        for place, part in calls_of(message)
    }


def returns_in(messages: Iterable[Json]) -> dict[str, Json]:
    """Return the requests that answer calls, by the calls' ids."""
    return {
        str(part["tool_call_id"]): message
        for message in messages
        if message["kind"] == "request"
        for _, part in returns_of(message)
    }


def _arguments(args: object) -> object:
    if not isinstance(args, str):
        return {} if args is None else args
    try:
        return json.loads(args, parse_constant=str) if args else {}
    except (ValueError, RecursionError):
        return storable(args)


def _text(value: object) -> str:
    """Return what a part says in words; encoded files and signatures don't."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, list):
        return "\n".join(filter(None, map(_text, value)))
    if not isinstance(value, dict):
        return "" if value is None else json.dumps(value)
    if value.get("part_kind") in ("text", "user-prompt", "compaction", "retry-feedback"):
        return _text(value.get("content"))
    said = {name: part for name, part in value.items() if name not in _NO_PROSE and part not in (None, "", [], {})}
    label = value.get("part_kind") or value.get("kind")
    return " ".join(filter(None, (f"[{label}]" if label else "", json.dumps(said) if said else "")))
