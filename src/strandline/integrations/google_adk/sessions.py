"""The session service: ADK's interface over the log."""

from __future__ import annotations

import asyncio
import json
import weakref
from dataclasses import astuple
from typing import Any

from google.adk.errors._stale_session_error import StaleSessionError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events.event import Event
from google.adk.platform import time as platform_time
from google.adk.platform import uuid as platform_uuid
from google.adk.sessions.base_session_service import BaseSessionService, GetSessionConfig, ListSessionsResponse
from google.adk.sessions.session import Session
from pydantic_core import PydanticSerializationError, to_jsonable_python

from strandline import InvalidInputError, Tenant
from strandline.integrations.google_adk.names import session_of, user_workflow
from strandline.integrations.google_adk.session_log import Loaded, Place, SessionLog
from strandline.integrations.google_adk.shared_state import read_state


class StrandlineSessionService(BaseSessionService):
    """Sessions of Google ADK in a tenant's store: each is a workflow, its events are the log, verbatim and in order.

    Every call runs the blocking verbs in a thread. One that is cancelled lets the write in progress settle.
    """

    def __init__(self, tenant: Tenant) -> None:
        """Take the tenant whose sessions they are; app and user are names within it (I21)."""
        self._tenant = tenant
        self._handed_out: weakref.WeakValueDictionary[int, Session] = weakref.WeakValueDictionary()

    def log(self, session: Session) -> SessionLog:
        """Return the log of a session: its `workflow` has all of Strandline's verbs."""
        return self._log(session.app_name, session.user_id, session.id)

    async def create_session(
        self,
        *,
        app_name: str,
        user_id: str,
        state: dict[str, Any] | None = None,
        session_id: str | None = None,
    ) -> Session:
        """Create a session.

        Raises:
            AlreadyExistsError: there is one of this id.
            InvalidInputError: a state that JSON can't hold; nothing was written.
            TenantScopeError: the three names are too long together.
        """
        name = (session_id or "").strip() or platform_uuid.new_uuid()
        given, birth = _json(state or {}), platform_uuid.new_uuid()
        log = self._log(app_name, user_id, name)
        loaded = await asyncio.to_thread(log.create, birth, platform_time.get_time(), given)
        return self._hand_out(app_name, user_id, name, loaded)

    async def get_session(
        self, *, app_name: str, user_id: str, session_id: str, config: GetSessionConfig | None = None
    ) -> Session | None:
        """Return a session with its events in the order of the log; None: there is none.

        Raises:
            CorruptRecordError: an event is not what was written; none is passed by (I4).
        """
        name = session_id.strip()
        loaded = await asyncio.to_thread(self._log(app_name, user_id, name).load)
        if loaded is None:
            return None
        session = self._hand_out(app_name, user_id, name, loaded)
        if config is not None:
            session.events = _newest(session.events, config)
        return session

    async def list_sessions(self, *, app_name: str, user_id: str | None = None) -> ListSessionsResponse:
        """Return the sessions of an app, or of one of its users, without events and state."""
        return ListSessionsResponse(sessions=await asyncio.to_thread(self._list, app_name, user_id))

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Let a session be no more. Its events stay in the log, left behind by a rewind; `Workflow.erase` erases."""
        await asyncio.to_thread(self._log(app_name, user_id, session_id.strip()).delete)

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        """Return what a user's sessions share."""
        return await asyncio.to_thread(read_state, self._tenant.workflow(user_workflow(app_name, user_id)))

    async def append_event(self, session: Session, event: Event) -> Event:
        """Append an event to the log, and then to the session object.

        An event whose time is not behind that of the one before it gets the next one in the session object: ADK hides
        events by their time, and the order of the log decides. The log keeps the time that was given.

        Raises:
            SessionNotFoundError: there is no such session.
            StaleSessionError: somebody else went on with it since this object was read; nothing was appended.
            InvalidInputError: a compaction that another summarizer made, which nobody validated.
        """
        if event.partial:
            return event
        log, place = self.log(session), _place(session)
        if not await asyncio.to_thread(log.exists):
            raise SessionNotFoundError(f"{log.workflow!r}: there is no such session; nothing was appended")
        if event.actions.compaction:
            return await self._take_compaction(log, session, event)
        self._apply_temp_state(session, event)
        event = self._trim_temp_delta_state(event)
        after = await asyncio.to_thread(log.append, event, place, session.events)
        event.timestamp = session.last_update_time = after.clock_s
        _set_place(session, after)
        return self._commit_event_to_session(session, event)

    def holding(self, event: Event) -> Session:
        """Return the session object, handed out by this service, that holds an event: ADK names it nowhere.

        Raises:
            InvalidInputError: none does.
        """
        for session in list(self._handed_out.values()):
            if any(held is event for held in reversed(session.events)):
                return session
        raise InvalidInputError(
            f"no session of this service holds the event {event.id!r}",
            hint="Give the Runner the session service that the summarizer was made with.",
        )

    async def _take_compaction(self, log: SessionLog, session: Session, event: Event) -> Event:
        """Add a compaction to the session object. The log has it: as the active summary."""
        if not event.custom_metadata:
            raise InvalidInputError(
                "a compaction that another summarizer made: nobody validated it, and it is not stored",
                hint="Set EventsCompactionConfig(summarizer=StrandlineSummarizer(…)).",
            )
        if not await asyncio.to_thread(log.is_current, event):
            raise StaleSessionError(f"{log.workflow!r}: this summary is not the active one any more")
        session.events.append(event)
        return event

    def _list(self, app_name: str, user_id: str | None) -> list[Session]:
        found = []
        for app, user, name in filter(None, map(session_of, self._tenant.workflows())):
            log = self._log(app, user, name)
            if app == app_name and user_id in (None, user) and log.exists():
                found.append(Session(app_name=app, user_id=user, id=name, last_update_time=log.updated_s()))
        return sorted(found, key=lambda session: (session.last_update_time, session.user_id, session.id))

    def _log(self, app_name: str, user_id: str, session_id: str) -> SessionLog:
        return SessionLog(self._tenant, app_name, user_id, session_id)

    def _hand_out(self, app_name: str, user_id: str, session_id: str, loaded: Loaded) -> Session:
        session = Session(
            app_name=app_name,
            user_id=user_id,
            id=session_id,
            events=loaded.events,
            state=loaded.state,
            last_update_time=loaded.updated_s,
        )
        _set_place(session, loaded.place)
        self._handed_out[id(session)] = session
        return session


def _place(session: Session) -> Place:
    """Return where a session object stands: in the field that ADK keeps for it.

    Raises:
        StaleSessionError: it was not read from this service.
    """
    if session._storage_update_marker is None:
        raise StaleSessionError(f"the session {session.id!r} was not got from this service; get it first")
    revision, birth, clock_s = json.loads(session._storage_update_marker)
    return Place(revision=revision, birth=birth, clock_s=clock_s)


def _set_place(session: Session, place: Place) -> None:
    session._storage_update_marker = json.dumps(astuple(place))


def _newest(events: list[Event], config: GetSessionConfig) -> list[Event]:
    """Return what is asked for: the newest so many, and the events behind the last one that is older."""
    if config.num_recent_events is not None:
        events = events[-config.num_recent_events :] if config.num_recent_events else []
    if config.after_timestamp is not None:
        older = [index for index, event in enumerate(events) if event.timestamp < config.after_timestamp]
        events = events[older[-1] + 1 :] if older else events
    return events


def _json(state: dict[str, Any]) -> dict[str, Any]:
    try:
        plain: dict[str, Any] = to_jsonable_python(state)
    except PydanticSerializationError as error:
        raise InvalidInputError(f"the state holds what JSON can't: {error}") from error
    return plain
