"""Law (C27–C29): `strandline metrics` prints a store's figures for people, as JSON and for Prometheus; STRANDLINE_LOG
asks every command for log lines.
"""

import json
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

import strandline
from strandline.cli.app import app
from tests.unit.test_engine_stage import quiet, talk


def run(*words):
    done = CliRunner().invoke(app, words)
    return SimpleNamespace(out=done.stdout, err=done.stderr, code=done.exit_code)


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with strandline.open("strandline.db") as db:
        for tenant in ("acme", "umbrella"):
            db.tenant(tenant).workflow("w").append(talk(10))
        db.tenant("acme").workflow("w").compact(400, quiet)
        db.tenant("acme").workflow("w").report_regression(1, by="me", why="wrong")


def test_all_tenants_are_a_table(store):
    done = run("metrics")
    assert done.out.splitlines()[0] == "2 tenants, 2 workflows"
    head, acme, umbrella = (line.split() for line in done.out.splitlines()[1:])
    assert head[:3] == ["tenant", "workflows", "events"]
    assert (acme[:4], umbrella[:4]) == (["acme", "1", "20", "1"], ["umbrella", "1", "20", "0"])


def test_one_tenant_is_told_in_full(store):
    said = run("metrics", "--tenant", "acme").out
    assert said.splitlines()[0] == "tenant acme"
    assert "regression 1 (oldest" in said
    assert "attempts          activated 1" in said
    assert "umbrella" not in said


def test_json_has_every_figure(store):
    value = json.loads(run("metrics", "--json").out)
    assert [figures["tenant"] for figures in value["tenants"]] == ["acme", "umbrella"]
    assert value["tenants"][0]["cases_open"] == {"regression": 1}
    assert value["tenants"][0]["attempts_started"] == 1
    assert len(json.loads(run("metrics", "--json", "--tenant", "acme").out)["tenants"]) == 1


def test_prometheus_gets_its_text_format(store):
    said = run("metrics", "--prometheus").out
    assert 'strandline_cases_open{kind="regression",tenant="acme"} 1.0' in said.splitlines()
    assert "umbrella" not in run("metrics", "--prometheus", "--tenant", "acme").out


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--tenant", "nobody"), 1, "no tenant 'nobody'"),
        (("--json", "--prometheus"), 2, "one of --json and --prometheus"),
        (("--store", "none.db"), 7, "no such store"),
        (("--tenant", ""), 2, "tenant"),
    ],
)
def test_what_can_t_be_is_refused(store, words, code, said):
    done = run("metrics", *words)
    assert done.code == code
    assert said in done.err + done.out


def test_an_empty_store_has_no_tenants(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    strandline.open("strandline.db").close()
    assert run("metrics").out.splitlines() == ["0 tenants, 0 workflows"]


def test_log_lines_go_to_stderr(store, monkeypatch):
    monkeypatch.setenv("STRANDLINE_LOG", "json")
    done = run("recover", "--tenant", "acme", "--json")
    assert json.loads(done.out)["kind"] == "replay"
    assert [json.loads(line)["event"] for line in done.err.splitlines()] == ["recovery"]
    monkeypatch.setenv("STRANDLINE_LOG", "json-debug")
    done = run("recover", "--tenant", "acme", "--json")
    assert [json.loads(line)["event"] for line in done.err.splitlines()][:2] == ["recovery", "operation"]


def test_a_log_of_another_kind_is_refused(store, monkeypatch):
    monkeypatch.setenv("STRANDLINE_LOG", "xml")
    done = run("metrics")
    assert done.code == 2
    assert "'xml' is no kind of log" in done.err
