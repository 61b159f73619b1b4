"""Sessions and conversations of Strands over the log: restored as they were live, compacted without deleting (C38).

Run against the real Strands, with a model that is scripted.
"""

from __future__ import annotations

import copy
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("strands")

from strands import Agent, ToolContext, tool
from strands.agent.conversation_manager import SummarizingConversationManager
from strands.models.model import Model
from strands.session.file_session_manager import FileSessionManager
from strands.types.content import Message
from strands.types.exceptions import ContextWindowOverflowException, SessionException
from strands.types.session import Session, SessionAgent, SessionMessage, SessionType

import strandline as sl
from strandline.integrations.strands import (
    StrandlineConversationManager,
    StrandlineEffects,
    StrandlineSessionManager,
    StrandlineSessionRepository,
)
from strandline.limits import SESSION_ROUNDS_MAX


@pytest.fixture(params=["memory", pytest.param("sqlite", marks=pytest.mark.long)])
def db(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[sl.Strandline]:
    with sl.open(":memory:" if request.param == "memory" else tmp_path / "s.db") as db:
        yield db


class Scripted(Model):
    """A model that calls the tool it is asked to, says what it heard, and overflows above so many messages."""

    def __init__(self, window: int = 1_000) -> None:
        self.window = window
        self.seen: list[list[Message]] = []

    def update_config(self, **config: Any) -> None: ...

    def get_config(self) -> Any:
        return {"context_window_limit": 100_000}

    def structured_output(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    async def stream(self, messages: list[Message], *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        if len(messages) > self.window:
            raise ContextWindowOverflowException("too long")
        self.seen.append(copy.deepcopy(messages))
        last = messages[-1]["content"][0]
        yield {"messageStart": {"role": "assistant"}}
        if last.get("text", "").startswith("make"):
            name = last["text"].split()[1]
            use = {"toolUse": {"toolUseId": f"t{len(messages)}", "name": "make_bucket"}}
            yield {"contentBlockStart": {"start": use}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps({"name": name})}}}}
            yield {"contentBlockStop": {}}
            yield {"messageStop": {"stopReason": "tool_use"}}
            return
        said = f"I heard {last.get('text', 'a result')!r}; see logs/{len(messages)}.txt"
        yield {"contentBlockStart": {"start": {}}}
        yield {"contentBlockDelta": {"delta": {"text": said}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn"}}


made: list[str] = []


@tool
def make_bucket(name: str) -> str:
    """Make a bucket.

    Args:
        name: how it begins.
    """
    made.append(name)
    return f"{name}-7f3a"


def builder(db: sl.Strandline, *, window: int = 1_000, **options: Any) -> tuple[Agent, StrandlineSessionManager]:
    sessions = StrandlineSessionManager(db.tenant("acme"), "s1")
    workflow = sessions.workflow("builder")
    memory = StrandlineConversationManager(workflow, summary_tokens=400, keep_messages=6, **options)
    agent = Agent(
        agent_id="builder",
        model=Scripted(window),
        tools=[make_bucket],
        hooks=[StrandlineEffects(workflow)],
        session_manager=sessions,
        conversation_manager=memory,
        callback_handler=None,
    )
    return agent, sessions


# ---------------------------------------------------------------------------------------------- sessions


def test_a_restored_agent_has_the_messages_state_and_ids_that_were_live(db: sl.Strandline) -> None:
    agent, _ = builder(db)
    agent.state.set("user", {"name": "Ann", "n": 1.5})
    agent("Never push to main.")
    agent("make bucket")
    agent.messages  # noqa: B018  nothing shortened it
    again, sessions = builder(db)
    assert again.messages == agent.messages
    assert again.state.get() == agent.state.get()
    workflow = sessions.workflow("builder")
    assert [found.text for found in workflow.found_constraints()] == ["Never push to main."]
    assert workflow.recall("bucket-7f3a")
    assert db.verify().problems == ()


def blocks() -> list[Any]:
    return [
        {"text": "hi"},
        {"text": ""},
        {"image": {"format": "png", "source": {"bytes": b"\x89PNG\xff"}}},
        {"document": {"format": "pdf", "name": "plan", "source": {"bytes": b"%PDF"}}},
        {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "x"}}},
        {"reasoningContent": {"redactedContent": b"\x00\x01"}},
        {"toolUse": {"toolUseId": "t1", "name": "look", "input": {"at": [1, None]}}},
        {"toolResult": {"toolUseId": "t1", "status": "error", "content": [{"text": "no"}, {"json": {"a": 1}}]}},
        {"toolResult": {"toolUseId": "unknown", "status": "success", "content": [{"text": "yes"}]}},
        {"cachePoint": {"type": "default"}},
    ]


