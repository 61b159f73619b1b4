"""`StrandlineSession`: the Session protocol of the OpenAI Agents SDK over a workflow (ADR 61).

The SDK's own sessions compact by clearing and adding, and skip rows that they can't read. Here a compaction moves a
pointer, taking items back begins a new branch of the log, and a damaged record is an error.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Protocol
from uuid import uuid4

from strandline import EventKind, InvalidInputError, NewEvent, OutcomeUnknownError, StaleRevisionError, Workflow
from strandline.integrations.agent_memory import AgentMemory
from strandline.integrations.newest import facts_from, last_live
from strandline.integrations.openai_agents.items import (
    Item,
    as_answer_of_nothing,
    as_mark,
    call_id_of,
    is_output,
    kept,
    to_event,
)
from strandline.integrations.openai_agents.reading import context_items, newest_items
from strandline.limits import SESSION_ROUNDS_MAX
from strandline.model.ids import DEFAULT_VIEW

_BY = "openai-agents session"


class HasLimit(Protocol):
    """Settings of a session, as the SDK has them."""

    limit: int | None


class StrandlineSession:
    """A session whose items are events of a workflow; `session_id` is the workflow's name.

    Its methods run the store's work in threads. A call that is cancelled leaves a write that was begun to its end.
    """

    def __init__(
        self,
        memory: Workflow | AgentMemory,
        *,
        session_settings: HasLimit | None = None,
        actor: str = "",
        audience: str | None = None,
    ) -> None:
        """Take a workflow, whose whole history the model is to read, or an `AgentMemory`, which keeps that bounded.

        Args:
            memory: with an `AgentMemory` it is compacted when due, and the model reads summary and tail.
            session_settings: `limit`, where a read names none.
            actor: who states the items.
            audience: who may read them; None: everyone (I21).
        """
        self._memory = memory if isinstance(memory, AgentMemory) else None
        self.workflow = memory.workflow if isinstance(memory, AgentMemory) else memory
        self.session_id = self.workflow.name
        self.session_settings = session_settings
        self._actor = actor
        self._audience = audience

    # ------------------------------------------------------------------------------------------ the protocol

    async def get_items(self, limit: int | None = None) -> list[Item]:
        """Return what the model is to read: the working context, or without an `AgentMemory` the whole history.

        Args:
            limit: the newest items, so many at most, each as it was added; never a summary.

        Raises:
            InvalidInputError: a limit that is none.
            ContextOverflowError: mandatory facts alone exceed the budget.
            CorruptRecordError: a record is not what was written (I4).
        """
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        if limit is None and self._memory is not None:
            return await asyncio.to_thread(self._context, self._memory)
        return await asyncio.to_thread(self._newest, limit)

    async def add_items(self, items: Sequence[Mapping[str, object]]) -> None:
        """Append items, all or none. One that an effect's own events say already adds its place only.

        Raises:
            InvalidInputError: an item that is no JSON object, or can't be stored; nothing was written.
            OutcomeUnknownError: it may have been written; compare `get_items(limit=…)` before it is repeated.
        """
        if items:
            await asyncio.to_thread(self._add, list(items))

    async def pop_item(self) -> Item | None:
        """Take the newest item back, and return it; None: there is none. It stays in the log, on a branch left behind.

        Facts that a program stated behind it are kept; approvals and pins behind it have to be given anew.

        Raises:
            InvalidInputError: the session is one of a narrow view, and a rewind is one of the whole workflow.
            StaleRevisionError: somebody appended each time that it was tried.
        """
        return await asyncio.to_thread(self._pop)

    async def clear_session(self) -> None:
        """Begin anew: every item stays in the log, on a branch left behind, and none is read any more.

        What a program stated beside the conversation (constraints, issues, artifacts, decisions, notes) goes on to
        hold; approvals and pins have to be given anew.

        Raises:
            InvalidInputError, StaleRevisionError: as of `pop_item`.
        """
        await asyncio.to_thread(self._clear)

    async def run_compaction(self, args: Mapping[str, object] | None = None) -> None:
        """Compact when due; the SDK calls it after a turn. Of `args` only `force` counts: no server is asked.

        A summary that can't be made raises nothing: the session goes on with the one before and a longer tail.
        """
        if self._memory is not None:
            force = bool(args is not None and args.get("force"))
            await asyncio.to_thread(self._memory.compact_if_due, force=force)

    async def history(self) -> list[Item]:
        """Return all items, whatever summaries there are, each as it was added."""
        return await asyncio.to_thread(self._newest, None)

    # ------------------------------------------------------------------------------------------ reading

    def _context(self, memory: AgentMemory) -> list[Item]:
        context = memory.context()
        if context.tokens + sum(left.tokens for left in context.omitted) >= memory.compact_at:
            memory.compact_if_due()  # no response with an id, no call of run_compaction: other providers give none
            context = memory.context()
        return context_items(context)

    def _newest(self, limit: int | None) -> list[Item]:
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
            raise InvalidInputError(f"a limit is a number of items from 0, not {limit!r}")
        newest = [placed.item for placed in islice(newest_items(self.workflow), limit)]
        return newest[::-1]

    # ------------------------------------------------------------------------------------------ writing

    def _add(self, items: list[Mapping[str, object]]) -> None:
        marks = self._effect_events(items)
        keys = [f"item:{uuid4()}" for _ in items]  # for the repeat of this very write, and for nothing else
        events = [self._event(item, marks, key) for item, key in zip(items, keys, strict=True)]
        try:
            self._append(events, items)
        except OutcomeUnknownError:
            self._append(events, items)  # the keys decide whether it was written (I19)

    def _append(self, events: list[NewEvent], items: Sequence[Mapping[str, object]]) -> None:
        while True:
            try:
                self.workflow.append(events)
            except InvalidInputError as error:
                at = error.position
                if at is None or events[at].kind is not EventKind.TOOL_RESULT:
                    raise
                events[at] = as_answer_of_nothing(
                    items[at], actor=self._actor, audience=self._audience, key=events[at].key or ""
                )
            else:
                return

    def _event(self, item: Mapping[str, object], marks: Mapping[tuple[str, bool], int], key: str) -> NewEvent:
        call_id = call_id_of(item) if isinstance(item, Mapping) else None
        of = None if call_id is None else marks.get((call_id, is_output(item)))
        if of is not None:
            return as_mark(item, of, actor=self._actor, audience=self._audience, key=key)
        return to_event(item, actor=self._actor, audience=self._audience, key=key)

    def _effect_events(self, items: Sequence[Mapping[str, object]]) -> dict[tuple[str, bool], int]:
        """Return the live events of those calls that ran as effects: by the call's id, and whether it is the result."""
        calls = [call_id for item in items if isinstance(item, Mapping) and (call_id := call_id_of(item)) is not None]
        if not calls:
            return {}
        found: dict[tuple[str, bool], int] = {}
        for effect in self.workflow.effects(calls):
            if effect.workflow == self.workflow.name:
                found[effect.key, False] = effect.call_seq
                if effect.result_seq is not None:
                    found[effect.key, True] = effect.result_seq
        return {place: seq for place, seq in found.items() if self._is_live(seq)}

    def _is_live(self, seq: int) -> bool:
        return any(not event.abandoned for event in self.workflow.events(seq, seq))

    # ------------------------------------------------------------------------------------------ taking back

    def _pop(self) -> Item | None:
        for _ in range(SESSION_ROUNDS_MAX):
            revision = self.workflow.basis().revision
            newest = next((placed for placed in newest_items(self.workflow) if placed.said), None)
            if newest is None:
                return None
            if self._leave(newest.seq, revision, "pop_item"):
                return newest.item
        raise self._crowded("pop_item")

    def _clear(self) -> None:
        for _ in range(SESSION_ROUNDS_MAX):
            revision = self.workflow.basis().revision
            said = [placed.seq for placed in newest_items(self.workflow) if placed.said]
            if not said or self._leave(min(said), revision, "clear_session"):
                return
        raise self._crowded("clear_session")

    def _leave(self, seq: int, revision: int, why: str) -> bool:
        """Go back to before an event, in one transaction; False: somebody appended since `revision`."""
        if self.workflow.view_name != DEFAULT_VIEW:
            raise InvalidInputError(
                f"{why} through the view {self.workflow.view_name!r} would take back what others said, too",
                hint="Give each agent that takes items back a workflow of its own.",
            )
        to = last_live(self.workflow, seq)
        facts = facts_from(self.workflow, seq, lambda event: kept(event) is not None)
        try:
            self.workflow.rewind(to, keep=facts, expected_revision=revision, by=self._actor or _BY, why=why)
        except StaleRevisionError:
            return False
        return True

    def _crowded(self, what: str) -> StaleRevisionError:
        revision = self.workflow.basis().revision
        error = StaleRevisionError(expected=revision, actual=revision)
        error.add_note(f"{what}: somebody appended {SESSION_ROUNDS_MAX} times meanwhile; nothing was taken back")
        return error
