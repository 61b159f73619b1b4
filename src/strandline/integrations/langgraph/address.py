"""Where a checkpoint stands, as a graph's config says it: thread, namespace, id, and what its reader had seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from langchain_core.runnables import RunnableConfig

from strandline import InvalidInputError

STORE_WORKFLOW = "langgraph/store"
"""The workflow of a tenant whose saved states are the items of its store; no thread may have its name."""

# LangChain keeps keys that begin so out of a run's metadata.
SEEN = "__strandline_seen"
_OF_A_REPLAY = "__pregel_replay_state"


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A checkpoint, or the newest one, in the history of a thread."""

    thread: str  # the workflow
    line: str  # LangGraph's namespace: "" is the graph's own, others are those of its subgraphs
    state_id: str | None  # None: the newest
    seen: int | None  # the newest position of the line when the writer read it; None: he does not say


def thread_of(thread_id: object) -> str:
    """Return the workflow that a thread is.

    Raises:
        InvalidInputError: it is that of the store's items, which a thread's deletion would take away.
    """
    thread = str(thread_id)
    if thread == STORE_WORKFLOW:
        raise InvalidInputError(f"{thread!r} holds the items of the store, and is no thread: give it another thread_id")
    return thread


def address_of(config: RunnableConfig) -> Address:
    """Read a config.

    Raises:
        InvalidInputError: it names no thread, or what can be none.
    """
    named: Mapping[str, object] = config.get("configurable") or {}
    if named.get("thread_id") is None:
        said = "the config names no thread: configurable.thread_id is missing"
        raise InvalidInputError(said, hint='Pass config={"configurable": {"thread_id": "…"}}.')
    thread, line = thread_of(named["thread_id"]), str(named.get("checkpoint_ns") or "")
    state_id = named.get("checkpoint_id")
    return Address(
        thread=thread,
        line=line,
        state_id=str(state_id) if state_id else None,
        seen=_seen(config, named, thread, line),
    )


def _seen(config: RunnableConfig, named: Mapping[str, object], thread: str, line: str) -> int | None:
    """Return what the writer of a checkpoint knew of its line.

    A run's config is merged with that of the tuple which the saver handed to it, and goes through to each `put`: so the
    token arrives where the same line was read. A run that was given nothing has none: the line was empty. A config that
    no graph made says nothing, and nor does a subgraph that is replayed from before its first checkpoint.
    """
    token = named.get(SEEN)
    if isinstance(token, (list, tuple)) and len(token) == 3 and tuple(token[:2]) == (thread, line):
        position = token[2]
        return position if isinstance(position, int) else None
    of_a_graph = "recursion_limit" in config  # LangChain puts it into each config that it hands on
    return 0 if of_a_graph and named.get(_OF_A_REPLAY) is None else None


def config_of(thread: str, line: str, state_id: str, seen: int | None = None) -> RunnableConfig:
    """Return the config that names a checkpoint; with `seen`, who writes behind it says what he had read."""
    named: dict[str, object] = {"thread_id": thread, "checkpoint_ns": line, "checkpoint_id": state_id}
    if seen is not None:
        named[SEEN] = (thread, line, seen)
    return {"configurable": named}
