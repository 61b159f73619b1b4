"""Law: `strandline guard` answers 0 or 1 by durable facts (I20), says why, and `permits` shows each decision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import strandline
from tests.unit.test_cli import Run, answer, run, store  # noqa: F401  fixtures

Say = Callable[..., dict[str, Any]]


@pytest.fixture
def approved(answer: Say) -> Say:  # noqa: F811
    """A workflow with an approval for a scope that one effect uses up, and a resolved issue."""
    event = ("append", "--workflow", "w", "--kind")
    answer(*event, "issue", "--subject", "oauth", "--text", "Too wide.")
    answer(*event, "resolve", "--subject", "oauth")
    options = ("--scope", "eu", "--expires-at", "2999-01-31T12:00:00Z", "--single-use")
    answer(*event, "approval", "--subject", "review", "--granter", "ana", "--text", "Read.", *options)
    answer(*event, "approval", "--subject", "ops@x.org", "--granter", "bob", "--text", "Ask them.")
    return answer


def test_a_permitted_action(approved: Say, run: Run) -> None:  # noqa: F811
    needs = ("--approved", "review@eu", "--resolved", "oauth", "--no-open-issues", "--not-in-force", "freeze")
    permit = approved("guard", "publish", *needs, "--by", "publisher")["permit"]
    assert (permit["state"], permit["by"], permit["action"]) == ("granted", "publisher", "publish")
    assert [(fact["seq"], fact["single_use"]) for fact in permit["facts"]] == [
        (3, True),
        (2, False),
        (0, False),
        (0, False),
    ]
    shown = run("guard", "publish", *needs).stdout
    assert "'publish' is permitted" in shown
    assert "'review' by 'ana' [event 3], single use" in shown
    assert "2999-01-31T12:00:00" in shown
    assert permit in approved("permits")["permits"]
    assert "rests on events 3, 2; expires 2999" in run("permits").stdout


def test_a_denied_action(approved: Say, run: Run) -> None:  # noqa: F811
    said = approved("guard", "publish", "--approved", "review", "--in-force", "staging", code=1)["error"]
    assert said["type"] == "ActionDeniedError"
    assert said["reasons"] == [
        "'review' is not approved: that by 'ana' [event 3] is for 'eu' only",
        "the constraint 'staging' is not in force",
    ]
    shown = run("guard", "publish", "--approved", "review", "--in-force", "staging")
    assert shown.exit_code == 1
    assert not shown.stdout
    assert all(reason in shown.stderr for reason in said["reasons"])
    (decision,) = approved("permits")["permits"]
    assert (decision["permit_id"], decision["state"]) == (said["permit_id"], "denied")
    assert "'review' is not approved" in run("permits").stdout


def test_a_subject_with_an_at_sign(approved: Say) -> None:
    assert approved("guard", "x", "--approved", "ops@x.org@")["permit"]["needs"][0]["subject"] == "ops@x.org"
    assert approved("guard", "x", "--approved", "ops@x.org@eu")["permit"]["needs"][0]["scope"] == "eu"
    assert (
        "'ops' is not approved for 'x.org'"
        in approved("guard", "x", "--approved", "ops@x.org", code=1)["error"]["message"]
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "say what must hold"),
        (("--quorum", "2"), "name of what"),
        (("--granter", "ana", "--resolved", "oauth"), "name of what"),
        (("--approved", "review", "--quorum", "0"), "0 is less than 1"),
        (("--approved", "review", "--granter", "ana", "--quorum", "2"), "can't be reached"),
        (("--approved", ""), "subject must not be empty"),
        (("--approved", "@eu"), "subject must not be empty"),
        (("--no-open-issue", ""), "--no-open-issues"),
    ],
)
def test_wrong_options_are_usage_errors_and_leave_no_decision(
    approved: Say, options: tuple[str, ...], said: str
) -> None:
    assert said in approved("guard", "publish", *options, code=2)["error"]["message"]
    assert approved("permits")["permits"] == []


def test_a_dry_run_leaves_no_decision(approved: Say) -> None:
    assert approved("guard", "publish", "--no-open-issues", "--dry-run")["permit"]["permit_id"] == ""
    assert approved("guard", "publish", "--resolved", "x", "--dry-run", code=1)["error"]["permit_id"] is None
    assert approved("permits")["permits"] == []


def test_an_actor_that_is_refused_leaves_no_decision(approved: Say) -> None:
    error = approved("guard", "publish", "--resolved", "oauth", "--by", "b" * 2_001, code=1)["error"]
    assert ("2001 characters" in error["message"], error["type"]) == (True, "InvalidInputError")
    assert approved("permits")["permits"] == []


@pytest.mark.parametrize("options", [("--scope", "eu"), ("--single-use",), ("--expires-at", "2999-01-31T12:00:00Z")])
def test_options_of_an_approval_are_of_nothing_else(approved: Say, options: tuple[str, ...]) -> None:
    assert "has no field" in approved("append", "--text", "x", *options, code=2)["error"]["message"]


def test_a_workflow_that_is_not_there_is_not_made(approved: Say) -> None:
    for command in (("guard", "publish", "--no-open-issues"), ("permits",)):
        assert "no workflow 'v'" in approved(*command, "--workflow", "v", code=1)["error"]["message"]


def test_the_anchor_says_that_an_approval_is_for_one_use(store: Any) -> None:  # noqa: F811
    with strandline.open(store) as db:
        wf = db.tenant("acme").workflow("w")
        wf.append(strandline.approval("review", "Read.", granter="ana", single_use=True))
        wf.append([strandline.note(f"step {number} is done") for number in range(60)])
        wf.compact(350)
        assert "- approval review (by ana, single use) [event 1]: Read." in wf.context().text
