"""Law (C2): damaged input is refused with the line and the byte of the fault, and what is whole is read.

Each case is a file whose fault is put at a known place; the error must name exactly that place.
"""

import json
import os
import pathlib
import tracemalloc
from hashlib import blake2b

import pytest

from strandline import limits
from strandline.errors import ImportFormatError, InvalidInputError
from strandline.transcripts import Transcript, open_transcript
from strandline.transcripts import lines as lines_module

USER = b'{"type":"user","uuid":"u1","sessionId":"s","message":{"role":"user","content":"hello"}}'
NOTE = b'{"kind":"note","text":"hello"}'


def digest(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()


def opened(tmp_path: pathlib.Path, data: bytes) -> Transcript:
    path = tmp_path / "transcript.jsonl"
    path.write_bytes(data)
    return open_transcript(path, digest=digest)


def fault_of(tmp_path: pathlib.Path, data: bytes) -> ImportFormatError:
    with pytest.raises(ImportFormatError) as caught:
        list(opened(tmp_path, data).items())
    return caught.value


def user(content: object, uuid: str = "u2", **members: object) -> bytes:
    return json.dumps({"type": "user", "uuid": uuid, "message": {"content": content}, **members}).encode()


# ---------------------------------------------------------------------------------------------- bytes and lines


@pytest.mark.parametrize("first", [USER, NOTE], ids=["claude_code", "jsonl"])
@pytest.mark.parametrize(
    ("second", "at", "reason"),
    [
        (b'{"x":"a\0b"}', 7, "NUL"),
        (b"\0\0\0\0", 0, "NUL"),
        (b"{}{}", 2, "another record begins on the same line"),
        (b"{} {}", 3, "another record begins on the same line"),
        (b'{"a":1}\r{"a":1}', 8, "another record begins on the same line"),
        (b"{} x", 3, "something follows"),
        (b'{"x":1}}', 7, "something follows"),
        (b'{"x":"ab\xff"}', 8, "invalid UTF-8"),
        (b'{"x":"\xe2\x82"}', 6, "invalid UTF-8"),
        (b'{"x":"\xed\xa0\xbd"}', 6, "invalid UTF-8"),
        (b"\xef\xbb", 0, "invalid UTF-8"),
        (b"[1]", 0, "no object"),
        (b'"text"', 0, "no object"),
        (b"null", 0, "no object"),
        (b'{"x":tru }', 8, "malformed JSON"),
        (b'{"x":"\t"}', 6, "malformed JSON"),
        (b'{"x":NaN}', 5, "malformed JSON"),
        (b'{"x":"\\q"}', 7, "malformed JSON"),
        (b'{"\\q":1}', 3, "malformed JSON"),
        (b'{"x":"\\u12G4"}', 10, "malformed JSON"),
        (b'{"x":"\\uG"}', 8, "malformed JSON"),
        (b'{"x":[1,]}', 8, "malformed JSON"),
        (b'{"x":', 0, "torn"),
        (b'{"x":-', 0, "torn"),
        (b'{"x":1.', 0, "torn"),
        (b'{"x":nul', 0, "torn"),
        (b'{"x":"\\u12', 0, "torn"),
        (b'{"x":' + b"[" * 5000 + b"]" * 5000 + b"}", 0, "nested deeper"),
        (b"\xef\xbb\xbf{}", 0, "malformed JSON"),  # a BOM is one at the start of the file only
    ],
)
@pytest.mark.parametrize("end", [b"\n", b"\r\n"], ids=["lf", "crlf"])
def test_a_fault_in_the_bytes_has_its_place(
    tmp_path: pathlib.Path, first: bytes, second: bytes, at: int, reason: str, end: bytes
) -> None:
    error = fault_of(tmp_path, first + end + end + second + end + first + end)
    assert (error.line, error.byte) == (3, len(first + end + end) + at)
    assert reason in error.reason
    assert error.__cause__ is not None or "UTF-8" in reason


@pytest.mark.parametrize("first", [USER, NOTE], ids=["claude_code", "jsonl"])
def test_a_torn_last_record_is_refused_and_a_whole_one_without_newline_is_read(
    tmp_path: pathlib.Path, first: bytes
) -> None:
    whole = opened(tmp_path, first)
    assert len(list(whole.items())) == 1
    assert (whole.lines, whole.bytes_read) == (1, len(first))

    second = first.replace(b"u1", b"u2")
    error = fault_of(tmp_path, first + b"\n" + second[:-1])
    assert (error.line, error.byte) == (2, len(first) + 1)
    assert "the file ends in the middle" in error.reason


def test_a_bom_and_crlf_and_blank_lines_are_accepted(tmp_path: pathlib.Path) -> None:
    plain = list(opened(tmp_path, NOTE + b"\n" + NOTE + b"\n").items())
    transcript = opened(tmp_path, b"\xef\xbb\xbf" + NOTE + b"\r\n\r\n \t\r\n" + NOTE + b"\r\n")
    assert list(transcript.items()) == plain
    assert transcript.skipped == {"blank": 2}
    assert transcript.lines == 4
    assert transcript.bytes_read == transcript.size_bytes


def test_a_fault_after_a_bom_counts_its_bytes(tmp_path: pathlib.Path) -> None:
    error = fault_of(tmp_path, b'\xef\xbb\xbf{"kind":}')
    assert (error.line, error.byte) == (1, 11)


def test_a_line_that_is_too_long_is_refused(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines_module, "IMPORT_LINE_BYTES_MAX", len(NOTE))
    assert len(list(opened(tmp_path, NOTE + b"\r\n" + NOTE).items())) == 2
    for end in (b"", b"\n"):
        error = fault_of(tmp_path, NOTE + b"\n" + NOTE[:-1] + b" }" + end)
        assert (error.line, error.byte) == (2, len(NOTE) + 1)
        assert f"more than {len(NOTE)} bytes" in error.reason


def test_nesting_is_bounded_as_the_log_bounds_it(tmp_path: pathlib.Path) -> None:
    """A block of JSON_DEPTH_MAX levels is kept, one more is refused; here the block and its input are two levels."""

    def nested(levels: int) -> object:
        value: object = 1
        for _ in range(levels):
            value = [value]
        return value

    def file(levels: int) -> bytes:
        block = {"type": "tool_use", "id": "c1", "name": "t", "input": nested(levels)}
        return USER + b"\n" + json.dumps({"type": "assistant", "uuid": "a", "message": {"content": [block]}}).encode()

    def own(levels: int) -> bytes:
        return json.dumps({"kind": "tool_call", "call_id": "c", "tool": "t", "input": nested(levels)}).encode()

    deepest = limits.JSON_DEPTH_MAX - 1
    assert len(list(opened(tmp_path, file(deepest)).items())) == 2
    assert len(list(opened(tmp_path, own(deepest)).items())) == 1
    error = fault_of(tmp_path, file(deepest + 1))
    assert (error.line, error.byte) == (2, len(USER) + 1)
    error = fault_of(tmp_path, own(deepest + 1))
    assert (error.line, error.byte) == (1, 0)


# ---------------------------------------------------------------------------------------------- formats and files


def test_an_empty_file_is_an_empty_transcript(tmp_path: pathlib.Path) -> None:
    for data in (b"", b"\n\r\n", b"\xef\xbb\xbf"):
        transcript = opened(tmp_path, data)
        assert transcript.format == "jsonl"
        assert list(transcript.items()) == []


@pytest.mark.parametrize(
    ("data", "format"),
    [
        (USER, "claude_code"),
        (b'{"type":"user","message":{"content":"x"},"uuid":"u"}', "claude_code"),
        (b'{"type":"summary","summary":"x","leafUuid":"u"}', "claude_code"),
        (b'{"type":"file-history-snapshot","messageId":"m","snapshot":{}}', "claude_code"),
        (b'{"type":"queue-operation","operation":"enqueue","sessionId":"s"}', "claude_code"),
        (b'{"type":"whatever"}\n{"type":"progress","sessionId":"s"}', "claude_code"),
        (NOTE, "jsonl"),
        (b'{"text":"no kind"}\n' + NOTE, "jsonl"),
        (b'{"kind":"unheard-of"}', "jsonl"),
        (b'{"role":"user","content":"x"}', "openai"),
        (b'{"messages":[{"role":"user","content":"x"}]}', "openai"),
        (b'{\n "model": "m",\n "messages": [\n{"role":"user","content":"x"}\n]}', "openai"),
        (b'[\n{"role":"user","content":"x"},\n{"role":"user","content":"y"}\n]', "openai"),
        (b'[{"task_id":1,"traj":[{"role":"user","content":"x"}]}]', "openai"),
        (b'{"id":"chatcmpl-1","choices":[{"message":{"role":"assistant","content":"x"}}]}', "openai"),
        (b" [] ", "openai"),
        (b'{"messages":[]}', "openai"),
        (b'[{"messages":[ ]}]', "openai"),
        (b'{"ro\n' + NOTE, "jsonl"),
    ],
)
def test_the_format_is_told_by_the_first_records(tmp_path: pathlib.Path, data: bytes, format: str) -> None:
    assert opened(tmp_path, data).format == format


@pytest.mark.parametrize(
    "data",
    [
        b'{"type":"conversation","id":"x"}',
        b'{"messages":[1]}',
        b'{"messages":[{"type":"user","content":"x"}]}',  # gemini
        b'[{"id":1}]',
        b"[1]",
        b"{}",
    ],
)
def test_an_unknown_format_names_what_was_looked_for(tmp_path: pathlib.Path, data: bytes) -> None:
    with pytest.raises(ImportFormatError, match=r"neither Claude Code session JSONL .* nor Strandline JSONL") as caught:
        opened(tmp_path, b"\n" + data)
    assert (caught.value.line, caught.value.byte) == (2, 1)


def test_a_fault_before_the_format_is_told_has_its_place(tmp_path: pathlib.Path) -> None:
    with pytest.raises(ImportFormatError) as caught:
        opened(tmp_path, b'{\n  "sessionId": "s"\n}')
    assert (caught.value.line, caught.value.byte) == (1, 0)


def test_what_is_no_file_is_refused_by_name(tmp_path: pathlib.Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (tmp_path / "absent", tmp_path, pipe, "a\0b"):
        with pytest.raises(InvalidInputError) as caught:
            open_transcript(path, digest=digest)
        assert repr(str(path)) in caught.value.message


def test_a_file_that_vanishes_between_two_passes_is_an_error(tmp_path: pathlib.Path) -> None:
    transcript = opened(tmp_path, NOTE)
    (tmp_path / "transcript.jsonl").unlink()
    with pytest.raises(InvalidInputError, match="can't be read"):
        list(transcript.items())


# ---------------------------------------------------------------------------------------------- passes


def test_each_pass_begins_anew_and_counts_for_itself(tmp_path: pathlib.Path) -> None:
    transcript = opened(tmp_path, NOTE + b"\n\n" + NOTE + b"\n")
    first = list(transcript.items())
    seen = (transcript.lines, dict(transcript.skipped), transcript.bytes_read)
    items = transcript.items()
    assert (transcript.lines, dict(transcript.skipped), transcript.bytes_read) == (0, {}, 0)
    assert next(items) == first[0]
    assert transcript.bytes_read == len(NOTE) + 1
    assert list(items) == first[1:]
    assert (transcript.lines, dict(transcript.skipped), transcript.bytes_read) == seen


def test_memory_does_not_grow_with_the_file(tmp_path: pathlib.Path) -> None:
    """A file of 20 MB is read in less than 2 MB, ids of its 2,000 records and calls included."""
    path = tmp_path / "large.jsonl"
    padding = "x" * 10_000
    with path.open("wb") as file:
        for number in range(2_000):
            block = {"type": "tool_use", "id": f"c{number}", "name": "t", "input": padding}
            record = {"type": "assistant", "uuid": f"u{number}", "message": {"content": [block]}}
            file.write(json.dumps(record).encode() + b"\n")
    transcript = open_transcript(path, digest=digest)
    tracemalloc.start()
    try:
        assert sum(1 for _ in transcript.items()) == 2_000
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2_000_000


def test_types_are_counted_by_name_up_to_a_limit(tmp_path: pathlib.Path) -> None:
    count = limits.IMPORT_SKIPPED_TYPES_MAX + 5
    records = [b'{"type":"t%d","sessionId":"s"}' % number for number in range(count)]
    transcript = opened(tmp_path, b"\n".join(records))
    assert list(transcript.items()) == []
    assert transcript.skipped["other"] == 5
    assert sum(transcript.skipped.values()) == count
