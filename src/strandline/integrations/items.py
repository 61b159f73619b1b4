"""A framework's own items (messages, events) in the log: what the memory reads of them, and each of them verbatim.

An item becomes one event for each of its parts, in order: a text is a message, a call a tool call. Each event keeps the
part as the framework gave it (its `origin`); the first one keeps the frame too, which is all that is not a part. So a
part stands once, is verified as the log is (I4), and goes when its event is erased (C31).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Final

from strandline import (
    Appended,
    CompactionOutcome,
    EventKind,
    InvalidInputError,
    NewEvent,
    PartKind,
    SourceEvent,
    Workflow,
    note,
)
from strandline.limits import SUMMARIZER_DEADLINE_S

ERASED: Final = "[erased]"  # what a part reads whose event was erased
_NO_TEXT: Final = "(no text)"
_WHOLE: Final = 1 << 40  # tokens: nothing is left out, for the framework shows the tail itself
_PAGE: Final = 1_000  # events that are read at once
_BACK: Final = 64  # events that are looked through at once for the end of an item

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """An item out of the log. What is None was erased: the frame, or one of the parts."""

    item_id: str
    frame: Json | None
    parts: tuple[Json | None, ...]
    actor: str
    role: str | None
    seqs: tuple[int, ...]  # of its events


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveSummary:
    """The text of the active summary, and the last event that it covers; 0 and no text: there is none."""

    text: str
    watermark: int
    generation: int


def said(text: str) -> str:
    """Return a text as a message can hold it, which can't be blank."""
    return text if text.strip() else _NO_TEXT


def item_events(item_id: str, frame: Json, parts: Sequence[tuple[NewEvent, Json | None]]) -> list[NewEvent]:
    """Return the events of an item.

    Args:
        item_id: names it in the workflow: "framework:id".
        frame: what of it is not a part.
        parts: each as an event, and as the framework gave it; None: the event is there for the frame alone.
    """
    events = []
    for index, (event, part) in enumerate(parts):
        kept: dict[str, object] = {"part": part} if index else {"part": part, "frame": frame}
        body = event.body if isinstance(event.body, Mapping) else {"type": "text", "text": event.body}
        events.append(
            replace(
                event,
                body={**body, "origin": json.dumps(kept, ensure_ascii=False, separators=(",", ":"))},
                key=part_key(item_id, index),
                envelope=event.envelope._replace(message_id=item_id),
            )
        )
    return events


def part_key(item_id: str, index: int = 0) -> str:
    """Return the key of the event of a part of an item."""
    return f"{item_id}#{index}"


def append_items(workflow: Workflow, events: Sequence[NewEvent], *, expected_revision: int | None = None) -> Appended:
    """Append events of items. A result of a call that the log never held is kept as a note, which says so (I8).

    Raises:
        InvalidInputError, IdempotencyConflictError, StaleRevisionError, OutcomeUnknownError: as of `Workflow.append`.
    """
    batch = list(events)
    while True:
        try:
            return workflow.append(batch, expected_revision=expected_revision)
        except InvalidInputError as error:
            if error.position is None or batch[error.position].kind is not EventKind.TOOL_RESULT:
                raise
            batch[error.position] = _as_note(batch[error.position])


def _as_note(result: NewEvent) -> NewEvent:
    body = result.body if isinstance(result.body, Mapping) else {}
    told = json.dumps(body.get("content"), ensure_ascii=False)
    event = note(f"A result of the call {result.envelope.call_id!r}, which this log does not hold: {told}")
    return replace(
        result,
        kind=event.kind,
        body={"type": "text", "text": event.body, "origin": body.get("origin")},
        envelope=result.envelope._replace(call_id=None, is_error=False),
    )


