"""Law (C2): a record of our own JSONL is exactly the event that the public constructor makes; whatever else a record
holds is refused by name; events without a key get one that stays when the file grows.
"""

import json
import pathlib
from dataclasses import replace
from hashlib import blake2b

import pytest

from strandline.errors import ImportFormatError
from strandline.model import constructors as make
from strandline.model.event import EventKind, NewEvent
from strandline.transcripts import jsonl, open_transcript

Record = dict[str, object]


def digest(data: bytes) -> str:
    return blake2b(data, key=b"key", digest_size=16).hexdigest()


def read(tmp_path: pathlib.Path, data: bytes) -> list[NewEvent]:
    path = tmp_path / "own.jsonl"
    path.write_bytes(data)
    events = list(open_transcript(path, digest=digest).items())
    assert all(isinstance(event, NewEvent) for event in events)
    return [event for event in events if isinstance(event, NewEvent)]


def written(*records: Record) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


CALL: Record = {"kind": "tool_call", "call_id": "c1", "tool": "t", "input": {"a": [1, None, 0.5]}, "key": "k0"}

AS_CONSTRUCTED: list[tuple[Record, NewEvent]] = [
    ({"kind": "message", "role": "user", "text": "hä"}, make.message("user", "hä", key="k")),
    ({"kind": "message", "role": "system", "text": "a\0b"}, make.message("system", "a\0b", key="k")),
    ({"kind": "thinking", "text": "hm"}, make.thinking("hm", key="k")),
    (
        {"kind": "tool_call", "call_id": "c2", "tool": "t", "input": {"a": [1, None, 0.5], "b": {}}},
        make.tool_call("c2", "t", {"a": [1, None, 0.5], "b": {}}, key="k"),
    ),
    ({"kind": "tool_call", "call_id": "c2", "tool": "t", "input": None}, make.tool_call("c2", "t", None, key="k")),
    ({"kind": "tool_result", "call_id": "c1", "content": "ok"}, make.tool_result("c1", "ok", key="k")),
    (
        {"kind": "tool_result", "call_id": "c1", "content": None, "is_error": True},
        make.tool_result("c1", None, is_error=True, key="k"),
    ),
    ({"kind": "abandoned", "call_id": "c1"}, make.abandoned("c1", key="k")),
    ({"kind": "abandoned", "call_id": "c1", "text": "why"}, make.abandoned("c1", "why", key="k")),
    ({"kind": "constraint", "subject": "s", "text": "x"}, make.constraint("s", "x", key="k")),
    ({"kind": "lift_constraint", "subject": "s"}, make.lift_constraint("s", key="k")),
    (
        {"kind": "approval", "subject": "s", "text": "x", "granter": "g"},
        make.approval("s", "x", granter="g", key="k"),
    ),
    (
        {
            "kind": "approval",
            "subject": "s",
            "text": "x",
            "granter": "g",
            "scope": "y",
            "expires_at": "1970-01-02T01:00:00.000001+01:00",
        },
        make.approval("s", "x", granter="g", scope="y", expires_us=86_400_000_001, key="k"),
    ),
    ({"kind": "revoke", "subject": "s", "text": "x"}, make.revoke("s", "x", key="k")),
    ({"kind": "decision", "text": "x"}, make.decision("x", key="k")),
    ({"kind": "decision", "text": "x", "subject": "s"}, make.decision("x", subject="s", key="k")),
    ({"kind": "issue", "subject": "s", "text": "x"}, make.issue("s", "x", key="k")),
    ({"kind": "resolve", "subject": "s"}, make.resolve("s", key="k")),
    ({"kind": "artifact", "subject": "s", "handle": "h-1"}, make.artifact("s", "h-1", key="k")),
    ({"kind": "release_artifact", "subject": "s"}, make.release_artifact("s", key="k")),
    ({"kind": "failed_attempt", "text": "x", "subject": "s"}, make.failed_attempt("x", subject="s", key="k")),
    ({"kind": "pin", "ref": "r-1"}, make.pin("r-1", key="k")),
    ({"kind": "unpin", "ref": "r-1", "text": "x"}, make.unpin("r-1", "x", key="k")),
    ({"kind": "note", "text": "x"}, make.note("x", key="k")),
]


@pytest.mark.parametrize(("record", "event"), AS_CONSTRUCTED)
def test_a_record_is_the_event_that_the_constructor_makes(
    tmp_path: pathlib.Path, record: Record, event: NewEvent
) -> None:
    assert read(tmp_path, written(CALL, record | {"key": "k"}))[1] == event


def test_every_kind_that_a_caller_may_state_is_covered() -> None:
    assert {event.kind for _, event in AS_CONSTRUCTED} == set(EventKind) - {EventKind.EFFECT, EventKind.DIVERGENCE}


def test_the_common_fields_are_taken_by_every_kind(tmp_path: pathlib.Path) -> None:
    for record, event in AS_CONSTRUCTED:
        common = {"key": "k2", "actor": "me", "audience": "release", "refs": ["r-1", "r-2"], "thread": "th"}
        (_, found) = read(tmp_path, written(CALL, record | common | {"at": "2026-01-31T12:00:00.5Z"}))
        envelope = event.envelope._replace(thread="th", source_at="2026-01-31T12:00:00.5Z")
        refs = (*event.refs, *(ref for ref in ("r-1", "r-2") if ref not in event.refs))
        assert (found.key, found.actor, found.audience, found.envelope) == ("k2", "me", "release", envelope)
        assert sorted(found.refs) == sorted(refs)
        assert (found.kind, found.body) == (event.kind, event.body)


