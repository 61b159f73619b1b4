"""The process that dies: it compacts, and its summarizer stops in the middle of its draft until somebody kills it.

Run as `python child.py STORE WORKFLOW BUDGET MARKER DRAFT_FILE`. Once half a draft stands in DRAFT_FILE it prints one
line.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import strandline
from strandline.summarizers import ExtractiveSummarizer

WAIT_FOR_DEATH_S = 120.0


class HalfwaySummarizer(ExtractiveSummarizer):
    """The default summarizer, so that the job is the one that a later attempt finds; but it never gets to the end."""

    def __init__(self, marker: str, draft_file: Path) -> None:
        super().__init__()
        self._marker = marker
        self._draft_file = draft_file

    def summarize(self, request: strandline.SummaryRequest) -> strandline.Draft:
        """Write half a draft where it can be seen, say so, and wait."""
        draft = super().summarize(request)
        half = f"{self._marker} {draft.text[: len(draft.text) // 2]}".encode(errors="replace")
        self._draft_file.write_bytes(half)
        said = {
            "from_seq": request.from_seq,
            "through_seq": request.through_seq,
            "written_bytes": len(half),
            "draft_bytes": len(draft.text.encode(errors="replace")),
        }
        print(json.dumps(said), flush=True)
        time.sleep(WAIT_FOR_DEATH_S)
        return draft


def main(store: str, workflow: str, budget: str, marker: str, draft_file: str) -> None:
    """Compact once; say so when the budget is too small for it."""
    with strandline.open(store, create=False) as db:
        log = db.tenant("default").workflow(workflow)
        try:
            log.compact(int(budget), HalfwaySummarizer(marker, Path(draft_file)))
        except strandline.ContextOverflowError as error:
            print(json.dumps({"overflow": error.message, "needed": error.needed}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