def read_items(workflow: Workflow, framework: str, *, from_seq: int = 1) -> Iterator[Item]:
    """Yield the live items of a framework in the order of the log, which no clock decides; other events are passed by.

    Args:
        workflow: whose.
        framework: the beginning of their ids.
        from_seq: the first event; an item that begins before it is passed by.

    Raises:
        CorruptRecordError: at the first event that is not what was written (I4).
    """
    before = workflow.events(from_seq - 1, from_seq - 1) if from_seq > 1 else []
    begun = before[0].message_id if before else None
    ours = (event for event in _live(workflow, from_seq) if _is_of(event, framework) and event.message_id != begun)
    for item_id, group in groupby(ours, key=lambda event: event.message_id or ""):
        yield _item(item_id.removeprefix(f"{framework}:"), list(group))


def _live(workflow: Workflow, from_seq: int) -> Iterator[SourceEvent]:
    for first in range(from_seq, workflow.basis().revision + 1, _PAGE):
        yield from (event for event in workflow.events(first, first + _PAGE - 1) if not event.abandoned)


def _is_of(event: SourceEvent, framework: str) -> bool:
    return event.message_id is not None and event.message_id.startswith(f"{framework}:")


def _item(item_id: str, events: Sequence[SourceEvent]) -> Item:
    kept = [None if event.origin is None else json.loads(event.origin) for event in events]
    return Item(
        item_id=item_id,
        frame=kept[0] and kept[0]["frame"],
        parts=tuple(one and one["part"] for one in kept if one is None or one["part"] is not None),
        actor=events[0].actor,
        role=events[0].role,
        seqs=tuple(event.seq for event in events),
    )


def active_summary(workflow: Workflow) -> ActiveSummary:
    """Read the active summary, whole, without the events behind it.

    Raises:
        CorruptRecordError: the summary is not what was written.
    """
    if workflow.basis().generation == 0:  # the empty one, and no tail has to be read to know it
        return ActiveSummary(text="", watermark=0, generation=0)
    context = workflow.context(_WHOLE)
    texts = [part.text for part in context.parts if part.kind is not PartKind.EVENT]
    return ActiveSummary(text="\n\n".join(texts), watermark=context.watermark, generation=context.generation)


def compact_through(
    workflow: Workflow,
    through: int,
    *,
    summary_tokens: int,
    summarizer: object = None,
    deadline_s: float = SUMMARIZER_DEADLINE_S,
) -> CompactionOutcome:
    """Cover the events up to `through` by a summary of `summary_tokens` at most; what the framework keeps stays.

    Raises:
        ContextOverflowError: mandatory facts alone take more (C11).
        InvalidInputError, SummarizerSetupError, CorruptRecordError, StoreUnavailableError: nothing was activated.
    """
    tail_tokens = sum(event.tokens for event in _live(workflow, through + 1))
    return workflow.compact(tail_tokens + summary_tokens, summarizer, through=through, deadline_s=deadline_s)


def last_covered(workflow: Workflow, framework: str, watermark: int) -> str | None:
    """Return the id of the last item that a summary up to `watermark` speaks for whole; None: there is none.

    An item of which the summary covers a part only is shown whole beside it: said twice, and never lost.
    """
    behind = [event for event in workflow.events(watermark + 1, watermark + 1) if not event.abandoned]
    cut = behind[0].message_id if behind else None
    last = watermark
    while last > 0:
        first = max(1, last - _BACK + 1)
        for event in reversed(workflow.events(first, last)):
            if _is_of(event, framework) and not event.abandoned and event.message_id != cut:
                return (event.message_id or "").removeprefix(f"{framework}:")
        last = first - 1
    return None


def find_item(workflow: Workflow, framework: str, item_id: str) -> Item | None:
    """Return a live item by its id; None: there is none."""
    first = workflow.seqs_of([part_key(f"{framework}:{item_id}")])
    return next(read_items(workflow, framework, from_seq=min(first.values())), None) if first else None


def covered_count(workflow: Workflow, framework: str, watermark: int, is_result: Callable[[Json], bool]) -> int:
    """Return how many items, numbered from 0, a summary up to `watermark` stands for.

    A call and its result stay together: where the next item holds a result, the one before it is shown beside it.
    """
    last = last_covered(workflow, framework, watermark)
    if last is None:
        return 0
    count = int(last) + 1
    following = find_item(workflow, framework, str(count))
    parted = following is not None and any(part is not None and is_result(part) for part in following.parts)
    return count - 1 if parted else count
