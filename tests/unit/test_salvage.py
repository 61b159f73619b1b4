"""Laws of a salvage (C2): what is whole is read, what is damaged is left out and listed, nothing is made up; the log
itself says where something is missing; the outcome is the same every time.
"""

from __future__ import annotations

import json
import pathlib
import time
from hashlib import blake2b

import pytest

import strandline
from strandline import limits
from strandline.engine import import_transcript as engine
from strandline.errors import IdempotencyConflictError, ImportFormatError
from strandline.model.event import NewEvent
from strandline.model.transcript import ImportReport
from strandline.transcripts import Transcript, lines, open_transcript
from tests.unit.test_transcripts_properties import CHAT, CONVERSATION, FILES


def opened(path: pathlib.Path, data: bytes) -> Transcript:
    path.write_bytes(data)
    return open_transcript(path, digest=lambda b: blake2b(b, digest_size=8).hexdigest(), salvage=True)


def salvaged(path: pathlib.Path, data: bytes) -> tuple[list[object], list[str], Transcript] | None:
    """Return the bodies read, the notes on what was left out, and the transcript; None where no format is told."""
    try:
        transcript = opened(path, data)
    except ImportFormatError:
        return None
    events = [item for item in transcript.items() if isinstance(item, NewEvent)]
    notes = [str(event.body) for event in events if str(event.key).startswith("left-out:")]
    return [event.body for event in events if str(event.body) not in notes], notes, transcript


