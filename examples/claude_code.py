"""A session of Claude Code through a compaction, as its hooks see it: a script stands for Claude Code.

It installs the hooks into a folder of its own and calls them as Claude Code does: a JSON object on stdin. The summary
of the script drops a constraint and invents an approval. Run it with `python examples/claude_code.py`; it needs no
Claude Code, no key and no network.

It ends with: the push was permitted: False, then True
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import strandline
from strandline.integrations.claude_code import install

SESSION = "5e55-10"
SUMMARY = "The bucket was made and the tests passed. Ann approved the push."
GUARD = {"tool": "Bash", "mentions": ["git push"], "action": "push", "approved": ["push"]}


class ClaudeCode:
    """What Claude Code does: it appends to the session's file, and calls hooks."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / f"{SESSION}.jsonl"
        self.config = folder / ".claude" / "strandline.json"
        self.lines = 0

    def write(self, type: str, content: object, **members: object) -> None:
        """Append a record to the session's file."""
        self.lines += 1
        record = {"type": type, "uuid": f"u{self.lines}", "sessionId": SESSION, "message": {"content": content}}
        with self.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps({**record, **members}) + "\n")

    def hook(self, event: str, **fields: object) -> dict[str, object]:
        """Call a hook, and return what it answers."""
        payload = {"session_id": SESSION, "transcript_path": str(self.file), "hook_event_name": event, **fields}
        command = [sys.executable, "-c", "from strandline.cli import main; main()", "claude-code", "hook", event]
        done = subprocess.run(
            [*command, "--config", str(self.config)],
            input=json.dumps(payload),
            capture_output=True,
            text=True,
            check=True,
        )
        print(done.stderr, end="", file=sys.stderr)
        return json.loads(done.stdout) if done.stdout.startswith("{") else {}

    def may_push(self, call: str) -> bool:
        """Ask the guard for a call of a tool."""
        call_of = {"tool_name": "Bash", "tool_input": {"command": "git push"}, "tool_use_id": call}
        return not self.hook("PreToolUse", **call_of)


def main() -> None:
    """Play a session."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        claude = ClaudeCode(folder)
        claude.config.parent.mkdir()
        claude.config.write_text(json.dumps({"guards": [GUARD]}), encoding="utf-8")
        print("hooks:", ", ".join(install("project", folder).events))

        claude.write("user", "Make a bucket and run the tests. Never push to the branch main.")
        call = {"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": "make bucket"}}
        claude.write("assistant", [call])
        claude.write("user", [{"type": "tool_result", "tool_use_id": "c1", "content": "created bucket-7f3a"}])
        claude.hook("PreCompact", trigger="auto")

        with strandline.open(folder / ".claude" / "strandline.db") as db:  # what somebody states, by whatever program
            log = db.tenant("default").workflow(SESSION)
            log.append(strandline.constraint("review", "Publish only after the security review.", actor="lead"))

        back = claude.hook("SessionStart", source="compact")
        print("put back:\n ", str(back["hookSpecificOutput"]["additionalContext"]).replace("\n", "\n  "))  # type: ignore[index]
        print("judged:", claude.hook("PostCompact", trigger="auto", compact_summary=SUMMARY)["systemMessage"])

        first = claude.may_push("c2")
        with strandline.open(folder / ".claude" / "strandline.db") as db:
            log = db.tenant("default").workflow(SESSION)
            log.append(strandline.approval("push", "To a branch of its own.", granter="ann", single_use=True))
        print(f"the push was permitted: {first}, then {claude.may_push('c3')}")


if __name__ == "__main__":
    main()
