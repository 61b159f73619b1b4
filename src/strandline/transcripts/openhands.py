"""OpenHands' events: actions of agent and user, and what the environment observed of them."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Raw

from strandline.model.event import Role
from strandline.transcripts.conversations import Form
from strandline.transcripts.lines import Line, identifier
from strandline.transcripts.statements import (
    ABSENT,
    NOTHING,
    Heard,
    Said,
    actor_of,
    call_of,
    holds_text,
    message_of,
    read_record,
    result_of,
    unread_of,
)

_VOICES: Final = {"user": Role.USER, "agent": Role.ASSISTANT}
_ENDS: Final = frozenset({"finish", "reject"})  # actions that only say something
_UNSAID: Final = frozenset({"null", "change_agent_state", "agent_state_changed", "pause", "resume", "stop", "start"})
_ENVELOPE: Final = frozenset(
    {"id", "timestamp", "source", "cause", "action", "observation", "message", "thought", "tool_call_metadata"}
    | {"llm_metrics", "timeout"}
)
_READ: Final = _ENVELOPE | {"args", "content", "extras", "success", "exit_code"}
_TELLS_MORE: Final = frozenset({"recall", "delegate"})  # observations whose content stands beside the text


class _Event(msgspec.Struct, gc=False):
    content: Raw = ABSENT
    message: Raw = ABSENT
    thought: Raw = ABSENT
    args: Raw = ABSENT
    extras: Raw = ABSENT


class _Args(msgspec.Struct, gc=False):
    content: Raw = ABSENT
    thought: Raw = ABSENT
    final_thought: Raw = ABSENT


_EVENT: Final = msgspec.json.Decoder(_Event)
_ARGS: Final = msgspec.json.Decoder(_Args)
_MEMBERS: Final = msgspec.json.Decoder(dict[str, Raw])


def read_event(line: Line, heard: Heard) -> Said:
    """Return what one event states.

    Raises:
        ImportFormatError: it is damaged.
    """
    fields = read_record(line)
    event = line.decode(_EVENT)
    named = "action" if fields.get("action") is not None else "observation"
    what = identifier(line, fields.get(named), named)
    if what in _UNSAID:
        return Said(skipped=[what])
    said = _action(line, what, fields, event, heard) if named == "action" else _observed(line, fields, event, heard)
    if fields.get("timestamp") is not None:
        said.source_at = identifier(line, fields["timestamp"], "timestamp")
    return said


def _action(line: Line, action: str, fields: dict[str, object], event: _Event, heard: Heard) -> Said:
    """Return what an action states: its thought, then its text, or the call that it is."""
    source = _source(line, fields, "user" if action == "message" and not heard.asked else "agent")
    args = _Args(content=event.content, thought=event.thought)  # older events hold them beside the envelope
    if bytes(event.args)[:1] == b"{":
        args = line.decode_part(event.args, _ARGS)
    role = Role.SYSTEM if action == "system" else _VOICES.get(source, Role.SYSTEM)
    said = Said(actor="system" if action == "system" else source, role=role)
    if action in ("message", "system"):
        texts = [args.content]
    else:
        texts = [args.thought, args.final_thought] if action in _ENDS else [args.thought]
    said.statements += (message_of(line, text) for text in texts if holds_text(line, text, "a text of an action"))
    if action in _ENDS and not said.statements and holds_text(line, event.message, "message"):
        said.statements.append(message_of(line, event.message))
    if action in ("message", "system") or action in _ENDS:
        said.skipped += unread_of(fields, _READ) if said.statements else ["empty_block"]
        return said
    given = line.decode_part(event.args, _MEMBERS) if bytes(event.args)[:1] == b"{" else _beside(line)
    call_input = msgspec.json.encode({name: value for name, value in given.items() if name != "thought"})
    said.statements.append(call_of(line, _id_of(fields, heard), _tool(line, action, fields), call_input))
    return said


def _observed(line: Line, fields: dict[str, object], event: _Event, heard: Heard) -> Said:
    """Return the result of the action that caused it; without one it is said to the agent."""
    content = event.content if bytes(event.content) not in NOTHING else event.message
    if bytes(content) in NOTHING:
        raise line.fault("an observation without content")
    if fields.get("observation") in _TELLS_MORE and bytes(event.extras) not in NOTHING:
        content = Raw(b'{"content":' + bytes(content) + b',"extras":' + bytes(event.extras) + b"}")
    cause = fields.get("cause")
    call_id = heard.waits_for if cause is None and "id" not in fields else f"event:{cause}"
    if call_id is not None and call_id in heard.calls:
        failed = fields.get("observation") == "error" or fields.get("success") is False
        failed = failed or fields.get("exit_code") not in (None, 0)
        return Said(actor="tool", statements=[result_of(line, call_id, content, is_error=failed)])
    if bytes(content)[:1] == b'"' and not holds_text(line, content, "content"):
        return Said(skipped=["empty_block"])
    return Said(actor=_source(line, fields, "environment"), role=Role.SYSTEM, statements=[message_of(line, content)])


def _source(line: Line, fields: dict[str, object], otherwise: str) -> str:
    return actor_of(line, fields.get("source") or otherwise, "source")


def _id_of(fields: dict[str, object], heard: Heard) -> str:
    number = fields.get("id")
    return f"event:{number}" if isinstance(number, int) else f"action:{heard.asked + 1}"


def _tool(line: Line, action: str, fields: dict[str, object]) -> str:
    """Return the function that the model called; without one, the action."""
    called = fields.get("tool_call_metadata")
    name = called.get("function_name") if isinstance(called, dict) else None
    return action if name is None else identifier(line, name, "function_name")


def _beside(line: Line) -> dict[str, Raw]:
    """Return the arguments of an older event, which stand beside its envelope."""
    members = line.decode(_MEMBERS)
    return {name: value for name, value in members.items() if name not in _ENVELOPE and bytes(value) != b"null"}


OPENHANDS: Final = Form(name="openhands", read=read_event, lists=(b'"history"',))