@pytest.fixture(scope="session")
def path(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return tmp_path_factory.mktemp("salvage") / "damaged.jsonl"


@pytest.mark.parametrize("name", FILES)
def test_of_a_file_cut_anywhere_a_prefix_is_read_and_the_cut_is_told(path: pathlib.Path, name: str) -> None:
    """Exhaustive. What opens a conversation may say less of it, where its end is gone."""
    found = salvaged(path, FILES[name])
    assert found is not None
    whole, notes, _ = found
    assert notes == []
    longest = 0
    for cut in range(1, len(FILES[name])):
        found = salvaged(path, FILES[name][:cut])
        if found is None:
            continue
        bodies, notes, transcript = found
        assert all(was == is_ or "Conversation" in str(is_) for was, is_ in zip(whole, bodies, strict=False))
        assert len(bodies) <= len(whole)
        assert len(notes) == transcript.left_out_count <= 1
        for left in transcript.left_out:
            assert left.byte + left.size_bytes in (cut, cut - 1)  # without the end of the line
            assert left.line == FILES[name][: left.byte].count(b"\n") + 1
        assert len(bodies) >= longest or "episodes" in name  # nothing that was whole before is lost by more bytes
        longest = max(longest, len(bodies))
    assert longest >= len(whole) - 1


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("byte", [0, 0x22, 0x7B, 0x2C, 0xFF], ids=hex)
def test_each_byte_changed_is_read_or_left_out_and_never_made_up(path: pathlib.Path, name: str, byte: int) -> None:
    """For NUL exhaustive in the place: no exception, places in the file, a note for what is missing."""
    whole = salvaged(path, FILES[name])
    assert whole is not None
    for at in range(0, len(FILES[name]), 3 if byte else 1):
        data = bytearray(FILES[name])
        data[at] = byte
        found = salvaged(path, bytes(data))
        if found is None:
            continue
        bodies, notes, transcript = found
        assert bool(notes) == bool(transcript.left_out_count)
        assert all(0 <= left.byte <= left.byte + left.size_bytes <= len(data) for left in transcript.left_out)
        if byte in (0, 0xFF):
            assert notes
            kept = [body for body in bodies if "Conversation" not in str(body)]
            rest = iter(whole[0])
            assert all(any(body == other for other in rest) for body in kept)  # in order, and as they stood


@pytest.mark.parametrize(
    ("data", "count"),
    [
        (b"[" + b",".join([CHAT[0], b'{"role":"us\0er"}', CHAT[0], CHAT[0]]) + b"]", 3),
        (b"[" + b",".join([CHAT[0], b'{"role":"user","content":"x}', CHAT[0], CHAT[0]]) + b"]", 3),
        (b"[" + b",".join([CHAT[0], b'{"role":"user","content":{"x"}', CHAT[0], CHAT[0]]) + b"]", 3),
        (b"[" + b",".join([CHAT[0], b"17", CHAT[0]]) + b"]", 2),
        (b"[" + CHAT[0] + b"," + CHAT[0] + b"][" + CHAT[0] + b"]", 2),
        (b"[" + CHAT[0] + b"," + CHAT[0] + b"]" + CHAT[0], 2),
        (b"[" + CHAT[0] + b"," + CHAT[0], 2),
        (b"[" + CHAT[0] + b",", 1),
        (b'{"messages":[' + CHAT[0] + b"," + CHAT[0] + b',{"role":"user"', 3),
        (b'{"messages":[' + CHAT[0] + b',{"role":"\xff"},' + CHAT[0] + b'],"model":"m"}', 3),
        (b"[" + CONVERSATION + b',{"traj":[' + CHAT[0] + b',{"role"],"trial":2},' + CONVERSATION + b"]", 8),
        (CONVERSATION + b"\n" + CONVERSATION[:60] + b"\n" + CONVERSATION + b"\n", 8),
    ],
)
def test_of_a_document_all_that_is_surely_whole_is_read(path: pathlib.Path, data: bytes, count: int) -> None:
    found = salvaged(path, data)
    assert found is not None
    assert len(found[0]) == count
    assert len(found[1]) == found[2].left_out_count == 1


@pytest.mark.parametrize(
    "piece",
    [b"[{},", b'{"a":"\\"\\""},{"', b'{"role":"user","content":"x"},{"role"', b'{"a":[[},', b'"},{"role":"', b"\\"],
)
def test_the_work_on_a_hostile_document_is_linear(path: pathlib.Path, piece: bytes) -> None:
    """Eight times the text takes about eight times as long, and not sixty-four times."""

    def seconds(pieces: int) -> float:
        begun = time.process_time()
        assert salvaged(path, b"[" + CHAT[0] + b"," + piece * pieces) is not None
        return time.process_time() - begun

    seconds(100)
    assert seconds(8_000) < 24 * seconds(1_000) + 0.2


def test_the_end_of_an_inner_list_does_not_pass_for_that_of_the_document(path: pathlib.Path) -> None:
    """Cut behind the messages of the last conversation, and damaged before: nobody could tell where they belong."""
    data = b"[" + CONVERSATION + b',{"traj":[' + CHAT[0] + b',{"role":nul},' + CHAT[0] + b"," + CHAT[0] + b"]"
    found = salvaged(path, data)
    assert found is not None
    assert [str(body)[:14] for body in found[0]].count("Conversation 2") == 1
    assert len(found[0]) == 3 + 2


def test_the_place_and_size_of_what_is_left_out(path: pathlib.Path) -> None:
    records = [b'{"kind":"note","text":"a"}', b'{"kind":"note","te', b'{"kind":"note","text":"b\xff"}', b"", b"{}{}"]
    found = salvaged(path, b"\n".join([*records, b'{"kind":"note","text":"c"}']))
    assert found is not None
    bodies, notes, transcript = found
    assert bodies == ["a", "c"]
    assert [(left.line, left.byte, left.size_bytes) for left in transcript.left_out] == [
        (2, 27, 18),
        (3, 46, 27),
        (5, 75, 4),
    ]
    assert "the line ends in the middle" in transcript.left_out[0].reason
    assert transcript.left_out[1].reason.endswith("(line 3, byte 70)")
    assert len(notes) == 1  # they follow each other
    assert "3 records here: line 2, bytes 27 to 79" in notes[0]


def test_a_line_that_is_too_long_is_passed_over_without_holding_it(
    path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = b'{"kind":"note","text":"a"}'
    monkeypatch.setattr(lines, "IMPORT_LINE_BYTES_MAX", len(note))
    found = salvaged(path, note + b"\n" + b"x" * 1000 + b"\n" + note)
    assert found is not None
    assert found[0] == ["a", "a"]
    assert [(left.line, left.byte, left.size_bytes) for left in found[2].left_out] == [(2, 27, 1001)]


def test_what_is_left_out_is_listed_up_to_a_limit(path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "IMPORT_LEFT_OUT_LISTED_MAX", 3)
    found = salvaged(path, b'{"kind":"note","text":"a"}\n' + b"x\n" * 10)
    assert found is not None
    assert (len(found[2].left_out), found[2].left_out_count) == (3, 10)
    assert limits.IMPORT_LEFT_OUT_LISTED_MAX == 1_000


# ---------------------------------------------------------------------------------------------- into a log

CALL = {"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "t", "arguments": "{}"}}]}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "r"}


def imported(workflow: strandline.Workflow, path: pathlib.Path, *records: object, salvage: bool = True) -> ImportReport:
    """Import JSONL; a record in bytes stands as it is."""
    path.write_bytes(b"\n".join(r if isinstance(r, bytes) else json.dumps(r).encode() for r in records))
    return workflow.import_transcript(path, salvage=salvage)


@pytest.fixture
def workflow() -> strandline.Workflow:
    return strandline.open(":memory:").tenant("acme").workflow("w")


def test_a_salvage_repeated_adds_nothing_and_a_grown_file_the_rest(
    workflow: strandline.Workflow, path: pathlib.Path
) -> None:
    user = {"role": "user", "content": "a"}
    first = imported(workflow, path, user, b'{"role', CALL, RESULT)
    assert (first.events_imported, first.left_out_count, first.lines) == (4, 1, 4)
    again = imported(workflow, path, user, b'{"role', CALL, RESULT)
    assert (again.events_imported, again.events_known, again.left_out) == (0, 4, first.left_out)
    grown = imported(workflow, path, user, b'{"role', CALL, RESULT, user)
    assert grown.events_imported == 1
    assert [event.kind for event in workflow.events()] == ["message", "note", "tool_call", "tool_result", "message"]


def test_a_torn_end_that_was_left_out_is_read_once_it_is_whole(
    workflow: strandline.Workflow, path: pathlib.Path
) -> None:
    user = {"role": "user", "content": "a"}
    assert imported(workflow, path, user, b'{"role":"user","con').events_imported == 2
    report = imported(workflow, path, user, b'{"role":"user","content":"b"}', salvage=False)
    assert (report.events_imported, report.events_known) == (1, 1)
    assert [event.text for event in workflow.events()][::2] == ["a", "b"]


def test_a_repaired_middle_does_not_continue_what_was_salvaged(
    workflow: strandline.Workflow, path: pathlib.Path
) -> None:
    """The log can't take a record into its middle: it is refused at that record, and nothing is written."""
    user = {"role": "user", "content": "a"}
    imported(workflow, path, user, b'{"role":"user","con', CALL)
    with pytest.raises(IdempotencyConflictError, match="does not continue") as caught:
        imported(workflow, path, user, b'{"role":"user","content":"b"}', CALL, RESULT)
    assert (caught.value.line, caught.value.byte) == (2, len(json.dumps(user)) + 1)
    assert len(workflow.events()) == 3


def test_a_result_whose_call_was_left_out_is_left_out_too(workflow: strandline.Workflow, path: pathlib.Path) -> None:
    report = imported(workflow, path, {"role": "user", "content": "a"}, json.dumps(CALL).encode()[:-1], RESULT)
    assert [left.line for left in report.left_out] == [2, 3]
    assert "orphan result" in report.left_out[1].reason


def test_a_call_whose_result_was_left_out_stays_open(workflow: strandline.Workflow, path: pathlib.Path) -> None:
    imported(workflow, path, CALL, json.dumps(RESULT).encode()[:-1])
    assert [call.call_id for call in workflow.context().open_calls] == ["c1"]


@pytest.mark.parametrize("chunk", [1, 2, 256])
def test_what_the_log_cannot_take_is_left_out_as_a_whole_record(
    workflow: strandline.Workflow, path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    """The end of an issue that was left out; importing again leaves it out again, though the issue is open now."""
    monkeypatch.setattr(engine, "IMPORT_CHUNK_EVENTS", chunk)
    records = [
        {"kind": "note", "text": "a"},
        b'{"kind":"issue","subject":"s","text"',
        {"kind": "resolve", "subject": "s"},
        {"kind": "note", "text": "b"},
        {"kind": "issue", "subject": "s", "text": "again"},
    ]
    report = imported(workflow, path, *records)
    assert [left.line for left in report.left_out] == [2, 3]
    assert "no such issue stands" in report.left_out[1].reason
    kinds = [event.kind for event in workflow.events()]
    assert kinds == ["note", "note", "note", "note", "issue"]
    again = imported(workflow, path, *records)
    assert (again.events_imported, again.left_out_count) == (0, 2)
    assert "an earlier import left it out" in again.left_out[1].reason
    assert [event.kind for event in workflow.events()] == kinds


def test_a_record_with_an_event_that_cannot_be_stored_is_left_out_as_a_whole(
    workflow: strandline.Workflow, path: pathlib.Path
) -> None:
    calls = [{"id": call_id, "function": {"name": "t", "arguments": "{}"}} for call_id in ("c1", "c\0", "c3")]
    report = imported(workflow, path, {"role": "assistant", "content": "x", "tool_calls": calls}, CALL)
    assert [(left.line, left.byte) for left in report.left_out] == [(1, 0)]
    assert [event.kind for event in workflow.events()] == ["note", "tool_call"]
    assert imported(workflow, path, {"role": "assistant", "content": "x", "tool_calls": calls}, CALL).events_known == 2


def test_a_claude_code_session_is_salvaged(workflow: strandline.Workflow, path: pathlib.Path) -> None:
    lines = FILES["claude_code"].splitlines()
    report = imported(workflow, path, *lines[:2], b"\0" * 10, *lines[2:4], lines[4][:-9], *lines[5:])
    assert (report.format, report.left_out_count, report.foreign_summaries) == ("claude_code", 2, 1)
    assert report.calls_abandoned == 1  # its result was left out, and the session began anew
    with pytest.raises(ImportFormatError):
        workflow.import_transcript(path)
