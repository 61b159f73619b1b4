"""A log from its end backwards, and what of it a guest keeps when it goes back."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from strandline import EventKind, SourceEvent, Workflow
from strandline.limits import SESSION_PAGE_EVENTS

_ENDS = {
    EventKind.LIFT_CONSTRAINT: EventKind.CONSTRAINT,
    EventKind.RESOLVE: EventKind.ISSUE,
    EventKind.RELEASE_ARTIFACT: EventKind.ARTIFACT,
}
_STATED = frozenset(
    {
        EventKind.CONSTRAINT,
        EventKind.ISSUE,
        EventKind.ARTIFACT,
        EventKind.DECISION,
        EventKind.FAILED_ATTEMPT,
        EventKind.NOTE,
        EventKind.RESOLVE,
        EventKind.RELEASE_ARTIFACT,
    }
)


def newest_events(workflow: Workflow) -> Iterator[SourceEvent]:
    """Yield all events, also abandoned ones, the newest first.

    Raises:
        CorruptRecordError: at the first event that is not what was written; none is skipped (I4).
    """
    last = workflow.basis().revision
    while last > 0:
        first = max(1, last - SESSION_PAGE_EVENTS + 1)
        yield from reversed(workflow.events(first, last))
        last = first - 1


def last_live(workflow: Workflow, before: int) -> int:
    """Return the last live event before an event; 0: there is none."""
    return next((event.seq for event in newest_events(workflow) if event.seq < before and not event.abandoned), 0)


def facts_from(workflow: Workflow, seq: int, is_said: Callable[[SourceEvent], bool]) -> list[int]:
    """Return the live events from `seq` on that a program stated beside the conversation, and that still hold.

    Approvals and pins are not among them: they rest on what is left behind, and are given anew.

    Args:
        workflow: whose log.
        seq: the first event that is looked at.
        is_said: tells what belongs to the conversation.
    """
    behind: list[SourceEvent] = []
    for event in newest_events(workflow):
        if event.seq < seq:
            break
        if not event.abandoned and event.kind in {*_STATED, *_ENDS} and not is_said(event):
            behind.append(event)
    stated: list[SourceEvent] = []
    for event in reversed(behind):
        opener = _ENDS.get(event.kind)
        ended = [one for one in stated if one.kind is opener and one.subject == event.subject]
        if event.kind in _ENDS.values():  # it takes the place of one of its subject
            stated = [one for one in stated if (one.kind, one.subject) != (event.kind, event.subject)]
        stated = [one for one in stated if one not in ended]
        if not ended and event.kind in _STATED:  # a lift is stated again by the rewind itself, where it ends something
            stated.append(event)
    return [event.seq for event in stated]
