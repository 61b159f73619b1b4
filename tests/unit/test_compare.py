"""Law (C29): `compare` puts another tool's summaries beside ours, made by the real engine over the same events and no
longer than theirs; it writes nothing to the store, and its table, JSON and picture say the same.

The counts are checked on a small log whose answers were written down by hand, on both stores.
"""

from __future__ import annotations

import asyncio
import json
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import strandline
from strandline.cli.app import app
from strandline.cli.compare_picture import SUMMARIES_DRAWN_MAX, draw
from strandline.limits import ATTEMPTS_MAX, COMPARE_DROPPED_MAX, COMPARE_SUMMARIES_MAX
from strandline.model.outcome import ForeignSummary
from strandline.testing import ScriptedSummarizer
from tests.unit.test_engine_stage import log_of, new_workflow, transaction

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "demo" / "transcripts" / "stock-export.jsonl"
FILLER = " ".join(["The work goes on as it was agreed."] * 30)


def keep(db, wf, *foreign: tuple[int, str]) -> None:
    """Keep foreign summaries, as an import does."""
    kept = [ForeignSummary(key=f"f{n}", through_seq=seq, text=text) for n, (seq, text) in enumerate(foreign)]
    with transaction(db, wf, write=True) as tx:
        added = tx.summaries.add_foreign(kept)
        tx.log.set_head(replace(tx.log.head(), foreign_summaries=added))


def said(text: str) -> strandline.NewEvent:
    return strandline.message("assistant", text)


def ran(call_id: str, command: str, result: str) -> list[strandline.NewEvent]:
    return [strandline.tool_call(call_id, "run", {"command": command}), strandline.tool_result(call_id, result)]


def small(db) -> strandline.Workflow:
    """Return a log with two foreign summaries, at events 4 and 9."""
    wf = new_workflow(db)
    wf.append(strandline.message("user", "Use bucket-7f3a and drop-5c7e19; the ticket is ORD-12."))
    wf.append(ran("c1", "list jobs", "job-11aa job-22bb job-33cc"))
    wf.append(said("I look at job-11aa first."))
    wf.append(strandline.message("user", "Yes; job-33cc can wait."))
    wf.append(ran("c2", "copy bucket-7f3a job-11aa", "copied to cp-90ffee, see job-22bb"))
    wf.append(said("Now job-22bb, then job-33cc for ORD-12."))
    wf.append(said("cp-90ffee is there."))
    wf.append(ran("c3", "close drop-5c7e19 cp-90ffee", "closed"))
    keep(db, wf, (4, f"The agent uses bucket-7f3a for ORD-12. {FILLER}"), (9, f"All is copied. {FILLER}"))
    return wf


def test_what_was_needed_and_kept_is_what_was_written_down(db):
    """After event 4 the agent uses bucket-7f3a, job-11aa and ORD-12 unprompted; job-22bb and job-33cc it was shown.

    After event 9 it uses cp-90ffee; drop-5c7e19 was neither in the first summary nor in the events since then, so the
    second summary could not have kept it.
    """
    wf = small(db)
    before = log_of(db, wf), wf.lineage(), wf.basis()
    found = wf.compare()
    first, second = found.summaries
    assert (first.foreign.key, first.foreign.through_seq, first.until_seq) == ("f0", 4, 9)
    assert (second.foreign.key, second.foreign.through_seq, second.until_seq) == ("f1", 9, 11)
    assert first.needed == strandline.Tally(needed=3, theirs=2, theirs_and_ledger=3, ours=3)
    assert first.used_again == strandline.Tally(needed=5, theirs=2, theirs_and_ledger=5, ours=5)
    assert [(d.use.ref, d.use.last_seq, d.use.used_seq) for d in first.dropped] == [("job-11aa", 4, 6)]
    assert first.dropped[0].in_ledger
    assert first.dropped[0].in_ours
    assert first.needed_to_end.needed == 4  # drop-5c7e19 comes after the second
    assert first.used_again_to_end.needed == 6
    assert second.needed == strandline.Tally(needed=1, theirs=0, theirs_and_ledger=1, ours=1)
    assert {name: tally.needed for name, tally in first.needed_by_class.items()} == {"handle": 2, "ticket": 1}
    assert found.needed == strandline.Tally.sum([first.needed, second.needed])
    assert found.needed_by_name == found.needed
    assert found.used_again.needed == 6
    assert list(found.needed_by_class) == ["handle", "ticket"]
    for each in found.summaries:
        assert 0 < each.ours_prose_tokens <= each.ours_tokens <= each.theirs_tokens
        assert each.ours_reason == ""
        assert 0 < each.ledger_tokens <= found.ledger_budget
    assert (log_of(db, wf), wf.lineage(), wf.basis()) == before
    assert wf.verify().ok
    assert wf.compare() == found


