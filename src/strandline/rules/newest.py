"""The part of a tail that a context within a budget may hold, kept while the tail is read (C19, `rules.fallback`).

`fit` leaves out the oldest events of a tail that exceeds the budget, but never one that changes a mandatory fact, a
call that nothing answers, or one half of a call and its result. So of the events that are older than the budget reaches
those are kept, and of all others only where they stood and how many tokens they had.
"""

from __future__ import annotations

from bisect import bisect, insort
from collections import deque
from collections.abc import Callable

from strandline.model.context import Gap
from strandline.model.event import EventKind, SourceEvent
from strandline.rules.fallback import changes_a_fact


class NewestEvents:
    """Takes the events of a tail in order and keeps what `fit` may keep; it answers the same as from all of them.

    Args:
        budget: tokens of the context.
        leave: told of each event that is let go.
    """

    def __init__(self, budget: int, leave: Callable[[SourceEvent], None] | None = None) -> None:
        self._budget = budget
        self._leave = leave
        self._window: deque[SourceEvent] = deque()  # the newest; without its first one it fits the budget
        self._tokens = 0  # of the window
        self._results: dict[int, int] = {}  # of the calls in the window that are answered: the seqs of their results
        self._older: dict[int, SourceEvent] = {}  # kept though older: facts, calls that nothing answers
        self._calls: dict[int, SourceEvent] = {}  # older calls, by the seqs of their results in the window
        self._seqs: list[int] = []  # of both, in order
        self._runs: list[Gap] = []

    def take(self, event: SourceEvent) -> None:
        """Take the next event."""
        if changes_a_fact(event):
            self._keep(event)
        else:
            self._window.append(event)
            self._tokens += event.tokens
        if event.kind is EventKind.TOOL_RESULT and event.call_seq is not None:
            self._answer(event, event.call_seq)
        while self._window and self._tokens - self._window[0].tokens > self._budget:
            oldest = self._window.popleft()
            self._tokens -= oldest.tokens
            self._outgrow(oldest)

    def events(self) -> list[SourceEvent]:
        """Return the events that are kept, in order."""
        return sorted([*self._older.values(), *self._calls.values(), *self._window], key=lambda event: event.seq)

    def gaps(self) -> list[Gap]:
        """Return the runs of those that are not, in order."""
        return list(self._runs)

    def _answer(self, result: SourceEvent, call_seq: int) -> None:
        call = self._older.pop(call_seq, None)
        if call is None:
            if self._window and call_seq >= self._window[0].seq:
                self._results.setdefault(call_seq, 0 if result.late else result.seq)
        elif result.late:
            self._let_go(call)
        else:
            self._calls[result.seq] = call

    def _outgrow(self, event: SourceEvent) -> None:
        """Decide on an event that has become too old for the window."""
        answered = self._results.pop(event.seq, None)
        if event.kind is EventKind.TOOL_CALL and answered is None:
            self._keep(event)
        elif event.kind is EventKind.TOOL_CALL and answered:
            self._calls[answered] = event
            insort(self._seqs, event.seq)
        else:
            self._gone(event)
        call = self._calls.pop(event.seq, None)
        if call is not None:
            self._let_go(call)

    def _keep(self, event: SourceEvent) -> None:
        self._older[event.seq] = event
        insort(self._seqs, event.seq)

    def _let_go(self, call: SourceEvent) -> None:
        del self._seqs[bisect(self._seqs, call.seq) - 1]
        self._gone(call)

    def _gone(self, event: SourceEvent) -> None:
        """Count an event to the run that it stands in; the last seq of two that become one is that of the later."""
        if self._leave is not None:
            self._leave(event)
        at = bisect(self._runs, event.seq, key=lambda run: run.from_seq)
        run = Gap(from_seq=event.seq, through_seq=event.seq, tokens=event.tokens)
        before, behind = self._runs[:at][-1:], self._runs[at : at + 1]
        if before and self._adjoin(before[0].from_seq, event.seq):
            at -= 1
        else:
            before = []
        if not (behind and self._adjoin(event.seq, behind[0].from_seq)):
            behind = []
        joined = [*before, run, *behind]
        self._runs[at : at + len(before) + len(behind)] = [
            Gap(
                from_seq=joined[0].from_seq,
                through_seq=max(one.through_seq for one in joined),
                tokens=sum(one.tokens for one in joined),
            )
        ]

    def _adjoin(self, first: int, second: int) -> bool:
        """Tell whether nothing that is kept stands between two seqs."""
        return bisect(self._seqs, first) == bisect(self._seqs, second)
