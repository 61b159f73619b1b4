"""Law (I1–I3, I5–I7, I13–I15): many processes on one workflow, and it is as if they had taken turns.

Four agents append, two compact, one checkpoints, one recovers, at once, each a real process; then the store is read.
"""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import strandline
from strandline.engine.reading import read_log
from strandline.model.candidate import CandidateState
from strandline.model.ids import Scope
from strandline.testing.protocol import conforms
from tests.crash.crew import TENANT, WHOLE, WORKFLOW

pytestmark = pytest.mark.long

CREW = [("append", f"agent{n}", 30) for n in range(4)] + [
    ("compact", "compactor1", 8),
    ("compact", "compactor2", 8),
    ("checkpoint", "keeper", 15),
    ("recover", "healer", 6),
]
DONE_WITHIN_S = 180
KINDS = ("sqlite", "postgres-18", "postgres-15")


def start(url: str, role: str, name: str, count: int) -> subprocess.Popen:
    command = [sys.executable, str(Path(__file__).with_name("crew.py")), url, role, name, str(count)]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1
    )


def work(url: str) -> list[dict]:
    """Let all of them work, and return what they were told."""
    strandline.open(url).close()
    processes = [start(url, *each) for each in CREW]
    try:
        for process in processes:
            assert process.stdout.readline().startswith('{"ready"'), process.stderr.read()
        for process in processes:
            process.stdin.write("go\n")
        said = [process.communicate(timeout=DONE_WITHIN_S) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    complaints = {name: complaint for (_, name, _), (_, complaint) in zip(CREW, said, strict=True) if complaint}
    assert not complaints
    assert [process.returncode for process in processes] == [0] * len(CREW)
    return [json.loads(line) for told, _ in said for line in told.splitlines()]


@pytest.mark.parametrize("store_url", KINDS, indirect=True)
def test_many_processes_leave_one_log_and_one_lineage(store_url: str) -> None:
    told = work(store_url)
    with strandline.open(store_url) as db:
        workflow = db.tenant(TENANT).workflow(WORKFLOW)
        report, entries, context = db.verify(), workflow.lineage(), workflow.context(WHOLE)
        refused = conforms(workflow)
        with db.store.read(Scope(tenant=TENANT, workflow=WORKFLOW)) as tx:
            events = list(read_log(tx, 1, context.revision, WORKFLOW))
            candidates = list(tx.jobs.all_candidates())
    assert report.ok, report.problems
    assert refused is None, refused

    acknowledged = {key: seq for each in told for key, seq in each.get("appended", {}).items()}
    assert len(acknowledged) == 4 * sum(1 + number % 3 for number in range(30)), "bounded work, all of it done"
    assert [event.seq for event in events] == list(range(1, context.revision + 1))
    assert {event.key: event.seq for event in events} == acknowledged
    for n in range(4):
        own = [event.key for event in events if event.key.startswith(f"agent{n}-")]
        assert own == [f"agent{n}-{number}-{part}" for number in range(30) for part in range(1 + number % 3)]

    assert [entry.lineage_seq for entry in entries] == list(range(1, len(entries) + 1))
    kinds = {entry.lineage_seq: entry.kind for entry in entries}
    for each in told:
        if each.get("compacted") == "activated":
            assert kinds[each["lineage_seq"]] == "compaction"
        if "checkpoint" in each:
            assert kinds[each["checkpoint"]] == "checkpoint"
        if "lineage_seq" in each and "recovered" in each:
            assert kinds[each["lineage_seq"]] == each["recovered"]
    moves = [entry for entry in entries if entry.kind == "compaction"]
    assert [entry.generation for entry in moves] == list(range(1, len(moves) + 1))
    assert len(moves) == sum(each.get("compacted") == "activated" for each in told)
    assert moves
    assert max(Counter(entry.op_key for entry in moves).values()) == 1, "no attempt is active twice"
    states = Counter(candidate.state for candidate in candidates)
    assert states[CandidateState.ACTIVE] == 1
    assert states[CandidateState.ACTIVE] + states[CandidateState.SUPERSEDED] == len(moves)
    assert context.generation == len(moves)
    assert any("checkpoint" in each for each in told)
    assert any(each.get("recovered") in ("restore", "replay") for each in told)
