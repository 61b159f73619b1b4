"""Google ADK's guests (C38): sessions that are workflows, summaries that are validated, tools that run once.

    sessions = StrandlineSessionService(db.tenant("acme"))
    summarizer = StrandlineSummarizer(sessions)
    plugin = StrandlineEffects(sessions)

They need the extra `google-adk`.
"""

from strandline.integrations.extra import needs_extra

with needs_extra("the Google ADK integration", "google-adk"):
    from strandline.integrations.google_adk.effects import StrandlineEffects
    from strandline.integrations.google_adk.sessions import StrandlineSessionService
    from strandline.integrations.google_adk.summarizer import StrandlineSummarizer

__all__ = ["StrandlineEffects", "StrandlineSessionService", "StrandlineSummarizer"]
