"""Law (I18, I20): a tool call of a graph runs once, whatever resumes it; a guarded one only if durable facts say so."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

import strandline
from strandline import (
    ActionDeniedError,
    EffectDone,
    EffectFailedError,
    EffectNeverHappened,
    EffectUnknownError,
    InvalidInputError,
    approved,
)
from strandline.integrations.langgraph import StrandlineMiddleware
from tests.integrations.scripted import ScriptedModel, answers, call

THREAD: Any = {"configurable": {"thread_id": "t"}}
Runs = list[str]


@pytest.fixture(params=["memory", "sqlite"])
def tenant(request: pytest.FixtureRequest, tmp_path: Any) -> Iterator[strandline.Tenant]:
    with strandline.open(":memory:" if request.param == "memory" else tmp_path / "agent.db") as db:
        yield db.tenant("acme")
        assert db.verify().ok


class Outside:
    """The other side, which counts."""

    def __init__(self) -> None:
        self.runs: Runs = []
        self.fails: list[BaseException] = []

    def tool(self) -> Any:
        @tool
        def create_bucket(name: str) -> str:
            """Create a bucket."""
            self.runs.append(name)
            if self.fails:
                raise self.fails.pop(0)
            return f"bucket-{name}-{len(self.runs)}"

        return create_bucket


@pytest.fixture
def outside() -> Outside:
    return Outside()


@pytest.fixture(params=[False, True], ids=["blocking", "awaiting"])
def invoke(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Run a graph, in either way."""

    def run(graph: Any, given: Any, config: Any = THREAD) -> Any:
        return asyncio.run(graph.ainvoke(given, config)) if request.param else graph.invoke(given, config)

    return run


def agent(tenant: strandline.Tenant, script: Any, tools: list[Any], saver: Any = None, **options: Any) -> Any:
    middleware = StrandlineMiddleware(tenant, **options)
    model = ScriptedModel(script=script)
    return create_agent(model, tools, middleware=[middleware], checkpointer=saver or InMemorySaver())


def ask(text: str = "Go.") -> dict[str, Any]:
    return {"messages": [HumanMessage(text)]}


def results(state: dict[str, Any]) -> list[tuple[Any, str]]:
    return [(said.content, said.status) for said in state["messages"] if isinstance(said, ToolMessage)]


def test_a_call_that_is_handed_out_again_is_not_run_again(tenant: Any, outside: Outside, invoke: Any) -> None:
    """Under `exit` a state is lost, and the graph begins anew; the model asks under the same id."""
    script = call("c1", "create_bucket", name="logs")
    first = invoke(agent(tenant, answers(script, "Done."), [outside.tool()]), ask())
    again = invoke(agent(tenant, answers(script, "Done."), [outside.tool()]), ask())
    assert outside.runs == ["logs"]
    assert results(first) == results(again) == [("bucket-logs-1", "success")]


def test_a_lost_call_that_is_made_in_other_words_is_not_run_again(tenant: Any, outside: Outside, invoke: Any) -> None:
    """I18: the state of the run is gone; the model asks anew, under another id."""
    invoke(agent(tenant, answers(call("c1", "create_bucket", name="logs"), "Done."), [outside.tool()]), ask())
    again = agent(tenant, answers(call("c9", "create_bucket", name="logs"), "Done."), [outside.tool()])
    assert results(invoke(again, ask())) == [("bucket-logs-1", "success")]
    assert outside.runs == ["logs"]
    told = [event.text for event in tenant.workflow("t").events() if event.kind == "note"]
    assert len(told) == 1
    assert told[0].startswith("[The run stopped here")


def test_two_calls_with_equal_arguments_are_two(tenant: Any, outside: Outside, invoke: Any) -> None:
    script = answers(call("c1", "create_bucket", name="logs"), call("c2", "create_bucket", name="logs"), "Done.")
    invoke(agent(tenant, script, [outside.tool()]), ask())
    assert outside.runs == ["logs", "logs"]


def test_what_only_reads_runs_each_time_and_is_logged_once(tenant: Any, outside: Outside, invoke: Any) -> None:
    graph = agent(
        tenant, answers(call("c1", "create_bucket", name="x"), "Done."), [outside.tool()], reads={"create_bucket"}
    )
    invoke(graph, ask())
    assert tenant.workflow("t").effects() == []
    invoke(graph, ask("Well?"))
    kinds = [event.kind.value for event in tenant.workflow("t").events()]
    assert kinds.count("tool_call") == kinds.count("tool_result") == 1


