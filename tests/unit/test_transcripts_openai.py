"""Laws (C2, I3, I8) of OpenAI's messages: bodies hold the bytes that stood there, results find the calls of their own
conversation, a file is the same in whatever form it is written, grows, and can't be changed under what was imported.
"""

from __future__ import annotations

import asyncio
import json
import pathlib
import re
from collections.abc import Callable
from typing import Any

import pytest

import strandline
from strandline.errors import IdempotencyConflictError, ImportFormatError, InvalidInputError
from strandline.model.event import NewEvent
from strandline.model.transcript import SessionRestart
from strandline.transcripts import conversations as message_module
from strandline.transcripts import detect, open_transcript, read_events

Record = dict[str, Any]
SYSTEM: Record = {"role": "system", "content": "Be brief."}
ASK: Record = {"role": "user", "content": "hä? \U0001f600"}
SAY: Record = {"role": "assistant", "content": "Done."}


def call(call_id: str = "c1", arguments: str = '{"n": 1}', tool: str = "t") -> Record:
    function = {"name": tool, "arguments": arguments}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": call_id, "type": "function", "function": function}],
    }


def result(call_id: str = "c1", content: object = "ok") -> Record:
    return {"role": "tool", "tool_call_id": call_id, "name": "t", "content": content}


def events_of(path: pathlib.Path, data: bytes) -> list[NewEvent]:
    path.write_bytes(data)
    items = open_transcript(path, digest=lambda data: re.sub(r"\W", "", repr(hash(data)))).items()
    return [item for item in items if isinstance(item, NewEvent)]


@pytest.fixture
def path(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "chat.json"


@pytest.fixture
def workflow() -> strandline.Workflow:
    return strandline.open(":memory:").tenant("acme").workflow("w")


def as_lines(*records: object) -> bytes:
    return "\n".join(json.dumps(record) for record in records).encode()


def imported(workflow: strandline.Workflow, path: pathlib.Path, *records: object) -> Any:
    path.write_bytes(as_lines(*records))
    return workflow.import_transcript(path)


# ---------------------------------------------------------------------------------------------- what a message becomes


@pytest.mark.parametrize(
    ("record", "stated"),
    [
        (ASK, [("message", "user", "user", "hä? \U0001f600")]),
        ({**ASK, "name": "ana"}, [("message", "user", "ana", "hä? \U0001f600")]),
        (SYSTEM, [("message", "system", "system", "Be brief.")]),
        ({"role": "developer", "content": "x"}, [("message", "system", "developer", "x")]),
        ({"role": "assistant", "content": " \n"}, []),
        ({"role": "assistant"}, []),
        ({"role": "user", "content": []}, []),
        (
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": ""}]},
            [("message", "user", "user", "a")],
        ),
        (
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x.example/a.png"}}]},
            [("message", "user", "user", "[image_url] https://x.example/a.png")],
        ),
        (
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}]},
            [("message", "user", "user", "[image_url]")],
        ),
        (
            {"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}}]},
            [("message", "user", "user", "[input_audio]")],
        ),
        (
            {"role": "user", "content": [{"type": "input_audio", "transcript": "go", "input_audio": {"data": "AA"}}]},
            [("message", "user", "user", "[input_audio] go")],
        ),
        (
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]},
            [("message", "user", "user", "go")],
        ),
        (
            {"role": "assistant", "content": [{"type": "output_text", "text": "gone", "annotations": []}]},
            [("message", "assistant", "assistant", "gone")],
        ),
        (
            {"role": "assistant", "content": [{"type": "later", "text": "gone"}, {"type": "later", "text": 7}]},
            [("message", "assistant", "assistant", "[later] gone"), ("message", "assistant", "assistant", "[later]")],
        ),
        (
            {"role": "user", "content": [{"type": "document", "source": {"type": "text", "data": "read me"}}]},
            [("message", "user", "user", "[document] read me")],
        ),
        (
            {"role": "assistant", "content": None, "audio": {"id": "a", "data": "AA", "transcript": "hello"}},
            [("message", "assistant", "assistant", "hello")],
        ),
        (
            {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
            [("message", "assistant", "assistant", "no")],
        ),
        (
            {"role": "assistant", "content": None, "refusal": "I can't."},
            [("message", "assistant", "assistant", "I can't.")],
        ),
        (
            {**call(), "content": "hm", "reasoning_content": "I think"},
            [
                ("thinking", None, "assistant", "I think"),
                ("message", "assistant", "assistant", "hm"),
                ("tool_call", None, "assistant", 't {"n": 1}'),
            ],
        ),
        (
            {
                "role": "assistant",
                "tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "t", "input": "x y"}}],
            },
            [("tool_call", None, "assistant", 't "x y"')],
        ),
        (
            {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
            [("tool_call", None, "assistant", "f {}")],
        ),
        ({"choices": [{"index": 0, "message": SAY}], "usage": {}}, [("message", "assistant", "assistant", "Done.")]),
    ],
)
def test_what_a_message_becomes(
    workflow: strandline.Workflow, path: pathlib.Path, record: Record, stated: list[tuple[object, ...]]
) -> None:
    imported(workflow, path, record)
    assert [(e.kind, e.role, e.actor, e.text) for e in workflow.events()] == stated