def test_the_async_twin_answers_the_same():
    async def both() -> None:
        async with strandline.aopen(":memory:") as db:
            wf = db.tenant("acme").workflow("w")
            await wf.import_transcript(SAMPLE)
            blocking = await asyncio.to_thread(wf._workflow.compare, ledger_tokens=50)
            assert await wf.compare(ledger_tokens=50) == blocking
            assert len(blocking.summaries) == 2

    asyncio.run(both())


def test_ours_is_made_by_the_summarizer_that_is_given(db):
    wf = small(db)
    asked: list[int] = []

    def first_words(request: strandline.SummaryRequest) -> str:
        asked.append(request.through_seq)
        return "The agent works on job-11aa."

    found = wf.compare(first_words, ledger_tokens=0)
    assert asked == [4, 9]
    assert all(
        each.ledger_tokens == 0 and each.needed.theirs == each.needed.theirs_and_ledger for each in found.summaries
    )
    assert found.summaries[0].needed.ours == 3  # the others stand in our own ledger


def test_a_summary_of_ours_that_is_refused_holds_nothing_and_says_why(db):
    wf = small(db)
    found = wf.compare(ScriptedSummarizer(["The bucket is bucket-0000, which nobody made."] * 2 * ATTEMPTS_MAX))
    for each in found.summaries:
        assert (each.needed.ours, each.ours_tokens) == (0, 0)
        assert "quarantined" in each.ours_reason


def test_places_where_no_summary_of_ours_can_stand(db):
    """Nothing covered, no room at that length, the same place twice: none of them spoils what comes after it."""
    wf = new_workflow(db)
    wf.append([said(f"Step {number} wrote out/part-{number}.csv") for number in range(9)])
    wf.append(said("out/part-3.csv is the one."))
    keep(db, wf, (0, f"From an earlier file. {FILLER}"), (4, "Parts."), (9, FILLER), (9, f"Again. {FILLER}"))
    empty, short, whole, again = wf.compare().summaries
    assert (empty.needed.needed, empty.ours_tokens) == (0, 0)
    assert empty.ours_reason.startswith("nothing_to_do")
    assert short.ours_tokens == 0
    assert "leave no room" in short.ours_reason
    assert (whole.needed.needed, whole.until_seq, whole.ours_reason) == (0, 9, "")
    assert again.needed.needed == 0  # the one before it was all that it had to go by, and holds no reference
    assert again.ours_tokens == whole.ours_tokens <= again.theirs_tokens


def test_a_call_that_is_open_where_the_other_tool_compacted_does_not_hold_ours(db):
    wf = new_workflow(db)
    wf.append([said(f"Step {number} wrote out/part-{number}.csv") for number in range(9)])
    wf.append(strandline.tool_call("slow", "run", {"command": "pack out/part-3.csv"}))
    wf.append(strandline.tool_result("slow", "packed"))
    wf.append(strandline.tool_call("next", "run", {"command": "send out/part-3.csv"}))
    wf.append(strandline.abandoned("next"))
    keep(db, wf, (10, FILLER), (12, FILLER))
    for each in wf.compare().summaries:
        assert each.ours_reason == ""
    assert wf.compare().summaries[0].needed.ours == 1


