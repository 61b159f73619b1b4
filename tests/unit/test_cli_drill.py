"""Law (C41): the drill says what it came to: in JSON, in its exit code, in words; a promise that is broken is told."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner, Result

from strandline.cli.app import app
from strandline.drill import program
from strandline.drill.process import DrillError
from strandline.drill.report import Check, Incident, run_of
from strandline.drill.stage import Stage, Teller


@pytest.fixture
def drill(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Run the command with incidents that came to what the test says."""

    def invoke(*words: str, got: object = 3, corrupted: bool = True, columns: int = 80) -> Result:
        def run(names: Sequence[str], folder: Path, teller: Teller) -> list[Incident]:
            ran = []
            for name in names:
                check = Check(name="the scene: events lost", expected=3, got=got)
                teller.begin(
                    f"The {name}", "What happens, in a sentence that may be longer than a line of the terminal."
                )
                teller.half("WITHOUT PROTECTION", "a naive agent")
                teller.corrupted("Nothing raised an error.")
                teller.scene("the scene", "where it happens")
                teller.step("turn 1", "the agent asks the service for a bucket, and gets one " * 3)
                teller.check(check)
                teller.so("what it comes to, in a line that may be longer than one of the terminal, or even two of it")
                (folder / name).write_text("what it left")
                ran.append(Incident(name=name, naive={"corrupted": corrupted}, checks=[check]))
            return ran

        monkeypatch.setattr(program, "run", run)
        monkeypatch.setenv("COLUMNS", str(columns))
        return CliRunner().invoke(app, ["drill", *words])

    return invoke


def test_json_is_one_object(drill: Callable[..., Result]) -> None:
    done = drill("half-summary", "--json")
    check = {"name": "the scene: events lost", "expected": 3, "got": 3, "ok": True}
    incident = {"name": "half-summary", "naive": {"corrupted": True}, "checks": [check]}
    assert (done.exit_code, json.loads(done.stdout)) == (0, {"incidents": [incident], "ok": True})


@pytest.mark.parametrize(("got", "corrupted"), [(2, True), (3.0, True), (None, True), (3, False)])
def test_a_broken_promise_or_an_unharmed_agent_is_exit_code_1(
    drill: Callable[..., Result], got: object, corrupted: bool
) -> None:
    done = drill("all", "--json", got=got, corrupted=corrupted)
    said = json.loads(done.stdout)
    assert (done.exit_code, said["ok"], len(said["incidents"])) == (1, False, 3)
    assert drill("all", got=got, corrupted=corrupted).exit_code == 1


def test_what_was_expected_stands_beside_what_was_got(drill: Callable[..., Result]) -> None:
    assert "FAILED        events lost: 2, expected 3" in drill("lost-handle", got=2).stdout
    assert "ok            events lost: 3" in drill("lost-handle").stdout


@pytest.mark.parametrize("columns", [60, 80, 100, 300])
def test_the_story_fits_the_terminal(drill: Callable[..., Result], columns: int) -> None:
    told = drill("all", columns=columns).stdout.splitlines()
    assert max(map(len, told)) <= max(78, min(columns, 100))


def test_what_it_made_is_kept_where_that_is_asked_for(drill: Callable[..., Result], tmp_path: Path) -> None:
    done = drill("lost-handle", "--keep", str(tmp_path / "new" / "folder"))
    assert (done.exit_code, "the stores and files are in" in done.stdout) == (0, True)
    assert (tmp_path / "new" / "folder" / "lost-handle").exists()
    again = drill("lost-handle", "--keep", str(tmp_path / "new" / "folder"))
    assert (again.exit_code, again.stdout) == (2, "")
    assert "not empty" in again.stderr


def test_an_incident_that_is_none(drill: Callable[..., Result]) -> None:
    assert drill("lost-wallet").exit_code == 2


@pytest.mark.parametrize(
    ("got", "corrupted", "said"),
    [
        (True, True, "the fact stays."),
        (False, True, "1 of 2 promises broken; see FAILED above."),
        (True, False, "the agent without protection was unharmed: this shows nothing."),
    ],
)
def test_each_incident_ends_with_what_it_comes_to(
    monkeypatch: pytest.MonkeyPatch, got: bool, corrupted: bool, said: str
) -> None:
    """One line; it claims nothing that the promises above it did not show."""

    def naive(stage: Stage) -> None:
        stage.corrupted("Nothing raised an error.", corrupted=corrupted)

    def protected(stage: Stage) -> None:
        stage.check("the pointer stays where it was", True, True)
        stage.check("the fact is there", got, True)

    played = SimpleNamespace(TITLE="One", WHAT="It happens.", SO="the fact stays.", naive=naive, protected=protected)
    monkeypatch.setattr(program, "INCIDENTS", {"half-summary": played})
    told = CliRunner().invoke(app, ["drill", "half-summary"]).stdout.splitlines()
    assert [line for line in told if line.startswith("  so:")] == [f"  so:           {said}"]
    assert json.loads(CliRunner().invoke(app, ["drill", "half-summary", "--json"]).stdout)["ok"] is (got and corrupted)


def test_a_process_that_fails_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(names: Sequence[str], folder: Path, teller: Teller) -> list[Incident]:
        raise DrillError("the process agent ended with 1 before it answered")

    monkeypatch.setattr(program, "run", run)
    done = CliRunner().invoke(app, ["drill", "all", "--json"])
    error = json.loads(done.stdout)["error"]
    assert (done.exit_code, error["type"]) == (1, "DrillError")
    assert "Nothing of yours is touched" in error["hint"]


def test_numbers_that_follow_each_other_are_a_run() -> None:
    assert [run_of(numbers) for numbers in ([1, 2, 3], [7], [1, 3], [])] == ["1–3", "7", "1, 3", "none"]
