"""History and checkpoints of the Microsoft Agent Framework over the log and the saved states (C38).

Run against the real framework, with a client that is scripted.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("agent_framework")

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatResponse,
    Content,
    Executor,
    FileCheckpointStorage,
    FunctionInvocationLayer,
    Message,
    WorkflowBuilder,
    WorkflowCheckpoint,
    WorkflowCheckpointException,
    WorkflowContext,
    handler,
    tool,
)

import strandline as sl
from strandline.integrations.agent_framework import (
    StrandlineCheckpointStorage,
    StrandlineEffects,
    StrandlineHistoryProvider,
)
from strandline.limits import SESSION_ROUNDS_MAX


@pytest.fixture(params=["memory", pytest.param("sqlite", marks=pytest.mark.long)])
def db(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[sl.Strandline]:
    with sl.open(":memory:" if request.param == "memory" else tmp_path / "s.db") as db:
        yield db


class Scripted(FunctionInvocationLayer, BaseChatClient):  # type: ignore[type-arg]
    """A client that calls the tool it is asked to, and says what it heard."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[list[Message]] = []

    async def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **kwargs: Any) -> ChatResponse:
        self.seen.append(list(messages))
        last = messages[-1]
        if last.text.startswith("make"):
            call = Content.from_function_call("c1", "make_bucket", arguments=json.dumps({"name": last.text.split()[1]}))
            return ChatResponse(messages=[Message("assistant", [call])])
        said = f"I heard {last.text or last.contents[0].result!r}; see logs/{len(self.seen)}.txt"
        return ChatResponse(messages=[Message("assistant", [said])])


made: list[str] = []


@tool(approval_mode="never_require")
def make_bucket(name: str) -> str:
    """Make a bucket."""
    made.append(name)
    if name == "broken":
        raise ConnectionError("cut")
    if name == "refused":
        raise sl.EffectFailedError("refused by the other side")
    return f"{name}-7f3a"


def dicts(messages: Any) -> list[Any]:
    return [message.to_dict() for message in messages]


def builder(history: StrandlineHistoryProvider, **options: Any) -> Agent:
    middleware = [StrandlineEffects(history, **options)]
    return Agent(Scripted(), "Build.", context_providers=[history], tools=[make_bucket], middleware=middleware)


# ---------------------------------------------------------------------------------------------- history


def test_an_agent_goes_on_with_its_history_in_another_process(db: sl.Strandline) -> None:
    async def go() -> None:
        history = StrandlineHistoryProvider(db.tenant("acme"))
        first = builder(history)
        session = first.create_session(session_id="s1")
        await first.run("Never push to main.", session=session)
        await first.run("make bucket", session=session)
        again = builder(StrandlineHistoryProvider(db.tenant("acme")))
        await again.run("go on", session=again.create_session(session_id="s1"))
        seen = [message.text for message in again.client.seen[-1]]
        assert seen[0] == "Never push to main."
        assert seen[-1] == "go on"
        workflow = history.workflow("s1")
        assert [found.text for found in workflow.found_constraints()] == ["Never push to main."]
        assert workflow.recall("bucket-7f3a")
        assert not workflow.context().open_calls

    asyncio.run(go())
    assert db.verify().problems == ()


def contents() -> list[Any]:
    call = Content.from_function_call("c1", "look", arguments={"at": [1, None]})
    return [
        "hi",
        "",
        call,
        Content.from_function_call("c2", "look", arguments="{not json"),
        Content.from_function_result("c1", result={"x": [1.5]}),
        Content.from_function_result("unknown", result="yes"),
        Content.from_data(b"\x89PNG\xff", "image/png"),
        Content.from_uri("https://example.com/a.png", media_type="image/png"),
        Content.from_text_reasoning(text="hm"),
        Content.from_function_approval_request("a1", Content.from_function_call("c3", "publish", arguments={})),
        Content.from_error(message="cut"),
    ]


def test_every_content_comes_back_verbatim_and_a_pending_approval_is_an_open_call(db: sl.Strandline) -> None:
    async def go() -> None:
        history = StrandlineHistoryProvider(db.tenant("acme"))
        given = [
            Message("assistant", contents(), author_name="a", message_id="m", additional_properties={"k": [1]}),
            Message("system", ["Be brief."]),
            Message("user", []),
        ]
        await history.save_messages("s", given)
        await history.save_messages("s", given)  # a retry after a lost answer
        assert dicts(await history.get_messages("s")) == dicts(given)
        workflow = history.workflow("s")
        assert {call.call_id for call in workflow.context().open_calls} >= {"a1", "c2"}
        answer = given[0].contents[9].to_function_approval_response(approved=True)
        await history.save_messages("s", [Message("user", [answer])])
        assert "a1" not in {call.call_id for call in workflow.context().open_calls}

    asyncio.run(go())
    assert db.verify().problems == ()


