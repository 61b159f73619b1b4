"""Law (C2, I4): what a guest keeps beside an event comes back verbatim, is read by nobody else, and goes when the event
is erased.

Checked on every store by cases of each kind of body.
"""

import json

import pytest

import strandline
from strandline.errors import InvalidInputError
from tests.unit.test_engine_stage import WHOLE, new_workflow

RECORD = json.dumps({"b": [1, 2.50, 10**30], "a": "ä \\ud800 \u2028", "id": "rs_0123456789abcdef"})
EVENTS = [
    strandline.message("user", "Deploy it.", origin=RECORD),
    strandline.tool_call("c1", "deploy", {"to": "eu"}, origin=RECORD),
    strandline.tool_result("c1", [{"type": "text", "text": "done"}], is_error=True, origin=RECORD),
    strandline.thinking("Hm.", origin=RECORD),
    strandline.artifact("image", "img-7f3a", origin=RECORD),
    strandline.note("Nothing more.", origin=""),
    strandline.note("Without."),
]


@pytest.fixture
def wf(db):
    wf = new_workflow(db)
    wf.append(EVENTS)
    return wf


def test_it_comes_back_as_it_was(wf):
    assert [event.origin for event in wf.events()] == [RECORD] * 5 + ["", None]
    assert [part.event.origin for part in wf.context(WHOLE).parts if part.event is not None] == [RECORD] * 5 + [
        "",
        None,
    ]


def test_the_event_reads_as_without_it(wf):
    """Text, payload, references and messages are those of the same event without a record beside it."""
    read = [event._replace(origin=None) for event in wf.events()]
    texts = ["Deploy it.", 'deploy {"to": "eu"}', "done", "Hm.", "img-7f3a", "Nothing more.", "Without."]
    assert [event.text for event in read] == texts
    assert read[1].payload == {"to": "eu"}
    assert read[2].payload == [{"type": "text", "text": "done"}]
    assert "rs_0123456789abcdef" not in json.dumps(wf.context(WHOLE).messages("openai")) + wf.context(WHOLE).text
    assert wf.search("0123456789abcdef") == wf.recall("rs_0123456789abcdef") == []


def test_it_is_part_of_the_content_under_a_key(wf):
    """I3: the same key with another record is another event."""
    event = strandline.note("One.", key="k", origin="1")
    assert wf.append(event).seq == wf.append(event).seq
    with pytest.raises(strandline.IdempotencyConflictError):
        wf.append(strandline.note("One.", key="k", origin="2"))


def test_an_export_brings_it_along(db, wf, tmp_path):
    path = tmp_path / "all.jsonl"
    path.write_bytes(b"".join(wf.export()))
    other = db.tenant("acme").workflow("imported")
    other.import_transcript(path)
    assert [event.origin for event in other.events()] == [event.origin for event in wf.events()]


def test_an_erasure_takes_it_along(wf):
    wf.erase(events=[1], by="ada", why="asked for")
    assert [event.origin for event in wf.events()][:2] == [None, RECORD]


def test_an_erasure_finds_what_only_the_record_says(wf):
    """C31: by what it holds; and where events are named, the proof names those whose records repeat them."""
    wf.append([strandline.message("user", 'I am Ada Lovelace of "Ockham" Park.', key="said"), strandline.note("Hm.")])
    said = wf.seqs_of(["said"])["said"]
    wf.append(strandline.thinking("as event 8", origin=json.dumps({"text": 'I am Ada Lovelace of "Ockham" Park.'})))
    done = wf.erase(events=[said], by="ada", why="asked for")
    assert any(f"event {said + 2}" in place for place in done.repeated_in)
    wf.erase(refs=['Lovelace of "Ockham"'], by="ada", why="asked for")
    assert wf.events()[-1].text == "[erased]"


def test_a_record_is_text():
    with pytest.raises(InvalidInputError, match="origin must be a string"):
        strandline.note("One.", origin={"a": 1})
