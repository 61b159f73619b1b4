"""Laws (C2, C22, I21) of exports: our own JSONL is read back as the very same events, whatever they are; messages of
providers keep every text, input and content; each call is answered right behind its message; nothing is overwritten.
"""

from __future__ import annotations

import asyncio
import json
import pathlib
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import strandline
from strandline.engine.export import export_events
from strandline.errors import ImportFormatError, InvalidInputError
from strandline.limits import EXPORT_HELD_EVENTS_MAX
from strandline.model.event import Envelope, EventKind, NewEvent, Role
from strandline.model.transcript import ExportedEvent

FORMATS = ("strandline", "openai", "anthropic")
HALF = b'{"type":"text","text":"cut \\ud83d","n":1.50}'
SPREAD = b'{\n "type": "text",\r\n "text": "two\\nlines"\n}'

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=12).filter(
    str.strip
)
names = st.text("abc-1", min_size=1, max_size=5)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)
common = st.fixed_dictionaries(
    {},
    optional={
        "actor": names,
        "audience": st.sampled_from(["all", "ops"]),
        "refs": st.lists(names, max_size=2, unique=True),
        "thread": names,
    },
)


@st.composite
def logs(draw: st.DrawFn) -> list[NewEvent]:
    """Return events of a log in an order that it takes."""
    events: list[NewEvent] = []
    called: list[str] = []
    for number in range(draw(st.integers(1, 12))):
        kind = draw(st.sampled_from(["said", "said", "block", "call", "result", "fact", "note", "abandoned"]))
        more = draw(common)
        role = draw(st.sampled_from(["user", "assistant", "system"]))
        key = draw(st.none() | st.just(f"k{number}"))
        if kind == "said":
            made = draw(
                st.sampled_from([strandline.message(role, draw(texts), **more), strandline.thinking(draw(texts))])
            )
        elif kind == "block":
            body = draw(st.sampled_from([HALF, SPREAD, b'"plain \\u00e4"', b'{"type":"image","source":{"data":"aa"}}']))
            envelope = Envelope(role=Role(role), source_at=draw(st.none() | names), message_id="m", parent="p")
            made = NewEvent(kind=EventKind.MESSAGE, body=body, envelope=envelope, actor="x")
        elif kind == "call":
            called.append(f"c{number}")
            made = strandline.tool_call(called[-1], draw(names), draw(values), **more)
        elif kind in ("result", "abandoned") and called:
            call_id = draw(st.sampled_from(called))
            failed = draw(st.booleans())
            made = strandline.tool_result(call_id, draw(texts | values), is_error=failed, actor="tool")
            if kind == "abandoned":
                called.remove(call_id)
                made = strandline.abandoned(call_id, draw(st.just("") | texts))
        elif kind == "fact":
            made = draw(
                st.sampled_from(
                    [
                        strandline.constraint("s", draw(texts), **more),
                        strandline.issue("i", draw(texts)),
                        strandline.approval("a", "Go.", granter="g", expires_us=4_102_444_800_000_000, single_use=True),
                        strandline.artifact("f", "bucket-1", draw(st.just("") | texts)),
                        strandline.decision(draw(texts), subject=draw(st.none() | names)),
                    ]
                )
            )
        else:
            made = strandline.note(draw(texts), **more)
        events.append(NewEvent(**{name: getattr(made, name) for name in made.__dataclass_fields__} | {"key": key}))
    return events


def exported(workflow: strandline.Workflow) -> list[ExportedEvent]:
    return list(export_events(workflow._env, "main"))


def stated(items: list[ExportedEvent], *, keys: bool = True) -> list[object]:
    """Return all of each event that its place and time in a log don't decide."""
    return [
        (
            item.event.key if keys else None,
            item.event.kind,
            item.event.actor,
            item.event.audience,
            item.event.envelope,
            item.event.format,
            item.event.body,
            item.event.call_seq,
            item.declared,
        )
        for item in items
    ]


def through(db: strandline.Strandline, path: pathlib.Path, name: str, lines: list[bytes]) -> strandline.Workflow:
    path.write_bytes(b"".join(lines))
    workflow = db.tenant("acme").workflow(name)
    workflow.import_transcript(path)
    return workflow


