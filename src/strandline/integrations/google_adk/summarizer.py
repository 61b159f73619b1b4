"""The events summarizer: ADK decides when and how far, Strandline writes, validates and keeps the summary."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from google.adk.apps.base_events_summarizer import BaseEventsSummarizer
from google.adk.events.event import Event

from strandline import CompactionResult
from strandline.integrations.google_adk.events import to_events
from strandline.integrations.items import compact_through
from strandline.limits import GUEST_SUMMARY_TOKENS, SUMMARIZER_DEADLINE_S

if TYPE_CHECKING:
    from google.adk.sessions.session import Session

    from strandline.integrations.google_adk.sessions import StrandlineSessionService

_log = logging.getLogger("strandline.integrations")


class StrandlineSummarizer(BaseEventsSummarizer):
    """A summarizer for `EventsCompactionConfig`. What it can't validate, no agent reads: the prior summary stands."""

    def __init__(
        self,
        sessions: StrandlineSessionService,
        *,
        summary_tokens: int = GUEST_SUMMARY_TOKENS,
        summarizer: object = None,
        deadline_s: float = SUMMARIZER_DEADLINE_S,
    ) -> None:
        """Take the service whose sessions are compacted.

        Args:
            sessions: the one that the Runner has.
            summary_tokens: of a summary, at most; what is kept verbatim beside it is ADK's to say.
            summarizer: as of `Workflow.compact`.
            deadline_s: for one draft.
        """
        self._sessions = sessions
        self._summary_tokens = summary_tokens
        self._summarizer = summarizer
        self._deadline_s = deadline_s

    async def maybe_summarize_events(self, *, events: list[Event]) -> Event | None:
        """Cover the session through the last of these events; None: there is no new summary, and ADK goes on without.

        Sub-agents with an isolation scope keep their events out of the others' context, which a summary of the log
        could not: a session that has such events is not compacted.

        Raises:
            StrandlineError: as of `Workflow.compact`; ADK tells of it, and goes on.
        """
        if not events:
            return None
        session = self._sessions.holding(events[-1])
        if any(event.isolation_scope is not None for event in session.events):
            _log.warning("a session with isolated sub-agents is not compacted: one summary would speak to all of them")
            return None
        return await asyncio.to_thread(self._summarize, session, events[-1])

    def _summarize(self, session: Session, last: Event) -> Event | None:
        log = self._sessions.log(session)
        seqs = log.workflow.seqs_of([event.key for event in to_events(last) if event.key is not None])
        outcome = compact_through(
            log.workflow,
            max(seqs.values()),
            summary_tokens=self._summary_tokens,
            summarizer=self._summarizer,
            deadline_s=self._deadline_s,
        )
        if outcome.outcome is not CompactionResult.ACTIVATED:
            _log.warning("a compaction made no summary: %s", outcome.outcome.value)
            return None
        return log.compaction(session.events)
