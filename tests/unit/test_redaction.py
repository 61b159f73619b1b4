"""Law: a secret stands in the log alone. What is derived from the log holds a mark in its place (C12, I9)."""

from __future__ import annotations

import json
import sqlite3

import pytest

import strandline
from strandline.cli.output import plain
from strandline.model.candidate import CitedClaim, Draft
from tests.unit.test_engine_stage import new_workflow, open_store, transaction
from tests.unit.test_secrets import AWS, GITHUB, JWT, OPENAI

PASSWORD = "hunter2x"
SECRETS = (AWS, GITHUB, JWT, OPENAI, PASSWORD)
DERIVED = ("summary", "segment", "dropped_ref", "ref_block", "ref_key", "candidate", "attempt", "lineage", "case_file")
URL = f"postgres://app:{PASSWORD}@db.internal:5432/orders"


class Told:
    """A hook that keeps what it is told."""

    def __init__(self) -> None:
        self.said: list[object] = []

    def emit(self, name: str, details: object) -> None:
        self.said.append((name, details))


def say(wf: strandline.Workflow) -> None:
    """Put secrets wherever an event can hold text."""
    wf.append(
        [
            strandline.message("user", f"Deploy with {GITHUB}; never use {OPENAI} in tests. Ticket OPS-4711."),
            strandline.constraint("db", f"Use {URL} only for reads."),
            strandline.tool_call("c1", "http_get", {"url": "https://x.example", "headers": {"Authorization": JWT}}),
            strandline.tool_result("c1", json.dumps({"api_key": AWS, "id": "srv-81723"})),
            strandline.decision(f"The deploy token {GITHUB} is rotated weekly."),
            strandline.message("assistant", "Done. " + "More words that fill the window. " * 60),
            strandline.message("user", "Go on, please. " + "And more words to fill it. " * 20),
            strandline.message("assistant", "I went on."),
        ]
    )


def leaks(value: object) -> list[str]:
    text = value if isinstance(value, str) else json.dumps(plain(value), default=str, ensure_ascii=False)
    return [secret for secret in SECRETS if secret in text]


def test_nothing_that_is_derived_holds_a_secret(db):
    wf = new_workflow(db)
    say(wf)
    outcome = wf.compact(budget=700)
    assert outcome.outcome is strandline.CompactionResult.ACTIVATED, outcome
    assert outcome.refs_unaccounted == 0
    summary = outcome.summary
    assert leaks(outcome) == []
    assert "REDACTED-password" in summary.anchors_text
    assert "db.internal" in summary.anchors_text, "what is no secret stays"
    assert leaks(wf.manifest()) == []
    assert leaks(list(wf.lineage())) == []
    assert wf.verify().ok


def test_the_log_keeps_every_byte(db):
    wf = new_workflow(db)
    say(wf)
    wf.compact(budget=700)
    texts = json.dumps([plain(event.payload) or event.text for event in wf.events()])
    assert {secret for secret in SECRETS if secret in texts} == set(SECRETS)


def test_a_redacted_reference_is_accounted_for_without_its_value(db):
    wf = new_workflow(db)
    say(wf)
    wf.compact(budget=700)
    for secret in SECRETS:
        assert wf.recall(secret) == [], "it is no reference"
    hits = wf.recall("REDACTED-token")
    assert [hit.seq for hit in hits] == [5, 1]
    assert GITHUB in hits[0].text, "recall quotes the log"


def test_a_summarizer_is_shown_no_secret(db):
    wf = new_workflow(db)
    say(wf)
    shown: list[object] = []

    def draft(request: strandline.SummaryRequest) -> str:
        shown.append([plain(event._asdict()) for event in request.events] + list(request.anchors))
        return "The deploy token was named."

    outcome = wf.compact(budget=700, summarizer=draft)
    assert outcome.outcome is strandline.CompactionResult.ACTIVATED, outcome
    assert shown
    assert leaks(json.dumps(plain(shown), default=str)) == []


@pytest.mark.parametrize("text", [f"The token is {GITHUB}.", f"Connect to {URL}.", "password: an0ther-one"])
def test_a_draft_that_holds_a_secret_never_activates(db, text):
    wf = new_workflow(db)
    say(wf)
    outcome = wf.compact(budget=700, summarizer=lambda request: text, fallback=False)
    assert outcome.outcome is not strandline.CompactionResult.ACTIVATED
    assert {v.rule for attempt in outcome.attempts for v in attempt.verdict.violations} == {"secret"}
    assert leaks(outcome) == []
    assert "an0ther-one" not in json.dumps(plain(outcome), default=str)


def test_a_claim_of_a_draft_that_holds_a_secret_is_refused_and_kept_nowhere(db):
    """A draft that cites keeps its claims, and what was said of them, beside its text."""
    wf = new_workflow(db)
    say(wf)
    claim = CitedClaim(text=f"The token is {GITHUB}.", seqs=(1,))
    draft = Draft(text="Work went on.", claims=(claim,), model=f"model {GITHUB}")
    outcome = wf.compact(budget=700, summarizer=lambda request: draft, fallback=False)
    assert {v.rule for attempt in outcome.attempts for v in attempt.verdict.violations} == {"secret"}
    with transaction(db, wf) as tx:
        attempts = [tx.jobs.attempts(candidate.candidate_id) for candidate in tx.jobs.all_candidates()]
    assert attempts
    assert leaks((outcome, attempts)) == []


@pytest.mark.parametrize("secret", SECRETS[:4])
def test_a_declared_secret_is_refused_and_not_repeated(db, secret):
    wf = new_workflow(db)
    with pytest.raises(strandline.InvalidInputError, match="holds a secret") as refused:
        wf.append(strandline.message("user", "x", refs=[secret]))
    assert secret not in str(refused.value)
    with pytest.raises(strandline.InvalidInputError, match="subject holds a secret"):
        wf.append(strandline.constraint(f"use {secret}", "x"))
    assert wf.events() == []


def test_what_watches_is_told_no_secret(tmp_path):
    told = Told()
    with open_store("memory", tmp_path, hooks=[told]) as db:
        wf = new_workflow(db)
        say(wf)

        def breaks(request: strandline.SummaryRequest) -> str:
            raise strandline.MalformedDraftError(f"401: incorrect key {OPENAI}")

        outcome = wf.compact(budget=700, summarizer=breaks)
        assert leaks(outcome) == []
        wf.compact(budget=700)
        assert told.said
        assert leaks([(name, dict(details)) for name, details in told.said]) == []


def test_no_derived_row_holds_the_bytes_of_a_secret(tmp_path):
    with open_store("sqlite", tmp_path) as db:
        wf = new_workflow(db)
        say(wf)
        wf.compact(budget=700, summarizer=lambda request: f"Use {GITHUB}.")
        wf.compact(budget=700)
    rows = sqlite3.connect(tmp_path / "store.db")
    for table in DERIVED:
        for row in rows.execute(f"SELECT * FROM {table}"):
            raw = b"\n".join(value if isinstance(value, bytes) else str(value).encode() for value in row)
            assert [secret for secret in SECRETS if secret.encode() in raw] == [], table
    rows.close()


def test_a_kind_that_is_switched_off_is_kept(tmp_path):
    rules = strandline.ReferenceRules(off={"password"})
    with open_store("memory", tmp_path, references=rules) as db:
        wf = new_workflow(db)
        say(wf)
        outcome = wf.compact(budget=700)
        assert URL in outcome.summary.anchors_text
        assert GITHUB not in json.dumps(plain(outcome), default=str)
