"""How much of a prompt stays as it was: the bytes that a prompt cache can serve again.

Sessions are replayed event by event. Before each step of the agent its context is read, and compared with the one
before: what both begin with is stable. It is compacted when the context has grown to twice what a compaction leaves.
A second row looks at the steps with a compaction between them only, which are those that a cache pays for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import strandline
from strandline import NewEvent, SourceEvent, Workflow
from strandline.bench.quality.row import Row
from strandline.limits import EVENTS_PAGE_MAX
from strandline.model.event import EventKind, Role

SETS: Final = "claude_code_*"
BUDGET_TOKENS: Final = 16_000
COMPACTED_FROM_TOKENS: Final = 32_000
MARK: Final = 80.0


@dataclass(slots=True)
class _Seen:
    """Bytes of contexts, and how many of them the one before began with, too."""

    whole: int = 0
    stable: int = 0

    @property
    def percent(self) -> float:
        return 100 * self.stable / self.whole if self.whole else 0.0


def measure(data: Path, tell: Callable[[int, int], None]) -> Iterator[Row]:
    """Replay every session."""
    files = sorted(data.glob(f"{SETS}/*.jsonl"))
    steps, compactions = _Seen(), _Seen()
    count = 0
    for number, file in enumerate(files):
        tell(number, len(files))
        with strandline.open(":memory:") as db:
            tenant = db.tenant("bench")
            tenant.workflow("session").import_transcript(file)
            count += _replay(_events(tenant.workflow("session")), tenant.workflow("replay"), steps, compactions)
    said = f"{count} compactions" if files else f"no session in {SETS}"
    for name, seen, which in (("prefix_stable", steps, "each step"), ("prefix_compacted", compactions, "a compaction")):
        yield Row(
            id=name,
            measure=f"bytes of the context after {which} that it began with before, too",
            data=f"{len(files)} sessions of {SETS}, step by step",
            value=seen.percent if seen.whole else None,
            mark=MARK,
            reason=said,
        )


def _events(workflow: Workflow) -> Iterator[SourceEvent]:
    start = 1
    while page := workflow.events(start, start + EVENTS_PAGE_MAX - 1):
        yield from page
        start = page[-1].seq + 1


def _replay(events: Iterator[SourceEvent], workflow: Workflow, steps: _Seen, compactions: _Seen) -> int:
    """Append the events one by one, and read the context before each step; return how often it was compacted."""
    before = ""
    count = generation = 0
    for event in events:
        if before and _is_step(event):
            with suppress(strandline.ContextOverflowError):  # what stands behind an open call is not covered yet
                workflow.compact(BUDGET_TOKENS, when_tokens=COMPACTED_FROM_TOKENS)
            context = workflow.context(2 * COMPACTED_FROM_TOKENS)
            counted = (steps, compactions) if context.generation > generation else (steps,)
            stable = len(_shared(before, context.text).encode())
            for seen in counted:
                seen.whole += len(context.text.encode())
                seen.stable += stable
            count += context.generation > generation
            before, generation = context.text, context.generation
        workflow.append(_again(event))
        before = before or workflow.context(2 * COMPACTED_FROM_TOKENS).text
    return count


def _is_step(event: SourceEvent) -> bool:
    """Tell whether the agent's model was called for this event."""
    return event.kind is EventKind.TOOL_CALL or (event.kind is EventKind.MESSAGE and event.role is Role.ASSISTANT)


def _shared(before: str, after: str) -> str:
    """Return what two texts begin with in common."""
    low, high = 0, min(len(before), len(after))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if before[low:middle] == after[low:middle] else (low, middle - 1)
    return before[:low]


def _again(event: SourceEvent) -> NewEvent:
    """Return an event as it is appended once more; what is no message and no call is a note."""
    if event.kind is EventKind.MESSAGE and event.role is not None:
        return strandline.message(event.role, event.text)
    if event.kind is EventKind.TOOL_CALL and event.call_id is not None:
        return strandline.tool_call(event.call_id, event.tool or "tool", event.payload)
    if event.kind is EventKind.TOOL_RESULT and event.call_id is not None:
        return strandline.tool_result(event.call_id, event.text, is_error=event.is_error)
    return strandline.note(event.text)
