"""Law (I20, C22): a rewind takes back no revocation and gives back no used approval; what stood on a branch
that was left counts no more.
"""

import pytest

import strandline
from tests.unit.test_engine_guard import REVIEW, approve, consume, denial, refusal
from tests.unit.test_engine_stage import new_workflow

ODD = {"by": "lead", "why": "a wrong turn"}


@pytest.fixture
def wf(db):
    return new_workflow(db)


def test_a_revocation_is_not_rewound(db, wf):
    wf.append([approve(), strandline.note("x")])
    permit = wf.guard("publish", REVIEW)
    wf.append(strandline.revoke("security-review"))
    wf.rewind(2, **ODD)
    assert "was revoked" in str(denial(wf, REVIEW))
    assert "was revoked" in refusal(db, wf, permit)


def test_a_used_approval_stays_used(db, wf):
    wf.append([approve(single_use=True), strandline.note("x"), strandline.note("y")])
    consume(db, wf, wf.guard("publish", REVIEW))
    wf.rewind(2, **ODD)
    assert "was used up by permit" in str(denial(wf, REVIEW))
    assert wf.verify().ok


def test_an_approval_that_was_left_behind_is_none(db, wf):
    wf.append([strandline.note("x"), approve()])
    permit = wf.guard("publish", REVIEW)
    wf.rewind(1, **ODD)
    assert str(denial(wf, REVIEW)).endswith("'security-review' is not approved")
    assert "no longer stands" in refusal(db, wf, permit)


def test_a_resolution_that_was_left_behind_resolves_nothing(db, wf):
    wf.append([strandline.issue("oauth", "x"), strandline.note("x"), strandline.resolve("oauth")])
    permit = wf.guard("publish", [strandline.resolved("oauth")])
    wf.rewind(2, **ODD)
    assert "the issue 'oauth' [event 1] is open" in refusal(db, wf, permit)
    denial(wf, [strandline.resolved("oauth")])
    wf.append(strandline.resolve("oauth"))
    assert wf.guard("publish", [strandline.resolved("oauth")]).facts[0].seq == wf.basis().revision


def test_what_was_opened_and_resolved_on_a_branch_that_was_left_never_was(db, wf):
    first = [strandline.issue("oauth", "x"), strandline.resolve("oauth")]
    wf.append([*first, strandline.note("x"), *first, strandline.issue("b", "x"), strandline.resolve("b")])
    assert wf.guard("publish", [strandline.resolved("oauth")]).facts[0].seq == 5
    permit = wf.guard("publish", [strandline.no_open_issue("b")])
    wf.rewind(3, **ODD)
    assert wf.guard("publish", [strandline.resolved("oauth")]).facts[0].seq == 2
    assert "was never opened" in str(denial(wf, [strandline.resolved("b")]))
    assert wf.guard("publish", [strandline.no_open_issue("b")]).facts[0].seq == 0
    assert "what holds now" in refusal(db, wf, permit)


def test_an_open_issue_that_was_left_behind_is_none(db, wf):
    wf.append([strandline.note("x"), strandline.issue("oauth", "x")])
    wf.rewind(1, **ODD)
    wf.append(strandline.note("y"))
    assert wf.guard("publish", [strandline.no_open_issue(), strandline.no_open_issue("oauth")]).facts[1].seq == 0
    denial(wf, [strandline.resolved("oauth")])


def test_what_holds_again_is_the_fact_that_it_was(db, wf):
    """A permit from before the range that was left behind is as good as it was."""
    wf.append([approve(), strandline.constraint("rule", "x"), strandline.note("x")])
    permit = wf.guard("publish", [*REVIEW, strandline.in_force("rule")])
    wf.append([approve(), strandline.constraint("rule", "y")])
    assert "was renewed" in refusal(db, wf, permit)
    wf.rewind(3, **ODD)
    assert consume(db, wf, permit).state == "consumed"
    assert wf.verify().ok