# ---------------------------------------------------------------------------------------------- our own


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(log=logs())
def test_an_import_of_an_export_is_the_same_log(log: list[NewEvent], tmp_path: pathlib.Path) -> None:
    with strandline.open(":memory:") as db:
        first = db.tenant("acme").workflow("first")
        first.append(log)
        lines = list(first.export())
        second = through(db, tmp_path / "log.jsonl", "second", lines)
        keyed = [event.key is not None for event in log]
        before, after = stated(exported(first)), stated(exported(second))
        unkeyed = stated(exported(first), keys=False), stated(exported(second), keys=False)
        assert unkeyed[0] == unkeyed[1]
        assert [s for s, has_key in zip(before, keyed, strict=True) if has_key] == [
            s for s, has_key in zip(after, keyed, strict=True) if has_key
        ]
        assert db.verify().problems == ()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(log=logs(), form=st.sampled_from(["openai", "anthropic"]))
def test_messages_of_providers_keep_every_text(log: list[NewEvent], form: Any, tmp_path: pathlib.Path) -> None:
    with strandline.open(":memory:") as db:
        first = db.tenant("acme").workflow("first")
        first.append(log)
        lines = list(first.export(form))
        check_answered(form, lines)
        if not lines:
            return
        second = through(db, tmp_path / "log.jsonl", "second", lines)
        told = "\0".join(event.text for event in second.events())
        for event in first.events():
            text = event.text if event.kind != "tool_call" else event.tool or ""
            assert text.strip() in told or json.dumps(event.payload) in told or compact(event.payload) in told


def compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def check_answered(form: str, lines: list[bytes]) -> None:
    """Check that the message behind calls holds their results, and no other does."""
    messages = [json.loads(line) for line in lines]
    asked: list[str] = []
    for message in messages:
        if form == "openai":
            if message["role"] == "tool":
                assert message["tool_call_id"] == asked.pop(0)
                assert isinstance(message["content"], str | list)
                continue
            assert asked == []
            asked = [call["id"] for call in message.get("tool_calls", ())]
            continue
        blocks = message["content"]
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        assert results == asked
        asked = [block["id"] for block in blocks if block["type"] == "tool_use"]
    assert asked == []


def test_what_a_person_writes_is_what_an_export_writes(tmp_path: pathlib.Path) -> None:
    """Events that constructors make are told as they take them, not as an envelope."""
    with strandline.open(":memory:") as db:
        workflow = db.tenant("acme").workflow("w")
        workflow.append(
            [
                strandline.constraint("publish", "Only after review.", actor="lead", key="k1"),
                strandline.tool_call("c1", "create", {"region": "eu"}, audience="ops"),
                strandline.tool_result("c1", "bucket-7f3a", refs=["bucket-7f3a"]),
                strandline.artifact("bucket", "bucket-7f3a", "made"),
                strandline.pin("bucket-7f3a"),
                strandline.approval("go", "Yes.", granter="ann", expires_us=1_900_000_000_000_001),
            ]
        )
        assert [json.loads(line) for line in workflow.export()] == [
            {"kind": "constraint", "key": "k1", "actor": "lead", "subject": "publish", "text": "Only after review."},
            {"kind": "tool_call", "audience": "ops", "call_id": "c1", "tool": "create", "input": {"region": "eu"}},
            {"kind": "tool_result", "refs": ["bucket-7f3a"], "call_id": "c1", "content": "bucket-7f3a"},
            {"kind": "artifact", "refs": ["bucket-7f3a"], "subject": "bucket", "handle": "bucket-7f3a", "text": "made"},
            {"kind": "pin", "refs": ["bucket-7f3a"], "text": "bucket-7f3a", "ref": "bucket-7f3a"},
            {
                "kind": "approval",
                "subject": "go",
                "granter": "ann",
                "text": "Yes.",
                "expires_at": "2030-03-17T17:46:40.000001Z",
            },
        ]


