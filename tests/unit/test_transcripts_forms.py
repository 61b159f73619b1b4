"""Laws (C2, I3, I8) of the sessions of other tools: what a model read or wrote is an event with the bytes that stood
there, results find their calls, what frames them is counted, a file cut anywhere is refused, and nothing comes twice.
"""

from __future__ import annotations

import json
import pathlib
from collections.abc import Callable
from typing import Any

import pytest

import strandline
from strandline.errors import ImportFormatError, InvalidInputError
from strandline.model.event import NewEvent, Role
from strandline.model.transcript import ForeignText, SessionRestart, TranscriptItem
from strandline.transcripts import Transcript, open_transcript, read_events

Record = dict[str, Any]
AT = "2026-01-31T12:00:00.000Z"
RAW = '{"n": 1.50, "s": "h\\u00e4"}'  # spelled so that a decoder and an encoder would spell it in another way
HALF = '"cut \\ud83d"'  # a string of JSON with half an emoji, as a truncation leaves it


def codex(kind: str, **payload: object) -> Record:
    return {"timestamp": AT, "type": kind, "payload": payload}


def codex_item(kind: str, **members: object) -> Record:
    return codex("response_item", type=kind, **members)


def pi(role: str, **members: object) -> Record:
    return {"type": "message", "timestamp": AT, "message": {"role": role, **members}}


