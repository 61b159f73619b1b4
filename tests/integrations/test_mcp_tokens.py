"""Law (C33, I21): a token lets in its holder, to what the file says of it; the file holds no token; where it is in
doubt, nobody is let in.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from threading import Thread

import pytest

import strandline
from strandline.integrations.mcp import Access, TokenFile
from strandline.limits import MCP_TOKEN_FILE_BYTES_MAX, MCP_TOKENS_MAX


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tokens.json"


def test_a_token_reaches_what_its_entry_says(path: Path) -> None:
    tokens = TokenFile(path)
    ana = tokens.add("ana", tenant="acme", workflows=["release-42"], view="review")
    bob = tokens.add("bob", tenant="other")
    assert tokens.access_of(ana) == Access(tenant="acme", workflows=["release-42"], view="review", actor="ana")
    assert tokens.access_of(bob) == Access(tenant="other", actor="bob")
    assert tokens.names() == ["ana", "bob"]
    for wrong in (
        "",
        "sl_",
        ana[:-1],
        ana + "x",
        ana.upper(),
        "\ud800",
        "é",
        json.loads(path.read_text())["tokens"][0]["sha256"],
    ):
        assert tokens.access_of(wrong) is None


def test_the_file_holds_no_token_and_is_its_owners(path: Path) -> None:
    token = TokenFile(path).add("ana", tenant="acme")
    assert token not in path.read_text()
    assert token.removeprefix("sl_") not in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600
    assert [file.name for file in path.parent.iterdir()] == ["tokens.json"]
    assert TokenFile(path).add("bob", tenant="acme") != token


def test_what_is_revoked_lets_nobody_in_from_the_next_look_on(path: Path) -> None:
    serving, admin = TokenFile(path), TokenFile(path)
    ana, bob = admin.add("ana", tenant="acme"), admin.add("bob", tenant="acme")
    assert serving.access_of(ana) is not None
    admin.revoke("ana")
    assert serving.access_of(ana) is None
    assert serving.access_of(bob) is not None
    with pytest.raises(strandline.InvalidInputError, match="no token 'ana'"):
        admin.revoke("ana")
    path.unlink()
    with pytest.raises(strandline.InvalidInputError, match="can't be read"):
        serving.access_of(bob)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "holds no tokens"),
        ("[]", "holds no tokens"),
        ('{"tokens": [{"name": "ana", "tenant": "acme"}]}', "sha256"),
        ('{"tokens": [{"name": "ana", "sha256": "77", "tenant": "acme"}]}', "tokens[0].sha256"),
        ('{"tokens": [{"name": "ana", "sha256": "' + "0" * 64 + '"}]}', "tenant"),
        ('{"tokens": [{"name": "a/b", "sha256": "' + "0" * 64 + '", "tenant": "acme"}]}', "holds a '/'"),
        (
            '{"tokens": [{"name": "ana", "sha256": "' + "0" * 64 + '", "tenant": "acme", "workflows": []}]}',
            "list of names",
        ),
        ('{"tokens": [{"name": "ana", "sha256": "' + "0" * 64 + '", "tenant": "acme", "role": "admin"}]}', "role"),
        (" " * (MCP_TOKEN_FILE_BYTES_MAX + 1), "MCP_TOKEN_FILE_BYTES_MAX"),
    ],
)
def test_a_damaged_file_lets_nobody_in(path: Path, text: str, said: str) -> None:
    tokens = TokenFile(path)
    token = tokens.add("ana", tenant="acme")
    assert tokens.access_of(token) is not None
    path.write_text(text)
    for verb in (lambda: tokens.access_of(token), tokens.names, lambda: tokens.add("bob", tenant="acme")):
        with pytest.raises(strandline.InvalidInputError) as caught:
            verb()
        assert said in caught.value.message
        assert str(path) in caught.value.message
    assert path.read_text() == text
    assert not path.with_name("tokens.json.new").exists()


def test_two_entries_are_not_one(path: Path) -> None:
    TokenFile(path).add("ana", tenant="acme")
    (entry,) = json.loads(path.read_text())["tokens"]
    for change, said in (
        ({"tenant": "other"}, "two tokens with one name"),
        ({"name": "bob"}, "two tokens with one sha256"),
    ):
        path.write_text(json.dumps({"tokens": [entry, {**entry, **change}]}))
        with pytest.raises(strandline.InvalidInputError, match=said):
            TokenFile(path).names()


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
def test_a_file_that_others_may_write_lets_nobody_in(path: Path) -> None:
    tokens = TokenFile(path)
    token = tokens.add("ana", tenant="acme")
    path.chmod(0o620)
    with pytest.raises(strandline.InvalidInputError, match="others may write") as caught:
        tokens.access_of(token)
    assert "chmod go-w" in caught.value.hint
    path.chmod(0o640)
    assert tokens.access_of(token) is not None


def test_names_that_can_not_be_and_a_full_file_write_nothing(path: Path) -> None:
    tokens = TokenFile(path)
    for given in (
        {"name": "a/b", "tenant": "acme"},
        {"name": "a", "tenant": ""},
        {"name": "a", "tenant": "t", "workflows": []},
    ):
        with pytest.raises((strandline.InvalidInputError, strandline.TenantScopeError)):
            tokens.add(**given)  # type: ignore[arg-type]
    assert not path.exists()
    digests = [{"name": f"n{n}", "sha256": f"{n:064x}", "tenant": "acme"} for n in range(MCP_TOKENS_MAX)]
    path.write_text(json.dumps({"tokens": digests}))
    with pytest.raises(strandline.InvalidInputError, match="MCP_TOKENS_MAX"):
        tokens.add("one-more", tenant="acme")
    assert len(tokens.names()) == MCP_TOKENS_MAX


def test_two_who_write_at_once_lose_nothing(path: Path) -> None:
    made, refused = [], []

    def add(name: str) -> None:
        try:
            made.append(TokenFile(path).add(name, tenant="acme"))
        except strandline.InvalidInputError as error:
            refused.append(error.message)

    threads = [Thread(target=add, args=(f"n{n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) >= 1
    assert all("somebody writes the tokens" in message for message in refused)
    assert all(TokenFile(path).access_of(token) for token in made)
    assert len(TokenFile(path).names()) == len(made) == 8 - len(refused)


def test_a_workflow_that_no_entry_names_is_refused() -> None:
    """I21: whether it is there or not."""
    access = Access(tenant="acme", workflows=["release-42"], actor="ana")
    with strandline.open(":memory:") as db:
        db.tenant("acme").workflow("payroll").append(strandline.message("user", "Pay them."))
        assert access.open(db, "release-42").name == "release-42"
        for name in ("payroll", "nothing"):
            with pytest.raises(strandline.TenantScopeError, match="none that this credential may use"):
                access.open(db, name)
