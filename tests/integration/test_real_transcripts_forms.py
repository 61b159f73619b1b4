"""Real sessions of other tools: import, split, compact, verify; cut or damaged, they are refused or salvaged (C2).

They lie in the folder `shared/data` beside the checkout. Where it is absent these tests say so and are skipped.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import pytest

import strandline
from strandline.errors import ImportFormatError

pytestmark = pytest.mark.long

CHECKOUT = Path(__file__).resolve().parents[2]
DATA = CHECKOUT.parent / "shared" / "data"
KINDS = {
    "codex": "codex_rollouts/*.jsonl",
    "gemini_cli": "gemini_cli/*.json",
    "inspect": "inspect_ai/*.json",
    "openhands": "openhands_events/*.jsonl",
    "pi": "pi_coding_agent/*.jsonl",
    "swe_agent": "swe_agent/*.traj",
    "who_and_when": "who_and_when/*/*.json",
}
FILES = [(form, path) for form, pattern in KINDS.items() for path in sorted(DATA.glob(pattern))]
BUDGET = 6_000
DAMAGES = 2  # for each file

needs_data = pytest.mark.skipif(not FILES, reason=f"no sessions at {DATA}")
each_file = pytest.mark.parametrize(("form", "path"), FILES, ids=[f"{form}-{path.stem}" for form, path in FILES])


@needs_data
@each_file
def test_real_sessions_are_imported_compacted_and_verified(form: str, path: Path) -> None:
    """C2, I3, I7–I9: every result has its call, nothing comes twice, nothing is unaccounted for."""
    with strandline.open(":memory:") as db:
        workflow = db.tenant("default").workflow("w")
        report = workflow.import_transcript(path)
        assert report.format == form
        assert workflow.import_transcript(path).events_imported == 0
        kinds: Counter[str] = Counter()
        for first in range(1, report.revision + 1, 1_000):
            for event in workflow.events(first, min(report.revision, first + 999)):
                kinds[event.kind] += 1
                assert event.kind != "tool_result" or event.call_seq is not None
                assert not event.late
        assert kinds["message"] > 0
        assert kinds["tool_result"] <= kinds["tool_call"]
        outcome = workflow.compact(BUDGET)
        assert outcome.outcome in ("activated", "nothing_to_do")
        assert outcome.refs_unaccounted == 0
        assert db.verify().problems == ()


def texts(path: Path) -> list[str]:
    """Return what was said in a file, found by the standard library and by other means than ours."""
    text = path.read_text(encoding="utf-8")
    try:
        records = [json.loads(text)]
    except json.JSONDecodeError:
        records = [json.loads(line) for line in text.splitlines()]
    found = []
    for record in records:
        item = record.get("payload") or record.get("message") or {}
        said = item.get("content") if record.get("type") in ("response_item", "message") else None
        blocks = said if isinstance(said, list) else [{"text": said}]
        found += [block.get("text") for block in blocks]
        entries = record.get("history") or record.get("messages") or ()
        for sample in record.get("samples") or ():
            entries = [*entries, *sample["messages"]]
        found += [entry.get("content") for entry in entries if entry.get("observation") != "agent_state_changed"]
    return [text for text in found if isinstance(text, str) and text.strip()]


@needs_data
@each_file
def test_every_text_of_a_real_session_stands_in_the_log(form: str, path: Path) -> None:
    with strandline.open(":memory:") as db:
        workflow = db.tenant("default").workflow("w")
        revision = workflow.import_transcript(path).revision
        whole = "\0".join(
            event.text if event.kind != "tool_result" else json.dumps(event.payload, ensure_ascii=False) + event.text
            for first in range(1, revision + 1, 1_000)
            for event in workflow.events(first, min(revision, first + 999))
        )
        framed = form == "swe_agent"  # the content of an action is stated as its thought and its command
        missing = [text for text in texts(path) if text not in whole and not (framed and "```" in text)]
        assert missing == []


@needs_data
@pytest.mark.parametrize("path", [p for f, p in FILES if f in ("openhands", "inspect")], ids=lambda path: path.stem)
def test_real_runs_are_split(path: Path) -> None:
    with strandline.open(":memory:") as db:
        reports = db.tenant("default").import_conversations(path, "run")
        assert [report.workflow for report in reports] == [f"run-{n}" for n in range(1, len(reports) + 1)]
        assert db.verify().problems == ()


@needs_data
@each_file
def test_a_real_session_that_is_damaged_is_refused_or_salvaged(form: str, path: Path, tmp_path: Path) -> None:
    chance = random.Random(f"{form}/{path.stem}")
    data = path.read_bytes()
    for number in range(DAMAGES):
        at = chance.randrange(len(data))
        damaged = data[:at] + b"\x00" + data[at + 1 :] if number % 2 else data[:at]
        file = tmp_path / f"{number}{path.suffix}"
        file.write_bytes(damaged)
        with strandline.open(":memory:") as db:
            workflow = db.tenant("default").workflow("w")
            between_records = number % 2 == 0 and b"\n" in (data[at - 1 : at], data[at : at + 1]) and at > 0
            if not (between_records and path.suffix == ".jsonl"):
                with pytest.raises(ImportFormatError):
                    workflow.import_transcript(file)
                assert workflow.basis().revision == 0
            try:
                report = workflow.import_transcript(file, salvage=True)
            except ImportFormatError:
                continue  # what tells the format is what was damaged
            assert between_records or report.left_out_count > 0
            assert db.verify().problems == ()
