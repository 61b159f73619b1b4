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

pytestmark = pytest.mark.long

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
        if "validator_bad" in entry.ids:  # its corpus is made: it needs no data, and minutes
            continue
        for row in table.rows_of(entry, tmp_path, lambda done, of: None):
            assert row.reason or row.reached is not None, row.id


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


# ---------------------------------------------------------------------------------------------- the measures


def line(role: str, content: object, number: int, **more: object) -> str:
    message = {"role": role, "content": content}
    kind = {"type": role, "uuid": f"u{number}", "parentUuid": f"u{number - 1}" if number else None}
    return json.dumps({**kind, "sessionId": "s", "timestamp": "2026-01-01T00:00:00Z", "message": message, **more})


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Data sets of one small invented session, with a model's summary in it, and of one episode."""
    begin = [line("user", "Copy bucket-7f3a to drop-5c7e19 for ORD-12. " + "It is agreed. " * 60, 0)]
    begin.append(line("assistant", [{"type": "text", "text": "I look at job-11aa and at pathOfJob first."}], 1))
    summary = line("user", "The work goes on as agreed. " * 30, 3, isCompactSummary=True)
    end = [line("assistant", [{"type": "text", "text": "Now bucket-7f3a and job-11aa, by pathOfJob."}], 4)]
    boundary = {"type": "system", "subtype": "compact_boundary", "uuid": "u2", "content": "compacted", "sessionId": "s"}
    session = tmp_path / "claude_code_made" / "one.jsonl"
    session.parent.mkdir()
    session.write_text("\n".join([*begin, json.dumps(boundary), summary, *end]) + "\n", encoding="utf-8")
    call = {
        "id": "c1",
        "type": "function",
        "function": {"name": "book", "arguments": '{"to": "jfk", "who": "mia_li_1"}'},
    }
    episode = [
        {"role": "system", "content": "You book flights."},
        {"role": "user", "content": "I am mia_li_1, to jfk please. " + "It is agreed. " * 30},
        {"role": "assistant", "content": "Shall I?"},
        {"role": "user", "content": "yes"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "name": "book", "content": "{}"},
    ]
    (tmp_path / "tau_bench").mkdir()
    (tmp_path / "tau_bench" / "episodes.json").write_text(json.dumps([{"traj": episode}]), encoding="utf-8")
    return tmp_path


def measured(entry_id: str, data: Path) -> dict[str, Row]:
    (entry,) = table.entries([entry_id])
    return {row.id: row for row in table.rows_of(entry, data, lambda done, of: None)}


def test_what_was_needed_later_is_counted_with_names_in_code_apart(data: Path) -> None:
    found = measured("needed_later", data)
    assert found["needed_later"].value == 100.0
    assert found["needed_later"].reason.startswith("2 of 2; the model's own summary holds 0.0 %")
    assert found["needed_names"].reason.startswith("1 of 1;")


def test_values_of_later_calls_are_looked_for_in_a_ledger_of_that_length(data: Path) -> None:
    found = measured("tau_20", data)
    assert {row.value for row in found.values()} == {50.0}  # jfk stands in prose only; the name has the form of one
    assert found["tau_5"].reason == "2 of 4 values at 2 cuts"


def test_every_reference_is_accounted_for_and_files_that_are_not_read_are_named(data: Path) -> None:
    (data / "other").mkdir()
    (data / "other" / "nothing.json").write_text("{", encoding="utf-8")
    row = measured("unaccounted", data)["unaccounted"]
    assert (row.value, row.reached, row.data) == (0.0, True, "2 transcripts")
    assert "1 files of other" in row.reason


def test_a_context_that_only_grows_keeps_what_it_began_with(data: Path) -> None:
    found = measured("prefix_stable", data)
    assert found["prefix_stable"].value is not None
    assert found["prefix_compacted"].reached is None  # too short to be compacted
