"""Law (SPEC §1, I5–I8, I20): a summary that was not finished in time is read by nobody, and no event is lost.

24,000 tokens, a validated summary through 150, events 151–175; a compaction to 6,000 tokens through 175 times out after
4 s, really; events 176–180 commit meanwhile. Strict refuses 175 and activates 180; by default 175 is activated, with
176–180 behind it. Until then every reader gets the summary through 150 and 151–180.
"""

from typing import Any

from strandline.drill.report import Incident

NAME = "half-summary"


def test_every_promise_is_kept(incident: Incident) -> None:
    assert [check.as_object() for check in incident.checks if not check.ok] == []
    assert incident.ok


def test_without_protection_the_release_is_published_with_the_issue_open(incident: Incident) -> None:
    assert incident.naive == {
        "corrupted": True,
        "published_with_open_issue": True,
        "memory_knows_the_issue": False,
        "events_lost": 88,
        "errors": 0,
    }


def test_the_figures_are_those_of_the_incident(got: dict[str, Any]) -> None:
    assert got["tokens of events 1–175, as bytes/3 counts them"] == 24_000
    assert got["the summary that was active before covers events 1 to"] == 150


def test_while_it_hangs_nobody_reads_a_word_of_it(got: dict[str, Any]) -> None:
    assert got["default: while it hangs, the summary that is read covers events 1 to"] == 150
    assert got["default: while it hangs, events verbatim behind it"] == "151–180"
    assert got["default: while it hangs, a context is free of words of the half summary"] is True


def test_strict_refuses_175_and_activates_180(got: dict[str, Any]) -> None:
    assert got["strict: the compaction through 175 ends as"] == "conflict"
    assert got["strict: summaries through 175 stored as active"] == 0
    assert got["strict: the summary covers events 1 to"] == 180


def test_by_default_175_is_activated_with_the_tail_behind_it(got: dict[str, Any]) -> None:
    assert got["default: what the first attempt failed of"] == "the summarizer gave no draft within 4 s"
    assert got["default: the summary covers events 1 to"] == 175
    assert got["default: events verbatim behind it"] == "176–180"


def test_what_comes_late_leaves_no_trace_and_nothing_is_lost(got: dict[str, Any]) -> None:
    for mode in ("strict", "default"):
        assert got[f"{mode}: the pointer stays where it was"] is True
        assert got[f"{mode}: places in the store that hold words of it"] == 0
        assert got[f"{mode}: events lost of 180"] == 0


def test_the_publisher_acts_on_events_and_once(got: dict[str, Any]) -> None:
    assert got["default: while the issue is open, the publisher is denied a permit"] is True
    assert got["default: publications while the issue was open"] == 0
    assert got["default: the permit then is"] == "granted"
    assert got["default: it publishes twice, which is answered as"] == "ran, replayed"
    assert got["default: publications then"] == 1
