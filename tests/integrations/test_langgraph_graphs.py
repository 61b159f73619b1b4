"""Law (C34, I21): graphs without middleware, agents that call agents, and deepagents keep their memory alike."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, NotRequired

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command

import strandline
from strandline import InvalidInputError
from strandline.integrations.langgraph import StrandlineMiddleware, StrandlineSaver, compaction_node, tool_ledger
from tests.integrations.scripted import ScriptedModel, answers, call, texts

THREAD: Any = {"configurable": {"thread_id": "t"}}


@pytest.fixture
def tenant() -> Iterator[strandline.Tenant]:
    with strandline.open(":memory:") as db:
        yield db.tenant("acme")
        assert db.verify().ok


RUNS: list[str] = []


@pytest.fixture(autouse=True)
def no_runs() -> None:
    RUNS.clear()


@tool
def create_bucket(name: str) -> str:
    """Create a bucket."""
    RUNS.append(name)
    return f"bucket-{name}"


class State(MessagesState):
    llm_input_messages: list[Any]
    strandline_basis: NotRequired[dict[str, Any]]


def plain_graph(
    tenant: strandline.Tenant, model: ScriptedModel, saver: Any = None, asked: Any = None, **options: Any
) -> Any:
    def ask_model(state: State) -> dict[str, Any]:
        return {"messages": [model.invoke(state["llm_input_messages"])]}

    def next_node(state: State) -> str:
        last = state["messages"][-1]
        return "tools" if isinstance(last, AIMessage) and last.tool_calls else END

    ledger = tool_ledger(tenant, **(asked or {}))
    builder = StateGraph(State)
    builder.add_node("memory", compaction_node(tenant, **options))
    builder.add_node("model", ask_model)
    builder.add_node("tools", ToolNode([create_bucket], wrap_tool_call=ledger, awrap_tool_call=ledger.awaited))
    builder.add_edge(START, "memory")
    builder.add_edge("memory", "model")
    builder.add_conditional_edges("model", next_node)
    builder.add_edge("tools", "memory")
    return builder.compile(checkpointer=saver or InMemorySaver())


def say(graph: Any, text: str, config: Any = THREAD) -> Any:
    return graph.invoke({"messages": [HumanMessage(text)]}, config)


def log(tenant: strandline.Tenant, name: str = "t") -> list[str]:
    return [event.text for event in tenant.workflow(name).events()]


def test_a_plain_graph_compacts_and_removes_nothing(tenant: strandline.Tenant) -> None:
    model = ScriptedModel(script=answers("Yes."))
    graph = plain_graph(tenant, model, budget=2_000)
    for number in range(30):
        state = say(graph, f"Question {number}: " + "and some more words " * 20)
    assert len(state["messages"]) == 60
    assert tenant.workflow("t").basis().generation >= 1
    assert "Summary of events" in model.shown[-1][0].text
    assert len(model.shown[-1]) < 40
    assert tenant.workflow("t").lineage()[-1].kind == "compaction"


@pytest.mark.parametrize("awaited", [False, True])
def test_a_tool_of_a_plain_graph_runs_once(tenant: strandline.Tenant, awaited: bool) -> None:
    given: Any = {"messages": [HumanMessage("Go.")]}
    for _ in range(2):
        model = ScriptedModel(script=answers(call("c1", "create_bucket", name="a"), "Done."))
        graph = plain_graph(tenant, model)
        state = asyncio.run(graph.ainvoke(given, THREAD)) if awaited else graph.invoke(given, THREAD)
        assert state["messages"][-2].text == "bucket-a"
    assert RUNS == ["a"]


def test_a_copied_thread_loses_no_result_of_a_tool(tenant: strandline.Tenant) -> None:
    """C34: the ledger that recorded it is that of the other thread; here the state alone holds it."""
    saver = StrandlineSaver(tenant)
    model = ScriptedModel(script=answers(call("c1", "create_bucket", name="a"), "Done.", "Yes.", "Still."))
    graph = plain_graph(tenant, model, saver)
    say(graph, "Go.")
    saver.copy_thread("t", "u")
    other: Any = {"configurable": {"thread_id": "u"}}
    say(graph, "And?", other)
    say(graph, "Still?", other)
    for shown in model.shown[-2:]:
        assert "tool: bucket-a" in texts(shown)
    assert log(tenant, "u").count("bucket-a") == 1
    assert RUNS == ["a"]


ASKED: Any = {"guards": {"create_bucket": [strandline.approved("buckets")]}, "asks": ["create_bucket"]}


def test_a_step_of_several_calls_asks_nobody(tenant: strandline.Tenant) -> None:
    """I20: a step hands its first answer to whoever asks first, so a refusal of one call could let it run."""
    both = AIMessage("", tool_calls=[{"id": f"c{n}", "name": "create_bucket", "args": {"name": "a"}} for n in (1, 2)])
    model = ScriptedModel(script=answers(both, call("c3", "create_bucket", name="b"), "Done."))
    graph = plain_graph(tenant, model, asked=ASKED)
    state = say(graph, "Go.")
    refused = [said.text for said in state["messages"] if isinstance(said, ToolMessage)]
    assert [text.rpartition("; ")[2] for text in refused] == ["call it alone"] * 2
    assert RUNS == []
    assert state["__interrupt__"][0].value["tool_call_id"] == "c3"
    graph.invoke(Command(resume={"type": "approve", "by": "ann"}), THREAD)
    assert RUNS == ["b"]


def test_a_node_that_would_overwrite_the_messages_is_refused(tenant: strandline.Tenant) -> None:
    with pytest.raises(InvalidInputError, match="overwritten"):
        compaction_node(tenant, output_key="messages")


def sub_agent(tenant: strandline.Tenant, script: Any) -> Any:
    """An agent with a memory of its own for each call, and no checkpoints: when it is called again, it begins anew."""
    middleware = StrandlineMiddleware(tenant, agent="researcher", own_workflow=True)
    return create_agent(ScriptedModel(script=script), [create_bucket], middleware=[middleware], checkpointer=False)


def supervisor(tenant: strandline.Tenant, helper: Any, script: Any, saver: Any = None) -> Any:
    @tool
    def research(task: str) -> str:
        """Let the researcher do it."""
        return str(helper.invoke({"messages": [HumanMessage(task)]})["messages"][-1].text)

    return create_agent(
        ScriptedModel(script=script),
        [research],
        middleware=[StrandlineMiddleware(tenant, agent="lead", reads={"research"})],
        checkpointer=saver or InMemorySaver(),
    )


def test_an_agent_that_is_called_has_a_workflow_for_each_call(tenant: strandline.Tenant) -> None:
    helper = sub_agent(tenant, answers("Found."))
    script = answers(call("c1", "research", task="A?"), call("c2", "research", task="B?"), "Done.")
    say(supervisor(tenant, helper, script), "Go.")
    own = [name for name in tenant.workflows() if name.startswith("t/researcher/tools:")]
    assert len(own) == 2
    assert sorted(log(tenant, name)[0] for name in own) == ["A?", "B?"]
    assert log(tenant)[-1] == "Done."
    assert "A?" not in log(tenant)


def test_an_agent_that_is_called_may_read_through_a_view(tenant: strandline.Tenant) -> None:
    """I21: what is for others' eyes never reaches its model."""
    workflow = tenant.workflow("t")
    workflow.append(strandline.note("the salary is 7", audience="legal"))
    workflow.define_view("narrow", audiences={"research"})
    model = ScriptedModel(script=answers("Found."))
    helper = create_agent(model, [], middleware=[StrandlineMiddleware(tenant, agent="researcher", view="narrow")])
    say(supervisor(tenant, helper, answers(call("c1", "research", task="A?"), "Done.")), "Go.")
    assert "A?" in str(model.shown)
    assert "salary" not in str(model.shown)


