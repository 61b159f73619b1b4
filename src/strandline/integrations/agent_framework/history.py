"""The history provider: an agent's messages are the log; what it loads is the active summary and what comes after."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import quote

from agent_framework import HistoryProvider, Message
from agent_framework._sessions import filter_new_messages

from strandline import IdempotencyConflictError, InvalidInputError, NewEvent, StaleRevisionError, Tenant, Workflow
from strandline.integrations.agent_framework.messages import FRAMEWORK, is_result, to_events, to_message
from strandline.integrations.agent_memory import AgentMemory, Told
from strandline.integrations.items import (
    active_summary,
    append_items,
    covered_count,
    last_covered,
    part_key,
    read_items,
)
from strandline.limits import CONTEXT_BUDGET_TOKENS, SESSION_ROUNDS_MAX, SUMMARIZER_DEADLINE_S

_SOURCE: Final = "strandline"
_MARK: Final = "strandline_generation"  # among the properties of the message that holds the summary


class StrandlineHistoryProvider(HistoryProvider):
    """A history provider of the Agent Framework over a tenant's store: each session is a workflow.

    Every call runs the blocking verbs in a thread. One that is cancelled lets the write in progress settle.
    """

    def __init__(
        self,
        tenant: Tenant,
        *,
        budget: int = CONTEXT_BUDGET_TOKENS,
        summarizer: object = None,
        deadline_s: float = SUMMARIZER_DEADLINE_S,
        background: bool = False,
        told: Told | None = None,
        source_id: str = _SOURCE,
        load_messages: bool = True,
        store_inputs: bool = True,
        store_context_messages: bool = False,
        store_context_from: set[str] | None = None,
        store_outputs: bool = True,
    ) -> None:
        """Take the tenant whose sessions they are; a session's id is a name within it (I21).

        Args:
            tenant: whose.
            budget: tokens of a session's context above which it is compacted, to half of it.
            summarizer, deadline_s, background, told: as of `AgentMemory`.
            source_id, load_messages, store_inputs, store_context_messages, store_context_from, store_outputs: as of
                every history provider.
        """
        super().__init__(
            source_id,
            load_messages=load_messages,
            store_inputs=store_inputs,
            store_context_messages=store_context_messages,
            store_context_from=store_context_from,
            store_outputs=store_outputs,
        )
        self._tenant = tenant
        self._budget = budget
        self._summarizer = summarizer
        self._deadline_s = deadline_s
        self._background = background
        self._told = told

    def workflow(self, session_id: str | None) -> Workflow:
        """Return the workflow of a session, with all of Strandline's verbs.

        Raises:
            InvalidInputError: a session without an id: its messages would run into those of others.
        """
        if not session_id:
            raise InvalidInputError(
                "a session without an id has no history", hint="Run the agent with a session: agent.create_session()."
            )
        return self._tenant.workflow(f"{FRAMEWORK}/{quote(session_id, safe=' @:+,=')}")

    async def get_messages(
        self, session_id: str | None, *, state: dict[str, Any] | None = None, **kwargs: object
    ) -> list[Message]:
        """Return the active summary and the messages behind it, in the order of the log.

        Raises:
            CorruptRecordError: one is not what was written; none is passed by (I4).
        """
        return await asyncio.to_thread(self._load, self.workflow(session_id))

    async def save_messages(
        self,
        session_id: str | None,
        messages: Sequence[Message],
        *,
        state: dict[str, Any] | None = None,
        **kwargs: object,
    ) -> None:
        """Append what the log lacks of these messages, as one; then compact if that is due.

        Raises:
            StaleRevisionError: somebody appended each time that it was tried, SESSION_ROUNDS_MAX times.
            StoreUnavailableError, OutcomeUnknownError: see their hints; saving the same again is safe.
        """
        await asyncio.to_thread(self._save, self.workflow(session_id), messages)

    def _load(self, workflow: Workflow) -> list[Message]:
        summary = active_summary(workflow)
        covered = covered_count(workflow, FRAMEWORK, summary.watermark, is_result)
        messages = _messages_from(workflow, covered)
        if covered:
            marked = {_MARK: summary.generation}
            messages.insert(0, Message("user", [summary.text], additional_properties=marked))
        return messages

    def _save(self, workflow: Workflow, messages: Sequence[Message]) -> None:
        given = [message for message in messages if _MARK not in message.additional_properties]
        if not given:
            return
        for left in reversed(range(SESSION_ROUNDS_MAX)):
            try:
                _append(workflow, given)
                break
            except (StaleRevisionError, IdempotencyConflictError):
                if not left:
                    raise  # else look again: the numbers are others, and perhaps these messages are there now
        AgentMemory(
            workflow,
            budget=self._budget,
            summarizer=self._summarizer,
            deadline_s=self._deadline_s,
            background=self._background,
            told=self._told,
        ).compact_if_due()


def _append(workflow: Workflow, given: Sequence[Message]) -> None:
    revision = workflow.basis().revision
    last = last_covered(workflow, FRAMEWORK, revision)
    count = 0 if last is None else int(last) + 1
    new = filter_new_messages(_messages_from(workflow, max(0, count - len(given))), given)
    events: list[NewEvent] = []
    for number, message in enumerate(new, start=count):
        events += to_events(number, message)
    if events:
        append_items(workflow, events, expected_revision=revision)


def _messages_from(workflow: Workflow, number: int) -> list[Message]:
    first = workflow.seqs_of([part_key(f"{FRAMEWORK}:{number}")])
    return [to_message(item) for item in read_items(workflow, FRAMEWORK, from_seq=min(first.values()))] if first else []
