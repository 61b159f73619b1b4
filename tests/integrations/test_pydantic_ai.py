"""Law (C37): under Pydantic AI each message is in the log once, the model reads summary and tail within the budget, the
run's own history stays whole, and no tool runs again that the log says ran.

Checked against the real framework with functions as models.
"""

import asyncio
from datetime import UTC, datetime

import pytest

import strandline
from strandline.integrations.agent_memory import AgentMemory

pydantic_ai = pytest.importorskip("pydantic_ai")

from pydantic_ai import Agent, ModelRetry, ToolReturn  # noqa: E402
from pydantic_ai.messages import (  # noqa: E402
    BinaryContent,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel  # noqa: E402
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults  # noqa: E402

from strandline.integrations.pydantic_ai import EffectToolset, StrandlineMemory  # noqa: E402


@pytest.fixture
def wf(tmp_path):
    with strandline.open(tmp_path / "agent.db") as db:
        wf = db.tenant("acme").workflow("support-17")
        yield wf
        if wf.basis().revision:
            assert wf.verify().problems == ()


def scripted(*turns: object) -> tuple[FunctionModel, list[list]]:
    """Return a model that says these parts, and what it was shown."""
    left, shown = list(turns), []

    def answer(messages: list, info: AgentInfo) -> ModelResponse:
        shown.append(list(messages))
        parts = left.pop(0)
        if isinstance(parts, Exception):
            raise parts
        return ModelResponse(parts=parts if isinstance(parts, list) else [TextPart(parts)])

    return FunctionModel(answer), shown


def run(agent: Agent, *args: object, **options: object):
    return asyncio.run(agent.run(*args, **options))


def texts(messages: list) -> list[str]:
    return [str(getattr(part, "content", getattr(part, "tool_name", ""))) for m in messages for part in m.parts]


def live(wf) -> list[strandline.SourceEvent]:
    return [event for event in wf.events() if not event.abandoned]


def make(wf, model, **options):
    return Agent(model, capabilities=[StrandlineMemory(AgentMemory(wf, budget=4_000), **options)])


def test_each_message_is_recorded_once(wf):
    model, shown = scripted("Hello Ada.", "You are Ada.", "Bye.")
    agent = make(wf, model)
    first = run(agent, "I am Ada.")
    second = run(agent, "Who am I?", message_history=first.all_messages())
    stored = ModelMessagesTypeAdapter.validate_json(second.all_messages_json())  # as an application keeps it
    run(agent, "Who am I?", message_history=stored)
    assert [event.text for event in live(wf)] == [
        "I am Ada.", "Hello Ada.", "Who am I?", "You are Ada.", "Who am I?", "Bye.",
    ]  # fmt: skip
    assert texts(shown[2]) == ["I am Ada.", "Hello Ada.", "Who am I?", "You are Ada.", "Who am I?"]


def test_the_log_remembers_where_the_application_does_not(wf):
    """Without a history of its own the agent goes on from the log, with the messages as they were."""
    model, shown = scripted([ThinkingPart("Hm.", signature="sig"), TextPart("Hello Ada.")], "You are Ada.")
    agent = make(wf, model)
    first = run(agent, "I am Ada.")
    run(agent, "Who am I?")
    assert shown[1][:2] == first.all_messages()
    assert shown[1][1].parts[0].signature == "sig"


def test_a_trimmed_history_is_not_recorded_again(wf):
    model, _ = scripted("1", "2", "3")
    agent = make(wf, model)
    history = run(agent, "a").all_messages()
    history = run(agent, "b", message_history=history).all_messages()
    run(agent, "c", message_history=history[-1:])
    assert [event.text for event in live(wf)] == ["a", "1", "b", "2", "c", "3"]


def test_the_model_reads_summary_and_tail_and_the_history_stays_whole(wf):
    model, shown = scripted(*(f"Step {n} is done: /srv/{n}.txt is checked." for n in range(40)))
    memory = AgentMemory(wf, budget=700, compact_to=350)
    agent = Agent(model, capabilities=[StrandlineMemory(memory)], system_prompt="Be brief.")
    history = []
    for n in range(40):
        history = run(agent, f"Do step {n}, please.", message_history=history).all_messages()
        assert memory.context().tokens <= 700
    assert len(history) == 80
    last = shown[-1]
    assert len(last) < 40
    assert [type(part) for part in last[0].parts[:2]] == [SystemPromptPart, UserPromptPart]
    assert "Summary of events 1 to" in last[0].parts[1].content
    assert last[1:] == history[80 - len(last) : 79]  # the framework makes one request of two
    assert wf.basis().generation > 0
    assert [event.text for event in live(wf)] == texts(history)[1:]  # the system prompt stays outside


@pytest.mark.parametrize("broken", [TimeoutError("gone"), RuntimeError("no key"), "  ", "OK"])
def test_a_summary_that_cannot_be_made_ends_no_run(wf, broken):
    def summarize(request):
        if isinstance(broken, Exception):
            raise broken
        return broken

    wf.append([strandline.note(f"Step {n}: /srv/{n}.txt") for n in range(90)])
    memory = AgentMemory(wf, budget=600, compact_to=200, summarizer=summarize, told=lambda *_: None)
    model, shown = scripted("Done.")
    assert run(Agent(model, capabilities=[StrandlineMemory(memory)]), "Go on.").output == "Done."
    assert texts(shown[0])[-1] == "Go on."


def test_what_a_program_stated_is_shown(wf):
    wf.append([strandline.constraint("db", "Stay off production."), strandline.decision("Use eu.")])
    model, shown = scripted("Ok.")
    run(make(wf, model), "Go on.")
    assert texts(shown[0]) == ["[constraint db] Stay off production.", "[decision] Use eu.", "Go on."]


def test_a_need_that_cannot_be_met_stops_the_request(wf):
    """C18, I16: the model is not called without what its next turn rests on."""
    model, shown = scripted("Ok.")
    with pytest.raises(strandline.SummaryReconciliationError):
        run(make(wf, model, needs=lambda ctx: ["bucket-7f3a"]), "Go on.")
    assert shown == []


# ---------------------------------------------------------------------------------------------- tools


def with_tool(wf, *turns, **options):
    model, shown = scripted(*turns)
    agent, runs = make(wf, model, **options), []

    @agent.tool_plain
    def create_bucket(name: str) -> str:
        runs.append(name)
        if isinstance(options_error := errors.get(name), Exception):
            raise options_error
        return f"bucket-{name}"

    errors: dict[str, Exception] = {}
    return agent, runs, shown, errors


def call(name: str, call_id: str = "call_1", tool: str = "create_bucket") -> ToolCallPart:
    return ToolCallPart(tool, {"name": name}, tool_call_id=call_id)


def test_a_tool_is_an_effect_and_stands_in_the_log_once(wf):
    agent, runs, shown, _ = with_tool(wf, [TextPart("I make it."), call("7f3a")], "Made.", "bucket-7f3a")
    first = run(agent, "Make one.")
    kinds = [event.kind.value for event in live(wf)]
    assert kinds == ["message", "tool_call", "tool_result", "message", "thinking", "message"]
    assert sum("bucket-7f3a" in event.text for event in live(wf)) == 1
    assert shown[1] == first.all_messages()[:3]
    run(agent, "Which?")
    assert shown[2][:4] == first.all_messages()
    assert (runs, [effect.key for effect in wf.effects()]) == (["7f3a"], ["call_1"])


def test_several_calls_of_one_response(wf):
    agent, runs, shown, _ = with_tool(wf, [call("a", "c1"), call("b", "c2")], "Made.")
    result = run(agent, "Make two.")
    assert shown[1] == result.all_messages()[:3]
    assert sorted(runs) == ["a", "b"]


@pytest.mark.parametrize("reads", ["create_bucket", {"create_bucket"}, ["look", "create_bucket"]])
def test_a_tool_that_only_reads_runs_each_time(wf, reads):
    agent, runs, _, _ = with_tool(wf, [call("a")], "1", [call("a")], "2", reads=reads)
    run(agent, "Look.")
    run(agent, "Look again.")
    assert (runs, wf.effects()) == (["a", "a"], [])
    turn = ["message", "thinking", "tool_call", "tool_result", "message"]
    assert [event.kind.value for event in live(wf)] == turn * 2


def test_a_call_that_comes_again_is_not_run_again(wf):
    agent, runs, _, _ = with_tool(wf, [call("a")], "1", [call("a")], "2")
    run(agent, "Make.")
    again = run(agent, "Make.")
    assert runs == ["a"]
    assert [p.content for m in again.all_messages() for p in m.parts if isinstance(p, ToolReturnPart)] == ["bucket-a"]


def test_a_run_that_died_after_its_tool_tells_the_next_one(wf):
    """I18: the history of the run is lost; the log is not, and the model sees call and result."""
    agent, runs, shown, _ = with_tool(wf, [call("7f3a")], RuntimeError("the process died here"), "It is there.")
    with pytest.raises(RuntimeError):
        run(agent, "Make one.")
    run(agent, "Go on.")
    made = [part for message in shown[2] for part in message.parts]
    assert [type(part) for part in made] == [UserPromptPart, ToolCallPart, ToolReturnPart, UserPromptPart]
    assert (made[1].tool_call_id, made[2].content, made[2].tool_name) == ("call_1", "bucket-7f3a", "create_bucket")
    assert runs == ["7f3a"]


def test_an_approved_call_that_is_resumed_again_runs_once(wf):
    model, _ = scripted([call("1.2", tool="publish")], "Out.", "Out.")
    runs = []
    agent = Agent(
        model, output_type=[str, DeferredToolRequests], capabilities=[StrandlineMemory(AgentMemory(wf, budget=4_000))]
    )

    @agent.tool_plain(requires_approval=True)
    def publish(name: str) -> str:
        runs.append(name)
        return f"published {name}"

    asked = run(agent, "Publish 1.2.")
    assert isinstance(asked.output, DeferredToolRequests)
    for _ in range(2):  # the process died before the second history was kept
        done = run(
            agent,
            message_history=asked.all_messages(),
            deferred_tool_results=DeferredToolResults(approvals={"call_1": True}),
        )
        assert done.output == "Out."
    assert runs == ["1.2"]


@pytest.mark.parametrize(
    ("error", "told", "state"),
    [
        (strandline.EffectFailedError("the quota is used up"), "This call did not happen: the quota", "failed"),
        (ModelRetry("no such region"), "no such region", "failed"),
    ],
)
def test_a_tool_that_did_nothing_is_told_to_the_model(wf, error, told, state):
    agent, _, shown, errors = with_tool(wf, [call("a")], "Hm.")
    errors["a"] = error
    run(agent, "Make one.")
    assert told in texts(shown[1])[-1]
    assert [effect.state.value for effect in wf.effects()] == [state]


def test_a_tool_whose_outcome_is_unknown_is_not_run_again(wf):
    agent, runs, shown, errors = with_tool(wf, [call("a")], [call("a")], "Hm.")
    errors["a"] = ConnectionError("reset")
    with pytest.raises(ConnectionError):
        run(agent, "Make one.")
    run(agent, "Make one.")
    assert any("The outcome of this call is not known" in text for text in texts(shown[2]))
    assert (runs, [effect.state.value for effect in wf.effects()]) == (["a"], ["unknown"])


def test_a_probe_tells_what_became_of_it(wf):
    probes = {"create_bucket": lambda args: strandline.EffectDone(f"bucket-{args['name']}")}
    agent, _, shown, errors = with_tool(wf, [call("a")], "Made.", probes=probes)
    errors["a"] = ConnectionError("reset")
    run(agent, "Make one.")
    assert texts(shown[1])[-1] == "bucket-a"


def test_results_that_are_no_text(wf):
    model, _ = scripted([call("x", tool="look")], "1", [call("x", tool="look")], "2")
    agent = make(wf, model)

    @agent.tool_plain
    def look(name: str) -> ToolReturn:
        when = datetime(2026, 1, 1, tzinfo=UTC)
        return ToolReturn({"at": when, "name": name}, content=["seen", BinaryContent(b"\x00", media_type="image/png")])

    first, second = run(agent, "Look."), run(agent, "Look again.")
    contents = [
        part.content
        for r in (first, second)
        for m in r.all_messages()
        for part in m.parts
        if isinstance(part, ToolReturnPart)
    ]
    assert contents[0]["name"] == contents[1]["name"] == "x"
    assert contents[1]["at"] == "2026-01-01T00:00:00Z"


def test_the_toolset_stands_alone(wf):
    """The ledger without the memory."""
    from pydantic_ai.toolsets import FunctionToolset

    runs = []

    def create_bucket(name: str) -> str:
        runs.append(name)
        return f"bucket-{name}"

    model, _ = scripted([call("a")], "1", [call("a")], "2")
    agent = Agent(model, toolsets=[EffectToolset(FunctionToolset([create_bucket]), workflow=wf)])
    run(agent, "Make.")
    run(agent, "Make.")
    assert runs == ["a"]


# ---------------------------------------------------------------------------------------------- messages


def test_messages_with_all_kinds_of_parts_come_back(wf):
    history = [
        ModelRequest(
            parts=[
                SystemPromptPart("Be brief."),
                UserPromptPart(["See", BinaryContent(b"\x00\x01", media_type="image/png")]),
            ]
        ),
        ModelResponse(parts=[ThinkingPart("", signature="s"), TextPart(""), call("a", "c1", "look")]),
        ModelRequest(parts=[ToolReturnPart("look", {"n": 1}, tool_call_id="c1")]),
        ModelResponse(parts=[TextPart("Done ä😀.")]),
    ]
    model, shown = scripted("Ok.", "Ok.")
    agent = make(wf, model)
    run(agent, "Go on.", message_history=history)
    assert shown[0][:4] == history
    assert "AAE" not in "".join(event.text for event in live(wf))
    run(agent, "Go on.")
    dump = ModelMessagesTypeAdapter.dump_json  # an image comes back as an image: the framework's own form of it
    assert dump(shown[1][:4]) == dump(history)


def test_a_run_beside_it_does_not_disturb(wf):
    """Two agents of one workflow: each sees what the other said, and its own prompt comes last."""
    model, shown = scripted("1", "2", "3", "4")
    agent = make(wf, model)

    async def both():
        await asyncio.gather(agent.run("a"), agent.run("b"))

    asyncio.run(both())
    run(agent, "c")
    assert sorted(event.text for event in live(wf))[:2] == ["1", "2"]
    assert all(texts(messages)[-1] in "abc" for messages in shown)


def test_a_message_that_a_summary_cuts_is_not_lost(wf):
    """The event that keeps the message is covered, and the run has no history: what the tail holds of it is shown."""
    parts = [UserPromptPart(f"part {n}: " + "words and words " * 40) for n in range(8)]
    model, shown = scripted("1", "2")
    agent = make(wf, model)
    run(agent, "Go on.", message_history=[ModelRequest(parts=parts), ModelResponse(parts=[TextPart("Read.")])])
    wf.compact(budget=1_200, through=4)
    assert [event.text[:7] for event in live(wf)][:8] == [f"part {n}:" for n in range(8)]
    run(agent, "And?")
    said = "\n".join(texts(shown[1]))
    assert all(f"part {n}:" in said for n in range(4, 8))


def test_streams_and_structured_outputs_are_recorded(wf):
    """An output is a call that the framework answers itself: it is no effect."""

    async def stream(messages, info):
        yield "Hel"
        yield "lo."

    agent = Agent(FunctionModel(stream_function=stream), capabilities=[StrandlineMemory(AgentMemory(wf, budget=4_000))])

    async def go():
        async with agent.run_stream("Hi.") as result:
            return [text async for text in result.stream_text(delta=True)]

    assert "".join(asyncio.run(go())) == "Hello."
    assert [event.text for event in live(wf)] == ["Hi.", "Hello."]
    model, _ = scripted([ToolCallPart("final_result", {"response": 7}, "c1")])
    structured = Agent(model, output_type=int, capabilities=[StrandlineMemory(AgentMemory(wf, budget=4_000))])
    assert run(structured, "How many?").output == 7
    assert [event.kind.value for event in live(wf)][3:] == ["thinking", "tool_call", "tool_result"]
    assert wf.effects() == []


def test_a_call_that_does_not_fit_its_tool_is_no_effect(wf):
    agent, runs, _, _ = with_tool(wf, [ToolCallPart("create_bucket", {"nme": 1}, "c1")], [call("a", "c2")], "Made.")
    run(agent, "Make one.")
    assert (runs, [effect.key for effect in wf.effects()]) == (["a"], ["c2"])
    assert [e.is_error for e in live(wf) if e.kind.value == "tool_result"] == [True, False]
