"""Messages of LangChain as events of the log, and a context as messages (C34).

A text is a message event, each other block of a message (an image) an event of its own, a thought a thinking event. A
tool call is recorded together with its result, once that is there: a call that runs through the ledger of effects is
recorded by the ledger, and its `ToolMessage` bears a mark that says so.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Container, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
    convert_to_messages,
)

from strandline import (
    Context,
    ContextPart,
    EventKind,
    NewEvent,
    PartKind,
    Role,
    SourceEvent,
    message,
    note,
    thinking,
    tool_call,
    tool_result,
)
from strandline.limits import RECORD_PAGE_EVENTS
from strandline.model.event import Envelope

KEY_PREFIX: Final = "langgraph:"
LEDGER_MARK: Final = (
    "strandline_effect"  # in a ToolMessage's `additional_kwargs`: whose ledger recorded call and result
)
_DIGEST_CHARS: Final = 16
_ROLES: Final = {HumanMessage: Role.USER, AIMessage: Role.ASSISTANT, SystemMessage: Role.SYSTEM}
_TEXTS: Final = frozenset({"text", "input_text", "output_text"})
_THOUGHTS: Final = {"thinking": "thinking", "reasoning": "reasoning", "reasoning_content": "reasoning_content"}
_CALLS: Final = frozenset({"tool_use", "tool_call", "function_call", "input_json_delta"})  # stand in `tool_calls` too


def storable_text(text: str) -> str:
    """Return a text as the log can hold it: a lone surrogate, which UTF-8 has no bytes for, is spelled out."""
    return text.encode("utf-8", "backslashreplace").decode()


def events_of(
    messages: Sequence[BaseMessage], *, agent: str, first: int = 0, elsewhere: Container[str] = ()
) -> list[NewEvent]:
    """Return the events that record messages, oldest first, each under a key of its own.

    A message that was edited under its id is recorded once more: its key names its content, too.

    Args:
        messages: a whole history, each with an id; calls are looked for in all of it.
        agent: whose history it is: the actor of its answers, and the lane in which a user's turn closes open calls.
        first: the index of the first message to record.
        elsewhere: ids of calls that a ledger recorded, but not that of this log.
    """
    return [event for index in range(first, len(messages)) for event in _events(messages, index, agent, elsewhere)]


def _events(messages: Sequence[BaseMessage], index: int, agent: str, elsewhere: Container[str]) -> list[NewEvent]:
    said = messages[index]
    key = f"{KEY_PREFIX}{said.id}:{_digest(said)}"
    if isinstance(said, ToolMessage):
        held = LEDGER_MARK in said.additional_kwargs and said.tool_call_id not in elsewhere
        return [] if held else _answered(messages, index, key, agent)
    role = next((role for kind, role in _ROLES.items() if isinstance(said, kind)), None)
    if role is None:
        return [note(f"[{said.type}] {storable_text(said.text)}", key=key, actor=said.name or said.type)]
    actor = said.name or (agent if role is Role.ASSISTANT else role.value)
    events = [thinking(storable_text(text), key=f"{key}:thought") for text in _thought(said)]
    if said.text.strip():
        events.append(message(role, storable_text(said.text), key=key))
    events += (
        NewEvent(kind=EventKind.MESSAGE, body=block, envelope=Envelope(role=role), key=f"{key}:{number}")
        for number, block in enumerate(_blocks(said))
    )
    return [
        replace(event, actor=actor, envelope=event.envelope._replace(thread=agent, message_id=said.id))
        for event in events
    ]


def _digest(said: BaseMessage) -> str:
    """Return what tells a message from one that was edited under the same id."""
    content = json.dumps(said.content, sort_keys=True, default=str)
    return hashlib.sha256(content.encode()).hexdigest()[:_DIGEST_CHARS]


def _thought(said: BaseMessage) -> list[str]:
    """Return what a model thought, in one piece; [] if it says nothing of it."""
    texts = [block.get(_THOUGHTS[block["type"]]) for block in _dicts(said) if block.get("type") in _THOUGHTS]
    thought = "\n".join(text for text in texts if isinstance(text, str) and text.strip())
    return [thought] if thought else []


def _blocks(said: BaseMessage) -> Iterator[Mapping[str, object]]:
    """Yield what a message holds beside text, thoughts and calls, as it stands."""
    for block in _dicts(said):
        if block.get("type") not in _TEXTS and block.get("type") not in _THOUGHTS and block.get("type") not in _CALLS:
            yield block


def _dicts(said: BaseMessage) -> list[dict[str, Any]]:
    return [block for block in said.content if isinstance(block, dict)] if isinstance(said.content, list) else []


def _answered(messages: Sequence[BaseMessage], index: int, key: str, agent: str) -> list[NewEvent]:
    """Return the events of a result and of its call; a result that no message asked for is a note."""
    result = messages[index]
    assert isinstance(result, ToolMessage)
    found = call_of(messages[:index], result.tool_call_id)
    if found is None:
        text = f"[result of a call {result.tool_call_id} that nobody made] {storable_text(result.text)}"
        return [note(text, key=key, actor=agent)]
    caller, call = found
    actor = caller.name or agent
    content = storable_text(result.content) if isinstance(result.content, str) else result.content
    return [
        tool_call(result.tool_call_id, call["name"], call["args"], key=f"{key}:call", actor=actor, thread=agent),
        tool_result(result.tool_call_id, content, is_error=result.status == "error", key=f"{key}:result", actor=actor),
    ]


def call_of(messages: Sequence[BaseMessage], call_id: str) -> tuple[AIMessage, ToolCall] | None:
    """Return the newest call of this id, with the message that made it; None: nobody made one."""
    for said in reversed(messages):
        if isinstance(said, AIMessage):
            for call in said.tool_calls:
                if call["id"] == call_id:
                    return said, call
    return None


# ---------------------------------------------------------------------------------------------- a context as messages


class _Turn:
    """A message of the state, with the answers to its calls, and what of it stands in the tail of a context."""

    def __init__(self, said: BaseMessage) -> None:
        self.messages = [said]
        self.has_text = bool(said.text.strip())
        self.texts: list[int] = []  # seqs of its text, as it was edited
        self.calls: dict[int, str] = {}  # ids by seq
        self.results: dict[int, int] = {}  # seqs of calls by the seq of their result

    def note(self, event: SourceEvent) -> None:
        """Take an event of the tail that stands for a part of the turn; all are taken before anything is asked."""
        if event.kind is EventKind.TOOL_CALL:
            self.calls[event.seq] = (event.call_id or "").partition("#")[0]
        elif event.kind is EventKind.TOOL_RESULT:
            self.results[event.seq] = event.call_seq or 0
        elif self.speaks(event):
            self.texts.append(event.seq)

    def speaks(self, event: SourceEvent) -> bool:
        """Tell whether an event stands for the message: its text, or what it shows where it has none."""
        return event.kind is EventKind.MESSAGE and (event.payload is None or not self.has_text)

    @cached_property
    def first(self) -> int:
        """The seq at which the turn is shown: of its text as it was edited last, else of its first call."""
        return self.texts[-1] if self.texts else min(self.calls)

    @cached_property
    def whole(self) -> bool:
        """Whether all of it is in the tail: then it is shown as the state holds it, else as the log does."""
        said = self.messages[0]
        if not isinstance(said, AIMessage) or not said.tool_calls:
            return bool(self.texts)
        wanted = {call["id"] for call in said.tool_calls}
        answered = {self.calls[seq] for seq in self.results.values() if seq in self.calls}
        shown = {answer.tool_call_id for answer in self.messages[1:] if isinstance(answer, ToolMessage)}
        return wanted == answered == shown and bool(self.texts or not self.has_text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """A context as messages, and the state's messages that lie before all that its tail shows: the log holds them."""

    messages: list[BaseMessage]
    before_tail: list[BaseMessage]


