"""An agent and a workflow of the Microsoft Agent Framework over one Strandline store. No key and no network.

Run it with `python examples/agent_framework_agent.py`; it needs the extra `agent-framework`. A scripted client plays
the model.
An argument, such as postgresql://…, is the store that it uses, in place of a file of its own.

It ends with: the bucket was made 1 time
"""

import asyncio
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatResponse,
    Content,
    Executor,
    FunctionInvocationLayer,
    Message,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    handler,
    tool,
)

import strandline
from strandline.integrations.agent_framework import (
    StrandlineCheckpointStorage,
    StrandlineEffects,
    StrandlineHistoryProvider,
)

made: list[str] = []  # what the world outside has seen


@tool(approval_mode="never_require")
def make_bucket(region: str) -> str:
    """Make a bucket."""
    made.append(region)
    return f"bucket-7f3a-{len(made)}"


class Scripted(FunctionInvocationLayer, BaseChatClient):
    """Plays the model: it makes a bucket when it is asked to, and else says that it went on."""

    async def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **kwargs: Any
    ) -> ChatResponse:
        last = messages[-1]
        if last.text == "Make the bucket.":
            call = Content.from_function_call("call-1", "make_bucket", arguments=json.dumps({"region": "eu"}))
            return ChatResponse(messages=[Message("assistant", [call])])
        said = f"Went on with {last.text or last.contents[0].result} See logs/{len(messages)}.txt for what was done."
        return ChatResponse(messages=[Message("assistant", [said])])


class Steps(Executor):
    """Takes a step for each number down to 0, and then keeps quiet."""

    @handler
    async def step(self, number: int, ctx: WorkflowContext[int, str]) -> None:
        """Take a step."""
        if number:
            await ctx.send_message(number - 1)
        else:
            await ctx.yield_output("all steps are done")


def agent(history: StrandlineHistoryProvider) -> Agent:
    """Return the agent, as each process makes it."""
    return Agent(
        Scripted(),
        "Build.",
        tools=[make_bucket],
        context_providers=[history],
        middleware=[StrandlineEffects(history)],
    )


def orders(db: strandline.Strandline) -> tuple[Workflow, StrandlineCheckpointStorage]:
    """Return the workflow, as each process makes it, and where its checkpoints are."""
    checkpoints = StrandlineCheckpointStorage(db.tenant("acme"), "order-7")
    one, two = Steps("one"), Steps("two")
    builder = WorkflowBuilder(name="orders", start_executor=one, checkpoint_storage=checkpoints)
    return builder.add_edge(one, two).add_edge(two, one).build(), checkpoints


async def first_process(path: str) -> None:
    """Talk, and run a workflow."""
    with strandline.open(path) as db:
        history = StrandlineHistoryProvider(db.tenant("acme"), budget=600)
        builder = agent(history)
        session = builder.create_session(session_id="s1")
        await builder.run("Never push to main.", session=session)
        for number in range(40):
            await builder.run(f"Step-{number}.", session=session)
        await builder.run("Make the bucket.", session=session)
        workflow, _ = orders(db)
        await workflow.run(5)


async def second_process(path: str) -> None:
    """Go on with both."""
    with strandline.open(path) as db:
        history = StrandlineHistoryProvider(db.tenant("acme"), budget=600)
        loaded = await history.get_messages("s1")
        print(
            f"loaded {len(loaded)} messages of {len(history.workflow('s1').events())} events; the first is the summary"
        )
        print("the constraint is carried verbatim:", "Never push to main." in loaded[0].text)
        builder = agent(history)
        await builder.run("Make the bucket.", session=builder.create_session(session_id="s1"))
        workflow, checkpoints = orders(db)
        ids = await checkpoints.list_checkpoint_ids(workflow_name="orders")
        done = await workflow.run(checkpoint_id=ids[2])
        print(f"resumed from checkpoint 3 of {len(ids)}: {done.get_outputs()[0]}")
        print("the store is sound:", db.verify().problems == ())


with tempfile.TemporaryDirectory() as folder:
    store = sys.argv[1] if sys.argv[1:] else f"{folder}/agent.db"
    asyncio.run(first_process(store))
    asyncio.run(second_process(store))
print(f"the bucket was made {len(made)} time")
