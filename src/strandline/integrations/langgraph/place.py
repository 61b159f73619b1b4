"""Where a step of a graph stands: its thread, its agent, and the workflow that is its memory (C34, I21).

The thread is the workflow, as it is for the saver. An agent that another one calls may have a workflow of its own: one
for each call, under a name that a resumed run finds again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypedDict, cast

from langchain_core.runnables import RunnableConfig
from langgraph.config import get_config

from strandline import InvalidInputError, Tenant, Workflow

BASIS_KEY: Final = "strandline_basis"
"""The private key of the state under which the middleware keeps a `StateBasis`; the saver's gate reads it."""

_REPLAYING: Final = "__pregel_replay_state"  # LangGraph's own: set in a run that goes back to an explicit checkpoint
_NS_JOINT: Final = "|"


class StateBasis(TypedDict):
    """What a state was made from: the context of its last answer, and how far the log was recorded then.

    With the middleware a state is context-free (I14): the model's context always comes from the log.
    """

    workflow: str
    view: str
    generation: int
    revision: int  # of the context that the model saw
    recorded: int  # of the log when the answer stood in it


def basis_of(state: object) -> StateBasis | None:
    """Return what a state was made from; None: no answer was recorded with it, or it is no mapping."""
    found = state.get(BASIS_KEY) if isinstance(state, Mapping) else None
    return cast("StateBasis", found) if isinstance(found, Mapping) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The thread of a step, and whose graph it belongs to: "" of the outermost, else the path of the calling task."""

    thread: str
    caller: str
    replaying: bool  # the run goes back to an explicit checkpoint


def place_now() -> Place:
    """Return where the step that runs now stands.

    Raises:
        InvalidInputError: it runs outside a graph, or in a run without a thread.
    """
    try:
        config = get_config()
    except RuntimeError as error:
        raise InvalidInputError("this runs inside a graph of LangGraph, and nowhere else") from error
    return place_of(config)


def place_of(config: RunnableConfig) -> Place:
    """Return where a step with this config stands.

    Raises:
        InvalidInputError: the run has no thread.
    """
    told = config.get("configurable", {})
    thread = told.get("thread_id")
    if thread is None:
        raise InvalidInputError(
            "the run has no thread_id, so it is not known whose memory it is",
            hint='Run it with config={"configurable": {"thread_id": …}}; a thread is a workflow of the tenant.',
        )
    path = str(told.get("checkpoint_ns") or "")
    return Place(thread=str(thread), caller=path.rpartition(_NS_JOINT)[0], replaying=told.get(_REPLAYING) is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """Where an agent's memory lives.

    Args:
        memory: a tenant: each thread is a workflow of it; or one workflow, or a view of one.
        agent: who it is: the actor of what it says and does.
        view: through which the agent reads its workflow.
        own_workflow: an agent that another one calls has a workflow of its own for each call.
    """

    memory: Tenant | Workflow
    agent: str
    view: str | None
    own_workflow: bool

    def __post_init__(self) -> None:
        if not isinstance(self.memory, Tenant | Workflow):
            raise InvalidInputError(
                f"memory is a Tenant or a Workflow, not a {type(self.memory).__name__}",
                hint='Give `strandline.open(…).tenant("…")`, also to async graphs: each thread is a workflow of it.',
            )
        if not isinstance(self.agent, str) or not self.agent:
            raise InvalidInputError(f"agent is a name, not {self.agent!r}")
        if isinstance(self.memory, Workflow) and self.own_workflow:
            raise InvalidInputError("own_workflow makes workflows of a tenant, and a workflow was given")

    def owns(self, place: Place) -> bool:
        """Tell whether the workflow of a step holds one conversation of this agent, and none beside it."""
        return isinstance(self.memory, Tenant) and (self.own_workflow or not place.caller)

    def workflow(self, place: Place) -> Workflow:
        """Return the workflow of a step, through the agent's view.

        Raises:
            TenantScopeError: the thread's name can't be that of a workflow.
        """
        if isinstance(self.memory, Workflow):
            workflow = self.memory
        else:
            own = f"/{self.agent}/{place.caller.rpartition(_NS_JOINT)[2]}" if self.own_workflow and place.caller else ""
            workflow = self.memory.workflow(f"{place.thread}{own}")
        return workflow if self.view is None else workflow.view(self.view)
