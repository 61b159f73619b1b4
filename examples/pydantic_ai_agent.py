"""An agent of Pydantic AI with its memory in a workflow: bounded, killed, resumed. No key and no network.

Run it with `python examples/pydantic_ai_agent.py`; it needs the extra `pydantic-ai`. A function plays the model. What
is published needs an approval; the process dies right after it was published, and is started again.
An argument, such as postgresql://…, is the store that it uses, in place of a file of its own.

It ends with: 1.2 was published 1 time
"""

import asyncio
import sys
import tempfile

from pydantic_ai import Agent
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import ConversationConflict
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults

import strandline
from strandline.integrations.agent_memory import AgentMemory
from strandline.integrations.pydantic_ai import StrandlineConversationStore, StrandlineMemory

published: list[str] = []  # what the world outside has seen
shown: list[int] = []  # how many messages each request held


def answer(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
    """Play the model: publish when asked to, and else say that it went on."""
    shown.append(len(messages))
    last = messages[-1].parts[-1]
    if isinstance(last, ToolReturnPart):
        return ModelResponse(parts=[TextPart(str(last.content))])
    if getattr(last, "content", "") == "Publish 1.2.":
        return ModelResponse(parts=[ToolCallPart("publish", {"version": "1.2"}, tool_call_id="call_7f3a")])
    number = len(shown)
    return ModelResponse(
        parts=[TextPart(f"Step {number} is done, see logs/step-{number}.txt for what was done and why.")]
    )


def make_agent(workflow: strandline.Workflow) -> Agent[None, str | DeferredToolRequests]:
    """Return the agent, whose memory and tools are those of the workflow."""
    memory = StrandlineMemory[None](AgentMemory(workflow, budget=1_200))
    agent = Agent(FunctionModel(answer), output_type=[str, DeferredToolRequests], capabilities=[memory])

    @agent.tool_plain(requires_approval=True)
    def publish(version: str) -> str:
        """Publish a version."""
        published.append(version)
        return f"published {version}"

    return agent


async def approve(agent: Agent[None, str | DeferredToolRequests], store: StrandlineConversationStore) -> Conversation:
    """Go on from the conversation as it was saved when the run asked for approval, and approve."""
    paused = await store.load("release-42")
    assert paused is not None
    results = DeferredToolResults(approvals={"call_7f3a": True})
    return (await agent.run(conversation=paused, deferred_tool_results=results)).conversation


async def main(path: str) -> None:
    """Run the example."""
    with strandline.open(path) as db:
        tenant = db.tenant("acme")
        store, agent = StrandlineConversationStore(tenant), make_agent(tenant.workflow("release-42"))
        conversation = Conversation(conversation_id="release-42")
        for step in range(40):
            result = await agent.run(f"Do step {step}.", conversation=conversation)
            await store.save(result)
            conversation = result.conversation
        print(f"{len(conversation.messages)} messages in the conversation; the last request held {shown[-1]}")
        await store.save(await agent.run("Publish 1.2.", conversation=conversation))
        await approve(agent, store)
        print("the process died before it saved; the conversation that is stored is older than the publication")
    with strandline.open(path) as db:
        tenant = db.tenant("acme")
        store, agent = StrandlineConversationStore(tenant), make_agent(tenant.workflow("release-42"))
        done = await approve(agent, store)
        await store.save(done)
        print(done.messages[-1].parts[-1].content)
        try:
            await store.save(conversation)
        except ConversationConflict:
            print("a writer that had loaded an older revision was refused")
    times = published.count("1.2")
    print(f"1.2 was published {times} time{'s' if times > 1 else ''}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(sys.argv[1] if sys.argv[1:] else f"{folder}/agent.db"))