def test_a_log_without_foreign_summaries_has_nothing_to_compare(db):
    assert new_workflow(db).compare().summaries == ()
    with pytest.raises(strandline.InvalidInputError, match="ledger_tokens"):
        new_workflow(db).compare(ledger_tokens=-1)
    with pytest.raises(strandline.InvalidInputError, match="whole number"):
        new_workflow(db).compare(ledger_tokens=1.5)  # type: ignore[arg-type]


def test_dropped_references_are_named_up_to_a_limit_and_counted_beyond(db):
    wf = new_workflow(db)
    names = [f"out/part-{number}.csv" for number in range(COMPARE_DROPPED_MAX + 9)]
    wf.append(said(" ".join(names)))
    wf.append(strandline.thinking(" ".join(names)))
    keep(db, wf, (1, FILLER))
    (only,) = wf.compare().summaries
    assert len(only.dropped) == COMPARE_DROPPED_MAX
    assert only.needed.needed == len(names)


def test_more_summaries_than_the_limit_are_refused(db):
    wf = new_workflow(db)
    wf.append(said("Step 1"))
    keep(db, wf, *[(1, "Parts.")] * (COMPARE_SUMMARIES_MAX + 1))
    with pytest.raises(strandline.InvalidInputError, match="1,001 foreign summaries"):
        wf.compare()


# ---------------------------------------------------------------------------------------------- the command

Run = Callable[..., Result]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    monkeypatch.chdir(tmp_path)
    for name in ("STRANDLINE_DEBUG", "STRANDLINE_STORE"):
        monkeypatch.delenv(name, raising=False)
    return lambda *args: CliRunner().invoke(app, ["compare", *map(str, args)])


def answer(result: Result, code: int = 0) -> dict[str, Any]:
    assert result.exit_code == code, result.output
    assert result.stdout.count("\n") == 1
    value = json.loads(result.stdout)
    assert isinstance(value, dict)
    return value


def test_a_file_is_compared_in_memory_and_no_store_is_made(run: Run, tmp_path: Path) -> None:
    found = answer(run(SAMPLE, "--json", "--picture", "kept.svg"))
    assert [path.name for path in tmp_path.iterdir()] == ["kept.svg"]
    assert (found["workflow"], found["picture"], found["token_counter"]) == ("stock-export", "kept.svg", "bytes/3")
    first, second = found["summaries"]
    assert (first["through_seq"], first["detail"]["trigger"]) == (29, "auto")
    assert first["needed"]["theirs"] < first["needed"]["ours"]
    assert "text" not in first
    assert found["needed"]["needed"] == first["needed"]["needed"] + second["needed"]["needed"]
    assert set(first["dropped"][0]) == {"ref", "reference_class", "last_seq", "used_seq", "in_ledger", "in_ours"}


def test_without_a_file_the_workflow_of_the_store_is_compared(run: Run, tmp_path: Path) -> None:
    CliRunner().invoke(app, ["import", str(SAMPLE), "--workflow", "w"])
    assert answer(run("--json"))["summaries"] == answer(run(SAMPLE, "--json"))["summaries"]


def test_people_read_a_table_what_the_words_mean_and_what_was_dropped(run: Run) -> None:
    text = run(SAMPLE, "--dropped", "1", "--ledger", "100").stdout
    assert text.startswith("default/stock-export: 2 summaries of another tool, beside ours\n")
    assert "\nall " in text
    assert "our ledger of 100 tokens" in text
    assert text.count("handle") == 2  # one of each
    assert "theirs dropped" not in run(SAMPLE, "--dropped", "0").stdout


