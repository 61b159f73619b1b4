"""Items of a framework come back out of the log verbatim, in its order, whatever stands beside them (I1, I4, C31)."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator

import pytest

import strandline as sl
from strandline.integrations import items


@pytest.fixture
def workflow() -> Iterator[sl.Workflow]:
    with sl.open(":memory:") as db:
        yield db.tenant("acme").workflow("w")


def item(number: int, *texts: str) -> list[sl.NewEvent]:
    parts = [(sl.message("user", text), {"text": text, "n": 1.5}) for text in texts]
    return items.item_events(f"fw:{number}", {"number": number}, parts)


def test_an_item_comes_back_verbatim_and_the_memory_reads_its_text(workflow: sl.Workflow) -> None:
    items.append_items(workflow, item(1, "Never push to main.", "two"))
    workflow.append(sl.note("somebody else's"))
    items.append_items(workflow, item(2, "three"))
    one, two = items.read_items(workflow, "fw")
    assert (one.item_id, one.frame, one.seqs) == ("1", {"number": 1}, (1, 2))
    assert one.parts == ({"text": "Never push to main.", "n": 1.5}, {"text": "two", "n": 1.5})
    assert two.item_id == "2"
    assert [found.text for found in workflow.found_constraints()] == ["Never push to main."]
    assert [message["content"] for message in workflow.context().messages("openai")][:2] == [
        "Never push to main.",
        "two",
    ]


def test_items_of_another_framework_are_passed_by(workflow: sl.Workflow) -> None:
    items.append_items(workflow, item(1, "one"))
    assert list(items.read_items(workflow, "other")) == []


def test_an_item_may_hold_no_part(workflow: sl.Workflow) -> None:
    items.append_items(workflow, items.item_events("fw:1", {"only": "frame"}, [(sl.note("nothing said"), None)]))
    (one,) = items.read_items(workflow, "fw")
    assert (one.frame, one.parts) == ({"only": "frame"}, ())


def test_sent_again_it_adds_nothing_and_other_content_is_refused(workflow: sl.Workflow) -> None:
    items.append_items(workflow, item(1, "one"))
    assert items.append_items(workflow, item(1, "one"), expected_revision=0).added == 0
    with pytest.raises(sl.IdempotencyConflictError):
        items.append_items(workflow, item(1, "other"))
    with pytest.raises(sl.StaleRevisionError):
        items.append_items(workflow, item(2, "two"), expected_revision=0)


def test_what_is_erased_of_an_item_is_erased(workflow: sl.Workflow) -> None:
    items.append_items(workflow, item(1, "one", "Ann's address"))
    workflow.erase(events=[2], by="ann", why="asked for")
    (one,) = items.read_items(workflow, "fw")
    assert one.parts == ({"text": "one", "n": 1.5}, None)
    assert b"address" not in b"".join(workflow.export())
    workflow.erase(events=[1], by="ann", why="asked for")
    (one,) = items.read_items(workflow, "fw")
    assert (one.frame, one.parts, one.role) == (None, (None, None), "user")


def test_a_result_of_an_unknown_call_is_kept_and_says_so(workflow: sl.Workflow) -> None:
    orphan = sl.tool_result("c9", {"ok": True})
    items.append_items(workflow, items.item_events("fw:1", {}, [(orphan, {"id": "c9"})]))
    (one,) = items.read_items(workflow, "fw")
    assert one.parts == ({"id": "c9"},)
    assert "'c9', which this log does not hold: {\"ok\": true}" in workflow.events()[0].text


def test_reading_may_begin_later_and_never_within_an_item(workflow: sl.Workflow) -> None:
    items.append_items(workflow, item(1, "one", "two"))
    items.append_items(workflow, item(2, "three"))
    assert [one.item_id for one in items.read_items(workflow, "fw", from_seq=2)] == ["2"]


def test_what_a_rewind_leaves_behind_is_no_item_any_more(workflow: sl.Workflow) -> None:
    items.append_items(workflow, item(1, "one"))
    items.append_items(workflow, item(2, "two"))
    workflow.rewind(1, by="ann", why="wrong way")
    assert [one.item_id for one in items.read_items(workflow, "fw")] == ["1"]


@pytest.mark.parametrize(("watermark", "last"), [(0, None), (1, None), (2, "1"), (3, "1"), (4, "2"), (5, "2")])
def test_the_last_item_that_a_summary_speaks_for_whole(workflow: sl.Workflow, watermark: int, last: str | None) -> None:
    items.append_items(workflow, item(1, "one", "two"))
    items.append_items(workflow, item(2, "three", "four"))
    workflow.append(sl.note("somebody else's"))
    assert items.last_covered(workflow, "fw", watermark) == last


def test_the_active_summary_is_read_whole(workflow: sl.Workflow) -> None:
    assert items.active_summary(workflow) == items.ActiveSummary(text="", watermark=0, generation=0)
    items.append_items(workflow, [event for n in range(200) for event in item(n, f"run {n} wrote logs/run-{n}.txt")])
    outcome = workflow.compact(budget=800)
    summary = items.active_summary(workflow)
    assert (summary.watermark, summary.generation) == (outcome.watermark, 1)
    assert "Summary of events 1 to" in summary.text


@pytest.mark.parametrize(
    ("guest", "needed", "extra"),
    [
        ("google_adk", "google.adk", "google-adk"),
        ("agent_framework", "agent_framework", "agent-framework"),
        ("strands", "strands", "strands"),
    ],
)
def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch, guest: str, needed: str, extra: str) -> None:
    begin = (f"{needed}.", f"strandline.integrations.{guest}")
    for name in [name for name in sys.modules if name == needed or name.startswith(begin)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, needed, None)
    with pytest.raises(sl.InvalidInputError, match="which is not installed") as caught:
        importlib.import_module(f"strandline.integrations.{guest}")
    assert f"[{extra}]" in caught.value.hint
