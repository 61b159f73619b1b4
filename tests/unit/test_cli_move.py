"""Law (C6, C29): `strandline copy` and `backup` say what they did, prove it, and fail with the code that fits."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import strandline
from strandline import limits
from strandline.client import moving
from tests.unit.test_cli import Run, answer, run, store  # noqa: F401  fixtures

Say = Callable[..., dict[str, Any]]


@pytest.fixture
def filled(store: Path) -> Path:  # noqa: F811
    with strandline.open(store) as db:
        wf = db.tenant("default").workflow("w")
        wf.append([strandline.note(f"note {number}") for number in range(1, 31)])
        wf.checkpoint({"turn": 1}, 1, basis=wf.context())
    return store


def damage(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE checkpoint SET digest = x'00'")
        connection.commit()


def test_a_copy_prints_both_heads_and_proves_the_target(filled: Path, tmp_path: Path, run: Run) -> None:  # noqa: F811
    done = run("copy", filled, tmp_path / "new.db")
    assert done.exit_code == 0
    assert f"{tmp_path / 'new.db'}: 1 workflow, 30 events; verified" in done.stdout
    assert "same" in done.stdout.splitlines()[-1]


def test_its_json_has_the_report(filled: Path, tmp_path: Path, answer: Say) -> None:  # noqa: F811
    said = answer("copy", filled, tmp_path / "new.db")
    assert (said["ok"], said["settled"], said["events"], said["verify"]["ok"]) == (True, True, 30, True)
    assert said["heads"][0]["source"] == said["heads"][0]["target"]
    again = answer("copy", filled, tmp_path / "new.db", "--no-verify")
    assert again["rows"] == 0
    assert "verify" not in again


def test_final_demands_that_the_source_stood_still(
    filled: Path,
    tmp_path: Path,
    run: Run,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Exit code 6, and the copy is whole nevertheless."""
    monkeypatch.setattr(moving, "COPY_PASSES_MAX", 1)
    assert limits.COPY_PASSES_MAX > 1
    done = run("copy", filled, tmp_path / "new.db", "--final")
    assert done.exit_code == 6
    assert "written to while it was copied" in done.stderr
    assert run("copy", filled, tmp_path / "new.db", "--final").exit_code == 0


def test_damage_of_the_source_is_told_from_damage_of_the_copy(filled: Path, tmp_path: Path, run: Run) -> None:  # noqa: F811
    damage(filled)
    done = run("copy", filled, tmp_path / "new.db")
    assert done.exit_code == 8
    assert "The source has the same" in done.stderr
    with strandline.open(tmp_path / "sound.db") as db:
        db.tenant("default").workflow("w").checkpoint({"turn": 1}, 1, context_free=True)
    assert run("copy", tmp_path / "sound.db", tmp_path / "copy.db").exit_code == 0
    with closing(sqlite3.connect(tmp_path / "copy.db")) as connection:
        connection.execute("UPDATE view_head SET row_digest = x'00'")
        connection.execute("DROP TRIGGER entry_is_never_changed")
        connection.execute("UPDATE lineage SET record = x'00'")
        connection.commit()
    done = run("copy", tmp_path / "sound.db", tmp_path / "copy.db")
    assert done.exit_code == 8
    assert "does not have the same" in done.stderr


def test_an_unfinished_copy_is_refused_with_the_command_that_goes_on(
    filled: Path,
    tmp_path: Path,
    run: Run,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def cut(done: int, total: int) -> None:
        raise KeyboardInterrupt

    new = tmp_path / "new.db"
    with pytest.raises(KeyboardInterrupt):
        strandline.copy_store(filled, new, progress=cut)
    for words in (("verify",), ("context",), ("doctor",)):
        done = run(*words, "--store", new)
        assert done.exit_code == 7, words
        assert f"strandline copy {filled} {new}" in done.stdout + done.stderr
    assert run("copy", filled, new).exit_code == 0
    assert run("verify", "--store", new).exit_code == 0


def test_what_can_t_be_copied_is_told(filled: Path, tmp_path: Path, run: Run) -> None:  # noqa: F811
    for source, target, code in [
        (filled, "http://elsewhere", 2),
        (filled, filled, 1),
        (tmp_path / "nowhere.db", tmp_path / "new.db", 7),
        (filled, tmp_path / "nowhere" / "new.db", 7),
        (":memory:", tmp_path / "new.db", 1),
    ]:
        assert run("copy", source, target).exit_code == code, (source, target)
    assert not (tmp_path / "new.db").exists()


def test_backup_makes_a_file_and_never_overwrites(filled: Path, tmp_path: Path, run: Run, answer: Say) -> None:  # noqa: F811
    said = answer("backup", tmp_path / "b.db", "--verify")
    assert (said["events"], said["workflows"], said["verify"]["ok"]) == (30, 1, True)
    assert said["size_bytes"] == (tmp_path / "b.db").stat().st_size
    done = run("backup", tmp_path / "b.db")
    assert done.exit_code == 1
    assert "there already" in done.stderr
    assert run("backup", tmp_path / "c.db", "--workflow", "w").exit_code == 2


def test_a_backup_of_a_damaged_store_says_so(filled: Path, tmp_path: Path, run: Run) -> None:  # noqa: F811
    damage(filled)
    assert run("backup", tmp_path / "b.db").exit_code == 0
    done = run("backup", tmp_path / "c.db", "--verify")
    assert done.exit_code == 8
    assert (tmp_path / "c.db").exists()
