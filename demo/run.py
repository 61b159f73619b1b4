"""What the steps of one run share: the store, the names of the files, and how a compaction is spoken of."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import strandline
from demo.facts import Bar, Step, Story
from demo.visible import counted, span

STORE, CONTROL = "store.db", "control.db"
FIRST_PART, HALF_DRAFT, PAGE = "first-part.jsonl", "half-draft.txt", "report.html"


@dataclass(slots=True)
class Run:
    """What the steps of one run share."""

    story: Story
    out: Path
    workflow: str
    texts: dict[int, str] = field(default_factory=dict)  # of each event, out of the control store
    state: object = None  # as it was checkpointed
    checkpoint_seq: int = 0
    whole_tokens: int = 0  # of summary and whole tail before the second compaction

    @property
    def store(self) -> Path:
        """Where the store lies."""
        return self.out / STORE

    def open(self) -> strandline.Strandline:
        """Open a fresh handle on the store."""
        return strandline.open(self.store)

    def log(self, db: strandline.Strandline) -> strandline.Workflow:
        """Return the workflow of the transcript."""
        return db.tenant("default").workflow(self.workflow)


def work_files(out: Path) -> list[Path]:
    """Return the files that a run makes."""
    databases = [name + suffix for name in (STORE, CONTROL) for suffix in ("", "-wal", "-shm")]
    return [out / name for name in (*databases, FIRST_PART, HALF_DRAFT, PAGE)]


def say_outcome(step: Step, outcome: strandline.CompactionOutcome, read_tokens: int, budget: int) -> None:
    """Say what a compaction did, and check its claims."""
    step.bars = [Bar("before", outcome.tokens_before), Bar("after", outcome.tokens_after)]
    tail = f"; {span(outcome.watermark + 1, outcome.revision)} verbatim behind it"
    step.say(
        f"generation {outcome.generation} speaks for {span(1, outcome.watermark)}"
        + (tail if outcome.watermark < outcome.revision else "")
    )
    step.check(
        f"{read_tokens:,} tokens are read, within the budget of {budget:,}",
        outcome.tokens_after == read_tokens <= budget,
    )
    step.check(
        f"{counted(outcome.refs_seen, 'reference')} seen = {outcome.refs_verbatim:,} verbatim + "
        f"{outcome.refs_dropped:,} dropped, each in the manifest",
        outcome.refs_unaccounted == 0 and outcome.refs_seen == outcome.refs_verbatim + outcome.refs_dropped,
    )
