"""Law (SPEC §2 register, I8, I21): the register is the fold of the log into the facts that hold now.

Checked on both stores by what stands after each sequence of events, and by generated logs against an oracle of calls.
"""

import pytest
from hypothesis import given

import strandline
from tests.unit.test_engine_stage import bounded, log_of, logs, new_workflow, standing

CALL, RESULT, SAY = strandline.tool_call, strandline.tool_result, strandline.message


@pytest.fixture
def wf(db):
    return new_workflow(db)


def calls(db, wf) -> dict[int, tuple[str, str]]:
    """Return the calls in the register: id and state by the seq of the call."""
    return {seq: (subject, state) for kind, subject, _, state, seq in standing(db, wf) if kind == "call"}


def facts(db, wf, kind: str) -> set[tuple[str, str, int]]:
    return {(subject, holder, seq) for k, subject, holder, _, seq in standing(db, wf) if k == kind}


# ---------------------------------------------------------------------------------------------- calls


def test_a_call_is_open_until_its_result(db, wf):
    """I8: answered calls leave the register; the result is bound to its call."""
    wf.append([CALL("c1", "fetch", {}), CALL("c2", "fetch", {})])
    assert calls(db, wf) == {1: ("c1", "standing"), 2: ("c2", "standing")}
    wf.append(RESULT("c2", "two"))
    assert calls(db, wf) == {1: ("c1", "standing")}
    wf.append(RESULT("c1", "one"))
    assert calls(db, wf) == {}
    assert [event.call_seq for event in log_of(db, wf)] == [None, None, 2, 1]


def test_a_user_turn_closes_the_calls_of_its_lane_only(db, wf):
    """I8: the lane is the thread, or the actor where there is none; what is closed so is of unknown outcome."""
    wf.append([CALL("a", "fetch", {}, actor="scout"), CALL("b", "fetch", {}, actor="main")])
    wf.append([CALL("c", "fetch", {}, actor="scout", thread="side"), CALL("d", "fetch", {}, thread="side")])
    wf.append(SAY("user", "go on", actor="scout"))
    assert {seq: state for seq, (_, state) in calls(db, wf).items()} == dict(
        zip((1, 2, 3, 4), ("unknown", "standing", "standing", "standing"), strict=True)
    )
    wf.append(SAY("user", "go on", actor="dana", thread="side"))
    assert {state for _, state in calls(db, wf).values()} == {"unknown", "standing"}
    assert calls(db, wf)[2] == ("b", "standing")


@pytest.mark.parametrize(
    "other",
    [
        SAY("assistant", "x", actor="scout"),
        SAY("system", "x", actor="scout"),
        strandline.note("x", actor="scout"),
        strandline.thinking("x", actor="scout"),
    ],
)
def test_nothing_else_that_is_said_closes_a_call(db, wf, other):
    """I8: only a user turn is a boundary after which no result can come."""
    wf.append([CALL("a", "fetch", {}, actor="scout"), other])
    assert calls(db, wf) == {1: ("a", "standing")}


def test_a_result_does_not_close_other_calls(db, wf):
    """I8: a user line that only carries tool results is no user turn."""
    wf.append([CALL("a", "fetch", {}), CALL("b", "fetch", {}), RESULT("a", "x", actor="user")])
    assert calls(db, wf) == {2: ("b", "standing")}


def test_an_abandoned_call_is_of_unknown_outcome(db, wf):
    """I8: and to abandon it again, or once it was answered, changes nothing."""
    wf.append([CALL("a", "fetch", {}), strandline.abandoned("a")])
    assert calls(db, wf) == {1: ("a", "unknown")}
    wf.append(strandline.abandoned("a"))
    assert calls(db, wf) == {1: ("a", "unknown")}
    wf.append([RESULT("a", "after all"), strandline.abandoned("a")])
    assert calls(db, wf) == {}
    assert [event.call_seq for event in log_of(db, wf)] == [None, 1, 1, 1, 1]


def test_a_late_result_settles_the_outcome_and_cites_its_call(db, wf):
    """I8: it is a new event, marked late, and the call is of unknown outcome no more."""
    wf.append([CALL("a", "fetch", {}), SAY("user", "never mind")])
    assert calls(db, wf) == {1: ("a", "unknown")}
    wf.append(RESULT("a", "done"))
    assert calls(db, wf) == {}
    late = log_of(db, wf)[-1]
    assert (late.call_seq, late.envelope.late) == (1, True)