def test_bodies_are_the_bytes_that_stood_there(path: pathlib.Path) -> None:
    content = b'"h\\u00e4 \\/ \\ud83d"'  # an escaped letter, slash, and half of an emoji
    data = b'[{"role" : "user", "content": ' + content + b'}, {"role": "user", "content": [ {"type":"text", "text":'
    events = events_of(path, data + content + b"} ]}]")
    assert [event.body for event in events] == [content, b'{"type":"text", "text":' + content + b"}"]


@pytest.mark.parametrize(
    ("arguments", "payload"),
    [
        ('{"a":  1.50, "b": [] }', {"a": 1.5, "b": []}),
        (' {"a": "\\ud83d"}\n', {"a": "\ud83d"}),
        ("", ""),
        ("{broken", "{broken"),
        ("[1]", "[1]"),
        ('"x"', '"x"'),
        ('{"a": 1, "a": 2}', '{"a": 1, "a": 2}'),
        ('{"a": 1e999}', '{"a": 1e999}'),
        ('{"a": NaN}', '{"a": NaN}'),
        ('{"a": ' + "[" * 300 + "]" * 300 + "}", '{"a": ' + "[" * 300 + "]" * 300 + "}"),
    ],
)
def test_the_string_of_arguments_can_be_had_again(
    workflow: strandline.Workflow, path: pathlib.Path, arguments: str, payload: object
) -> None:
    """A call's input is the object that the string spells, byte for byte, else the string itself."""
    event = events_of(path, as_lines(call(arguments=arguments)))[0]
    assert isinstance(event.body, bytes)
    before = b'{"type":"tool_use","id":"c1","name":"t","input":'
    kept = event.body.removeprefix(before)[:-1]
    assert (kept.decode() if kept.strip()[:1] == b"{" else json.loads(kept)) == arguments
    workflow.append(event)
    assert workflow.events()[0].payload == payload


def test_a_call_and_its_result_are_rendered_as_they_came(workflow: strandline.Workflow, path: pathlib.Path) -> None:
    imported(workflow, path, ASK, call(), result(content=[{"type": "text", "text": "r-1"}]), SAY)
    messages = workflow.context().messages("openai")
    function = {"name": "t", "arguments": '{"n":1}'}
    assert messages[1]["tool_calls"] == [{"id": "c1", "type": "function", "function": function}]
    assert messages[2] == {"role": "tool", "tool_call_id": "c1", "content": "r-1"}


@pytest.mark.parametrize(
    ("content", "where"),
    [
        ([SYSTEM, {"role": "robot"}], "message 2: role 'robot'"),
        ({"messages": [SYSTEM, {"role": "robot"}]}, "message 2 of conversation 1: role 'robot'"),
        ([{"messages": [ASK]}, {"messages": [{"role": "robot"}]}], "message 1 of conversation 2: role 'robot'"),
        ([{"messages": [ASK]}, {"messages": [ASK, result("c9")]}], "message 2 of conversation 2: orphan result"),
        ({"system": [{}], "messages": [ASK]}, "the system prompt of conversation 1: the type of a part"),
    ],
)
def test_a_fault_in_a_document_says_in_which_message(path: pathlib.Path, content: object, where: str) -> None:
    with pytest.raises(ImportFormatError) as caught:
        events_of(path, json.dumps(content).encode())
    assert caught.value.reason.startswith(where)
    with pytest.raises(ImportFormatError, match=r"^line 2, byte \d+: role 'robot'"):
        events_of(path, as_lines(SYSTEM, {"role": "robot"}))


