"""A session of the OpenAI Agents SDK on the log (C36): nothing is deleted, and what the model reads is bounded.

    session = StrandlineSession(db.tenant("acme").workflow("support-17"))
    result = await Runner.run(agent, "…", session=session)

`effect_tool` needs the extra `openai-agents`; the session itself needs nothing.
"""

from strandline.integrations.openai_agents.session import StrandlineSession
from strandline.integrations.openai_agents.tools import effect_tool

__all__ = ["StrandlineSession", "effect_tool"]
