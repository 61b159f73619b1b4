"""An event that is stored late is never shown to the model, since its time lies in a range that was summarized.

Compaction covers a range of timestamps, not of events. What another process saw in that time, and appends after the
compaction, counts as summarized, though no summarizer saw it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

from google.adk.agents import LlmAgent
from google.adk.apps.app import App, EventsCompactionConfig
from google.adk.apps.base_events_summarizer import BaseEventsSummarizer
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions, EventCompaction
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import BaseSessionService, InMemorySessionService
from google.genai import types

import strandline
from bench.faults.shown import Shown
from strandline.integrations.google_adk import StrandlineSessionService, StrandlineSummarizer

PACKAGE = "google-adk"
WHO = {"user_id": "ann", "session_id": "release-42"}
REVOKED = "The approval to publish is revoked."


def stock(folder: Path) -> Shown:
    return asyncio.run(late(InMemorySessionService(), Telling()))


def ours(folder: Path) -> Shown:
    with strandline.open(folder / "agent.db") as db:
        sessions = StrandlineSessionService(db.tenant("acme"))
        return asyncio.run(late(sessions, StrandlineSummarizer(sessions)))


async def late(service: BaseSessionService, summarizer: BaseEventsSummarizer) -> Shown:
    model = Scripted(model="scripted")
    every_other = EventsCompactionConfig(summarizer=summarizer, compaction_interval=2, overlap_size=0)
    app = App(name="agents", root_agent=LlmAgent(name="writer", model=model), events_compaction_config=every_other)
    runner = Runner(app=app, session_service=service)
    await service.create_session(app_name="agents", **WHO)
    for question in ("Prepare the release.", "Is it approved?"):
        await ask(runner, question)
    session = await service.get_session(app_name="agents", **WHO)
    seen_at = (session.events[0].timestamp + session.events[-1].timestamp) / 2  # while the first two turns ran
    await service.append_event(session, Event(author="user", content=said(REVOKED), timestamp=seen_at))
    await ask(runner, "Publish?")
    stored = await service.get_session(app_name="agents", **WHO)
    is_stored, is_shown = REVOKED in texts(event.content for event in stored.events), REVOKED in model.shown
    return Shown(held=is_shown, said=f"the revocation is stored: {is_stored}; the model is shown it: {is_shown}")


async def ask(runner: Runner, question: str) -> None:
    async for _ in runner.run_async(new_message=said(question), **WHO):
        pass


def said(text: str) -> types.Content:
    return types.Content(role="user", parts=[types.Part(text=text)])


def texts(contents: object) -> str:
    return str(list(contents))


class Scripted(BaseLlm):
    """Answers always the same, and remembers what it was shown last."""

    shown: str = ""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        self.shown = texts(llm_request.contents)
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text="Yes.")]))


class Telling(BaseEventsSummarizer):
    """Summarizes in one sentence, as ADK's own summarizer does with a model."""

    async def maybe_summarize_events(self, *, events: list[Event]) -> Event | None:
        told = types.Content(role="model", parts=[types.Part(text="The release is approved.")])
        compaction = EventCompaction(
            start_timestamp=events[0].timestamp, end_timestamp=events[-1].timestamp, compacted_content=told
        )
        return Event(author="user", actions=EventActions(compaction=compaction))
