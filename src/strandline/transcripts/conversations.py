"""Conversations as records: where each begins, how their events are named, what of a damaged one is whole.

A record is what one message says, or a conversation: an object with a list of such records. What stands in them, each
format tells by its `Form`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, takewhile
from typing import Final

import msgspec
from msgspec import Raw

from strandline.codec import pack
from strandline.errors import ImportFormatError
from strandline.limits import EVENT_BYTES_MAX, IMPORT_OPENING_CHARS_MAX, NAME_CHARS_MAX
from strandline.model.event import Envelope, EventKind, NewEvent
from strandline.model.transcript import IMPORT_ACTOR, ForeignText, SessionRestart, TranscriptItem
from strandline.transcripts.keys import KeyChain
from strandline.transcripts.lines import Line, Tally, check_utf8, is_whole
from strandline.transcripts.statements import Heard, Said
from strandline.transcripts.structure import member, members, skip_blank, values

_THREAD: Final = "main"  # a user turn closes the calls of the assistant
_RAW: Final = msgspec.json.Decoder(Raw)
_FIELDS: Final = msgspec.json.Decoder(dict[str, Raw])


def _nothing(_: Line) -> Iterable[Line]:
    return ()


def _itself(line: Line) -> Line:
    return line


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """How one format writes conversations."""

    name: str  # of the format, in the keys
    read: Callable[[Line, Heard], Said]  # one message
    lists: tuple[bytes, ...] = ()  # names of the member that holds the messages of a conversation, as spelled
    logs: bytes | None = None  # name of the member that holds conversations, where a record may hold several
    beside: Callable[[Line], Iterable[Line]] = _nothing  # what was said and stands beside the list, as messages
    beside_names: tuple[str, ...] = ()  # the members of which it is made
    message: Callable[[Line], Line] = _itself  # the message that a record is that is no conversation


class ConversationReader:
    """Reads the records of a file; it remembers what the conversation said so far.

    Args:
        form: how the format writes conversations.
        tally: told of what becomes no event.
        digest: keyed digest of bytes, for the keys.
        split: each conversation is for a log of its own: its keys don't depend on those before it.
        alone: the call of each result must stand in its conversation; else it may stand in a log.
    """

    def __init__(
        self, form: Form, tally: Tally, digest: Callable[[bytes], str], *, split: bool = False, alone: bool = True
    ) -> None:
        self._form = form
        self._tally = tally
        self._digest = digest
        self._split = split
        self._alone = alone
        self._keys = KeyChain(form.name, digest)
        self._heard = Heard(alone=alone)
        self._conversations: bool | None = None  # records are conversations, or messages of one
        self._records = 0

    def read(self, line: Line) -> Iterator[TranscriptItem]:
        """Yield what one record states.

        Raises:
            ImportFormatError: it is damaged, and nothing is to be salvaged.
        """
        start = None if line.stray or self._form.logs is None else list_at(line.data, (self._form.logs,))
        if start is None:
            yield from self._record(line)
            return
        damage = self._damage(line)
        walk = values(line.data, start + 1)
        if damage is None and not walk.closed:
            damage = line.fault("nested too deep")
        whole = self._tally.left_out_count
        for log in line.parts(walk.spans):
            self._tally.at(log)
            yield from self._record(log)
        if damage is not None and (not walk.closed or self._tally.left_out_count == whole):
            self._tally.leave_out(damage, line, walk.end)

    def _record(self, line: Line) -> Iterator[TranscriptItem]:
        self._records += 1
        start = None if line.stray else list_at(line.data, self._form.lists)
        self._tally.where = f"{'message' if start is None else 'conversation'} {self._records}" if line.part else ""
        try:
            self._check_shape(line, conversation=start is not None)
            items = self._message(self._form.message(line)) if start is None else self._conversation(line, start)
        except ImportFormatError as fault:
            self._tally.leave_out(fault, line)
            return
        yield from items

    def _check_shape(self, line: Line, *, conversation: bool) -> None:
        """Refuse what is damaged for sure, and a file of messages that holds a conversation, or the other way round."""
        if not conversation:
            line.decode(_RAW)
        if self._conversations not in (None, conversation):
            raise line.fault("a conversation among messages" if conversation else "a message among conversations")
        self._conversations = conversation

    def _damage(self, line: Line) -> ImportFormatError | None:
        """Return the fault of a record of which a part may be salvaged; where nothing is salvaged, raise it."""
        try:
            line.decode(_RAW)
        except ImportFormatError as fault:
            if not self._tally.salvage:
                raise
            return fault
        return None

    # ------------------------------------------------------------------------------------------ conversations

    def _conversation(self, line: Line, start: int) -> Iterator[TranscriptItem]:
        """Yield an opening note and the messages; of a damaged conversation, as much as is surely whole."""
        data, damage = line.data, self._damage(line)
        walk = values(data, start + 1)
        intact = walk.closed
        if damage is None and not intact:
            damage = line.fault("nested too deep")
        try:
            fields = self._fields(line, start, walk.end) if intact else {}
        except ImportFormatError as fault:
            intact = False
            damage = damage or fault
        try:
            fields = fields if intact else self._fields(line, start)
        except ImportFormatError as fault:
            self._tally.leave_out(damage or fault, line)
            return
        spans = walk.spans if intact else list(takewhile(lambda span: is_whole(data, span), walk.spans))
        whole = self._tally.left_out_count
        beside = list(self._form.beside(line)) if any(name in fields for name in self._form.beside_names) else []
        if beside:
            fields = {name: value for name, value in fields.items() if name not in self._form.beside_names}
        if damage is None and not (spans or fields or beside):
            return  # an empty conversation of which nothing is told, as an empty list is one
        yield from self._open(fields)
        for number, message in enumerate(chain(beside, line.parts(spans)), 1 - len(beside)):
            self._tally.at(message)
            which = f"message {number}" if number > 0 else "the system prompt"
            self._tally.where = f"{which} of conversation {self._records}"
            try:
                events = self._message(message)
            except ImportFormatError as fault:
                self._tally.leave_out(fault, message)
                continue
            yield from events
        self._tally.where = f"conversation {self._records}"
        if damage is not None and (not intact or self._tally.left_out_count == whole):
            cut = len(spans) < len(walk.spans)
            self._tally.leave_out(damage, line, walk.spans[len(spans)][0] if cut else walk.end)

    def _fields(self, line: Line, start: int, end: int | None = None) -> dict[str, str]:
        """Return the fields of a conversation but its list: what identifies it as text, "" for the others.

        `start` and `end` are of the list; without an end only the fields before it count.
        """
        rest = b"}" if end is None else line.data[end:]
        record = Line(line.number, line.start, line.data[:start] + b"[]" + rest, ended=line.ended)
        check_utf8(record)
        fields = record.decode(_FIELDS)
        names = [name for name, _ in members(record.data)]
        if len(set(names)) < len(names):
            raise line.fault("a field of the conversation stands twice")
        lists = {name.strip(b'"').decode() for name in self._form.lists}
        return {name: _shown(record, name, bytes(value)) for name, value in fields.items() if name not in lists}

    def _open(self, fields: dict[str, str]) -> Iterator[TranscriptItem]:
        """Yield the boundary between two conversations, and the note that opens the next one."""
        if self._split:
            self._keys = KeyChain(self._form.name, self._digest)
        self._heard = Heard(alone=self._alone)
        yield SessionRestart(key=self._keys.here, opens=self._records)
        for name, value in fields.items():
            if not value:
                self._tally.skip(f"conversation.{name[:NAME_CHARS_MAX]}")
        told = ", ".join(f"{name} {value}" for name, value in fields.items() if value)
        text = f"Conversation {self._records} of the file" + (f": {told}" if told else "")
        yield self._event(EventKind.NOTE, text, Envelope(thread=_THREAD), IMPORT_ACTOR)

    # ------------------------------------------------------------------------------------------ messages

    def _message(self, line: Line) -> Iterable[TranscriptItem]:
        """Return what one message states; one that is refused leaves no trace."""
        said = self._form.read(line, self._heard)
        for statement in said.statements:
            if len(statement.body) > EVENT_BYTES_MAX:
                raise line.fault(f"a {statement.kind} of {len(statement.body)} bytes, at most {EVENT_BYTES_MAX}")
        for what in said.skipped:
            self._tally.skip(what)
        items: list[TranscriptItem] = []
        if said.restarts:
            items.append(SessionRestart(key=self._keys.here))
        if said.foreign is not None:
            items.append(ForeignText(key=self._keys.next(said.foreign.encode()), text=said.foreign, detail=said.detail))
        for statement in said.statements:
            if statement.kind is EventKind.TOOL_CALL and statement.call_id is not None:
                self._heard.calls.add(statement.call_id)
                self._heard.asked += 1
                self._heard.waits_for = statement.call_id
            elif statement.kind is EventKind.TOOL_RESULT:
                self._heard.waits_for = None
            envelope = Envelope(
                role=said.role if statement.kind is EventKind.MESSAGE else None,
                thread=_THREAD,
                call_id=statement.call_id,
                tool=statement.tool,
                is_error=statement.is_error,
                source_at=said.source_at,
            )
            items.append(self._event(statement.kind, statement.body, envelope, statement.actor or said.actor))
        return items

    def _event(self, kind: EventKind, body: str | bytes, envelope: Envelope, actor: str) -> NewEvent:
        said = body.encode() if isinstance(body, str) else body
        content = b"\0".join((kind.encode(), actor.encode(), pack(envelope), said))
        return NewEvent(kind=kind, body=body, envelope=envelope, actor=actor, key=self._keys.next(content))


def list_at(data: bytes, lists: tuple[bytes, ...]) -> int | None:
    """Return where the list of a conversation begins; None where the record is no conversation."""
    """Return where the list of a conversation begins, by the names it may have; None: the record is no conversation."""
    if not lists or data[(at := skip_blank(data, 0)) : at + 1] != b"{":
        return None
    places = (member(data, name) for name in lists)
    return next((at for at in places if at is not None and data[at : at + 1] == b"["), None)


def _shown(record: Line, name: str, value: bytes) -> str:
    """Return a number, a truth or a short string as the opening note tells it; "" for anything else."""
    if value[:1] in (b"[", b"{") or value == b"null" or len(value) > IMPORT_OPENING_CHARS_MAX:
        return ""
    if record.stand_ins is not None and record.stand_ins.stand_in(name + value.decode()):
        return ""
    return json.dumps(json.loads(value), ensure_ascii=False) if value[:1] == b'"' else value.decode()