def test_a_resumed_call_of_an_agent_finds_its_workflow_again(tenant: strandline.Tenant) -> None:
    """The sub-agent's tool ran, and the process died: its call is not made twice, under whatever id."""
    saver = InMemorySaver()

    class Died(BaseException):
        pass

    def dies(messages: list[BaseMessage]) -> AIMessage:
        if any(isinstance(said, ToolMessage) for said in messages):
            raise Died
        return call("c7", "create_bucket", name="a")

    script = answers(call("c1", "research", task="A?"), "Done.")
    with pytest.raises(Died):
        say(supervisor(tenant, sub_agent(tenant, dies), script, saver), "Go.")
    helper = sub_agent(tenant, answers(call("c8", "create_bucket", name="a"), "Found."))
    state = supervisor(tenant, helper, script, saver).invoke(None, THREAD)
    assert RUNS == ["a"]
    assert texts(state["messages"])[-2:] == ["tool: Found.", "ai: Done."]


def test_agents_that_share_a_state_share_a_workflow(tenant: strandline.Tenant) -> None:
    one = ScriptedModel(script=answers("I am one."))
    two = ScriptedModel(script=answers("I am two."))
    builder = StateGraph(MessagesState)
    for name, model in (("one", one), ("two", two)):
        middleware = StrandlineMiddleware(tenant, agent=name)
        builder.add_node(name, create_agent(model, [], middleware=[middleware], name=name))
    builder.add_edge(START, "one")
    builder.add_edge("one", "two")
    graph = builder.compile(checkpointer=InMemorySaver())
    say(graph, "Who?")
    say(graph, "And now?")
    assert log(tenant) == ["Who?", "I am one.", "I am two.", "And now?", "I am one.", "I am two."]
    assert [event.actor for event in tenant.workflow("t").events()] == ["user", "one", "two"] * 2
    assert texts(two.shown[-1])[-2:] == ["human: And now?", "ai: I am one."]
    assert tenant.workflow("t").lineage() == []


