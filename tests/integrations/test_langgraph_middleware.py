"""Law (C34): the model's context comes from the log, nothing is removed, and no failure of a summary ends a turn."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

import strandline
from strandline import EventKind, InvalidInputError, TransientSummarizerError
from strandline.integrations.langgraph import StrandlineMiddleware
from tests.integrations.scripted import ScriptedModel, answers, call, texts

THREAD: Any = {"configurable": {"thread_id": "t"}}


@pytest.fixture(params=["memory", "sqlite"])
def tenant(request: pytest.FixtureRequest, tmp_path: Any) -> Iterator[strandline.Tenant]:
    with strandline.open(":memory:" if request.param == "memory" else tmp_path / "agent.db") as db:
        yield db.tenant("acme")
        assert db.verify().ok


@tool
def look_up(name: str) -> str:
    """Look something up."""
    return f"{name} is order-7731"


def agent(tenant: strandline.Tenant, model: ScriptedModel, **options: Any) -> Any:
    middleware = StrandlineMiddleware(tenant, **options)
    return create_agent(model, [look_up], middleware=[middleware], checkpointer=InMemorySaver())


def say(graph: Any, text: str, config: Any = THREAD) -> dict[str, Any]:
    return graph.invoke({"messages": [HumanMessage(text)]}, config)


def log(tenant: strandline.Tenant, name: str = "t") -> list[tuple[str, str]]:
    return [(event.kind.value, event.text) for event in tenant.workflow(name).events()]


def test_what_is_no_summarizer_is_told_before_the_first_run(tenant: strandline.Tenant) -> None:
    with pytest.raises(InvalidInputError, match="not 'openai:gpt-5-mini'"):
        StrandlineMiddleware(tenant, summarizer="openai:gpt-5-mini")


def test_what_was_erased_is_not_shown_though_the_state_still_says_it(tenant: strandline.Tenant) -> None:
    """C31: another saver's state is out of reach of the erasure; what the model is shown is not."""
    model = ScriptedModel(script=answers(call("c1", "look_up", name="Ada Quill"), "Hello Ada Quill.", "Bye."))
    graph = agent(tenant, model)
    say(graph, "I am Ada Quill.")
    tenant.workflow("t").erase(person="Ada Quill", by="dpo", why="request 14")
    said = say(graph, "Who am I?")["messages"]
    assert "Ada Quill" in texts(said)[0]
    shown = str(model.shown[-1])
    assert "Ada Quill" not in shown
    assert "[erased]" in shown
    assert "Who am I?" in shown


def test_what_is_said_and_done_stands_in_the_log_once(tenant: strandline.Tenant) -> None:
    model = ScriptedModel(script=answers(call("c1", "look_up", "I look.", name="ann"), "It is order-7731.", "Bye."))
    graph = agent(tenant, model)
    say(graph, "Which order has ann?")
    say(graph, "Thanks.")
    assert log(tenant) == [
        ("message", "Which order has ann?"),
        ("message", "I look."),
        ("tool_call", 'look_up {"name": "ann"}'),
        ("tool_result", "ann is order-7731"),
        ("message", "It is order-7731."),
        ("message", "Thanks."),
        ("message", "Bye."),
    ]
    assert [event.actor for event in tenant.workflow("t").events()] == ["user", *["agent"] * 4, "user", "agent"]


def test_the_state_keeps_its_messages_and_the_model_sees_the_same(tenant: strandline.Tenant) -> None:
    model = ScriptedModel(script=answers(call("c1", "look_up", name="ann"), "It is order-7731."))
    graph = agent(tenant, model)
    state = say(graph, "Which order has ann?")
    assert [said.type for said in state["messages"]] == ["human", "ai", "tool", "ai"]
    assert "strandline_basis" not in state
    assert model.shown[-1] == state["messages"][:3]


def long_talk(graph: Any, turns: int = 30) -> dict[str, Any]:
    state: dict[str, Any] = {}
    for number in range(turns):
        state = say(graph, f"Question {number} about job-{number}: " + "and some more words " * 20)
    return state


