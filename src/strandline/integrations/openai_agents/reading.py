"""A workflow read as items, from its end backwards or as the working context."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from strandline import Context, EventKind, PartKind, Workflow
from strandline.integrations.newest import newest_events
from strandline.integrations.openai_agents.items import Item, call_id_of, is_output, kept, text_of, to_item

_CONVERSATION = {EventKind.MESSAGE, EventKind.TOOL_CALL, EventKind.TOOL_RESULT}


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