def test_a_workflow_of_the_programs_choice(tenant: strandline.Tenant) -> None:
    workflow = tenant.workflow("mine")
    graph = create_agent(
        ScriptedModel(script=answers("Yes.")),
        [],
        middleware=[StrandlineMiddleware(workflow)],
        checkpointer=InMemorySaver(),
    )
    say(graph, "Well?")
    assert log(tenant, "mine") == ["Well?", "Yes."]
    with pytest.raises(InvalidInputError, match="own_workflow"):
        StrandlineMiddleware(workflow, own_workflow=True)


def test_deepagents_takes_it_in_the_place_of_its_own(tenant: strandline.Tenant) -> None:
    from deepagents import create_deep_agent

    script = answers(
        call("c1", "write_file", file_path="/plan.md", content="1. buckets"),
        call("c2", "create_bucket", name="a"),
        call("c3", "task", description="Look at it.", subagent_type="general-purpose"),
        "It is there.",
        "Done.",
    )
    model = ScriptedModel(script=script)
    middleware = StrandlineMiddleware(
        tenant, trigger=("tokens", 20_000), keep=("messages", 6), reads={"task"}, name="SummarizationMiddleware"
    )
    graph = create_deep_agent(model, [create_bucket], middleware=[middleware], checkpointer=InMemorySaver())
    state = say(graph, "Make a bucket.")
    assert RUNS == ["a"]
    assert state["messages"][-1].text == "Done."
    assert state["files"]["/plan.md"]["content"]
    told = log(tenant)
    assert [text.split()[0] for text in told if text.startswith(("write_file", "create_bucket", "task"))] == [
        "write_file",
        "create_bucket",
        "task",
    ]
    effects = {effect.tool: effect.state.value for effect in tenant.workflow("t").effects()}
    assert effects == {"write_file": "done", "create_bucket": "done"}