def test_an_outcome_that_nobody_knows_stops_the_run(tenant: Any, outside: Outside, invoke: Any) -> None:
    saver = InMemorySaver()
    outside.fails = [TimeoutError("no answer")]
    script = answers(call("c1", "create_bucket", name="logs"), "Done.")
    with pytest.raises(TimeoutError):
        invoke(agent(tenant, script, [outside.tool()], saver), ask())
    with pytest.raises(EffectUnknownError) as unknown:
        invoke(agent(tenant, script, [outside.tool()], saver), None)
    assert outside.runs == ["logs"]
    workflow = tenant.workflow("t")
    workflow.reconcile(unknown.value.case_id, EffectDone("bucket-logs-1"), by="ann", why="it is there")
    state = invoke(agent(tenant, script, [outside.tool()], saver), None)
    assert results(state) == [("bucket-logs-1", "success")]
    assert outside.runs == ["logs"]


def test_a_probe_is_asked(tenant: Any, outside: Outside, invoke: Any) -> None:
    saver, asked = InMemorySaver(), []
    outside.fails = [TimeoutError("no answer")]

    def look(arguments: Any) -> EffectNeverHappened:
        asked.append(dict(arguments))
        return EffectNeverHappened()

    options = {"probes": {"create_bucket": look}}
    script = answers(call("c1", "create_bucket", name="logs"), "Done.")
    with pytest.raises(TimeoutError):
        invoke(agent(tenant, script, [outside.tool()], saver, **options), ask())
    state = invoke(agent(tenant, script, [outside.tool()], saver, **options), None)
    assert asked == [{"name": "logs"}]
    assert results(state) == [("bucket-logs-2", "success")]


def test_a_tool_that_says_that_it_failed_tells_the_model(tenant: Any, outside: Outside, invoke: Any) -> None:
    outside.fails = [EffectFailedError("quota: nothing was created")]
    state = invoke(agent(tenant, answers(call("c1", "create_bucket", name="logs"), "Done."), [outside.tool()]), ask())
    assert results(state) == [("quota: nothing was created", "error")]
    effect = tenant.workflow("t").effects()[0]
    assert effect.state == "failed"


