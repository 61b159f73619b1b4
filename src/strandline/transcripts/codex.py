"""Codex rollouts: what each line becomes. Items are OpenAI's of the Responses API; other lines repeat or frame them."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Raw

from strandline.model.event import Role
from strandline.transcripts.conversations import Form
from strandline.transcripts.lines import Line, identifier
from strandline.transcripts.openai_message import read_message, spelled_object
from strandline.transcripts.openai_records import ITEM_TYPES, OUTPUT_TYPES
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
    stored_text,
)
from strandline.transcripts.structure import member, value_end

TYPES: Final = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted"})

_SHELL: Final = "local_shell"
_UNSAID: Final = frozenset({"ghost_snapshot", "compaction", "compaction_summary"})  # items that no model reads
_OF_CODEX: Final = ("<environment_context>", "<user_instructions>")  # how a user message begins that Codex itself wrote


class _Line(msgspec.Struct, gc=False):
    timestamp: object = None
    type: object = None
    payload: Raw = ABSENT


class _Meta(msgspec.Struct, gc=False):
    instructions: Raw = ABSENT
    base_instructions: Raw = ABSENT


class _BaseInstructions(msgspec.Struct, gc=False):
    text: Raw = ABSENT


class _Shell(msgspec.Struct, gc=False):
    action: Raw = ABSENT


class _Output(msgspec.Struct, gc=False):
    output: Raw = ABSENT


class _Compacted(msgspec.Struct, gc=False):
    message: object = None


class _Metadata(msgspec.Struct, gc=False):
    exit_code: object = None


class _Ran(msgspec.Struct, gc=False):
    metadata: _Metadata | None = None


_LINE: Final = msgspec.json.Decoder(_Line)
_META: Final = msgspec.json.Decoder(_Meta)
_BASE: Final = msgspec.json.Decoder(_BaseInstructions | None)
_SHELL_CALL: Final = msgspec.json.Decoder(_Shell)
_OUTPUT: Final = msgspec.json.Decoder(_Output)
_COMPACTED: Final = msgspec.json.Decoder(_Compacted)
_RAN: Final = msgspec.json.Decoder(_Ran)


def read_line(line: Line, heard: Heard) -> Said:
    """Return what one line of a rollout states.

    Raises:
        ImportFormatError: it is damaged, or a result that no call asked for.
    """
    record = line.decode(_LINE)
    kind = identifier(line, record.type, "type")
    if kind not in TYPES or kind == "turn_context":
        return Said(skipped=[kind])
    payload = _payload(line)
    if kind == "session_meta":
        said = _meta(payload)
    elif kind == "compacted":
        said = _compacted(payload)
    elif kind == "response_item":
        said = _item(payload, heard)
    else:
        fields = payload.decode(_LINE)
        return Said(skipped=[f"event_msg:{identifier(payload, fields.type, 'the type of an event_msg')}"])
    if record.timestamp is not None:
        said.source_at = identifier(line, record.timestamp, "timestamp")
        if said.foreign is not None:
            said.detail = {**said.detail, "timestamp": said.source_at}
    return said


def _payload(line: Line) -> Line:
    at = member(line.data, b'"payload"')
    end = None if at is None or line.data[at : at + 1] != b"{" else value_end(line.data, at)
    if at is None or end is None:
        raise line.fault("payload is missing, or no object")
    return next(line.parts([(at, end)]))


def _meta(payload: Line) -> Said:
    """A session begins, or goes on: no result of an earlier call can come."""
    meta = payload.decode(_META)
    said = Said(actor="system", role=Role.SYSTEM, restarts=True, skipped=["session_meta"])
    base = None if meta.base_instructions is ABSENT else payload.decode_part(meta.base_instructions, _BASE)
    for text in (ABSENT if base is None else base.text, meta.instructions):
        if holds_text(payload, text, "instructions"):
            said.statements.append(message_of(payload, text))
    return said


def _compacted(payload: Line) -> Said:
    text = payload.decode(_COMPACTED).message
    if not isinstance(text, str):
        raise payload.fault("the message of a compaction is no string")
    return Said(foreign=stored_text(payload, text, "the summary")) if text.strip() else Said(skipped=["compacted"])


def _item(payload: Line, heard: Heard) -> Said:
    fields = read_record(payload)
    kind = identifier(payload, fields.get("type"), "the type of a response_item")
    if kind in OUTPUT_TYPES:
        return _output(payload, fields, heard)
    if kind in ITEM_TYPES:
        said = read_message(payload, heard)
        if said.role is Role.USER and _is_of_codex(fields.get("content")):
            said.role = Role.SYSTEM
        return said
    if kind == "local_shell_call":
        call_id = identifier(payload, fields.get("call_id") or fields.get("id"), "the id of a call")
        action = payload.decode(_SHELL_CALL).action
        if action is ABSENT:
            raise payload.fault("a local_shell_call without action")
        return Said(actor="assistant", statements=[call_of(payload, call_id, _SHELL, action)])
    if kind in _UNSAID:
        return Said(skipped=[f"response_item:{kind}"])
    return Said(actor="assistant", role=Role.ASSISTANT, statements=[message_of(payload, payload.data)])


def _is_of_codex(content: object) -> bool:
    first = content[0] if isinstance(content, list) and content else content
    text = first.get("text") if isinstance(first, dict) else first
    return isinstance(text, str) and text.lstrip().startswith(_OF_CODEX)


def _output(payload: Line, fields: dict[str, object], heard: Heard) -> Said:
    """A result: the object that its string spells, as Codex writes what a command printed, else what stands there."""
    call_id = identifier(payload, fields.get("call_id"), "call_id")
    check_called(payload, call_id, heard)
    given = payload.decode(_OUTPUT).output
    if given is ABSENT:
        raise payload.fault("a result without output")
    content = spelled_object(payload, payload.as_it_stood(bytes(given)))
    return Said(actor="tool", statements=[result_of(payload, call_id, content, is_error=_failed(content))])


def _failed(content: bytes) -> bool:
    """Tell whether a command ended with another code than 0."""
    try:
        ran = _RAN.decode(content)
    except msgspec.DecodeError:
        return False  # no object of Codex's
    return ran.metadata is not None and ran.metadata.exit_code not in (None, 0)


CODEX: Final = Form(name="codex", read=read_line)
