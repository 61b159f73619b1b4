"""A workflow read as items, from its end backwards or as the working context."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from strandline import Context, EventKind, PartKind, SourceEvent, Workflow
from strandline.integrations.openai_agents.items import Item, call_id_of, is_output, kept, text_of, to_item
from strandline.limits import SESSION_PAGE_EVENTS

_CONVERSATION = {EventKind.MESSAGE, EventKind.TOOL_CALL, EventKind.TOOL_RESULT}
_ENDS = {
    EventKind.LIFT_CONSTRAINT: EventKind.CONSTRAINT,
    EventKind.RESOLVE: EventKind.ISSUE,
    EventKind.RELEASE_ARTIFACT: EventKind.ARTIFACT,
}
_STATED = {EventKind.CONSTRAINT, EventKind.ISSUE, EventKind.ARTIFACT, EventKind.DECISION, EventKind.FAILED_ATTEMPT}
_STATED_TOO = {EventKind.NOTE, EventKind.RESOLVE, EventKind.RELEASE_ARTIFACT}


@dataclass(frozen=True, slots=True)
class Placed:
    """An item, and where it stands. `said`: in the conversation, and not stated by a program beside it."""

    seq: int
    item: Item
    said: bool


def newest_items(workflow: Workflow) -> Iterator[Placed]:
    """Yield the live items, the newest first. Where a mark keeps the item of an effect's event, it stands in the mark's
    place, where the framework has it.

    Raises:
        CorruptRecordError: at the first event that is not what was written; none is skipped (I4).
    """
    marked: set[int] = set()
    for event in newest_events(workflow):
        if event.abandoned or event.seq in marked:
            continue
        own = kept(event)
        if own is not None and own.of is not None:
            marked.add(own.of)
        item = to_item(event) if own is None else own.item
        if item is not None:
            yield Placed(event.seq, item, own is not None or event.kind in _CONVERSATION)


def newest_events(workflow: Workflow) -> Iterator[SourceEvent]:
    """Yield all events, also abandoned ones, the newest first."""
    last = workflow.basis().revision
    while last > 0:
        first = max(1, last - SESSION_PAGE_EVENTS + 1)
        yield from reversed(workflow.events(first, last))
        last = first - 1


def context_items(context: Context) -> list[Item]:
    """Return a working context as items: the summary as a user's message, and the tail, each item as it was.

    An item of an effect that the summary speaks for is not shown again, and an output whose call is not shown is shown
    as text.
    """
    texts = [part.text for part in context.parts if part.kind is not PartKind.EVENT]
    items: list[Item] = [{"role": "user", "content": "\n\n".join(texts)}] if texts else []
    events = [part.event for part in context.parts if part.event is not None]
    here = {event.seq for event in events}
    owns = {event.seq: kept(event) for event in events}
    marked = {own.of for own in owns.values() if own is not None and own.of in here}
    for event in events:
        own = owns[event.seq]
        if event.seq in marked or (own is not None and own.of is not None and own.of not in here):
            continue
        item = to_item(event) if own is None else own.item
        if item is not None:
            items.append(item)
    return _without_orphans(items)


def _without_orphans(items: Sequence[Item]) -> list[Item]:
    called: set[str] = set()
    whole: list[Item] = []
    for item in items:
        call_id = call_id_of(item)
        if call_id is not None and not is_output(item):
            called.add(call_id)
        elif call_id is not None and call_id not in called:
            item = {"role": "user", "content": f"[result of the earlier call {call_id}] {text_of(item.get('output'))}"}
        whole.append(item)
    return whole


def last_live(workflow: Workflow, before: int) -> int:
    """Return the last live event before an event; 0: there is none."""
    return next((e.seq for e in newest_events(workflow) if e.seq < before and not e.abandoned), 0)


def facts_from(workflow: Workflow, seq: int) -> list[int]:
    """Return the events from `seq` on that a program stated beside the conversation and that still hold.

    Approvals and pins are not among them: they rest on what is left behind, and are given anew.
    """
    behind = [event for event in _until(workflow, seq) if not event.abandoned and kept(event) is None]
    stated: list[SourceEvent] = []
    for event in reversed(behind):
        opener = _ENDS.get(event.kind)
        open_here = [e for e in stated if e.kind is opener and e.subject == event.subject]
        if event.kind is EventKind.CONSTRAINT or event.kind is EventKind.ISSUE:
            stated = [e for e in stated if (e.kind, e.subject) != (event.kind, event.subject)]
        if open_here:
            stated = [e for e in stated if e not in open_here]
        elif event.kind in _STATED or event.kind in _STATED_TOO:
            stated.append(event)
    return [event.seq for event in stated]


def _until(workflow: Workflow, seq: int) -> Iterator[SourceEvent]:
    for event in newest_events(workflow):
        if event.seq < seq:
            return
        yield event
