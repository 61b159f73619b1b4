"""Law (C26, C29): what is due can be asked for, listed and run from the command line, by cron too."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import strandline
from tests.unit.test_cli import Run, answer, run, store  # noqa: F401  fixtures
from tests.unit.test_engine_stage import talk

Say = Callable[..., dict[str, Any]]


@pytest.fixture
def asked(store: Path) -> Path:  # noqa: F811
    """Three workflows of the tenant, two of another; one has nothing to do, and one can't be done."""
    with strandline.open(store) as db:
        for tenant, name in (("default", "a"), ("default", "b"), ("default", "c"), ("acme", "a"), ("acme", "b")):
            db.tenant(tenant).workflow(name).append(talk(10))
        default, acme = db.tenant("default"), db.tenant("acme")
        default.workflow("a").compact_later(400, priority=3)
        default.workflow("b").compact_later(400, delay_s=3_600)
        acme.workflow("a").compact_later(100_000)
        acme.workflow("b").append([strandline.constraint(f"rule-{n}", "Not on Fridays. " * 30) for n in range(9)])
        acme.workflow("b").compact_later(400, priority=9)
    return store


@pytest.mark.usefixtures("asked")
def test_what_is_due_is_listed(answer: Say, run: Run) -> None:  # noqa: F811
    """By priority, then by time: workflow, state, when, runs, failure; of one workflow where it is named."""
    said = answer("due")
    assert [(row["workflow"], row["state"], row["priority"]) for row in said["due"]] == [
        ("b", "waiting", 5),
        ("a", "due", 3),
    ]
    shown = run("due")
    assert shown.stdout.startswith("tenant 'default': 2 due compactions, 1 of them now\nworkflow")
    assert "in 60 min" in shown.stdout
    assert "run-due" in shown.stderr
    assert [row["workflow"] for row in answer("due", "--tenant", "acme")["due"]] == ["b", "a"]
    assert [row["workflow"] for row in answer("due", "--workflow", "b")["due"]] == ["b"]
    assert answer("due", "--workflow", "c")["due"] == []
    assert answer("due", "--tenant", "nobody", code=1)["error"]["type"] == "TenantScopeError"


@pytest.mark.usefixtures("asked")
def test_one_pass_runs_what_is_due_of_all_tenants(answer: Say, run: Run) -> None:  # noqa: F811
    """And tells by its exit code that one failed; what failed is listed with --all, and not run again."""
    said = answer("run-due", code=5)
    assert (said["ran"], said["results"], said["error"]["type"]) == (3, {"done": 2, "failed": 1}, "DueRun")
    by_name = {(ran["tenant"], ran["workflow"]): ran for ran in said["runs"]}
    assert by_name["default", "a"]["outcome"] == "activated"
    assert by_name["acme", "a"]["outcome"] == "nothing_to_do"
    assert by_name["acme", "b"]["reason"].startswith("ContextOverflowError")
    assert answer("run-due")["ran"] == 0
    states = {row["workflow"]: row["state"] for row in answer("due", "--all", "--tenant", "acme")["due"]}
    assert states == {"a": "done", "b": "failed"}
    assert "ContextOverflowError" in run("due", "--all", "--tenant", "acme").stdout


@pytest.mark.usefixtures("asked")
@pytest.mark.parametrize("words", [("--limit", 1), ("--limit", 1, "--once")])
def test_a_pass_has_a_limit(answer: Say, words: tuple[object, ...]) -> None:  # noqa: F811
    assert answer("run-due", *words)["results"] == {"done": 1}  # of the tenant that has waited longest


def test_a_damaged_row_keeps_no_other_from_being_run(asked: Path, answer: Say) -> None:  # noqa: F811
    """I4: the exit code tells of it."""
    with closing(sqlite3.connect(asked)) as connection:
        connection.execute("UPDATE due_compaction SET failure_text = 'x' WHERE priority = 3")
        connection.commit()
    assert answer("run-due", code=8)["results"] == {"done": 1, "failed": 1, "error": 1}


def test_what_is_asked_for_later_is_not_done_now(store: Path, answer: Say, run: Run) -> None:  # noqa: F811
    with strandline.open(store) as db:
        db.tenant("default").workflow("w").append(talk(10))
    said = answer("compact", "--later", "--budget", 400, "--priority", 8, "--when-tokens", 10)
    assert (said["due"]["budget"], said["due"]["priority"], said["due"]["when_tokens"]) == (400, 8, 10)
    with strandline.open(store) as db:
        assert db.tenant("default").workflow("w").context().generation == 0
    shown = run("compact", "--later", "--delay", 60)
    assert shown.stdout.startswith("default/w: due\n")
    assert re.search(r"^  due +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$", shown.stdout, re.MULTILINE)
    assert answer("run-due")["results"] == {"done": 1}


@pytest.mark.usefixtures("asked")
@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("compact", "--workflow", "a", "--later", "--through", 3), 2),
        (("compact", "--workflow", "a", "--delay", 3), 2),
        (("compact", "--workflow", "a", "--priority", 3), 2),
        (("compact", "--workflow", "a", "--later", "--priority", 10), 2),
        (("compact", "--workflow", "a", "--later", "--delay", -1), 1),
        (("compact", "--workflow", "a", "--later", "--delay", "nan"), 1),
        (("run-due", "--limit", 0), 2),
    ],
    ids=str,
)
def test_what_can_not_be_asked_for_is_refused(run: Run, answer: Say, words: tuple[object, ...], code: int) -> None:  # noqa: F811
    before = answer("due")
    done = run(*words)
    assert done.exit_code == code
    assert "hint:" in done.stderr
    assert answer("due") == before


@pytest.mark.usefixtures("asked")
def test_a_full_queue_says_to_try_again(answer: Say, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    monkeypatch.setattr("strandline.engine.compact_later.DUE_PER_TENANT_MAX", 2)
    error = answer("compact", "--workflow", "c", "--later", code=75)["error"]
    assert (error["type"], error["due"], error["limit"]) == ("QueueFullError", 2, 2)
