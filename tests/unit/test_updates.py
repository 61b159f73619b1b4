"""Law: of two statements of one thing the newest stands; what may be of another thing, or is not sure, replaces none.

Both sides are checked over pairs of sentences, each pair amid other talk, and through a store: what is stale is neither
quoted nor carried by the ledger, stays in log and manifest, and the line that took its place names its event.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest

import strandline as sl
from strandline.model.event import EventKind, Role, SourceEvent
from strandline.rules.references import extract
from strandline.rules.shapes import read_statement
from strandline.rules.updates import STATEMENTS_MAX, changes, stale_references

TALK = (
    "The importer runs again.",
    "Let us look at the queue of the workers first.",
    "Pairing on the flaky test in the checkout module.",
    "The dashboard shows latency now.",
)


def event(seq: int, text: str, kind: EventKind = EventKind.MESSAGE, **fields: object) -> SourceEvent:
    role = Role.USER if kind is EventKind.MESSAGE else None
    made = SourceEvent(seq=seq, kind=kind, role=role, actor="", text=text, tokens=1, extracted=tuple(extract(text)))
    return made._replace(**fields)


def talk(*said: str) -> list[SourceEvent]:
    """Return user messages with other talk before, between and behind them."""
    texts = [text for one in said for text in (*TALK, one)] + [*TALK]
    return [event(seq, text) for seq, text in enumerate(texts, 1)]


def replaced(events: Sequence[SourceEvent]) -> list[str]:
    """Return what is stale, as it stands."""
    return [events[seq - 1].text[one.start : one.end] for seq, found in changes(events).stale.items() for one in found]


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("FACT: The cap is $500 in total.", "FACT: Total spending is capped at $600."),
        ("FACT: The launch date is 2027-03-04.", "FACT: Launch moved to March 11."),
        ("NOTE: Region of the database: eu-north-3", "NOTE: The database is hosted in the us-east-1 region."),
        ("STATE: The next step is writing the importer.", "STATE: Next up: load tests."),
        ("STATE: We are in phase 2 of 5.", "STATE: Migration is at phase 3 of 5 of the plan, phase by phase."),
        ("RULE: Only Ada Byron may approve a deploy.", "RULE: A deploy needs approval by Mary Shelley."),
        ("- FACT: The port is 8080.", "* FACT: The port is 9090."),
        ("The order id is 9502126.", "Sorry, that was the wrong one. The order id should be 9502127 instead."),
        ("The staging host is https://a1.example.org.", "The staging host is https://b2.example.org."),
        ("The status bar of my phone is at 2G.\nIt is slow.", "The status bar of my phone now says 5G."),
    ],
)
def test_the_newest_value_of_a_thing_replaces_an_older_one(earlier: str, later: str) -> None:
    events = talk(earlier, later)
    stale = replaced(events)
    assert len(stale) == 1
    assert stale[0] in earlier
    assert changes(events).replaces == {10: 5}
    assert replaced(talk(later)) == []


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        pytest.param(
            "FACT: The prod host is https://a1.example.org.",
            "FACT: The staging host is https://b2.example.org.",
            id="scope",
        ),
        pytest.param(
            "FACT: The project spending is $500.", "FACT: Trip spending must stay below $300.", id="of another"
        ),
        pytest.param(
            "FACT: Ada leads the design reviews on Monday.", "FACT: Ada leads the deploys on Friday.", id="one"
        ),
        pytest.param(
            "RULE: Never send payroll data outside.", "RULE: Never send health data outside.", id="prohibition"
        ),
        pytest.param("FACT: ticket 12 is closed.", "FACT: ticket 13 is closed.", id="the value is what it speaks of"),
        pytest.param("Step 3 is done.", "Step 4 is done.", id="steps"),
        pytest.param("FACT: The port is 8080.", "FACT: The port could be 9090.", id="unsure"),
        pytest.param(
            "The staging port is 8080.", "Bob proposes that the staging port is changed to 9090.", id="proposed"
        ),
        pytest.param("FACT: The port is 8080.", "FACT: Is the port 9090?", id="question"),
        pytest.param("FACT: The port is 8080.", "FACT: The port is not 9090.", id="denied"),
        pytest.param("FACT: The port is 8080.", "FACT: There is also a second port, 9090.", id="beside it"),
        pytest.param("FACT: The port is 8080.", "RULE: The port is 9090.", id="another heading"),
        pytest.param("FACT: The port is 8080, the host h-1.", "FACT: The port is 9090.", id="less than all of it"),
        pytest.param("The importer read 500 rows.", "The importer read 700 rows.", id="a story"),
        pytest.param("FACT: The port is 8080.", "FACT: The port is 8080.", id="the same"),
    ],
)
def test_what_may_be_of_another_thing_leaves_both_standing(earlier: str, later: str) -> None:
    assert replaced(talk(earlier, later)) == []


def test_of_a_line_only_the_sentence_that_was_replaced_is_stale() -> None:
    assert replaced(talk("FACT: The cap is $500. Never push to main.", "FACT: The cap is $600.")) == [
        "The cap is $500."
    ]


def test_lines_of_one_message_replace_none_of_each_other() -> None:
    assert replaced(talk("FACT: The limit of reads is 5.\nFACT: The limit of all reads is 6.")) == []


def test_what_was_replaced_twice_is_replaced_by_the_next_one_each() -> None:
    events = talk("FACT: The port is 1001.", "FACT: The port is 1002.", "FACT: The port is 1003.")
    assert changes(events).replaces == {10: 5, 15: 10}


def test_what_tools_and_the_agent_say_replaces_nothing() -> None:
    said = "FACT: The port is 9090."
    assert replaced([event(1, "FACT: The port is 8080."), event(2, said, EventKind.TOOL_RESULT)]) == []
    assert replaced([event(1, "FACT: The port is 8080."), event(2, said, role=Role.ASSISTANT)]) == []
    assert replaced([event(1, "FACT: The port is 8080.", EventKind.NOTE), event(2, said, EventKind.NOTE)]) != []


def test_of_declared_facts_with_a_key_the_newest_stands_whatever_the_words() -> None:
    first = event(1, "SQLite, for now.", EventKind.DECISION, subject="store")
    second = event(2, "Everything goes to PostgreSQL 18.", EventKind.DECISION, subject="store")
    other = event(3, "SQLite, for now.", EventKind.DECISION, subject="cache")
    assert replaced([first, second, other]) == ["SQLite, for now."]


def test_a_reference_is_stale_only_where_nothing_else_holds_it() -> None:
    events = talk("FACT: The host is https://a1.example.org.", "FACT: The host is https://b2.example.org.")
    assert stale_references(events) == {"https://a1.example.org"}
    later = event(99, "ssh https://a1.example.org", EventKind.TOOL_CALL)
    assert stale_references([*events, later]) == set()
    assert stale_references([event(0, "See https://a1.example.org.", EventKind.TOOL_RESULT), *events]) == {
        "https://a1.example.org"
    }


def test_what_is_stale_is_told_by_no_summary_and_stays_in_log_and_manifest() -> None:
    with sl.open(":memory:") as db:
        workflow = db.tenant("acme").workflow("release")
        workflow.append([sl.message("user", text) for text in TALK])
        workflow.append(sl.message("user", "FACT: The staging host is https://a1.example.org."))
        workflow.append(sl.decision("Deploy to bucket-11aa.", subject="bucket"))
        workflow.append([sl.message("assistant", f"Run {n} passed, see logs/run-{n}.txt.") for n in range(40)])
        workflow.append(sl.message("user", "FACT: The host of staging is https://b2.example.org."))
        workflow.append(sl.decision("Deploy to bucket-22bb.", subject="bucket"))
        outcome = workflow.compact(budget=2_000, through=48)
        assert outcome.outcome == "activated", outcome
        text = workflow.context(budget=2_000).text
        assert "https://a1.example.org" not in text
        assert "bucket-11aa" not in text
        assert "[5→47] user/message: FACT: The host of staging is https://b2.example.org." in text
        assert "[6→48] /decision: Deploy to bucket-22bb." in text
        dropped = {entry.ref for entry in workflow.manifest().dropped}
        assert {"https://a1.example.org", "bucket-11aa"} <= dropped
        assert workflow.recall("https://a1.example.org")[0].text == "FACT: The staging host is https://a1.example.org."
        assert db.verify().ok


@pytest.mark.parametrize(
    "text", ["", "…", "?!", "a", "日本語の文です。", "\ud800 x y z", "1" * 240, "x" * 241, ". . . ."]
)
def test_any_text_can_be_read(text: str) -> None:
    statement = read_statement(text)
    assert statement is None or statement.text == text
    assert changes([event(1, text), event(2, f"{text} now")]).stale == {}


@pytest.mark.parametrize(
    "text",
    ["FACT: the port of server {n} is now {n}.", "FACT: A is {n} now. " * 11, "FACT: " + "a-1 " * 50 + "{n} now"],
)
def test_hostile_logs_are_compared_in_bounded_time(text: str) -> None:
    events = [event(n, text.replace("{n}", str(n)), extracted=()) for n in range(2 * STATEMENTS_MAX)]
    started = time.process_time()
    changes(events)
    assert time.process_time() - started < 20.0
