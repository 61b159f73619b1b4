"""What watches a command: log lines on stderr, where STRANDLINE_LOG asks for them (C28)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import typer

if TYPE_CHECKING:
    from strandline import Hook

VARIABLE: Final = "STRANDLINE_LOG"


def hooks_of_environment() -> list[Hook]:
    """Return the hooks that the environment asks for."""
    wanted = os.environ.get(VARIABLE, "")
    if not wanted:
        return []
    if wanted not in ("json", "json-debug"):
        said = f"{wanted!r} is no kind of log; there are json, and json-debug for every occurrence"
        raise typer.BadParameter(said, param_hint=VARIABLE)
    import logging

    from strandline.telemetry import log_json

    return [log_json(level=logging.DEBUG if wanted == "json-debug" else logging.INFO)]
