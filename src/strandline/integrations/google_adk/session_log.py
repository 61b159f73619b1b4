"""A session as a workflow: what the service does to the store. It blocks; the service runs it in a thread."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Final

from google.adk.errors._stale_session_error import StaleSessionError
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions, EventCompaction
from google.adk.sessions.state import State
from google.genai import types

from strandline import IdempotencyConflictError, StaleRevisionError, Tenant, note
from strandline.integrations.google_adk.events import FRAMEWORK, item_id, to_adk, to_events
from strandline.integrations.google_adk.names import app_workflow, session_workflow, user_workflow
from strandline.integrations.google_adk.shared_state import read_state, write_state
from strandline.integrations.items import (
    ActiveSummary,
    active_summary,
    append_items,
    item_events,
    last_covered,
    part_key,
    read_items,
)
from strandline.limits import SESSION_ROUNDS_MAX

_CREATED: Final = "/created"  # ids of ADK's events are never these
_DELETED: Final = "/deleted"
_GENERATION: Final = "strandline_generation"
_BY: Final = "google-adk"

StateDelta = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a session object stands: what the next append rests on."""

    revision: int
    birth: str  # of this session, and no other that had its id
    clock_s: float  # the timestamp of the last event


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A session as the log has it."""

    events: list[Event]
    state: dict[str, Any]
    updated_s: float
    place: Place


class SessionLog:
    """One session's workflow, and those of the state that it shares."""

    def __init__(self, tenant: Tenant, app_name: str, user_id: str, session_id: str) -> None:
        self.workflow = tenant.workflow(session_workflow(app_name, user_id, session_id))
        self._shared = {
            State.APP_PREFIX: tenant.workflow(app_workflow(app_name)),
            State.USER_PREFIX: tenant.workflow(user_workflow(app_name, user_id)),
        }

    def exists(self) -> bool:
        """Tell whether the session was created, and not deleted since."""
        created, deleted = part_key(item_id(_CREATED)), part_key(item_id(_DELETED))
        held = self.workflow.seqs_of([created, deleted])
        return created in held and deleted not in held

    def create(self, birth: str, now_s: float, state: StateDelta) -> Loaded:
        """Begin the session with its state; what is temporary is no part of it.

        Raises:
            AlreadyExistsError: it is there.
        """
        self._finish_delete()
        own = {key: value for key, value in state.items() if not key.startswith(State.TEMP_PREFIX)}
        frame = {"birth": birth, "created": now_s, "state": own}
        try:
            added = self.workflow.append(
                item_events(item_id(_CREATED), frame, [(note("The session was created."), None)])
            )
        except IdempotencyConflictError as error:
            raise AlreadyExistsError(f"{self.workflow!r}: the session already exists") from error
        self._share(birth, [(_CREATED, own)])
        return Loaded(
            events=[],
            state=own | self.shared_state(),
            updated_s=now_s,
            place=Place(revision=added.revision, birth=birth, clock_s=0.0),
        )

    def load(self) -> Loaded | None:
        """Read the session; None: there is none.

        Raises:
            CorruptRecordError: an event is not what was written; none is passed by (I4).
        """
        revision = self.workflow.basis().revision
        birth: str | None = None
        updated_s = clock_s = 0.0
        events: list[Event] = []
        ends: list[int] = []
        deltas: list[tuple[str, StateDelta]] = []
        for item in read_items(self.workflow, FRAMEWORK):
            if item.item_id == _DELETED:
                return None
            if item.item_id == _CREATED:
                frame = item.frame or {}
                birth, updated_s = frame.get("birth", ""), frame.get("created", 0.0)
                deltas.append((_CREATED, frame.get("state", {})))
                continue
            event = to_adk(item)
            clock_s = updated_s = event.timestamp = in_order(event.timestamp, clock_s)
            events.append(event)
            ends.append(item.seqs[-1])
            deltas.append((event.id, event.actions.state_delta))
        if birth is None:
            return None
        state = {key: value for _, delta in deltas for key, value in delta.items() if not _is_shared(key)}
        self._share(birth, deltas)
        self._place_compaction(events, ends)
        return Loaded(
            events=events,
            state=state | self.shared_state(),
            updated_s=updated_s,
            place=Place(revision=revision, birth=birth, clock_s=clock_s),
        )

    def updated_s(self) -> float:
        """Return the timestamp of the last event; of a session without any, when it was created."""
        last = last_covered(self.workflow, FRAMEWORK, self.workflow.basis().revision)
        seq = self.workflow.seqs_of([part_key(item_id(last or _CREATED))])
        frame = next(read_items(self.workflow, FRAMEWORK, from_seq=min(seq.values()))).frame or {}
        return float(frame.get("timestamp", frame.get("created", 0.0)))

    def shared_state(self) -> dict[str, Any]:
        """Return what the session shares, under ADK's prefixes."""
        return {
            f"{prefix}{key}": value
            for prefix, workflow in self._shared.items()
            for key, value in read_state(workflow).items()
        }

    def append(self, event: Event, place: Place, known: Sequence[Event]) -> Place:
        """Append an event, if nobody else appended one since `place`.

        What others write between the events of ADK (an effect, an approval) makes no session stale.

        Raises:
            StaleSessionError: somebody did, or deleted the session; nothing was appended.
        """
        revision = self._append(event, place.revision, known)
        self._share(place.birth, [(event.id, event.actions.state_delta)])
        return Place(revision=revision, birth=place.birth, clock_s=in_order(event.timestamp, place.clock_s))

    def _append(self, event: Event, revision: int, known: Sequence[Event]) -> int:
        for _ in range(SESSION_ROUNDS_MAX):
            try:
                self._leave_behind(event, revision)
                return append_items(self.workflow, to_events(event), expected_revision=revision).revision
            except StaleRevisionError as error:
                self._check_ours(error, {item_id(one.id) for one in (event, *known)})
                revision = error.actual
        raise StaleSessionError(
            f"{self.workflow!r}: something was written {SESSION_ROUNDS_MAX} times meanwhile; nothing was appended."
        )

    def delete(self) -> None:
        """Let the session be no more: its events are left behind by a rewind, and stay in the log.

        The mark comes first: it moves the revision, so that no late writer can go on with the session.
        """
        if self.exists():
            self.workflow.append(item_events(item_id(_DELETED), {}, [(note("The session was deleted."), None)]))
        self._finish_delete()

    def compaction(self, events: Sequence[Event]) -> Event | None:
        """Return the active summary as ADK's event of a compaction; None: it covers none of these events.

        It is made from the active summary whenever it is asked for, and stored nowhere else: what was reverted or
        erased is read by nobody (I6, C31).
        """
        summary = active_summary(self.workflow)
        last = last_covered(self.workflow, FRAMEWORK, summary.watermark)
        covered = [event for event in events if not event.actions.compaction]
        end_s = next((event.timestamp for event in covered if event.id == last), None)
        return None if end_s is None else _compaction_event(summary, covered[0].timestamp, end_s)

    def is_current(self, compaction: Event) -> bool:
        """Tell whether an event of a compaction is of the active summary."""
        generation = (compaction.custom_metadata or {}).get(_GENERATION)
        return generation is not None and generation == self.workflow.basis().generation

    def _place_compaction(self, events: list[Event], ends: Sequence[int]) -> None:
        """Put the compaction where it stood when it was made: behind the events that were there then."""
        compaction = self.compaction(events)
        if compaction is None:
            return
        generation = (compaction.custom_metadata or {}).get(_GENERATION)
        entries = reversed(self.workflow.lineage())
        made_at = next((entry.revision for entry in entries if entry.generation == generation), 0)
        events.insert(sum(end <= made_at for end in ends), compaction)

    def _leave_behind(self, event: Event, revision: int) -> None:
        """Let the log follow a rewind of ADK: no summary may speak for what the session has left (C22)."""
        before = event.actions.rewind_before_invocation_id
        if not before:
            return
        last = 0
        for item in read_items(self.workflow, FRAMEWORK):
            if (item.frame or {}).get("invocation_id") == before:
                why = f"the session was rewound to before the invocation {before}"
                self.workflow.rewind(last, expected_revision=revision, by=_BY, why=why)
                return
            last = item.seqs[-1]

    def _check_ours(self, error: StaleRevisionError, known: Set[str]) -> None:
        """Refuse where an event of ADK came in between that the session object does not know."""
        for event in self.workflow.events(error.expected + 1, error.actual):
            if (event.message_id or "").startswith(item_id("")) and event.message_id not in known:
                raise StaleSessionError(
                    f"{self.workflow!r}: somebody else went on with the session; get it again. Nothing was appended."
                ) from error

    def _finish_delete(self) -> None:
        if part_key(item_id(_DELETED)) in self.workflow.seqs_of([part_key(item_id(_DELETED))]):
            self.workflow.rewind(0, by=_BY, why="the session was deleted")

    def _share(self, birth: str, deltas: Sequence[tuple[str, StateDelta]]) -> None:
        """Hand on what is shared. A process may die before it does: then whoever loads the session next does."""
        for prefix, workflow in self._shared.items():
            changes = {f"{birth}/{name}": dict(_of(prefix, delta)) for name, delta in deltas}
            write_state(workflow, {name: change for name, change in changes.items() if change})


def in_order(timestamp: float, before: float) -> float:
    """Return a timestamp that is not behind the log: ADK hides events by their time, and the log's order decides."""
    return timestamp if timestamp > before else math.nextafter(before, math.inf)


def _is_shared(key: str) -> bool:
    return key.startswith((State.APP_PREFIX, State.USER_PREFIX))


def _of(prefix: str, delta: StateDelta) -> Iterator[tuple[str, Any]]:
    return ((key.removeprefix(prefix), value) for key, value in delta.items() if key.startswith(prefix))


def _compaction_event(summary: ActiveSummary, start_s: float, end_s: float) -> Event:
    content = types.Content(role="model", parts=[types.Part(text=summary.text)])
    compaction = EventCompaction(start_timestamp=start_s, end_timestamp=end_s, compacted_content=content)
    return Event(
        id=f"strandline-{summary.generation}",
        invocation_id=f"strandline-{summary.generation}",
        author="user",
        timestamp=end_s,
        actions=EventActions(compaction=compaction),
        custom_metadata={_GENERATION: summary.generation},
    )
