"""What the tests of telemetry stand on: a life of a workflow in which every occurrence comes up, and a hook that notes
it. The life is tested here: it must not leave an occurrence out.
"""

from __future__ import annotations

import sqlite3

import pytest

import strandline
from strandline.ports.occurrences import OCCURRENCES
from strandline.testing import ScriptedSummarizer
from tests.unit.test_engine_stage import new_workflow, open_store, talk

SECRET = "vault-9f31c7"  # stands in bodies, references, keys, actions, drafts, names of persons and reasons
PAYLOADS = (SECRET, "pump room", "bucket-", "/srv/site", "Fine", "alice", "bob", "Work went on")


class Recorder:
    """Notes what a hook is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, dict[str, object]]] = []

    def emit(self, name, details) -> None:
        self.told.append((name, dict(details)))

    def of(self, name: str) -> list[dict[str, object]]:
        return [details for told, details in self.told if told == name]


def live(tmp_path, *hooks, kind="sqlite") -> strandline.Strandline:
    """Live through every occurrence in a store that these hooks watch; return it, open and damaged."""
    db = open_store(kind, tmp_path, hooks=hooks)
    wf = new_workflow(db)
    wf.append([strandline.message("user", f"The key is {SECRET}.", refs=[SECRET], key=SECRET), *talk(30)])
    wf.append([strandline.approval("security-review", f"Fine, says {SECRET}.", granter="alice")])
    busy = strandline.TransientSummarizerError(f"busy with {SECRET}")
    assert wf.compact(250, ScriptedSummarizer([busy, "Work went on."])).outcome == "activated"
    wf.append(talk(8, start=50))
    assert wf.compact(500, ScriptedSummarizer([f"In {SECRET}-dead99."] * 3), fallback=False).outcome == "quarantined"
    wf.compact_later(400)
    for key in db.sweep():
        db.run_due(key, ScriptedSummarizer([busy]), worker="worker-1")
    wf.context(needs=[SECRET])
    wf.define_view("publisher", audiences={"all"})
    wf.checkpoint({"key": SECRET}, 1, basis=wf.context(), name=SECRET)
    wf.recover(name=SECRET)
    wf.recover()
    with pytest.raises(strandline.SummaryReconciliationError) as refused:
        wf.recover([wf.manifest().dropped[0].ref])
    wf.reconcile(refused.value.case_id, strandline.ReplayFromExact(), by=SECRET, why=SECRET)
    with pytest.raises(strandline.ContextOverflowError):
        wf.context(300, needs=[entry.ref for entry in wf.manifest().dropped])
    wf.effect(SECRET, "create_bucket", {"name": SECRET}, run=lambda: SECRET)
    wf.guard(f"publish {SECRET}", [strandline.approved("security-review")], by="bob")
    with pytest.raises(strandline.ActionDeniedError):
        wf.guard(f"publish {SECRET}", [strandline.approved("no-review")])
    wf.fork(None, f"{wf.name}-fork", by=SECRET, why=SECRET)
    wf.report_regression(1, by=SECRET, why=SECRET)
    wf.revert(0, by=SECRET, why=SECRET)
    wf.rewind(5, by=SECRET, why=SECRET)
    wf.erase(refs=[SECRET], by=SECRET, why=SECRET)
    file = tmp_path / "log.jsonl"
    file.write_text('{"kind": "message", "role": "user", "text": "It is ' + SECRET + '.", "key": "k1"}\n')
    new_workflow(db).import_transcript(file)
    if kind == "sqlite":
        _damage(tmp_path / "store.db", db, wf)
    return db


def _damage(path, db, wf) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TRIGGER event_is_never_changed")
        connection.execute("UPDATE event SET chain = zeroblob(32) WHERE seq = 3 AND workflow_id = 1")
    connection.close()
    with pytest.raises(strandline.CorruptRecordError):
        wf.events()
    assert not db.verify().ok


def test_the_life_leaves_no_occurrence_out(tmp_path):
    recorder = Recorder()
    live(tmp_path, recorder).close()
    assert {name for name, _ in recorder.told} == set(OCCURRENCES)
    assert {details["state"] for details in recorder.of("attempt")} == {"failed", "validated", "quarantined"}
    assert {details["outcome"] for details in recorder.of("recovery")} == {"restore", "replay"}
