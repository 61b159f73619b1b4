"""OpenAI's messages as records: where conversations begin, and how their events are named.

A record is a message, a response of chat completions, or a conversation: an object with a list of messages, which
fine-tuning lines, requests (Anthropic's too) and tau-bench episodes are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, takewhile
from typing import Final

import msgspec
from msgspec import Raw

from strandline.codec import pack
from strandline.errors import ImportFormatError
from strandline.limits import NAME_CHARS_MAX
from strandline.model.event import Envelope, EventKind, NewEvent
from strandline.model.transcript import IMPORT_ACTOR, SessionRestart, TranscriptItem
from strandline.transcripts.keys import KeyChain
from strandline.transcripts.lines import Line, Tally, is_whole
from strandline.transcripts.openai_message import read_message
from strandline.transcripts.openai_records import fields_of, list_of_messages, only_choice, system_of
from strandline.transcripts.structure import values

_THREAD: Final = "main"  # a user turn closes the calls of the assistant
_RAW: Final = msgspec.json.Decoder(Raw)


class OpenAIReader:
    """Reads records of OpenAI's messages; it remembers the calls of the conversation so far.

    Args:
        tally: told of what becomes no event.
        digest: keyed digest of bytes, for the keys.
        split: each conversation is for a log of its own: its keys don't depend on those before it.
        alone: the call of each result must stand in its conversation; else it may stand in a log.
    """

    def __init__(
        self, tally: Tally, digest: Callable[[bytes], str], *, split: bool = False, alone: bool = True
    ) -> None:
        self._tally = tally
        self._digest = digest
        self._split = split
        self._alone = alone
        self._keys = KeyChain("openai", digest)
        self._calls: set[str] = set()
        self._conversations: bool | None = None  # records are conversations, or messages of one
        self._records = 0

    def read(self, line: Line) -> Iterator[TranscriptItem]:
        """Yield what one record states.

        Raises:
            ImportFormatError: it is damaged, and nothing is to be salvaged.
        """
        self._records += 1
        start = None if line.stray else list_of_messages(line.data)
        self._tally.where = f"{'message' if start is None else 'conversation'} {self._records}" if line.part else ""
        try:
            self._check_shape(line, conversation=start is not None)
            items = self._message(only_choice(line)) if start is None else self._conversation(line, start)
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

    # ------------------------------------------------------------------------------------------ conversations

    def _conversation(self, line: Line, start: int) -> Iterator[TranscriptItem]:
        """Yield an opening note and the messages; of a damaged conversation, as much as is surely whole."""
        data, damage = line.data, None
        try:
            line.decode(_RAW)
        except ImportFormatError as fault:
            damage = fault
            if not self._tally.salvage:
                raise
        walk = values(data, start + 1)
        intact = walk.closed
        if damage is None and not intact:
            damage = line.fault("nested too deep")
        try:
            fields = fields_of(line, data, start, walk.end) if intact else {}
        except ImportFormatError as fault:
            intact = False
            damage = damage or fault
        try:
            fields = fields if intact else fields_of(line, data, start)
        except ImportFormatError as fault:
            self._tally.leave_out(damage or fault, line)
            return
        spans = walk.spans if intact else list(takewhile(lambda span: is_whole(data, span), walk.spans))
        whole = self._tally.left_out_count
        system = system_of(line) if "system" in fields else None
        if system is not None:
            fields.pop("system", None)
        if damage is None and not (spans or fields or system):
            return  # an empty conversation of which nothing is told, as an empty list is one
        yield from self._open(fields)
        for number, message in enumerate(chain([system] if system else [], line.parts(spans)), 0 if system else 1):
            self._tally.at(message)
            which = f"message {number}" if number else "the system prompt"
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

    def _open(self, fields: dict[str, str]) -> Iterator[TranscriptItem]:
        """Yield the boundary between two conversations, and the note that opens the next one."""
        if self._split:
            self._keys = KeyChain("openai", self._digest)
        self._calls = set()
        yield SessionRestart(key=self._keys.here, opens=self._records)
        for name, value in fields.items():
            if not value:
                self._tally.skip(f"conversation.{name[:NAME_CHARS_MAX]}")
        told = ", ".join(f"{name} {value}" for name, value in fields.items() if value)
        text = f"Conversation {self._records} of the file" + (f": {told}" if told else "")
        yield self._event(EventKind.NOTE, text, Envelope(thread=_THREAD), IMPORT_ACTOR)

    # ------------------------------------------------------------------------------------------ messages

    def _message(self, line: Line) -> Iterable[TranscriptItem]:
        """Return the events of one message; one that is refused leaves no trace."""
        said = read_message(line, self._calls if self._alone else None)
        for what in said.skipped:
            self._tally.skip(what)
        events = []
        for statement in said.statements:
            if statement.kind is EventKind.TOOL_CALL and statement.call_id is not None:
                self._calls.add(statement.call_id)
            envelope = Envelope(
                role=said.role if statement.kind is EventKind.MESSAGE else None,
                thread=_THREAD,
                call_id=statement.call_id,
                tool=statement.tool,
                is_error=statement.is_error,
            )
            events.append(self._event(statement.kind, statement.body, envelope, said.actor))
        return events

    def _event(self, kind: EventKind, body: str | bytes, envelope: Envelope, actor: str) -> NewEvent:
        said = body.encode() if isinstance(body, str) else body
        content = b"\0".join((kind.encode(), actor.encode(), pack(envelope), said))
        return NewEvent(kind=kind, body=body, envelope=envelope, actor=actor, key=self._keys.next(content))
