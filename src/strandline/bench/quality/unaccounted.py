"""References that neither summary nor manifest accounts for (I9), counted anew from the log.

Every transcript of the data sets that can be imported and compacted counts. Each reference of each covered event has
to stand verbatim in the summary, or in the manifest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import strandline
from strandline.bench.quality.row import Row
from strandline.limits import EVENTS_PAGE_MAX
from strandline.rules.verbatim import verbatim_subset

SUFFIXES: Final = (".json", ".jsonl", ".traj")
BUDGET_TOKENS: Final = 4_000  # small: much has to be dropped


def measure(data: Path, tell: Callable[[int, int], None]) -> Iterator[Row]:
    """Import and compact every file, and count."""
    files = sorted(file for file in data.glob("*/**/*") if file.suffix in SUFFIXES and file.name != "INDEX.json")
    seen = missing = imported = 0
    left_out: list[str] = []
    for number, file in enumerate(files):
        tell(number, len(files))
        with strandline.open(":memory:") as db:
            workflow = db.tenant("bench").workflow("transcript")
            try:
                workflow.import_transcript(file)
                refs, lost = _accounted(workflow)
            except (strandline.ImportFormatError, strandline.ContextOverflowError):
                left_out.append(file.relative_to(data).parts[0])
                continue
        imported, seen, missing = imported + 1, seen + refs, missing + lost
    not_read = (
        f"; {len(left_out)} files of {', '.join(sorted(set(left_out)))} could not be read, or not be compacted so far"
        if left_out
        else ""
    )
    yield Row(
        id="unaccounted",
        measure="references of covered events in neither summary nor manifest",
        data=f"{imported} transcripts",
        value=float(missing) if imported else None,
        mark=0.0,
        at_most=True,
        unit="",
        reason=f"of {seen:,} references{not_read}" if imported else "no transcript that can be imported",
    )


def _accounted(workflow: strandline.Workflow) -> tuple[int, int]:
    """Compact, and return how many references the covered events hold, and how many of them are unaccounted for."""
    done = workflow.compact(BUDGET_TOKENS)
    if done.summary is None:
        return 0, 0
    covered: set[str] = set()
    for start in range(1, done.watermark + 1, EVENTS_PAGE_MAX):
        page = workflow.events(start, min(done.watermark, start + EVENTS_PAGE_MAX - 1))
        covered.update(ref for event in page for ref in (*event.declared, *event.extracted))
    summary = done.summary
    parts = [*(segment.text for segment in summary.segments), summary.anchors_text, summary.ledger_text]
    dropped = {entry.ref for entry in workflow.manifest()}
    standing = set().union(*(verbatim_subset(covered, part) for part in parts))
    return len(covered), len(covered - standing - dropped)