def test_a_long_conversation_is_compacted_and_loses_nothing(tenant: strandline.Tenant) -> None:
    model = ScriptedModel(script=answers("Yes."))
    state = long_talk(agent(tenant, model, budget=2_000))
    workflow = tenant.workflow("t")
    assert workflow.basis().generation >= 1
    assert len(state["messages"]) == 60
    assert len(log(tenant)) == 60
    shown = model.shown[-1]
    assert len(shown) < 40
    assert shown[0].type == "human"
    assert "Summary of events" in shown[0].text
    assert shown[-1] == state["messages"][-2]
    assert workflow.recall("job-0")[0].text.startswith("Question 0")


def test_trimmed_state_is_what_the_tail_shows(tenant: strandline.Tenant) -> None:
    model = ScriptedModel(script=answers("Yes."))
    state = long_talk(agent(tenant, model, budget=2_000, trim_state=True))
    assert len(state["messages"]) < 40
    assert len(log(tenant)) == 60
    assert model.shown[-1][-1] == state["messages"][-2]


@pytest.mark.parametrize(
    "summarizer",
    [
        lambda request: (_ for _ in ()).throw(TransientSummarizerError("the model is away")),
        lambda request: (_ for _ in ()).throw(RuntimeError("429")),
        lambda request: "",
        lambda request: "Previous conversation was too long to summarize.",
        lambda request: strandline.Draft(text="It was about", finish="length", model="m"),
        lambda request: "Error generating summary: Error code: 429 - rate limit",
    ],
    ids=["outage", "exception", "empty", "placeholder", "length", "error text"],
)
def test_a_summary_that_fails_ends_no_turn(tenant: strandline.Tenant, summarizer: Any) -> None:
    told: list[object] = []
    model = ScriptedModel(script=answers("Yes."))
    graph = agent(
        tenant,
        model,
        trigger=("messages", 10),
        budget=4_000,
        summarizer=summarizer,
        deadline_s=1.0,
        told=lambda what, how: told.append(how),
    )
    middle = long_talk(graph, 6)
    assert len(middle["messages"]) == 12
    assert log(tenant)[-1] == ("message", "Yes.")
    assert told or tenant.workflow("t").basis().generation  # a text that quotes is made in its place
    assert "Previous conversation" not in str(model.shown[-1])
    assert "Error generating" not in str(model.shown[-1])


def test_a_trigger_that_waits_for_more_cuts_nothing_off(tenant: strandline.Tenant) -> None:
    """C7, C19: over the budget a summary speaks for what is left out, whatever the trigger waits for."""
    model = ScriptedModel(script=answers("Yes."))
    long_talk(agent(tenant, model, budget=2_000, trigger=("messages", 1_000)), 30)
    assert tenant.workflow("t").basis().generation > 0
    assert tenant.workflow("t").context(2_000).omitted == ()


def test_the_system_prompt_stays_and_counts_as_none_of_the_log(tenant: strandline.Tenant) -> None:
    model = ScriptedModel(script=answers("Yes."))
    graph = create_agent(
        model,
        [look_up],
        system_prompt="Be short.",
        middleware=[StrandlineMiddleware(tenant)],
        checkpointer=InMemorySaver(),
    )
    say(graph, "Well?")
    assert model.shown[-1][0] == SystemMessage("Be short.")
    assert log(tenant) == [("message", "Well?"), ("message", "Yes.")]


def test_images_thoughts_and_signatures_go_back_to_the_model_as_they_came(tenant: strandline.Tenant) -> None:
    thought = AIMessage(
        [{"type": "thinking", "thinking": "Hm, ann.", "signature": "sig"}, {"type": "text", "text": "I look."}],
        tool_calls=[{"id": "c1", "name": "look_up", "args": {"name": "ann"}}],
    )
    image = {"type": "image", "mime_type": "image/png", "base64": "aGk="}
    model = ScriptedModel(script=answers(thought, "Done."))
    graph = agent(tenant, model)
    state = graph.invoke({"messages": [HumanMessage([{"type": "text", "text": "See:"}, image])]}, THREAD)
    assert model.shown[-1] == state["messages"][:3]
    kinds = [event.kind for event in tenant.workflow("t").events()]
    assert kinds.count(EventKind.THINKING) == 1
    assert tenant.workflow("t").events()[1].payload == image


def test_facts_and_others_words_reach_the_model(tenant: strandline.Tenant) -> None:
    model = ScriptedModel(script=answers("Yes."))
    graph = agent(tenant, model)
    say(graph, "Well?")
    tenant.workflow("t").append(strandline.constraint("target", "Call the staging API only.", actor="lead"))
    say(graph, "And now?")
    assert texts(model.shown[-1]) == [
        "human: Well?",
        "ai: Yes.",
        "human: [constraint target] Call the staging API only.",
        "human: And now?",
    ]


