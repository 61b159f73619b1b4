"""Law (I21): names that look alike are different tenants, or are refused; none sees, changes or counts another's data.

On each kind of store, through the API and the command line. Whoever normalizes, folds, splits, quotes or patterns a
name on its way into a key or a statement makes two tenants one.
"""

import itertools
import json
import unicodedata
from pathlib import Path

import pytest
from typer.testing import CliRunner

import strandline
from strandline.cli.app import app
from strandline.limits import NAME_CHARS_MAX
from strandline.model.ids import Scope

NAMES = (
    "acme",
    "ACME",
    "acme/eu",
    "Acme/eu",
    "acme/EU",
    "acme_eu",
    "acme%eu",
    "acme-eu",
    "acme.eu",
    "acme\\eu",
    "acme//eu",
    "/acme/eu",
    "acme/eu/",
    "аcme/eu",  # a Cyrillic а
    "acme\u200b/eu",  # a space that can't be seen
    unicodedata.normalize("NFC", "café"),
    unicodedata.normalize("NFD", "café"),
    "K",
    "\u212a",  # the Kelvin sign, which folds to k
    "strasse",
    "straße",
    "ﬁ",
    "fi",
    "I",
    "ı",
    "..",
    ".",
    "'",
    '"',
    "''",
    "';--",
    "$1",
    ":tenant",
    "%(tenant)s",
    "%s",
    "%",
    "_",
    "*",
    "{}",
    "0",
    "00",
    "1",
    "-1",
    "NULL",
    "null",
    "default",
    "postgres",
    "strandline_app",
    "x" * NAME_CHARS_MAX,
    "𝒶cme",
    "акме",
    "会社",
)
REFUSED = (
    "",
    "\0",
    "acme\0",
    "acme\0eu",
    " acme",
    "acme ",
    "acme\n",
    "a\tb",
    "\x1b[31m",
    "\ud800",
    "x" * (NAME_CHARS_MAX + 1),
)
NO_NAMES = (None, 0, b"acme", ["acme"], Path("acme"))


def told(name: str) -> str:
    return f"secret-{name.encode().hex()[:40]}-{len(name)}"


@pytest.mark.parametrize("store_url", ["memory", "sqlite", "postgres-18"], indirect=True)
def test_names_that_look_alike_are_different_tenants(store_url: str) -> None:
    ran: list[str] = []
    with strandline.open(store_url) as db:
        for name in NAMES:
            wf = db.tenant(name).workflow("run")
            wf.append([strandline.message("user", f"{told(name)} of bucket-77aa", key="first"), strandline.note("end")])
            wf.effect("pay", "pay", {"to": "them"}, lambda name=name: ran.append(name))
            wf.checkpoint({"mine": name}, 1, basis=wf.basis())
        assert ran == list(NAMES), "the same key of another tenant is another effect"
        if store_url == ":memory:":
            look(db)
    if store_url != ":memory:":
        with strandline.open(store_url) as again:
            look(again)


def look(db: strandline.Strandline) -> None:
    """Look at the store as each tenant."""
    assert sorted(scope.tenant for scope in db.store.scopes()) == sorted(NAMES)
    for name in NAMES:
        tenant = db.tenant(name)
        assert tenant.workflows() == ["run"]
        wf = tenant.workflow("run")
        texts = [event.text for event in wf.events()]
        assert texts[0] == f"{told(name)} of bucket-77aa"
        assert not [text for text in texts[1:] if "secret-" in text]
        assert [hit.seq for hit in wf.recall("bucket-77aa")] == [1]
        assert [effect.key for effect in wf.effects()] == ["pay"]
        assert wf.recover(budget=10_000, dry_run=True).state == {"mine": name}
    report = db.verify()
    assert (report.ok, report.workflows) == (True, len(NAMES)), report.problems


