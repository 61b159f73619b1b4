"""Law (I9, I10): of a summary that another tool made, each reference of the log is accounted for, and a mandatory fact
that it drops or an approval that nobody gave opens a case, once. What it must not lose can be read beside it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import strandline as sl
from strandline.model.case import CaseKind

RULE = "Never push to the branch main."


@pytest.fixture
def workflow():
    with sl.open(":memory:") as db:
        yield db.tenant("acme").workflow("release")


def _lived(workflow: sl.Workflow) -> None:
    workflow.append(
        [
            sl.constraint("push", RULE, actor="lead"),
            sl.issue("oauth-scope", "The token may write to all repositories."),
            sl.approval("security-review", "Go.", granter="dora"),
            sl.revoke("deploy"),
            sl.artifact("bucket", "bucket-7f3a"),
            sl.message("user", "trc-80ad22 is the trace."),
            sl.pin("trc-80ad22"),
            sl.tool_call("c1", "Bash", {"command": "ls logs/run-7.txt"}),
            sl.tool_result("c1", "logs/run-7.txt"),
            sl.tool_call("c2", "Deploy", {"to": "staging"}),
            sl.abandoned("c2"),
            sl.message("assistant", "Run 7 passed."),
        ]
    )


FAITHFUL = (
    f"{RULE}\nThe token may write to all repositories.\ndora approved security-review.\n\n"
    "The approval of deploy was revoked.\nbucket-7f3a and trc-80ad22 are in use.\nHow the call c2 ended is not known."
)


def test_a_faithful_summary_opens_no_case(workflow: sl.Workflow) -> None:
    _lived(workflow)
    judgement = workflow.judge_foreign(FAITHFUL)
    assert [claim.fact for claim in judgement.dropped_facts] == []
    assert (judgement.reasons, judgement.case_id, workflow.cases()) == ((), None, [])


def test_every_reference_is_verbatim_or_in_the_manifest(workflow: sl.Workflow) -> None:
    """I9: 100 %, with the newest event of each."""
    _lived(workflow)
    judgement = workflow.judge_foreign(FAITHFUL)
    dropped = {one.ref: one.last_seq for one in judgement.dropped}
    assert dropped["logs/run-7.txt"] == 9
    assert "bucket-7f3a" not in dropped
    seen = {ref for event in workflow.events() for ref in (*event.declared, *event.extracted)}
    assert judgement.refs_seen == len(seen)
    assert set(dropped) < seen


@pytest.mark.parametrize(
    ("gone", "reason"),
    [
        (RULE, "constraint push: dropped"),
        ("The token may write to all repositories.", "issue oauth-scope: dropped"),
        ("dora approved security-review.", "approval security-review: dropped"),
        ("The approval of deploy was revoked.", "revocation deploy: dropped"),
        ("bucket-7f3a and", "artifact bucket: dropped"),
        ("c2", "call c2: dropped"),
    ],
)
def test_each_mandatory_fact_that_is_dropped_is_named(workflow: sl.Workflow, gone: str, reason: str) -> None:
    _lived(workflow)
    judgement = workflow.judge_foreign(FAITHFUL.replace(gone, ""), by="test")
    assert judgement.reasons == (reason,)
    (case,) = workflow.cases()
    assert (case.case_id, case.kind, case.blocking) == (judgement.case_id, CaseKind.FOREIGN_SUMMARY, False)
    assert case.detail == {"by": "test", "reasons": [reason], "dropped": len(judgement.dropped)}


def test_a_pin_that_is_dropped_is_named_by_number_and_not_by_its_text(workflow: sl.Workflow) -> None:
    """C31: the texts of references stand in one erasable place, and no case holds one."""
    _lived(workflow)
    judgement = workflow.judge_foreign(FAITHFUL.replace("trc-80ad22", ""))
    assert judgement.reasons[0].startswith("pin ")
    assert "trc" not in str(workflow.cases())


@pytest.mark.parametrize(
    ("said", "rule"),
    [
        ("Ann approved the new logo.", "invented_approval"),
        ("The issue oauth-scope was resolved.", "issue oauth-scope: open_issue_resolved"),
        ("The rule on push was lifted.", "constraint push: constraint_lifted"),
    ],
)
def test_what_nobody_did_opens_a_case(workflow: sl.Workflow, said: str, rule: str) -> None:
    _lived(workflow)
    judgement = workflow.judge_foreign(f"{FAITHFUL} {said}")
    assert rule in judgement.reasons
    assert workflow.cases()[0].case_id == judgement.case_id


def test_a_reference_that_was_never_there_is_told_and_opens_no_case(workflow: sl.Workflow) -> None:
    _lived(workflow)
    judgement = workflow.judge_foreign(f"{FAITHFUL} It stands in bucket-9999zz1.")
    assert [violation.rule for violation in judgement.violations] == ["invented_reference"]
    assert judgement.case_id is None


def test_a_text_that_is_no_summary_opens_a_case(workflow: sl.Workflow) -> None:
    workflow.append(sl.message("user", "hello"))
    assert workflow.judge_foreign("I'm sorry, I can't help with that.").case_id is not None


def test_it_is_asked_once_and_not_again_after_its_answer(workflow: sl.Workflow) -> None:
    _lived(workflow)
    first = workflow.judge_foreign("Nothing happened.")
    assert workflow.judge_foreign("Nothing of note happened.").case_id == first.case_id
    workflow.reconcile(first.case_id, sl.Abandon(), by="ann", why="told the agent")
    assert workflow.judge_foreign("Nothing happened.", through=12).case_id == first.case_id
    assert workflow.cases() == []
    workflow.append(sl.message("user", "go on"))
    assert workflow.judge_foreign("Nothing happened.").case_id != first.case_id


def test_our_own_facts_quoted_are_no_forgery(workflow: sl.Workflow) -> None:
    """Claude Code summarises what was put before it: that text is ours, word for word."""
    _lived(workflow)
    assert workflow.judge_foreign(f"{workflow.carried().facts_text}\n{FAITHFUL}").reasons == ()


def test_the_open_case_blocks_nothing(workflow: sl.Workflow) -> None:
    _lived(workflow)
    workflow.judge_foreign("Nothing happened.")
    workflow.append([sl.note(f"step {number} is done") for number in range(100)])
    assert workflow.compact(budget=1_000).outcome == "activated"


@pytest.mark.parametrize("through", [-1, 13, "3", True])
def test_an_event_that_is_not_there_is_refused(workflow: sl.Workflow, through: object) -> None:
    _lived(workflow)
    with pytest.raises(sl.InvalidInputError):
        workflow.judge_foreign("x", through=through)  # type: ignore[arg-type]
    assert workflow.cases() == []


def test_a_narrow_view_is_refused(workflow: sl.Workflow) -> None:
    """I21: such a summary speaks of all events."""
    _lived(workflow)
    workflow.define_view("publisher", audiences={"release"})
    view = workflow.view("publisher")
    for ask in (view.foreign_summaries, lambda: view.judge_foreign("x")):
        with pytest.raises(sl.InvalidInputError, match="narrow"):
            ask()


# ---------------------------------------------------------------------------------------------- what is carried


def test_facts_and_open_calls_are_carried_whatever_the_budget(workflow: sl.Workflow) -> None:
    _lived(workflow)
    workflow.append(sl.tool_call("c3", "Bash", {"command": "make"}))
    carried = workflow.carried(100)
    for said in (RULE, "oauth-scope", "security-review", "deploy", "bucket-7f3a", "trc-80ad22", "c2"):
        assert said in carried.facts_text
    assert [call.call_id for call in carried.open_calls] == ["c3"]
    assert carried.ledger_text == ""


def test_the_ledger_takes_what_is_left_and_repeats_nothing(workflow: sl.Workflow) -> None:
    _lived(workflow)
    carried = workflow.carried(1_000)
    assert "logs/run-7.txt" in carried.ledger_text
    assert "bucket-7f3a" not in carried.ledger_text
    assert carried.tokens <= 1_000
    assert "logs/run-7.txt" not in workflow.carried(1_000, beside="see logs/run-7.txt").ledger_text


def test_a_narrow_view_carries_what_it_reads(workflow: sl.Workflow) -> None:
    """I21."""
    workflow.append(
        [sl.constraint("a", "Only in staging.", audience="release"), sl.constraint("b", RULE, audience="x")]
    )
    workflow.append(sl.message("user", "see logs/run-7.txt", audience="x"))
    workflow.define_view("publisher", audiences={"release"})
    carried = workflow.view("publisher").carried()
    assert "Only in staging." in carried.facts_text
    assert RULE not in carried.facts_text
    assert "run-7" not in carried.ledger_text


def test_an_imported_summary_is_listed(tmp_path: Path, workflow: sl.Workflow) -> None:
    path = tmp_path / "s.jsonl"
    summary = '{"type":"user","uuid":"u2","isCompactSummary":true,"message":{"content":"all is well"}}'
    path.write_text('{"type":"user","uuid":"u1","sessionId":"s","message":{"content":"hello"}}\n' + summary + "\n")
    workflow.import_transcript(path)
    (foreign,) = workflow.foreign_summaries()
    assert (foreign.text, foreign.through_seq) == ("all is well", 1)
