"""Agents of Pydantic AI with their memory in the log (C37): a capability, a toolset of effects, a conversation store.

    agent = Agent(model, capabilities=[StrandlineMemory(AgentMemory(workflow, budget=8_000))])

It needs the extra `pydantic-ai`.
"""

from strandline.integrations.extra import needs_extra

with needs_extra("the Pydantic AI integration", "pydantic-ai"):
    from strandline.integrations.pydantic_ai.capability import StrandlineMemory
    from strandline.integrations.pydantic_ai.conversations import StrandlineConversationStore
    from strandline.integrations.pydantic_ai.toolset import EffectToolset

__all__ = ["EffectToolset", "StrandlineConversationStore", "StrandlineMemory"]