def test_the_system_prompt_of_a_conversation_is_the_first_message_and_says_what_it_said(
    workflow: strandline.Workflow, path: pathlib.Path
) -> None:
    image = {"type": "image_url", "image_url": {"url": "https://x.example/a.png"}}
    imported(workflow, path, {"messages": [SYSTEM, {**ASK, "content": [image]}, SYSTEM], "task_id": 3})
    note = "[note] Conversation 1 of the file: task_id 3"
    context = workflow.context()
    assert context.messages("openai") == [
        SYSTEM,
        {"role": "user", "content": note},
        {"role": "user", "content": "[image_url] https://x.example/a.png"},
        SYSTEM,
    ]
    said = ["[system] Be brief.", note, "[image_url] https://x.example/a.png", "[system] Be brief."]
    (message,) = context.messages("anthropic")
    assert message == {"role": "user", "content": [{"type": "text", "text": text} for text in said]}
    assert context.text.index(note) < context.text.index("[system] Be brief.")  # a text keeps the order of the log


def test_members_that_are_not_read_are_counted(workflow: strandline.Workflow, path: pathlib.Path) -> None:
    report = imported(workflow, path, {**SAY, "audio": {"id": "a"}, "annotations": [], "refusal": None, "x": 0})
    assert report.lines_skipped == {"message.audio": 1, "message.x": 1}


@pytest.mark.parametrize(
    ("record", "counted"),
    [
        ({**result(), "reasoning_content": "why"}, "message.reasoning_content"),
        ({**result(), "refusal": "no"}, "message.refusal"),
        ({**result(), "tool_calls": [{"id": "c9"}]}, "message.tool_calls"),
        ({**ASK, "tool_call_id": "c1"}, "message.tool_call_id"),
        ({**SAY, "reasoning": "why"}, "message.reasoning"),
        ({**SAY, "audio": {"data": "AA"}}, "message.audio"),
    ],
)
def test_a_member_that_is_no_event_in_this_message_is_counted(
    workflow: strandline.Workflow, path: pathlib.Path, record: Record, counted: str
) -> None:
    assert imported(workflow, path, call(), record).lines_skipped == {counted: 1}


@pytest.mark.parametrize("kind", ["text", "input_text", "output_text", "of_tomorrow"])
def test_references_are_found_in_every_part_with_a_text(
    workflow: strandline.Workflow, path: pathlib.Path, kind: str
) -> None:
    part = {"type": kind, "text": "go job-77ab"}
    found = result("c2", [{**part, "text": "k-81xz"}])
    imported(workflow, path, {"role": "user", "content": [part]}, call("c2"), found)
    assert [hit.seq for hit in workflow.recall("job-77ab")] == [1]
    assert [hit.seq for hit in workflow.recall("k-81xz")] == [3]


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"role": "robot", "content": "x"}, "role 'robot' is none of"),
        ({"role": "user", "content": 7}, "content is neither a string nor a list"),
        ({"role": "user", "content": ["x"]}, "a part of content is no object"),
        ({"role": "user", "content": [{"text": "x"}]}, "the type of a part of content is missing"),
        ({"role": "user", "content": [{"type": "text"}]}, "a text part whose text is no string"),
        ({"role": "user", "content": "x", "name": "n" * 201}, "name has 201 characters"),
        ({"role": "assistant", "refusal": 1}, "refusal is no string"),
        ({"role": "assistant", "tool_calls": [{"id": "", "function": {}}]}, "the id of a tool call is empty"),
        ({"role": "assistant", "tool_calls": [{"id": "c"}]}, "neither function nor custom"),
        ({"role": "assistant", "tool_calls": [{"id": "c", "function": {"arguments": ""}}]}, "name .* is missing"),
        ({"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f"}}]}, "without arguments"),
        ({"role": "tool", "content": "x"}, "tool_call_id is missing"),
        (result("nobody"), "orphan result: no earlier call of the conversation has the id 'nobody'"),
        ({"choices": [{"message": SAY}, {"message": SAY}]}, "2 choices"),
        ({"choices": [{"text": "x"}]}, "a choice without a message"),
        ({"messages": [SAY]}, "a conversation among messages"),
        ({"text": "x"}, "role is missing"),
    ],
)
def test_a_message_that_is_none_is_refused_with_its_place(path: pathlib.Path, record: Record, reason: str) -> None:
    for data in (as_lines(ASK, record), b"[" + json.dumps(ASK).encode() + b",\n" + json.dumps(record).encode() + b"]"):
        with pytest.raises(ImportFormatError, match=reason) as caught:
            events_of(path, data)
        assert caught.value.line == 2
        assert caught.value.byte == data.index(b"\n") + 1


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (b'{"role":"user","role":"user","content":"x"}', "the field 'role' stands twice"),
        (b'{"role":"user","content":"x","name":"\\ud83d"}', "name holds an unpaired surrogate escape"),
        (b'{"role":"user","content":' + b"[" * 300 + b"]" * 300 + b"}", "nested deeper than 200"),
        (b'{"role":"user","content":"x","n":1e999}', "can't be kept"),
        (b'{"messages":[{"role":"user","content":"x"}],"a":1,"a":2}', "a field of the conversation stands twice"),
    ],
)
def test_json_that_says_two_things_or_cannot_be_kept_is_refused(path: pathlib.Path, record: bytes, reason: str) -> None:
    for data in (record, b"[" + record + b"]"):
        with pytest.raises(ImportFormatError, match=reason):
            events_of(path, data)


