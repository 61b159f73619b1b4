"""One hook, from its input to its exit code. Whatever fails, Claude Code gets an answer that it understands.

| exit code | Claude Code |
| --- | --- |
| 0 | goes on, and reads stdout |
| 1 | goes on, and shows the first line of stderr: the hook failed open |
| 2 | stops what it was about to do, and reads stderr: the hook failed closed |
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, Final, TextIO

import strandline
from strandline.errors import InvalidInputError, StrandlineError
from strandline.integrations.claude_code.config import EVENTS, FAILURES, HookConfig, read_config
from strandline.integrations.claude_code.guards import applying
from strandline.integrations.claude_code.handlers import HANDLERS, SILENCE, Reply
from strandline.integrations.claude_code.payload import read_payload
from strandline.integrations.claude_code.session import Session
from strandline.limits import HOOK_INPUT_BYTES_MAX

FAILED_OPEN: Final = 1
FAILED_CLOSED: Final = 2
_USAGE: Final = f"strandline claude-code hook EVENT --config FILE, EVENT being one of {', '.join(EVENTS)}"


def main(arguments: Sequence[str]) -> int:
    """Run a hook on this process's stdin, stdout and stderr; return its exit code."""
    return run(arguments, sys.stdin.buffer, sys.stdout, sys.stderr)


def run(arguments: Sequence[str], stdin: BinaryIO, stdout: TextIO, stderr: TextIO) -> int:
    """Run a hook; return its exit code. Nothing is raised, and nothing is half printed."""
    event = arguments[0] if arguments else ""
    failure = FAILURES.get(event, "open")
    try:
        path = _config_path(arguments)
        config = read_config(path)
        failure = config.on_failure_of(event)
        reply, notes = answer(event, config, stdin.read(HOOK_INPUT_BYTES_MAX + 1))
    except Exception as error:  # noqa: BLE001  the last resort: one line on stderr, and the code that was configured
        print(f"strandline: the hook of {event or '?'} failed {failure}: {_said(error)}", file=stderr)
        return FAILED_CLOSED if failure == "closed" else FAILED_OPEN
    for note in notes:
        print(f"strandline: {note}", file=stderr)
    text = json.dumps(reply.value, ensure_ascii=True) if reply.value is not None else reply.text
    if text:
        print(text, file=stdout, flush=True)
    return 0


def answer(event: str, config: HookConfig, data: bytes) -> tuple[Reply, list[str]]:
    """Return what a hook answers to an input, and what it says on stderr.

    Raises:
        StrandlineError: it could not do its work.
    """
    payload = read_payload(data, event)
    if event == "PreToolUse" and not applying(config.guards, payload):
        return SILENCE, []  # no rule is about this call: no store is opened for it
    with strandline.open(config.store) as db:
        workflow = db.tenant(config.tenant).workflow(config.workflow or payload.session_id)
        session = Session(payload, workflow)
        return HANDLERS[event](session, config), session.notes


def _config_path(arguments: Sequence[str]) -> Path:
    if len(arguments) != 3 or arguments[0] not in EVENTS or arguments[1] != "--config":
        raise InvalidInputError(f"arguments {list(arguments)!r}", hint=f"It is called as `{_USAGE}`.")
    return Path(arguments[2])


def _said(error: Exception) -> str:
    if isinstance(error, StrandlineError):
        return f"{error.message}. {error.hint}".replace("\n", " ")
    return f"{type(error).__name__}: {error}".replace("\n", " ")