def test_a_replayed_transcript_adds_what_is_new_and_two_writers_lose_nothing(db: sl.Strandline) -> None:
    async def go() -> None:
        history = StrandlineHistoryProvider(db.tenant("acme"))
        turns = [Message("user" if n % 2 == 0 else "assistant", [f"turn {n}"]) for n in range(6)]
        await history.save_messages("s", turns[:4])
        await history.save_messages("s", turns)
        assert [message.text for message in await history.get_messages("s")] == [f"turn {n}" for n in range(6)]
        both = [history.save_messages("s", [Message("user", [f"writer {n}"], message_id=f"w{n}")]) for n in range(8)]
        await asyncio.gather(*both)
        said = [message.text for message in await history.get_messages("s")][6:]
        assert sorted(said) == [f"writer {n}" for n in range(8)]

    asyncio.run(go())
    assert db.verify().problems == ()


def test_a_log_that_never_rests_is_an_error(db: sl.Strandline, monkeypatch: pytest.MonkeyPatch) -> None:
    """I22: a write is made anew a limited number of times."""
    tried: list[int] = []

    def refuse(*_: object, **__: object) -> None:
        tried.append(1)
        assert len(tried) <= SESSION_ROUNDS_MAX
        raise sl.StaleRevisionError(expected=0, actual=1)

    monkeypatch.setattr(sl.Workflow, "append", refuse)
    with pytest.raises(sl.StaleRevisionError):
        asyncio.run(StrandlineHistoryProvider(db.tenant("acme")).save_messages("s", [Message("user", ["Go."])]))
    assert len(tried) == SESSION_ROUNDS_MAX


def test_a_long_history_is_the_summary_and_what_comes_after(db: sl.Strandline) -> None:
    async def go() -> None:
        history = StrandlineHistoryProvider(db.tenant("acme"), budget=1_500)
        agent = builder(history)
        session = agent.create_session(session_id="s1")
        await agent.run("Never push to main.", session=session)
        for n in range(60):
            await agent.run(f"step {n}: see plans/plan-{n}.md", session=session)
        loaded = await history.get_messages("s1")
        assert "Never push to main." in loaded[0].text
        assert len(loaded) < 80
        assert loaded[-1].text.startswith("I heard 'step 59")
        workflow = history.workflow("s1")
        assert len([event for event in workflow.events() if event.kind == "message"]) == 122  # nothing was deleted
        await history.save_messages("s1", loaded)  # the whole list comes back, with the summary in it
        assert dicts(await history.get_messages("s1")) == dicts(loaded)
        workflow.revert(0, by="ann", why="bad")
        assert len(await history.get_messages("s1")) == 122

    asyncio.run(go())
    assert db.verify().problems == ()


def test_an_outage_of_the_summarizer_ends_no_turn(db: sl.Strandline) -> None:
    told: list[str] = []

    def down(request: sl.SummaryRequest) -> str:
        raise sl.SummarizerSetupError("no key")

    async def go() -> None:
        history = StrandlineHistoryProvider(
            db.tenant("acme"), budget=500, summarizer=down, told=lambda what, how: told.append(what)
        )
        agent = builder(history)
        session = agent.create_session(session_id="s1")
        for n in range(20):
            await agent.run(f"step {n}: " + "some more words " * 5, session=session)
        assert len(await history.get_messages("s1")) == 40

    asyncio.run(go())
    assert told


def test_a_session_needs_an_id_and_a_tenant_has_its_own(db: sl.Strandline) -> None:
    async def go() -> None:
        history = StrandlineHistoryProvider(db.tenant("acme"))
        with pytest.raises(sl.InvalidInputError, match="without an id"):
            await history.get_messages(None)
        await history.save_messages("a/b", [Message("user", ["hi"])])
        assert await StrandlineHistoryProvider(db.tenant("globex")).get_messages("a/b") == []
        await history.save_messages("a/b", [])

    asyncio.run(go())


def test_what_was_erased_is_in_no_history(db: sl.Strandline) -> None:
    async def go() -> None:
        history = StrandlineHistoryProvider(db.tenant("acme"))
        await history.save_messages("s", [Message("user", ["My street is Elm Street."]), Message("assistant", ["ok"])])
        history.workflow("s").erase(events=[1], by="ann", why="asked for")
        assert [message.text for message in await history.get_messages("s")] == ["[erased]", "ok"]

    asyncio.run(go())


# ---------------------------------------------------------------------------------------------- tools


