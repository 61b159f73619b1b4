"""`strandline refs` says what a file's references are, and what a rule of one's own would find; the same rules, from a
file, hold where events are imported, appended and compacted. Bad rules are refused by name, and no store is made.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import strandline
from strandline.cli.app import app

DEMO = Path(__file__).parents[2] / "demo" / "transcripts" / "api-tests.jsonl"
RULES = 'off = ["number"]\n[json_paths]\nsku = "$.items[*].sku"\n'
VALUE = {"items": [{"sku": "Blue Shirt, L"}, {"sku": "x\ny"}], "t": "job-17 took 5 ms"}


@pytest.fixture
def run(monkeypatch, tmp_path) -> Callable[..., Result]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("STRANDLINE_REFS_CONFIG", raising=False)
    monkeypatch.setenv("STRANDLINE_STORE", str(tmp_path / "store.db"))
    return lambda *args, stdin=None: CliRunner().invoke(app, list(map(str, args)), input=stdin)


def test_a_text_a_line_at_a_time(run, tmp_path):
    Path("a.txt").write_text("see src/a.py\n\nsee src/a.py and job-17, 5 ms\n")
    found = json.loads(run("refs", "a.txt", "--json").stdout)
    assert (found["read_as"], found["extractor"]) == ("text", "refs-2")
    assert found["classes"] == {"path": 1, "handle": 1, "number": 1}
    assert found["refs"][0] == {"ref": "src/a.py", "class": "path", "first": "line 1", "times": 2}
    assert "not_taken" not in found
    assert "handle  job-17\n" in run("refs", "a.txt").stdout
    assert not (tmp_path / "store.db").exists()


def test_explanations_of_json_from_stdin(run):
    Path("rules.toml").write_text(RULES)
    done = run("refs", "-", "--explain", "--refs-config", "rules.toml", stdin=json.dumps(VALUE))
    assert done.exit_code == 0, done.output
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert "handle JSON 1 job-17 built in" in lines
    assert "sku JSON 1 Blue Shirt, L $.items[*].sku" in lines
    assert "number JSON 1 5 ms this class is switched off" in lines
    assert "sku JSON 1 x y it has several lines, or would read as a fact of ours" in lines


def test_a_rule_that_finds_nothing_says_so_and_each_reference_says_what_found_it(run):
    args = ("refs", "a.json", "--json-path", "sku=$.items[*].sku", "--json-path", "gone=$.none", "--explain")
    Path("a.json").write_text(json.dumps(VALUE))
    assert "\n  gone       0\n" in run(*args).stdout
    found = json.loads(run(*args, "--json").stdout)
    assert found["classes"]["gone"] == 0
    assert {row["ref"]: row["found_by"] for row in found["refs"]} == {
        "Blue Shirt, L": "$.items[*].sku",
        "job-17": "built in",
        "5 ms": "built in",
    }
    assert "gone" not in json.loads(run(*args[:-1], "--json").stdout)["classes"]


def test_a_transcript_event_by_event(run):
    found = json.loads(run("refs", DEMO, "--json", "--explain").stdout)
    assert found["read_as"] == "a transcript (jsonl)"
    assert all(row["first"].startswith("line ") for row in found["refs"])
    assert found["not_taken"] == []
    marks = [row for row in found["refs"] if row["class"] == "redacted"]  # of secrets: no class that can be off
    classes = [name for name in found["classes"] if name != "redacted"]
    off = json.loads(run("refs", DEMO, "--json", "--explain", *(f"--off={name}" for name in classes)).stdout)
    assert off["refs"] == marks
    assert len(off["not_taken"]) == len(found["refs"]) - len(marks)


def test_options_come_beside_a_file_and_as_json(run):
    Path("rules.json").write_text(json.dumps({"json_paths": {"t": "$.t"}, "off": ["handle"]}))
    Path("a.json").write_text(json.dumps({"t": "one two", "u": "three four job-17"}))
    found = json.loads(
        run("refs", "a.json", "--refs-config", "rules.json", "--json-path", "u=u", "--off", "path", "--json").stdout
    )
    assert [(row["ref"], row["class"]) for row in found["refs"]] == [("one two", "t"), ("three four job-17", "u")]


def test_a_pattern(run):
    pytest.importorskip("re2")
    Path("a.txt").write_text("seat 12A, 13A-x\n")
    found = json.loads(run("refs", "a.txt", "--pattern", "seat=[0-9]+[A-F]", "--explain", "--json").stdout)
    assert [row["ref"] for row in found["refs"] if row["class"] == "seat"] == ["12A"]
    assert found["not_taken"][0]["why"] == "it is no token of its own in 'at 12A, 13A-x'"
    bad = run("refs", "a.txt", "--pattern", r"seat=(a)\1")
    assert bad.exit_code == 2
    assert "pattern 'seat': invalid escape sequence" in bad.stderr
    assert "hint: Patterns have RE2's syntax" in bad.stderr
    Path("rules.toml").write_text("[patterns]\nseat = '(a)\\1'\n")
    assert run("refs", "a.txt", "--refs-config", "rules.toml").exit_code == 1


def test_the_rules_of_a_file_hold_for_append_and_import(run, monkeypatch):
    Path("rules.toml").write_text(RULES)
    Path("events.jsonl").write_text(
        json.dumps({"kind": "tool_call", "call_id": "c", "tool": "buy", "input": VALUE}) + "\n"
    )
    assert run("import", "events.jsonl", "--refs-config", "rules.toml").exit_code == 0
    monkeypatch.setenv("STRANDLINE_REFS_CONFIG", "rules.toml")
    assert run("append", "--text", "5 ms job-18").exit_code == 0
    with strandline.open("store.db", create=False) as db:
        events = db.tenant("default").workflow("events").events()
    assert [event.extracted for event in events] == [("job-17", "Blue Shirt, L"), ("job-18",)]
    assert run("verify").exit_code == 0


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ("x = [", "is no TOML"),
        ("x = 1", "unknown 'x'"),
        ('off = "number"', "off is a list of class names"),
        ('off = ["numbers"]', "there is no class 'numbers'"),
        ("patterns = 1", "patterns is a mapping"),
        ('[json_paths]\nx = "a b"', "JSON path 'x'"),
        (None, "can't be read"),
    ],
)
def test_bad_rules_are_refused_by_name_before_a_store_is_made(run, tmp_path, rules, said):
    if rules is not None:
        Path("rules.toml").write_text(rules)
    Path("a.txt").write_text("x")
    for args in (("refs", "a.txt"), ("append", "--text", "x")):
        done = run(*args, "--refs-config", "rules.toml", "--json")
        assert done.exit_code == 1
        assert said in json.loads(done.stdout)["error"]["message"]
    assert not (tmp_path / "store.db").exists()


@pytest.mark.parametrize(("option", "text"), [("--pattern", "x"), ("--json-path", "=a"), ("--json-path", "a=")])
def test_an_option_that_names_no_rule_is_a_usage_error(run, option, text):
    Path("a.txt").write_text("x")
    done = run("refs", "a.txt", option, text)
    assert done.exit_code == 2
    assert "is not NAME=RULE" in done.stderr


@pytest.mark.parametrize(("option", "text"), [("--json-path", "x=a b"), ("--off", "numbers")])
def test_a_rule_of_an_option_that_is_none_is_a_usage_error(run, option, text):
    Path("a.txt").write_text("x")
    done = run("refs", "a.txt", option, text)
    assert done.exit_code == 2
    assert done.stderr.startswith("error: Invalid value: ")


def test_a_rule_given_twice_is_a_usage_error(run):
    Path("a.txt").write_text("x")
    assert "given twice" in run("refs", "a.txt", "--json-path", "x=a", "--json-path", "x=b").stderr


@pytest.mark.parametrize(("data", "said"), [(b"a\xffb", "'-' is no UTF-8: byte 1"), (b"", "")])
def test_bytes_that_are_no_text(run, data, said):
    done = run("refs", "-", stdin=data)
    assert said in done.stderr
    assert done.exit_code == (1 if said else 0)


def test_a_damaged_transcript_is_refused_with_its_place(run):
    Path("a.jsonl").write_bytes(DEMO.read_bytes()[:3_000])
    done = run("refs", "a.jsonl")
    assert done.exit_code == 1
    assert "line " in done.stderr


def test_a_file_that_is_not_there(run):
    done = run("refs", "nix.txt")
    assert done.exit_code == 1
    assert "'nix.txt' can't be read" in done.stderr


def test_of_a_document_on_one_line_each_reference_has_its_message(tmp_path: Path) -> None:
    file = tmp_path / "list.json"
    file.write_text('[{"role": "user", "content": "job-77ab"}, {"role": "user", "content": "job-88cd"}]')
    found = json.loads(CliRunner().invoke(app, ["refs", str(file), "--json"]).stdout)["refs"]
    assert [(row["ref"], row["first"]) for row in found] == [("job-77ab", "message 1"), ("job-88cd", "message 2")]