def test_what_a_rewind_left_behind_is_left_out_or_marked(tmp_path: pathlib.Path) -> None:
    with strandline.open(":memory:") as db:
        workflow = db.tenant("acme").workflow("w")
        workflow.append([strandline.note("kept"), strandline.note("left")])
        workflow.rewind(1, by="ann", why="wrong way")
        workflow.append(strandline.note("new"))
        kept = [json.loads(line)["text"] for line in workflow.export()]
        assert "left" not in kept
        assert {"kept", "new"} <= set(kept)
        everything = list(workflow.export(abandoned=True))
        assert [json.loads(line)["text"] for line in everything if b'"abandoned":true' in line] == ["left"]
        again = through(db, tmp_path / "log.jsonl", "again", everything)
        assert "left" not in [event.text for event in again.events()]
        with pytest.raises(InvalidInputError, match="left behind"):
            workflow.export("openai", abandoned=True)


def test_a_view_exports_what_it_reads() -> None:
    with strandline.open(":memory:") as db:
        workflow = db.tenant("acme").workflow("w")
        workflow.append([strandline.note("for all"), strandline.note("for ops", audience="ops")])
        workflow.define_view("narrow", audiences={"all"}, budget=1_000)
        assert b"for ops" in b"".join(workflow.export())
        assert b"for ops" not in b"".join(workflow.view("narrow").export())


def test_an_export_is_of_the_log_as_it_was_when_it_began() -> None:
    with strandline.open(":memory:") as db:
        workflow = db.tenant("acme").workflow("w")
        workflow.append([strandline.note(f"n{number}") for number in range(600)])
        lines = workflow.export()
        next(lines)
        workflow.append(strandline.note("later"))
        assert b"later" not in b"".join(lines)


def test_a_divergence_is_told_as_a_note(tmp_path: pathlib.Path) -> None:
    line = b'{"kind":"effect","envelope":{"subject":"e"},"text":"ran once"}\n'
    with strandline.open(":memory:") as db:
        (event,) = through(db, tmp_path / "log.jsonl", "w", [line]).events()
        assert (event.kind, event.subject, event.text) == ("note", "e", "ran once")


# ---------------------------------------------------------------------------------------------- messages


def test_a_result_that_comes_too_late_is_told_as_text_and_its_call_has_an_answer() -> None:
    with strandline.open(":memory:") as db:
        workflow = db.tenant("acme").workflow("w")
        workflow.append(strandline.tool_call("c1", "t", {}))
        said = [strandline.message("assistant", f"step {number}") for number in range(EXPORT_HELD_EVENTS_MAX + 5)]
        for first in range(0, len(said), 500):
            workflow.append(said[first : first + 500])
        workflow.append(strandline.tool_result("c1", "at last"))
        for form in ("openai", "anthropic"):
            lines = list(workflow.export(form))
            check_answered(form, lines)
            assert b"outcome unknown" in lines[1]
            assert b"result of call c1 made at event 1" in lines[-1]
            assert b"at last" in lines[-1]


def test_results_follow_the_calls_of_their_group() -> None:
    with strandline.open(":memory:") as db:
        workflow = db.tenant("acme").workflow("w")
        workflow.append(
            [
                strandline.tool_call("c1", "t", {"n": 1}),
                strandline.tool_call("c2", "t", [2]),
                strandline.note("between"),
                strandline.tool_result("c2", {"b": 2}),
                strandline.tool_result("c1", "one"),
            ]
        )
        asked, one, two, between = (json.loads(line) for line in workflow.export("openai"))
        assert [call["function"]["arguments"] for call in asked["tool_calls"]] == ['{"n":1}', "[2]"]
        assert (one["content"], two["content"]) == ("one", '{"b":2}')
        assert between == {"role": "user", "content": [{"type": "text", "text": "[note] between"}]}
        calls, results, _ = (json.loads(line) for line in workflow.export("anthropic"))
        assert [block["id"] for block in calls["content"]] == ["c1", "c2"]
        assert [block["content"] for block in results["content"]] == ["one", {"b": 2}]


