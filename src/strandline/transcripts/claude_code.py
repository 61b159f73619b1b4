"""Claude Code session files: what each record becomes. `docs/transcripts.md` has the table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec
from msgspec import Raw

from strandline.limits import EVENT_BYTES_MAX, JSON_DEPTH_MAX, KEY_CHARS_MAX
from strandline.model.event import Envelope, EventKind, NewEvent, Role
from strandline.model.transcript import ForeignText, SessionRestart, TranscriptItem
from strandline.transcripts.blocks import read_tool_result, read_tool_use
from strandline.transcripts.lines import Line, Tally, identifier
from strandline.transcripts.statements import stored_text

_ABSENT: Final = Raw(b"")
_KEY_SUFFIX_CHARS: Final = 20  # room for "#" and the number of a block


class _Record(msgspec.Struct, rename="camel", gc=False):
    """The members that matter. Their types are checked where they are used: what is skipped may hold anything."""

    type: object = None
    subtype: object = None
    uuid: object = None
    parent_uuid: object = None
    timestamp: object = None
    is_sidechain: object = None
    agent_id: object = None
    is_meta: object = None
    is_compact_summary: object = None
    compact_metadata: object = None
    message: Raw = _ABSENT


class _Message(msgspec.Struct, gc=False):
    id: object = None
    content: Raw = _ABSENT


class _Statement(NamedTuple):
    """What a block states."""

    kind: EventKind
    call_id: str | None = None
    tool: str | None = None
    is_error: bool = False


_MESSAGE_STATED: Final = _Statement(EventKind.MESSAGE)
_THINKING_STATED: Final = _Statement(EventKind.THINKING)
_TEXTS: Final = {"text": ("text", _MESSAGE_STATED), "thinking": ("thinking", _THINKING_STATED)}

_RECORD: Final = msgspec.json.Decoder(_Record)
_MESSAGE: Final = msgspec.json.Decoder(_Message)
_BLOCKS: Final = msgspec.json.Decoder(list[Raw])
_VALUE: Final = msgspec.json.Decoder()


class ClaudeCodeReader:
    """Reads the records of a session file; it remembers the ids of calls and records so far.

    A record that is refused leaves no trace, so that a salvage may go on behind it.

    Args:
        tally: told of what becomes no event.
        previous: uuid of the record before, where it does not begin at the file's start.
        alone: the call of each result must stand in the file; else it may stand in a log.
    """

    def __init__(self, tally: Tally, *, previous: str | None = None, alone: bool = True) -> None:
        self._tally = tally
        self._alone = alone
        self._calls: set[str] = set()
        self._uuids: set[str] = set()
        self._previous = previous  # uuid of the last record that became events
        self._boundary: dict[str, object] = {}  # of the last compaction, until its summary comes

    def read(self, line: Line) -> Iterable[TranscriptItem]:
        """Return what one record states.

        Raises:
            ImportFormatError: it is damaged.
        """
        record = line.decode(_RECORD)
        kind = identifier(line, record.type, "type")
        if kind == "assistant":
            return self._message(line, record, Role.ASSISTANT)
        if kind == "user":
            if record.is_compact_summary is True:
                return (self._summary(line, record),)
            return self._message(line, record, Role.USER)
        if kind == "system" and record.subtype is not None:
            subtype = identifier(line, record.subtype, "subtype")
            if subtype == "compact_boundary":
                return (self._restart(line, record),)
            kind = f"system:{subtype}"
        self._tally.skip(kind)
        return ()

    # ------------------------------------------------------------------------------------------ compactions

    def _restart(self, line: Line, record: _Record) -> SessionRestart:
        key, lane = self._new_uuid(line, record), _lane(line, record)
        metadata = record.compact_metadata if isinstance(record.compact_metadata, dict) else {}
        boundary: dict[str, object] = {}
        if isinstance(trigger := metadata.get("trigger"), str):
            boundary["trigger"] = identifier(line, trigger, "compactMetadata.trigger")
        if isinstance(pre_tokens := metadata.get("preTokens"), int):
            boundary["pre_tokens"] = pre_tokens
        self._boundary = boundary
        self._uuids.add(key)
        return SessionRestart(key=key, thread=None if lane == "main" else lane)

    def _summary(self, line: Line, record: _Record) -> ForeignText:
        key = self._new_uuid(line, record)
        _, content = _content_of(line, record)
        value = line.decode_part(content, _VALUE)
        if isinstance(value, list):
            texts = [block.get("text") for block in value if isinstance(block, dict) and block.get("type") == "text"]
            value = "\n".join(text for text in texts if isinstance(text, str))
        if not isinstance(value, str):
            raise line.fault("message.content is neither a string nor a list")
        value = stored_text(line, value, "the summary")
        detail = dict(self._boundary)
        if record.timestamp is not None:
            detail["timestamp"] = identifier(line, record.timestamp, "timestamp")
        self._boundary = {}
        self._uuids.add(key)
        return ForeignText(key=key, text=value, detail=detail)

    # ------------------------------------------------------------------------------------------ messages

    def _message(self, line: Line, record: _Record, role: Role) -> list[TranscriptItem]:
        uuid = self._new_uuid(line, record)
        message, content = _content_of(line, record)
        message_id = _optional(line, message.id, "message.id") if role is Role.ASSISTANT else None
        source_at = _optional(line, record.timestamp, "timestamp")
        parent = _optional(line, record.parent_uuid, "parentUuid")
        if parent == self._previous:
            parent = None
        # A meta line is text that the model saw, but no turn of a user: it must not close open calls (I8).
        voice = Role.SYSTEM if role is Role.USER and record.is_meta is True else role
        lane = _lane(line, record)
        whole = content[:1] == b'"'
        events: list[TranscriptItem] = []
        called: set[str] = set()
        blocks = [content] if whole else [bytes(block) for block in line.decode_part(content, _BLOCKS)]
        for index, body in enumerate(blocks):
            statement = self._statement(line, body, called, whole=whole)
            if statement is None:
                self._tally.skip("empty_block")
                continue
            envelope = Envelope(
                role=voice if statement.kind is EventKind.MESSAGE else None,
                thread=lane,
                call_id=statement.call_id,
                tool=statement.tool,
                is_error=statement.is_error,
                source_at=source_at,
                parent=None if events else parent,
                message_id=message_id,
            )
            event = NewEvent(
                kind=statement.kind,
                body=line.as_it_stood(body),
                envelope=envelope,
                actor=role.value,
                key=f"{uuid}#{index}",
            )
            events.append(event)
        self._uuids.add(uuid)
        self._calls |= called
        if events:
            self._previous = uuid
        elif not blocks:
            self._tally.skip("empty_block")
        return events

    def _statement(self, line: Line, body: bytes, called: set[str], *, whole: bool) -> _Statement | None:
        """Tell what a block states; None: nothing, it is empty.

        `called` are the calls of the record so far; `whole`: the content is one string, and no blocks.
        """
        if len(body) > EVENT_BYTES_MAX:
            raise line.fault(f"a block of {len(body)} bytes, an event holds at most {EVENT_BYTES_MAX}")
        block = line.decode_part(body, _VALUE)
        if whole:
            return _MESSAGE_STATED if block.strip() else None
        if not isinstance(block, dict):
            raise line.fault("a block of message.content is no object")
        if body.count(b"{") + body.count(b"[") > JSON_DEPTH_MAX:
            line.check_depth(block)
        kind = identifier(line, block.get("type"), "a block's type")
        if kind in _TEXTS:
            member, stated = _TEXTS[kind]
            text = block.get(member)
            if not isinstance(text, str):
                raise line.fault(f"a {kind} block whose {member} is no string")
            return stated if text.strip() else None
        if kind == "tool_use":
            return self._call(line, block, called)
        if kind == "tool_result":
            return self._result(line, block, called)
        return _THINKING_STATED if kind == "redacted_thinking" else _MESSAGE_STATED

    def _call(self, line: Line, block: dict[str, object], called: set[str]) -> _Statement:
        call_id, tool = read_tool_use(line, block)
        called.add(call_id)
        return _Statement(EventKind.TOOL_CALL, call_id, tool)

    def _result(self, line: Line, block: dict[str, object], called: set[str]) -> _Statement:
        call_id, is_error = read_tool_result(line, block)
        if self._alone and call_id not in self._calls and call_id not in called:
            raise line.fault(f"orphan result: no earlier call has the id {call_id!r}")
        return _Statement(EventKind.TOOL_RESULT, call_id, None, is_error)

    def _new_uuid(self, line: Line, record: _Record) -> str:
        """Return the uuid of a record; it counts as taken once the record was read whole."""
        uuid = identifier(line, record.uuid, "uuid")
        if len(uuid) > KEY_CHARS_MAX - _KEY_SUFFIX_CHARS:
            raise line.fault(f"a uuid of {len(uuid)} characters")
        if uuid in self._uuids:
            raise line.fault(f"uuid repeats: {uuid!r}")
        return uuid


# ---------------------------------------------------------------------------------------------- members of a record


def _content_of(line: Line, record: _Record) -> tuple[_Message, bytes]:
    """Return the message and its content, which is a string or a list, as it stands."""
    if record.message is _ABSENT:
        raise line.fault("message is missing")
    if memoryview(record.message)[0] != ord("{"):
        raise line.fault("message is no object")
    message = line.decode_part(record.message, _MESSAGE)
    content = bytes(message.content)
    if content[:1] not in (b'"', b"["):
        raise line.fault("message.content is neither a string nor a list")
    return message, content


def _lane(line: Line, record: _Record) -> str:
    if record.is_sidechain is not True:
        return "main"
    agent = _optional(line, record.agent_id, "agentId")
    return "sidechain" if agent is None else f"sidechain:{agent}"


def _optional(line: Line, value: object, name: str) -> str | None:
    return None if value is None or value == "" else identifier(line, value, name)
