"""Sessions of the pi coding agent: what each line becomes. Its summaries name the entry from which it kept all."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Raw

from strandline.model.event import EventKind, Role
from strandline.transcripts.conversations import Form
from strandline.transcripts.lines import Line, identifier
from strandline.transcripts.statements import (
    ABSENT,
    NOTHING,
    Heard,
    Said,
    Statement,
    call_of,
    check_called,
    holds_text,
    message_of,
    read_record,
    result_of,
    stored_text,
    unread_of,
)

_SHELL: Final = "bash"
_TEXTS: Final = {"text": EventKind.MESSAGE, "thinking": EventKind.THINKING}
_ROLES: Final = {"user": Role.USER, "assistant": Role.ASSISTANT, "custom": Role.SYSTEM, "hookMessage": Role.SYSTEM}
_READ: Final = frozenset({"role", "content", "timestamp", "toolCallId", "toolName", "isError"})
_READ_OF_SHELL: Final = frozenset({"role", "timestamp", "command", "output", "exitCode", "cancelled"})


class _Entry(msgspec.Struct, rename="camel", gc=False):
    timestamp: object = None
    message: Raw = ABSENT
    content: Raw = ABSENT  # of a custom_message
    summary: Raw = ABSENT
    tokens_before: object = None
    first_kept_entry_index: object = None
    first_kept_entry_id: object = None


class _Message(msgspec.Struct, gc=False):
    content: Raw = ABSENT
    command: Raw = ABSENT
    output: Raw = ABSENT


class _Call(msgspec.Struct, gc=False):
    arguments: Raw = ABSENT


_ENTRY: Final = msgspec.json.Decoder(_Entry)
_MESSAGE: Final = msgspec.json.Decoder(_Message)
_CALL: Final = msgspec.json.Decoder(_Call)
_PARTS: Final = msgspec.json.Decoder(list[Raw])
_VALUE: Final = msgspec.json.Decoder()
_STRING: Final = msgspec.json.Decoder(str)


def read_entry(line: Line, heard: Heard) -> Said:
    """Return what one line of a session states.

    Raises:
        ImportFormatError: it is damaged, or a result that no call asked for.
    """
    fields = read_record(line)
    entry = line.decode(_ENTRY)
    kind = identifier(line, fields.get("type"), "type")
    if kind == "message":
        said = _message(line, fields.get("message"), entry.message, heard)
    elif kind == "compaction":
        said = Said(foreign=_summary(line, entry), detail=_detail(entry))
    elif kind == "branch_summary":
        said = _texts(line, Said(actor="pi", role=Role.SYSTEM), entry.summary)
    elif kind == "custom_message":
        said = _texts(line, Said(actor="pi", role=Role.SYSTEM), entry.content)
    else:
        return Said(restarts=kind == "session", skipped=[kind])
    if entry.timestamp is not None:
        said.source_at = identifier(line, entry.timestamp, "timestamp")
        if said.foreign is not None:
            said.detail = {**said.detail, "timestamp": said.source_at}
    return said


def _summary(line: Line, entry: _Entry) -> str:
    if not holds_text(line, entry.summary, "summary"):
        raise line.fault("a compaction without a summary")
    return stored_text(line, line.decode_part(entry.summary, _STRING), "the summary")


def _detail(entry: _Entry) -> dict[str, object]:
    """Tell the tokens before, and which entry the tail began with that was kept beside the summary."""
    told = {
        "pre_tokens": entry.tokens_before,
        "first_kept_entry_index": entry.first_kept_entry_index,
        "first_kept_entry_id": entry.first_kept_entry_id,
    }
    return {name: value for name, value in told.items() if isinstance(value, int | str)}


def _message(line: Line, fields: object, data: Raw, heard: Heard) -> Said:
    if not isinstance(fields, dict):
        raise line.fault("message is missing, or no object")
    message = line.decode_part(data, _MESSAGE)
    role = identifier(line, fields.get("role"), "message.role")
    if role == "bashExecution":
        return _shell(line, fields, message, heard)
    if role == "toolResult":
        call_id = identifier(line, fields.get("toolCallId"), "toolCallId")
        check_called(line, call_id, heard)
        if message.content is ABSENT:
            raise line.fault("a toolResult without content")
        result = result_of(line, call_id, message.content, is_error=fields.get("isError") is True)
        return Said(actor="tool", statements=[result], skipped=unread_of(fields, _READ))
    if role not in _ROLES:
        return Said(skipped=[f"message:{role}"])
    voice = _ROLES[role]
    said = Said(actor="pi" if voice is Role.SYSTEM else role, role=voice, skipped=unread_of(fields, _READ))
    return _texts(line, said, message.content)


def _texts(line: Line, said: Said, content: Raw) -> Said:
    if bytes(content)[:1] != b"[":
        if holds_text(line, content, "content"):
            said.statements.append(message_of(line, content))
        else:
            said.skipped.append("empty_block")
        return said
    parts = line.decode_part(content, _PARTS)
    stated = [_block(line, bytes(part)) for part in parts]
    said.statements += (statement for statement in stated if statement is not None)
    said.skipped += ["empty_block"] * (stated.count(None) or not parts)
    return said


def _block(line: Line, part: bytes) -> Statement | None:
    """Return what a block states; None: nothing, it is empty."""
    block = line.decode_part(part, _VALUE)
    if not isinstance(block, dict):
        raise line.fault("a block of content is no object")
    kind = identifier(line, block.get("type"), "a block's type")
    if kind == "toolCall":
        call_id = identifier(line, block.get("id"), "the id of a toolCall")
        tool = identifier(line, block.get("name"), "the name of a toolCall")
        arguments = line.decode_part(part, _CALL).arguments
        if arguments is ABSENT:
            raise line.fault("a toolCall without arguments")
        return call_of(line, call_id, tool, arguments)
    if kind not in _TEXTS:
        return message_of(line, part)
    text = block.get(kind)
    if not isinstance(text, str):
        raise line.fault(f"a {kind} block whose {kind} is no string")
    return Statement(_TEXTS[kind], line.as_it_stood(part)) if text.strip() else None


def _shell(line: Line, fields: dict[str, object], message: _Message, heard: Heard) -> Said:
    """A command that the user ran, and what it printed."""
    if bytes(message.command) in NOTHING or bytes(message.output) in NOTHING:
        raise line.fault("a bashExecution without command or output")
    call_id = f"{_SHELL}:{heard.asked + 1}"
    call = call_of(line, call_id, _SHELL, b'{"command":' + bytes(message.command) + b"}")
    failed = fields.get("exitCode") not in (None, 0) or fields.get("cancelled") is True
    result = result_of(line, call_id, message.output, is_error=failed, actor="tool")
    return Said(actor="user", statements=[call, result], skipped=unread_of(fields, _READ_OF_SHELL))


PI: Final = Form(name="pi", read=read_entry)
