"""Sessions of Strands over the log: a workflow for each agent's messages, one for what the session itself keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from strands.session.repository_session_manager import RepositorySessionManager
from strands.session.session_repository import SessionRepository
from strands.types.exceptions import SessionException
from strands.types.session import Session, SessionAgent, SessionMessage

from strandline import IdempotencyConflictError, StaleRevisionError, Tenant, Workflow, note
from strandline.integrations.items import (
    Json,
    append_items,
    item_events,
    last_covered,
    part_key,
    read_items,
)
from strandline.integrations.strands.messages import FRAMEWORK, item_id, to_events, to_stored
from strandline.limits import SESSION_ROUNDS_MAX

if TYPE_CHECKING:
    from strands.multiagent.base import MultiAgentBase

_SESSION: Final = "strands-session"
_REDACTED: Final = "strands-redacted"
_BY: Final = "strands"


class StrandlineSessionRepository(SessionRepository):
    """Sessions, agents and messages of Strands in a tenant's store. Nothing is overwritten: the newest counts.

    Raises:
        CorruptRecordError: by whatever reads, where something is not what was written; none is passed by (I4).
    """

    def __init__(self, tenant: Tenant) -> None:
        """Take the tenant whose sessions they are; session and agent are names within it (I21)."""
        self._tenant = tenant

    def workflow(self, session_id: str, agent_id: str) -> Workflow:
        """Return the workflow of an agent's messages in a session, with all of Strandline's verbs."""
        return self._tenant.workflow(f"{FRAMEWORK}/{_safe(session_id)}/{_safe(agent_id)}")

    def create_session(self, session: Session, **kwargs: object) -> Session:
        """Create a session.

        Raises:
            SessionException: there is one of this id.
        """
        if self.read_session(session.session_id) is not None:
            raise SessionException(f"Session {session.session_id} already exists")
        self._keep(session.session_id, "session", session.to_dict())
        return session

    def read_session(self, session_id: str, **kwargs: object) -> Session | None:
        """Return a session; None: there is none."""
        kept = self._newest(session_id, "session")
        return None if kept is None else Session.from_dict(dict(kept))

    def create_agent(self, session_id: str, session_agent: SessionAgent, **kwargs: object) -> None:
        """Keep an agent's state."""
        self._keep(session_id, _agent(session_agent.agent_id), session_agent.to_dict())

    def read_agent(self, session_id: str, agent_id: str, **kwargs: object) -> SessionAgent | None:
        """Return an agent's newest state; None: there is none."""
        kept = self._newest(session_id, _agent(agent_id))
        return None if kept is None else SessionAgent.from_dict(dict(kept))

    def update_agent(self, session_id: str, session_agent: SessionAgent, **kwargs: object) -> None:
        """Keep a newer state of an agent; the older ones stay in the log.

        Raises:
            SessionException: there is no such agent.
        """
        before = self.read_agent(session_id, session_agent.agent_id)
        if before is None:
            raise SessionException(f"Agent {session_agent.agent_id} in session {session_id} does not exist")
        session_agent.created_at = before.created_at
        self._keep(session_id, _agent(session_agent.agent_id), session_agent.to_dict())

    def create_message(self, session_id: str, agent_id: str, session_message: SessionMessage, **kwargs: object) -> None:
        """Append a message. The same one again adds nothing.

        Raises:
            SessionException: another process went on with the session: its message has this number.
        """
        workflow = self.workflow(session_id, agent_id)
        try:
            append_items(workflow, to_events(session_message, agent_id))
        except IdempotencyConflictError as error:
            raise SessionException(
                f"{workflow!r}: another process went on with the session; message {session_message.message_id} was "
                "not stored. Make the agent anew from the session."
            ) from error

    def read_message(self, session_id: str, agent_id: str, message_id: int, **kwargs: object) -> SessionMessage | None:
        """Return a message; None: there is none."""
        found = self.list_messages(session_id, agent_id, limit=1, offset=message_id)
        return found[0] if found else None

    def update_message(self, session_id: str, agent_id: str, session_message: SessionMessage, **kwargs: object) -> None:
        """Put another content in a message's place, as guardrails ask for, and erase what it said (C31).

        What was said goes out of the log and of all summaries. The new content comes first: if the process dies between
        the two, the session shows it, and the log still holds what was said until the update is made again.

        Raises:
            SessionException: there is no such message.
            ErasureRefusedError: a legal hold covers it; the new content stands in its place all the same.
        """
        workflow = self.workflow(session_id, agent_id)
        seqs = _seqs_of(workflow, session_message.message_id)
        if not seqs:
            raise SessionException(f"Message {session_message.message_id} does not exist")
        told = note(f"A guardrail replaced message {session_message.message_id}.", actor=agent_id)
        frame = session_message.to_dict()
        revision = workflow.basis().revision
        append_items(
            workflow, item_events(f"{_REDACTED}:{session_message.message_id}/{revision}", frame, [(told, None)])
        )
        workflow.erase(events=seqs, by=_BY, why="a guardrail replaced a message", scan=False)

    def list_messages(
        self, session_id: str, agent_id: str, limit: int | None = None, offset: int = 0, **kwargs: object
    ) -> list[SessionMessage]:
        """Return messages in the order of the log, from number `offset` on."""
        workflow = self.workflow(session_id, agent_id)
        first = workflow.seqs_of([part_key(item_id(offset))])
        if not first:
            return []
        from_seq = min(first.values())
        stored = [to_stored(item) for item in read_items(workflow, FRAMEWORK, from_seq=from_seq)]
        newer = {
            int(item.item_id.split("/")[0]): SessionMessage.from_dict(dict(item.frame or {}))
            for item in read_items(workflow, _REDACTED, from_seq=from_seq)
        }
        messages = [newer.get(message.message_id, message) for message in stored]
        return messages if limit is None else messages[:limit]

    def create_multi_agent(self, session_id: str, multi_agent: MultiAgentBase, **kwargs: object) -> None:
        """Keep the state of several agents that work together."""
        self._keep(session_id, f"multi/{_safe(multi_agent.id)}", multi_agent.serialize_state())

    def read_multi_agent(self, session_id: str, multi_agent_id: str, **kwargs: object) -> dict[str, Any] | None:
        """Return that state; None: there is none."""
        kept = self._newest(session_id, f"multi/{_safe(multi_agent_id)}")
        return None if kept is None else dict(kept)

    def update_multi_agent(self, session_id: str, multi_agent: MultiAgentBase, **kwargs: object) -> None:
        """Keep a newer one; the older ones stay in the log.

        Raises:
            SessionException: there is none.
        """
        if self.read_multi_agent(session_id, multi_agent.id) is None:
            raise SessionException(f"MultiAgent state {multi_agent.id} in session {session_id} does not exist")
        self.create_multi_agent(session_id, multi_agent)

    def _keep(self, session_id: str, what: str, value: Json) -> None:
        """Keep what a session itself knows, as the newest of its kind."""
        workflow = self._own(session_id)
        told = note(f"The session kept: {what.partition('/')[0]}.")
        for left in reversed(range(SESSION_ROUNDS_MAX)):
            revision = workflow.basis().revision
            events = item_events(f"{_SESSION}/{what}:{revision}", value, [(told, None)])
            try:
                workflow.append(events, expected_revision=revision)
                return
            except StaleRevisionError:
                if not left:
                    raise

    def _newest(self, session_id: str, what: str) -> Json | None:
        workflow, kind = self._own(session_id), f"{_SESSION}/{what}"
        last = last_covered(workflow, kind, workflow.basis().revision)
        if last is None:
            return None
        seqs = workflow.seqs_of([part_key(f"{kind}:{last}")])
        return next(read_items(workflow, kind, from_seq=min(seqs.values()))).frame

    def _own(self, session_id: str) -> Workflow:
        return self._tenant.workflow(f"{FRAMEWORK}/{_safe(session_id)}")


class StrandlineSessionManager(RepositorySessionManager):
    """A session manager of Strands whose sessions are workflows."""

    def __init__(self, tenant: Tenant, session_id: str) -> None:
        """Take the tenant and the id of the session; one that is not there is created."""
        self._repository = StrandlineSessionRepository(tenant)
        super().__init__(session_id, self._repository)

    def workflow(self, agent_id: str) -> Workflow:
        """Return the workflow of an agent's messages, with all of Strandline's verbs."""
        return self._repository.workflow(self.session_id, agent_id)


def _seqs_of(workflow: Workflow, message_id: int) -> tuple[int, ...]:
    first = workflow.seqs_of([part_key(item_id(message_id))])
    if not first:
        return ()
    return next(read_items(workflow, FRAMEWORK, from_seq=min(first.values()))).seqs


def _agent(agent_id: str) -> str:
    return f"agent/{_safe(agent_id)}"


def _safe(name: str) -> str:
    return quote(name, safe=" @:+,=")