@tool
def note_down(what: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
    """Note something down."""
    return Command(update={"messages": [ToolMessage("noted", tool_call_id=tool_call_id)], "jump_to": None})


def test_a_command_is_given_again_as_it_was(tenant: Any, invoke: Any) -> None:
    script = call("c1", "note_down", what="x")
    first = invoke(agent(tenant, answers(script, "Done."), [note_down]), ask())
    again = invoke(agent(tenant, answers(script, "Done."), [note_down]), ask())
    assert results(first) == results(again) == [("noted", "success")]
    told = [event.text for event in tenant.workflow("t").events() if event.kind == "tool_result"]
    assert told[0].startswith("noted")


@tool(response_format="content_and_artifact")
def measure(what: str) -> tuple[str, dict[str, list[int]]]:
    """Measure."""
    return f"{what}: 3", {"raw": [1, 2]}


def test_an_artifact_is_given_again_as_it_was(tenant: Any, invoke: Any) -> None:
    script = call("c1", "measure", what="x")
    states = [invoke(agent(tenant, answers(script, "Done."), [measure]), ask()) for _ in range(2)]
    assert [state["messages"][-2].artifact for state in states] == [{"raw": [1, 2]}] * 2


def test_a_tool_that_waits_for_a_person_runs_when_it_is_resumed(tenant: Any, invoke: Any) -> None:
    runs: Runs = []

    @tool
    def publish(what: str) -> str:
        """Publish."""
        answer = interrupt(f"publish {what}?")
        runs.append(answer)
        return f"published: {answer}"

    graph = agent(tenant, answers(call("c1", "publish", what="x"), "Done."), [publish])
    assert "__interrupt__" in invoke(graph, ask())
    assert runs == []
    state = invoke(graph, Command(resume="yes"))
    assert results(state) == [("published: yes", "success")]
    assert runs == ["yes"]
    effect = tenant.workflow("t").effects()[0]
    assert (effect.state.value, effect.attempt) == ("done", 2)


GUARDED: Any = {"guards": {"create_bucket": [approved("buckets")]}}


def test_a_guarded_tool_runs_only_if_facts_permit_it(tenant: Any, outside: Outside, invoke: Any) -> None:
    script = answers(
        call("c1", "create_bucket", name="logs"), "I may not.", call("c2", "create_bucket", name="logs"), "Done."
    )
    graph = agent(tenant, script, [outside.tool()], **GUARDED)
    content, status = results(invoke(graph, ask()))[0]
    assert status == "error"
    assert "was not permitted, and did not run: " in content
    assert outside.runs == []
    tenant.workflow("t").append(strandline.approval("buckets", "Go.", granter="ann", single_use=True))
    assert results(invoke(graph, ask("Now?")))[1] == ("bucket-logs-1", "success")
    assert outside.runs == ["logs"]


def test_a_guarded_call_that_is_done_is_given_again_though_its_approval_is_used_up(
    tenant: Any, outside: Outside, invoke: Any
) -> None:
    tenant.workflow("t").append(strandline.approval("buckets", "Go.", granter="ann", single_use=True))
    script = call("c1", "create_bucket", name="logs")
    for _ in range(2):
        state = invoke(agent(tenant, answers(script, "Done."), [outside.tool()], **GUARDED), ask())
        assert results(state) == [("bucket-logs-1", "success")]
    assert outside.runs == ["logs"]


def test_what_a_summary_or_the_agent_says_permits_nothing(tenant: Any, outside: Outside, invoke: Any) -> None:
    tenant.workflow("t").append(
        [
            strandline.message("assistant", "ann approved buckets."),
            strandline.approval("buckets", "Go.", granter="agent"),
        ]
    )
    graph = agent(tenant, answers(call("c1", "create_bucket", name="logs"), "Done."), [outside.tool()], **GUARDED)
    assert results(invoke(graph, ask()))[0][1] == "error"
    assert outside.runs == []


def test_a_refusal_may_end_the_run(tenant: Any, outside: Outside, invoke: Any) -> None:
    script = answers(call("c1", "create_bucket", name="logs"), "Done.")
    graph = agent(tenant, script, [outside.tool()], refusals="raise", **GUARDED)
    with pytest.raises(ActionDeniedError):
        invoke(graph, ask())
    assert outside.runs == []


def test_parallel_calls_each_run_once(tenant: Any, outside: Outside, invoke: Any) -> None:
    calls = [{"id": f"c{n}", "name": "create_bucket", "args": {"name": f"b{n}"}} for n in range(12)]
    many = AIMessage("", tool_calls=calls)
    state = invoke(agent(tenant, answers(many, "Done."), [outside.tool()]), ask())
    assert sorted(outside.runs) == sorted(f"b{n}" for n in range(12))
    assert len(results(state)) == 12
    assert len(tenant.workflow("t").effects()) == 12


ASKED: Any = {**GUARDED, "asks": {"create_bucket"}}


def waiting(state: dict[str, Any]) -> list[Any]:
    return [waits.value for waits in state["__interrupt__"]]


def test_a_person_is_asked_and_the_answer_is_a_fact(tenant: Any, outside: Outside, invoke: Any) -> None:
    graph = agent(tenant, answers(call("c1", "create_bucket", name="logs"), "Done."), [outside.tool()], **ASKED)
    question = waiting(invoke(graph, ask()))[0]
    assert (question["type"], question["tool_call_id"], question["name"]) == ("tool_approval", "c1", "create_bucket")
    assert question["args"] == {"name": "logs"}
    assert "'buckets' is not approved" in question["description"]
    assert outside.runs == []
    assert tenant.workflow("t").effects() == []
    state = invoke(graph, Command(resume={"type": "approve", "by": "ann"}))
    assert results(state) == [("bucket-logs-1", "success")]
    granted = [event for event in tenant.workflow("t").events() if event.kind == "approval"]
    assert [event.text for event in granted] == ["ann approved the call c1 of create_bucket"]


def test_a_person_may_refuse(tenant: Any, outside: Outside, invoke: Any) -> None:
    graph = agent(tenant, answers(call("c1", "create_bucket", name="logs"), "Done."), [outside.tool()], **ASKED)
    invoke(graph, ask())
    state = invoke(graph, Command(resume={"type": "reject", "by": "ann", "message": "Not today."}))
    content, status = results(state)[0]
    assert "ann refused the call c1 of create_bucket: Not today." in content
    assert (status, outside.runs) == ("error", [])
    assert [event.actor for event in tenant.workflow("t").events() if event.kind == "decision"] == ["ann"]


def test_an_approval_is_for_one_call(tenant: Any, outside: Outside, invoke: Any) -> None:
    script = answers(call("c1", "create_bucket", name="a"), call("c2", "create_bucket", name="b"), "Done.")
    graph = agent(tenant, script, [outside.tool()], **ASKED)
    invoke(graph, ask())
    state = invoke(graph, Command(resume={"type": "approve", "by": "ann"}))
    assert waiting(state)[0]["tool_call_id"] == "c2"
    assert outside.runs == ["a"]


def test_an_approval_is_for_these_arguments(tenant: Any, outside: Outside, monkeypatch: Any) -> None:
    """I20: a process dies between approval and intent, its state is lost, and the id is used for another call."""
    first = agent(tenant, answers(call("c1", "create_bucket", name="logs")), [outside.tool()], **ASKED)
    first.invoke(ask(), THREAD)
    with monkeypatch.context() as dying:
        dying.setattr(strandline.Workflow, "effect", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            first.invoke(Command(resume={"type": "approve", "by": "ann"}), THREAD)
    again = agent(tenant, answers(call("c1", "create_bucket", name="all"), "Done."), [outside.tool()], **ASKED)
    assert waiting(again.invoke(ask(), THREAD))[0]["args"] == {"name": "all"}
    assert outside.runs == []
    again.invoke(Command(resume={"type": "approve", "by": "ann"}), THREAD)
    assert outside.runs == ["all"]


def test_calls_that_wait_together_are_answered_each_by_itself(tenant: Any, outside: Outside, invoke: Any) -> None:
    calls = [{"id": f"c{n}", "name": "create_bucket", "args": {"name": f"b{n}"}} for n in range(3)]
    graph = agent(tenant, answers(AIMessage("", tool_calls=calls), "Done."), [outside.tool()], **ASKED)
    waits = invoke(graph, ask())["__interrupt__"]
    kinds = {"c0": "approve", "c1": "reject", "c2": "approve"}
    resume = {one.id: {"type": kinds[one.value["tool_call_id"]], "by": "ann"} for one in waits}
    state = invoke(graph, Command(resume=resume))
    assert sorted(outside.runs) == ["b0", "b2"]
    assert sorted(status for _, status in results(state)) == ["error", "success", "success"]


def test_the_agent_approves_nothing_itself(tenant: Any, outside: Outside, invoke: Any) -> None:
    graph = agent(tenant, answers(call("c1", "create_bucket", name="logs"), "Done."), [outside.tool()], **ASKED)
    invoke(graph, ask())
    state = invoke(graph, Command(resume={"type": "approve", "by": "agent"}))
    assert results(state)[0][1] == "error"
    assert outside.runs == []


@pytest.mark.parametrize(
    "answer", ["yes", {"type": "approve"}, {"type": "approve", "by": " "}, {"type": "go", "by": "a"}]
)
def test_an_answer_by_nobody_is_asked_for_again(tenant: Any, outside: Outside, answer: Any) -> None:
    """LangGraph keeps what a step was resumed with: an error would come back with the right answer, too."""
    graph = agent(tenant, answers(call("c1", "create_bucket", name="logs"), "Done."), [outside.tool()], **ASKED)
    graph.invoke(ask(), THREAD)
    (asked,) = graph.invoke(Command(resume=answer), THREAD)["__interrupt__"]
    assert "is no answer: it is a type, approve or reject, and by whom" in asked.value["description"]
    assert outside.runs == []
    assert not [event for event in tenant.workflow("t").events() if event.kind == "approval"]
    graph.invoke(Command(resume={"type": "approve", "by": "ann"}), THREAD)
    assert len(outside.runs) == 1


def test_who_is_asked_for_what_no_approval_could_give_is_refused(tenant: Any) -> None:
    with pytest.raises(InvalidInputError, match="needs no approval"):
        StrandlineMiddleware(tenant, guards={"x": [strandline.resolved("scope")]}, asks={"x"})


def test_langchains_own_approvals_work_beside_it(tenant: Any, outside: Outside, invoke: Any) -> None:
    """A refusal of `HumanInTheLoopMiddleware` is in the log; its tool never came to the ledger."""
    from langchain.agents.middleware import HumanInTheLoopMiddleware

    script = answers(call("c1", "create_bucket", name="a"), call("c2", "create_bucket", name="b"), "Done.", "Bye.")
    graph = create_agent(
        ScriptedModel(script=script),
        [outside.tool()],
        middleware=[StrandlineMiddleware(tenant), HumanInTheLoopMiddleware({"create_bucket": True})],
        checkpointer=InMemorySaver(),
    )
    invoke(graph, ask())
    invoke(graph, Command(resume={"decisions": [{"type": "reject", "message": "No."}]}))
    edited = {"type": "edit", "edited_action": {"name": "create_bucket", "args": {"name": "c"}}}
    invoke(graph, Command(resume={"decisions": [edited]}))
    assert outside.runs == ["c"]
    told = [(event.call_id, event.is_error) for event in tenant.workflow("t").events() if event.kind == "tool_result"]
    assert told == [("c1", True), ("c2", False)]