def test_a_call_that_comes_again_gets_the_recorded_result(db: sl.Strandline) -> None:
    made.clear()

    async def go() -> list[str]:
        said = []
        for _ in range(2):  # the second time as a process that died before the history was saved
            history = StrandlineHistoryProvider(db.tenant("acme"), store_inputs=False, store_outputs=False)
            agent = builder(history)
            said.append((await agent.run("make bucket", session=agent.create_session(session_id="s1"))).text)
        history = StrandlineHistoryProvider(db.tenant("acme"))
        agent = builder(history, reads="make_bucket")
        await agent.run("make bucket", session=agent.create_session(session_id="s1"))
        return said

    first, second = asyncio.run(go())
    assert first == second
    assert "bucket-7f3a" in first
    assert made == ["bucket", "bucket"]


def test_a_tool_that_fails_or_breaks(db: sl.Strandline) -> None:
    made.clear()

    async def told(name: str) -> str:
        history = StrandlineHistoryProvider(db.tenant("acme"), store_inputs=False, store_outputs=False)
        agent = builder(history)
        await agent.run(f"make {name}", session=agent.create_session(session_id=name))
        return str(agent.client.seen[-1][-1].contents[0].result)

    async def go() -> None:
        await told("refused")
        await told("refused")
        await told("broken")
        assert "not known" in await told("broken")
        assert made == ["refused", "refused", "broken"]
        agent = builder(StrandlineHistoryProvider(db.tenant("acme")))
        agent.context_providers = []
        await agent.run("make bucket")
        assert made[3:] == []  # without a session there is no ledger, and nothing runs

    asyncio.run(go())


# ---------------------------------------------------------------------------------------------- checkpoints


@dataclass
class Order:
    """What an executor keeps, of a type of the application."""

    number: int


def checkpoint(number: int, previous: str | None = None, **more: Any) -> WorkflowCheckpoint:
    values: dict[str, Any] = {
        "workflow_name": "orders",
        "graph_signature_hash": "g",
        "checkpoint_id": f"cp{number}",
        "previous_checkpoint_id": previous,
        "iteration_count": number,
        "messages": {"a": []},
        "state": {
            "n": number,
            "none": None,
            "empty": {},
            "list": [],
            "_executor_state": {"e": {"seen": ["x"] * number}},
        },
        "metadata": {"why": "test"},
    }
    return WorkflowCheckpoint(**{**values, **more})


def test_a_checkpoint_comes_back_as_it_was(db: sl.Strandline) -> None:
    async def go() -> None:
        storage = StrandlineCheckpointStorage(db.tenant("acme"), "run", allowed_checkpoint_types=[f"{__name__}:Order"])
        first = checkpoint(1, state={"order": Order(7), "at": datetime(2026, 1, 1, tzinfo=UTC)})
        second = checkpoint(2, "cp1")
        assert await storage.get_latest(workflow_name="orders") is None
        assert [await storage.save(first), await storage.save(second), await storage.save(second)] == [
            "cp1",
            "cp2",
            "cp2",
        ]
        assert await storage.load("cp1") == first
        assert await storage.load("cp2") == second
        assert await storage.get_latest(workflow_name="orders") == second
        assert await storage.list_checkpoints(workflow_name="orders") == [first, second]
        assert await storage.list_checkpoint_ids(workflow_name="orders") == ["cp1", "cp2"]
        assert await storage.list_checkpoint_ids(workflow_name="other") == []
        with pytest.raises(WorkflowCheckpointException, match="No checkpoint found"):
            await storage.load("cp9")
        other = StrandlineCheckpointStorage(db.tenant("globex"), "run")
        assert await other.get_latest(workflow_name="orders") is None

    asyncio.run(go())
    assert db.verify().problems == ()


def test_the_newest_is_the_one_that_was_saved_last_whatever_the_clock_says(db: sl.Strandline, tmp_path: Path) -> None:
    async def latest(storage: Any) -> str:
        now = datetime.now(UTC)
        await storage.save(checkpoint(1, timestamp=now.isoformat()))
        await storage.save(checkpoint(2, "cp1", timestamp=(now - timedelta(seconds=60)).isoformat()))
        found = await storage.get_latest(workflow_name="orders")
        return str(found.checkpoint_id)

    assert asyncio.run(latest(FileCheckpointStorage(tmp_path / "stock"))) == "cp1"
    assert asyncio.run(latest(StrandlineCheckpointStorage(db.tenant("acme"), "run"))) == "cp2"


