"""The command line. `main` is its door; nothing slow is imported before a command needs it."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line with the arguments of this process, and exit with its code."""
    try:
        from strandline.cli.app import app
    except KeyboardInterrupt:
        sys.exit(130)
    app(prog_name="strandline")
