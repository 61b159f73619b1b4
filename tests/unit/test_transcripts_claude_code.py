"""Law (C2, I8): each content block of a Claude Code session is one event whose body is the block as it stood; what is
no event is counted or kept as a foreign summary; a block that can't be kept is refused by name.

Checked on small files, and on the 12 sessions in ../shared/data against a reading with the standard library.
"""

import json
import pathlib
from collections import Counter
from hashlib import blake2b

import pytest

from strandline import limits
from strandline.errors import ImportFormatError
from strandline.model.event import Envelope, EventKind, NewEvent, Role
from strandline.model.transcript import ForeignText, SessionRestart, TranscriptItem
from strandline.transcripts import Transcript, claude_code, open_transcript

SESSIONS = pathlib.Path(__file__).resolve().parents[2] / ".." / "shared" / "data"


def digest(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()


def opened(tmp_path: pathlib.Path, *records: bytes | dict[str, object]) -> Transcript:
    path = tmp_path / "session.jsonl"
    path.write_bytes(b"\n".join(r if isinstance(r, bytes) else json.dumps(r).encode() for r in records))
    return open_transcript(path, digest=digest)


def items_of(tmp_path: pathlib.Path, *records: bytes | dict[str, object]) -> list[TranscriptItem]:
    return list(opened(tmp_path, *records).items())


def events_of(tmp_path: pathlib.Path, *records: bytes | dict[str, object]) -> list[NewEvent]:
    return [item for item in items_of(tmp_path, *records) if isinstance(item, NewEvent)]


def record(type: str, content: object, uuid: str = "u1", **members: object) -> dict[str, object]:
    return {"type": type, "uuid": uuid, "sessionId": "s", "message": {"content": content}, **members}


CALL = {"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": "ls"}}
RESULT = {"type": "tool_result", "tool_use_id": "c1", "content": "ok"}


# ---------------------------------------------------------------------------------------------- what becomes what


def test_each_block_is_one_event_with_its_bytes_as_they_stood(tmp_path: pathlib.Path) -> None:
    blocks = [
        b'{ "type":"thinking",  "thinking":"hm","signature":"x" }',
        b'{"text":"\\u00e4\\/ \xc3\xa4","type":"text"}',
        b'{"type":"tool_use","id":"c1","name":"Bash","input":{"b":1.50,"a":[ ]}}',
        b'{"type":"redacted_thinking","data":"zz"}',
        b'{"type":"server_tool_use","x":1}',
    ]
    line = (
        b'{"type":"assistant","uuid":"a1","parentUuid":"p","timestamp":"2026-01-01T00:00:00.1Z","message":{"id":"m1",'
    )
    line += b'"content": [ ' + b" , ".join(blocks) + b" ] }}"
    events = events_of(tmp_path, line)
    assert [event.body for event in events] == blocks
    assert [event.kind for event in events] == [
        EventKind.THINKING,
        EventKind.MESSAGE,
        EventKind.TOOL_CALL,
        EventKind.THINKING,
        EventKind.MESSAGE,
    ]
    assert [event.key for event in events] == [f"a1#{index}" for index in range(5)]
    assert {event.actor for event in events} == {"assistant"}
    time = "2026-01-01T00:00:00.1Z"
    assert events[0].envelope == Envelope(thread="main", source_at=time, parent="p", message_id="m1")
    assert events[1].envelope == Envelope(role=Role.ASSISTANT, thread="main", source_at=time, message_id="m1")
    assert events[2].envelope == Envelope(thread="main", call_id="c1", tool="Bash", source_at=time, message_id="m1")


def test_a_string_content_is_one_message(tmp_path: pathlib.Path) -> None:
    (event,) = events_of(tmp_path, b'{"type":"user","uuid":"u1","message":{"content":  "a\\n\\u00fc"  ,"role":"user"}}')
    assert event == NewEvent(
        kind=EventKind.MESSAGE,
        body=b'"a\\n\\u00fc"',
        envelope=Envelope(role=Role.USER, thread="main"),
        actor="user",
        key="u1#0",
    )


def test_results_cite_their_calls_and_say_whether_they_failed(tmp_path: pathlib.Path) -> None:
    second = CALL | {"id": "c2"}
    results = [
        {"type": "tool_result", "tool_use_id": "c2", "is_error": True, "content": [{"type": "text", "text": "no"}]},
        {"type": "tool_result", "tool_use_id": "c1", "is_error": None},
    ]
    *_, failed, done = events_of(
        tmp_path, record("assistant", [CALL, second]), record("user", results, "u2", toolUseResult={"content": "no"})
    )
    assert (failed.kind, failed.actor) == (EventKind.TOOL_RESULT, "user")
    assert failed.envelope == Envelope(thread="main", call_id="c2", is_error=True)
    assert done.envelope == Envelope(thread="main", call_id="c1")
    assert b"toolUseResult" not in b"".join(e.body for e in (failed, done) if isinstance(e.body, bytes))