def test_an_edited_message_is_recorded_anew(tenant: strandline.Tenant) -> None:
    model = ScriptedModel(script=answers("Yes."))
    graph = agent(tenant, model)
    asked = say(graph, "Delete all?")["messages"][0]
    graph.update_state(THREAD, {"messages": [HumanMessage("Delete one?", id=asked.id)]})
    say(agent(tenant, model), "x", {"configurable": {"thread_id": "other"}})
    fresh = create_agent(model, [look_up], middleware=[StrandlineMiddleware(tenant)], checkpointer=graph.checkpointer)
    say(fresh, "Well?")
    assert "human: Delete one?" in texts(model.shown[-1])
    assert ("message", "Delete one?") in log(tenant)


def test_what_another_middleware_adds_for_a_call_stays(tenant: strandline.Tenant) -> None:
    from langchain.agents.middleware import wrap_model_call

    @wrap_model_call
    def remind(request: Any, handler: Any) -> Any:
        return handler(request.override(messages=[*request.messages, HumanMessage("Mind the time.")]))

    model = ScriptedModel(script=answers("Yes."))
    graph = create_agent(model, [], middleware=[remind, StrandlineMiddleware(tenant)], checkpointer=InMemorySaver())
    say(graph, "Well?")
    assert texts(model.shown[-1]) == ["human: Well?", "human: Mind the time."]
    assert log(tenant) == [("message", "Well?"), ("message", "Yes.")]


def test_an_async_graph_does_the_same(tenant: strandline.Tenant) -> None:
    model = ScriptedModel(script=answers(call("c1", "look_up", "I look.", name="ann"), "It is order-7731."))
    graph = agent(tenant, model)
    state = asyncio.run(graph.ainvoke({"messages": [HumanMessage("Which order has ann?")]}, THREAD))
    assert [said.type for said in state["messages"]] == ["human", "ai", "tool", "ai"]
    assert [kind for kind, _ in log(tenant)] == ["message", "message", "tool_call", "tool_result", "message"]
    assert model.shown[-1] == state["messages"][:3]


def test_threads_are_workflows_and_tenants_never_meet(tenant: strandline.Tenant) -> None:
    model = ScriptedModel(script=answers("Yes."))
    graph = agent(tenant, model)
    say(graph, "A.", {"configurable": {"thread_id": "a"}})
    say(graph, "B.", {"configurable": {"thread_id": "b"}})
    assert texts(model.shown[-1]) == ["human: B."]
    assert sorted(tenant.workflows()) == ["a", "b"]


def test_a_run_without_a_thread_is_refused(tenant: strandline.Tenant) -> None:
    model = ScriptedModel(script=answers("Yes."))
    graph = create_agent(model, [], middleware=[StrandlineMiddleware(tenant)])
    with pytest.raises(InvalidInputError, match="thread_id"):
        graph.invoke({"messages": [HumanMessage("Well?")]})
    assert tenant.workflows() == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"restore": "maybe"},
        {"refusals": "shout"},
        {"reads": "look_up"},
        {"reads": {"look_up"}, "guards": {"look_up": []}},
        {"trigger": ("lines", 3)},
        {"trigger": {}},
        {"trigger": 7},
        {"trigger": ("fraction", 1.5)},
        {"keep": ("tokens", -1)},
        {"keep": ("tokens", True)},
        {"agent": ""},
    ],
)
def test_arguments_that_can_t_be_are_refused(tenant: strandline.Tenant, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        StrandlineMiddleware(tenant, **wrong)


def test_a_memory_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="Tenant or a Workflow"):
        StrandlineMiddleware("agent.db")  # type: ignore[arg-type]


def test_a_tool_message_without_a_call_is_a_note(tenant: strandline.Tenant) -> None:
    model = ScriptedModel(script=answers("Yes."))
    stray: list[BaseMessage] = [ToolMessage("42", tool_call_id="c9"), HumanMessage("Well?")]
    agent(tenant, model).invoke({"messages": stray}, THREAD)
    assert log(tenant)[0] == ("note", "[result of a call c9 that nobody made] 42")
