"""The command line and MCP (C33, I21): `mcp`, `mcp token`, `mcp revoke`. What is served is in tests/integrations."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import strandline
from strandline.integrations.mcp import Access, TokenFile
from tests.unit.test_cli import Run, run, store  # noqa: F401  fixtures


def test_a_token_is_printed_once_and_reaches_what_was_said(run: Run, tmp_path: Path) -> None:  # noqa: F811
    done = run("mcp", "token", "ana", "--tenant", "acme", "--workflow", "w1", "--workflow", "w2")
    assert done.exit_code == 0
    token = done.stdout.strip()
    assert "'ana' reaches 'w1', 'w2' of tenant 'acme'" in done.stderr
    assert token not in done.stderr
    wanted = Access(tenant="acme", workflows=["w1", "w2"], actor="ana")
    assert TokenFile(tmp_path / "mcp-tokens.json").access_of(token) == wanted
    assert not (tmp_path / "store.db").exists()


def test_json_has_all_of_a_token(run: Run, tmp_path: Path) -> None:  # noqa: F811
    done = run("mcp", "token", "ana", "--file", "other.json", "--view", "review", "--json")
    told = json.loads(done.stdout)
    assert TokenFile(tmp_path / "other.json").access_of(told["token"]) == Access(
        tenant="default", view="review", actor="ana"
    )
    assert {**told, "token": ""} == {
        "token": "",
        "name": "ana",
        "tenant": "default",
        "workflows": None,
        "view": "review",
    }


def test_a_token_is_revoked_by_its_name(run: Run, tmp_path: Path) -> None:  # noqa: F811
    run("mcp", "token", "ana")
    assert run("mcp", "revoke", "ana").exit_code == 0
    assert TokenFile(tmp_path / "mcp-tokens.json").names() == []
    done = run("mcp", "revoke", "ana", "--json")
    assert (done.exit_code, json.loads(done.stdout)["error"]["type"]) == (1, "InvalidInputError")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["token", "a/b"], 1, "holds a '/'"),
        (["token", "ana", "--tenant", ""], 2, "a tenant needs a name"),
        (["token", "ana", "--workflow", "strandline/rules"], 1, "no workflow can have this name"),
        (["--json"], 2, "stdout is what the caller reads"),
        (["--tokens", "mcp-tokens.json"], 2, "a caller on stdin has no token"),
        (["--http", "--tokens", "mcp-tokens.json"], 1, "can't be read"),
        (["--http", "--tokens", "x", "--tenant", "acme"], 2, "each token of --tokens says"),
        (["--http", "--tokens", "x", "--workflow", "w"], 2, "each token of --tokens says"),
        (["--http", "--tokens", "x", "--view", "v"], 2, "each token of --tokens says"),
        (["--http", "--tokens", "x", "--actor", "a"], 2, "each token of --tokens says"),
        (["--http", "--host", "0.0.0.0"], 1, "without tokens it would let in everyone"),
        (["--http", "--host", "192.0.2.7"], 1, "without tokens it would let in everyone"),
        (["--http", "--port", "70000"], 2, "is more than 65535"),
        (["--http", "--tokens", "good.json", "--host", "nowhere.invalid"], 1, "can't listen on nowhere.invalid:8765"),
        (["--http", "--tokens", "good.json", "--host", "192.0.2.7"], 1, "can't listen on 192.0.2.7:8765"),
        (["--actor", "a/b"], 1, "holds a '/'"),
    ],
)
def test_what_can_not_be_is_refused_before_anything_is_served(
    run: Run,  # noqa: F811
    tmp_path: Path,
    words: list[str],
    code: int,
    said: str,
) -> None:
    TokenFile(tmp_path / "good.json").add("ana", tenant="acme")
    done = run("mcp", *words)
    assert done.exit_code == code, done.output
    assert said in done.output
    assert not (tmp_path / "mcp-tokens.json").exists()


def test_without_the_extra_it_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    monkeypatch.setitem(sys.modules, "mcp", None)
    done = run("mcp", "--workflow", "w")
    assert done.exit_code == 1
    assert "the MCP server needs mcp, which is not installed" in done.output
    assert "[mcp]" in done.output


def test_nothing_of_the_extra_is_imported_before_it_is_needed() -> None:
    assert strandline.integrations.mcp.Access  # type: ignore[attr-defined]
    program = "import sys, strandline.integrations.mcp, strandline.cli.app; assert 'mcp' not in sys.modules"
    import subprocess

    subprocess.run([sys.executable, "-c", program], check=True)