def test_images_and_documents_of_a_user_are_messages(tmp_path: pathlib.Path) -> None:
    blocks = [{"type": "image", "source": {}}, {"type": "document", "source": {}}]
    assert [(e.kind, e.envelope.role) for e in events_of(tmp_path, record("user", blocks))] == [
        (EventKind.MESSAGE, Role.USER)
    ] * 2


def test_a_meta_line_speaks_as_system_so_that_it_closes_no_call(tmp_path: pathlib.Path) -> None:
    (event,) = events_of(tmp_path, record("user", "caveat", isMeta=True))
    assert (event.envelope.role, event.actor) == (Role.SYSTEM, "user")


def test_sidechains_are_lanes_of_their_own(tmp_path: pathlib.Path) -> None:
    events = events_of(
        tmp_path,
        record("user", "a", "u1", isSidechain=False, agentId="x"),
        record("user", "b", "u2", isSidechain=True),
        record("user", "c", "u3", isSidechain=True, agentId="x"),
    )
    assert [event.envelope.thread for event in events] == ["main", "sidechain", "sidechain:x"]


def test_a_parent_is_kept_only_where_it_is_not_the_record_before(tmp_path: pathlib.Path) -> None:
    events = events_of(
        tmp_path,
        record("user", "a", "u1", parentUuid=None),
        record("assistant", [{"type": "text", "text": " "}, {"type": "text", "text": "b"}], "u2", parentUuid="u1"),
        {"type": "progress", "uuid": "p1", "parentUuid": "u2"},
        record("user", " \n", "u3", parentUuid="p1"),
        record("user", "c", "u4", parentUuid="u3"),
        record("user", "d", "u5", parentUuid="u4"),
    )
    assert [(event.key, event.envelope.parent) for event in events] == [
        ("u1#0", None),
        ("u2#1", None),
        ("u4#0", "u3"),
        ("u5#0", None),
    ]


def test_empty_blocks_are_counted_and_keep_their_number(tmp_path: pathlib.Path) -> None:
    transcript = opened(
        tmp_path,
        record("user", ""),
        record("user", " \n\t", "u2"),
        record("user", [], "u3"),
        record("assistant", [{"type": "thinking", "thinking": "", "signature": "x"}, CALL], "u4"),
        record("assistant", [{"type": "text", "text": "\u00a0 "}], "u5"),
    )
    assert [item.key for item in transcript.items()] == ["u4#1"]
    assert transcript.skipped == {"empty_block": 5}


def test_other_records_are_counted_by_type(tmp_path: pathlib.Path) -> None:
    transcript = opened(
        tmp_path,
        record("user", "a"),
        {"type": "progress", "uuid": 5, "timestamp": {}, "message": 1},
        {"type": "summary", "summary": "x", "leafUuid": "u"},
        {"type": "file-history-snapshot"},
        {"type": "queue-operation"},
        {"type": "invented-later"},
        {"type": "system", "subtype": "turn_duration", "uuid": "u1"},
        {"type": "system", "content": "x"},
    )
    assert len(list(transcript.items())) == 1
    assert transcript.skipped == {
        "progress": 1,
        "summary": 1,
        "file-history-snapshot": 1,
        "queue-operation": 1,
        "invented-later": 1,
        "system:turn_duration": 1,
        "system": 1,
    }


