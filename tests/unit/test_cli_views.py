"""The command line and views (C18, I21): `view define`, `view list`, `append --audience`, `--view` on every command."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.test_cli import Run, answer, run, store  # noqa: F401  fixtures

Say = Callable[..., dict[str, Any]]
SECRET = "vault-4411"
PUBLISHER = ("--workflow", "w", "--view", "publisher")
WHO = ("--by", "ada", "--why", "so")


@pytest.fixture
def views(run: Run) -> Say:  # noqa: F811
    """Run `strandline view WHAT --json …`."""

    def invoke(what: str, *args: object, code: int = 0) -> dict[str, Any]:
        result = run("view", what, "--json", *args)
        assert result.exit_code == code, result.output[:500]
        value: dict[str, Any] = json.loads(result.stdout)
        return value

    return invoke


@pytest.fixture
def defined(answer: Say, views: Say) -> Say:  # noqa: F811
    """A workflow with a view that reads what is said to `release`: of its six events, two and the one for everyone."""
    for audience, text in (("release", "The build is build-7f3a."), ("staff", f"The key is in {SECRET}.")):
        answer("append", "--workflow", "w", "--text", text, "--audience", audience)
        answer(
            "append",
            "--workflow",
            "w",
            "--kind",
            "constraint",
            "--subject",
            "rule",
            "--text",
            text,
            "--audience",
            audience,
        )
    answer("append", "--workflow", "w", "--kind", "issue", "--subject", SECRET, "--text", "open", "--audience", "staff")
    answer("append", "--workflow", "w", "--text", "Publish soon.")
    views("define", "publisher", "--workflow", "w", "--audience", "release", "--budget", 400)
    return answer


def test_views_are_defined_and_listed(defined: Say, views: Say, run: Run) -> None:  # noqa: F811
    listed = views("list", "--workflow", "w")["views"]
    assert [(view["name"], view["audiences"], view["budget"]) for view in listed] == [
        ("main", None, None),
        ("publisher", ["release"], 400),
    ]
    assert [view["name"] for view in views("list", *PUBLISHER)["views"]] == ["publisher"]
    anew = views("define", "publisher", "--workflow", "w", "--audience", "docs")["view"]
    assert (anew["generation"], anew["audience_version"], anew["budget"]) == (1, 2, None)
    shown = run("view", "list", "--workflow", "w").stdout
    assert "what is for everyone, 'docs'" in shown
    assert "everything" in shown
    assert views("define", "main", "--workflow", "w", "--budget", 9_000)["view"]["budget"] == 9_000
    assert "9,000" in run("view", "list", "--workflow", "w").stdout


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("main", "--audience", "x"), 1, "reads everything"),
        (("x", "--audience", ""), 1, "an audience is a name"),
        ((" x ",), 2, "spaces around"),
        (("x", "--budget", "1"), 2, "less than"),
        (("x", "--audience", "y", "--view", "publisher"), 1, "can't define a view"),
    ],
)
def test_a_definition_that_can_not_be_is_refused(defined: Say, views: Say, words: Any, code: int, said: str) -> None:
    error = views("define", *words, "--workflow", "w", code=code)["error"]
    assert said in error["message"]
    assert len(views("list", "--workflow", "w")["views"]) == 2


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("context",), 0),
        (("context", "--format", "anthropic"), 0),
        (("events", 1, 6), 0),
        (("recall", SECRET), 0),
        (("compact", "--through", 6), 0),
        (("manifest",), 0),
        (("lineage",), 0),
        (("cases",), 0),
        (("effects",), 0),
        (("permits",), 0),
        (("verify",), 0),
        (("checkpoint", "--turn", 1, "--state", "{}"), 0),
        (("recover",), 0),
        (("recover", "--prior-state", "--name", "main"), 0),
        (("guard", "publish", "--no-open-issues"), 1),
        (("compare",), 1),
        (("revert", 0, *WHO), 1),
        (("report-regression", 0, *WHO), 1),
        (("rewind", 5, *WHO), 0),
        (("fork", "other", *WHO), 0),
    ],
)
def test_every_command_reads_through_the_view(defined: Say, run: Run, words: Any, code: int) -> None:  # noqa: F811
    """As JSON and for people; the reference that is asked for is the asker's own."""
    defined("checkpoint", "--workflow", "w", "--turn", 1, "--state", json.dumps({"knows": SECRET}))
    said = defined(*words, *PUBLISHER, code=code)
    told = json.dumps(said).replace(json.dumps(said.get("ref")), "")
    assert SECRET not in told
    assert "staff" not in told
    shown = run(*words, *PUBLISHER)
    if words[0] != "recall":
        assert SECRET not in shown.output
        assert "staff" not in shown.output


@pytest.mark.parametrize("words", [("context",), ("lineage",), ("effects",), ("verify",), ("cases",)])
def test_a_view_that_is_not_there_is_refused(defined: Say, words: Any) -> None:
    error = defined(*words, "--workflow", "w", "--view", "nobody", code=1)["error"]
    assert (error["type"], "no view 'nobody'" in error["message"]) == ("TenantScopeError", True)
    assert "view define" in error["hint"]


def test_a_checkpoint_goes_by_the_name_of_the_view(defined: Say) -> None:
    made = defined("checkpoint", *PUBLISHER, "--turn", 1, "--state", '{"at": "review"}')
    assert (made["name"], made["basis"]["view"], [view["view"] for view in made["views"]]) == (
        "publisher",
        "publisher",
        ["publisher"],
    )
    assert defined("recover", *PUBLISHER)["state"] == {"at": "review"}
    assert defined("recover", "--workflow", "w")["state"] is None


def test_hints_name_the_view(defined: Say) -> None:
    defined("compact", *PUBLISHER, "--through", 6)
    made = defined("report-regression", 1, *WHO, *PUBLISHER)
    assert made["case"]["view"] == "publisher"
    error = defined("compact", *PUBLISHER, "--through", 6, code=3)["error"]
    assert "--view publisher" in error["hint"]