def test_a_part_that_no_event_holds_is_refused(path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_module, "EVENT_BYTES_MAX", 100)
    with pytest.raises(ImportFormatError, match="a message of 103 bytes"):
        events_of(path, as_lines({"role": "user", "content": "x" * 101}))


# ---------------------------------------------------------------------------------------------- kindred forms


ITEMS: list[Record] = [
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]},
    {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "AA"},
    {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"n": 1}'},
    {"type": "custom_tool_call", "call_id": "c2", "name": "run", "input": "ls"},
    {"type": "function_call_output", "call_id": "c1", "output": "job-77ab"},
    {"type": "custom_tool_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "done"}]},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "ok"}]},
]
BLOCKS: Record = {
    "model": "m",
    "system": "Be brief.",
    "messages": [
        {"role": "user", "content": "go"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "t1", "name": "look", "input": {"n": 1}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": "job-77ab", "is_error": True},
                {"type": "text", "text": "go on"},
            ],
        },
    ],
}


def test_items_of_the_responses_api_are_calls_results_thoughts_and_texts(
    workflow: strandline.Workflow, path: pathlib.Path
) -> None:
    for data in (as_lines(*ITEMS), json.dumps(ITEMS).encode(), as_lines(*ITEMS[2:], *ITEMS[:2])):
        assert len(events_of(path, data)) == 7
    report = imported(workflow, path, *ITEMS)
    assert [(event.kind.value, event.role, event.call_id, event.text) for event in workflow.events()] == [
        ("message", "user", None, "go"),
        ("thinking", None, None, "hm"),
        ("tool_call", None, "c1", 'look {"n": 1}'),
        ("tool_call", None, "c2", 'run "ls"'),
        ("tool_result", None, "c1", "job-77ab"),
        ("tool_result", None, "c2", "done"),
        ("message", "assistant", None, "ok"),
    ]
    assert report.lines_skipped == {"message.id": 1, "message.encrypted_content": 1}
    assert [hit.seq for hit in workflow.recall("job-77ab")] == [5]


def test_an_anthropic_request_is_a_conversation_with_its_system_prompt(
    workflow: strandline.Workflow, path: pathlib.Path
) -> None:
    imported(workflow, path, BLOCKS)
    assert [(event.kind.value, event.role, event.call_id, event.text) for event in workflow.events()] == [
        ("note", None, None, 'Conversation 1 of the file: model "m"'),
        ("message", "system", None, "Be brief."),
        ("message", "user", None, "go"),
        ("thinking", None, None, "hm"),
        ("message", "assistant", None, "I look."),
        ("tool_call", None, "t1", 'look {"n": 1}'),
        ("tool_result", None, "t1", "job-77ab"),
        ("message", "user", None, "go on"),
    ]
    assert [event.is_error for event in workflow.events()] == [False] * 6 + [True, False]
    behind = {**BLOCKS, "system": [{"type": "text", "text": "Be brief."}]}
    behind = {"model": "m", "messages": BLOCKS["messages"], "system": behind["system"]}
    assert [event.kind for event in events_of(path, as_lines(behind))] == [event.kind for event in workflow.events()]