def test_a_compaction_is_a_restart_and_a_foreign_summary(tmp_path: pathlib.Path) -> None:
    boundary = {
        "type": "system",
        "subtype": "compact_boundary",
        "uuid": "b1",
        "compactMetadata": {"trigger": "auto", "preTokens": 155_000, "more": 1},
    }
    transcript = opened(
        tmp_path,
        record("assistant", [CALL]),
        boundary,
        record("user", "what \u00e4 was", "s1", isCompactSummary=True, timestamp="2026-01-01T00:00:00Z"),
        boundary | {"uuid": "b2", "isSidechain": True, "agentId": "x", "compactMetadata": None},
        record("user", [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "s2", isCompactSummary=True),
        record("user", [RESULT], "u9"),
    )
    assert list(transcript.items())[1:5] == [
        SessionRestart(key="b1"),
        ForeignText(
            key="s1",
            text="what \u00e4 was",
            detail={"trigger": "auto", "pre_tokens": 155_000, "timestamp": "2026-01-01T00:00:00Z"},
        ),
        SessionRestart(key="b2", thread="sidechain:x"),
        ForeignText(key="s2", text="a\nb"),
    ]
    assert transcript.skipped == {}


# ---------------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (record("user", 1), "message.content is neither"),
        (record("user", {"type": "text", "text": "x"}), "message.content is neither"),
        (record("user", None), "message.content is neither"),
        ({"type": "user", "uuid": "u", "message": {}}, "message.content is neither"),
        ({"type": "user", "uuid": "u", "message": "x"}, "message is no object"),
        ({"type": "user", "uuid": "u", "message": None}, "message is no object"),
        ({"type": "user", "uuid": "u"}, "message is missing"),
        ({"type": "user", "message": {"content": "x"}}, "uuid is missing"),
        (record("user", "x", uuid=""), "uuid is empty"),
        (record("user", "x") | {"uuid": 3}, "uuid is no string"),
        (record("user", "x", uuid="u" * 490), "a uuid of 490 characters"),
        (record("user", "x", uuid="first"), "uuid repeats: 'first'"),
        (record("user", "x", timestamp=5), "timestamp is no string"),
        (record("user", ["x"]), "is no object"),
        (record("user", [{"text": "x"}]), "type is missing"),
        (record("user", [{"type": 1}]), "type is no string"),
        (record("user", [{"type": "text"}]), "text is no string"),
        (record("user", [{"type": "thinking", "thinking": 1}]), "thinking is no string"),
        (record("assistant", [{"type": "tool_use", "name": "x", "input": {}}]), "id is missing"),
        (record("assistant", [{"type": "tool_use", "id": "c", "input": {}}]), "name is missing"),
        (record("assistant", [{"type": "tool_use", "id": "c", "name": "x"}]), "without input"),
        (record("user", [{"type": "tool_result"}]), "tool_use_id is missing"),
        (record("user", [RESULT]), "orphan result: no earlier call has the id 'c1'"),
        (record("assistant", [RESULT, CALL]), "orphan result"),
        (record("assistant", [CALL, RESULT | {"is_error": 1}]), "is_error is no bool"),
        (record("user", 1, isCompactSummary=True), "message.content is neither"),
        ({"type": "system", "subtype": "compact_boundary"}, "uuid is missing"),
        ({"type": "system", "subtype": 1}, "subtype is no string"),
        ({"uuid": "u"}, "type is missing"),
        ({"type": ["user"]}, "type is no string"),
        ({"type": "x" * 501}, "type has 501 characters"),
        (b'{"type":"assistant","uuid":"u","message":{"content":[{"type":"x","n":1e999}]}}', "Number out of range"),
    ],
)
def test_a_damaged_record_is_refused_with_its_line(
    tmp_path: pathlib.Path, bad: bytes | dict[str, object], reason: str
) -> None:
    first = json.dumps(record("user", "x", "first")).encode()
    with pytest.raises(ImportFormatError) as caught:
        items_of(tmp_path, first, bad)
    assert reason in caught.value.reason
    assert (caught.value.line, caught.value.byte) == (2, len(first) + 1)


def test_a_block_that_no_event_holds_is_refused(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claude_code, "EVENT_BYTES_MAX", 20)
    assert len(events_of(tmp_path, record("user", "x" * 18))) == 1
    with pytest.raises(ImportFormatError, match="a block of 21 bytes"):
        items_of(tmp_path, record("user", "x" * 19))


# ---------------------------------------------------------------------------------------------- lone surrogates


@pytest.mark.parametrize(
    "text",
    [
        rb"cut \ud83d",
        rb"cut \uD83D\u0041",
        rb"\uDE00 low",
        rb"\ud83d\ud83d\ude00 then a pair",
        rb"\\ud83d is no escape, \\\ud83d is one",
        b"\xf3\xb0\x80\x80 a private-use character beside \\udABC and \\ud83d\\ude00",
    ],
)
def test_unpaired_surrogate_escapes_are_kept_as_they_stand(tmp_path: pathlib.Path, text: bytes) -> None:
    block = b'{"type":"text","text":"' + text + b'"}'
    result = b'{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"' + text + b'"}]}'
    events = events_of(
        tmp_path,
        record("assistant", [CALL]),
        b'{"type":"user","uuid":"u2","message":{"content":[' + block + b", " + result + b']},"x":"' + text + b'"}',
        b'{"type":"user","uuid":"u3","message":{"content":"' + text + b'"}}',
        b'{"type":"progress","data":"' + text + b'"}',
    )
    assert [event.body for event in events[1:]] == [block, result, b'"' + text + b'"']
    for event in events:
        assert isinstance(event.body, bytes)
        json.loads(event.body)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (rb'{"type":"user","uuid":"\ud83d","message":{"content":"x"}}', "uuid holds"),
        (rb'{"type":"user\ud83d"}', "type holds"),
        (rb'{"type":"assistant","uuid":"u","message":{"id":"\ud83d","content":"x"}}', "message.id holds"),
        (
            rb'{"type":"assistant","uuid":"u","message":{"content":[{"type":"tool_use","id":"\ud83d","name":"n","input":1}]}}',
            "id holds",
        ),
        (
            rb'{"type":"assistant","uuid":"u","message":{"content":[{"type":"tool_use","id":"c","name":"\ud83d","input":1}]}}',
            "name holds",
        ),
        (rb'{"type":"user","uuid":"u","isCompactSummary":true,"message":{"content":"\ud83d"}}', "the summary holds"),
    ],
)
def test_an_unpaired_surrogate_in_an_identifier_is_refused_by_name(
    tmp_path: pathlib.Path, line: bytes, reason: str
) -> None:
    with pytest.raises(ImportFormatError, match=f"{reason} an unpaired surrogate"):
        items_of(tmp_path, record("user", "x", "first"), line)