def test_a_second_result_is_late_and_cites_the_same_call(db, wf):
    """I8: only a result whose id no earlier call bore is an orphan."""
    wf.append([CALL("a", "fetch", {}), RESULT("a", "one"), RESULT("a", "two")])
    assert [(event.call_seq, event.envelope.late) for event in log_of(db, wf)][1:] == [(1, False), (1, True)]


@pytest.mark.parametrize("orphan", [RESULT("z", "x"), strandline.abandoned("z")])
def test_an_orphan_is_refused(db, wf, orphan):
    """I8: no earlier call bore the id, in this workflow."""
    new_workflow(db).append(CALL("z", "fetch", {}))
    with pytest.raises(strandline.InvalidInputError, match="z"):
        wf.append(orphan)
    with pytest.raises(strandline.InvalidInputError):
        wf.append([orphan, CALL("z", "fetch", {})])
    assert log_of(db, wf) == []


def test_ids_recur(db, wf):
    """I8: a result belongs to the latest open call of its id, then to the latest that is of unknown outcome."""
    wf.append([CALL("a", "fetch", {}), RESULT("a", "first"), CALL("a", "fetch", {}), CALL("a", "fetch", {})])
    assert calls(db, wf) == {3: ("a", "standing"), 4: ("a", "standing")}
    wf.append([RESULT("a", "x"), SAY("user", "stop"), RESULT("a", "y")])
    assert calls(db, wf) == {}
    assert [(e.call_seq, e.envelope.late) for e in log_of(db, wf)][4:] == [(4, False), (None, False), (3, True)]


