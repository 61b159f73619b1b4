"""Sessions of Google ADK over the log: verbatim, in its order, one writer at a time; validated summaries (C38).

Run against the real ADK, with a model that is scripted.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("google.adk")

from google.adk.agents.llm_agent import LlmAgent
from google.adk.apps.app import App, EventsCompactionConfig, ResumabilityConfig
from google.adk.errors._stale_session_error import StaleSessionError
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions, EventCompaction
from google.adk.flows.llm_flows.context._compaction import _process_compaction_events
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions.base_session_service import GetSessionConfig
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.sessions.session import Session
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.tool_context import ToolContext
from google.genai import types

import strandline as sl
from strandline.integrations.google_adk import StrandlineEffects, StrandlineSessionService, StrandlineSummarizer

pytestmark = pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning")

WHO = {"app_name": "shop", "user_id": "ann"}


@pytest.fixture(params=["memory", pytest.param("sqlite", marks=pytest.mark.long)])
def db(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[sl.Strandline]:
    with sl.open(":memory:" if request.param == "memory" else tmp_path / "s.db") as db:
        yield db


@pytest.fixture
def sessions(db: sl.Strandline) -> StrandlineSessionService:
    return StrandlineSessionService(db.tenant("acme"))


def text(author: str, said: str, **more: Any) -> Event:
    role = "user" if author == "user" else "model"
    content = types.Content(role=role, parts=[types.Part(text=said)])
    return Event(author=author, content=content, **{"invocation_id": "i1", **more})


def texts(events: list[Event]) -> list[str]:
    return [part.text or "" for event in events if event.content for part in event.content.parts or []]


def of_kinds() -> list[Event]:
    """Events of each shape that ADK appends."""
    call = types.FunctionCall(id="c1", name="look", args={"at": "bucket-7f3a", "none": None})
    thought = types.Part(text="hm", thought=True, thought_signature=b"\xff\x00")
    image = types.Part(inline_data=types.Blob(data=b"\x89PNG\xff", mime_type="image/png"))
    response = types.FunctionResponse(id="c1", name="look", response={"found": [1, 2.5], "none": None})
    return [
        Event(author="user", content=types.Content(role="user", parts=[types.Part(text="look"), image])),
        Event(author="a", content=types.Content(role="model", parts=[thought, types.Part(function_call=call)])),
        Event(
            author="a",
            content=types.Content(role="user", parts=[types.Part(function_response=response)]),
            actions=EventActions(state_delta={"seen": {"none": None}, "gone": None}, artifact_delta={"a.txt": 1}),
        ),
        Event(author="a", actions=EventActions(transfer_to_agent="b", state_delta={"n": 1.5})),
        Event(author="a", content=types.Content(role="model", parts=[types.Part(text="")])),
        Event(author="a", content=types.Content(role="model", parts=[])),
        Event(
            author="a",
            content=types.Content(
                role="model",
                parts=[
                    types.Part(executable_code=types.ExecutableCode(code="1+1", language="PYTHON")),
                    types.Part(code_execution_result=types.CodeExecutionResult(outcome="OUTCOME_OK", output="2")),
                    types.Part(file_data=types.FileData(file_uri="gs://b/f", mime_type="text/plain")),
                ],
            ),
            custom_metadata={"x": [1, None]},
            long_running_tool_ids={"c1"},
        ),
    ]


async def fill(sessions: StrandlineSessionService, session: Session, turns: int) -> None:
    for n in range(turns):
        await sessions.append_event(session, text("user", f"run {n}", invocation_id=f"i{n}"))
        answer = f"run {n} wrote logs/run-{n}.txt and all was well"
        await sessions.append_event(session, text("a", answer, invocation_id=f"i{n}"))


# ---------------------------------------------------------------------------------------------- the log


def test_events_come_back_verbatim_and_the_restored_session_is_the_live_one(sessions: StrandlineSessionService) -> None:
    async def go() -> None:
        live = await sessions.create_session(**WHO, session_id="s", state={"first": 1, "temp:no": 2})
        for event in of_kinds():
            await sessions.append_event(live, event)
        got = await sessions.get_session(**WHO, session_id="s")
        assert got is not None
        assert got.events == live.events == of_events(live.events)
        assert got.state == live.state == {"first": 1, "seen": {"none": None}, "gone": None, "n": 1.5}
        assert got.last_update_time == live.last_update_time

    def of_events(events: list[Event]) -> list[Event]:
        return [Event.model_validate_json(event.model_dump_json()) for event in events]

    asyncio.run(go())


def test_the_memory_reads_calls_results_and_constraints(db: sl.Strandline, sessions: StrandlineSessionService) -> None:
    async def go() -> sl.Workflow:
        live = await sessions.create_session(**WHO, session_id="s")
        await sessions.append_event(live, text("user", "Never push to main."))
        for event in of_kinds():
            await sessions.append_event(live, event)
        return sessions.log(live).workflow

    workflow = asyncio.run(go())
    assert [found.text for found in workflow.found_constraints()] == ["Never push to main."]
    kinds = [event.kind for event in workflow.events()]
    assert {"message", "thinking", "tool_call", "tool_result", "note"} == set(kinds)
    assert workflow.recall("bucket-7f3a")[0].kind == "tool_call"
    assert not workflow.context().open_calls
    assert db.verify().problems == ()


def test_a_late_event_stays_visible(sessions: StrandlineSessionService) -> None:
    """ADK hides what lies in a compacted range by its timestamp; here the order of the log decides."""

    async def run(service: Any, summarize: Any) -> list[str]:
        session = await service.create_session(**WHO, session_id="s")
        for n in range(60):
            await service.append_event(session, text("a", f"run {n} wrote logs/run-{n}.txt", timestamp=100.0 + n))
        compaction = await summarize(session)
        await service.append_event(session, compaction)
        await service.append_event(session, text("user", "approval revoked", timestamp=110.0))
        got = await service.get_session(**WHO, session_id="s")
        assert got.events[-1].id == session.events[-1].id
        return [*texts(_process_compaction_events(got.events)), *texts(_process_compaction_events(session.events))]

    async def stock(session: Session) -> Event:
        summary = types.Content(role="model", parts=[types.Part(text="a summary")])
        compacted = EventCompaction(start_timestamp=100.0, end_timestamp=150.0, compacted_content=summary)
        return Event(author="user", actions=EventActions(compaction=compacted))

    async def ours(session: Session) -> Event:
        made = await StrandlineSummarizer(sessions, summary_tokens=300).maybe_summarize_events(
            events=session.events[:51]
        )
        assert made is not None
        return made

    assert "approval revoked" not in asyncio.run(run(InMemorySessionService(), stock))
    assert asyncio.run(run(sessions, ours)).count("approval revoked") == 2


def test_a_clock_that_jumps_back_changes_no_order(sessions: StrandlineSessionService) -> None:
    async def go() -> None:
        live = await sessions.create_session(**WHO, session_id="s")
        for n, timestamp in enumerate([100.0, 40.0, 40.0, 100.0, 101.0]):
            await sessions.append_event(live, text("user", str(n), timestamp=timestamp))
        got = await sessions.get_session(**WHO, session_id="s")
        assert got is not None
        assert texts(got.events) == ["0", "1", "2", "3", "4"]
        assert [event.timestamp for event in got.events] == sorted({event.timestamp for event in got.events})
        assert (got.events[0].timestamp, got.events[-1].timestamp) == (100.0, 101.0)
        assert got.events == live.events
        kept = [json.loads(event.origin or "")["frame"] for event in sessions.log(live).workflow.events()[1:]]
        assert [frame["timestamp"] for frame in kept] == [100.0, 40.0, 40.0, 100.0, 101.0]

    asyncio.run(go())


def test_a_flipped_byte_is_an_error(tmp_path: Path) -> None:
    async def go() -> None:
        with sl.open(tmp_path / "s.db") as db:
            service = StrandlineSessionService(db.tenant("acme"))
            live = await service.create_session(**WHO, session_id="s")
            await service.append_event(live, text("user", "one"))
            await service.append_event(live, text("user", "two"))
        with sqlite3.connect(tmp_path / "s.db") as raw:
            for (name,) in raw.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
                raw.execute(f"DROP TRIGGER {name}")
            (body,) = raw.execute("SELECT body FROM event WHERE seq = 2").fetchone()
            middle = len(body) // 2
            flipped = body[:middle] + bytes([body[middle] ^ 1]) + body[middle + 1 :]
            raw.execute("UPDATE event SET body = ? WHERE seq = 2", (flipped,))
        raw.close()
        with sl.open(tmp_path / "s.db") as db:
            service = StrandlineSessionService(db.tenant("acme"))
            with pytest.raises(sl.CorruptRecordError, match="event 2"):
                await service.get_session(**WHO, session_id="s")

    asyncio.run(go())


# ---------------------------------------------------------------------------------------------- writers


def test_a_stale_writer_is_refused_and_the_same_event_twice_is_one(sessions: StrandlineSessionService) -> None:
    async def go() -> None:
        await sessions.create_session(**WHO, session_id="s")
        one = await sessions.get_session(**WHO, session_id="s")
        two = await sessions.get_session(**WHO, session_id="s")
        assert one is not None
        assert two is not None
        event = text("user", "first")
        await sessions.append_event(one, event)
        with pytest.raises(StaleSessionError, match="somebody else went on"):
            await sessions.append_event(two, text("user", "second"))
        assert texts(two.events) == []
        await sessions.append_event(two, event.model_copy(deep=True))  # a retry after a lost answer
        got = await sessions.get_session(**WHO, session_id="s")
        assert got is not None
        assert texts(got.events) == ["first"]

    asyncio.run(go())


def test_what_others_write_beside_adk_makes_no_session_stale(sessions: StrandlineSessionService) -> None:
    async def go() -> None:
        live = await sessions.create_session(**WHO, session_id="s")
        await sessions.append_event(live, text("user", "publish"))
        workflow = sessions.log(live).workflow
        assert workflow.effect("p1", "publish", {"to": "eu"}, run=lambda: "done").kind == "ran"
        await sessions.append_event(live, text("a", "published"))
        got = await sessions.get_session(**WHO, session_id="s")
        assert got is not None
        assert got.events == live.events

    asyncio.run(go())


def test_a_session_of_another_service_is_refused(sessions: StrandlineSessionService) -> None:
    async def go() -> None:
        await sessions.create_session(**WHO, session_id="s")
        foreign = Session(id="s", **WHO)
        with pytest.raises(StaleSessionError, match="not got from this service"):
            await sessions.append_event(foreign, text("user", "hi"))

    asyncio.run(go())


# ---------------------------------------------------------------------------------------------- create, list, delete


def test_a_deleted_session_is_gone_its_log_stays_and_no_late_writer_revives_it(
    db: sl.Strandline, sessions: StrandlineSessionService
) -> None:
    async def go() -> None:
        live = await sessions.create_session(**WHO, session_id="s")
        await sessions.append_event(live, text("user", "old"))
        await sessions.delete_session(**WHO, session_id="s")
        await sessions.delete_session(**WHO, session_id="s")
        assert await sessions.get_session(**WHO, session_id="s") is None
        assert (await sessions.list_sessions(app_name="shop")).sessions == []
        with pytest.raises(SessionNotFoundError):
            await sessions.append_event(live, text("user", "late"))
        again = await sessions.create_session(**WHO, session_id="s", state={"new": True})
        with pytest.raises(StaleSessionError):
            await sessions.append_event(live, text("user", "late"))
        await sessions.append_event(again, text("user", "new"))
        got = await sessions.get_session(**WHO, session_id="s")
        assert got is not None
        assert (texts(got.events), got.state) == (["new"], {"new": True})
        log = sessions.log(again).workflow
        assert [event.text for event in log.events() if event.abandoned][1] == "old"
        assert "old" not in log.context().text

    asyncio.run(go())
    assert db.verify().problems == ()


def test_a_delete_that_was_cut_off_is_a_delete(sessions: StrandlineSessionService, monkeypatch: Any) -> None:
    async def go() -> None:
        live = await sessions.create_session(**WHO, session_id="s")
        await sessions.append_event(live, text("user", "old"))
        with monkeypatch.context() as cut:
            cut.setattr(sl.Workflow, "rewind", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                sessions.log(live).delete()
        assert await sessions.get_session(**WHO, session_id="s") is None
        again = await sessions.create_session(**WHO, session_id="s")
        await sessions.append_event(again, text("user", "new"))
        got = await sessions.get_session(**WHO, session_id="s")
        assert got is not None
        assert texts(got.events) == ["new"]

    asyncio.run(go())


def test_sessions_are_listed_by_their_last_update(sessions: StrandlineSessionService) -> None:
    async def go() -> None:
        a = await sessions.create_session(app_name="shop", user_id="a/b", session_id="1")
        b = await sessions.create_session(app_name="shop", user_id="bob", session_id="2")
        await sessions.create_session(app_name="other", user_id="bob", session_id="3")
        await sessions.append_event(b, text("user", "x", timestamp=9e9))
        await sessions.append_event(a, text("user", "y", timestamp=9.1e9))
        listed = (await sessions.list_sessions(app_name="shop")).sessions
        assert [(one.user_id, one.id, one.last_update_time) for one in listed] == [
            ("bob", "2", 9e9),
            ("a/b", "1", 9.1e9),
        ]
        assert [one.events for one in listed] == [[], []]
        assert [one.id for one in (await sessions.list_sessions(app_name="shop", user_id="bob")).sessions] == ["2"]
        with pytest.raises(AlreadyExistsError):
            await sessions.create_session(app_name="shop", user_id="bob", session_id=" 2 ")

    asyncio.run(go())


def test_another_tenant_has_sessions_of_its_own(db: sl.Strandline, sessions: StrandlineSessionService) -> None:
    async def go() -> None:
        await sessions.create_session(**WHO, session_id="s", state={"app:x": 1})
        other = StrandlineSessionService(db.tenant("globex"))
        assert await other.get_session(**WHO, session_id="s") is None
        assert (await other.list_sessions(app_name="shop")).sessions == []
        assert (await other.create_session(**WHO, session_id="s")).state == {}

    asyncio.run(go())


def test_less_may_be_asked_for(sessions: StrandlineSessionService) -> None:
    async def go() -> None:
        live = await sessions.create_session(**WHO, session_id="s")
        for n in range(5):
            await sessions.append_event(live, text("user", str(n), timestamp=100.0 + n))

        async def asked(**config: Any) -> list[str]:
            got = await sessions.get_session(**WHO, session_id="s", config=GetSessionConfig(**config))
            assert got is not None
            return texts(got.events)

        assert await asked(num_recent_events=2) == ["3", "4"]
        assert await asked(num_recent_events=0) == []
        assert await asked(after_timestamp=103.0) == ["3", "4"]
        assert await asked(num_recent_events=1, after_timestamp=101.0) == ["4"]
        trimmed = await sessions.get_session(**WHO, session_id="s", config=GetSessionConfig(num_recent_events=0))
        assert trimmed is not None
        late = await sessions.append_event(trimmed, text("user", "late", timestamp=1.0))
        assert late.timestamp > 104.0

    asyncio.run(go())


# ---------------------------------------------------------------------------------------------- state


def test_state_of_user_and_app_is_shared(sessions: StrandlineSessionService) -> None:
    async def go() -> None:
        one = await sessions.create_session(**WHO, session_id="1", state={"app:a": 1, "user:u": 1, "own": 1})
        assert one.state == {"app:a": 1, "user:u": 1, "own": 1}
        delta = EventActions(state_delta={"app:a": 2, "user:u": 2, "own": 2, "temp:t": 9})
        event = await sessions.append_event(one, Event(author="a", actions=delta))
        assert event.actions.state_delta == {"app:a": 2, "user:u": 2, "own": 2}
        two = await sessions.create_session(**WHO, session_id="2")
        assert two.state == {"app:a": 2, "user:u": 2}
        bob = await sessions.create_session(app_name="shop", user_id="bob", session_id="3")
        assert bob.state == {"app:a": 2}
        assert await sessions.get_user_state(**WHO) == {"u": 2}
        assert await sessions.get_user_state(app_name="shop", user_id="bob") == {}

    asyncio.run(go())


def test_shared_state_of_a_process_that_died_is_handed_on_by_who_loads_next(
    sessions: StrandlineSessionService, monkeypatch: Any
) -> None:
    async def go() -> None:
        one = await sessions.create_session(**WHO, session_id="1")
        with monkeypatch.context() as cut:
            cut.setattr("strandline.integrations.google_adk.session_log.write_state", lambda *_: None)
            await sessions.append_event(one, Event(author="a", actions=EventActions(state_delta={"user:u": 7})))
        assert await sessions.get_user_state(**WHO) == {}
        got = await sessions.get_session(**WHO, session_id="1")
        assert got is not None
        assert got.state == {"user:u": 7}
        assert await sessions.get_user_state(**WHO) == {"u": 7}

    asyncio.run(go())


def test_a_state_that_json_cannot_hold_is_refused(sessions: StrandlineSessionService) -> None:
    async def go() -> None:
        with pytest.raises(sl.InvalidInputError, match="JSON can't"):
            await sessions.create_session(**WHO, session_id="s", state={"f": object()})
        assert await sessions.get_session(**WHO, session_id="s") is None

    asyncio.run(go())


# ---------------------------------------------------------------------------------------------- compaction


def test_the_summary_is_the_active_one_and_a_restored_session_shows_it_where_it_was(
    db: sl.Strandline, sessions: StrandlineSessionService
) -> None:
    async def go() -> None:
        live = await sessions.create_session(**WHO, session_id="s")
        await sessions.append_event(live, text("user", "Never push to main."))
        await fill(sessions, live, 40)
        summarizer = StrandlineSummarizer(sessions, summary_tokens=400)
        made = await summarizer.maybe_summarize_events(events=live.events[:61])
        assert made is not None
        await sessions.append_event(live, made)
        await fill(sessions, live, 2)
        got = await sessions.get_session(**WHO, session_id="s")
        assert got is not None
        assert got.events == live.events
        shown = texts(_process_compaction_events(got.events))
        assert "Never push to main." in shown[0]
        assert shown[1:] == texts(live.events)[61:]
        workflow = sessions.log(live).workflow
        assert workflow.context().generation == 1
        # a second one speaks for all that the first did, and ADK drops the first
        again = await summarizer.maybe_summarize_events(events=live.events[1:71])
        assert again is not None
        await sessions.append_event(live, again)
        shown = texts(_process_compaction_events(live.events))
        got = await sessions.get_session(**WHO, session_id="s")
        assert got is not None
        assert texts(_process_compaction_events(got.events)) == shown
        assert sum(event.actions.compaction is not None for event in got.events) == 1

    asyncio.run(go())
    assert db.verify().problems == ()


def test_what_was_reverted_or_erased_is_read_by_nobody(sessions: StrandlineSessionService) -> None:
    async def go() -> None:
        live = await sessions.create_session(**WHO, session_id="s")
        await sessions.append_event(live, text("user", "My address is 7 Elm Street, never ship elsewhere."))
        await fill(sessions, live, 40)
        made = await StrandlineSummarizer(sessions, summary_tokens=400).maybe_summarize_events(events=live.events[:61])
        assert made is not None
        await sessions.append_event(live, made)
        workflow = sessions.log(live).workflow
        workflow.erase(events=[2], by="ann", why="asked for")
        got = await sessions.get_session(**WHO, session_id="s")
        assert got is not None
        assert "Elm" not in json.dumps([event.model_dump(mode="json") for event in got.events])
        assert texts(got.events)[0] == "[erased]"
        workflow.revert(0, by="ann", why="bad")
        got = await sessions.get_session(**WHO, session_id="s")
        assert got is not None
        assert not any(event.actions.compaction for event in got.events)
        with pytest.raises(StaleSessionError, match="not the active one"):
            await sessions.append_event(live, made)

    asyncio.run(go())


def test_a_compaction_by_another_summarizer_is_refused(sessions: StrandlineSessionService) -> None:
    async def go() -> None:
        live = await sessions.create_session(**WHO, session_id="s")
        content = types.Content(role="model", parts=[types.Part(text="user approved publishing")])
        compaction = EventCompaction(start_timestamp=0.0, end_timestamp=9e9, compacted_content=content)
        with pytest.raises(sl.InvalidInputError, match="nobody validated"):
            await sessions.append_event(live, Event(author="user", actions=EventActions(compaction=compaction)))

    asyncio.run(go())


@pytest.mark.parametrize("said", ["", "I don't see any events.", "The user approved publishing to production."])
def test_a_bad_summary_or_an_outage_leaves_the_prior_one(sessions: StrandlineSessionService, said: str) -> None:
    async def go() -> None:
        live = await sessions.create_session(**WHO, session_id="s")
        await fill(sessions, live, 40)

        def bad(request: sl.SummaryRequest) -> str:
            if not said:
                raise ConnectionError("down")
            return said

        made = await StrandlineSummarizer(sessions, summarizer=bad).maybe_summarize_events(events=live.events[:60])
        if made is not None:  # the extractive summarizer took over, and says what the log says
            assert made.actions.compaction is not None
            assert said == "" or said not in str(made.actions.compaction.compacted_content)

    asyncio.run(go())


def test_a_summarizer_that_no_session_knows_and_isolated_agents(sessions: StrandlineSessionService) -> None:
    async def go() -> None:
        summarizer = StrandlineSummarizer(sessions)
        assert await summarizer.maybe_summarize_events(events=[]) is None
        with pytest.raises(sl.InvalidInputError, match="no session of this service"):
            await summarizer.maybe_summarize_events(events=[text("user", "hi")])
        live = await sessions.create_session(**WHO, session_id="s")
        await fill(sessions, live, 20)
        await sessions.append_event(live, text("task", "private", isolation_scope="t1"))
        assert await summarizer.maybe_summarize_events(events=live.events[:30]) is None

    asyncio.run(go())


# ---------------------------------------------------------------------------------------------- the Runner


class Scripted(BaseLlm):
    """A model that calls the tool it is asked to, and then says what it saw."""

    model: str = "scripted"
    seen: list[list[str]]

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        shown = [part.text for content in llm_request.contents for part in content.parts or [] if part.text]
        self.seen.append(shown)
        last = llm_request.contents[-1].parts or []
        if any(part.function_response for part in last):
            part = types.Part(text="done: bucket-7f3a " + "and more " * 20)
        elif last[0].text == "make it":
            part = types.Part(function_call=types.FunctionCall(name="make_bucket", args={"region": "eu"}))
        else:
            part = types.Part(text=f"I heard {last[0].text}. " + "Some words more. " * 10)
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


def runner(sessions: StrandlineSessionService, model: Scripted, **config: Any) -> Runner:
    def make_bucket(region: str) -> dict[str, str]:
        """Make a bucket."""
        return {"bucket": "bucket-7f3a", "region": region}

    agent = LlmAgent(name="builder", model=model, instruction="Build.", tools=[make_bucket])
    compaction = EventsCompactionConfig(summarizer=StrandlineSummarizer(sessions, summary_tokens=400), **config)
    return Runner(app=App(name="shop", root_agent=agent, events_compaction_config=compaction), session_service=sessions)


async def say(run: Runner, said: str) -> list[Event]:
    content = types.Content(role="user", parts=[types.Part(text=said)])
    return [event async for event in run.run_async(user_id="ann", session_id="s", new_message=content)]


@pytest.mark.parametrize(
    "config",
    [{"token_threshold": 300, "event_retention_size": 4}, {"compaction_interval": 3, "overlap_size": 1}],
    ids=["threshold", "window"],
)
def test_an_agent_runs_and_its_context_is_the_summary_and_what_adk_keeps(
    db: sl.Strandline, sessions: StrandlineSessionService, config: dict[str, int]
) -> None:
    model = Scripted(seen=[])

    async def go() -> Session:
        run = runner(sessions, model, **config)
        await sessions.create_session(**WHO, session_id="s")
        await say(run, "Never push to main.")
        await say(run, "make it")
        for n in range(8):
            await say(run, f"step {n}")
        got = await sessions.get_session(**WHO, session_id="s")
        assert got is not None
        return got

    session = asyncio.run(go())
    workflow = sessions.log(session).workflow
    assert workflow.context().generation >= 1
    shown = "\n".join(model.seen[-1])
    assert "Never push to main." in shown  # carried verbatim
    assert "step 7" in shown
    assert "I heard Never push" not in model.seen[-1][0:1]
    assert workflow.manifest() is not None
    assert db.verify().problems == ()


def test_a_rewind_of_adk_rewinds_the_log(db: sl.Strandline, sessions: StrandlineSessionService) -> None:
    model = Scripted(seen=[])

    async def go() -> None:
        run = runner(sessions, model, compaction_interval=50, overlap_size=1)
        await sessions.create_session(**WHO, session_id="s", state={"n": 0})
        await say(run, "one")
        wrong = (await say(run, "the wrong way"))[0].invocation_id
        await say(run, "further on it")
        await run.rewind_async(user_id="ann", session_id="s", rewind_before_invocation_id=wrong)
        await say(run, "two")
        got = await sessions.get_session(**WHO, session_id="s")
        assert got is not None
        workflow = sessions.log(got).workflow
        assert "wrong way" not in workflow.context().text
        assert not any("wrong way" in shown for shown in model.seen[-1])
        assert any("one" in shown for shown in model.seen[-1])
        assert next(event.text for event in workflow.events() if event.abandoned) == "the wrong way"

    asyncio.run(go())
    assert db.verify().problems == ()


# ---------------------------------------------------------------------------------------------- tools


class Process(BaseException):
    """The process that dies."""


@pytest.mark.parametrize("ledger", [False, True], ids=["stock", "ledger"])
def test_a_call_that_ran_before_a_crash_is_not_run_again(sessions: StrandlineSessionService, ledger: bool) -> None:
    """I18: the process dies when the tool has run and ADK has not recorded its response; the invocation is resumed."""
    ran: list[str] = []

    def make_bucket(region: str) -> dict[str, str]:
        """Make a bucket."""
        ran.append(region)
        return {"bucket": f"bucket-{len(ran)}"}

    class Dies(StrandlineSessionService):
        async def append_event(self, session: Session, event: Event) -> Event:
            if event.get_function_responses():
                raise Process
            return await super().append_event(session, event)

    def run_with(service: StrandlineSessionService) -> Runner:
        agent = LlmAgent(name="builder", model=Scripted(seen=[]), tools=[make_bucket])
        plugins = [StrandlineEffects(service)] if ledger else []
        resumable = ResumabilityConfig(is_resumable=True)
        app = App(name="shop", root_agent=agent, plugins=plugins, resumability_config=resumable)
        return Runner(app=app, session_service=service)

    async def go() -> list[Event]:
        await sessions.create_session(**WHO, session_id="s")
        dying = run_with(Dies(sessions._tenant))
        with pytest.raises(Process):
            await say(dying, "make it")
        session = await sessions.get_session(**WHO, session_id="s")
        assert session is not None
        invocation = session.events[0].invocation_id
        run = run_with(sessions)
        return [event async for event in run.run_async(user_id="ann", session_id="s", invocation_id=invocation)]

    events = asyncio.run(go())
    responses = [response.response for event in events for response in event.get_function_responses()]
    assert responses == ([{"bucket": "bucket-1"}] if ledger else [{"bucket": "bucket-2"}])
    assert len(ran) == (1 if ledger else 2)


class Ctx:
    """Of a tool call: what the plugin asks for."""

    def __init__(self, session: Session, call_id: str) -> None:
        self.session = session
        self.function_call_id = call_id
        self.actions = EventActions()


def test_a_tool_that_fails_reads_or_waits_for_a_person(sessions: StrandlineSessionService) -> None:
    asked: list[str] = []

    def act(how: str, tool_context: ToolContext) -> object:
        """Act."""
        asked.append(how)
        if how == "fails":
            raise sl.EffectFailedError("refused by the other side")
        if how == "breaks":
            raise ConnectionError("cut")
        if how == "waits" and asked.count("waits") == 1:
            tool_context.actions.requested_tool_confirmations["c-waits"] = None  # type: ignore[assignment]
            return {"error": "This tool call requires confirmation."}
        return "done"

    async def go() -> None:
        session = await sessions.create_session(**WHO, session_id="s")
        plugin, tool = StrandlineEffects(sessions), FunctionTool(act)

        async def call(how: str) -> Any:
            context: Any = Ctx(session, f"c-{how}")
            return await plugin.before_tool_callback(tool=tool, tool_args={"how": how}, tool_context=context)

        assert await call("works") == await call("works") == {"result": "done"}
        assert "refused by the other side" in (await call("fails"))["error"]
        assert await call("waits") == {"error": "This tool call requires confirmation."}
        assert await call("waits") == {"result": "done"}
        with pytest.raises(ConnectionError):
            await call("breaks")
        assert "not known" in (await call("breaks"))["error"]
        assert asked == ["works", "fails", "waits", "waits", "breaks"]
        reading = StrandlineEffects(sessions, reads="act")
        context: Any = Ctx(session, "c9")
        assert await reading.before_tool_callback(tool=tool, tool_args={}, tool_context=context) is None

    asyncio.run(go())
