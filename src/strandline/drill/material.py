"""What the agents of the drill say: texts of known sizes, so that the figures of the incidents are exact."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import strandline as sl

BUCKET_WANTED: Final[dict[str, object]] = {"name": "reports", "region": "eu"}
ARCHIVE_WANTED: Final[dict[str, object]] = {"name": "archive", "region": "eu", "request_id": "req-0001"}
ARCHIVE_AGAIN: Final[dict[str, object]] = {"request_id": "req-0002", "region": "eu", "name": "archive"}


def report_text(turn: int) -> str:
    """Return what the agent says about the report of a turn."""
    days = [f"data/{name}-{turn}-{day}.csv" for day in range(1, 8) for name in ("orders", "refunds", "visits")]
    return (
        f"Report {turn} is made of {', '.join(days)}; {turn * 37 % 901} rows, checked by trace trc-{turn * 7919:06x}."
    )


# ---------------------------------------------------------------------------------------------- the half summary

ACTORS: Final = ("requirements", "test-generator", "security-reviewer", "publisher")
COVERED_SEQ: Final = 150
ASKED_SEQ: Final = 175
LAST_SEQ: Final = 180
ISSUE_SEQ: Final = 170
ISSUE: Final = "oauth-scope"
HISTORY_TOKENS: Final = 24_000
_REVIEW_BYTES: Final = 409  # of most events' texts; with the label of a part that makes HISTORY_TOKENS for 1–175
_TOPICS: Final = ("paging", "refunds", "rate limits", "idempotency", "webhooks", "error bodies", "audit log", "search")


def review_events(first: int, last: int) -> list[sl.NewEvent]:
    """Return events first..last of four agents that bring a release to its publication."""
    return [_review_event(seq) for seq in range(first, last + 1)]


def review_texts() -> list[str]:
    """Return the texts of all of them."""
    return [event.body for event in review_events(1, LAST_SEQ) if isinstance(event.body, str)]


def _review_event(seq: int) -> sl.NewEvent:
    key = f"review-{seq}"
    if seq == 1:
        text = (
            "Bring release 2.4.0 of the orders API to its publication: requirements, tests, security review, publish."
        )
        return sl.message("user", padded(text, _REVIEW_BYTES), actor="lead", key=key)
    if seq == 2:
        text = "Publish only after the security review is approved."
        return sl.constraint("publish", padded(text, _REVIEW_BYTES), actor="lead", key=key)
    if seq == ISSUE_SEQ:
        text = f"{ISSUE}: the token of the orders API may write where reading is enough. Not resolved."
        return sl.issue(ISSUE, padded(text, _REVIEW_BYTES), actor="security-reviewer", key=key)
    actor = ACTORS[seq % len(ACTORS)]
    topic = _TOPICS[seq // len(ACTORS) % len(_TOPICS)]
    said = {
        "requirements": f"Requirement REQ-{100 + seq} on {topic}: read in spec/orders-{seq}.md and taken over.",
        "test-generator": f"Tests for {topic} are written, see tests/orders/test_{seq}.py; {seq % 7 + 3} cases pass.",
        "security-reviewer": f"Reviewed src/orders/handler_{seq}.py for {topic}: no finding in this file.",
        "publisher": f"Notes on {topic} are drafted in notes/2.4.0-{seq}.md; publication waits.",
    }
    extra = 3 * (seq in _LONGER)
    return sl.message("assistant", padded(said[actor], _REVIEW_BYTES + extra), actor=actor, key=key)


_LONGER: Final = range(10, 21)  # a token more each, so that the sum is exact

# ---------------------------------------------------------------------------------------- the resurrected checkpoint

WORKING_SET_TOKENS: Final = 200_000
WORKING_SET_LINES: Final = 2_000
LATER_LINES: Final = 40
COMMIT: Final = "9f1c2e7a4b60d3588e1fa97c25d04b6e83a1f5c2"
RULE: Final = "never touch the billing tables"
APPROACH: Final = "approach-lru-cache"
COMMIT_LINE: Final = 1_190
RULE_LINE: Final = 33
APPROACH_LINE: Final = 1_016
_WORKING_BYTES: Final = 298
_LABELS: Final = {RULE_LINE: 21, APPROACH_LINE: 27}  # bytes of the label that a context puts before such an event


def working_events(first: int, last: int) -> list[sl.NewEvent]:
    """Return lines first..last, from 0, of a long refactoring, as events."""
    return [_working_event(number) for number in range(first, last + 1)]


def working_line(number: int) -> str:
    """Return one line of it, as an agent without a log keeps it."""
    if number == COMMIT_LINE:
        text = f"Pushed the branch; the commit to build on is {COMMIT}."
    elif number == RULE_LINE:
        text = f"The user says: {RULE}, whatever the task."
    elif number == APPROACH_LINE:
        text = f"Tried {APPROACH}: it returned stale prices under load, and was taken back. Do not try it again."
    else:
        topic = _TOPICS[number % len(_TOPICS)]
        text = f"Step {number}: read src/prices/module_{number}.py for {topic}; {number % 11 + 1} callers are changed."
    return padded(text, _WORKING_BYTES - _LABELS.get(number, 0))


def _working_event(number: int) -> sl.NewEvent:
    text, key = working_line(number), f"step-{number}"
    if number == COMMIT_LINE:
        return sl.message("assistant", text, actor="coder", key=key, refs=[COMMIT])
    if number == RULE_LINE:
        return sl.constraint("billing", text, actor="user", key=key)
    if number == APPROACH_LINE:
        return sl.failed_attempt(text, subject="caching", actor="coder", key=key, refs=[APPROACH])
    return sl.message("assistant", text, actor="coder", key=key)


# ---------------------------------------------------------------------------------------------- texts of known sizes

_FILLER: Final = (
    "The note is long because real work is wordy: what was read, what was weighed, what was left for later, who was "
    "asked and what they said, which of two ways was taken and why the other one was not. "
)


def padded(text: str, size_bytes: int) -> str:
    """Return a text brought to an exact size by words that say nothing."""
    room = size_bytes - len(text) - 1
    filler = "".join(_words(room)) if room > 0 else ""
    return f"{text} {filler}".ljust(size_bytes, ".")


def _words(room: int) -> Iterator[str]:
    while room > 0:
        piece = _FILLER[:room]
        yield piece
        room -= len(piece)


def opening(text: str, chars: int) -> str:
    """Return the first words of a text, whole ones, in so many characters at most."""
    if len(text) <= chars:
        return text
    return text[: text.rfind(" ", 0, chars)].rstrip()