def to_langchain(context: Context, messages: Sequence[BaseMessage]) -> Rendered:
    """Return a context as messages.

    What stands in its tail and in the state, too, is handed over as the state holds it: with its images, its thoughts
    and their signatures. All else is rendered from the log: the summary, facts, what others wrote, what a state that a
    crash took away had held, and what was erased, whatever the state still says (C31).

    Args:
        context: what the model is to see.
        messages: the state's.
    """
    events = [part.event for part in context.parts if part.event is not None]
    start, turns = _turns(messages, {name for event in events if (name := _name_of(event)) is not None})
    of_seq: dict[int, _Turn] = {}
    for event in events:
        if not event.erased and (turn := turns.get(_name_of(event) or "")) is not None:
            turn.note(event)
            of_seq[event.seq] = turn
    shown: list[BaseMessage] = []
    for slot in _slots(context.parts, of_seq):
        if isinstance(slot, _Turn):
            shown += slot.messages
        else:
            shown += convert_to_messages(replace(context, parts=tuple(slot)).messages("openai"))
    in_tail = {id(turn.messages[0]) for turn in of_seq.values()}
    cut = next((index for index in range(start, len(messages)) if id(messages[index]) in in_tail), 0)
    return Rendered(messages=shown, before_tail=list(messages[:cut]))


