"""Import as the engine does it: one transaction, places of faults, files small and large (C2)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import strandline
from strandline.engine import import_transcript as module


def _file(folder: Path, records: list[dict[str, object]]) -> Path:
    path = folder / "t.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def _say(number: int) -> dict[str, object]:
    return {"kind": "message", "role": "user", "text": f"hello {number}", "key": f"k{number}"}


@pytest.mark.parametrize("kept", [0, 10**9], ids=["read twice", "kept"])
def test_a_file_is_imported_the_same_whether_it_is_kept_or_read_twice(
    tmp_path: Path, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C2: memory does not grow with a large file; the outcome is that of a small one."""
    monkeypatch.setattr(module, "IMPORT_KEPT_BYTES_MAX", kept)
    path = _file(tmp_path, [_say(number) for number in range(600)])
    told: list[int] = []
    with strandline.open(":memory:") as db:
        workflow = db.tenant("acme").workflow("w")
        report = workflow.import_transcript(path, told.append)
        assert (report.events_imported, report.lines, report.revision) == (600, 600, 600)
        assert workflow.import_transcript(path).events_imported == 0
        assert [event.text for event in workflow.events()] == [f"hello {number}" for number in range(600)]
    assert told == sorted(told)
    assert told[-1] == path.stat().st_size


@pytest.mark.parametrize("kept", [0, 10**9], ids=["read twice", "kept"])
def test_what_the_log_refuses_is_named_by_line_and_byte(
    tmp_path: Path, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SPEC §6: a record that reads well but can't be appended has its place too, and nothing is imported."""
    monkeypatch.setattr(module, "IMPORT_KEPT_BYTES_MAX", kept)
    records = [
        *(_say(number) for number in range(300)),
        {"kind": "resolve", "subject": "nothing", "key": "r"},
        _say(301),
    ]
    path = _file(tmp_path, records)
    with strandline.open(":memory:") as db:
        workflow = db.tenant("acme").workflow("w")
        with pytest.raises(strandline.ImportFormatError, match="no such issue") as caught:
            workflow.import_transcript(path)
        assert caught.value.line == 301
        assert path.read_bytes()[caught.value.byte :].startswith(b'{"kind": "resolve"')
        assert workflow.events() == []


def test_a_file_is_read_and_prepared_before_anybody_has_to_wait(tmp_path, monkeypatch):
    """I22: other writers, of other tenants too, wait for the adding alone and not for the reading of a file."""
    path = tmp_path / "t.jsonl"
    path.write_text("".join(json.dumps({"kind": "note", "text": f"n{n} vol-{n:04d}"}) + "\n" for n in range(50)))
    with strandline.open(tmp_path / "s.db") as db:
        other = db.tenant("other").workflow("w")
        seen = []

        def also_writing(event, *rest):
            seen.append(other.append(strandline.note("meanwhile")).revision)
            return prepare(event, *rest)

        prepare = module.prepare
        monkeypatch.setattr(module, "prepare", also_writing)
        assert db.tenant("acme").workflow("w").import_transcript(path).events_imported == 50
        assert seen == list(range(1, 51))
