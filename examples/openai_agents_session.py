"""An agent of the OpenAI Agents SDK whose session is a workflow: bounded, killed, resumed. No key and no network.

Run it with `python examples/openai_agents_session.py`; it needs the extra `openai-agents`. A scripted model plays the
agent. What is published needs an approval; the process dies right after it was published, and is started again.
An argument, such as postgresql://…, is the store that it uses, in place of a file of its own.

It ends with: 1.2 was published 1 time
"""

import asyncio
import json
import sys
import tempfile
from collections.abc import AsyncIterator

from agents import Agent, Model, ModelResponse, RunConfig, Runner, RunState, Usage
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

import strandline
from strandline.integrations.agent_memory import AgentMemory
from strandline.integrations.openai_agents import StrandlineSession, effect_tool

QUIET = RunConfig(tracing_disabled=True)
published: list[str] = []  # what the world outside has seen


class Scripted(Model):
    """Plays the model: it publishes when it is asked to, and else says that it went on."""

    def __init__(self) -> None:
        self.items_shown: list[int] = []

    async def get_response(
        self, system_instructions: str | None, input: object, *_: object, **__: object
    ) -> ModelResponse:
        """Answer the last item."""
        items = input if isinstance(input, list) else [{"role": "user", "content": input}]
        self.items_shown.append(len(items))
        last = items[-1]
        number = len(self.items_shown)
        if last.get("content") == "Publish 1.2.":
            call = ResponseFunctionToolCall(
                type="function_call", call_id="call_7f3a", name="publish", arguments=json.dumps({"version": "1.2"})
            )
            return ModelResponse(output=[call], usage=Usage(), response_id=f"resp_{number}")
        said = last.get("output") or f"Step {number} is done, see logs/step-{number}.txt for what was done and why."
        text = ResponseOutputText(type="output_text", text=str(said), annotations=[])
        message = ResponseOutputMessage(
            id=f"msg_{number}", type="message", role="assistant", status="completed", content=[text]
        )
        return ModelResponse(output=[message], usage=Usage(), response_id=f"resp_{number}")

    def stream_response(self, *_: object, **__: object) -> AsyncIterator[object]:
        """Nothing is streamed here."""
        raise NotImplementedError


class Killed(BaseException):
    """Stands for kill -9."""


class DiesBeforeItSaves(StrandlineSession):
    """A process that dies when the tool has run, before the SDK saves the turn."""

    async def add_items(self, items: object) -> None:
        """Die."""
        raise Killed


def make_agent(workflow: strandline.Workflow, model: Model) -> Agent:
    """Return the agent; its tool is an effect of the workflow."""

    @effect_tool(workflow, needs_approval=True)
    def publish(version: str) -> str:
        """Publish a version."""
        published.append(version)
        return f"published {version}"

    return Agent(name="ops", instructions="Be brief.", model=model, tools=[publish])


async def resume(agent: Agent, saved: dict[str, object], session: StrandlineSession) -> str:
    """Go on from the state that was saved when the run asked for approval, and approve."""
    state = await RunState.from_json(agent, saved)
    state.approve(state.get_interruptions()[0])
    result = await Runner.run(agent, state, session=session, run_config=QUIET)
    return str(result.final_output)


async def main(path: str) -> None:
    """Run the example."""
    model = Scripted()
    with strandline.open(path) as db:
        workflow = db.tenant("acme").workflow("release-42")
        memory = AgentMemory(workflow, budget=700)
        agent, session = make_agent(workflow, model), StrandlineSession(memory)
        for step in range(40):
            await Runner.run(agent, f"Do step {step}.", session=session, run_config=QUIET)
        stored = len(await session.history())
        print(f"{stored} items are in the session; the last request held {model.items_shown[-1]}")
        asked = await Runner.run(agent, "Publish 1.2.", session=session, run_config=QUIET)
        saved = asked.to_state().to_json()
        try:
            await resume(agent, saved, DiesBeforeItSaves(memory))
        except Killed:
            print("the process died; the state that it saved is older than the publication")
    with strandline.open(path) as db:
        workflow = db.tenant("acme").workflow("release-42")
        session = StrandlineSession(AgentMemory(workflow, budget=700))
        print(await resume(make_agent(workflow, model), saved, session))
        await session.pop_item()
        await session.clear_session()
        print(f"{len(await session.history())} items after clear_session, {len(workflow.events())} events in the log")
    times = published.count("1.2")
    print(f"1.2 was published {times} time{'s' if times > 1 else ''}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(sys.argv[1] if sys.argv[1:] else f"{folder}/agent.db"))
