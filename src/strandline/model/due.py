"""Compactions that are due: what the store knows of background work (DESIGN §3). A row is the job; a message is a hint.

A row is never deleted: its fence only grows, so a worker that comes late can't be taken for a later one.

asked for → due → run by one worker under a lease → nothing due | due again
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from strandline.limits import DUE_DELAY_S_MAX, LEASE_TTL_S
from strandline.model.candidate import FailureClass
from strandline.model.ids import Scope, check_name
from strandline.model.outcome import CompactionOutcome, CompactionResult
from strandline.model.triggers import Watch

T = TypeVar("T")
PRIORITY_MAX: Final = 9
PRIORITY_USUAL: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class DueCompaction:
    """The compaction of a view that was asked for: one row per workflow and view. Asking again raises its revision and
    keeps the earlier time and the higher priority.
    """

    view: str
    revision: int  # of the log, when it was last asked for
    priority: int  # 0..PRIORITY_MAX, the highest first
    budget: int | None
    when_tokens: int | None
    strict: bool
    asked_us: int  # when it was first asked for since it was last done
    wanted_us: int | None  # from when it is wanted; None: nobody asked since the last run began
    due_us: int | None  # when a sweep offers it next: as wanted, of a retry, the end of a lease; None: nothing is due
    runs: int = 0  # begun since it was asked for
    worker: str | None = None  # who runs it
    lease_until_us: int = 0
    fence: int = 0  # the highest fencing token handed out
    outcome: CompactionResult | None = None  # of the last run; None: it ended by an error, or has not ended
    failure: FailureClass | None = None
    failure_text: str = ""
    case_id: str | None = None  # the case that the last run opened, or stands before
    watch: Watch | None = None  # what makes it due by itself; None: only who asks does

    @property
    def parked(self) -> bool:
        """Whether it waits for the answer of a case."""
        return self.due_us is not None and self.worker is None and self.case_id is not None

    def leased(self, now_us: int) -> bool:
        """Tell whether a worker holds it. A lease further ahead than its TTL counts as expired (DESIGN §5)."""
        return self.worker is not None and now_us < self.lease_until_us <= now_us + int(LEASE_TTL_S * 1_000_000)

    def offered(self, now_us: int) -> bool:
        """Tell whether it may be run now. A time that lies further ahead than any delay is that of a clock that had
        jumped: it counts as past.
        """
        if self.due_us is None or self.leased(now_us):
            return False
        jumped = self.worker is not None or self.due_us > now_us + int(DUE_DELAY_S_MAX * 1_000_000)
        return jumped or self.due_us <= now_us


@dataclass(frozen=True, slots=True, kw_only=True)
class DueKey:
    """Which compaction is meant: all that a message carries. What is to be done stands in the store."""

    tenant: str
    workflow: str
    view: str
    priority: int = PRIORITY_USUAL
    due_us: int = 0  # makes each time of being due another key

    def __post_init__(self) -> None:
        check_name("tenant", self.tenant)
        check_name("workflow", self.workflow)
        check_name("view", self.view)

    @property
    def scope(self) -> Scope:
        """The workflow."""
        return Scope(tenant=self.tenant, workflow=self.workflow)

    def __str__(self) -> str:
        return f"{self.tenant}/{self.workflow}/{self.view}"


class DueResult(enum.StrEnum):
    """What came of running a due compaction: the first four ran it, the others did nothing."""

    DONE = "done"  # activated, or there was nothing to do
    AGAIN = "again"  # it failed for a reason that may pass
    FAILED = "failed"  # nothing is due until it is asked for again
    PARKED = "parked"  # a case is to be answered first
    BUSY = "busy"  # another compaction holds the view's lease
    LEASED = "leased"  # another worker runs it
    NOT_DUE = "not_due"  # not yet, done already, or never asked for


@dataclass(frozen=True, slots=True, kw_only=True)
class DueRun:
    """How the run of a due compaction ended."""

    key: DueKey
    result: DueResult
    reason: str = ""
    due_us: int | None = None  # when it is due next; None: nothing is
    runs: int = 0
    outcome: CompactionOutcome | None = None
    case_id: str | None = None


def take_turns(queues: Sequence[Sequence[T]], limit: int) -> list[T]:
    """Return at most `limit` items: the first of each queue, then the second of each, and so on."""
    longest = max(map(len, queues), default=0)
    rounds = (queue[turn] for turn in range(longest) for queue in queues if turn < len(queue))
    return [item for item, _ in zip(rounds, range(limit), strict=False)]