CODEX: list[Record] = [
    codex("session_meta", id="s", cwd="/w", instructions="Be brief."),
    codex_item("message", role="user", content=[{"type": "input_text", "text": "<environment_context>zsh"}]),
    codex_item("message", role="user", content=[{"type": "input_text", "text": "Find it."}]),
    codex("event_msg", type="user_message", message="Find it."),
    codex("turn_context", cwd="/w"),
    codex_item("reasoning", summary=[{"type": "summary_text", "text": "Look"}], encrypted_content="stripped"),
    codex_item("function_call", name="shell", arguments=RAW, call_id="c1"),
    codex_item("function_call_output", call_id="c1", output='{"output":"none","metadata":{"exit_code":1}}'),
    codex_item("local_shell_call", call_id="c2", action={"type": "exec", "command": ["ls"]}),
    codex_item("function_call_output", call_id="c2", output="a b"),
    codex_item("web_search_call", action={"query": "x"}),
    codex_item("ghost_snapshot", ghost_commit="f00d"),
    codex("compacted", message="They looked."),
    codex_item("message", role="assistant", content=[{"type": "output_text", "text": "Gone."}]),
]
CODEX_SAID = [
    ("message", "system", "Be brief."),
    ("message", "system", "<environment_context>zsh"),
    ("message", "user", "Find it."),
    ("thinking", None, "Look"),
    ("tool_call", "c1", "shell"),
    ("tool_result!", "c1", '{"output":"none","metadata":{"exit_code":1}}'),
    ("tool_call", "c2", "local_shell"),
    ("tool_result", "c2", '"a b"'),
    ("message", "assistant", "web_search_call"),
    ("message", "assistant", "Gone."),
]
PI: list[Record] = [
    {"type": "session", "id": "s", "timestamp": AT, "cwd": "/w"},
    pi("user", content=[{"type": "text", "text": "Find it."}], timestamp=1),
    pi(
        "assistant",
        content=[
            {"type": "thinking", "thinking": "Look", "thinkingSignature": "stripped"},
            {"type": "text", "text": "I look."},
            {"type": "toolCall", "id": "c1", "name": "read", "arguments": {"path": "a.py"}},
        ],
        usage={"input": 1},
    ),
    pi("toolResult", toolCallId="c1", toolName="read", content=[{"type": "text", "text": "none"}], isError=True),
    pi("bashExecution", command="ls", output="a b", exitCode=0),
    {"type": "thinking_level_change", "timestamp": AT, "thinkingLevel": "off"},
    {"type": "compaction", "timestamp": AT, "summary": "They looked.", "firstKeptEntryIndex": 3, "tokensBefore": 9},
    {"type": "custom_message", "timestamp": AT, "content": "Mind the gap."},
    pi("assistant", content=[], errorMessage="aborted"),
]
PI_SAID = [
    ("message", "user", "Find it."),
    ("thinking", None, "Look"),
    ("message", "assistant", "I look."),
    ("tool_call", "c1", "read"),
    ("tool_result!", "c1", '[{"type":"text","text":"none"}]'),
    ("tool_call", "bash:2", "bash"),
    ("tool_result", "bash:2", '"a b"'),
    ("message", "system", "Mind the gap."),
]
GEMINI: Record = {
    "sessionId": "s",
    "startTime": AT,
    "messages": [
        {"id": "1", "timestamp": AT, "type": "user", "content": "Find it."},
        {"id": "2", "timestamp": AT, "type": "info", "content": "Update available"},
        {
            "id": "3",
            "timestamp": AT,
            "type": "gemini",
            "content": [{"text": "I look."}, {"inlineData": {"data": "aa"}}],
            "thoughts": [{"subject": "Plan", "description": "Look", "timestamp": AT}],
            "toolCalls": [
                {
                    "id": "c1",
                    "name": "ls",
                    "args": {"path": "."},
                    "status": "success",
                    "result": [{"functionResponse": {"id": "c1", "name": "ls", "response": {"output": "a b"}}}],
                },
                {"name": "rm", "args": {}, "status": "error", "result": [{"text": "no"}, {"text": "way"}]},
                {"id": "c3", "name": "mv", "args": {}, "status": "cancelled", "result": None},
            ],
            "tokens": {"input": 1},
        },
    ],
}
GEMINI_SAID = [
    ("note", None, f'Conversation 1 of the file: sessionId "s", startTime "{AT}"'),
    ("message", "user", "Find it."),
    ("thinking", None, "Look"),
    ("message", "assistant", "I look."),
    ("message", "assistant", "part"),
    ("tool_call", "c1", "ls"),
    ("tool_result", "c1", '"a b"'),
    ("tool_call", "call:2", "rm"),
    ("tool_result!", "call:2", '[{"text":"no"},{"text":"way"}]'),
    ("tool_call", "c3", "mv"),
]
SWE: Record = {
    "trajectory": [{"action": "ls", "observation": "a b"}],
    "history": [
        {"role": "system", "content": "Fix it.", "agent": "main"},
        {"role": "user", "content": "As shown here.", "agent": "main", "is_demo": True},
        {"role": "user", "content": "It breaks.", "agent": "main"},
        {
            "role": "assistant",
            "content": "Look.\n```\nls\n```",
            "thought": "Look.\n",
            "action": "ls\n",
            "agent": "main",
        },
        {"role": "user", "content": "a b", "agent": "main"},
        {
            "role": "assistant",
            "content": "Edit it.",
            "thought": "Edit it.",
            "action": "edit",
            "agent": "main",
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "edit", "arguments": RAW}}],
        },
        {"role": "tool", "content": "done", "agent": "main", "tool_call_ids": ["c1"]},
    ],
    "info": {"exit_status": "submitted"},
}
SWE_SAID = [
    ("note", None, "Conversation 1 of the file"),
    ("message", "system", "Fix it."),
    ("message", "system", "As shown here."),
    ("message", "user", "It breaks."),
    ("message", "assistant", "Look.\n"),
    ("tool_call", "action:1", "shell"),
    ("tool_result", "action:1", '"a b"'),
    ("message", "assistant", "Edit it."),
    ("tool_call", "c1", "edit"),
    ("tool_result", "c1", '"done"'),
]
OPENHANDS: Record = {
    "instance_id": "i-1",
    "history": [
        {"id": 0, "timestamp": AT, "source": "agent", "action": "system", "args": {"content": "Fix it."}},
        {"id": 1, "timestamp": AT, "source": "user", "action": "message", "args": {"content": "It breaks."}},
        {"id": 2, "source": "user", "action": "recall", "args": {"query": "It"}},
        {"id": 3, "source": "environment", "cause": 2, "observation": "recall", "content": "Added", "extras": {"a": 1}},
        {
            "id": 4,
            "source": "agent",
            "action": "run",
            "args": {"command": "ls", "thought": "I look."},
            "tool_call_metadata": {"function_name": "execute_bash", "tool_call_id": "t1"},
        },
        {"id": 5, "source": "agent", "cause": 4, "observation": "run", "content": "a b", "success": False},
        {"id": 6, "source": "agent", "observation": "error", "content": "Parameter missing."},
        {"id": 7, "source": "environment", "observation": "agent_state_changed", "content": ""},
        {"id": 8, "source": "agent", "action": "finish", "message": "Done.", "args": {"final_thought": "It is fixed."}},
    ],
}
OPENHANDS_SAID = [
    ("note", None, 'Conversation 1 of the file: instance_id "i-1"'),
    ("message", "system", "Fix it."),
    ("message", "user", "It breaks."),
    ("tool_call", "event:2", "recall"),
    ("tool_result", "event:2", '{"content":"Added","extras":{"a":1}}'),
    ("message", "assistant", "I look."),
    ("tool_call", "event:4", "execute_bash"),
    ("tool_result!", "event:4", '"a b"'),
    ("message", "system", "Parameter missing."),
    ("message", "assistant", "It is fixed."),
]
OLD_OPENHANDS: Record = {
    "issue": {"number": 5},
    "history": [
        {"action": "message", "content": "It breaks.", "wait_for_response": False},
        {"action": "run", "command": "ls", "thought": "I look.", "is_confirmed": "confirmed"},
        {"observation": "run", "content": "no", "command": "ls", "exit_code": 2},
        {"action": "finish", "outputs": {}, "thought": "It is fixed."},
    ],
}
OLD_OPENHANDS_SAID = [
    ("note", None, "Conversation 1 of the file"),
    ("message", "user", "It breaks."),
    ("message", "assistant", "I look."),
    ("tool_call", "action:1", "run"),
    ("tool_result!", "action:1", '"no"'),
    ("message", "assistant", "It is fixed."),
]
WHO: Record = {
    "history": [
        {"role": "human", "content": "Find it."},
        {"role": "Orchestrator (thought)", "content": "Who can?"},
        {"role": "user", "name": "Searcher", "content": "I can."},
        {"role": "assistant", "name": "Coder", "content": " "},
    ],
    "system_prompt": {"Searcher": "You search."},
    "mistake_agent": "Searcher",
    "mistake_step": "2",
}
WHO_SAID = [
    ("note", None, 'Conversation 1 of the file: mistake_agent "Searcher", mistake_step "2"'),
    ("message", "system", "You search."),
    ("message", "user", "Find it."),
    ("message", "assistant", "Who can?"),
    ("message", "assistant", "I can."),
]
INSPECT: Record = {
    "version": 2,
    "eval": {"task": "t"},
    "samples": [
        {
            "id": 1,
            "messages": [
                {"id": "m1", "role": "user", "content": "Find it.", "source": "input"},
                {
                    "id": "m2",
                    "role": "assistant",
                    "content": [{"type": "reasoning", "reasoning": "Look"}, {"type": "text", "text": "I look."}],
                    "tool_calls": [{"id": "c1", "function": "ls", "arguments": {"path": "."}}],
                },
                {"role": "tool", "content": "", "tool_call_id": "c1", "function": "ls", "error": {"message": "no"}},
            ],
        },
        {"id": 2, "messages": [{"role": "assistant", "content": "Gone."}]},
    ],
}
INSPECT_SAID = [
    ("note", None, "Conversation 1 of the file: id 1"),
    ("message", "user", "Find it."),
    ("thinking", None, "Look"),
    ("message", "assistant", "I look."),
    ("tool_call", "c1", "ls"),
    ("tool_result!", "c1", '{"message":"no"}'),
    ("note", None, "Conversation 2 of the file: id 2"),
    ("message", "assistant", "Gone."),
]