@pytest.mark.parametrize(
    ("records", "reason"),
    [
        ([{"type": "tool_result", "tool_use_id": "t9", "content": "x"}], "orphan result: .* 't9'"),
        ([{"type": "tool_use", "id": "t9", "input": {}}], "a tool_use block's name is missing"),
        ([{"type": "tool_use", "id": "t9", "name": "n"}], "a tool_use block without input"),
    ],
)
def test_a_block_that_is_none_is_refused(path: pathlib.Path, records: list[Record], reason: str) -> None:
    with pytest.raises(ImportFormatError, match=reason):
        events_of(path, as_lines(ASK, {"role": "user", "content": records}))


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"type": "web_search_call", "id": "w"}, "an item of the type 'web_search_call' is not read"),
        ({"type": "function_call_output", "call_id": "c9", "output": "x"}, "orphan result"),
        ({"type": "function_call_output", "call_id": "c9"}, "orphan result"),
        ({"type": "function_call", "name": "f", "arguments": "{}"}, "the id of a tool call is missing"),
        ({"type": "reasoning", "summary": "x"}, "the summary of a reasoning item is no list"),
        (
            {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "x"}}]},
            "a streamed piece of a response",
        ),
        ({"custom_id": "1", "body": {"messages": [ASK]}}, "a record of a batch"),
        ({"custom_id": "1", "response": {"body": {"choices": [{"message": SAY}]}}}, "a record of a batch"),
    ],
)
def test_a_kindred_form_that_is_not_read_is_refused_by_name(path: pathlib.Path, record: Record, reason: str) -> None:
    for data in (as_lines(ASK, record), json.dumps([ASK, record]).encode()):
        with pytest.raises(ImportFormatError, match=reason):
            events_of(path, data)


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {}}]}, "a streamed piece"),
        ({"custom_id": "1", "method": "POST", "body": {"messages": [ASK]}}, "a record of a batch"),
    ],
)
def test_a_file_of_a_kindred_form_is_refused_by_name(path: pathlib.Path, record: Record, reason: str) -> None:
    for data in (as_lines(record), as_lines(record, record), json.dumps([record]).encode()):
        with pytest.raises(ImportFormatError, match=reason):
            events_of(path, data)


# ---------------------------------------------------------------------------------------------- conversations


@pytest.mark.parametrize(
    "form",
    [
        lambda records: as_lines(*records),
        lambda records: json.dumps(records).encode(),
        lambda records: b"\xef\xbb\xbf \r\n" + json.dumps(records, indent=2).encode() + b"\n",
        lambda records: b"[\n" + b",\n".join(json.dumps(record).encode() for record in records) + b"\n]",
    ],
    ids=["lines", "list", "indented", "a line each"],
)
def test_the_form_of_a_file_changes_nothing(path: pathlib.Path, form: Callable[[list[Record]], bytes]) -> None:
    """Also not the keys: a list that is kept anew as lines goes on."""
    for records in (
        [SYSTEM, ASK, call(), result(), SAY],
        [{"messages": [ASK, SAY], "model": "m"}, {"messages": [ASK]}],
    ):
        assert events_of(path, form(records)) == events_of(path, as_lines(*records))


def test_a_conversation_alone_is_one_of_a_list(path: pathlib.Path) -> None:
    request = {"model": "gpt-4o", "temperature": 0.2, "tools": [{}], "messages": [ASK, SAY], "user": "x" * 300}
    whole = events_of(path, json.dumps(request, indent=1).encode())
    assert whole == events_of(path, json.dumps([request]).encode()) == events_of(path, as_lines(request))
    assert whole[0].body == 'Conversation 1 of the file: model "gpt-4o", temperature 0.2'


@pytest.mark.parametrize(
    ("data", "notes"),
    [
        (b"[]", 0),
        (b'{"messages":[]}', 0),
        (b'{"messages":[]}\n{"messages":[]}', 0),
        (b'[{"messages":[]}]', 0),
        (b'{"messages":[],"task_id":3}', 1),  # what is told of it would be lost
    ],
)
def test_an_empty_conversation_is_no_event(path: pathlib.Path, data: bytes, notes: int) -> None:
    assert [event.kind.value for event in events_of(path, data)] == ["note"] * notes


