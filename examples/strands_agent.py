"""An agent of Strands whose session is a Strandline workflow: compacted, restored, guarded against running twice.

Run it with `python examples/strands_agent.py`; it needs the extra `strands`. A scripted model plays the agent.
An argument, such as postgresql://…, is the store that it uses, in place of a file of its own.

It ends with: the bucket was made 1 time
"""

import json
import sys
import tempfile
from collections.abc import AsyncIterator
from typing import Any

from strands import Agent, tool
from strands.models.model import Model
from strands.types.exceptions import ContextWindowOverflowException

import strandline
from strandline.integrations.strands import StrandlineConversationManager, StrandlineEffects, StrandlineSessionManager

WINDOW = 16  # messages that the scripted model takes
made: list[str] = []  # what the world outside has seen


@tool
def make_bucket(region: str) -> str:
    """Make a bucket.

    Args:
        region: where.
    """
    made.append(region)
    return f"bucket-7f3a-{len(made)}"


class Scripted(Model):
    """Plays the model: it makes a bucket when it is asked to, and else says that it went on."""

    def update_config(self, **config: Any) -> None:
        """Take no configuration."""

    def get_config(self) -> dict[str, int]:
        """Say how large the window is."""
        return {"context_window_limit": 100_000}

    def structured_output(self, *args: Any, **kwargs: Any) -> Any:
        """Give none."""
        raise NotImplementedError

    async def stream(self, messages: Any, *args: Any, **kwargs: Any) -> AsyncIterator[dict[str, Any]]:
        """Answer the last message."""
        if len(messages) > WINDOW:
            raise ContextWindowOverflowException(f"{len(messages)} messages")
        last = messages[-1]["content"][0]
        start: dict[str, Any] = {}
        delta: dict[str, Any] = {"text": f"Went on with {last.get('text', 'the bucket')} See logs/{len(messages)}.txt."}
        if last.get("text") == "Make the bucket.":
            start = {"toolUse": {"toolUseId": "call-1", "name": "make_bucket"}}
            delta = {"toolUse": {"input": json.dumps({"region": "eu"})}}
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockStart": {"start": start}}
        yield {"contentBlockDelta": {"delta": delta}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if start else "end_turn"}}


def start(db: strandline.Strandline) -> Agent:
    """Return the agent, as each process makes it."""
    sessions = StrandlineSessionManager(db.tenant("acme"), "session-1")
    workflow = sessions.workflow("builder")
    return Agent(
        agent_id="builder",
        model=Scripted(),
        tools=[make_bucket],
        session_manager=sessions,
        conversation_manager=StrandlineConversationManager(workflow, keep_messages=6, summary_tokens=400),
        hooks=[StrandlineEffects(workflow)],
        callback_handler=None,
    )


with tempfile.TemporaryDirectory() as folder:
    path = sys.argv[1] if sys.argv[1:] else f"{folder}/agent.db"
    with strandline.open(path) as db:
        agent = start(db)
        agent("Never push to main.")
        for number in range(30):
            agent(f"Step {number}.")
        agent("Make the bucket.")
        live = agent.messages
        print(
            f"the agent's list has {len(live)} messages, {agent.conversation_manager.removed_message_count} are covered"
        )

    with strandline.open(path) as db:  # another process
        agent = start(db)
        print("the restored list is the one that was live:", agent.messages == live)
        print("the constraint is carried verbatim:", "Never push to main." in agent.messages[0]["content"][0]["text"])
        agent("Make the bucket.")  # the scripted model gives its call the id that it gave before
        print("the store is sound:", db.verify().problems == ())
print(f"the bucket was made {len(made)} time")
