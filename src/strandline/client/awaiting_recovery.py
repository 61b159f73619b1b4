"""`recovery_verbs` for event loops."""

from __future__ import annotations

from strandline.client.recovery_verbs import RecoveryVerbs


class AsyncRecoveryVerbs:
    """A part of `AsyncWorkflow`."""

    _workflow: RecoveryVerbs
