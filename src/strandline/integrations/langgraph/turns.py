"""One call of a model, as the memory sees it: what is recorded before it, what it is shown, what is recorded after it.

The log is written ahead of the state: what a crash takes from the state, the log still holds. Where a run begins with a
state that the log is ahead of, either the run before it died, and the log is right; or somebody went back on purpose,
and then the log goes back, too, or the run is refused.
"""

from __future__ import annotations

import threading
import uuid
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from langchain_core.messages import BaseMessage, ToolMessage

from strandline import (
    Basis,
    CompactionLineageError,
    Context,
    ContextOverflowError,
    EventKind,
    IdempotencyConflictError,
    InvalidInputError,
    NewEvent,
    Role,
    Workflow,
    note,
)
from strandline.integrations.agent_memory import AgentMemory, Told
from strandline.integrations.langgraph.marks import recorded_elsewhere
from strandline.integrations.langgraph.messages import KEY_PREFIX, Rendered, events_of, to_langchain
from strandline.integrations.langgraph.place import Home, Place, StateBasis
from strandline.integrations.langgraph.sizes import Sizes
from strandline.limits import CONTEXTS_KEPT_MAX, EVENTS_PAGE_MAX, RECORD_ATTEMPTS_MAX, THREADS_KNOWN_MAX
from strandline.summarizers import as_summarizer

