"""A torn line drops everything before the last compaction, without an error.

The summary is one line of the session's file, and the messages after it name it as their parent. The reader skips a
line that it can't parse, finds no parent, and takes the rest for the whole conversation.

claude-agent-sdk brings 385 MB of its own; it is not among the packages that Strandline is developed with. Install it
to see its half: python -m pip install claude-agent-sdk
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from unittest import mock

import strandline
from bench.faults.shown import Shown

PACKAGE = "claude-agent-sdk"
SESSION = "0b9f7c1e-5a0e-4a6b-9a57-2f6f6f3a4c10"
SPOKEN = [  # uuid, parent, kind, text
    ("u1", None, "user", "Prepare the release; never publish without a review."),
    ("a1", "u1", "assistant", "It is prepared as bucket-7f3a."),
    ("c1", None, "system", "Conversation compacted"),
    ("s1", "c1", "user", "This session goes on from a summary: never publish without a review; bucket-7f3a."),
    ("u2", "s1", "user", "continue"),
    ("a2", "u2", "assistant", "done"),
]


def stock(folder: Path) -> Shown:
    from claude_agent_sdk import get_session_messages

    write(folder / "projects" / "release" / f"{SESSION}.jsonl")
    with mock.patch.dict(os.environ, {"CLAUDE_CONFIG_DIR": str(folder)}):
        found = [message.message["content"] for message in get_session_messages(SESSION)]
    return Shown(held="summary" in str(found), said=f"the conversation is read as {found}, without an error")


def ours(folder: Path) -> Shown:
    path = folder / f"{SESSION}.jsonl"
    write(path)
    with strandline.open(folder / "agent.db") as db:
        workflow = db.tenant("acme").workflow("release-42")
        try:
            workflow.import_transcript(path)
        except strandline.ImportFormatError as error:
            refused, written = str(error), len(workflow.events())
        workflow.import_transcript(path, salvage=True)
        read = [event.text for event in workflow.events()]
    whole = all(text in read for _, _, kind, text in SPOKEN if kind != "system" and "summary" not in text)
    said = f"refused, {written} events written: {refused}. Asked to salvage, every whole message is read: {whole}"
    return Shown(held=whole and written == 0, said=said)


def write(path: Path) -> None:
    """Write a session of two turns, a compaction and a third turn; the line of its summary is cut short."""
    lines = [json.dumps(line(*each)) for each in SPOKEN]
    lines[3] = lines[3][: len(lines[3]) // 2]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def line(uuid: str, parent: str | None, kind: str, text: str) -> dict[str, object]:
    common = {"uuid": uuid, "parentUuid": parent, "sessionId": SESSION, "type": kind, "version": "2.1.332"}
    if kind == "system":
        return common | {"subtype": "compact_boundary", "logicalParentUuid": "a1", "content": text}
    summary = {"isCompactSummary": True} if uuid == "s1" else {}
    return common | summary | {"message": {"role": kind, "content": text}}
