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
    assert got["the handle stands in the context"] is False
    assert got["the manifest says that it was last seen in event"] == 3
    assert got["recovery raises"] == "SummaryReconciliationError"
    assert got["it names the missing reference"].startswith("bucket-")
    assert got["it says where that was last seen"] == {"seq": 3, "event_kind": "tool_result", "generation_dropped": 1}
    assert (got["and the generation of the summary"], got["and the turn of the checkpoint"]) == (1, 8)
    assert got["calls to the service before it raised"] == 0
