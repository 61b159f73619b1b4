"""An agent of Google ADK whose session is a Strandline workflow: compacted, killed, resumed. No key and no network.

Run it with `python examples/google_adk_agent.py`; it needs the extra `google-adk`. A scripted model plays the agent.
An argument, such as postgresql://…, is the store that it uses, in place of a file of its own.

It ends with: the bucket was made 1 time
"""

import asyncio
import os
import sys
import tempfile
from collections.abc import AsyncGenerator

os.environ["ADK_SUPPRESS_EXPERIMENTAL_FEATURE_WARNINGS"] = "true"  # ADK marks its compaction as experimental

from google.adk.agents.llm_agent import LlmAgent
from google.adk.apps.app import App, EventsCompactionConfig, ResumabilityConfig
from google.adk.events.event import Event
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions.session import Session
from google.genai import types

import strandline
from strandline.integrations.google_adk import StrandlineEffects, StrandlineSessionService, StrandlineSummarizer

made: list[str] = []  # what the world outside has seen


def make_bucket(region: str) -> dict[str, str]:
    """Make a bucket."""
    made.append(region)
    return {"bucket": f"bucket-7f3a-{len(made)}"}


class Scripted(BaseLlm):
    """Plays the model: it makes a bucket when it is asked to, and else says that it went on."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """Answer the last message."""
        last = (llm_request.contents[-1].parts or [types.Part()])[0]
        if last.text == "Make the bucket.":
            part = types.Part(function_call=types.FunctionCall(name="make_bucket", args={"region": "eu"}))
        elif last.function_response:
            part = types.Part(text=f"Made it: {last.function_response.response}")
        else:
            part = types.Part(text=f"Went on with {last.text} See logs/{last.text}.txt for what was done and why.")
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


class Killed(BaseException):
    """Stands for kill -9."""


class DiesAfterTheTool(StrandlineSessionService):
    """A process that dies when a tool has run and before its response is recorded."""

    async def append_event(self, session: Session, event: Event) -> Event:
        """Append, or die."""
        if event.get_function_responses():
            raise Killed
        return await super().append_event(session, event)


def runner(sessions: StrandlineSessionService) -> Runner:
    """Return what a process starts with."""
    app = App(
        name="shop",
        root_agent=LlmAgent(name="builder", model=Scripted(model="scripted"), tools=[make_bucket]),
        events_compaction_config=EventsCompactionConfig(
            summarizer=StrandlineSummarizer(sessions, summary_tokens=400), token_threshold=400, event_retention_size=6
        ),
        resumability_config=ResumabilityConfig(is_resumable=True),
        plugins=[StrandlineEffects(sessions)],
    )
    return Runner(app=app, session_service=sessions)


async def say(run: Runner, text: str) -> None:
    """Say something to the agent."""
    content = types.Content(role="user", parts=[types.Part(text=text)])
    async for _ in run.run_async(user_id="ann", session_id="s1", new_message=content):
        pass


async def first_process(path: str) -> None:
    """Work until the process dies in the middle of a tool call."""
    with strandline.open(path) as db:
        sessions = StrandlineSessionService(db.tenant("acme"))
        await sessions.create_session(app_name="shop", user_id="ann", session_id="s1")
        run = runner(sessions)
        await say(run, "Never push to main.")
        for n in range(30):
            await say(run, f"Step-{n}.")
        dying = DiesAfterTheTool(db.tenant("acme"))
        try:
            await say(runner(dying), "Make the bucket.")
        except Killed:
            print("the process died: the tool had run, its response was not recorded")


async def second_process(path: str) -> None:
    """Go on where the first one died."""
    with strandline.open(path) as db:
        sessions = StrandlineSessionService(db.tenant("acme"))
        session = await sessions.get_session(app_name="shop", user_id="ann", session_id="s1")
        assert session is not None
        context = sessions.log(session).workflow.context()
        print(f"restored {len(session.events)} events; the summary speaks for the log up to event {context.watermark}")
        print("the constraint is carried verbatim:", "Never push to main." in context.text)
        unfinished = session.events[-1].invocation_id
        async for event in runner(sessions).run_async(user_id="ann", session_id="s1", invocation_id=unfinished):
            for part in (event.content.parts if event.content else None) or []:
                if part.text:
                    print("the agent:", part.text)
        print("the store is sound:", db.verify().problems == ())


with tempfile.TemporaryDirectory() as folder:
    store = sys.argv[1] if sys.argv[1:] else f"{folder}/agent.db"
    asyncio.run(first_process(store))
    asyncio.run(second_process(store))
print(f"the bucket was made {len(made)} time")
