"""Law (C4, C29): `strandline search` prints the events that hold words, for people and as one JSON object."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import strandline
from strandline.cli.search import _one_line
from tests.unit.test_cli import Run, answer, run, store  # noqa: F401  fixtures

Say = Callable[..., dict[str, Any]]
LONG = "before " * 60 + "the OAuth\n  scope is open" + " behind" * 60


@pytest.fixture
def said(store: Path) -> Path:  # noqa: F811
    with strandline.open(store) as db:
        wf = db.tenant("default").workflow("w")
        wf.append([strandline.note(f"step {number}", actor="ann") for number in range(1, 31)])
        wf.append([strandline.note("use --force \x1b[31m", actor="bob"), strandline.message("user", LONG)])
    return store


@pytest.mark.usefixtures("said")
def test_hits_are_one_json_object(answer: Say) -> None:  # noqa: F811
    given = answer("search", "STEP", "7")
    (hit,) = given["hits"]
    assert (given["text"], hit["seq"], hit["excerpt"], hit["matches"]) == ("STEP 7", 7, "step 7", [[0, 4], [5, 6]])
    assert (hit["event"]["text"], hit["event"]["actor"], hit["event"]["abandoned"]) == ("step 7", "ann", False)
    assert hit["at_us"] > 0
    assert [hit["seq"] for hit in answer("search", "step", "--limit", 2, "--before", 30)["hits"]] == [29, 28]
    assert answer("search", "nowhere")["hits"] == []
    assert len(answer("search", '"oauth scope"', "--reindex")["hits"]) == 1


@pytest.mark.usefixtures("said")
def test_people_read_an_excerpt_on_one_line(run: Run) -> None:  # noqa: F811
    lines = run("search", "oauth scope").stdout.splitlines()
    assert lines[0] == "default/w: 1 event with oauth scope"
    assert lines[1] == ""
    assert lines[2].startswith("[32] message, 20")
    assert lines[3].startswith("… before")
    assert "the OAuth scope is open" in lines[3]
    assert lines[3].endswith("behind …")
    assert len(lines) == 4
    assert run("search", "step", "--limit", 1).stderr == "note: there may be more: --before 30\n"
    assert run("search", "nowhere").stdout == "default/w: no event holds nowhere\n"


@pytest.mark.usefixtures("said")
def test_what_would_drive_a_terminal_is_shown(run: Run) -> None:  # noqa: F811
    assert "use --force \\x1b[31m" in run("search", "--", "--force").stdout
    assert _one_line("a\r\n\tb") == "a b"


@pytest.mark.usefixtures("said")
def test_what_is_no_search_is_refused(answer: Say) -> None:  # noqa: F811
    for wrong in ("", "*", '"open', '""'):
        assert answer("search", "--", wrong, code=1)["error"]["type"] == "InvalidInputError"
    assert "TEXT" in answer("search", code=2)["error"]["message"]
    assert answer("search", "a", "--limit", 0, code=2)["error"]["type"]


@pytest.mark.usefixtures("said")
def test_an_abandoned_event_says_so(store: Path, run: Run) -> None:  # noqa: F811
    with strandline.open(store) as db:
        db.tenant("default").workflow("w").rewind(31, by="ann", why="a wrong turn")
    assert ", abandoned\n" in run("search", "oauth").stdout
