"""Law: the table of memory quality names every row it has, says what it could not measure, and the page
shows it.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bench.quality import BY_HAND, merged, page, row_of, write_page
from strandline.bench.quality import table
from strandline.bench.quality.row import Row
from strandline.cli.app import app

ROOT = Path(__file__).resolve().parents[2]
ROW = Row(id="kept", measure="what is kept", data="a set", value=97.25, mark=97.0)


def one(row: Row) -> Callable[[Path, table.Tell], Iterator[Row]]:
    def measure(data: Path, tell: table.Tell) -> Iterator[Row]:
        tell(0, 1)
        yield row

    return measure


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as exit_:
        app(["bench", "quality", *words])
    return int(exit_.value.code or 0), capsys.readouterr().out


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> list[Row]:
    """A table of three rows: one that is reached, one that is missed, one that could not be measured."""
    made = [ROW, replace(ROW, id="stale", value=3.0, mark=2.0, at_most=True, unit=""), replace(ROW, id="gone")]
    made[2] = replace(made[2], value=None, reason="the set is not there")
    entries = tuple(table.Entry(ids=(row.id,), measure=one(row)) for row in made)
    monkeypatch.setattr(table, "TABLE", entries)
    monkeypatch.setattr(table, "IDS", tuple(row.id for row in made))
    return made


@pytest.mark.parametrize(
    ("value", "at_most", "reached"),
    [(97.0, False, True), (96.9, False, False), (97.0, True, True), (97.1, True, False), (None, False, None)],
)
def test_a_mark_is_a_bound_from_below_or_above(value: float | None, at_most: bool, reached: bool | None) -> None:
    assert replace(ROW, value=value, at_most=at_most).reached is reached


def test_no_two_rows_have_one_id() -> None:
    assert len(set(table.IDS)) == len(table.IDS)


def test_a_measure_without_its_data_says_so_in_each_of_its_rows(tmp_path: Path) -> None:
    for entry in table.TABLE:
        for row in table.rows_of(entry, tmp_path, lambda done, of: None):
            if row.reached is None:
                assert row.reason, row.id


def test_a_row_that_the_entry_does_not_name_is_no_row_of_the_table(tmp_path: Path) -> None:
    entry = table.Entry(ids=("kept", "lost"), measure=one(ROW))
    with pytest.raises(ValueError, match="lost"):
        list(table.rows_of(entry, tmp_path, lambda done, of: None))


def test_the_command_prints_each_row_beside_its_mark(
    rows: list[Row], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out = run(capsys, "--data", str(tmp_path))
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert code == 0
    assert "kept 97.25 % ≥ 97 % reached what is kept a set" in lines
    assert "stale 3 ≤ 2 missed what is kept a set" in lines
    assert "gone – ≥ 97 % not measured what is kept a set" in lines
    assert "gone: the set is not there" in lines


def test_the_command_says_the_same_in_json(rows: list[Row], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = run(capsys, "--data", str(tmp_path), "--json", "--only", "stale", "--only", "gone")
    found = json.loads(out)
    assert code == 0
    assert [(row["id"], row["reached"]) for row in found["rows"]] == [("stale", False), ("gone", None)]
    assert [row_of(row) for row in found["rows"]] == rows[1:]
    assert found["machine"]["python"]


@pytest.mark.parametrize("words", [("--data", "nowhere"), ("--data", ".", "--only", "nothing"), ()])
def test_the_command_refuses_what_is_not_there(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _ = run(capsys, *words)
    assert code == 2


def test_rows_that_are_measured_again_take_the_place_of_the_old_ones() -> None:
    first, second, *_ = table.IDS
    old = [{"id": second, "n": 1}, {"id": "row that is gone", "n": 1}]
    assert merged(old, [{"id": first, "n": 2}]) == [{"id": first, "n": 2}, {"id": second, "n": 1}]
    assert merged(old, [{"id": second, "n": 2}]) == [{"id": second, "n": 2}]


def test_what_stands_on_the_page_by_hand_is_kept(tmp_path: Path) -> None:
    stored = (ROOT / "docs" / "results" / "quality.json").read_text(encoding="utf-8")
    (tmp_path / "quality.json").write_text(stored, encoding="utf-8")
    write_page(tmp_path)
    written = tmp_path / "quality.md"
    written.write_text(written.read_text(encoding="utf-8") + "\nBy hand.\n", encoding="utf-8")
    write_page(tmp_path)
    assert written.read_text(encoding="utf-8").endswith(f"{BY_HAND}\n\nBy hand.\n")


def test_the_published_page_is_what_its_json_says() -> None:
    results = ROOT / "docs" / "results"
    found = json.loads((results / "quality.json").read_text(encoding="utf-8"))
    assert (results / "quality.md").read_text(encoding="utf-8").startswith(page(found))
