"""Events in the order that providers want: calls that follow each other are one group, their results right behind it.

A result is looked for among the EXPORT_HELD_EVENTS_MAX events behind its group, which are held back meanwhile; so
memory does not grow with the log. A call that has none there gets none, and a result that comes later is told as text.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from strandline.limits import EXPORT_HELD_EVENTS_MAX
from strandline.model.event import Event, EventKind

_ANSWERS = (EventKind.TOOL_RESULT, EventKind.ABANDONED)


@dataclass(slots=True)
class Calls:
    """Calls of one message of an assistant, and what answered each, by the seq of the call."""

    calls: list[Event] = field(default_factory=list)
    answers: dict[int, Event] = field(default_factory=dict)

    def takes(self, event: Event) -> bool:
        """Tell whether an event is the answer to a call that has none yet."""
        waits = event.call_seq is not None and event.call_seq not in self.answers
        return waits and event.kind in _ANSWERS and not event.envelope.late and self._asked(event.call_seq)

    @property
    def answered(self) -> bool:
        """Whether every call has its answer."""
        return len(self.answers) == len(self.calls)

    def _asked(self, call_seq: int | None) -> bool:
        return any(call.seq == call_seq for call in self.calls)


def turns(events: Iterable[Event]) -> Iterator[Event | Calls]:
    """Yield events that are said, and groups of calls with their results."""
    source, pending = iter(events), deque[Event]()
    while (event := _next(pending, source)) is not None:
        if event.kind is not EventKind.TOOL_CALL:
            yield event
            continue
        group, held = Calls([event]), deque[Event]()
        while len(held) < EXPORT_HELD_EVENTS_MAX and (event := _next(pending, source)) is not None:
            if group.takes(event):
                group.answers[event.call_seq or 0] = event
                if group.answered:
                    break
            elif event.kind is EventKind.TOOL_CALL and not held and not group.answers:
                group.calls.append(event)
            else:
                held.append(event)
        yield group
        pending.extendleft(reversed(held))


def _next(pending: deque[Event], source: Iterator[Event]) -> Event | None:
    return pending.popleft() if pending else next(source, None)
