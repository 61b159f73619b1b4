"""Law (C31, C29): the commands about erasure say what they did, what stands in the way, and exit as they should."""

import json

import pytest

import strandline
from strandline.cli.app import app

WHO = ("--by", "dpo", "--why", "request 12")


@pytest.fixture
def run(tmp_path, capsys):
    store = tmp_path / "store.db"
    with strandline.open(store) as db:
        db.tenant("default").workflow("w").append([strandline.note(f"step {n} of it") for n in range(4)])

    def command(*words, code=0):
        with pytest.raises(SystemExit) as ended:
            app([*words, "--store", str(store), "--json"])
        assert ended.value.code == code
        return json.loads(capsys.readouterr().out)

    return command


def test_what_is_refused_in_one_of_several_workflows_is_no_success(run):
    """A privacy request that was not met everywhere must not look as if it had been."""
    run("hold", "set", "case 7", *WHO)
    refused = run("erase", "--ref", "step", "--all-workflows", *WHO, code=1)
    assert "case 7" in refused["error"]["message"]
    assert [found["erased"] for found in refused["workflows"]] == [None]
    run("retention", "set", "all", "--older-than", "0d", *WHO)
    assert run("retain")["workflows"][0]["due"] == 4
    assert "case 7" in run("retain", "--apply", *WHO, code=1)["error"]["message"]
    run("hold", "lift", "case 7", *WHO)
    assert run("retain", "--apply", *WHO)["workflows"][0]["erased"]["event_count"] == 4


def test_an_erasure_and_what_stops_it(run):
    assert run("hold", "set", "case 7", *WHO)["hold"]["workflow"] == "w"
    assert run("erase", "--event", "2", *WHO, code=1)["error"]["holds"] == ["case 7"]
    assert [hold["name"] for hold in run("hold", "list")["holds"]] == ["case 7"]
    run("hold", "lift", "case 7", *WHO)
    run("reader", "read-through", "export", "1")
    assert run("erase", "--event", "2", *WHO, code=1)["error"]["readers"] == ["export"]
    erased = run("erase", "--event", "2", "--force", *WHO)["erased"]
    assert (erased["events"], erased["scan"]["found"]) == ([2], 0)
    assert run("erase", "--person", "nobody", "--all-workflows", *WHO)["workflows"] == []
    assert run("verify")["ok"]


def test_rules_and_what_they_keep_no_longer(run):
    run("retention", "set", "notes", "--older-than", "0s", "--kind", "note", *WHO)
    assert [rule["kinds"] for rule in run("retention", "list")["rules"]] == [["note"]]
    assert [one["due"] for one in run("retain")["workflows"]] == [4]
    assert [one["erased"]["event_count"] for one in run("retain", "--apply", *WHO)["workflows"]] == [4]
    run("retention", "drop", "notes", *WHO)
    assert run("retain")["workflows"] == []


@pytest.mark.parametrize(
    "words",
    [("erase",), ("erase", "--event", "1", "--all-workflows"), ("retention", "set", "x", "--older-than", "soon")],
)
def test_what_can_not_be_asked_is_a_usage_error(run, words):
    run(*words, *WHO, code=2)


def test_an_erasure_in_all_workflows_tells_what_one_in_a_single_workflow_tells(tmp_path, capsys):
    store = tmp_path / "store.db"
    with strandline.open(store) as db:
        for name in ("a", "b"):
            said = strandline.note(f"Ada of Hidden Lane 12 called about order-77{name}", actor="ada")
            again = strandline.note("He says that Ada of Hidden Lane 12 called again", actor="bob")
            db.tenant("default").workflow(name).append([said, again])
    with pytest.raises(SystemExit):
        app(["erase", "--actor", "ada", "--all-workflows", *WHO, "--store", str(store)])
    out = " ".join(capsys.readouterr().out.split())
    assert "0 places hold it" in out
    assert "b: repeated in event 2 of 'b', which was not erased" in out