STRICT: Final = "strict"
REWIND: Final = "rewind"
_WHOLE: Final = 1 << 40  # tokens: a recovery's own context is not shown to anybody
_RECOVERED: Final = (
    "[The run stopped here and was started again. What stands above was done, and is not to be done anew.]"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What a model is shown, and from what it was made."""

    workflow: Workflow
    context: Context
    rendered: Rendered


@dataclass(frozen=True, slots=True)
class _Known:
    """How far this process has recorded a state."""

    recorded: int
    message_id: str | None  # the newest message of the state that the log holds


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ahead:
    """The first event of the agent that a state knows nothing of, and the last one that it knows."""

    seq: int
    through: int


class Turns:
    """The memory of an agent's threads. Its methods may be called from any thread of the process."""

    def __init__(
        self,
        home: Home,
        sizes: Sizes,
        *,
        summarizer: object,
        deadline_s: float,
        background: bool,
        told: Told | None,
        restore: str,
    ) -> None:
        if restore not in (STRICT, REWIND):
            raise InvalidInputError(f'restore is "{STRICT}" or "{REWIND}", not {restore!r}')
        as_summarizer(summarizer)  # what is none is told now, and not in the midst of a run
        self.home = home
        self._sizes = sizes
        self._summarizer = summarizer
        self._deadline_s = deadline_s
        self._background = background
        self._told = told
        self._restore = restore
        self._known: OrderedDict[tuple[str, str], _Known] = OrderedDict()
        self._memories: OrderedDict[tuple[str, str, int], AgentMemory] = OrderedDict()
        self._lock = threading.Lock()

    def begin(
        self,
        place: Place,
        messages: Sequence[BaseMessage],
        basis: StateBasis | None,
        *,
        shown: Sequence[BaseMessage] | None = None,
        window: int | None = None,
    ) -> Turn:
        """Record what the state holds and the log lacks, compact if that is due, and return what the model is shown.

        Args:
            place: where the step stands.
            messages: the state's.
            basis: the state's; None: no answer was recorded with it yet.
            shown: the messages as others want them shown in this call; None: as the state holds them.
            window: the tokens that the model takes, where that is known.

        Raises:
            CompactionLineageError: the run goes back to a state that the log is ahead of (`restore="strict"`).
            ContextOverflowError, SummaryReconciliationError, CorruptRecordError: as of `Workflow.context`.
        """
        workflow = self.home.workflow(place)
        known = self._continuing(workflow, basis)
        if known is None:
            self._resume(workflow, place, messages, basis)
        first = _index_behind(messages, known)
        memory = self._kept_memory(workflow, self._sizes.budget_for(window))
        elsewhere = recorded_elsewhere(workflow, messages[first:])
        events = events_of(messages, agent=self.home.agent, first=first, elsewhere=elsewhere)
        _record(memory, events)
        recorded = known.recorded if known is not None else basis["recorded"] if basis is not None else None
        context = self._read(memory, window, None if recorded is None else recorded + 1)
        rendered = to_langchain(context, messages if shown is None else shown)
        return Turn(workflow=workflow, context=context, rendered=rendered)

    def end(self, turn: Turn, messages: Sequence[BaseMessage], answers: Sequence[BaseMessage]) -> StateBasis:
        """Record what the model answered, before the graph goes on; return what its state was made from.

        Args:
            turn: of `begin`.
            messages: the state's, as `begin` was given them.
            answers: what the model's step adds to them.
        """
        for answer in answers:
            answer.id = answer.id or str(uuid.uuid4())
        events = events_of([*messages, *answers], agent=self.home.agent, first=len(messages))
        context = turn.context
        recorded = turn.workflow.append(events, basis=context).revision if events else context.revision
        last = answers[-1] if answers else messages[-1] if messages else None
        self._remember(turn.workflow, _Known(recorded, last.id if last is not None else None))
        return StateBasis(
            workflow=turn.workflow.name,
            view=context.view,
            generation=context.generation,
            revision=context.revision,
            recorded=recorded,
        )

    def _kept_memory(self, workflow: Workflow, budget: int) -> AgentMemory:
        """Return the memory of a thread: that of its turn before, which need not read again what it showed then."""
        key = (workflow.name, workflow.view_name, budget)
        with self._lock:
            memory = self._memories.get(key)
            if memory is None:
                memory = self._memories[key] = self._memory(workflow, budget)
            self._memories.move_to_end(key)
            if len(self._memories) > CONTEXTS_KEPT_MAX:
                self._memories.popitem(last=False)
        return memory

    def _memory(
        self, workflow: Workflow, budget: int, *, compact_at: int | None = None, compact_to: int | None = None
    ) -> AgentMemory:
        return AgentMemory(
            workflow,
            budget=budget,
            compact_at=compact_at,
            compact_to=compact_to,
            summarizer=self._summarizer,
            deadline_s=self._deadline_s,
            background=self._background,
            told=self._told,
        )

    def _read(self, memory: AgentMemory, window: int | None, unseen: int | None) -> Context:
        """Read the context; compact first if it has grown too large, or if it can't be read without: what stands from
        `unseen` on is what the model answers now.
        """
        try:
            context = memory.context()
        except ContextOverflowError:
            memory.compact_if_due(unseen=unseen)
            return memory.context()
        due = self._sizes.due(context, window)
        if due is None:
            return context
        sized = self._memory(memory.workflow, due.budget, compact_at=due.compact_at, compact_to=due.compact_to)
        outcome = sized.compact_if_due(unseen=unseen)
        moved = outcome is not None and outcome.outcome == "activated"
        return memory.context() if moved else context

    # ------------------------------------------------------------------------------------------ how a run begins

    def _continuing(self, workflow: Workflow, basis: StateBasis | None) -> _Known | None:
        """Return how far a state was recorded that this process made, and None of any other one."""
        with self._lock:
            known = self._known.get((workflow.name, workflow.view_name))
        return known if known is not None and basis is not None and basis["recorded"] == known.recorded else None

    def _remember(self, workflow: Workflow, known: _Known) -> None:
        with self._lock:
            self._known[workflow.name, workflow.view_name] = known
            self._known.move_to_end((workflow.name, workflow.view_name))
            if len(self._known) > THREADS_KNOWN_MAX:
                self._known.popitem(last=False)  # its next turn looks at the log, as that of a new process does

    def _resume(
        self, workflow: Workflow, place: Place, messages: Sequence[BaseMessage], basis: StateBasis | None
    ) -> None:
        """Bring the log and a state that this process did not make together."""
        if basis is None and not self.home.owns(place):
            return  # a new conversation in a memory that others write to, too
        ahead = self._ahead(workflow, messages)
        if ahead is None:
            return
        if place.replaying:
            self._go_back(workflow, ahead, basis)
        else:
            self._recover(workflow, basis)

    def _ahead(self, workflow: Workflow, messages: Sequence[BaseMessage]) -> _Ahead | None:
        """Return where the log is ahead of a state, by what this agent said and did; None: the state knows it all."""
        through = _last_known(workflow, [event.key or "" for event in events_of(messages, agent=self.home.agent)])
        revision = workflow.basis().revision
        answered = {said.tool_call_id for said in messages if isinstance(said, ToolMessage)}
        first = max(through + 1, revision - EVENTS_PAGE_MAX + 1)
        for event in workflow.events(first) if first <= revision else ():
            if event.abandoned or event.actor != self.home.agent:
                continue
            if (event.call_id or "").partition("#")[0] in answered:
                through = event.seq
            elif event.kind is EventKind.TOOL_CALL or event.role is Role.ASSISTANT:
                return _Ahead(seq=event.seq, through=through)
        return None

    def _go_back(self, workflow: Workflow, ahead: _Ahead, basis: StateBasis | None) -> None:
        """Let the log follow a run that goes back to an earlier state, or refuse it."""
        if self._restore == REWIND:
            workflow.rewind(ahead.through, by=self.home.agent, why="a run went back to an earlier checkpoint")
            return
        error = CompactionLineageError(
            f"the run goes back to a state that the memory {workflow.name!r} is ahead of: the state ends with event "
            f"{ahead.through}, and knows nothing of event {ahead.seq}; the model was not called",
            basis_generation=None if basis is None else basis["generation"],
            generation=workflow.basis().generation,
        )
        error.hint = (
            'Let the memory go back, too, on a branch of its own: restore="rewind"; nothing is deleted. Or go on from '
            "the newest checkpoint of the thread."
        )
        raise error

    def _recover(self, workflow: Workflow, basis: StateBasis | None) -> None:
        """Record that a run died: what it did since the state was made is not done again in other words (I18)."""
        name = f"langgraph/{self.home.agent}"
        if basis is not None:
            now = workflow.basis()
            since = Basis(view=now.view, generation=now.generation, revision=basis["recorded"])
            # Refused where a compaction has gone past the state: then all that is older counts, too.
            with suppress(InvalidInputError, CompactionLineageError):
                workflow.checkpoint({"thread": workflow.name}, 0, basis=since, name=name)
        recovery = workflow.recover(name=name, budget=_WHOLE)
        workflow.append(note(_RECOVERED, key=f"{KEY_PREFIX}recovered:{recovery.lineage_seq}", actor=self.home.agent))


def _record(memory: AgentMemory, events: Sequence[NewEvent]) -> None:
    """Record a history. Agents that share a state record it at once, each in its own lane: one of them is the first,
    and the others find what it wrote when they look again.
    """
    for left in reversed(range(RECORD_ATTEMPTS_MAX)):
        try:
            memory.record(events)
        except IdempotencyConflictError:
            if not left:
                raise
        else:
            return


def _index_behind(messages: Sequence[BaseMessage], known: _Known | None) -> int:
    """Return the index of the first message that may not be recorded yet."""
    if known is None:
        return 0
    return next((index + 1 for index in range(len(messages) - 1, -1, -1) if messages[index].id == known.message_id), 0)


def _last_known(workflow: Workflow, keys: Sequence[str]) -> int:
    """Return the last event of a history, up to the first one that the log lacks; 0: it lacks the very first."""
    last = 0
    for first in range(0, len(keys), EVENTS_PAGE_MAX):
        page = keys[first : first + EVENTS_PAGE_MAX]
        seqs = workflow.seqs_of(page)
        for key in page:
            if key not in seqs:
                return last
            last = max(last, seqs[key])
    return last
