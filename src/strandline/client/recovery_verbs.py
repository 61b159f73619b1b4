"""The verbs by which a controller decides about the memory: cases and answers, revert, rewind, fork (C17, C21, C22)."""

from __future__ import annotations

from strandline.client.verbs import Verbs


class RecoveryVerbs(Verbs):
    """A part of `Workflow`."""
