"""Messages of Strands as items of the log, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from strands.types.session import SessionMessage

from strandline import NewEvent, message, note, thinking, tool_call, tool_result
from strandline.integrations.items import ERASED, Item, item_events, said

FRAMEWORK: Final = "strands"
_MEDIA: Final = ("image", "document", "video", "audio")

Block = Mapping[str, Any]


def item_id(message_id: int) -> str:
    """Return the id of a message's item."""
    return f"{FRAMEWORK}:{message_id}"


def to_events(stored: SessionMessage, actor: str) -> list[NewEvent]:
    """Return what the log holds of a message, which gives it back as it was.

    Args:
        stored: it, with its number.
        actor: the agent whose conversation it is; what the user says is the user's.
    """
    frame = stored.to_dict()
    blocks = frame["message"].pop("content")
    user = stored.message["role"] == "user"
    parts: list[tuple[NewEvent, Block | None]] = [(_to_event(block, user=user, actor=actor), block) for block in blocks]
    return item_events(item_id(stored.message_id), frame, parts or [(note("A message without content."), None)])


def to_stored(item: Item) -> SessionMessage:
    """Return the message of an item. A part that was erased reads so; where the frame was, role and number remain."""
    frame: dict[str, Any] = dict(item.frame or {"message": {"role": item.role or "user"}})
    blocks = [{"text": ERASED} if part is None else part for part in item.parts]
    frame["message"] = {**frame["message"], "content": blocks}
    return SessionMessage.from_dict({**frame, "message_id": int(item.item_id)})


def _to_event(block: Block, *, user: bool, actor: str) -> NewEvent:
    if "toolUse" in block:
        use = block["toolUse"]
        return tool_call(use["toolUseId"], use["name"], use.get("input"), actor=actor)
    if "toolResult" in block:
        result = block["toolResult"]
        content = [_shown(part) for part in result.get("content", [])]
        failed = result.get("status") == "error"
        return tool_result(result["toolUseId"], "\n".join(content), is_error=failed, actor=actor)
    thought = block.get("reasoningContent", {}).get("reasoningText", {}).get("text")
    if thought:
        return thinking(said(thought), actor=actor)
    role, speaker = ("user", "user") if user else ("assistant", actor)
    return message(role, said(_shown(block)), actor=speaker)


def _shown(block: Block) -> str:
    """Return what a block says; of what is no text, what it is."""
    if "text" in block:
        return str(block["text"])
    if "json" in block:
        return str(block["json"])
    for kind in _MEDIA:
        if kind in block:
            named = " ".join(str(block[kind][name]) for name in ("name", "format") if name in block[kind])
            return f"[{kind}] {named}".rstrip()
    return f"[{', '.join(sorted(block))}]"
