"""The command line. `main` is its door; nothing slow is imported before a command needs it."""

from __future__ import annotations

import gc
import sys
from typing import Final

COLLECT_AFTER_OBJECTS: Final = 100_000


def main() -> None:
    """Run the command line with the arguments of this process, and exit with its code."""
    # A command makes many objects that live, and few cycles: looking for cycles as often as Python does by default took
    # 8 % of the time of an import with compaction.
    gc.set_threshold(COLLECT_AFTER_OBJECTS)
    if sys.argv[1:3] == ["claude-code", "hook"]:
        # An agent waits for it at each turn: no other command is loaded. And its exit codes mean something else:
        # 2, which is a usage error elsewhere, stops the agent.
        from strandline.integrations.claude_code.hook import main as hook

        sys.exit(hook(sys.argv[3:]))
    try:
        from strandline.cli.app import app
    except KeyboardInterrupt:
        sys.exit(130)
    app(prog_name="strandline")
