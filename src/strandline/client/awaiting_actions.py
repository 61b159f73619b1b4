"""`action_verbs` for event loops."""

from __future__ import annotations

from strandline.client.action_verbs import ActionVerbs


class AsyncActionVerbs:
    """A part of `AsyncWorkflow`."""

    _workflow: ActionVerbs
