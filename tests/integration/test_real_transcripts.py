"""Real Claude Code sessions: import, compact to 12,000 tokens, verify (C2, I7, I9).

They lie in the folder `shared/data` beside the checkout. Where it is absent these tests say so and are skipped.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import strandline

pytestmark = pytest.mark.long

CHECKOUT = Path(__file__).resolve().parents[2]
DATA = CHECKOUT.parent / "shared" / "data"
FILES = sorted(DATA.glob("claude_code_*/*.jsonl"))
BUDGET = 12_000
PEAK_MB = 300

needs_data = pytest.mark.skipif(not FILES, reason=f"no transcripts at {DATA}")

MEASURED = """
import json, sys
import strandline
from strandline.bench.rounds import peak_memory_mb
with strandline.open(sys.argv[2]) as db:
    workflow = db.tenant("default").workflow("w")
    report = workflow.import_transcript(sys.argv[1])
    outcome = workflow.compact(int(sys.argv[3]))
    verified = db.verify()
    again = workflow.import_transcript(sys.argv[1])
print(json.dumps({
    "outcome": outcome.outcome, "events": report.events_imported, "unaccounted": outcome.refs_unaccounted,
    "tokens": outcome.tokens_after, "watermark": outcome.watermark, "revision": outcome.revision,
    "problems": [problem.reason for problem in verified.problems], "again": again.events_imported,
    "foreign": report.foreign_summaries, "peak_mb": peak_memory_mb(),
}))
"""


@needs_data
@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_a_real_session_is_imported_compacted_and_verified(path: Path, tmp_path: Path) -> None:
    """Every reference is accounted for, the budget holds, nothing is imported twice, memory stays bounded."""
    command = [sys.executable, "-c", MEASURED, str(path), str(tmp_path / "s.db"), str(BUDGET)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["outcome"] == "activated"
    assert seen["unaccounted"] == 0
    assert seen["tokens"] <= BUDGET
    assert 0 < seen["watermark"] < seen["revision"] == seen["events"]
    assert seen["problems"] == []
    assert seen["again"] == 0
    assert seen["peak_mb"] < PEAK_MB
    compactions = json.loads((path.parent / "INDEX.json").read_text())[path.stem]["compactions"]
    assert seen["foreign"] == len(compactions)


@needs_data
@pytest.mark.parametrize("path", FILES[:3], ids=[path.stem for path in FILES[:3]])
def test_a_session_that_grows_is_compacted_again_and_again(path: Path, tmp_path: Path) -> None:
    """I7, I9, I12: imports of growing prefixes with a compaction after each; the log is that of one whole import."""
    lines = path.read_bytes().splitlines(keepends=True)
    with strandline.open(tmp_path / "s.db") as db, strandline.open(":memory:") as whole:
        workflow = db.tenant("default").workflow("w")
        prefix = tmp_path / "prefix.jsonl"
        for part in range(1, 7):
            prefix.write_bytes(b"".join(lines[: len(lines) * part // 6]))
            workflow.import_transcript(prefix)
            outcome = workflow.compact(BUDGET)
            assert outcome.refs_unaccounted == 0
            assert outcome.tokens_after <= BUDGET
            assert outcome.depth == 1
        assert db.verify().problems == ()
        reference = whole.tenant("default").workflow("w")
        reference.import_transcript(path)
        assert workflow.events() == reference.events()