@pytest.mark.parametrize("store_url", ["memory", "sqlite", "postgres-18"], indirect=True)
def test_a_name_and_its_workflow_are_not_one_text(store_url: str) -> None:
    """`acme/eu` with `run` is not `acme` with `eu/run`."""
    pairs = list(itertools.product(["acme", "acme/eu", "acme/eu/run"], ["run", "eu/run", "eu", "/run"]))
    with strandline.open(store_url) as db:
        for number, (tenant, workflow) in enumerate(pairs):
            wf = db.tenant(tenant).workflow(workflow)
            wf.append([strandline.message("user", f"number {number}", key="the key"), *material(10)])
            assert wf.compact(300).outcome == "activated"
        for number, (tenant, workflow) in enumerate(pairs):
            wf = db.tenant(tenant).workflow(workflow)
            assert wf.events(1, 1)[0].text == f"number {number}"
            assert [entry.kind for entry in wf.lineage()] == ["compaction"]
        assert {(scope.tenant, scope.workflow) for scope in db.store.scopes()} == set(pairs)
        assert db.verify().ok


def material(count: int) -> list[strandline.NewEvent]:
    return [
        strandline.message("assistant", f"Step {n} wrote bucket-{n:04x} and then went on. " * 4) for n in range(count)
    ]


@pytest.mark.parametrize("name", [*REFUSED, *NO_NAMES], ids=ascii)
def test_a_name_that_is_none_is_refused_and_nothing_is_written(name: object, tmp_path: Path) -> None:
    with strandline.open(tmp_path / "store.db") as db:
        with pytest.raises(strandline.TenantScopeError):
            db.tenant(name)  # type: ignore[arg-type]
        with pytest.raises(strandline.TenantScopeError):
            db.tenant("acme").workflow(name)  # type: ignore[arg-type]
        with pytest.raises(strandline.TenantScopeError):
            Scope(tenant=name, workflow="run")  # type: ignore[arg-type]
        assert db.store.scopes() == []


def test_reading_another_tenants_workflow_finds_nothing_and_makes_nothing(store_url: str) -> None:
    with strandline.open(store_url) as db:
        db.tenant("acme/eu").workflow("run").append([strandline.message("user", "secret of bucket-77aa"), *material(3)])
        for other in ("acme", "Acme/eu", "acme_eu"):
            wf = db.tenant(other).workflow("run")
            assert (wf.events(), wf.recall("bucket-77aa"), wf.lineage(), wf.basis().revision) == ([], [], [], 0)
            with pytest.raises(strandline.StrandlineError) as refused:
                wf.recover(["bucket-77aa"])
            assert "secret" not in str(refused.value)
            assert db.tenant(other).workflows() == []
        assert [scope.tenant for scope in db.store.scopes()] == ["acme/eu"]


CLI_NAMES = ("acme/eu", "acme_eu", "Acme/eu", "аcme/eu", "..", "'", '"', NAMES[15], NAMES[16])


@pytest.mark.parametrize("store_url", ["sqlite", "postgres-18"], indirect=True)
def test_the_command_line_keeps_them_apart(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRANDLINE_STORE", store_url)

    def run(*words: str) -> tuple[int, dict]:
        done = CliRunner().invoke(app, [*words, "--json", "--workflow", "run"])
        return done.exit_code, json.loads(done.stdout)

    for name in CLI_NAMES:
        assert run("append", "--text", f"{told(name)} of bucket-77aa", "--tenant", name)[0] == 0
    for name in CLI_NAMES:
        code, said = run("context", "--tenant", name)
        assert (code, said["tenant"]) == (0, name)
        assert [other for other in CLI_NAMES if told(other) in json.dumps(said)] == [name]
        code, said = run("recall", "--tenant", name, "bucket-77aa")
        assert [other for other in CLI_NAMES if told(other) in json.dumps(said)] == [name]
    for name in ("", "a\0b", " acme", "x" * (NAME_CHARS_MAX + 1)):
        code, said = run("append", "--text", "lost", "--tenant", name)
        assert (code, said["error"]["type"]) in {(1, "TenantScopeError"), (2, "UsageError")}, name
    code, said = run("context", "--tenant", "ACME/eu")
    assert code == 1
    assert "secret" not in json.dumps(said)
    with strandline.open(store_url) as db:
        assert {scope.tenant for scope in db.store.scopes()} == set(CLI_NAMES)
