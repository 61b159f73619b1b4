"""Law (C34): what graphs do besides: retries, structured answers, fan-out, handoffs, going back over a compaction."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import ModelRetryMiddleware, PIIMiddleware
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command
from pydantic import BaseModel

import strandline
from strandline import InvalidInputError, LineageKind
from strandline.integrations import langgraph
from strandline.integrations.langgraph import StrandlineMiddleware
from strandline.integrations.langgraph.sizes import sizes_of
from tests.integrations.scripted import ScriptedModel, answers, call, texts

THREAD: Any = {"configurable": {"thread_id": "t"}}
API = (Path(__file__).resolve().parents[2] / "docs" / "api.md").read_text(encoding="utf-8")


@pytest.fixture
def tenant(tmp_path: Path) -> Iterator[strandline.Tenant]:
    with strandline.open(tmp_path / "agent.db") as db:
        yield db.tenant("acme")
        assert db.verify().ok


def say(graph: Any, text: str, config: Any = THREAD) -> dict[str, Any]:
    return graph.invoke({"messages": [HumanMessage(text)]}, config)


def log(tenant: strandline.Tenant) -> list[str]:
    return [event.text for event in tenant.workflow("t").events()]


class Dots:
    """A default that is a function: the page has no name for it."""

    def __repr__(self) -> str:
        return "…"


DOTS = Dots()


@pytest.mark.parametrize("name", langgraph.__all__)
def test_the_api_page_has_each_name_with_its_arguments(name: str) -> None:
    signature = inspect.signature(getattr(langgraph, name))
    bare = [
        one.replace(annotation=one.empty, default=DOTS if inspect.isfunction(one.default) else one.default)
        for one in signature.parameters.values()
    ]
    written = name + str(signature.replace(parameters=bare, return_annotation=signature.empty))
    assert f"| `{written}` |" in API, written


def test_an_answer_that_is_tried_again_is_recorded_once(tenant: strandline.Tenant) -> None:
    tries: list[int] = []

    def script(messages: Any) -> AIMessage:
        tries.append(1)
        if len(tries) < 3:
            raise ConnectionError("away")
        return AIMessage("Yes.")

    retry = ModelRetryMiddleware(max_retries=3, initial_delay=0.0, jitter=False)
    for order in ([StrandlineMiddleware(tenant), retry], [retry, StrandlineMiddleware(tenant)]):
        tries.clear()
        graph = create_agent(ScriptedModel(script=script), [], middleware=order, checkpointer=InMemorySaver())
        say(graph, f"Well, {len(order)}?", {"configurable": {"thread_id": f"t{id(order)}"}})
    assert [[event.text for event in tenant.workflow(name).events()] for name in tenant.workflows()] == [
        ["Well, 2?", "Yes."]
    ] * 2


class Order(BaseModel):
    """An order."""

    number: int


def test_a_structured_answer_is_recorded_with_its_result(tenant: strandline.Tenant) -> None:
    model = ScriptedModel(script=answers(call("c1", "Order", number=7731)))
    graph = create_agent(
        model,
        [],
        response_format=ToolStrategy(Order),
        middleware=[StrandlineMiddleware(tenant)],
        checkpointer=InMemorySaver(),
    )
    assert say(graph, "Which?")["structured_response"] == Order(number=7731)
    kinds = [event.kind.value for event in tenant.workflow("t").events()]
    assert kinds == ["message", "tool_call", "tool_result"]
    say(graph, "Again?")
    assert [event.kind.value for event in tenant.workflow("t").events()] == kinds * 2


def test_agents_side_by_side_record_a_state_once(tenant: strandline.Tenant) -> None:
    builder = StateGraph(MessagesState)
    for name in ("one", "two", "three", "four"):
        model = ScriptedModel(script=answers(f"I am {name}."))
        node = create_agent(model, [], middleware=[StrandlineMiddleware(tenant, agent=name)], name=name)
        builder.add_node(name, node)
        builder.add_edge(START, name)
    graph = builder.compile(checkpointer=InMemorySaver())
    for number in range(5):
        say(graph, f"Who, {number}?")
    told = log(tenant)
    assert len(told) == 25
    assert [text for text in told if text.startswith("Who")] == [f"Who, {number}?" for number in range(5)]


def test_chunks_are_messages(tenant: strandline.Tenant) -> None:
    model = ScriptedModel(script=answers("Yes."))
    graph = create_agent(model, [], middleware=[StrandlineMiddleware(tenant)], checkpointer=InMemorySaver())
    graph.invoke({"messages": [HumanMessage("a"), AIMessageChunk("b"), HumanMessage("c")]}, THREAD)
    assert [(event.role, event.text) for event in tenant.workflow("t").events()] == [
        ("user", "a"),
        ("assistant", "b"),
        ("user", "c"),
        ("assistant", "Yes."),
    ]


def test_a_handoff_is_given_again_as_it_was(tenant: strandline.Tenant) -> None:
    @tool
    def transfer(tool_call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
        """Hand over."""
        said = ToolMessage("handed over", tool_call_id=tool_call_id)
        return Command(goto="two", graph=Command.PARENT, update={"messages": [said]})

    def build() -> Any:
        builder = StateGraph(MessagesState)
        one = ScriptedModel(script=answers(call("c1", "transfer", "Over to you."), "?"))
        two = ScriptedModel(script=answers("I am two."))
        builder.add_node(
            "one", create_agent(one, [transfer], middleware=[StrandlineMiddleware(tenant, agent="one")], name="one")
        )
        builder.add_node(
            "two", create_agent(two, [], middleware=[StrandlineMiddleware(tenant, agent="two")], name="two")
        )
        builder.add_edge(START, "one")
        return builder.compile(checkpointer=InMemorySaver())

    for _ in range(2):
        assert say(build(), "Go.")["messages"][-1].text == "I am two."
    assert len(tenant.workflow("t").effects()) == 1


def test_what_is_redacted_before_it_never_comes_to_the_log(tenant: strandline.Tenant) -> None:
    model = ScriptedModel(script=answers("Yes."))
    graph = create_agent(
        model,
        [],
        middleware=[StrandlineMiddleware(tenant), PIIMiddleware("email", strategy="redact")],
        checkpointer=InMemorySaver(),
    )
    say(graph, "Write to ann@example.com.")
    assert "ann@example.com" not in str(log(tenant))
    assert "ann@example.com" not in str(model.shown)


def test_going_back_over_a_compaction(tenant: strandline.Tenant) -> None:
    model = ScriptedModel(script=answers("Yes."))
    memory = StrandlineMiddleware(tenant, budget=1_500, restore="rewind")
    graph = create_agent(model, [], middleware=[memory], checkpointer=InMemorySaver())
    for number in range(40):
        say(graph, f"Question {number}: " + "and some more words " * 12)
        if number == 3:
            back = graph.get_state(THREAD).config
    workflow = tenant.workflow("t")
    assert workflow.basis().generation >= 1
    say(graph, "Other.", back)
    shown = texts(model.shown[-1])
    assert len(shown) == 9
    assert shown[0].startswith("human: Question 0")
    assert shown[-1] == "human: Other."
    assert LineageKind.REWIND in [entry.kind for entry in workflow.lineage()]
    say(graph, "More.")
    assert texts(model.shown[-1])[-3:] == ["human: Other.", "ai: Yes.", "human: More."]


def test_a_message_that_was_edited_where_the_run_goes_back_is_the_new_one(tenant: strandline.Tenant) -> None:
    model = ScriptedModel(script=answers("No.", "Yes."))
    memory = StrandlineMiddleware(tenant, restore="rewind")
    graph = create_agent(model, [], middleware=[memory], checkpointer=InMemorySaver())
    asked = say(graph, "Delete all?")["messages"][0]
    before = next(state.config for state in graph.get_state_history(THREAD) if state.next == ("model",))
    edited = graph.update_state(before, {"messages": [HumanMessage("Delete one?", id=asked.id)]})
    graph.invoke(None, edited)
    assert texts(model.shown[-1]) == ["human: Delete one?"]


def test_a_store_that_is_away_ends_the_run_and_loses_nothing(
    tenant: strandline.Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = ScriptedModel(script=answers("Yes."))
    graph = create_agent(model, [], middleware=[StrandlineMiddleware(tenant)], checkpointer=InMemorySaver())
    with monkeypatch.context() as patch:

        def away(*args: Any, **kwargs: Any) -> Any:
            raise strandline.StoreUnavailableError("the disk is full")

        patch.setattr(strandline.Workflow, "append", away)
        with pytest.raises(strandline.StoreUnavailableError):
            say(graph, "Well?")
    assert model.shown == []
    assert graph.invoke(None, THREAD)["messages"][-1].text == "Yes."
    assert log(tenant) == ["Well?", "Yes."]


def filled(count: int) -> strandline.Context:
    with strandline.open(":memory:") as db:
        workflow = db.tenant("acme").workflow("w")
        workflow.append([strandline.message("user", "word " * 30) for _ in range(count)])
        return workflow.context(100_000)


@pytest.mark.parametrize("budget", [0, "x", True, 63])
def test_a_budget_that_is_none_is_refused_where_it_is_given(budget: Any) -> None:
    with pytest.raises(strandline.InvalidInputError):
        sizes_of(budget, None, None)


@pytest.mark.parametrize(
    ("trigger", "window", "due"),
    [
        (("messages", 20), None, True),
        (("messages", 21), None, False),
        (("tokens", 1_000), None, True),
        (("tokens", 2_000), None, False),
        (("fraction", 0.1), 10_000, True),
        (("fraction", 0.2), 10_000, False),
        ({"tokens": 500, "messages": 21}, None, False),
        ({"tokens": 500, "messages": 20}, None, True),
        ([("messages", 21), {"tokens": 500}], None, True),
        ([("messages", 21), ("tokens", 2_000)], None, False),
    ],
)
def test_a_trigger_means_what_it_means_there(trigger: Any, window: int | None, due: bool) -> None:
    context = filled(20)
    assert 1_000 <= context.tokens < 2_000
    assert (sizes_of(None, trigger, None).due(context, window) is not None) is due


def test_a_fraction_of_a_window_that_nobody_knows_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="profile"):
        sizes_of(None, ("fraction", 0.5), None).due(filled(20), None)


@pytest.mark.parametrize("keep", [None, ("messages", 0), ("messages", 5), ("tokens", 100_000), ("fraction", 0.01)])
def test_what_is_kept_lies_within_limits(keep: Any) -> None:
    context = filled(20)
    target = sizes_of(None, ("messages", 10), keep).due(context, 10_000)
    assert target is not None
    assert target.compact_at // 4 <= target.compact_to <= target.compact_at // 2


def test_a_context_that_must_shrink_first_is_compacted_first(tenant: strandline.Tenant) -> None:
    workflow = tenant.workflow("t")
    facts = [strandline.issue(f"issue-{number}", "It is open. " * 4) for number in range(30)]
    ends = [strandline.resolve(f"issue-{number}") for number in range(30)]
    workflow.append([*facts, *ends, *(strandline.note("word " * 20) for _ in range(20))])
    model = ScriptedModel(script=answers("Yes."))
    graph = create_agent(model, [], middleware=[StrandlineMiddleware(tenant, budget=700)], checkpointer=InMemorySaver())
    with pytest.raises(strandline.ContextOverflowError):
        workflow.context(700)
    say(graph, "Well?")
    assert workflow.lineage()[-1].kind == LineageKind.COMPACTION
    assert texts(model.shown[-1])[-1] == "human: Well?"
