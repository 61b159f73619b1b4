"""Law (C2, I4): a session that is still being written is imported bit by bit, and the log becomes what one import of
the whole makes it. A line that is not whole yet is left for the next time; one that stays torn costs no other.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import strandline
from strandline import limits
from strandline.transcripts import live, transcript
from strandline.transcripts.live import behind_known

Record = dict[str, object]
SESSIONS = sorted((Path(__file__).resolve().parents[2] / ".." / "shared" / "data").glob("claude_code_*/*.jsonl"))


def _record(type: str, uuid: str, content: object, **members: object) -> Record:
    return {"type": type, "uuid": uuid, "sessionId": "s", "message": {"content": content}, **members}


def _session() -> list[Record]:
    """Calls that are open at a boundary, a side lane, parents that are not the record before, two compactions."""
    records: list[Record] = []
    for part in range(3):
        call = {"type": "tool_use", "id": f"c{part}", "name": "Bash", "input": {"command": f"make t{part}"}}
        records += [
            _record("user", f"u{part}", f"do part {part}", parentUuid=None if part == 0 else f"sum{part - 1}"),
            {"type": "file-history-snapshot", "messageId": f"m{part}"},
            _record("assistant", f"a{part}", [{"type": "text", "text": "now"}, call], parentUuid=f"u{part}"),
            _record("user", f"side{part}", "look", isSidechain=True, agentId="x", parentUuid=None),
            _record("user", f"meta{part}", "note", isMeta=True, parentUuid=f"a{part}"),
            {"type": "system", "subtype": "compact_boundary", "uuid": f"b{part}", "sessionId": "s"},
            _record("user", f"sum{part}", f"summary {part}", isCompactSummary=True),
        ]
        if part == 1:
            result = {"type": "tool_result", "tool_use_id": f"c{part}", "content": "late"}
            records.insert(-2, _record("user", "r1", [result], parentUuid="a1"))
    return records


def _bytes(records: list[Record]) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def _log(workflow: strandline.Workflow) -> list[tuple[object, ...]]:
    return [tuple(event) for event in workflow.events()]


def _whole(path: Path) -> tuple[list[tuple[object, ...]], int]:
    with strandline.open(":memory:") as db:
        workflow = db.tenant("acme").workflow("w")
        report = workflow.import_transcript(path)
        return _log(workflow), report.foreign_summaries


@pytest.mark.parametrize("block", [1, 64, limits.LIVE_BLOCK_BYTES])
def test_bit_by_bit_is_as_at_once(tmp_path: Path, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """C2: whatever part of the file is there when it is imported, also half a line."""
    monkeypatch.setattr(live, "LIVE_BLOCK_BYTES", block)
    data = _bytes(_session())
    path = tmp_path / "s.jsonl"
    path.write_bytes(data)
    whole, foreign = _whole(path)
    step = 97
    with strandline.open(":memory:") as db:
        workflow = db.tenant("acme").workflow("w")
        first = data.index(b"\n") + 1
        for end in [*range(first, len(data), step), len(data)]:
            path.write_bytes(data[:end])
            report = workflow.import_transcript(path, live=True)
            assert report.unfinished_bytes == len(data[:end]) - data[:end].rfind(b"\n") - 1
        assert _log(workflow) == whole
        assert workflow.import_transcript(path, live=True).events_imported == 0
        assert workflow.import_transcript(path).events_imported == 0  # a whole import finds all it states
    assert foreign == 3


def test_only_what_is_new_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time follows what is new: the reader is given no line before the newest one that the log holds."""
    path = tmp_path / "s.jsonl"
    records = [_record("user", f"u{number}", f"say {number}") for number in range(300)]
    path.write_bytes(_bytes(records[:299]))
    read: list[int] = []
    true = transcript.read_lines

    def counting(path: Path, tally: transcript.Tally):  # type: ignore[no-untyped-def]
        for line in true(path, tally):
            read.append(line.number)
            yield line

    with strandline.open(":memory:") as db:
        workflow = db.tenant("acme").workflow("w")
        workflow.import_transcript(path, live=True)
        path.write_bytes(_bytes(records))
        monkeypatch.setattr(transcript, "read_lines", counting)
        report = workflow.import_transcript(path, live=True)
    assert (report.events_imported, report.events_known, report.lines, read) == (1, 0, 300, [300])


