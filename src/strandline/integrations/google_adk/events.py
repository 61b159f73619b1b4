"""Events of ADK as items of the log, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from google.adk.events.event import Event
from google.genai import types

from strandline import NewEvent, message, note, thinking, tool_call, tool_result
from strandline.integrations.items import ERASED, Item, item_events, said

FRAMEWORK: Final = "google-adk"
_USER: Final = "user"  # the author of what the user says; any other is an agent


def item_id(event_id: str) -> str:
    """Return the id of an event's item."""
    return f"{FRAMEWORK}:{event_id}"


def to_events(event: Event) -> list[NewEvent]:
    """Return what the log holds of an event, which gives it back as it was."""
    frame = event.model_dump(mode="json", exclude_none=True)
    content = frame.get("content") or {}
    dumped = content.pop("parts") if content.get("parts") else []  # an empty list stays in the frame
    parts: list[tuple[NewEvent, dict[str, Any] | None]] = [
        (_to_event(event, index, part), stored)
        for index, (part, stored) in enumerate(zip(_parts(event), dumped, strict=True))
    ]
    return item_events(item_id(event.id), frame, parts or [(note(_what_it_does(event), actor=event.author), None)])


def to_adk(item: Item) -> Event:
    """Return the event of an item. A part that was erased reads so; where the frame was, author and place remain."""
    frame: dict[str, Any] = dict(item.frame or {"author": item.actor or _USER, "id": item.item_id, "timestamp": 0.0})
    parts = [{"text": ERASED} if part is None else part for part in item.parts]
    if parts:
        role = "user" if frame["author"] == _USER else "model"
        frame["content"] = {"role": role, **frame.get("content", {}), "parts": parts}
    return Event.model_validate(frame)


def _parts(event: Event) -> Sequence[types.Part]:
    return (event.content.parts if event.content else None) or []


def _to_event(event: Event, index: int, part: types.Part) -> NewEvent:
    actor = event.author
    call, response = part.function_call, part.function_response
    if call is not None:
        named = call.id or f"{event.id}#{index}"
        return tool_call(named, call.name or "unnamed", call.args or {}, actor=actor)
    if response is not None:
        return tool_result(response.id or f"{event.id}#{index}", response.response or {}, actor=actor)
    if part.thought and part.text:
        return thinking(said(part.text), actor=actor)
    return message(_USER if actor == _USER else "assistant", said(_shown(part)), actor=actor)


def _shown(part: types.Part) -> str:
    """Return what a part says; of what is no text, what it is."""
    if part.text is not None:
        return part.text
    if part.executable_code is not None:
        return part.executable_code.code or ""
    if part.code_execution_result is not None:
        return part.code_execution_result.output or ""
    if part.inline_data is not None:
        return f"[{part.inline_data.mime_type}, {len(part.inline_data.data or b''):,} bytes]"
    if part.file_data is not None:
        return f"[{part.file_data.mime_type}] {part.file_data.file_uri}"
    return f"[{', '.join(sorted(part.model_dump(exclude_none=True)))}]"


def _what_it_does(event: Event) -> str:
    """Return a line about an event that says nothing."""
    actions = event.actions
    if actions.rewind_before_invocation_id:
        return f"The session was rewound to before the invocation {actions.rewind_before_invocation_id}."
    if actions.state_delta:
        return f"State was set: {', '.join(sorted(actions.state_delta))}."
    if actions.transfer_to_agent:
        return f"The conversation was handed to {actions.transfer_to_agent}."
    return "An event without content."
