"""Guests of Strands Agents (C38): sessions that are workflows, and a conversation manager that deletes nothing.

    sessions = StrandlineSessionManager(db.tenant("acme"), "session-1")
    memory = StrandlineConversationManager(sessions.workflow("builder"))
    agent = Agent(agent_id="builder", session_manager=sessions, conversation_manager=memory)

They need the extra `strands`.
"""

from strandline.integrations.extra import needs_extra

with needs_extra("the Strands integration", "strands"):
    from strandline.integrations.strands.conversation import StrandlineConversationManager
    from strandline.integrations.strands.effects import StrandlineEffects
    from strandline.integrations.strands.sessions import StrandlineSessionManager, StrandlineSessionRepository

__all__ = [
    "StrandlineConversationManager",
    "StrandlineEffects",
    "StrandlineSessionManager",
    "StrandlineSessionRepository",
]
