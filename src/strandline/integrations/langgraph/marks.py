"""Which results of a state the ledger of effects recorded, and which of them in another log.

A state may come from elsewhere: a thread is copied, or an agent with a memory of its own hands its messages on. What
the ledger of that memory holds, this log lacks, and a result that nobody records would be lost to the model (C34).
"""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.messages import BaseMessage, ToolMessage

from strandline import InvalidInputError, Workflow
from strandline.integrations.langgraph.messages import LEDGER_MARK


def is_known(workflow: Workflow, key: str) -> bool:
    """Tell whether the ledger holds an effect of this key."""
    try:
        workflow.effect_args(key)
    except InvalidInputError:
        return False
    return True


def recorded_elsewhere(workflow: Workflow, messages: Sequence[BaseMessage]) -> set[str]:
    """Return the ids of those calls whose result another ledger recorded, and this one doesn't hold."""
    marked = ((said, said.additional_kwargs.get(LEDGER_MARK)) for said in messages if isinstance(said, ToolMessage))
    foreign = {said.tool_call_id for said, mark in marked if mark not in (None, workflow.name)}
    return {call_id for call_id in foreign if not is_known(workflow, call_id)}