@pytest.mark.parametrize(
    ("line", "at", "reason"),
    [
        (rb'{"type":"\ud83d",}', 17, "malformed JSON"),
        (rb'{"type":"\ud83d"}{}', 17, "another record"),
        (rb'{"type":"\ud83d', 0, "torn"),
        (rb'{"type":"\ud83', 0, "torn"),
        (b'{"type":"\\ud83d\0"}', 15, "NUL"),
    ],
)
def test_other_faults_beside_an_unpaired_surrogate_keep_their_place(
    tmp_path: pathlib.Path, line: bytes, at: int, reason: str
) -> None:
    first = json.dumps(record("user", "x", "first")).encode()
    with pytest.raises(ImportFormatError) as caught:
        items_of(tmp_path, first, line)
    assert reason in caught.value.reason
    assert (caught.value.line, caught.value.byte) == (2, len(first) + 1 + at)


# ---------------------------------------------------------------------------------------------- real sessions


def stated_by_the_standard_library(path: pathlib.Path) -> list[tuple[str, EventKind, object]]:
    """Read a session the slow way: (key, kind, decoded block) of each event."""
    kinds = {"thinking": EventKind.THINKING, "tool_use": EventKind.TOOL_CALL, "tool_result": EventKind.TOOL_RESULT}
    stated: list[tuple[str, EventKind, object]] = []
    for text in path.read_text(encoding="utf-8").split("\n"):
        if (
            not text
            or (found := json.loads(text))["type"] not in ("user", "assistant")
            or found.get("isCompactSummary")
        ):
            continue
        content = found["message"]["content"]
        for index, block in enumerate([content] if isinstance(content, str) else content):
            said = block if isinstance(block, str) else block.get(block["type"], "x")
            if not isinstance(said, str) or said.strip():
                kind = EventKind.MESSAGE if isinstance(block, str) else kinds.get(block["type"], EventKind.MESSAGE)
                stated.append((f"{found['uuid']}#{index}", kind, block))
    return stated


@pytest.mark.skipif(not SESSIONS.is_dir(), reason="needs the real transcripts of ../shared/data")
def test_real_sessions_are_read_whole() -> None:
    paths = sorted(SESSIONS.glob("claude_code_*/*.jsonl"))
    assert len(paths) == 12
    kinds: Counter[str] = Counter()
    skipped: Counter[str] = Counter()
    for path in paths:
        transcript = open_transcript(path, digest=digest)
        items = list(transcript.items())
        events = [item for item in items if isinstance(item, NewEvent)]
        expected = stated_by_the_standard_library(path)
        assert [(e.key, e.kind, json.loads(e.body)) for e in events if isinstance(e.body, bytes)] == expected, path
        data = path.read_bytes()
        assert all(e.body in data for e in events if isinstance(e.body, bytes))
        assert transcript.bytes_read == transcript.size_bytes == len(data)
        assert max(len(e.body) for e in events) <= limits.EVENT_BYTES_MAX
        kinds.update(item.kind if isinstance(item, NewEvent) else type(item).__name__ for item in items)
        skipped.update(transcript.skipped)
    assert kinds == {
        "tool_call": 2212,
        "tool_result": 2211,
        "message": 1373,
        "thinking": 1137,
        "SessionRestart": 18,
        "ForeignText": 18,
    }
    assert skipped == {
        "progress": 5924,
        "file-history-snapshot": 348,
        "system:stop_hook_summary": 199,
        "system:turn_duration": 124,
        "queue-operation": 100,
        "empty_block": 58,
        "summary": 12,
        "pr-link": 5,
    }