def test_each_conversation_is_opened_by_a_note_and_closes_the_calls_before_it(
    workflow: strandline.Workflow, path: pathlib.Path
) -> None:
    episodes = [
        {"task_id": 3, "reward": 0.0, "info": {"x": 1}, "traj": [ASK, call()], "trial": 0},
        {"task_id": 4, "reward": 1.0, "info": {"x": 1}, "traj": [ASK, call(), result()], "trial": 0},
    ]
    path.write_text(json.dumps(episodes))
    report = workflow.import_transcript(path)
    events = workflow.events()
    assert [event.kind for event in events] == [
        *("note", "message", "tool_call", "abandoned"),
        *("note", "message", "tool_call", "tool_result"),
    ]
    assert events[0].text == "Conversation 1 of the file: task_id 3, reward 0.0, trial 0"
    assert events[4].text == "Conversation 2 of the file: task_id 4, reward 1.0, trial 0"
    assert (events[3].call_seq, events[7].call_seq, events[7].late) == (3, 7, False)
    assert (report.calls_abandoned, report.lines_skipped) == (1, {"conversation.info": 2})
    assert workflow.import_transcript(path).events_known == 7  # the abandoned event was stated once, and is not again
    assert len(workflow.events()) == 8


def test_a_result_belongs_to_its_own_conversation(path: pathlib.Path) -> None:
    with pytest.raises(ImportFormatError, match="no earlier call of the conversation has the id 'c1'") as caught:
        events_of(path, as_lines({"messages": [ASK, call(), result()]}, {"messages": [ASK, result()]}))
    assert caught.value.line == 2


def test_a_result_belongs_to_the_latest_earlier_open_call_of_its_id(
    workflow: strandline.Workflow, path: pathlib.Path
) -> None:
    """I8: ids recur; a user turn closes a call, and a result that comes then is late."""
    records = [call(), result(), call(), call(), result(), result(), call(), ASK, result(), result()]
    imported(workflow, path, *records)
    events = workflow.events()
    answers = {event.seq: (event.call_seq, event.late) for event in events if event.kind == "tool_result"}
    assert answers == {2: (1, False), 5: (4, False), 6: (3, False), 9: (7, True), 10: (7, True)}


def test_a_function_without_ids_is_answered_by_its_name(workflow: strandline.Workflow, path: pathlib.Path) -> None:
    ask = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}
    answer = {"role": "function", "name": "f", "content": "1"}
    imported(workflow, path, ask, answer, ask, answer)
    assert [event.call_seq for event in workflow.events()] == [None, 1, None, 3]
    with pytest.raises(ImportFormatError, match="orphan"):
        imported(workflow, path, ask, {**answer, "name": "g"})


# ---------------------------------------------------------------------------------------------- keys


@pytest.mark.parametrize("grouped", [False, True], ids=["messages", "conversations"])
def test_a_grown_file_adds_the_rest_and_equal_ones_do_not_collide(
    workflow: strandline.Workflow, path: pathlib.Path, grouped: bool
) -> None:
    talk = [ASK, call(), result(), ASK, call(), result()]
    records = [{"messages": talk}] * 3 if grouped else talk * 3
    added = [imported(workflow, path, *records[:n]).events_imported for n in range(1, len(records) + 1)]
    assert added == ([7] * 3 if grouped else [1] * 18)
    with strandline.open(":memory:") as db:
        whole = db.tenant("acme").workflow("w")
        imported(whole, path, *records)
        assert workflow.events() == whole.events()


def test_the_last_conversation_of_a_file_may_grow(workflow: strandline.Workflow, path: pathlib.Path) -> None:
    imported(workflow, path, {"messages": [ASK, call()]})
    assert imported(workflow, path, {"messages": [ASK, call(), result(), ASK]}).events_imported == 2
    assert workflow.context().open_calls == ()


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        ([SYSTEM, ASK, SAY], [SYSTEM, {**ASK, "content": "other"}, SAY], 2),
        ([SYSTEM, ASK, SAY], [SYSTEM, SAY], 2),
        ([SYSTEM, ASK, SAY], [SYSTEM, ASK, ASK, SAY], 3),
        ([SYSTEM, call()], [SYSTEM, {**call(), "content": "x"}], 2),
        ([{"messages": [ASK]}, {"messages": [ASK]}], [{"messages": [ASK, SAY]}, {"messages": [ASK]}], 1),
        ([{"messages": [ASK], "n": 1}], [{"messages": [SAY], "n": 1}], 1),
    ],
)
def test_a_file_that_was_changed_before_its_old_end_is_refused_where_it_differs(
    workflow: strandline.Workflow, path: pathlib.Path, before: list[Record], after: list[Record], line: int
) -> None:
    imported(workflow, path, *before)
    held = workflow.events()
    with pytest.raises(IdempotencyConflictError, match="does not continue what was imported") as caught:
        imported(workflow, path, *after, after[-1])
    assert caught.value.line == line
    assert path.read_bytes()[: caught.value.byte].count(b"\n") == line - 1
    assert "another workflow" in caught.value.hint
    assert workflow.events() == held