def _turns(messages: Sequence[BaseMessage], wanted: AbstractSet[str]) -> tuple[int, dict[str, _Turn]]:
    """Return the index of the first message that a tail may show, and the turns from there on: by the id of their
    message, and by the ids of its calls.

    The cost of a turn follows its context, not the state. The tail is of the newest: behind a page of others nothing is
    looked for, and is shown as the log has it.
    """
    start, missed = len(messages), 0
    names: list[list[str]] = []  # of the messages looked at, the newest first
    for index in range(len(messages) - 1, -1, -1):
        names.append(_names(messages[index]))
        if not wanted.isdisjoint(names[-1]):
            start, missed = index, 0
        elif (missed := missed + 1) > RECORD_PAGE_EVENTS:
            break
    turns: dict[str, _Turn] = {}
    for index in range(start, len(messages)):
        said, own = messages[index], names[len(messages) - 1 - index]
        if isinstance(said, ToolMessage):
            if (asked := turns.get(own[0])) is not None:
                asked.messages.append(said)
        else:
            turns |= dict.fromkeys(own, _Turn(said))
    return start, turns


def _names(said: BaseMessage) -> list[str]:
    """Return the names under which what a message says may stand in the log."""
    if isinstance(said, ToolMessage):
        return [_call_name(said.tool_call_id)]
    calls = said.tool_calls if isinstance(said, AIMessage) else []
    return [said.id or "", *(_call_name(call["id"] or "") for call in calls)]


def _call_name(call_id: str) -> str:
    return f"call {call_id.partition('#')[0]}"  # the ledger numbers the attempts behind the first


def _name_of(event: SourceEvent) -> str | None:
    """Return the name of the message of a state that an event stands for; None: it stands for none."""
    if event.kind in (EventKind.TOOL_CALL, EventKind.TOOL_RESULT):
        return None if event.late else _call_name(event.call_id or "")
    return event.message_id


def _slots(parts: Sequence[ContextPart], of_seq: Mapping[int, _Turn]) -> list[_Turn | list[ContextPart]]:
    """Return what is shown in turn: turns of the state, and between them what is rendered from the log.

    A result goes where its call is, or the call would be shown as one without a result.
    """
    slots: list[_Turn | list[ContextPart]] = []
    calls: dict[int, list[ContextPart]] = {}  # by the seq of a call that is rendered: where
    for part in parts:
        event = part.event
        turn = of_seq.get(event.seq) if event is not None else None
        if event is not None and turn is not None and turn.whole and not _is_old_text(event, turn):
            if event.seq == turn.first:
                slots.append(turn)
            continue
        home = calls.get(event.call_seq or 0) if event is not None and event.kind is EventKind.TOOL_RESULT else None
        if home is None:
            if not slots or isinstance(slots[-1], _Turn):
                slots.append([])
            last = slots[-1]
            assert isinstance(last, list)
            home = last
        home.append(part)
        if event is not None and event.kind is EventKind.TOOL_CALL and part.kind is PartKind.EVENT:
            calls[event.seq] = home
    return slots


def _is_old_text(event: SourceEvent, turn: _Turn) -> bool:
    """Tell whether an event is what a message said before it was edited: the log says it still."""
    return turn.speaks(event) and event.seq != turn.texts[-1]