def lines(*records: Record) -> bytes:
    return b"".join(json.dumps(record, separators=(",", ":")).encode() + b"\n" for record in records)


def document(record: Record) -> bytes:
    return json.dumps(record, indent=1).encode()


FORMS = {
    "codex": (lines(*CODEX), CODEX_SAID),
    "pi": (lines(*PI), PI_SAID),
    "gemini_cli": (lines(GEMINI), GEMINI_SAID),
    "swe_agent": (lines(SWE), SWE_SAID),
    "openhands": (lines(OPENHANDS), OPENHANDS_SAID),
    "who_and_when": (lines(WHO), WHO_SAID),
    "inspect": (lines(INSPECT), INSPECT_SAID),
}
DOCUMENTS = {
    "gemini_cli": GEMINI,
    "swe_agent": SWE,
    "openhands": OPENHANDS,
    "who_and_when": WHO,
    "inspect": INSPECT,
}
each_form = pytest.mark.parametrize("form", FORMS)


@pytest.fixture
def path(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "session"


@pytest.fixture
def opened(path: pathlib.Path) -> Callable[[bytes], Transcript]:
    def open_it(data: bytes, *, salvage: bool = False) -> Transcript:
        path.write_bytes(data)
        return open_transcript(path, digest=lambda data: str(hash(data)), salvage=salvage)

    return open_it


def shown(event: NewEvent) -> tuple[str, str | None, str]:
    """Return an event as the tables above tell it; the text of a block, or its type where it has none."""
    kind = f"{event.kind}{'!' if event.envelope.is_error else ''}"
    if isinstance(event.body, str):
        return kind, None, event.body
    assert isinstance(event.body, bytes)
    block = json.loads(event.body)
    if event.kind == "tool_call":
        return kind, event.envelope.call_id, event.envelope.tool or ""
    if event.kind == "tool_result":
        return (
            kind,
            event.envelope.call_id,
            event.body.partition(b'"content":')[2][:-1].decode().removesuffix(',"is_error":true'),
        )
    text = block if isinstance(block, str) else block.get("text") or block.get("thinking") or block["type"]
    return kind, event.envelope.role and event.envelope.role.value, text


def events_of(items: list[TranscriptItem]) -> list[NewEvent]:
    return [item for item in items if isinstance(item, NewEvent)]


# ---------------------------------------------------------------------------------------------- what becomes what


@each_form
def test_what_was_said_becomes_events(form: str, opened: Callable[..., Transcript]) -> None:
    data, said = FORMS[form]
    transcript = opened(data)
    assert transcript.format == form
    assert [shown(event) for event in events_of(list(transcript.items()))] == said


def test_old_events_of_openhands(opened: Callable[..., Transcript]) -> None:
    transcript = opened(lines(OLD_OPENHANDS))
    assert transcript.format == "openhands"
    assert [shown(event) for event in events_of(list(transcript.items()))] == OLD_OPENHANDS_SAID


@pytest.mark.parametrize("form", DOCUMENTS)
def test_a_document_of_several_lines_is_the_same_as_a_line(form: str, opened: Callable[..., Transcript]) -> None:
    spread, flat = opened(document(DOCUMENTS[form])), FORMS[form][1]
    assert spread.format == form
    found = [(kind, about, json.dumps(text)) for kind, about, text in map(shown, events_of(list(spread.items())))]
    assert len(found) == len(flat)
    assert [event[:2] for event in found] == [event[:2] for event in flat]


def test_a_list_of_events_is_a_conversation_of_openhands(opened: Callable[..., Transcript]) -> None:
    transcript = opened(json.dumps(OPENHANDS["history"], indent=1).encode())
    assert transcript.format == "openhands"
    assert len(events_of(list(transcript.items()))) == len(OPENHANDS_SAID) - 1


def test_foreign_summaries_are_kept_beside_the_log(opened: Callable[..., Transcript]) -> None:
    for data, detail in (
        (lines(*CODEX), {"timestamp": AT}),
        (lines(*PI), {"timestamp": AT, "pre_tokens": 9, "first_kept_entry_index": 3}),
    ):
        (foreign,) = (item for item in opened(data).items() if isinstance(item, ForeignText))
        assert foreign.text == "They looked."
        assert foreign.detail == detail


def test_what_is_no_event_is_counted_by_name(opened: Callable[..., Transcript]) -> None:
    for data, skipped in (
        (lines(*CODEX), {"event_msg:user_message": 1, "turn_context": 1, "response_item:ghost_snapshot": 1}),
        (lines(*PI), {"thinking_level_change": 1, "message.errorMessage": 1, "message.usage": 1, "empty_block": 1}),
        (lines(GEMINI), {"info": 1, "message.tokens": 1}),
        (lines(SWE), {"conversation.trajectory": 1, "conversation.info": 1}),
        (lines(OPENHANDS), {"agent_state_changed": 1}),
        (lines(WHO), {"empty_block": 1}),
        (lines(INSPECT), {"message.source": 1}),
    ):
        transcript = opened(data)
        list(transcript.items())
        assert skipped.items() <= dict(transcript.skipped).items()


def test_agents_with_names_are_no_users(opened: Callable[..., Transcript]) -> None:
    events = events_of(list(opened(lines(WHO)).items()))
    actors = [(event.actor, event.envelope.role) for event in events[1:]]
    assert actors == [
        ("Searcher", Role.SYSTEM),
        ("human", Role.USER),
        ("Orchestrator (thought)", Role.ASSISTANT),
        ("Searcher", Role.ASSISTANT),
    ]


def test_inputs_and_contents_stand_as_they_were_spelled(opened: Callable[..., Transcript]) -> None:
    """Numbers, escapes and half emojis are those of the file."""
    item = '{"timestamp":"t","type":"response_item","payload":{"call_id":"c",'
    of_codex = (
        f'{item}"type":"function_call","name":"f","arguments":{json.dumps(RAW)}}}}}\n'
        f'{item}"type":"function_call_output","output":{HALF}}}}}\n'
    )
    block = f'{{"type":"toolCall","id":"c","name":"f","arguments":{RAW}}}'
    of_pi = (
        f'{{"type":"message","message":{{"role":"assistant","content":[{block}]}}}}\n'
        f'{{"type":"message","message":{{"role":"toolResult","toolCallId":"c","content":{HALF}}}}}\n'
    )
    for data in (of_codex, of_pi):
        asked, answered = events_of(list(opened(data.encode()).items()))
        assert asked.body == b'{"type":"tool_use","id":"c","name":"f","input":' + RAW.encode() + b"}"
        assert answered.body == b'{"type":"tool_result","tool_use_id":"c","content":' + HALF.encode() + b"}"


# ---------------------------------------------------------------------------------------------- bad input


@each_form
def test_a_file_cut_anywhere_is_refused_or_ends_between_records(form: str, opened: Callable[..., Transcript]) -> None:
    data, said = FORMS[form]
    step = max(1, len(data) // 150)
    for end in range(1, len(data) - 1, step):
        if b"\n" in (data[end - 1 : end], data[end : end + 1]):
            assert len(events_of(list(opened(data[:end]).items()))) <= len(said)
            continue
        with pytest.raises(ImportFormatError) as caught:
            list(opened(data[:end]).items())
        assert 0 <= caught.value.byte <= end


@pytest.mark.parametrize(
    ("form", "record", "reason"),
    [
        ("codex", codex_item("function_call_output", call_id="x", output="?"), "orphan result"),
        ("codex", codex_item("function_call_output", call_id="c1"), "without output"),
        ("codex", {"type": "response_item", "payload": []}, "payload is missing"),
        ("codex", codex("compacted", message=7), "no string"),
        ("codex", codex_item("local_shell_call", call_id="c"), "without action"),
        ("pi", pi("toolResult", toolCallId="x", content=[]), "orphan result"),
        ("pi", pi("assistant", content=[{"type": "toolCall", "id": "c", "name": "f"}]), "without arguments"),
        ("pi", pi("assistant", content=[7]), "no object"),
        ("pi", pi("assistant", content=[{"type": "text"}]), "no string"),
        ("pi", pi("bashExecution", command="ls"), "without command or output"),
        ("pi", {"type": "message"}, "message is missing"),
        ("pi", {"type": "compaction"}, "without a summary"),
    ],
)
def test_a_damaged_line_is_refused_with_its_place(
    form: str, record: Record, reason: str, opened: Callable[..., Transcript]
) -> None:
    data = FORMS[form][0]
    with pytest.raises(ImportFormatError, match=reason) as caught:
        list(opened(data + lines(record)).items())
    assert caught.value.line == data.count(b"\n") + 1
    assert caught.value.byte >= len(data)


@pytest.mark.parametrize(
    ("form", "message", "reason"),
    [
        ("gemini_cli", {"type": "gemini", "toolCalls": [{"id": "c"}]}, "the name of a called tool"),
        ("gemini_cli", {"type": "user", "content": 7}, "content is neither"),
        ("swe_agent", {"role": "tool", "content": "x", "tool_call_ids": ["x"]}, "orphan result"),
        ("swe_agent", {"role": "tool", "content": "x", "tool_call_ids": ["a", "b"]}, "one id"),
        ("swe_agent", {"role": "nobody", "content": "x"}, "role 'nobody'"),
        ("openhands", {"observation": "run", "id": 7}, "without content"),
        ("openhands", {"id": 7}, "observation is missing"),
        ("who_and_when", {"role": "a" * 2_000, "content": "x"}, "role has 2000"),
        ("who_and_when", {"role": "a", "content": []}, "content is neither"),
        ("inspect", {"role": "tool", "content": "x", "tool_call_id": "x"}, "orphan result"),
        ("inspect", {"role": "nobody"}, "role 'nobody'"),
        ("inspect", {"role": "assistant", "tool_calls": [{"id": "c", "function": "f"}]}, "without arguments"),
    ],
)
def test_a_damaged_message_is_refused_and_a_salvage_leaves_out_only_it(
    form: str, message: Record, reason: str, opened: Callable[..., Transcript]
) -> None:
    record = json.loads(json.dumps(DOCUMENTS[form]))
    conversation = record["samples"][0] if form == "inspect" else record
    conversation["history" if "history" in conversation else "messages"].append(message)
    with pytest.raises(ImportFormatError, match=reason):
        list(opened(document(record)).items())
    salvaged = opened(document(record), salvage=True)
    events = events_of(list(salvaged.items()))
    assert salvaged.left_out_count == 1
    assert len(events) == len(FORMS[form][1]) + 1  # and a note of the gap


def test_a_damaged_sample_does_not_cost_the_others(opened: Callable[..., Transcript]) -> None:
    data = document(INSPECT).replace(b'"content": "Find it."', b'"content": "Find it.')
    with pytest.raises(ImportFormatError):
        list(opened(data).items())
    salvaged = opened(data, salvage=True)
    list(salvaged.items())
    assert salvaged.left_out_count >= 1


@each_form
def test_a_whole_session_is_imported_and_not_appended(form: str, path: pathlib.Path) -> None:
    path.write_bytes(FORMS[form][0])
    with pytest.raises(InvalidInputError, match="can't be appended"):
        list(read_events(path))


# ---------------------------------------------------------------------------------------------- in a log


@each_form
def test_again_adds_nothing_and_a_grown_file_adds_the_rest(form: str, path: pathlib.Path) -> None:
    data, said = FORMS[form]
    with strandline.open(":memory:") as db:
        workflow = db.tenant("acme").workflow("w")
        path.write_bytes(data)
        assert workflow.import_transcript(path).events_imported == len(said)
        assert workflow.import_transcript(path).events_imported == 0
        more = {
            "codex": lines(codex_item("message", role="user", content="And now?")),
            "pi": lines(pi("user", content="And now?")),
        }.get(form)
        if more is None:
            record = json.loads(data)
            conversation = record["samples"][-1] if form == "inspect" else record
            new: Record = {"role": "human" if form == "who_and_when" else "user", "content": "And now?", "type": "user"}
            if form == "openhands":
                new = {"action": "message", "source": "user", "args": {"content": "And now?"}}
            conversation["history" if "history" in conversation else "messages"].append(new)
            path.write_bytes(lines(record))
        else:
            path.write_bytes(data + more)
        assert workflow.import_transcript(path).events_imported == 1
        assert workflow.events()[-1].text == "And now?"
        assert db.verify().problems == ()


def test_each_sample_has_a_workflow_of_its_own_when_split(path: pathlib.Path) -> None:
    path.write_bytes(document(INSPECT))
    with strandline.open(":memory:") as db:
        reports = db.tenant("acme").import_conversations(path, "run")
        assert [(report.workflow, report.events_imported) for report in reports] == [("run-1", 6), ("run-2", 2)]


def test_a_session_that_goes_on_closes_the_calls_of_the_one_before(opened: Callable[..., Transcript]) -> None:
    items = list(opened(lines(*CODEX, codex("session_meta", id="t"))).items())
    assert [index for index, item in enumerate(items) if isinstance(item, SessionRestart)] == [0, len(items) - 1]