def test_a_late_result_belongs_to_the_latest_call_of_its_id(db, wf):
    """I8: whichever of them was closed first, and whether they are closed in one append or in several."""
    for batches in (1, 4):
        wf = new_workflow(db)
        events = [CALL("a", "fetch", {}), CALL("a", "fetch", {}), strandline.abandoned("a"), SAY("user", "stop")]
        events += [RESULT("a", "x"), RESULT("a", "y")]
        for start in range(0, len(events), len(events) // batches):
            wf.append(events[start : start + len(events) // batches])
        assert [event.call_seq for event in log_of(db, wf)] == [None, None, 2, None, 2, 1]


@bounded(40)
@given(log=logs(40, ops=("call", "result", "user", "abandon", "call", "result")))
def test_any_interleaving_of_calls_results_and_turns_is_as_the_oracle_says(db, log):
    """I8: each result is bound to its call; what is open, and what is of unknown outcome, follows."""
    wf = new_workflow(db)
    wf.append(log.events)
    expected = {c.seq: (c.call_id, "standing" if c.closed is None else "unknown") for c in log.calls if not c.answered}
    assert calls(db, wf) == expected
    bound = {event.seq: event.call_seq for event in log_of(db, wf) if event.kind == "tool_result"}
    assert bound.items() >= log.answers.items()
    assert wf.verify().ok


# ---------------------------------------------------------------------------------------------- other facts


def test_a_constraint_is_in_force_until_it_is_lifted(db, wf):
    """Register: the newest of two of one subject stands; lifting one that is not in force is an error."""
    wf.append(
        [strandline.constraint("s", "old"), strandline.constraint("t", "other"), strandline.constraint("s", "new")]
    )
    assert facts(db, wf, "constraint") == {("t", "", 2), ("s", "", 3)}
    wf.append(strandline.lift_constraint("s"))
    assert facts(db, wf, "constraint") == {("t", "", 2)}
    with pytest.raises(strandline.InvalidInputError, match="constraint"):
        wf.append(strandline.lift_constraint("s"))


def test_an_issue_is_open_until_it_is_resolved(db, wf):
    """Register: an issue may be opened again."""
    wf.append([strandline.issue("s", "leaks"), strandline.resolve("s"), strandline.issue("s", "leaks again")])
    assert facts(db, wf, "issue") == {("s", "", 3)}
    wf.append(strandline.resolve("s"))
    assert facts(db, wf, "issue") == set()
    with pytest.raises(strandline.InvalidInputError):
        wf.append(strandline.resolve("s"))


def test_two_granters_approve_and_a_revocation_ends_both(db, wf):
    """Register, I10: grants are told apart by granter, and the revocation is a fact that stands itself."""
    wf.append([strandline.approval("s", "ok", granter="ann"), strandline.approval("s", "ok", granter="bob")])
    wf.append(strandline.approval("t", "ok", granter="bob"))
    assert facts(db, wf, "approval") == {("s", "3:ann:", 1), ("s", "3:bob:", 2), ("t", "3:bob:", 3)}
    wf.append(strandline.revoke("s"))
    assert facts(db, wf, "approval") == {("t", "3:bob:", 3)}
    assert facts(db, wf, "revocation") == {("s", "", 4)}


def test_an_approval_after_a_revocation_stands_and_the_revocation_is_over(db, wf):
    """Register: re-approval; a second grant of one granter takes the place of the first."""
    wf.append([strandline.approval("s", "ok", granter="ann"), strandline.revoke("s")])
    wf.append([strandline.approval("s", "again", granter="ann"), strandline.approval("s", "still", granter="ann")])
    assert facts(db, wf, "approval") == {("s", "3:ann:", 4)}
    assert facts(db, wf, "revocation") == set()
    wf.append([strandline.revoke("s"), strandline.revoke("s")])
    assert facts(db, wf, "approval") == set()
    assert facts(db, wf, "revocation") == {("s", "", 6)}


def test_an_artifact_is_live_until_it_is_released(db, wf):
    """Register: its handle is a declared reference."""
    wf.append(strandline.artifact("report", "s3://out/report-17.pdf"))
    assert facts(db, wf, "artifact") == {("report", "", 1)}
    assert [hit.declared for hit in wf.recall("s3://out/report-17.pdf")] == [True]
    wf.append(strandline.release_artifact("report"))
    assert facts(db, wf, "artifact") == set()


def test_a_pin_stands_until_it_is_unpinned(db, wf):
    """Register: pinning again moves the pin to the newer event."""
    wf.append(strandline.note("made", refs=["bucket-1", "bucket-2"]))
    wf.append([strandline.pin("bucket-1"), strandline.pin("bucket-2"), strandline.pin("bucket-1")])
    assert {seq for _, _, seq in facts(db, wf, "pin")} == {3, 4}
    wf.append(strandline.unpin("bucket-1"))
    assert {seq for _, _, seq in facts(db, wf, "pin")} == {3}
    with pytest.raises(strandline.InvalidInputError, match="not pinned"):
        wf.append(strandline.unpin("bucket-1"))


def test_a_pin_of_what_no_event_holds_is_refused(db, wf):
    """I16, I17: a reference that was never seen would meet a need that nothing real meets."""
    with pytest.raises(strandline.InvalidInputError, match="never-seen-9"):
        wf.append([strandline.note("hello"), strandline.pin("never-seen-9")])
    wf.append([strandline.note("see seen-9", refs=["seen-9"]), strandline.pin("seen-9")])
    assert len(facts(db, wf, "pin")) == 1


def test_two_scopes_of_one_granter_are_two_grants(db, wf):
    """Register: a grant for production does not take the one for staging away; a revocation ends both."""
    for scope in ("staging", "production"):
        wf.append(strandline.approval("deploy", "Yes.", granter="dana", scope=scope))
    assert len(facts(db, wf, "approval")) == 2
    wf.append(strandline.revoke("deploy"))
    assert facts(db, wf, "approval") == set()


# ---------------------------------------------------------------------------------------------- audiences


def test_a_result_inherits_the_audience_of_its_call(db, wf):
    """I21: so does an abandoned event, and a late result; an audience of its own is kept."""
    wf.append([CALL("a", "fetch", {}, audience="red"), RESULT("a", "x"), CALL("b", "fetch", {}, audience="red")])
    wf.append([strandline.abandoned("b"), RESULT("b", "late"), CALL("c", "fetch", {}), RESULT("c", "x")])
    wf.append([CALL("d", "fetch", {}, audience="red"), RESULT("d", "x", audience="blue")])
    found = [event.audience for event in log_of(db, wf)]
    assert found == ["red", "red", "red", "red", "red", "all", "all", "red", "blue"]


def test_a_call_of_unknown_outcome_keeps_its_audience(db, wf):
    """I21: what closes a call does not show it to others."""
    wf.append([CALL("a", "fetch", {}, audience="red"), SAY("user", "stop"), RESULT("a", "late")])
    assert log_of(db, wf)[-1].audience == "red"