def test_a_last_line_without_its_end_that_is_whole_is_taken_once(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    data = _bytes([_record("user", "u1", "hello"), _record("user", "u2", "world")])
    path.write_bytes(data[:-1])
    with strandline.open(":memory:") as db:
        workflow = db.tenant("acme").workflow("w")
        assert workflow.import_transcript(path, live=True).events_imported == 2
        path.write_bytes(data + _bytes([_record("user", "u3", "!")]))
        report = workflow.import_transcript(path, live=True)
        assert (report.events_imported, report.lines, report.revision) == (1, 3, 3)


def _torn(data: bytes) -> bytes:
    """Cut the line of the first summary in its middle; its end stays."""
    start = data.index(b'{"type": "user", "uuid": "sum0"')
    end = data.index(b"\n", start)
    return data[: start + (end - start) // 2] + data[end:]


def _glued(data: bytes) -> bytes:
    """As `_torn`, and the next record begins on the same line."""
    torn = _torn(data)
    start = torn.index(b'{"type": "user", "uuid": "sum0"')
    end = torn.index(b"\n", start)
    return torn[:end] + torn[end + 1 :]


@pytest.mark.parametrize("damage", [_torn, _glued])
def test_a_torn_summary_costs_no_other_record(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    """I4: refused by line and byte; a salvage keeps all that is whole, before and behind, and says what is not."""
    path = tmp_path / "s.jsonl"
    data = damage(_bytes(_session()))
    path.write_bytes(data)
    with strandline.open(":memory:") as db:
        workflow = db.tenant("acme").workflow("w")
        with pytest.raises(strandline.ImportFormatError) as caught:
            workflow.import_transcript(path, live=True)
        assert (caught.value.line, workflow.basis().revision) == (7, 0)
        report = workflow.import_transcript(path, live=True, salvage=True)
        assert (report.left_out_count, report.left_out[0].line) == (1, 7)
        assert report.foreign_summaries == 2
        texts = [event.text for event in workflow.events()]
        assert "do part 0" in texts
        assert "do part 2" in texts
        assert sum("line 7" in text for text in texts) == 1
        again = workflow.import_transcript(path, live=True, salvage=True)
        assert again.events_imported == 0


def test_a_gap_at_the_end_is_said_once_as_the_file_grows(tmp_path: Path) -> None:
    """The note of a damaged line bears a key: the line is read again each time, and told of once."""
    path = tmp_path / "s.jsonl"
    data = _bytes([_record("user", "u1", "hello")]) + b'{"type":"user","uuid":"u2",\n'
    path.write_bytes(data)
    with strandline.open(":memory:") as db:
        workflow = db.tenant("acme").workflow("w")
        for _ in range(2):
            workflow.import_transcript(path, live=True, salvage=True)
        path.write_bytes(data + _bytes([_record("user", "u3", "world")]))
        workflow.import_transcript(path, live=True, salvage=True)
        assert [event.kind for event in workflow.events()] == ["message", "note", "message"]


def test_an_orphan_result_is_refused_though_the_tail_can_t_tell(tmp_path: Path) -> None:
    """I8: the call of a result may stand before what is read; where the log does not hold it either, it is damage."""
    path = tmp_path / "s.jsonl"
    path.write_bytes(_bytes([_record("user", "u1", "hello")]))
    orphan = _record("user", "u2", [{"type": "tool_result", "tool_use_id": "never", "content": "x"}])
    with strandline.open(":memory:") as db:
        workflow = db.tenant("acme").workflow("w")
        workflow.import_transcript(path, live=True)
        path.write_bytes(_bytes([_record("user", "u1", "hello"), orphan]))
        with pytest.raises(strandline.ImportFormatError) as caught:
            workflow.import_transcript(path, live=True)
        assert (caught.value.line, workflow.basis().revision) == (2, 1)


def test_a_file_of_which_the_log_knows_nothing_is_read_from_its_start(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(_bytes(_session()))
    assert behind_known(path, path.stat().st_size, lambda keys: {}).byte == 0


@pytest.mark.parametrize("format", ["openai", "jsonl"])
def test_other_formats_are_read_whole_and_their_unfinished_line_waits(tmp_path: Path, format: str) -> None:
    line = {"openai": b'{"role":"user","content":"a"}\n', "jsonl": b'{"kind":"note","text":"a"}\n'}[format]
    path = tmp_path / "s.jsonl"
    path.write_bytes(line * 2 + line[:9])
    with strandline.open(":memory:") as db:
        workflow = db.tenant("acme").workflow("w")
        report = workflow.import_transcript(path, live=True)
        assert (report.events_imported, report.unfinished_bytes) == (2, 9)
        path.write_bytes(line * 3)
        report = workflow.import_transcript(path, live=True)
        assert (report.events_imported, report.events_known, report.unfinished_bytes) == (1, 2, 0)


@pytest.mark.long
@pytest.mark.parametrize(
    "session", SESSIONS or [pytest.param(None, marks=pytest.mark.skip("no sessions in ../shared"))]
)
def test_real_sessions_bit_by_bit(session: Path, tmp_path: Path) -> None:
    """The same of each real session, cut at 12 places that are no ends of lines."""
    whole, _ = _whole(session)
    data = session.read_bytes()
    path = tmp_path / session.name
    with strandline.open(":memory:") as db:
        workflow = db.tenant("acme").workflow("w")
        for part in range(1, 13):
            path.write_bytes(data[: len(data) * part // 12])
            workflow.import_transcript(path, live=True)
        assert _log(workflow) == whole
