"""A LangGraph thread whose checkpoints lose nobody's turn: it survives its process, and says who was overtaken.

    python examples/langgraph_saver.py [STORE]

STORE, such as postgresql://…, takes the place of a file of its own.

It ends with: the thread holds 7 messages, and Tuesday: True

It needs the extra `langgraph`, no key and no network: the model is a function.
"""

from __future__ import annotations

import sys
import tempfile
from typing import Any

from langgraph.graph import START, MessagesState, StateGraph

import strandline
from strandline.integrations.langgraph import StrandlineSaver

THREAD: Any = {"configurable": {"thread_id": "release-42"}}


def agent(saver: StrandlineSaver, meanwhile: Any = None) -> Any:
    """Return a graph of one node that answers."""

    def answer(state: MessagesState) -> dict[str, Any]:
        if meanwhile is not None:
            meanwhile()
        return {"messages": [("ai", f"I know {len(state['messages'])} messages.")]}

    builder = StateGraph(MessagesState)
    builder.add_node("answer", answer)
    builder.add_edge(START, "answer")
    return builder.compile(checkpointer=saver)


def say(graph: Any, text: str) -> str:
    """Run a turn, and return the answer."""
    told = graph.invoke({"messages": [("user", text)]}, THREAD, durability="sync")
    return str(told["messages"][-1].content)


def main() -> None:
    """Tell it."""
    with tempfile.TemporaryDirectory() as folder:
        path = sys.argv[1] if sys.argv[1:] else f"{folder}/agent.db"
        with strandline.open(path) as db:
            print("first process:", say(agent(StrandlineSaver(db.tenant("acme"))), "Deploy on Monday."))
        with strandline.open(path) as db:
            tenant = db.tenant("acme")
            print("second process:", say(agent(StrandlineSaver(tenant)), "What did I say?"))

            def overtake() -> None:
                print("meanwhile, another run:", say(agent(StrandlineSaver(tenant)), "Deploy on Tuesday."))

            try:
                say(agent(StrandlineSaver(tenant), overtake), "Deploy today.")
            except strandline.StateConflictError as refused:
                print("the run that was overtaken:", refused.reason)
            held = agent(StrandlineSaver(tenant)).get_state(THREAD).values["messages"]
            print("the thread holds", len(held), "messages, and Tuesday:", any("Tuesday" in m.content for m in held))


if __name__ == "__main__":
    main()
