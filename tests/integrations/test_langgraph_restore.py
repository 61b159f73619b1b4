"""Law (C34, I13, I18, C22): a run that begins with a state that the log is ahead of either follows a run that died, and
the log is right; or somebody went back on purpose, and then the log goes back, too, or the run is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

import strandline
from strandline import CompactionLineageError, LineageKind
from strandline.integrations.langgraph import StrandlineMiddleware
from tests.integrations.scripted import ScriptedModel, answers, call, texts

THREAD: Any = {"configurable": {"thread_id": "t"}}


@pytest.fixture(params=["memory", "sqlite"])
def tenant(request: pytest.FixtureRequest, tmp_path: Any) -> Iterator[strandline.Tenant]:
    with strandline.open(":memory:" if request.param == "memory" else tmp_path / "agent.db") as db:
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


def agent(tenant: strandline.Tenant, model: ScriptedModel, saver: InMemorySaver, **options: Any) -> Any:
    return create_agent(
        model, [create_bucket], middleware=[StrandlineMiddleware(tenant, **options)], checkpointer=saver
    )


def say(graph: Any, text: str, config: Any = THREAD) -> dict[str, Any]:
    return graph.invoke({"messages": [HumanMessage(text)]}, config)


def kinds(tenant: strandline.Tenant) -> list[LineageKind]:
    return [entry.kind for entry in tenant.workflow("t").lineage()]


def after(graph: Any, text: str) -> Any:
    """The config of the checkpoint right after this text was said."""
    for state in graph.get_state_history(THREAD):
        messages = state.values.get("messages", [])
        if messages and messages[-1].text == text:
            return state.config
    raise AssertionError(text)


def test_a_process_that_goes_on_recovers_nothing(tenant: strandline.Tenant) -> None:
    saver, model = InMemorySaver(), ScriptedModel(script=answers(call("c1", "create_bucket", name="a"), "Done."))
    say(agent(tenant, model, saver), "One.")
    tenant.workflow("t").append(strandline.note("from elsewhere"))
    say(agent(tenant, model, saver), "Two.")
    assert kinds(tenant) == []
    assert texts(model.shown[-1])[-2:] == ["human: [note] from elsewhere", "human: Two."]


def test_going_back_on_purpose_is_refused_and_nothing_is_written(tenant: strandline.Tenant) -> None:
    saver, model = InMemorySaver(), ScriptedModel(script=answers("One!", "Two!", "Other!"))
    graph = agent(tenant, model, saver)
    say(graph, "One.")
    back = after(graph, "One!")
    say(graph, "Two.")
    asked, revision = len(model.shown), tenant.workflow("t").basis().revision
    with pytest.raises(CompactionLineageError, match="goes back") as refused:
        say(graph, "Other.", back)
    assert 'restore="rewind"' in refused.value.hint
    assert (len(model.shown), tenant.workflow("t").basis().revision) == (asked, revision)


def test_the_log_goes_back_with_the_state(tenant: strandline.Tenant) -> None:
    saver, model = InMemorySaver(), ScriptedModel(script=answers("One!", "Two!", "Other!", "More!"))
    graph = agent(tenant, model, saver, restore="rewind")
    say(graph, "One.")
    back = after(graph, "One!")
    say(graph, "Two.")
    say(graph, "Other.", back)
    assert texts(model.shown[-1]) == ["human: One.", "ai: One!", "human: Other."]
    say(graph, "More.")
    assert texts(model.shown[-1])[-3:] == ["human: Other.", "ai: Other!", "human: More."]
    told = [(event.text, event.abandoned) for event in tenant.workflow("t").events()]
    assert ("Two!", True) in told
    assert kinds(tenant) == [LineageKind.REWIND]


def test_a_tool_that_ran_on_the_branch_that_is_left_does_not_run_again(tenant: strandline.Tenant) -> None:
    """C22: effects are never rewound."""
    saver = InMemorySaver()
    model = ScriptedModel(
        script=answers("One!", call("c1", "create_bucket", "I make it.", name="a"), "Done.", "Again.")
    )
    graph = agent(tenant, model, saver, restore="rewind")
    say(graph, "One.")
    say(graph, "Two.")
    back = after(graph, "I make it.")
    graph.invoke(None, back)
    assert RUNS == ["a"]
    assert texts(model.shown[-1]) == texts(model.shown[-2])


def test_a_lost_run_is_recovered_and_the_model_is_told(tenant: strandline.Tenant) -> None:
    """What `durability="exit"` leaves of a run that died: nothing, not even what the user said."""
    steps = (call("c1", "create_bucket", "I make it.", name="a"), "Done.")
    say(agent(tenant, ScriptedModel(script=answers(*steps)), InMemorySaver()), "Make it.")
    model = ScriptedModel(script=answers("It is made."))
    say(agent(tenant, model, InMemorySaver()), "Make it.")
    shown = texts(model.shown[-1])
    assert shown[:4] == ["human: Make it.", "ai: I make it.", "ai: ", "tool: bucket-a"]
    assert shown[4] == "ai: Done."
    assert shown[5].startswith("human: [note] [The run stopped here")
    assert shown[6] == "human: Make it."
    assert LineageKind.REPLAY in kinds(tenant)


def test_a_lost_step_is_recovered_from_what_the_state_was_made_from(tenant: strandline.Tenant) -> None:
    """What `durability="async"` may leave: a state some steps behind. What the state knows may be done anew."""
    saver = InMemorySaver()
    first = call("c1", "create_bucket", name="a")
    graph = agent(
        tenant, ScriptedModel(script=answers(first, "Done.", call("c2", "create_bucket", name="b"), "Ok.")), saver
    )
    say(graph, "Make a.")
    known = {key: dict(value) for key, value in saver.storage["t"].items()}
    say(graph, "Make b.")
    saver.storage["t"].clear()
    saver.storage["t"].update(known)
    steps = (call("c3", "create_bucket", name="b"), call("c4", "create_bucket", name="a"), "Done.")
    state = say(agent(tenant, ScriptedModel(script=answers(*steps)), saver), "Make b, and a once more.")
    assert RUNS == ["a", "b", "a"]
    assert [said.text for said in state["messages"]][-4:-1] == ["bucket-b", "", "bucket-a"]
    assert LineageKind.RESTORE in kinds(tenant)


def test_a_lost_state_that_a_compaction_has_gone_past_is_recovered(tenant: strandline.Tenant) -> None:
    saver = InMemorySaver()
    graph = agent(tenant, ScriptedModel(script=answers("Yes.")), saver, budget=2_000)
    say(graph, "Begin.")
    known = {key: dict(value) for key, value in saver.storage["t"].items()}
    for number in range(30):
        say(graph, f"Question {number}: " + "and some more words " * 20)
    say(agent(tenant, ScriptedModel(script=answers(call("c1", "create_bucket", name="a"), "Yes.")), saver), "Make a.")
    assert tenant.workflow("t").basis().generation >= 1
    saver.storage["t"].clear()
    saver.storage["t"].update(known)
    say(agent(tenant, ScriptedModel(script=answers(call("c2", "create_bucket", name="a"), "Yes.")), saver), "Make a.")
    assert RUNS == ["a"]


def test_a_resume_at_the_newest_checkpoint_by_its_id_is_no_going_back(tenant: strandline.Tenant) -> None:
    saver, model = InMemorySaver(), ScriptedModel(script=answers("One!", "Two!"))
    graph = agent(tenant, model, saver)
    say(graph, "One.")
    say(graph, "Two.", graph.get_state(THREAD).config)
    assert texts(model.shown[-1])[-1] == "human: Two."
