"""Law (SPEC §1, I9, I15–I18): a handle that a compaction dropped is missed, by name, before the next turn begins."""

from typing import Any

from strandline.drill.report import Incident

NAME = "lost-handle"


def test_every_promise_is_kept(incident: Incident) -> None:
    assert [check.as_object() for check in incident.checks if not check.ok] == []
    assert incident.ok


def test_without_protection_the_agent_goes_on_with_another_handle(incident: Incident) -> None:
    first, second = incident.naive.pop("handles")  # type: ignore[misc]
    assert first != second
    assert incident.naive == {
        "corrupted": True,
        "create_calls": 2,
        "turns": 40_000,
        "reports_not_where_the_agent_says": 8,
        "errors": 0,
    }


def test_recovery_names_what_is_missing_before_anything_is_called(got: dict[str, Any]) -> None:
    assert got["the handle is gone from the context"] is True
    assert got["the manifest says that it was last seen in event"] == 3
    assert got["recovery raises"] == "SummaryReconciliationError"
    assert got["it names the missing reference"].startswith("bucket-")
    assert got["it says where that was last seen"] == {"seq": 3, "event_kind": "tool_result", "generation_dropped": 1}
    assert (got["and the generation of the summary"], got["and the turn of the checkpoint"]) == (1, 8)
    assert got["calls to the service before it raised"] == 0
    assert got["events appended before it raised"] == 0


def test_one_case_is_open_and_blocks_the_next_compaction(got: dict[str, Any]) -> None:
    (case_id,) = got["the cases that are open"]
    assert got["a compaction meanwhile ends with exit code"] == 3
    assert got["it names the same case"] == case_id


def test_after_the_answer_the_agent_goes_on_with_the_old_handle(got: dict[str, Any]) -> None:
    assert got["the answer ends with exit code"] == 0
    assert (got["recovery answers now"], got["with the state of turn"]) == ("restore", 8)
    assert got["the service takes the next report with status"] == [200]
    assert got["second form: the handle stands in the context after the next compaction"] is True


def test_the_same_request_in_other_words_is_not_run_again(got: dict[str, Any]) -> None:
    assert got["it is answered as"] == "likely_repeat"
    assert got["calls to the service for it"] == 0
    assert got["buckets created in all: one for the reports, one for the archive"] == 2


def test_a_foreign_checkpoint_of_half_a_summary_is_refused(got: dict[str, Any]) -> None:
    assert got["second form: recovery of the planner raises"] == "CompactionLineageError"
    assert got["second form: the agent's own checkpoint of that time, which can't be torn, gives"] == "restore"
