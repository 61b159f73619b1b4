"""Law: `strandline states` says what frameworks saved in a workflow, also in one that holds no event (C29)."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import strandline
from tests.unit.test_cli import Run, answer, run, store  # noqa: F401  fixtures

Say = Callable[..., dict[str, Any]]


@pytest.fixture
def saved(store: Path) -> Path:  # noqa: F811
    value = strandline.StateValue((strandline.Part(kind="json", data=b'"hello"'),), many=True)
    with strandline.open(store) as db:
        states = db.tenant("default").workflow("w").states
        states.save("s1", {"messages": value})
        states.save("s2", {"messages": value}, parent="s1")
        states.save("sub1", {"messages": value}, line="sub")
    return store


def test_the_lines_with_their_newest_states(run: Run, answer: Say, saved: Path) -> None:  # noqa: F811
    said = answer("states", "--workflow", "w")
    assert said["lines"] == [
        {"name": "", "states": 2, "newest": "s2", "position": 2},
        {"name": "sub", "states": 1, "newest": "sub1", "position": 3},
    ]
    assert (said["parts"], said["part_bytes"]) == (1, 7)
    told = run("states", "--workflow", "w").output
    assert "3 saved states in 2 lines; 1 part of 7 bytes, each kept once" in told
    assert "sub1" in told


def test_a_damaged_one(run: Run, saved: Path) -> None:  # noqa: F811
    with closing(sqlite3.connect(saved)) as connection:
        connection.execute("DELETE FROM saved_state WHERE number = 2")
        connection.commit()
    assert run("states", "--workflow", "w").exit_code == 8
