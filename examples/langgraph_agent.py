"""An agent of LangChain whose memory is a workflow: killed, resumed, compacted, approved. No key, no network.

Run it with `python examples/langgraph_agent.py`; it needs the extra `langgraph`. A scripted model plays the agent.
An argument, such as postgresql://…, is the store that it uses, in place of a file of its own.

It ends with: the bucket was made 1 time, and published once
"""

import sys
import tempfile
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command

import strandline
from strandline.integrations.langgraph import StrandlineMiddleware

Graph = CompiledStateGraph[Any, Any, Any, Any]
THREAD: Any = {"configurable": {"thread_id": "release-42"}}
made: list[str] = []  # what the world outside has seen
published: list[str] = []


class Killed(BaseException):
    """Stands for kill -9."""


@tool
def make_bucket(region: str) -> str:
    """Make a bucket."""
    made.append(region)
    return f"made bucket-7f3a-{len(made)} in {region}"


@tool
def publish(handle: str) -> str:
    """Publish what is in a bucket."""
    published.append(handle)
    return f"published {handle}"


class Scripted(BaseChatModel):
    """Plays the model. Before a bucket's name is used, it must stand in what the model is shown."""

    dies: bool = False

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: object, **kwargs: object) -> "Scripted":
        """Return itself: the script knows the tools."""
        return self

    def _generate(self, messages: list[BaseMessage], *args: object, **kwargs: object) -> ChatResult:
        last, seen = messages[-1], "\n".join(said.text for said in messages)
        if isinstance(last, ToolMessage):
            if self.dies:
                raise Killed
            answer = AIMessage(f"Done: {last.text}")
        elif "Make the bucket." in last.text and "bucket-7f3a-1" not in seen:
            answer = AIMessage("", tool_calls=[{"id": "c1", "name": "make_bucket", "args": {"region": "eu"}}])
        elif last.text == "Publish it.":
            handle = "bucket-7f3a-1" if "bucket-7f3a-1" in seen else "?"
            answer = AIMessage("", tool_calls=[{"id": "c2", "name": "publish", "args": {"handle": handle}}])
        else:
            answer = AIMessage(f"Went on with {last.text} See logs/{len(messages)}.txt for what was done and why.")
        return ChatResult(generations=[ChatGeneration(message=answer)])


def agent(tenant: strandline.Tenant, saver: InMemorySaver, *, dies: bool = False) -> Graph:
    """Return the agent, as each process makes it."""
    memory = StrandlineMiddleware(
        tenant, budget=1_000, guards={"publish": [strandline.approved("publish")]}, asks={"publish"}
    )
    return create_agent(Scripted(dies=dies), [make_bucket, publish], middleware=[memory], checkpointer=saver)


def say(graph: Graph, text: str) -> dict[str, Any]:
    """Say something to the agent."""
    return graph.invoke({"messages": [("user", text)]}, THREAD)


def main(store: str) -> None:
    """Let the agent live, die and go on."""
    with strandline.open(store) as db:
        tenant = db.tenant("acme")
        try:
            say(agent(tenant, InMemorySaver(), dies=True), "Make the bucket.")
        except Killed:
            print("killed: the bucket was made, and the states of the graph are gone")

        graph = agent(tenant, InMemorySaver())  # another process; nobody saved the states
        print(say(graph, "Make the bucket.")["messages"][-1].text)
        for number in range(60):
            say(graph, f"Step {number}.")
        workflow = tenant.workflow("release-42")
        print(f"generation {workflow.basis().generation}; {len(workflow.events())} events, none removed")

        waits = say(graph, "Publish it.")["__interrupt__"][0].value
        print(f"asks a person: {waits['description']}")
        graph.invoke(Command(resume={"type": "approve", "by": "ann"}), THREAD)
        print(f"verified: {db.verify().ok}")
    assert made == ["eu"]
    assert published == ["bucket-7f3a-1"], published
    print("the bucket was made 1 time, and published once")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(sys.argv[1] if sys.argv[1:] else f"{folder}/agent.db")