def test_every_block_comes_back_verbatim(db: sl.Strandline) -> None:
    repository = StrandlineSessionRepository(db.tenant("acme"))
    repository.create_session(Session("s", SessionType.AGENT))
    message: Any = {"role": "user", "content": blocks(), "tracking_id": "x", "metadata": {"custom": {"k": 1}}}
    stored = SessionMessage.from_message(message, 0)
    repository.create_message("s", "a", stored)
    repository.create_message("s", "a", stored)  # a retry after a lost answer
    empty = SessionMessage.from_message({"role": "assistant", "content": []}, 1)
    repository.create_message("s", "a", empty)
    assert repository.list_messages("s", "a") == [stored, empty]
    assert repository.read_message("s", "a", 1) == empty
    assert repository.read_message("s", "a", 2) is None
    assert repository.list_messages("s", "a", limit=1) == [stored]
    assert repository.list_messages("s", "a", offset=1) == [empty]
    assert repository.list_messages("s", "none") == []


def test_two_processes_on_one_session_do_not_lose_a_message_in_silence(db: sl.Strandline) -> None:
    repository = StrandlineSessionRepository(db.tenant("acme"))
    repository.create_message("s", "a", SessionMessage.from_message({"role": "user", "content": [{"text": "one"}]}, 0))
    with pytest.raises(SessionException, match="another process went on"):
        repository.create_message(
            "s", "a", SessionMessage.from_message({"role": "user", "content": [{"text": "two"}]}, 0)
        )


def test_a_log_that_never_rests_is_an_error(db: sl.Strandline, monkeypatch: pytest.MonkeyPatch) -> None:
    """I22: a write is made anew a limited number of times."""
    tried: list[int] = []

    def refuse(*_: object, **__: object) -> None:
        tried.append(1)
        assert len(tried) <= SESSION_ROUNDS_MAX
        raise sl.StaleRevisionError(expected=0, actual=1)

    monkeypatch.setattr(sl.Workflow, "append", refuse)
    with pytest.raises(sl.StaleRevisionError):
        StrandlineSessionRepository(db.tenant("acme")).create_session(Session("s", SessionType.AGENT))
    assert len(tried) == SESSION_ROUNDS_MAX


def test_the_newest_state_of_an_agent_counts_whatever_the_clock_says(db: sl.Strandline) -> None:
    repository = StrandlineSessionRepository(db.tenant("acme"))
    assert repository.read_session("s") is None
    session = repository.create_session(Session("s", SessionType.AGENT))
    assert repository.read_session("s") == session
    with pytest.raises(SessionException, match="exists"):
        repository.create_session(session)
    with pytest.raises(SessionException, match="does not exist"):
        repository.update_agent("s", SessionAgent("a/b", {}, {}))
    first = SessionAgent("a/b", {"n": 1}, {"__name__": "X"}, created_at="2026-01-02", updated_at="2026-01-02")
    repository.create_agent("s", first)
    repository.create_agent("s", SessionAgent("a", {"other": 1}, {}))
    repository.update_agent("s", SessionAgent("a/b", {"n": 2}, {}, updated_at="2020-01-01"))
    got = repository.read_agent("s", "a/b")
    assert got is not None
    assert (got.state, got.created_at, got.updated_at) == ({"n": 2}, "2026-01-02", "2020-01-01")
    assert repository.read_agent("s", "none") is None
    other = StrandlineSessionRepository(db.tenant("globex"))
    assert other.read_session("s") is None


class Graph:
    """Several agents: what the repository asks of them."""

    id = "graph"

    def __init__(self, state: dict[str, Any]) -> None:
        self.state = state

    def serialize_state(self) -> dict[str, Any]:
        return self.state


def test_the_state_of_several_agents_is_kept(db: sl.Strandline) -> None:
    repository = StrandlineSessionRepository(db.tenant("acme"))
    first: Any = Graph({"node": 1})
    with pytest.raises(SessionException, match="does not exist"):
        repository.update_multi_agent("s", first)
    assert repository.read_multi_agent("s", "graph") is None
    repository.create_multi_agent("s", first)
    second: Any = Graph({"node": 2})
    repository.update_multi_agent("s", second)
    assert repository.read_multi_agent("s", "graph") == {"node": 2}


