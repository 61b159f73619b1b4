"""Law (I20, C22): a family of forks shares permits and used approvals; what an ancestor revokes is revoked in all."""

import pytest

import strandline
from tests.unit.test_engine_guard import REVIEW, approve, consume, denial, refusal
from tests.unit.test_engine_stage import new_workflow

ODD = {"by": "lead", "why": "a wrong turn"}


@pytest.fixture
def wf(db):
    return new_workflow(db)


def fork_of(db, wf, at=None):
    fork = new_workflow(db)
    wf.fork(at, fork.name, **ODD)
    return fork


def test_an_inherited_approval_counts_and_is_named_by_the_log_that_holds_it(db, wf):
    wf.append([approve(), strandline.issue("oauth", "x"), strandline.resolve("oauth")])
    fork = fork_of(db, wf)
    grandchild = fork_of(db, fork)
    fork.append(strandline.note("mine"))
    for here in (fork, grandchild):
        permit = here.guard("publish", [*REVIEW, strandline.resolved("oauth"), strandline.no_open_issue()])
        assert [(fact.workflow, fact.seq) for fact in permit.facts] == [(wf.name, 1), (wf.name, 3), ("", 0)]
        assert consume(db, here, permit).workflow == here.name
    assert wf.permits() == fork.permits() == grandchild.permits()
    assert all(each.verify().ok for each in (wf, fork, grandchild))


def test_a_single_use_is_used_up_for_the_whole_family(db, wf):
    wf.append(approve(single_use=True))
    fork = fork_of(db, wf)
    sibling = fork_of(db, wf)
    permits = [(each, each.guard("publish", REVIEW)) for each in (wf, fork, sibling)]
    consume(db, fork, permits[1][1])
    for each, permit in (permits[0], permits[2]):
        assert "was used up by permit" in refusal(db, each, permit)
        assert "was used up by permit" in str(denial(each, REVIEW))
    fork.append(approve(single_use=True))
    assert fork.guard("publish", REVIEW).facts[0].workflow == fork.name
    assert "was used up" in str(denial(wf, REVIEW))
    assert all(each.verify().ok for each in (wf, fork, sibling))


def test_a_revocation_of_the_parent_reaches_its_forks(db, wf):
    """A fork from before a revocation brings no approval back; a sibling's revocation is its own."""
    wf.append([approve(), strandline.note("x")])
    before = fork_of(db, wf, 1)
    grandchild = fork_of(db, before)
    sibling = fork_of(db, wf, 2)
    permit = grandchild.guard("publish", REVIEW)
    sibling.append(strandline.revoke("security-review"))
    assert grandchild.guard("publish", REVIEW).state == "granted"
    wf.append(strandline.revoke("security-review"))
    late = fork_of(db, wf, 2)
    for each in (before, grandchild, late):
        assert f"was revoked [event 3 of '{wf.name}']" in str(denial(each, REVIEW))
    assert f"was revoked [event 3 of '{wf.name}']" in refusal(db, grandchild, permit)
    grandchild.append(approve())
    assert grandchild.guard("publish", REVIEW).state == "granted"
    denial(before, REVIEW)


def test_a_permit_of_the_parent_is_none_of_the_fork(db, wf):
    wf.append(approve())
    permit = wf.guard("publish", REVIEW)
    fork = fork_of(db, wf)
    assert "the permit is for workflow" in refusal(db, fork, permit)
    assert consume(db, wf, permit).state == "consumed"


def test_an_approval_that_was_renewed_before_the_fork_counts_in_it(db, wf):
    wf.append([approve(), strandline.revoke("security-review"), approve(key="again")])
    fork = fork_of(db, wf)
    assert [fact.seq for fact in fork.guard("publish", REVIEW).facts] == [3]