# ---------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ('"envelope":{}', "one of text, body and spelled"),
        ('"envelope":{},"text":"a","body":"a"', "one of text, body and spelled"),
        ('"envelope":{"late":true},"text":"a"', "unknown field `late`"),
        ('"envelope":{"is_error":1},"text":"a"', "Expected `bool`"),
        ('"envelope":{"role":"boss"},"text":"a"', "boss"),
        ('"envelope":{},"text":"a","more":1', "unknown field `more`"),
        ('"envelope":{},"text":"cut \\ud83d"', "unpaired surrogate"),
        ('"envelope":{},"spelled":"{"', "torn"),
        ('"envelope":{"call_id":"c"},"text":"a","text":"b"', "twice"),
    ],
)
def test_an_exact_record_that_is_damaged_is_refused(members: str, reason: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(f'{{"kind":"note","text":"whole"}}\n{{"kind":"note",{members}}}\n', encoding="utf-8")
    with strandline.open(":memory:") as db:
        workflow = db.tenant("acme").workflow("w")
        with pytest.raises(ImportFormatError, match=reason) as caught:
            workflow.import_transcript(path)
        assert caught.value.line == 2
        assert workflow.basis().revision == 0


@pytest.mark.parametrize(
    "members",
    [
        '"kind":"tool_call","envelope":{"call_id":"c","tool":"t"},"body":{"type":"tool_use","id":"other","name":"t"}',
        '"kind":"tool_call","envelope":{"call_id":"c","tool":"t"},"body":"text"',
        '"kind":"tool_call","envelope":{"tool":"t"},"body":{"type":"tool_use","id":"c","name":"t"}',
    ],
)
def test_a_call_says_the_same_in_envelope_and_body(members: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(f"{{{members}}}\n", encoding="utf-8")
    with strandline.open(":memory:") as db, pytest.raises(ImportFormatError):
        db.tenant("acme").workflow("w").import_transcript(path)


def test_an_unknown_format_is_refused() -> None:
    with strandline.open(":memory:") as db, pytest.raises(InvalidInputError, match="strandline, openai, anthropic"):
        db.tenant("acme").workflow("w").export("xml")  # type: ignore[arg-type]


# ---------------------------------------------------------------------------------------------- doors


def test_an_event_loop_exports_too(tmp_path: pathlib.Path) -> None:
    async def lines() -> list[bytes]:
        async with strandline.aopen(tmp_path / "s.db") as db:
            workflow = db.tenant("acme").workflow("w")
            await workflow.append([strandline.note(f"n{number}") for number in range(300)])
            return [line async for line in workflow.export()]

    assert len(asyncio.run(lines())) == 300


# ---------------------------------------------------------------------------------------------- what was erased


def test_of_what_was_erased_only_its_place_is_told(tmp_path: pathlib.Path) -> None:
    """C31: no byte of it is in any format; a grant that was erased is none in the log that reads the export."""
    with strandline.open(":memory:") as db:
        workflow = db.tenant("acme").workflow("w")
        workflow.append(
            [
                strandline.message("user", "I am Ada Quill.", actor="ada"),
                strandline.tool_call("c1", "look_up", {"name": "Ada Quill"}),
                strandline.tool_result("c1", {"found": "Ada Quill"}),
                strandline.approval("parcel", "Ada Quill agrees.", granter="desk"),
                strandline.artifact("letter", "letter-77", "to Ada Quill"),
                strandline.note("The parcel was sent."),
            ]
        )
        workflow.erase(person="Ada Quill", by="desk", why="request 12")
        for form in FORMATS:
            lines = list(workflow.export(form))
            assert b"Quill" not in b"".join(lines)
            assert b"letter-77" not in b"".join(lines)
            again = through(db, tmp_path / "log.jsonl", f"again-{form}", lines)
            assert [event.text for event in again.events()].count("The parcel was sent.") == (form == "strandline")
            assert db.verify().problems == ()
        read = db.tenant("acme").workflow("again-strandline").events()
        assert [event.kind for event in read] == ["message", "tool_call", "tool_result", "note", "note", "note"]
        assert read[0].text == "[erased]"