def test_what_a_guardrail_replaces_is_erased_from_log_and_summaries(db: sl.Strandline) -> None:
    agent, sessions = builder(db)
    agent("My card is 4111-1111-1111-1111 and my code is blue-heron-77.")
    for n in range(20):
        agent(f"step {n}")
    agent.conversation_manager.reduce_context(agent)
    redacted: Any = {"role": "user", "content": [{"text": "[redacted]"}], "tracking_id": "x"}
    repository = sessions.session_repository
    stored = SessionMessage(message=redacted, message_id=0, redact_message=redacted)
    repository.update_message("s1", "builder", stored)
    assert repository.read_message("s1", "builder", 0) == stored
    workflow = sessions.workflow("builder")
    everything = b"".join(workflow.export()).decode() + workflow.context(1 << 30).text
    assert "[redacted]" in everything
    assert "blue-heron-77 " not in json.dumps([event.text for event in workflow.events(1, 1)])
    assert "4111" not in json.dumps([event.text for event in workflow.events(1, 1)])
    with pytest.raises(SessionException, match="does not exist"):
        repository.update_message("s1", "builder", SessionMessage(message=redacted, message_id=999))
    assert db.verify().problems == ()


# ---------------------------------------------------------------------------------------------- conversation


def test_the_list_is_the_summary_and_the_newest_and_a_restored_one_is_the_same(db: sl.Strandline) -> None:
    agent, sessions = builder(db)
    agent("Never push to main.")
    for n in range(20):
        agent(f"step {n}" if n % 3 else f"make bucket{n}")
    before = len(agent.messages)
    for _ in range(3):
        agent.conversation_manager.reduce_context(agent)
        agent("go on")
        again, _ = builder(db)
        assert again.messages == agent.messages
        assert again.conversation_manager.removed_message_count == agent.conversation_manager.removed_message_count
    assert len(agent.messages) < 16 < before
    assert "Never push to main." in agent.messages[0]["content"][0]["text"]
    workflow = sessions.workflow("builder")
    stored = sessions.session_repository.list_messages("s1", "builder")
    assert len(stored) == before + 6  # nothing was deleted
    assert workflow.context().generation >= 1
    assert db.verify().problems == ()


def test_calls_and_results_stay_together(db: sl.Strandline) -> None:
    agent, _ = builder(db)
    for n in range(12):
        agent(f"make bucket{n}")
        agent.conversation_manager.reduce_context(agent)
        called = {b["toolUse"]["toolUseId"] for m in agent.messages for b in m["content"] if "toolUse" in b}
        answered = {b["toolResult"]["toolUseId"] for m in agent.messages for b in m["content"] if "toolResult" in b}
        assert called == answered


def test_a_window_that_overflows_is_compacted_and_the_turn_goes_on(db: sl.Strandline) -> None:
    agent, _ = builder(db, window=14)
    for n in range(30):
        agent(f"step {n}")
    assert len(agent.messages) <= 14
    assert agent.conversation_manager.removed_message_count > 40


def test_a_failing_summarizer_leaves_list_and_count_as_they_are_and_stock_does_not(db: sl.Strandline) -> None:
    def down(request: sl.SummaryRequest) -> str:
        raise sl.SummarizerSetupError("no key")

    agent, _ = builder(db, summarizer=down)
    for n in range(20):
        agent(f"step {n}")
    before = copy.deepcopy(agent.messages)
    with pytest.raises(sl.SummarizerSetupError):
        agent.conversation_manager.reduce_context(agent)
    assert agent.messages == before
    assert agent.conversation_manager.removed_message_count == 0
    again, _ = builder(db)
    assert again.messages == before


@pytest.mark.parametrize("ours", [False, True], ids=["stock", "ours"])
def test_an_outage_between_two_summaries_loses_no_message_on_restore(
    db: sl.Strandline, tmp_path: Path, ours: bool
) -> None:
    """strands-agents/harness-sdk#4027: a summarizer that fails moves the stock manager's count, and a restore skips."""
    live: Any
    if ours:
        live, _ = builder(db)
        restored = lambda: builder(db)[0]  # noqa: E731
    else:
        manager = SummarizingConversationManager(preserve_recent_messages=6, summary_ratio=0.5)

        def restored(manager: Any = None) -> Any:
            return Agent(
                agent_id="builder",
                model=Scripted(),
                session_manager=FileSessionManager("s1", storage_dir=str(tmp_path / "files")),
                conversation_manager=manager or SummarizingConversationManager(preserve_recent_messages=6),
                callback_handler=None,
            )

        live = restored(manager)
    for n in range(20):
        live(f"step {n}")
    live.conversation_manager.reduce_context(live)
    model, live.model = live.model, Scripted(window=0)  # down
    if ours:
        live.conversation_manager._summarizer = lambda request: (_ for _ in ()).throw(ConnectionError("down"))
    live.conversation_manager.reduce_context(live)
    live.model = model
    live("one more")
    again = restored()
    lost = [message for message in live.messages[1:] if message not in again.messages]
    assert bool(lost) is not ours


