"""Messages of the Agent Framework as items of the log, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from agent_framework import Message

from strandline import NewEvent, message, note, thinking, tool_call, tool_result
from strandline.integrations.items import ERASED, Item, item_events, said

FRAMEWORK: Final = "agent-framework"
_ROLES: Final = {"user", "system"}  # any other speaks for the agent
_CALLS: Final = {  # contents that ask for something, and stay open until it comes
    "function_call": "call_id",
    "function_approval_request": "id",
}
_RESULTS: Final = {"function_result": "call_id", "function_approval_response": "id"}

Content = Mapping[str, Any]


def is_result(content: Content) -> bool:
    """Tell whether a content answers another one."""
    return content.get("type") in _RESULTS


def to_events(number: int, given: Message) -> list[NewEvent]:
    """Return what the log holds of a message, which gives it back as it was: all but its `raw_representation`."""
    frame = given.to_dict()
    contents = frame.pop("contents", [])
    actor = given.author_name or given.role
    parts: list[tuple[NewEvent, Content | None]] = [
        (_to_event(content, f"{number}#{index}", role=given.role, actor=actor), content)
        for index, content in enumerate(contents)
    ]
    return item_events(f"{FRAMEWORK}:{number}", frame, parts or [(note("A message without content."), None)])


def to_message(item: Item) -> Message:
    """Return the message of an item. A part that was erased reads so; where the frame was, the role remains."""
    contents = [{"type": "text", "text": ERASED} if part is None else part for part in item.parts]
    frame = item.frame or {"type": "message", "role": item.role or "assistant"}
    restored: Message = Message.from_dict({**frame, "contents": contents})
    return restored


def _to_event(content: Content, fallback_id: str, *, role: str, actor: str) -> NewEvent:
    kind = str(content.get("type"))
    if kind in _CALLS:
        call = content if kind == "function_call" else content.get("function_call") or {}
        named = str(content.get(_CALLS[kind]) or fallback_id)
        asked = f"approval of {call.get('name')}" if kind != "function_call" else str(call.get("name") or "unnamed")
        return tool_call(named, asked, _arguments(call.get("arguments")), actor=actor)
    if kind in _RESULTS:
        named = str(content.get(_RESULTS[kind]) or fallback_id)
        failed = content.get("exception") is not None
        answer = content.get("result") if kind == "function_result" else {"approved": content.get("approved")}
        return tool_result(named, answer, is_error=failed, actor=actor)
    if kind == "text_reasoning" and content.get("text"):
        return thinking(said(str(content["text"])), actor=actor)
    return message(role if role in _ROLES else "assistant", said(_shown(content)), actor=actor)


def _arguments(given: object) -> object:
    """Return a call's arguments; models send them as text that is JSON, or should be."""
    if not isinstance(given, str):
        return given
    try:
        parsed: object = json.loads(given)
    except ValueError:
        return given
    return parsed


def _shown(content: Content) -> str:
    """Return what a content says; of what is no text, what it is."""
    for name in ("text", "message"):
        if isinstance(content.get(name), str):
            return str(content[name])
    uri = content.get("uri")
    address = f" {uri}" if isinstance(uri, str) and not uri.startswith("data:") else ""
    return f"[{content.get('media_type') or content.get('type')}]{address}"
