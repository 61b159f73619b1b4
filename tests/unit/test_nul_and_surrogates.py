"""Law (C3): a NUL is kept in every text and JSON value, from append to recall; a lone surrogate is kept where its bytes
were ASCII (an escape in a transcript), and refused by name and place elsewhere. Neither is ever altered, and no
reference holds one.
"""

from __future__ import annotations

import json

import pytest

import strandline
from strandline import InvalidInputError, SummaryReconciliationError


@pytest.fixture(params=["sqlite", "memory"])
def db(request, tmp_path):
    with strandline.open(":memory:" if request.param == "memory" else tmp_path / "x.db") as db:
        yield db


@pytest.fixture
def wf(db):
    return db.tenant("t").workflow("w")


def test_a_nul_goes_all_the_way(db, wf):
    wf.append(strandline.message("user", "a_b\0c_d job-17"))
    wf.append(strandline.tool_call("c1", "f", {"p": "x \0 /a/b.py"}))
    wf.append(strandline.tool_result("c1", {"q": "nul \0 here job-18"}))
    said, call, result = wf.events()
    assert said.text == "a_b\0c_d job-17"
    assert json.loads(call.text.removeprefix("f ")) == {"p": "x \0 /a/b.py"}
    assert json.loads(result.text) == {"q": "nul \0 here job-18"}
    assert [event.extracted for event in (said, call, result)] == [("a_b", "c_d", "job-17"), ("/a/b.py",), ("job-18",)]
    assert said.text in wf.context(needs=["job-17", "/a/b.py"]).text
    assert [hit.text for hit in wf.recall("job-17")] == [said.text]
    assert db.verify().ok


def test_both_go_through_an_import_a_compaction_and_recall(db, wf, tmp_path):
    texts = [f"cut \ud83d and n\0ul job-{n}, " + "some words more " * 20 for n in range(10, 60)]
    lines = [
        {"type": "user", "uuid": f"u{n}", "sessionId": "s", "message": {"role": "user", "content": text}}
        for n, text in enumerate(texts)
    ]
    file = tmp_path / "session.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert wf.import_transcript(file).events_imported == len(texts)
    assert [event.text for event in wf.events()] == texts
    done = wf.compact(budget=1_500)
    assert done.outcome == "activated"
    assert done.refs_unaccounted == 0
    assert [hit.text for hit in wf.recall("job-11")] == [texts[1]]
    assert texts[-1] in wf.context(1_500, needs=["job-59"]).text
    assert db.verify().ok


def test_our_own_lines_keep_a_nul_and_refuse_a_surrogate_by_its_place(wf, tmp_path):
    file = tmp_path / "own.jsonl"
    file.write_text('{"kind":"message","role":"user","text":"n\\u0000ul a_b"}\n')
    assert wf.import_transcript(file).events_imported == 1
    assert wf.events()[0].text == "n\0ul a_b"
    file.write_text('{"kind":"note","text":"x"}\n{"kind":"note","text":"\\ud83d"}\n')
    with pytest.raises(strandline.ImportFormatError, match="line 2, byte 50: an unpaired surrogate escape"):
        wf.import_transcript(file)
    assert wf.basis().revision == 1


@pytest.mark.parametrize(
    ("make", "place"),
    [
        (lambda: strandline.message("user", "x\ud800"), "text holds"),
        (lambda: strandline.tool_call("c", "f", {"a": ["\udfff"]}), r"\$\.input\.a\[0\] is the lone surrogate U\+DFFF"),
        (lambda: strandline.tool_call("c", "f", {"\ud800": 1}), r"character 0 of \$\.input is the lone surrogate"),
        (lambda: strandline.tool_result("c", "a\ud800"), r"character 1 of \$\.content is the lone surrogate U\+D800"),
        (lambda: strandline.message("user", "x", refs=["a\0b"]), "declared reference .* holds a NUL"),
        (lambda: strandline.message("user", "x", refs=["a\udc00"]), "refs?.* holds"),
        (lambda: strandline.message("user", "x", key="a\ud800"), "key holds"),
        (lambda: strandline.message("user", "x", actor="a\0b"), "actor .* holds a NUL"),
    ],
    ids=["text", "value", "key of JSON", "result", "ref nul", "ref", "key", "actor"],
)
def test_what_can_not_be_kept_is_refused_by_name(wf, make, place):
    with pytest.raises(InvalidInputError, match=place):
        wf.append(make())
    assert wf.basis().revision == 0


def test_asking_for_either(wf):
    wf.append(strandline.message("user", "a\0b"))
    assert wf.recall("a\0b") == []
    with pytest.raises(SummaryReconciliationError, match="does not hold"):
        wf.context(needs=["a\0c"])
    for ask in (lambda: wf.recall("a\ud800"), lambda: wf.context(needs=["a\ud800"]), lambda: wf.recover(["a\ud800"])):
        with pytest.raises(InvalidInputError, match=r"character 1 of .* is the lone surrogate U\+D800"):
            ask()
