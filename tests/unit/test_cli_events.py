"""Law: who answers a case can see what to look for at the other side: `strandline events` prints any event (C1),
`effects` and `cases` the arguments of an effect (C21, C23).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import strandline
from tests.unit.test_cli import Run, answer, run, store  # noqa: F401  fixtures

Say = Callable[..., dict[str, Any]]
ARGS = {"to": "ann", "text": "line 1\nline 2 " + "x" * 200}


@pytest.fixture
def doubtful(store: Path) -> Path:  # noqa: F811
    """30 events, and an effect of which nobody knows."""

    def times_out() -> None:
        raise TimeoutError

    with strandline.open(store) as db:
        wf = db.tenant("default").workflow("w")
        wf.append([strandline.note(f"note {number}", actor="ann") for number in range(1, 31)])
        with pytest.raises(TimeoutError):
            wf.effect("mail-1", "send_mail", ARGS, times_out)
        wf.effect("mail-2", "send_mail", {"to": "bob"}, lambda: "sent")
    return store


def numbers(said: dict[str, Any]) -> list[int]:
    return [event["seq"] for event in said["events"]]


@pytest.mark.usefixtures("doubtful")
def test_events_prints_what_is_asked_for(answer: Say, run: Run) -> None:  # noqa: F811
    said = answer("events", 31)
    assert (numbers(said), said["revision"], said["events"][0]["payload"]) == ([31], 34, ARGS)
    assert numbers(answer("events", 5, 7)) == [5, 6, 7]
    assert numbers(answer("events", 33, 99)) == [33, 34]
    assert numbers(answer("events")) == list(range(15, 35))
    shown = run("events", 5, 6).stdout
    assert shown == "default/w: 2 events, 5–6; the log ends at 34\n\n[5] ann/note\nnote 5\n\n[6] ann/note\nnote 6\n"
    assert "[31] tool_call, call mail-1\nsend_mail" in run("events", 31).stdout


@pytest.mark.usefixtures("doubtful")
def test_events_that_are_not_there_are_none(answer: Say, run: Run) -> None:  # noqa: F811
    assert answer("events", 99)["events"] == []
    assert run("events", 99).stdout == "default/w: no such event; the log ends at 34\n"
    assert answer("events", 7, 5)["events"] == []


@pytest.mark.parametrize("wrong", [("0",), ("x",), ("1", "0"), ("1", "34")])
@pytest.mark.usefixtures("doubtful")
def test_events_are_bounded(answer: Say, monkeypatch: pytest.MonkeyPatch, wrong: tuple[str, ...]) -> None:  # noqa: F811
    monkeypatch.setattr("strandline.engine.read_events.EVENTS_PAGE_MAX", 10)
    error = answer("events", *wrong, code=2)["error"]
    assert wrong != ("1", "34") or "read at most 10" in error["message"]


@pytest.mark.usefixtures("doubtful")
def test_what_a_rewind_left_says_so(answer: Say, run: Run) -> None:  # noqa: F811
    answer("rewind", 4, "--by", "ann", "--why", "wrong way")
    assert [event["abandoned"] for event in answer("events", 4, 5)["events"]] == [False, True]
    assert "[5] ann/note, abandoned\n" in run("events", 5).stdout


@pytest.mark.usefixtures("doubtful")
def test_effects_and_cases_show_the_arguments(answer: Say, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    monkeypatch.setenv("COLUMNS", "200")
    assert [effect["args"] for effect in answer("effects")["effects"]] == [ARGS, {"to": "bob"}]
    (case,) = answer("cases")["cases"]
    assert (case["args"], case["subject"], case["detail"]["tool"]) == (ARGS, "mail-1", "send_mail")
    first, second = run("effects").stdout.splitlines()[-2:]
    assert second.endswith('{"to": "bob"}')
    assert '{"text": "line 1\\nline 2 xxx' in first
    assert first.endswith("…")
    assert 'send_mail {"text": "line 1' in run("cases").stdout


def test_a_damaged_call_does_not_hide_the_ledger(doubtful: Path, answer: Say, run: Run) -> None:  # noqa: F811
    with sqlite3.connect(doubtful) as raw:
        for (trigger,) in raw.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            raw.execute(f"DROP TRIGGER {trigger}")
        raw.execute("UPDATE event SET body = x'00' WHERE seq = 31")
    raw.close()
    first, second = answer("effects")["effects"]
    assert (first["key"], first["args"], second["args"]) == ("mail-1", None, {"to": "bob"})
    assert "event 31" in first["args_error"]
    assert "unreadable" in run("effects").stdout
    assert answer("cases")["cases"][0]["args"] is None


def test_the_arguments_of_an_effect_are_had_from_whoever_of_the_family_asked(db: strandline.Strandline) -> None:
    parent = db.tenant("acme").workflow("args-parent")
    parent.append(strandline.note("one"))
    parent.fork(1, "args-fork", by="ann", why="try")
    fork = db.tenant("acme").workflow("args-fork")
    fork.effect("k", "t", {"i": 1}, lambda: None)
    assert parent.effect_args("k") == fork.effect_args("k") == {"i": 1}
    with pytest.raises(strandline.InvalidInputError, match="no effect 'x'"):
        parent.effect_args("x")
