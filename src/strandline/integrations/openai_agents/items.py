"""Input items of the Responses API as events, and back. Pure.

Each item is one event. What the memory reads of it is the event; the item itself is kept beside it, verbatim, as the
event's origin. So an item of any type comes back as it was, also one that was invented after this was written.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NoReturn

import strandline
from strandline import CorruptRecordError, EventKind, InvalidInputError, NewEvent, Role, SourceEvent
from strandline.integrations.origins import read_origin, storable, write_origin

Item = dict[str, object]

FORMAT: Final = "openai-agents"
NO_TEXT: Final = "(no text)"
_ROLES: Final = {"user": Role.USER, "assistant": Role.ASSISTANT, "system": Role.SYSTEM, "developer": Role.SYSTEM}
_SAID_BY_AGENT: Final = {EventKind.DECISION, EventKind.FAILED_ATTEMPT}
_ONE_OF_A_CALL: Final = ("arguments", "input", "action", "operation")  # members that say what is called for
_NO_PROSE: Final = frozenset({"call_id", "encrypted_content", "id", "result", "status", "type"})


@dataclass(frozen=True, slots=True)
class Kept:
    """What an event's origin says: the item, and the event of an effect that already says what the item does."""

    item: Item
    of: int | None = None


def keep(item: Mapping[str, object], of: int | None = None) -> str:
    """Return the origin of an item's event.

    Raises:
        InvalidInputError: it is no JSON object.
    """
    if not isinstance(item, Mapping):
        raise InvalidInputError(f"an input item is a JSON object, not a {type(item).__name__}; nothing was written")
    return write_origin(FORMAT, {"item": item} if of is None else {"item": item, "of": of})


def kept(event: SourceEvent) -> Kept | None:
    """Return what an event keeps of an item; None: it was not made from one, or was erased.

    Raises:
        CorruptRecordError: its origin is not what `keep` writes.
    """
    record = read_origin(FORMAT, event)
    if record is None:
        return None
    item, of = record.get("item"), record.get("of")
    if not isinstance(item, dict) or not (of is None or isinstance(of, int)):
        raise CorruptRecordError("it keeps no input item", place=f"origin of event {event.seq}")
    return Kept(item, of)


def call_id_of(item: Mapping[str, object]) -> str | None:
    """Return the id of the call that an item makes or answers."""
    call_id = item.get("call_id")
    return call_id if isinstance(call_id, str) and call_id else None


def is_output(item: Mapping[str, object]) -> bool:
    """Tell whether an item answers a call: the API names such types after those of calls."""
    return str(item.get("type", "")).endswith("_output")


def to_event(item: Mapping[str, object], *, actor: str, audience: str | None, key: str) -> NewEvent:
    """Return the event of an item.

    Raises:
        InvalidInputError: the item is no JSON object, or a value in it can't be stored.
    """
    origin = keep(item)
    call_id = call_id_of(item)
    if call_id is not None and is_output(item):
        said = text_of(item.get("output"))
        return strandline.tool_result(call_id, said, actor=actor, audience=audience, key=key, origin=origin)
    if call_id is not None:
        tool, asked = _asked(item)
        return strandline.tool_call(call_id, tool, asked, actor=actor, audience=audience, key=key, origin=origin)
    if item.get("type") == "reasoning":
        thought = text_of([item.get("summary"), item.get("content")]) or "[reasoning]"
        return strandline.thinking(thought, actor=actor, audience=audience, key=key, origin=origin)
    role = _ROLES.get(str(item.get("role")))
    said = text_of(item.get("content")) if role is not None else text_of(item)
    return strandline.message(
        role or Role.ASSISTANT, said or NO_TEXT, actor=actor, audience=audience, key=key, origin=origin
    )


def as_answer_of_nothing(item: Mapping[str, object], *, actor: str, audience: str | None, key: str) -> NewEvent:
    """Return the event of an output whose call the log never held: as a message, for no call is made up (I8)."""
    said = f"[result of the call {call_id_of(item)}, which is not in this session] {text_of(item.get('output'))}"
    return strandline.message(Role.USER, said, actor=actor, audience=audience, key=key, origin=keep(item))


def as_mark(item: Mapping[str, object], of: int, *, actor: str, audience: str | None, key: str) -> NewEvent:
    """Return the event of an item that an effect's own call or result says already: its place, and no text twice."""
    return strandline.thinking(f"as event {of}", actor=actor, audience=audience, key=key, origin=keep(item, of))


def to_item(event: SourceEvent) -> Item | None:
    """Return an item that says what an event says which was made from none; None: no model is shown it."""
    if event.kind in (EventKind.THINKING, EventKind.ABANDONED):
        return None
    if event.kind is EventKind.TOOL_CALL:
        asked = json.dumps(event.payload, ensure_ascii=False) if event.payload is not None else "{}"
        return {"type": "function_call", "call_id": event.call_id, "name": event.tool, "arguments": asked}
    if event.kind is EventKind.TOOL_RESULT:
        return {"type": "function_call_output", "call_id": event.call_id, "output": event.text}
    if event.kind is EventKind.MESSAGE:
        return {"role": (event.role or Role.USER).value, "content": event.text}
    role = Role.ASSISTANT if event.kind in _SAID_BY_AGENT else Role.USER
    subject = f" {event.subject}" if event.subject else ""
    return {"role": role.value, "content": f"[{event.kind}{subject}] {event.text}".rstrip()}


def text_of(value: object) -> str:
    """Return what a part of an item says in words; encoded images, files and thoughts don't."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, list):
        return "\n".join(filter(None, map(text_of, value)))
    if not isinstance(value, dict):
        return "" if value is None else json.dumps(value)
    for member in ("text", "refusal", "transcript"):
        if isinstance(value.get(member), str):
            return storable(str(value[member]))
    if "type" not in value:
        return json.dumps(_prose(value), ensure_ascii=True)
    said = _prose({name: part for name, part in value.items() if name not in _NO_PROSE})
    label = f"[{value['type']}]"
    return f"{label} {json.dumps(said, ensure_ascii=True)}" if said else label


def _prose(value: object) -> object:
    """Return a JSON value without what is encoded, and without what is empty."""
    if isinstance(value, dict):
        parts = {name: _prose(part) for name, part in value.items() if name != "encrypted_content"}
        return {name: part for name, part in parts.items() if part not in (None, "", [], {})}
    if isinstance(value, list):
        return [part for part in map(_prose, value) if part not in (None, "", [], {})]
    if isinstance(value, str):
        return "" if value.startswith("data:") else storable(value)
    return value


def _asked(item: Mapping[str, object]) -> tuple[str, object]:
    """Return the tool that an item calls, and with what."""
    kind = str(item.get("type", "call"))
    tool = item.get("name")
    tool = storable(tool) if isinstance(tool, str) and tool else kind.removesuffix("_call")
    given = next((item[member] for member in _ONE_OF_A_CALL if item.get(member) is not None), None)
    if not isinstance(given, str):
        return tool, _prose(given)
    try:
        return tool, _prose(json.loads(given, parse_constant=_refuse)) if given else {}
    except (ValueError, RecursionError):
        return tool, storable(given)  # no JSON: a model wrote it, or a tool that takes text


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON number")
