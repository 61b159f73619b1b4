"""The verbs about actions outside: effects and guards (C23, C24)."""

from __future__ import annotations

from strandline.client.verbs import Verbs


class ActionVerbs(Verbs):
    """A part of `Workflow`."""
