"""Law (SPEC §1, I13–I16): recovery asks the lineage and no clock; a checkpoint of before a compaction stays dead.

200,000 tokens become at most 12,000; the newest checkpoint by the wall clock is of before that, since the clock was set
back. The process dies in the middle of a write.
"""

from typing import Any

import pytest

from strandline.drill.report import Incident

NAME = "resurrected-checkpoint"


def test_every_promise_is_kept(incident: Incident) -> None:
    assert [check.as_object() for check in incident.checks if not check.ok] == []
    assert incident.ok


def test_without_protection_facts_swap_between_two_compactions(incident: Incident) -> None:
    assert incident.naive == {
        "corrupted": True,
        "lines_back": 2_000,
        "kept_first": ["user's rule", "failed approach"],
        "kept_second": ["commit"],
        "errors": 0,
    }


def test_the_figures_are_those_of_the_incident(got: dict[str, Any]) -> None:
    assert got["tokens of the working set"] == 200_000
    assert got["the compacted context fits 12,000 tokens"] is True


def test_the_clock_says_otherwise_than_the_lineage(got: dict[str, Any]) -> None:
    assert got["the newest entry, by the wall clock, is a"] == "checkpoint"
    assert got["the newest entry, by the lineage, is a"] == "compaction"


def test_recovery_replays_the_compaction(got: dict[str, Any]) -> None:
    assert got["recovery answers"] == "replay"
    assert got["the state that is restored"] is None
    assert got["the newest old state, handed over as stale, is of turn"] == 5
    assert got["it is the compaction's output, byte for byte"] is True


@pytest.mark.parametrize("fact", ["commit", "user's rule", "failed approach"])
def test_no_fact_changes_sides(got: dict[str, Any], fact: str) -> None:
    assert got[f"verbatim after both compactions: {fact}"] == [True, True]


def test_a_checkpoint_of_after_the_compaction_is_restored(got: dict[str, Any]) -> None:
    assert got["control: recovery answers"] == "restore"
    assert got["control: of turn"] == 6
    assert got["control: with the state"] == {"step": 2_039}


def test_a_damaged_summary_is_not_replaced_in_silence(got: dict[str, Any]) -> None:
    assert got["damage: recovery raises"] == "SummaryReconciliationError"
    assert got["damage: for the reason"] == "corrupt_summary"
