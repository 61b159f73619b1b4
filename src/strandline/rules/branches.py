"""Which events are live: all but those that rewinds left behind (SPEC §2, C22)."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable, Iterator
from typing import Final

from strandline.model.lineage import AbandonedRange


class Abandoned:
    """The events that rewinds left behind. Ranges may overlap: a later rewind goes back behind an earlier one."""

    def __init__(self, ranges: Iterable[AbandonedRange]) -> None:
        self.ranges = tuple(ranges)
        self._runs: list[tuple[int, int]] = []  # disjoint, in order
        for left in sorted(self.ranges, key=lambda left: left.from_seq):
            if self._runs and left.from_seq <= self._runs[-1][1] + 1:
                first, last = self._runs.pop()
                self._runs.append((first, max(last, left.through_seq)))
            else:
                self._runs.append((left.from_seq, left.through_seq))

    def __contains__(self, seq: int) -> bool:
        return self._run_at(seq) is not None

    def _run_at(self, seq: int) -> tuple[int, int] | None:
        """Return the run that holds an event, or None."""
        at = bisect(self._runs, seq, key=lambda run: run[0]) - 1
        return self._runs[at] if at >= 0 and seq <= self._runs[at][1] else None

    def last_live(self, seq: int) -> int:
        """Return the last live event at or before `seq`; 0: there is none."""
        run = self._run_at(seq)
        return seq if run is None else run[0] - 1

    def live_spans(self, from_seq: int, through_seq: int) -> Iterator[tuple[int, int]]:
        """Yield the runs of live events within from_seq..through_seq, in order."""
        for first, last in self._runs:
            if from_seq < first:
                yield from_seq, min(first - 1, through_seq)
            from_seq = max(from_seq, last + 1)
            if from_seq > through_seq:
                return
        if from_seq <= through_seq:
            yield from_seq, through_seq

    def begins_by(self, seq: int) -> bool:
        """Tell whether an event at or before `seq` is abandoned."""
        return bool(self._runs) and self._runs[0][0] <= seq

    def until(self, branch: int) -> Abandoned:
        """Return what was abandoned when this branch began."""
        return Abandoned(left for left in self.ranges if left.branch <= branch)

    def keeps(self, revision: int, branch: int) -> bool:
        """Tell whether the log as it was at a revision of a branch is the past of the present one."""
        last = self.until(branch).last_live(revision)
        return last not in self


NOTHING_ABANDONED: Final = Abandoned(())