def test_a_torn_newest_is_an_error_and_never_an_older_one(tmp_path: Path) -> None:
    async def stock() -> str:
        storage = FileCheckpointStorage(tmp_path / "stock")
        await storage.save(checkpoint(1))
        await storage.save(checkpoint(2, "cp1"))
        torn = tmp_path / "stock" / "cp2.json"
        torn.write_bytes(torn.read_bytes()[:-20])
        found = await storage.get_latest(workflow_name="orders")
        return "" if found is None else found.checkpoint_id

    async def ours() -> None:
        with sl.open(tmp_path / "s.db") as db:
            storage = StrandlineCheckpointStorage(db.tenant("acme"), "run")
            await storage.save(checkpoint(1))
            await storage.save(checkpoint(2, "cp1", state={"words": "".join(chr(97 + n * n % 26) for n in range(900))}))
        with sqlite3.connect(tmp_path / "s.db") as raw:
            for (name,) in raw.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
                raw.execute(f"DROP TRIGGER {name}")
            raw.execute(
                "UPDATE state_node SET body = zeroblob(length(body)) "
                "WHERE length(body) = (SELECT max(length(body)) FROM state_node)"
            )
        raw.close()
        with sl.open(tmp_path / "s.db") as db:
            storage = StrandlineCheckpointStorage(db.tenant("acme"), "run")
            with pytest.raises(sl.CorruptRecordError):
                await storage.get_latest(workflow_name="orders")
            assert (await storage.load("cp1")).checkpoint_id == "cp1"

    assert asyncio.run(stock()) == "cp1"
    asyncio.run(ours())


def test_ids_are_never_overwritten_nor_deleted_ones_revived(db: sl.Strandline) -> None:
    async def go() -> None:
        storage = StrandlineCheckpointStorage(db.tenant("acme"), "run")
        await storage.save(checkpoint(1))
        await storage.save(checkpoint(2, "cp1"))
        with pytest.raises(sl.StateConflictError):
            await storage.save(checkpoint(1, state={"other": True}))
        with pytest.raises(sl.StateConflictError):
            await storage.save(checkpoint(3, "unknown"))
        assert await storage.delete("cp2") is True
        assert await storage.delete("cp2") is False
        with pytest.raises(sl.StateConflictError):
            await storage.save(checkpoint(2, "cp1"))
        assert await storage.list_checkpoint_ids(workflow_name="orders") == ["cp1"]
        with pytest.raises(WorkflowCheckpointException):
            await storage.save(checkpoint(4, state={"order": Order(1)}))  # of a type that is not allowed

    asyncio.run(go())
    assert db.verify().problems == ()


class Counting(Executor):
    """Counts down, a superstep for each number, and keeps what it saw."""

    seen: list[int]

    def __init__(self, id: str, seen: list[int]) -> None:
        super().__init__(id)
        self.seen = seen

    @handler
    async def count(self, number: int, ctx: WorkflowContext[int, int]) -> None:
        self.seen.append(number)
        if number == 0:
            await ctx.yield_output(len(self.seen))
        else:
            await ctx.send_message(number - 1)

    async def on_checkpoint_save(self) -> dict[str, Any]:
        return {"seen": self.seen}

    async def on_checkpoint_restore(self, state: dict[str, Any]) -> None:
        self.seen[:] = state["seen"]


def test_a_workflow_is_resumed_from_the_newest_checkpoint(db: sl.Strandline) -> None:
    def build(storage: Any) -> tuple[Any, list[int]]:
        seen: list[int] = []
        one, two = Counting("one", seen), Counting("two", [])
        made = WorkflowBuilder(name="orders", start_executor=one, checkpoint_storage=storage)
        return made.add_edge(one, two).add_edge(two, one).build(), seen

    async def go() -> None:
        storage = StrandlineCheckpointStorage(db.tenant("acme"), "run")
        workflow, seen = build(storage)
        await workflow.run(6)
        ids = await storage.list_checkpoint_ids(workflow_name="orders")
        assert len(ids) >= 6
        middle = ids[3]
        again, resumed = build(StrandlineCheckpointStorage(db.tenant("acme"), "run"))
        result = await again.run(checkpoint_id=middle)
        assert result.get_outputs() == [4] or result.get_outputs()
        assert resumed == seen
        newest = await storage.get_latest(workflow_name="orders")
        assert newest is not None
        assert newest.checkpoint_id not in ids

    asyncio.run(go())
    assert db.verify().problems == ()


def test_each_part_is_kept_once(tmp_path: Path) -> None:
    async def go() -> None:
        with sl.open(tmp_path / "s.db") as db:
            storage = StrandlineCheckpointStorage(db.tenant("acme"), "run")
            words: list[str] = []
            before = None
            for n in range(100):
                words.append(f"{n} " + "".join(chr(97 + (n * k * k + k) % 26) for k in range(1_000)))
                state = {"_executor_state": {"e": {"conversation": list(words)}}}
                point = checkpoint(n, before, state=state)
                before = await storage.save(point)
            assert await storage.get_latest(workflow_name="orders") == replace(point)

    asyncio.run(go())
    assert (tmp_path / "s.db").stat().st_size < 100 * 1_000 * 8  # whole states would take 50 times the payload
