"""The protocol as a small pure model: what a workflow may show after each verb. It knows nothing of Strandline.

A workflow is a log with live and abandoned events, a pointer that moves by generations, checkpoints in one order, and
facts that are the fold of the live events. What the real one shows is compared with this after each step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Event:
    seq: int
    kind: str
    subject: str = ""
    ref: str = ""
    key: str | None = None


@dataclass(frozen=True)
class Content:
    """What a pointer points to: the summary of live events through the watermark; number 0: none."""

    number: int = 0
    watermark: int = 0
    bad: bool = False


@dataclass(frozen=True)
class Checkpoint:
    lineage_seq: int
    revision: int
    state: str


@dataclass
class World:
    """What is outside: how often each effect really happened, and what was decided about it. Forks share it."""

    happened: Counter[str] = field(default_factory=Counter)
    recorded: set[str] = field(default_factory=set)  # effects whose outcome is known to be done
    given_up: set[str] = field(default_factory=set)


@dataclass
class Workflow:
    events: dict[int, Event] = field(default_factory=dict)
    abandoned: set[int] = field(default_factory=set)
    revision: int = 0
    generation: int = 0
    contents: dict[int, Content] = field(default_factory=lambda: {0: Content()})  # by generation
    bases: dict[int, int] = field(default_factory=dict)  # summary -> the one that it was built on
    checkpoints: list[Checkpoint] = field(default_factory=list)
    moved_at: int = 0  # lineage_seq of the last move of the pointer
    fences: int = 0  # whatever takes the view from a compaction in flight
    restores: list[tuple[int, int]] = field(default_factory=list)  # lineage_seq of the restore, and of what it restored
    blocked: set[int] = field(default_factory=set)  # summaries under an open blocking case

    # ------------------------------------------------------------------------------------------ log

    @property
    def live(self) -> list[Event]:
        return [event for seq, event in sorted(self.events.items()) if seq not in self.abandoned]

    def append(self, events: Iterable[Event]) -> None:
        for event in events:
            assert event.seq == self.revision + 1, "seqs run without a gap"
            self.events[event.seq] = event
            self.revision = event.seq

    def holder(self, key: str) -> Event | None:
        """Return the live event that holds a key."""
        return next((event for event in self.live if event.key == key), None)

    # ------------------------------------------------------------------------------------------ facts

    def open_issues(self) -> set[str]:
        found: set[str] = set()
        for event in self.live:
            if event.kind == "issue":
                found.add(event.subject)
            elif event.kind == "resolve":
                found.discard(event.subject)
        return found

    def raised_issues(self) -> set[str]:
        return {event.subject for event in self.live if event.kind == "issue"}

    def approvals(self) -> dict[str, int]:
        """Return the approvals in force, each with the event that grants it."""
        found: dict[str, int] = {}
        for event in self.live:
            if event.kind == "approval":
                found[event.subject] = event.seq
            elif event.kind == "revoke":
                found.pop(event.subject, None)
        return found

    def permits(self, subject: str, issue: str) -> bool:
        """Tell whether an action that needs this approval, and this issue resolved, may be done."""
        return subject in self.approvals() and issue in self.raised_issues() - self.open_issues()

    def versions(self, subject: str, issue: str) -> tuple[int, int]:
        """Return what a permit for that rests on: the grant, and the end of the issue."""
        ended = [event.seq for event in self.live if event.kind == "resolve" and event.subject == issue]
        return self.approvals().get(subject, 0), max(ended, default=0)

    # ------------------------------------------------------------------------------------------ pointer

    @property
    def content(self) -> Content:
        return self.contents[self.generation]

    def tail(self) -> list[int]:
        return [event.seq for event in self.live if event.seq > self.content.watermark]

    def activate(self, number: int, watermark: int, at: int) -> None:
        assert watermark >= self.content.watermark
        self.bases[number] = self.content.number
        self._move(Content(number, watermark), at)

    def revert(self, generation: int, at: int) -> None:
        left = {self.contents[g].number for g in range(generation + 1, self.generation + 1)}
        left.discard(self.contents[generation].number)
        self.contents = {
            g: replace(content, bad=content.bad or content.number in left) for g, content in self.contents.items()
        }
        self._move(self.contents[generation], at)

    def may_revert(self, generation: int) -> bool:
        content = self.contents.get(generation)
        if content is None or content.bad or content.number == self.content.number:
            return False
        return not any(seq <= content.watermark for seq in self.abandoned_since(generation))

    def abandoned_since(self, generation: int) -> set[int]:
        return {seq for seq in self.abandoned if self._abandoned_at[seq] >= generation}

    _abandoned_at: dict[int, int] = field(default_factory=dict)  # event -> the generation at which it was left

    def rewind(self, to: int, at: int) -> None:
        for seq in range(to + 1, self.revision + 1):
            if seq not in self.abandoned:
                self.abandoned.add(seq)
                self._abandoned_at[seq] = self.generation
        content = self.content
        by_number = {each.number: each for each in self.contents.values()}
        while content.watermark > to:
            content = by_number[self.bases.get(content.number, 0)]
        self._move(content, at)

    def lost_grants(self, to: int) -> set[str]:
        """Return the subjects that were revoked behind an event: a rewind to it never gives them back."""
        return {event.subject for event in self.live if event.seq > to and event.kind == "revoke"}

    def _move(self, content: Content, at: int) -> None:
        self.generation += 1
        self.contents[self.generation] = content
        self.moved_at = at
        self.fences += 1

    # ------------------------------------------------------------------------------------------ recovery

    def target(self) -> Checkpoint | None:
        """Return the checkpoint that recovery must take; None: it must replay."""
        for made in reversed(self.checkpoints):
            left = any(at > made.lineage_seq and restored < made.lineage_seq for at, restored in self.restores)
            if made.lineage_seq > self.moved_at and not left:
                return made
        return None
