"""Law (C36): a session of the OpenAI Agents SDK gives back each item as it was added, deletes nothing, skips nothing
that is damaged, and never runs a tool again that the log says ran.

Checked against the real SDK with a scripted model; the faults of its own sessions stand beside.
"""

import asyncio
import json
import signal
import sqlite3
import subprocess
import sys

import pytest

import strandline
from strandline.integrations.agent_memory import AgentMemory
from strandline.integrations.openai_agents import StrandlineSession, effect_tool

agents = pytest.importorskip("agents")

from agents import Agent, ModelResponse, RunConfig, Runner, SQLiteSession, Usage  # noqa: E402
from agents.memory import Session, is_openai_responses_compaction_aware_session  # noqa: E402
from agents.models.interface import Model  # noqa: E402
from openai.types.responses import (  # noqa: E402
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseReasoningItem,
)

QUIET = RunConfig(tracing_disabled=True)
ITEMS = [
    {"role": "user", "content": "Deploy to /srv/eu."},
    {
        "role": "user",
        "type": "message",
        "content": [
            {"type": "input_text", "text": "And this:"},
            {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "auto"},
            {"type": "input_file", "file_id": "file-7f3a", "filename": "plan.pdf"},
        ],
    },
    {"role": "developer", "content": "Be brief."},
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA" * 50},
    {"type": "reasoning", "id": "rs_2", "summary": [{"type": "summary_text", "text": "Look first."}]},
    {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "call_1",
        "name": "deploy",
        "arguments": '{"to":  "eu", "n": 1.50}',
        "status": "completed",
    },
    {"type": "function_call_output", "call_id": "call_1", "output": "ok, bucket-7f3a"},
    {"type": "function_call", "call_id": "call_2", "name": "deploy", "arguments": "no JSON at all"},
    {
        "type": "function_call_output",
        "call_id": "call_2",
        "output": [{"type": "input_text", "text": "failed"}, {"type": "input_image", "image_url": "data:,A"}],
    },
    {"type": "custom_tool_call", "call_id": "call_3", "name": "patch", "input": "*** Begin"},
    {"type": "custom_tool_call_output", "call_id": "call_3", "output": "Done"},
    {
        "type": "shell_call",
        "call_id": "call_4",
        "action": {"type": "exec", "commands": ["ls"], "timeout_ms": None},
        "status": "completed",
    },
    {
        "type": "shell_call_output",
        "call_id": "call_4",
        "output": [{"stdout": "a\n", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
    },
    {
        "type": "computer_call",
        "id": "cu_1",
        "call_id": "call_5",
        "action": {"type": "screenshot"},
        "status": "completed",
    },
    {
        "type": "computer_call_output",
        "call_id": "call_5",
        "output": {"type": "computer_screenshot", "image_url": "data:image/png;base64,BBBB"},
    },
    {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "buckets"}},
    {"type": "mcp_approval_request", "id": "mcpr_1", "name": "drop", "arguments": "{}", "server_label": "db"},
    {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": False},
    {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "iVBORw0"},
    {"type": "compaction", "id": "cmp_1", "encrypted_content": "gBBBB"},
    {"type": "item_reference", "id": "msg_9"},
    {"type": "of_next_year", "deep": [{"a": [None, True, 10**30, "ä\u2028\u0000 \ud800"]}]},
    {
        "type": "message",
        "role": "assistant",
        "id": "msg_1",
        "status": "completed",
        "content": [{"type": "output_text", "text": "Done.", "annotations": [], "logprobs": []}],
    },
    {"role": "assistant", "content": ""},
]


class Script(Model):
    """A model that says what it was given to say, and keeps what it was shown."""

    def __init__(self, *turns: list[object]) -> None:
        self.turns = list(turns)
        self.shown: list[list[dict[str, object]]] = []

    async def get_response(self, system_instructions, input, *args, **kwargs):
        self.shown.append(json.loads(json.dumps(input)))
        return ModelResponse(output=self.turns.pop(0), usage=Usage(), response_id=f"resp_{len(self.shown)}")

    def stream_response(self, *args, **kwargs):
        raise NotImplementedError


def said(text: str, number: int = 1) -> ResponseOutputMessage:
    part = ResponseOutputText(type="output_text", text=text, annotations=[])
    return ResponseOutputMessage(
        id=f"msg_{number}", type="message", role="assistant", status="completed", content=[part]
    )


def called(call_id: str, tool: str, /, **arguments: object) -> ResponseFunctionToolCall:
    return ResponseFunctionToolCall(
        id=f"fc_{call_id}", type="function_call", call_id=call_id, name=tool, arguments=json.dumps(arguments)
    )


@pytest.fixture
def db(tmp_path):
    with strandline.open(tmp_path / "agent.db") as db:
        yield db


@pytest.fixture
def wf(db):
    wf = db.tenant("acme").workflow("support-17")
    yield wf
    if wf.basis().revision:
        assert wf.verify().problems == ()


def live(wf) -> list[strandline.SourceEvent]:
    return [event for event in wf.events() if not event.abandoned]


# ---------------------------------------------------------------------------------------------- items


def test_it_is_a_session(wf):
    session = StrandlineSession(wf)
    assert isinstance(session, Session)
    assert is_openai_responses_compaction_aware_session(session)
    assert session.session_id == "support-17"


async def verbatim(wf) -> None:
    session = StrandlineSession(wf)
    await session.add_items(ITEMS)
    assert await session.get_items() == ITEMS
    assert [list(item) for item in await session.get_items()] == [list(item) for item in ITEMS]  # also their order


def test_every_type_of_item_comes_back_as_it_was(wf):
    asyncio.run(verbatim(wf))
    kinds = [event.kind.value for event in live(wf)]
    assert kinds[3:7] == ["thinking", "thinking", "tool_call", "tool_result"]
    texts = "\n".join(event.text for event in live(wf))
    for encoded in ("gAAAA", "base64", "iVBORw0", "gBBBB"):
        assert encoded not in texts
    for prose in ("And this:", "plan.pdf", "Look first.", "bucket-7f3a", '"commands": ["ls"]', "buckets", "Done."):
        assert prose in texts
    assert [hit.seq for hit in wf.recall("bucket-7f3a")] == [7]


def test_they_come_back_in_another_process(tmp_path, wf):
    asyncio.run(verbatim(wf))
    with strandline.open(tmp_path / "agent.db") as again:
        session = StrandlineSession(again.tenant("acme").workflow("support-17"))
        assert asyncio.run(session.get_items()) == ITEMS


@pytest.mark.parametrize("limit", [0, 1, 5, len(ITEMS), 500])
def test_a_limit_gives_the_newest(wf, limit):
    session = StrandlineSession(wf)
    asyncio.run(session.add_items(ITEMS))
    newest = ITEMS[-limit:] if limit else []
    assert asyncio.run(session.get_items(limit)) == newest
    settled = StrandlineSession(wf, session_settings=agents.SessionSettings(limit=limit))
    assert asyncio.run(settled.get_items()) == newest


def test_a_limit_reads_no_more_than_it_needs(wf, monkeypatch):
    session = StrandlineSession(wf)
    for _ in range(60):
        asyncio.run(session.add_items(ITEMS[:10]))
    read = []
    events = type(wf).events
    monkeypatch.setattr(type(wf), "events", lambda self, *at: read.append(at) or events(self, *at))
    assert asyncio.run(session.get_items(12)) == [*ITEMS[8:10], *ITEMS[:10]]
    assert len(read) == 1


@pytest.mark.parametrize("limit", [-1, True, "3"])
def test_no_limit_is_refused(wf, limit):
    with pytest.raises(strandline.InvalidInputError, match="a limit is"):
        asyncio.run(StrandlineSession(wf).get_items(limit))


@pytest.mark.parametrize(
    "item", ["text", {"role": "user", "content": float("nan")}, {"role": "user", "content": {1, 2}}]
)
def test_what_is_no_item_is_refused_and_nothing_is_written(wf, item):
    with pytest.raises(strandline.InvalidInputError, match="nothing was written"):
        asyncio.run(StrandlineSession(wf).add_items([ITEMS[0], item]))
    assert wf.basis().revision == 0


def test_an_output_without_its_call_is_kept(wf):
    """I8: no call is made up for it, and the item is what it was."""
    session = StrandlineSession(wf)
    orphan = {"type": "function_call_output", "call_id": "call_9", "output": "late"}
    asyncio.run(session.add_items([ITEMS[0], orphan, ITEMS[5], ITEMS[6]]))
    assert asyncio.run(session.get_items()) == [ITEMS[0], orphan, ITEMS[5], ITEMS[6]]
    assert [event.kind.value for event in live(wf)] == ["message", "message", "tool_call", "tool_result"]


def test_a_torn_record_is_an_error(tmp_path):
    """I4. Fault of the SDK: its own session skips the row, here a constraint, and says nothing."""
    rule = {"role": "user", "content": "Never publish without approval."}
    theirs = SQLiteSession("s", tmp_path / "theirs.db")
    asyncio.run(theirs.add_items([ITEMS[0], rule, ITEMS[2]]))
    with sqlite3.connect(tmp_path / "theirs.db") as raw:
        raw.execute("UPDATE agent_messages SET message_data = substr(message_data, 1, 20) WHERE id = 2")
    assert asyncio.run(theirs.get_items()) == [ITEMS[0], ITEMS[2]]
    theirs.close()

    with strandline.open(tmp_path / "ours.db") as db:
        session = StrandlineSession(db.tenant("acme").workflow("s"))
        asyncio.run(session.add_items([ITEMS[0], rule, ITEMS[2]]))
        with sqlite3.connect(tmp_path / "ours.db") as raw:
            triggers = "SELECT name FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = 'event'"
            for (name,) in raw.execute(triggers).fetchall():
                raw.execute(f"DROP TRIGGER {name}")
            raw.execute("UPDATE event SET body = substr(body, 1, 20) WHERE seq = 2")
        with pytest.raises(strandline.CorruptRecordError, match="event 2"):
            asyncio.run(session.get_items())


# ---------------------------------------------------------------------------------------------- taking back


def test_pop_takes_the_newest_back_and_the_log_keeps_it(wf):
    session = StrandlineSession(wf)
    asyncio.run(session.add_items(ITEMS[:3]))
    assert asyncio.run(session.pop_item()) == ITEMS[2]
    assert asyncio.run(session.pop_item()) == ITEMS[1]
    asyncio.run(session.add_items([ITEMS[4]]))
    assert asyncio.run(session.get_items()) == [ITEMS[0], ITEMS[4]]
    assert [event.abandoned for event in wf.events()] == [False, True, True, False]
    assert [asyncio.run(session.pop_item()) for _ in range(3)] == [ITEMS[4], ITEMS[0], None]
    assert len(wf.events()) == 4


def test_clear_begins_anew_and_facts_go_on(wf):
    session = StrandlineSession(wf)
    wf.append(strandline.constraint("db", "Stay off production."))
    asyncio.run(session.add_items(ITEMS[:3]))
    wf.append([strandline.issue("scope", "Too wide."), strandline.issue("old", "x"), strandline.resolve("old")])
    wf.append(strandline.approval("publish", "Yes.", granter="ada"))
    asyncio.run(session.clear_session())
    asyncio.run(session.clear_session())
    assert asyncio.run(session.get_items()) == [
        {"role": "user", "content": "[constraint db] Stay off production."},
        {"role": "user", "content": "[issue scope] Too wide."},
    ]
    with pytest.raises(strandline.ActionDeniedError):
        wf.guard("publish", [strandline.approved("publish")])
    asyncio.run(session.add_items(ITEMS[:1]))
    assert asyncio.run(session.get_items(1)) == ITEMS[:1]


def test_what_comes_while_an_item_is_taken_back_is_not_lost(wf, monkeypatch):
    """I3: the rewind is refused, and the newest item by then is another one."""
    session = StrandlineSession(wf)
    asyncio.run(session.add_items(ITEMS[:2]))
    rewind, came = type(wf).rewind, []

    def late(self, *args, **kwargs):
        if not came:
            came.append(self.append(strandline.message("user", "Wait!")))
        return rewind(self, *args, **kwargs)

    monkeypatch.setattr(type(wf), "rewind", late)
    assert asyncio.run(session.pop_item()) == {"role": "user", "content": "Wait!"}
    assert asyncio.run(session.get_items()) == ITEMS[:2]


def test_one_who_is_always_late_is_told(wf, monkeypatch):
    session = StrandlineSession(wf)
    asyncio.run(session.add_items(ITEMS[:1]))
    rewind = type(wf).rewind

    def late(self, *args, **kwargs):
        self.append(strandline.note("again"))
        return rewind(self, *args, **kwargs)

    monkeypatch.setattr(type(wf), "rewind", late)
    with pytest.raises(strandline.StaleRevisionError):
        asyncio.run(session.clear_session())


# ---------------------------------------------------------------------------------------------- compaction


def talk(count: int) -> list[dict[str, object]]:
    return [
        {"role": ("user", "assistant")[n % 2], "content": f"Step {n}: path /srv/{n}.txt is done and checked."}
        for n in range(count)
    ]


def test_the_model_reads_a_summary_and_the_tail(wf):
    memory = AgentMemory(wf, budget=1_200, compact_to=600)
    session = StrandlineSession(memory)
    items = talk(200)
    for first in range(0, 200, 20):
        asyncio.run(session.add_items(items[first : first + 20]))
        shown = asyncio.run(session.get_items())
        assert memory.context().tokens <= 1_200
    assert shown[0]["role"] == "user"
    assert "Summary of events 1 to" in shown[0]["content"]
    assert shown[1:] == items[200 - len(shown) + 1 :]
    assert asyncio.run(session.history()) == items
    assert asyncio.run(session.get_items(150)) == items[50:]
    assert wf.basis().generation >= 1


def test_run_compaction_compacts_when_due_and_when_forced(wf):
    session = StrandlineSession(AgentMemory(wf, budget=8_000, compact_to=200))
    asyncio.run(session.add_items(talk(60)))
    asyncio.run(session.run_compaction({"response_id": "resp_1"}))
    assert wf.basis().generation == 0
    asyncio.run(session.run_compaction({"force": True}))
    assert wf.basis().generation == 1
    assert asyncio.run(session.history()) == talk(60)
    asyncio.run(StrandlineSession(wf).run_compaction({"force": True}))
    assert wf.basis().generation == 1


@pytest.mark.parametrize("broken", [TimeoutError("gone"), RuntimeError("no key"), "   ", "OK"])
def test_a_summary_that_cannot_be_made_ends_no_turn(wf, broken):
    def summarize(request):
        if isinstance(broken, Exception):
            raise broken
        return broken

    told = []
    memory = AgentMemory(wf, budget=500, compact_to=200, summarizer=summarize, told=lambda *what: told.append(what))
    session = StrandlineSession(memory)
    asyncio.run(session.add_items(talk(80)))
    shown = asyncio.run(session.get_items())
    assert shown[-1] == talk(80)[-1]
    assert asyncio.run(session.history()) == talk(80)


def test_items_that_come_while_it_is_compacted_are_kept(wf):
    """Fault of the SDK (openai-agents-python#4679): items added while `responses.compact` runs were dropped."""
    session = StrandlineSession(wf)
    late = [{"role": "user", "content": f"late {n}"} for n in range(5)]

    def summarize(request):
        asyncio.run(session.add_items(late))
        return "The steps are done."

    compacting = StrandlineSession(AgentMemory(wf, budget=4_000, compact_to=300, summarizer=summarize))
    asyncio.run(compacting.add_items(talk(60)))
    asyncio.run(compacting.run_compaction({"force": True}))
    assert wf.basis().generation == 1
    assert asyncio.run(compacting.get_items())[-5:] == late
    assert asyncio.run(compacting.history()) == [*talk(60), *late]


def test_a_clear_while_it_is_compacted_wins(wf):
    session = StrandlineSession(wf)

    def summarize(request):
        asyncio.run(session.clear_session())
        return "The steps are done."

    compacting = StrandlineSession(AgentMemory(wf, budget=4_000, compact_to=300, summarizer=summarize))
    asyncio.run(compacting.add_items(talk(60)))
    asyncio.run(compacting.run_compaction({"force": True}))
    assert asyncio.run(compacting.get_items()) == []


def test_an_output_whose_call_is_summarized_is_shown_as_text(wf):
    session = StrandlineSession(AgentMemory(wf, budget=4_000, compact_to=300))
    asyncio.run(session.add_items([*talk(40), ITEMS[5], ITEMS[6], *talk(30)]))
    asyncio.run(session.run_compaction({"force": True}))
    asyncio.run(session.add_items([ITEMS[6]]))  # once more, when the call is covered
    last = asyncio.run(session.get_items())[-1]
    assert last == {"role": "user", "content": "[result of the earlier call call_1] ok, bucket-7f3a"}
    assert asyncio.run(session.get_items(1)) == [ITEMS[6]]


# ---------------------------------------------------------------------------------------------- the runner, effects


def make_agent(model: Model, *tools: object) -> Agent:
    return Agent(name="ops", instructions="Be brief.", model=model, tools=list(tools))


def run(agent: Agent, text: object, session: StrandlineSession):
    return asyncio.run(Runner.run(agent, text, session=session, run_config=QUIET))


def test_a_conversation_over_two_runs(wf):
    model = Script([said("Hello Ada.")], [said("You are Ada.", 2)])
    run(make_agent(model), "I am Ada.", StrandlineSession(wf))
    result = run(make_agent(model), "Who am I?", StrandlineSession(wf))
    assert result.final_output == "You are Ada."
    assert [item.get("role") for item in model.shown[1]] == ["user", "assistant", "user"]


def test_a_tool_is_an_effect_and_stands_in_the_session_once(wf):
    runs = []

    @effect_tool(wf)
    def create_bucket(name: str) -> str:
        """Create a bucket."""
        runs.append(name)
        return f"bucket-{name}"

    thought = ResponseReasoningItem(id="rs_1", type="reasoning", summary=[], encrypted_content="gAAA")
    model = Script([thought, called("call_1", "create_bucket", name="7f3a")], [said("Made.")], [said("bucket-7f3a", 2)])
    session = StrandlineSession(wf)
    agent = make_agent(model, create_bucket)
    assert run(agent, "Make one.", session).final_output == "Made."
    items = asyncio.run(session.get_items())
    assert [item.get("type", item.get("role")) for item in items] == [
        "user", "reasoning", "function_call", "function_call_output", "message",
    ]  # fmt: skip
    assert items[2]["id"] == "fc_call_1"
    assert items[3] == {"type": "function_call_output", "call_id": "call_1", "output": "bucket-7f3a"}
    assert [effect.key for effect in wf.effects()] == ["call_1"]
    assert sum("bucket-7f3a" in event.text for event in live(wf)) == 1
    run(agent, "Which?", session)
    assert model.shown[2][:5] == items
    memory = StrandlineSession(AgentMemory(wf, budget=4_000))
    assert asyncio.run(memory.get_items()) == asyncio.run(session.get_items())
    assert runs == ["7f3a"]


def test_a_run_that_is_resumed_again_does_not_run_the_tool_again(wf):
    """I18: the state was saved at the approval, the process died after the tool ran; the SDK would run it twice."""
    runs = []

    @effect_tool(wf, needs_approval=True)
    async def publish(version: str) -> str:
        """Publish."""
        runs.append(version)
        return f"published {version}"

    agent = make_agent(Script([called("call_1", "publish", version="1.2")], [said("Out.")], [said("Out.")]), publish)
    session = StrandlineSession(wf)
    result = run(agent, "Publish 1.2.", session)
    saved = result.to_state().to_json()
    for _ in range(2):

        async def resume():
            state = await agents.RunState.from_json(agent, saved)
            state.approve(state.get_interruptions()[0])
            return await Runner.run(agent, state, session=StrandlineSession(wf), run_config=QUIET)

        assert asyncio.run(resume()).final_output == "Out."
    assert runs == ["1.2"]


def test_a_tool_that_ran_before_a_crash_stands_in_the_session(wf):
    """The run died before the SDK saved the turn: the next one sees call and result."""

    @effect_tool(wf)
    def create_bucket(name: str) -> str:
        """Create a bucket."""
        return f"bucket-{name}"

    class Dies(Script):
        async def get_response(self, *args, **kwargs):
            if self.shown:
                raise KeyboardInterrupt
            return await super().get_response(*args, **kwargs)

    session = StrandlineSession(wf)
    session_add = session.add_items

    async def add(items):
        if any(item.get("type") == "function_call" for item in items):
            raise ConnectionError("the process died here")
        await session_add(items)

    session.add_items = add  # type: ignore[method-assign]
    with pytest.raises(ConnectionError):
        run(make_agent(Dies([called("call_1", "create_bucket", name="7f3a")]), create_bucket), "Make one.", session)
    model = Script([said("It is there already.")])
    run(make_agent(model, create_bucket), "Go on.", StrandlineSession(wf))
    assert model.shown[0][1:3] == [
        {"type": "function_call", "call_id": "call_1", "name": "create_bucket", "arguments": '{"name": "7f3a"}'},
        {"type": "function_call_output", "call_id": "call_1", "output": "bucket-7f3a"},
    ]


@pytest.mark.parametrize(
    ("error", "told", "state"),
    [
        (strandline.EffectFailedError("the quota is used up"), "did not happen: the quota is used up", "failed"),
        (ConnectionError("reset"), "raised ConnectionError: reset. Whether it happened is not known", "unknown"),
    ],
)
def test_a_tool_that_fails_is_told_to_the_model(wf, error, told, state):
    @effect_tool(wf)
    def create_bucket(name: str) -> str:
        """Create a bucket."""
        raise error

    model = Script([called("call_1", "create_bucket", name="7f3a")], [said("Hm.")])
    session = StrandlineSession(wf)
    run(make_agent(model, create_bucket), "Make one.", session)
    assert told in model.shown[1][-1]["output"]
    assert [effect.state.value for effect in wf.effects()] == [state]
    assert told in asyncio.run(session.get_items())[2]["output"]


@pytest.mark.parametrize("arguments", ["{", "[1]", '{"nme": 1}'])
def test_arguments_that_do_not_fit_run_nothing(wf, arguments):
    @effect_tool(wf)
    def create_bucket(name: str) -> str:
        """Create a bucket."""
        raise AssertionError("it ran")

    call = called("call_1", "create_bucket")
    model = Script([call.model_copy(update={"arguments": arguments})], [said("Hm.")])
    run(make_agent(model, create_bucket), "Make one.", StrandlineSession(wf))
    assert "This call did not happen" in model.shown[1][-1]["output"]
    assert all(effect.state.value == "failed" for effect in wf.effects())


def test_results_that_are_no_text_come_back_from_the_ledger(wf):
    """A structured result is recorded as JSON, and is the same when it is replayed."""

    @effect_tool(wf)
    def look(at: str) -> list[agents.ToolOutputText]:
        """Look."""
        return [agents.ToolOutputText(text="a")]

    model = Script([called("call_1", "look", at="x")], [said("1")], [called("call_1", "look", at="x")], [said("2")])
    agent = make_agent(model, look)
    run(agent, "Look.", StrandlineSession(wf))
    run(agent, "Look again.", StrandlineSession(wf))
    first = [item["output"] for item in model.shown[1] if item.get("type") == "function_call_output"]
    second = [item["output"] for item in model.shown[3] if item.get("type") == "function_call_output"]
    assert first == [[{"type": "input_text", "text": "a"}]]
    assert second[-1:] == first
    assert wf.effects()[0].state.value == "done"


def test_two_calls_of_one_response_keep_their_order(wf):
    @effect_tool(wf)
    async def create_bucket(name: str) -> str:
        """Create a bucket."""
        await asyncio.sleep(0.05 if name == "a" else 0)
        return f"bucket-{name}"

    calls = [called("c1", "create_bucket", name="a"), called("c2", "create_bucket", name="b")]
    model = Script(calls, [said("Made.")], [said("Yes.", 2)])
    agent = make_agent(model, create_bucket)
    session = StrandlineSession(AgentMemory(wf, budget=4_000))
    run(agent, "Make two.", session)
    run(agent, "Are they there?", session)
    first = [item.get("call_id") for item in model.shown[1]]
    assert first == [None, "c1", "c2", "c1", "c2"]
    assert [item.get("call_id") for item in model.shown[2]][:5] == first


def test_everything_can_be_popped_one_by_one(wf):
    """The tool did run: when its items are taken back, the effect's own stand in their place, and then go too."""

    @effect_tool(wf)
    def create_bucket(name: str) -> str:
        """Create a bucket."""
        return f"bucket-{name}"

    session = StrandlineSession(wf)
    run(make_agent(Script([called("c1", "create_bucket", name="a")], [said("Made.")]), create_bucket), "Make.", session)
    popped = []
    while (item := asyncio.run(session.pop_item())) is not None:
        popped.append(item.get("type", item.get("role")))
    pair = ["function_call_output", "function_call"]
    assert popped == ["message", *pair, *pair, "user"]
    assert [effect.state.value for effect in wf.effects()] == ["done"]


def test_an_erasure_takes_an_item_with_what_it_says(wf):
    """C31: by what it holds, also where an effect's own event says it and the item only marks its place."""

    @effect_tool(wf)
    def who(at: str) -> str:
        """Tell who lives there."""
        return "Ada Lovelace, Ockham Park"

    session = StrandlineSession(wf)
    run(make_agent(Script([called("c1", "who", at="x")], [said("Ada Lovelace.")]), who), "Who?", session)
    wf.erase(refs=["Lovelace"], by="ada", why="asked for")
    assert "Lovelace" not in json.dumps(asyncio.run(session.history()))
    assert "Lovelace" not in "".join(event.text + (event.origin or "") for event in wf.events())


def test_a_view_reads_its_own_items(db):
    wf = db.tenant("acme").workflow("team")
    wf.append(strandline.note("The team begins."))
    for name in ("writer", "tester"):
        wf.define_view(name, audiences={name})
        session = StrandlineSession(wf.view(name), audience=name)
        asyncio.run(session.add_items([{"role": "user", "content": f"for {name}"}]))
    session = StrandlineSession(wf.view("writer"), audience="writer")
    assert [item["content"] for item in asyncio.run(session.get_items())] == ["[note] The team begins.", "for writer"]
    for take_back in (session.pop_item, session.clear_session):
        with pytest.raises(strandline.InvalidInputError, match="what others said"):
            asyncio.run(take_back())
    assert [event.abandoned for event in wf.events()] == [False] * 3


def test_a_streamed_run_is_kept_as_another(wf):
    @effect_tool(wf)
    def create_bucket(name: str) -> str:
        """Create a bucket."""
        return f"bucket-{name}"

    class Streams(Script):
        async def stream_response(self, system_instructions, input, *args, **kwargs):
            response = await self.get_response(system_instructions, input)
            done = Response(
                id=response.response_id, created_at=0, model="m", object="response", output=response.output,
                tool_choice="none", tools=[], parallel_tool_calls=False,
            )  # fmt: skip
            yield ResponseCompletedEvent(type="response.completed", response=done, sequence_number=0)

    model = Streams([called("c1", "create_bucket", name="a")], [said("Made.")])
    session = StrandlineSession(AgentMemory(wf, budget=4_000))

    async def go():
        result = Runner.run_streamed(make_agent(model, create_bucket), "Make.", session=session, run_config=QUIET)
        async for _ in result.stream_events():
            pass
        return result.final_output

    assert asyncio.run(go()) == "Made."
    kinds = [item.get("type", item.get("role")) for item in asyncio.run(session.history())]
    assert kinds == ["user", "function_call", "function_call_output", "message"]


DIES = """
import asyncio, os, signal, sys, threading, time
import strandline
from strandline.integrations.agent_memory import AgentMemory
from strandline.integrations.openai_agents import StrandlineSession

threading.Timer(float(sys.argv[2]), lambda: os.kill(os.getpid(), signal.SIGKILL)).start()
with strandline.open(sys.argv[1]) as db:
    session = StrandlineSession(AgentMemory(db.tenant("acme").workflow("s"), budget=2_000, compact_to=1_000))
    asyncio.run(session.get_items())
    print("begun", flush=True)
    n = 0
    while True:
        asyncio.run(session.add_items([{"role": "user", "content": f"Step {n}: /srv/{n}.txt is done."}] * 20))
        asyncio.run(session.run_compaction({"force": True}))
        n += 1
"""


@pytest.mark.long
def test_killed_while_it_is_compacted_it_is_never_empty(tmp_path):
    """Fault of the SDK (openai-agents-python#3116): killed between clear and add, the session was empty."""
    path = tmp_path / "agent.db"
    first = [{"role": "user", "content": "The first thing."}]
    with strandline.open(path) as db:
        asyncio.run(StrandlineSession(db.tenant("acme").workflow("s")).add_items(first))
    before, generations = 1, set()
    for number in range(8):
        command = [sys.executable, "-c", DIES, str(path), str(1.5 + number * 0.13)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == -signal.SIGKILL, done.stderr
        with strandline.open(path) as db:
            wf = db.tenant("acme").workflow("s")
            session = StrandlineSession(AgentMemory(wf, budget=2_000, compact_to=1_000))
            history = asyncio.run(session.history())
            assert (history[:1], (len(history) - 1) % 20) == (first, 0)
            assert len(history) >= before
            assert asyncio.run(session.get_items())
            assert wf.verify().problems == ()
            before = len(history)
            generations.add(wf.basis().generation)
    assert len(generations) > 1