def test_a_file_without_a_summary_is_no_error(run: Run, tmp_path: Path) -> None:
    plain = ROOT / "demo" / "transcripts" / "api-tests.jsonl"
    result = run(plain, "--picture", "none.svg")
    assert result.exit_code == 0
    assert result.stdout.startswith("default/api-tests: no summary of another tool stands in it")
    assert list(tmp_path.iterdir()) == []
    found = answer(run(plain, "--json"))
    assert (found["summaries"], found["picture"]) == ([], None)


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (("--picture", "kept.png"), 2, "SVG"),
        (("--picture", "gone/kept.svg"), 2, "no folder 'gone'"),
        (("--picture", "folder.svg"), 1, "can't be written"),
        (("--ledger", "-1"), 2, "-1"),
        (("--dropped", COMPARE_DROPPED_MAX + 1), 2, "more than"),
    ],
)
def test_what_can_t_be_is_refused(run: Run, tmp_path: Path, args: tuple[object, ...], code: int, said: str) -> None:
    (tmp_path / "folder.svg").mkdir()
    error = answer(run(SAMPLE, "--json", *args), code)["error"]
    assert said in error["message"]
    assert [path.name for path in tmp_path.iterdir()] == ["folder.svg"]


def test_a_damaged_file_is_refused_as_by_an_import(run: Run, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.jsonl"
    damaged.write_bytes(SAMPLE.read_bytes()[:-40])
    error = answer(run(damaged, "--json"), 1)["error"]
    imported = json.loads(CliRunner().invoke(app, ["import", str(damaged), "--json"]).stdout)["error"]
    hints = [each.pop("hint") for each in (error, imported)]  # a salvage is an option of the import only
    assert error == imported
    assert ["--salvage" in hint for hint in hints] == [False, True]
    assert (error["type"], error["line"]) == ("ImportFormatError", 61)


# ---------------------------------------------------------------------------------------------- the picture

SVG = "{http://www.w3.org/2000/svg}"


def drawn(found: strandline.Comparison, name: str = "w") -> tuple[ET.Element, str]:
    text = draw(found, name)
    root = ET.fromstring(text)
    return root, "\n".join(each.text or "" for each in root.iter(f"{SVG}text"))


def test_the_picture_is_well_formed_whatever_the_workflow_is_called(db):
    root, text = drawn(small(db).compare(), "a<b>&\"'\x1b[31m\u202e" + "x" * 99)
    assert root.tag == f"{SVG}svg"
    assert "a<b>&\"'\\x1b[31m\\u202e" in text
    assert (root.find(f"{SVG}title"), root.find(f"{SVG}desc")) != (None, None)
    assert "100%" in text


def test_the_picture_draws_each_compaction_up_to_a_limit(db):
    wf = new_workflow(db)
    wf.append([said(f"Step {number} wrote out/part-{number}.csv") for number in range(SUMMARIES_DRAWN_MAX + 2)])
    keep(db, wf, *((seq, "Parts.") for seq in range(SUMMARIES_DRAWN_MAX + 2)))
    _, text = drawn(wf.compare())
    assert text.count("none needed") == SUMMARIES_DRAWN_MAX * 3 - text.count("none fits")
    assert "and 2 more, in the table" in text


def test_the_picture_of_the_documentation_is_what_the_command_draws(run: Run, tmp_path: Path) -> None:
    run(SAMPLE, "--ledger", "150", "--picture", "kept.svg")
    assert (tmp_path / "kept.svg").read_text() == (ROOT / "docs" / "compare.svg").read_text()


def test_shares_say_what_the_length_is_spent_on(db):
    """More of it for the ledger is less of it for prose; neither makes ours longer than theirs."""
    wf = small(db)
    much = wf.compare(shares=strandline.Shares(segments=0.9, ledger=0.1, tail=0.0)).summaries
    little = wf.compare(shares=strandline.Shares(segments=0.2, ledger=0.8, tail=0.0)).summaries
    for more, less in zip(much, little, strict=True):
        assert more.ours_prose_tokens > less.ours_prose_tokens > 0
        assert max(more.ours_tokens, less.ours_tokens) <= more.theirs_tokens
