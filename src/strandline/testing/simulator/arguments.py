"""What the verbs of a schedule are given: little, so that what they mean is the same rows."""

from __future__ import annotations

from strandline.model import constructors as make
from strandline.model.event import NewEvent

SUBJECTS = ("release", "deploy")
ISSUES = ("scope", "leak")
KEYS = 7  # different batches that anybody appends
HUSHED = "hush"  # an audience that the narrow view does not read; it stands in the text of what is for it
VIEW = "pub"
VIEW_AUDIENCES = ("press", "legal")


def said(number: int) -> str:
    """Return the text of a message, with references of its own."""
    return f"Step {number} wrote bucket-{number:04x} from /srv/out/{number:04x}/report.json."


def paths_of(number: int) -> list[str]:
    """Return more references than a summary has room for."""
    return [f"/srv/all/{number:04x}/{part}/report-{number}-{part}.json" for part in range(6)]


def spoken(number: int, *, key: str | None = None, audience: str | None = None) -> NewEvent:
    """Return a message of the agent."""
    text = said(number) if audience is None else f"{said(number)} For {audience} only."
    return make.message("assistant", text, key=key, actor="agent", audience=audience)


def batch_of(number: int) -> list[NewEvent]:
    """Return the events of a batch. What has a key has the same content whoever appends it."""
    kind, key = number % 8, number % KEYS
    keyed = spoken(100 + key, key=f"k{key}")
    if kind == 0:
        return [keyed]
    if kind == 1:
        return [keyed, spoken(100 + (key + 1) % KEYS, key=f"k{(key + 1) % KEYS}")]
    if kind == 2:
        return [spoken(200 + number % 50), keyed]
    if kind == 3:
        call = f"c{number % 3}"
        return [
            make.tool_call(call, "look", {"at": number % 3}, key=f"call-{call}", actor="agent"),
            make.tool_result(call, f"bucket-{300 + number % 3:04x}", key=f"result-{call}", actor="agent"),
        ]
    if kind == 4:
        return [spoken(400 + key, key=f"h{key}", audience=HUSHED)]
    if kind == 5:
        return [make.issue(ISSUES[number // 8 % 2], "It leaks."), keyed]
    if kind == 6:
        return [make.constraint(f"rule-{number // 8 % 3}", "Never drop a table.", actor="user")]
    return [make.tool_call(f"o{number % 3}", "wait", {}, key=f"open-{number % 3}", actor="agent"), keyed]
