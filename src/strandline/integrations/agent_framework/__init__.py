"""Guests of the Microsoft Agent Framework (C38): a history that is a log, checkpoints that are saved states.

    history = StrandlineHistoryProvider(db.tenant("acme"))
    checkpoints = StrandlineCheckpointStorage(db.tenant("acme"), "order-7")

They need the extra `agent-framework`.
"""

from strandline.integrations.extra import needs_extra

with needs_extra("the integration of the Microsoft Agent Framework", "agent-framework"):
    from strandline.integrations.agent_framework.checkpoints import StrandlineCheckpointStorage
    from strandline.integrations.agent_framework.effects import StrandlineEffects
    from strandline.integrations.agent_framework.history import StrandlineHistoryProvider

__all__ = ["StrandlineCheckpointStorage", "StrandlineEffects", "StrandlineHistoryProvider"]
