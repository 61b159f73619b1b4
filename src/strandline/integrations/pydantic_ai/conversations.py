"""`StrandlineConversationStore`: conversations of Pydantic AI as workflows, with revisions (ADR 61).

A save is one append: the events of its messages, and behind them one event that keeps the record and says which entries
came. The newest record counts, also on a branch that was left: to branch is to rewind, and a rewind must not take the
conversation itself back. So nothing is ever overwritten, and a crash leaves the conversation as it was.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pydantic
from pydantic_ai.conversation_store import (
    ConversationConflict,
    ConversationEntry,
    ConversationRecord,
    ConversationStore,
)

import strandline
from strandline import CorruptRecordError, NewEvent, StaleRevisionError, Tenant, Workflow
from strandline.integrations.newest import facts_from, last_live, newest_events
from strandline.integrations.origins import read_origin, write_origin
from strandline.integrations.pydantic_ai.history import events_of
from strandline.integrations.pydantic_ai.messages import FORMAT, Json, dump, event_keys, kept, key_of, load
from strandline.limits import SESSION_ROUNDS_MAX

_ADAPTER: Final = pydantic.TypeAdapter(ConversationRecord)
_BY: Final = "pydantic-ai conversation store"
_ERASED: Final = "[erased]"
_RECENT: Final = 8  # entries before new ones, among which stand the calls that those answer


@dataclass(frozen=True, slots=True)
class _Line:
    """An entry of a history, and the key by which the log knows its message."""

    entry_id: str
    parent_id: str | None
    key: str
    kind: str
    parts: int

    @classmethod
    def of(cls, told: Json) -> _Line:
        return cls(told["id"], told["parent"], told["key"], told["kind"], told["parts"])

    def told(self) -> Json:
        named = {"id": self.entry_id, "parent": self.parent_id, "key": self.key}
        return {**named, "kind": self.kind, "parts": self.parts}

    def last_seq(self, workflow: Workflow) -> int:
        """Return the last live event of the message; 0: it has none."""
        return max(workflow.seqs_of(event_keys(self.key, self.parts)).values(), default=0)

    def erased(self) -> Json:
        """Return what stands for the message after an erasure."""
        kind = "user-prompt" if self.kind == "request" else "text"
        return {"kind": self.kind, "parts": [{"part_kind": kind, "content": _ERASED}]}


@dataclass(frozen=True, slots=True)
class _Stored:
    """The newest record in a log; None: it was deleted."""

    record: ConversationRecord | None
    head_id: str | None


class StrandlineConversationStore(ConversationStore):
    """Each conversation is the workflow of its id; with `StrandlineMemory` on the same one no message stands twice.

    `delete` leaves the log as it is: what a person said is taken out of it by `Workflow.erase`.
    """

    def __init__(self, tenant: Tenant) -> None:
        """Take the tenant whose conversations they are (I21)."""
        self._tenant = tenant
        self._holders: dict[str, str] = {}  # which workflow is known to hold an entry

    # ------------------------------------------------------------------------------------------ the primitives

    async def read_record(self, conversation_id: str) -> ConversationRecord | None:
        """Return the newest record of a conversation; None: there is none, or it was deleted."""
        return await asyncio.to_thread(self._record, conversation_id)

    async def read_records(self, *, scope: str | None = None, limit: int | None = None) -> Sequence[ConversationRecord]:
        """Return the records of all conversations of the tenant; it looks into each workflow."""

        def read() -> list[ConversationRecord]:
            found = [self._record(name) for name in self._tenant.workflows()]
            records = [one for one in found if one is not None and scope in (None, one.scope)]
            return sorted(records, key=lambda one: one.updated_at, reverse=True)[:limit]

        return await asyncio.to_thread(read)

    async def write_record(
        self,
        record: ConversationRecord,
        *,
        new_entries: Sequence[ConversationEntry] = (),
        expected_revision: str | None,
    ) -> None:
        """Append the new entries and the record as one.

        Raises:
            ConversationConflict: another writer was first, or the head is an entry that nobody stored.
        """
        await asyncio.to_thread(self._write, record, list(new_entries), expected_revision)

    async def delete_record(self, conversation_id: str, *, expected_revision: str) -> None:
        """Let a conversation load no longer; its log stays.

        Raises:
            ConversationConflict: another writer was first.
        """
        await asyncio.to_thread(self._delete, conversation_id, expected_revision)

    async def read_entry(self, entry_id: str) -> ConversationEntry:
        """Return an entry; one that this store did not meet before is looked for in each workflow.

        Raises:
            LookupError: no conversation of the tenant has it.
        """
        return (await asyncio.to_thread(self._history, entry_id, 1))[-1]

    async def read_history(self, head_id: str | None, *, limit: int | None = None) -> list[ConversationEntry]:
        """Return the entries up to `head_id`, read from the end of the log backwards."""
        if head_id is None or limit == 0:
            return []
        return await asyncio.to_thread(self._history, head_id, limit)

    # ------------------------------------------------------------------------------------------ reading

    def _record(self, conversation_id: str) -> ConversationRecord | None:
        stored = _newest(self._tenant.workflow(conversation_id))
        if stored is None or stored.record is None:
            return None
        record = stored.record
        for entry_id in (record.head_id, record.forked_at, *record.branches):
            if entry_id is not None:
                self._holders[entry_id] = conversation_id
        return record

    def _history(self, head_id: str, limit: int | None) -> list[ConversationEntry]:
        lines, messages = _read(self._holder(head_id), head_id, limit)
        loaded = load([messages[line.key] for line in lines])
        return [
            ConversationEntry(id=line.entry_id, parent_id=line.parent_id, message=message)
            for line, message in zip(lines, loaded, strict=True)
        ]

    def _holder(self, entry_id: str) -> Workflow:
        known = self._holders.get(entry_id)
        for name in [known] if known is not None else self._tenant.workflows():
            workflow = self._tenant.workflow(name)
            if any(line.entry_id == entry_id for line in _lines(workflow)):
                return workflow
        raise LookupError(f"no conversation of {self._tenant!r} holds the entry {entry_id!r}")

    # ------------------------------------------------------------------------------------------ writing

    def _write(
        self, record: ConversationRecord, entries: Sequence[ConversationEntry], expected_revision: str | None
    ) -> None:
        workflow = self._tenant.workflow(record.conversation_id)
        base = entries[0].parent_id if entries else record.head_id
        for _ in range(SESSION_ROUNDS_MAX):
            revision = workflow.basis().revision
            stored = _newest(workflow)
            if _revision_of(stored) != expected_revision:
                raise ConversationConflict(record.conversation_id)
            try:
                order = self._order(record, stored, base, entries)
            except LookupError:
                raise ConversationConflict(record.conversation_id) from None
            if revision == 0 and record.forked_from is not None and order.lines:
                revision = self._fork(record, order.lines)
            try:
                self._put(workflow, order, revision)
            except StaleRevisionError:
                continue  # an effect, a fact, a run beside it; another save is found by the record
            self._record(record.conversation_id)
            return
        raise ConversationConflict(record.conversation_id)

    def _order(
        self,
        record: ConversationRecord,
        stored: _Stored | None,
        base: str | None,
        entries: Sequence[ConversationEntry],
    ) -> _Order:
        """Return what is to be done, with the history that the record goes on from: its end, where that is enough.

        Raises:
            LookupError: nobody stored its last entry.
        """
        if base is None:
            return _Order(record, stored, (), {}, entries)
        workflow = self._tenant.workflow(record.conversation_id)
        if stored is None and record.forked_from is not None:
            workflow = self._tenant.workflow(record.forked_from)
        elif stored is not None and stored.record is not None and stored.head_id == base:
            order = _Order(record, stored, *_read(workflow, base, _RECENT), entries)
            if order.lines[-1].last_seq(workflow):
                return order
        return _Order(record, stored, *_read(workflow, base, None), entries)

    def _fork(self, record: ConversationRecord, lines: Sequence[_Line]) -> int:
        """Fork the workflow where the last message stands, and return the revision; where it stands on no live branch,
        the messages are written anew.
        """
        parent = self._tenant.workflow(record.forked_from or "")
        at = lines[-1].last_seq(parent)
        if at:
            parent.fork(at, record.conversation_id, by=_BY, why="fork")
        return self._tenant.workflow(record.conversation_id).basis().revision

    def _put(self, workflow: Workflow, order: _Order, revision: int) -> None:
        """Bring the live log to the history that the record goes on from, and append what is new."""
        live = 0
        for n, line in enumerate(reversed(order.lines)):
            if line.last_seq(workflow):
                live = len(order.lines) - n
                break
        if order.moved:
            said = _live_messages(workflow)
            last = order.lines[live - 1].last_seq(workflow) if live else last_live(workflow, min(said, default=0))
            if last < max(said, default=0):
                facts = facts_from(workflow, last + 1, lambda event: read_origin(FORMAT, event) is not None)
                done = workflow.rewind(last, keep=facts, expected_revision=revision, by=_BY, why="branch")
                revision = done.revision
        again = [order.messages[line.key] for line in order.lines[live:]]
        new = dump([entry.message for entry in order.entries])
        history = [*(order.messages[line.key] for line in order.lines), *new]
        events = events_of(workflow, history, [*again, *new])
        known = workflow.seqs_of([event.key or "" for event in events])
        added = [
            _Line(entry.id, entry.parent_id, key_of(message), message["kind"], len(message["parts"]))
            for entry, message in zip(order.entries, new, strict=True)
        ]
        told = added if order.stored is not None else [*order.lines, *added]
        workflow.append(
            [*(event for event in events if event.key not in known), _record_event(order.record, told)],
            expected_revision=revision,
        )

    def _delete(self, conversation_id: str, expected_revision: str) -> None:
        workflow = self._tenant.workflow(conversation_id)
        for _ in range(SESSION_ROUNDS_MAX):
            revision = workflow.basis().revision
            stored = _newest(workflow)
            if stored is None or stored.record is None or stored.record.revision != expected_revision:
                raise ConversationConflict(conversation_id)
            try:
                workflow.append(_record_event(stored.record, (), deleted=True), expected_revision=revision)
            except StaleRevisionError:
                continue
            return
        raise ConversationConflict(conversation_id)


@dataclass(frozen=True, slots=True)
class _Order:
    """What is to be written: a record, what was stored before it, the history that it goes on from, what is new."""

    record: ConversationRecord
    stored: _Stored | None
    lines: Sequence[_Line]
    messages: Mapping[str, Json]
    entries: Sequence[ConversationEntry]

    @property
    def moved(self) -> bool:
        """Whether it goes on from elsewhere than what was stored ends."""
        base = self.lines[-1].entry_id if self.lines else None
        return self.stored is not None and (self.stored.record is None or self.stored.head_id != base)


def _record_event(record: ConversationRecord, lines: Iterable[_Line], *, deleted: bool = False) -> NewEvent:
    kept_here: dict[str, Any] = {
        "record": _ADAPTER.dump_python(record, mode="json"),
        "entries": [line.told() for line in lines],
    }
    if deleted:
        kept_here["deleted"] = True
    said = "The conversation is deleted." if deleted else "The conversation is saved."
    return strandline.thinking(said, origin=write_origin(FORMAT, kept_here))


def _newest(workflow: Workflow) -> _Stored | None:
    """Return the newest record of a workflow, also on a branch that was left; a fork's parent's is none of its own."""
    for event in newest_events(workflow):
        origin = read_origin(FORMAT, event)
        if origin is None or "record" not in origin:
            continue
        try:
            record = _ADAPTER.validate_python(origin["record"])
        except ValueError as error:
            raise CorruptRecordError(f"no conversation: {error}", place=f"origin of event {event.seq}") from error
        if record.conversation_id != workflow.name:
            return None
        return _Stored(None if origin.get("deleted") else record, record.head_id)
    return None


def _revision_of(stored: _Stored | None) -> str | None:
    return None if stored is None or stored.record is None else stored.record.revision


def _lines(workflow: Workflow) -> Iterable[_Line]:
    """Yield the entries of a log, the newest first."""
    for event in newest_events(workflow):
        origin = read_origin(FORMAT, event)
        for told in reversed((origin or {}).get("entries", ())):
            yield _Line.of(told)


def _read(workflow: Workflow, head_id: str, limit: int | None) -> tuple[list[_Line], dict[str, Json]]:
    """Return the last entries up to one, and the messages that are theirs; no more of the log is read than that takes.

    Raises:
        LookupError: the log does not hold the entry.
        CorruptRecordError: it holds one without its message, or without the entry before it.
    """
    lines: dict[str, _Line] = {}
    messages: dict[str, Json] = {}
    chain: list[_Line] = []
    wanted: str | None = head_id
    for event in newest_events(workflow):
        origin = read_origin(FORMAT, event) or {}
        for told in origin.get("entries", ()):
            lines.setdefault(told["id"], _Line.of(told))
        own = kept(event)
        if own is not None and own.message is not None:
            messages.setdefault(own.key, own.message)
        while wanted in lines and len(chain) != limit:
            chain.append(lines[wanted])
            wanted = chain[-1].parent_id
        if (wanted is None or len(chain) == limit) and all(line.key in messages for line in chain):
            return chain[::-1], messages
    if not chain:
        raise LookupError(f"{workflow!r} holds no entry {head_id!r}")
    messages |= {line.key: line.erased() for line in chain if line.key not in messages and line.last_seq(workflow) > 0}
    missing = [line.entry_id for line in chain if line.key not in messages]
    if wanted is not None and len(chain) != limit:
        missing.append(wanted)
    if missing:
        place = f"entry {missing[0]!r} of {workflow!r}"
        raise CorruptRecordError("it, or its message, is not in the log", place=place)
    return chain[::-1], messages


def _live_messages(workflow: Workflow) -> list[int]:
    """Return the live events of messages."""
    return [event.seq for event in newest_events(workflow) if not event.abandoned and kept(event) is not None]
