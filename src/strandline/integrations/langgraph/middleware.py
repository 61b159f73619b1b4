"""The middleware of LangChain's agents: the model's context comes from the log, tool calls go through its ledger (C34).

The state keeps its messages: what the model is shown is put together for each call, and nothing is removed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Annotated, Any, Final, NotRequired, cast

from langchain.agents.middleware.types import (
    AgentMiddleware,
    AgentState,
    ExtendedModelResponse,
    ModelRequest,
    ModelResponse,
    PrivateStateAttr,
    ToolCallRequest,
)
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, RemoveMessage, ToolMessage
from langgraph.types import Command

from strandline import ActionNeed, Basis, LangChainSummarizer, Tenant, Workflow
from strandline.integrations.agent_memory import Told
from strandline.integrations.langgraph.ledger import TELL, ToolLedger, ToolProbe, ToolSubject
from strandline.integrations.langgraph.place import BASIS_KEY, Home, StateBasis, basis_of, place_now
from strandline.integrations.langgraph.sizes import Size, Trigger, sizes_of
from strandline.integrations.langgraph.turns import STRICT, Turn, Turns
from strandline.limits import SUMMARIZER_DEADLINE_S

NAME: Final = "StrandlineMiddleware"


class StrandlineState(AgentState[Any]):
    """The state of an agent with the middleware: one private key more."""

    strandline_basis: NotRequired[Annotated[StateBasis | None, PrivateStateAttr]]


class StrandlineMiddleware(AgentMiddleware[AgentState[Any], Any, Any]):
    """Keeps an agent's context within a budget, and its tools from running twice.

    Put it first among the middleware of an agent: then it records what the others make of a message, and they see what
    the model is shown.
    """

    state_schema = StrandlineState

    def __init__(
        self,
        memory: Tenant | Workflow,
        *,
        agent: str = "agent",
        view: str | None = None,
        own_workflow: bool = False,
        budget: int | None = None,
        trigger: Trigger | None = None,
        keep: Size | None = None,
        summarizer: object = None,
        deadline_s: float = SUMMARIZER_DEADLINE_S,
        background: bool = False,
        told: Told | None = None,
        reads: Collection[str] = (),
        probes: Mapping[str, ToolProbe] | None = None,
        subjects: Mapping[str, ToolSubject] | None = None,
        guards: Mapping[str, Sequence[ActionNeed]] | None = None,
        asks: Collection[str] = (),
        refusals: str = TELL,
        restore: str = STRICT,
        trim_state: bool = False,
        name: str = NAME,
    ) -> None:
        """Take a tenant, of which each thread is a workflow; or a workflow, or a view of one.

        Args:
            memory: where the log is. Async graphs take the same: its calls run in threads.
            agent: who it is in the log: the actor of its answers and calls. Not the name of one who grants approvals.
            view: through which it reads its workflow (I21).
            own_workflow: called by another agent, it has a workflow of its own for each call: `thread/agent/task`.
            budget: tokens of the messages that the model is shown, system prompt and tools not counted; None: the
                model's window with a trigger, or CONTEXT_BUDGET_TOKENS.
            trigger: when to compact, as of LangChain's `SummarizationMiddleware`; None: at `budget`.
            keep: how much is to stand verbatim behind a summary, as of the same; a wish within limits.
            summarizer: as of `Workflow.compact`, or a chat model of LangChain; None: the one that quotes.
            deadline_s, background, told: as of `AgentMemory`.
            reads: the tools that change nothing outside: they run each time that the graph calls them.
            probes, subjects: of some other tools, as of `Workflow.toolset`.
            guards: what must hold, so that some tools may run (I20).
            asks: the guarded tools for which a person is asked where an approval is missing: the graph is interrupted,
                and resumed with `{"type": "approve" or "reject", "by": who}`.
            refusals: "tell": the model reads why a tool was refused; "raise": the run ends with the error.
            restore: "strict": a run that goes back to an earlier checkpoint is refused; "rewind": the log goes back,
                too, on a branch of its own.
            trim_state: remove from the state what a summary covers; the log holds it.
            name: of the middleware: "SummarizationMiddleware" takes the place of that of deepagents.

        Raises InvalidInputError: an argument that can't be.
        """
        super().__init__()
        self._name, self._trims = name, trim_state
        self.ledger = ToolLedger(
            agent=agent,
            reads=reads,
            probes=probes or {},
            subjects=subjects or {},
            guards=guards or {},
            asks=asks,
            refusals=refusals,
        )
        self.turns = Turns(
            Home(memory=memory, agent=agent, view=view, own_workflow=own_workflow),
            sizes_of(budget, trigger, keep),
            summarizer=LangChainSummarizer(summarizer) if isinstance(summarizer, BaseChatModel) else summarizer,
            deadline_s=deadline_s,
            background=background,
            told=told,
            restore=restore,
        )

    @property
    def name(self) -> str:
        """The name under which an agent knows the middleware."""
        return self._name

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ExtendedModelResponse[Any]:
        """Record the state, show the model the context, and record its answer."""
        turn = self._begin(request)
        response = handler(_showing(request, turn))
        return self._end(request, turn, response)

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ExtendedModelResponse[Any]:
        """As `wrap_model_call`. A write that is under way when the call is cancelled settles by itself."""
        turn = await asyncio.to_thread(self._begin, request)
        response = await handler(_showing(request, turn))
        return await asyncio.to_thread(self._end, request, turn, response)

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]]
    ) -> ToolMessage | Command[Any]:
        """Run a tool through the ledger of effects."""
        workflow = self.turns.home.workflow(place_now())
        return cast(
            "ToolMessage | Command[Any]", self.ledger.call(workflow, request, handler, _decided_on(request, workflow))
        )

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]]
    ) -> ToolMessage | Command[Any]:
        """As `wrap_tool_call`; a call that is cancelled counts as one of unknown outcome."""
        workflow = self.turns.home.workflow(place_now())
        answer = await self.ledger.acall(workflow, request, handler, _decided_on(request, workflow))
        return cast("ToolMessage | Command[Any]", answer)

    def _begin(self, request: ModelRequest[Any]) -> Turn:
        profile = request.model.profile or {}
        return self.turns.begin(
            place_now(),
            request.state["messages"],
            basis_of(request.state),
            shown=request.messages,
            window=profile.get("max_input_tokens"),
        )

    def _end(self, request: ModelRequest[Any], turn: Turn, response: ModelResponse[Any]) -> ExtendedModelResponse[Any]:
        basis = self.turns.end(turn, request.state["messages"], response.result)
        update: dict[str, object] = {BASIS_KEY: basis}
        if self._trims and turn.rendered.before_tail:
            update["messages"] = [RemoveMessage(id=str(said.id)) for said in turn.rendered.before_tail]
        return ExtendedModelResponse(model_response=response, command=Command(update=update))


def _showing(request: ModelRequest[Any], turn: Turn) -> ModelRequest[Any]:
    """Return the request with the context in the place of its messages; what others added for this call stays."""
    of_state = {said.id for said in request.state["messages"]}
    added: list[BaseMessage] = [said for said in request.messages if said.id is None or said.id not in of_state]
    return request.override(messages=[*turn.rendered.messages, *added])  # type: ignore[list-item]


def _decided_on(request: ToolCallRequest, workflow: Workflow) -> Basis | None:
    """Return the context from which a call was decided on, where the state tells it."""
    basis = basis_of(request.state)
    if basis is None or (basis["workflow"], basis["view"]) != (workflow.name, workflow.view_name):
        return None
    return Basis(view=basis["view"], generation=basis["generation"], revision=basis["revision"])
