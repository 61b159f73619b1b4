"""The command line and constraints that nobody declared (C11): listed, confirmed, dismissed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.test_cli import Run, answer, run, store  # noqa: F401  fixtures

Say = Callable[..., dict[str, Any]]
W = ("--workflow", "w")


@pytest.fixture
def said(answer: Say) -> Say:  # noqa: F811
    """A workflow in which a user states two constraints, and replaces the second."""
    for text in ("Never push to main. The budget for flights is $500.", "Actually, make the budget $800."):
        answer("append", *W, "--kind", "message", "--role", "user", "--text", text)
    return answer


def test_those_that_stand_are_listed(said: Say, run: Run) -> None:  # noqa: F811
    found = said("constraints", *W)["constraints"]
    assert [(one["name"], one["state"], one["sure"]) for one in found] == [
        ("said-1-1", "standing", True),
        ("said-2-1", "standing", True),
    ]
    shown = run("constraints", *W).stdout
    assert "2 constraints found, declared by nobody" in shown
    assert "Never push to main." in shown
    assert "$500" not in shown
    assert "replaced by said-2-1" in run("constraints", *W, "--all").stdout


def test_one_is_confirmed_and_one_dismissed(said: Say) -> None:
    done = said("constraints", *W, "--confirm", "said-2-1", "--subject", "flights", "--by", "ann")
    assert (done["confirmed"], done["subject"], done["seqs"]) == ("said-2-1", "flights", [3, 4, 5])
    done = said("constraints", *W, "--dismiss", "said-1-1", "--why", "a joke", "--by", "ann")
    assert (done["dismissed"], done["revision"]) == ("said-1-1", 6)
    assert said("constraints", *W, "--all")["constraints"] == []


def test_what_is_not_there_is_refused_with_a_way_out(said: Say, run: Run) -> None:  # noqa: F811
    refused = run("constraints", *W, "--dismiss", "said-9-9")
    assert refused.exit_code == 1
    assert "strandline constraints" in refused.output
    assert run("constraints", *W, "--dismiss", "said-1-1", "--confirm", "said-1-1").exit_code == 2
