"""SWE-agent's trajectories: the `history` is what was said; `trajectory` repeats it, step by step."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Raw

from strandline.model.event import Role
from strandline.transcripts.conversations import Form
from strandline.transcripts.lines import Line, identifier
from strandline.transcripts.openai_message import read_message
from strandline.transcripts.statements import (
    ABSENT,
    Heard,
    Said,
    call_of,
    check_called,
    holds_text,
    message_of,
    read_record,
    result_of,
)

_SHELL: Final = "shell"  # what actions are typed into, where the model called no function
_ACTION: Final = "action:"
_FRAMED: Final = "` \t\r\n"  # between thought and action, and around the action
_READ: Final = frozenset(f"message.{name}" for name in ("agent", "thought", "action", "message_type", "is_demo"))


class _Message(msgspec.Struct, gc=False):
    content: Raw = ABSENT
    thought: Raw = ABSENT
    action: Raw = ABSENT


_MESSAGE: Final = msgspec.json.Decoder(_Message)


def read_entry(line: Line, heard: Heard) -> Said:
    """Return what one entry of the history states.

    Raises:
        ImportFormatError: it is damaged, or a result that no call asked for.
    """
    fields = read_record(line)
    message = line.decode(_MESSAGE)
    answers = heard.waits_for if fields.get("role") == "user" else None
    if fields.get("role") == "tool" or (answers is not None and answers.startswith(_ACTION)):
        call_id = answers if answers is not None else _answered(line, fields.get("tool_call_ids"), heard)
        if message.content is ABSENT:
            raise line.fault("an observation without content")
        return Said(actor="tool", statements=[result_of(line, call_id, message.content)])
    said = read_message(line, heard)
    said.skipped = [what for what in said.skipped if what not in _READ]
    if fields.get("is_demo") is True:
        said.role = Role.SYSTEM  # shown to the model, and no turn of a user
    if said.role is Role.ASSISTANT and not fields.get("tool_calls") and holds_text(line, message.action, "action"):
        if _is_framed(fields):
            said.statements = [message_of(line, message.thought)] if str(fields["thought"]).strip() else []
        given = b'{"command":' + bytes(message.action) + b"}"
        said.statements.append(call_of(line, f"{_ACTION}{heard.asked + 1}", _SHELL, given))
    return said


def _answered(line: Line, ids: object, heard: Heard) -> str:
    first = ids[0] if isinstance(ids, list) and len(ids) == 1 else None
    call_id = identifier(line, first, "the one id in tool_call_ids")
    check_called(line, call_id, heard)
    return call_id


def _is_framed(fields: dict[str, object]) -> bool:
    """Tell whether the content is the thought and the action with a frame around it, and says nothing else."""
    content, thought, action = fields.get("content"), fields.get("thought"), fields.get("action")
    if not (isinstance(content, str) and isinstance(thought, str) and isinstance(action, str)):
        return False
    before, found, after = content.removeprefix(thought).partition(action.strip())
    return content.startswith(thought) and bool(found) and not (before + after).strip(_FRAMED)


SWE_AGENT: Final = Form(name="swe_agent", read=read_entry, lists=(b'"history"',))