def test_a_list_that_something_else_shortened_is_not_compacted(db: sl.Strandline) -> None:
    agent, _ = builder(db)
    for n in range(20):
        agent(f"step {n}")
    del agent.messages[:4]
    with pytest.raises(sl.InvalidInputError, match="is not the one in"):
        agent.conversation_manager.reduce_context(agent)


def test_nothing_to_cover_is_no_error_but_for_an_overflow(db: sl.Strandline) -> None:
    agent, sessions = builder(db)
    agent("hi")
    agent.conversation_manager.reduce_context(agent)
    assert len(agent.messages) == 2
    agent.messages.pop()
    with pytest.raises(ContextWindowOverflowException):
        agent.conversation_manager.reduce_context(agent, e=ContextWindowOverflowException("too long"))
    with pytest.raises(sl.InvalidInputError, match="at least"):
        StrandlineConversationManager(sessions.workflow("builder"), keep_messages=0)


def test_a_summary_that_was_reverted_is_not_restored(db: sl.Strandline) -> None:
    agent, sessions = builder(db)
    for n in range(20):
        agent(f"step {n}")
    whole = copy.deepcopy(agent.messages)
    agent.conversation_manager.reduce_context(agent)
    assert len(agent.messages) < len(whole)
    sessions.workflow("builder").revert(0, by="ann", why="bad")
    again, _ = builder(db)
    assert again.messages == whole


# ---------------------------------------------------------------------------------------------- tools


def plain(workflow: sl.Workflow, *tools: Any, **options: Any) -> Agent:
    """Return an agent without a session, as a process has it that starts anew: its first call has the first id."""
    hooks = [StrandlineEffects(workflow, **options)]
    return Agent(model=Scripted(), tools=list(tools), hooks=hooks, callback_handler=None)


def results(agent: Agent) -> list[Any]:
    return [block["toolResult"] for message in agent.messages for block in message["content"] if "toolResult" in block]


def test_a_call_that_comes_again_gets_the_recorded_result(db: sl.Strandline) -> None:
    made.clear()
    workflow = db.tenant("acme").workflow("w")
    first, again = plain(workflow, make_bucket), plain(workflow, make_bucket)
    first("make bucket")
    again("make bucket")
    assert made == ["bucket"]
    assert results(first) == results(again)
    reading = plain(workflow, make_bucket, reads="make_bucket")
    reading("make bucket")
    assert made == ["bucket", "bucket"]
    assert db.verify().problems == ()


def test_a_tool_that_fails_breaks_or_waits_for_a_person(db: sl.Strandline) -> None:
    ran: list[str] = []

    @tool(name="make_bucket", context=True)
    def act(name: str, tool_context: ToolContext) -> str:
        """Act."""
        ran.append(name)
        if name == "refused":
            raise sl.EffectFailedError("refused by the other side")
        if name == "broken":
            raise ConnectionError("cut")
        if name == "asking" and not tool_context.interrupt("may I", reason="it costs"):
            return "no"
        return "done"

    def told(name: str) -> tuple[str, str]:
        agent = plain(db.tenant("acme").workflow(name), act)
        agent(f"make {name}")
        (result,) = results(agent)
        return result["status"], result["content"][0]["text"]

    assert told("refused")[0] == "error"
    assert told("refused")[0] == "error"
    assert told("broken")[0] == "error"
    assert "not known" in told("broken")[1]
    assert ran == ["refused", "refused", "broken"]
    agent = plain(db.tenant("acme").workflow("asking"), act)
    asked = agent("make asking")
    assert asked.stop_reason == "interrupt"
    agent([{"interruptResponse": {"interruptId": asked.interrupts[0].id, "response": "yes"}}])
    assert results(agent)[0]["content"][0]["text"] == "done"
    assert ran[3:] == ["asking", "asking"]
