"""What the agent needed after real compactions, and whether a summary of ours of the same length holds it.

The sessions hold summaries that a model wrote. `Workflow.compare` makes ours at the same places, of at most as many
characters, and counts: needed is a reference that the input of that compaction held, and that the agent used before
anybody showed it again (ADR 23). Names in code in camelCase are counted in a row of their own: they are spelled out
again wherever the code is read again, and the ledger ranks them last on purpose (ADR 51).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import strandline
from strandline import ComparedSummary, Shares, Tally
from strandline.bench.quality.characters import Characters
from strandline.bench.quality.row import Row
from strandline.model.reference import ReferenceClass

SETS: Final = "claude_code_*"
SHARES: Final = Shares(segments=0.25, ledger=0.75, tail=0.0)  # what is measured is the summary: there is no tail
MARK: Final = 97.0
NAMES: Final = ReferenceClass.CAMEL_CASE.value


def measure(data: Path, tell: Callable[[int, int], None]) -> Iterator[Row]:
    """Compare every summary of a model in the sessions with ours."""
    files = sorted(data.glob(f"{SETS}/*.jsonl"))
    found: list[ComparedSummary] = []
    for number, file in enumerate(files):
        tell(number, len(files))
        found += _compared(file)
    reason = "" if found else f"no session with a summary of a model in {SETS}"
    own, names = _apart(found)
    yield _row(
        "needed_later",
        "references needed after a compaction that stand in a summary of the same length",
        own,
        found,
        reason,
    )
    yield _row("needed_names", "the same of names in code (camelCase), which are ranked last", names, found, reason)


def _compared(file: Path) -> tuple[ComparedSummary, ...]:
    with strandline.open(":memory:", counter=Characters()) as db:
        workflow = db.tenant("bench").workflow("session")
        workflow.import_transcript(file)
        return workflow.compare(shares=SHARES).summaries


def _apart(found: list[ComparedSummary]) -> tuple[Tally, Tally]:
    """Return the sums of all classes but the names in code, and of those."""
    by_class = [item for each in found for item in each.needed_by_class.items()]
    names = Tally.sum(tally for name, tally in by_class if name == NAMES)
    return Tally.sum(tally for name, tally in by_class if name != NAMES), names


def _row(row: str, measure: str, tally: Tally, found: list[ComparedSummary], reason: str) -> Row:
    theirs = 100 * tally.theirs / tally.needed if tally.needed else 0.0
    prose = [each.ours_prose_tokens / each.ours_tokens for each in found if each.ours_tokens]
    whole = sum(each.ours_prose_tokens for each in found) / max(1, sum(each.ours_tokens for each in found))
    said = (
        f"{tally.ours} of {tally.needed}; the model's own summary holds {theirs:.1f} %;"
        f" prose {100 * whole:.0f} % of ours, {100 * min(prose, default=0):.0f} % where it is least"
    )
    return Row(
        id=row,
        measure=measure,
        data=f"{len(found)} real compactions in {SETS}",
        value=100 * tally.ours / tally.needed if tally.needed else None,
        mark=MARK,
        reason=reason or said,
    )