def test_our_own_jsonl_without_keys_is_refused_alike(workflow: strandline.Workflow, path: pathlib.Path) -> None:
    notes = [{"kind": "note", "text": text} for text in "abcd"]
    imported(workflow, path, *notes[:3])
    with pytest.raises(IdempotencyConflictError) as caught:
        imported(workflow, path, notes[0], notes[2], notes[3])
    assert (caught.value.line, caught.value.seq) == (2, 2)


# ---------------------------------------------------------------------------------------------- sizes, split, append


def test_one_document_is_limited_and_lines_are_not(path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detect, "IMPORT_JSON_BYTES_MAX", 200)
    assert len(events_of(path, as_lines(*[ASK] * 50))) == 50
    data = json.dumps([ASK] * 50).encode()
    with pytest.raises(ImportFormatError, match=f"one JSON document of {len(data)} bytes; at most 200") as caught:
        events_of(path, data)
    assert "one conversation a line" in caught.value.hint


def test_a_file_is_split_into_a_workflow_for_each_conversation(path: pathlib.Path) -> None:
    records = [{"messages": [ASK, call()]}, {"messages": [ASK, SAY]}]
    path.write_bytes(as_lines(*records))
    with strandline.open(":memory:") as db:
        tenant = db.tenant("acme")
        reports = tenant.import_conversations(path, "chat")
        assert [(report.workflow, report.events_imported) for report in reports] == [("chat-1", 3), ("chat-2", 3)]
        assert tenant.workflows() == ["chat-1", "chat-2"]
        records[0]["messages"] += [result(), SAY]  # each grows by itself
        path.write_bytes(as_lines(*records, {"messages": [ASK]}))
        reports = tenant.import_conversations(path, "chat")
        assert [report.events_imported for report in reports] == [2, 0, 2]
        path.write_bytes(as_lines(ASK, SAY))
        assert [report.workflow for report in tenant.import_conversations(path, "plain")] == ["plain-1"]
        path.write_bytes(b"")
        assert tenant.import_conversations(path, "none") == []


def test_an_event_loop_imports_too(path: pathlib.Path, tmp_path: pathlib.Path) -> None:
    path.write_bytes(as_lines({"messages": [ASK]}))

    async def main() -> list[str]:
        async with strandline.aopen(tmp_path / "s.db") as db:
            await db.tenant("acme").workflow("w").import_transcript(path, salvage=True)
            await db.tenant("acme").import_conversations(path, "chat")
            return await db.tenant("acme").workflows()

    assert asyncio.run(main()) == ["chat-1", "w"]


def test_events_for_an_append_have_no_key_and_may_answer_the_log(
    workflow: strandline.Workflow, path: pathlib.Path
) -> None:
    path.write_bytes(as_lines(call()))
    workflow.append(list(read_events(path)))
    path.write_bytes(as_lines(result(), SAY))
    assert workflow.append(list(read_events(path))).seqs == (2, 3)
    assert workflow.append(list(read_events(path))).seqs == (4, 5)
    path.write_bytes(as_lines({"messages": [ASK]}, {"messages": [ASK]}))
    with pytest.raises(InvalidInputError, match="several conversations"):
        list(read_events(path))
    path.write_bytes(b'{"type":"user","uuid":"u","message":{"content":"x"}}')
    with pytest.raises(InvalidInputError, match="whole claude_code session"):
        list(read_events(path))


def test_a_boundary_is_told_before_each_conversation(path: pathlib.Path) -> None:
    path.write_bytes(as_lines({"messages": [ASK]}, {"messages": [ASK]}))
    items = list(open_transcript(path, digest=lambda data: str(len(data))).items())
    assert [item.opens for item in items if isinstance(item, SessionRestart)] == [1, 2]