def test_null_says_that_a_field_is_absent(tmp_path: pathlib.Path) -> None:
    record: Record = {"kind": "decision", "text": "x", "subject": None, "actor": None, "refs": None, "at": None}
    (event,) = read(tmp_path, written(record))
    assert replace(event, key=None) == make.decision("x")


# ---------------------------------------------------------------------------------------------- keys


def test_keys_stay_when_the_file_grows_and_differ_for_equal_records(tmp_path: pathlib.Path) -> None:
    records = [CALL, *({"kind": "note", "text": "same"},) * 3]
    keys = [event.key for event in read(tmp_path, written(*records))]
    assert keys[0] == "k0"
    assert len(set(keys)) == 4
    assert [key[:5] for key in keys[1:] if key] == ["line:"] * 3
    grown = written(*records, {"kind": "note", "text": "more"})
    assert [event.key for event in read(tmp_path, grown)][:4] == keys
    assert [event.key for event in read(tmp_path, b"\xef\xbb\xbf" + grown.replace(b"\n", b"\r\n"))][:4] == keys
    assert [event.key for event in read(tmp_path, written(*records)[:-1])] == keys


def test_a_key_depends_on_all_records_before_it(tmp_path: pathlib.Path) -> None:
    last: Record = {"kind": "note", "text": "last"}
    one, two = (read(tmp_path, written(CALL | {"tool": tool}, last))[1].key for tool in ("t", "u"))
    assert one != two


# ---------------------------------------------------------------------------------------------- what is refused

NOTE: Record = {"kind": "note", "text": "x"}


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ({"text": "x"}, "the field 'kind' is missing"),
        ({"kind": "nothing"}, "kind 'nothing' is none of message, thinking, tool_call"),
        ({"kind": 1}, "kind 1 is none of"),
        ({"kind": []}, "kind [] is none of"),
        ({"kind": "effect", "text": "x"}, "an event of kind 'effect'"),
        (NOTE | {"txet": "x"}, "kind 'note' has no field 'txet'"),
        (NOTE | {"subject": "x"}, "kind 'note' has no field 'subject'"),
        (NOTE | {"expires_us": 1}, "kind 'note' has no field 'expires_us'"),
        (NOTE | {"first_ref": "x"}, "kind 'note' has no field 'first_ref'"),
        ({"kind": "note"}, "kind 'note' needs the field 'text'"),
        ({"kind": "note", "text": None}, "kind 'note' needs the field 'text'"),
        ({"kind": "note", "text": 1}, "text must be a string, got int"),
        ({"kind": "note", "text": " "}, "text must hold more than white space"),
        (NOTE | {"key": ""}, "key must not be empty"),
        (NOTE | {"key": 1}, "key must be a string, got int"),
        (NOTE | {"key": "k" * 501}, "a key of 501 characters"),
        (NOTE | {"actor": 1}, "actor must be a string, got int"),
        (NOTE | {"refs": "r-1"}, "refs must be a sequence of strings, got str"),
        (NOTE | {"refs": ["r", 1]}, "refs[1] must be a string, got int"),
        (NOTE | {"at": "yesterday"}, "at 'yesterday' is no RFC 3339 time"),
        (NOTE | {"at": "2026-02-30T00:00:00Z"}, "is no RFC 3339 time"),
        (NOTE | {"at": "2026-01-01T00:00:00"}, "is no RFC 3339 time"),
        (NOTE | {"at": 5}, "at 5 is no RFC 3339 time"),
        ({"kind": "message", "role": "robot", "text": "x"}, "role must be one of user, assistant, system, got 'robot'"),
        ({"kind": "message", "text": "x"}, "kind 'message' needs the field 'role'"),
        ({"kind": "tool_call", "call_id": "c", "tool": "t"}, "kind 'tool_call' needs the field 'input'"),
        ({"kind": "tool_call", "call_id": "", "tool": "t", "input": 1}, "call_id must not be empty"),
        ({"kind": "tool_result", "call_id": "c9", "content": 1}, "orphan result: no earlier call has the id 'c9'"),
        ({"kind": "abandoned", "call_id": "c9"}, "orphan abandoned event: no earlier call has the id 'c9'"),
        ({"kind": "tool_result", "call_id": "c1", "content": 1, "is_error": 1}, "is_error must be a bool, got int"),
        ({"kind": "constraint", "subject": "", "text": "x"}, "subject must not be empty"),
        (
            {"kind": "approval", "subject": "s", "text": "x", "granter": "g", "expires_at": "2026-01-01"},
            "expires_at '2026-01-01' is no RFC 3339 time",
        ),
        ({"kind": "approval", "subject": "s", "text": "x"}, "kind 'approval' needs the field 'granter'"),
        ({"kind": "note", "text": "\ud83d"}, "an unpaired surrogate escape"),
        ({"kind": "tool_call", "call_id": "c", "tool": "t", "input": {"\udc00": 1}}, "an unpaired surrogate escape"),
    ],
)
def test_a_record_that_is_no_event_is_refused_by_name(tmp_path: pathlib.Path, bad: Record, reason: str) -> None:
    first = written(CALL)
    with pytest.raises(ImportFormatError) as caught:
        read(tmp_path, first + written(bad))
    assert reason in caught.value.reason
    line = json.dumps(bad)
    at = line.index("\\ud") if "surrogate" in reason else 0
    assert (caught.value.line, caught.value.byte) == (2, len(first) + at)


def test_an_event_that_the_log_would_refuse_is_refused(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonl, "EVENT_BYTES_MAX", 20)
    assert len(read(tmp_path, written(NOTE | {"text": "x" * 20}))) == 1
    with pytest.raises(ImportFormatError, match="an event of 21 bytes"):
        read(tmp_path, written(NOTE | {"text": "x" * 21}))
