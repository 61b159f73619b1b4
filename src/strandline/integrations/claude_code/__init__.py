"""Hooks of Claude Code: its sessions get a log, its summaries are judged, what they drop is put back (C38).

`strandline claude-code install` writes them into settings.json; `docs/claude-code.md` says what each does. They need no
extra, and no Claude Code to be tested: a hook reads one JSON object on stdin and answers on stdout, stderr and by its
exit code.
"""

from strandline.integrations.claude_code.config import FAILURES, GuardRule, HookConfig, read_config
from strandline.integrations.claude_code.installing import Installed, install, status, uninstall

__all__ = ["FAILURES", "GuardRule", "HookConfig", "Installed", "install", "read_config", "status", "uninstall"]
