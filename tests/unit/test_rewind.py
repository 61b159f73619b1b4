"""Law (C22, I3, I8, I13, I15, I17): a rewind goes on from an earlier event and deletes nothing; what it abandons stands
in no context, and what must never be undone still holds.

Checked on both stores by cases, and by drawn histories against a list of the events that are live.
"""

import asyncio
import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import strandline
from strandline.engine.lineage import add_entry
from strandline.engine.rewind import rewind_in
from strandline.model.lineage import AbandonedRange, LineageEntry, LineageKind
from strandline.rules.branches import Abandoned
from strandline.testing.values import make_foreign
from tests.unit.test_engine_stage import (
    WHOLE,
    bounded,
    log_of,
    new_workflow,
    open_store,
    quiet,
    standing,
    states,
    talk,
    transaction,
)

SAY, CALL, RESULT = strandline.message, strandline.tool_call, strandline.tool_result
WHO = {"by": "dana", "why": "it went wrong"}


@pytest.fixture
def wf(db):
    wf = new_workflow(db)
    yield wf
    assert wf.verify().problems == ()


def tail_of(wf) -> list[int]:
    return [part.from_seq for part in wf.context(WHOLE).parts if part.event is not None]


def live_of(db, wf) -> set[tuple[str, str, str, int]]:
    """Return the register: kind, subject, state, source."""
    return {(kind, subject, state, seq) for kind, subject, _, state, seq in standing(db, wf)}


# ---------------------------------------------------------------------------------------------- what is live


def test_what_is_abandoned_stands_in_no_context(db, wf):
    """C22: seqs go on; the abandoned events stay readable, and say so."""
    wf.append([SAY("user", f"turn {number}: /srv/{number}.txt") for number in range(1, 9)])
    done = wf.rewind(3, **WHO)
    assert (done.to_revision, done.revision, done.branch, done.from_seq, done.through_seq) == (3, 8, 1, 4, 8)
    assert (done.events, done.restated, done.fenced, done.generations) == (5, (), (), {"main": 1})
    assert tail_of(wf) == [1, 2, 3]
    assert wf.append(SAY("user", "another way")).seqs == (9,)
    context = wf.context()
    assert (context.revision, tail_of(wf)) == (9, [1, 2, 3, 9])
    assert "turn 5" not in context.text
    assert [event.seq for event in wf.events() if event.abandoned] == [4, 5, 6, 7, 8]
    assert [(hit.seq, hit.abandoned) for hit in wf.recall("/srv/5.txt")] == [(5, True)]
    assert [(hit.seq, hit.abandoned) for hit in wf.recall("/srv/2.txt")] == [(2, False)]
    assert [event.branch for event in log_of(db, wf)] == [0] * 8 + [1]
    with transaction(db, wf) as tx:
        assert tx.log.head().live_events == 4


def test_each_rewind_is_an_entry_of_the_lineage(wf):
    """I13: who, why, what was left, and one new generation."""
    wf.append(talk(3))
    wf.rewind(2, **WHO)
    (entry,) = wf.lineage()
    assert (entry.kind, entry.view, entry.generation, entry.by, entry.why) == ("rewind", "main", 1, "dana", WHO["why"])
    assert entry.detail == {
        "to": 2,
        "from_seq": 3,
        "through_seq": 6,
        "events": 4,
        "branch": 1,
        "summary_no": 0,
        "watermark": 0,
        "fenced": [],
        "restated": [],
    }


def test_a_rewind_to_the_beginning_leaves_nothing(wf):
    """C22: 0 is before the first event."""
    wf.append(talk(3))
    wf.rewind(0, **WHO)
    assert tail_of(wf) == []
    assert wf.append(SAY("user", "anew")).seqs == (7,)
    assert tail_of(wf) == [7]


def test_a_rewind_behind_an_earlier_one(wf):
    """C22: ranges overlap, and the events between them are abandoned once."""
    wf.append(talk(5))
    wf.rewind(7, **WHO)
    wf.append([SAY("user", "second branch"), SAY("user", "and on")])
    done = wf.rewind(4, **WHO)
    assert (done.branch, done.events, done.through_seq) == (2, 5, 12)
    assert tail_of(wf) == [1, 2, 3, 4]
    wf.append(SAY("user", "third branch"))
    wf.append(SAY("user", "fourth"))
    wf.rewind(13, **WHO)
    assert tail_of(wf) == [1, 2, 3, 4, 13]


def test_two_rewinds_at_one_revision(db, wf):
    """C22: nothing was appended between them; facts begin again at the same event, behind one another."""
    wf.append([strandline.issue("a", "open"), CALL("c1", "get", {}), strandline.issue("b", "open"), RESULT("c1", "x")])
    wf.append([strandline.resolve("a", "done"), strandline.resolve("b", "done")])
    assert wf.rewind(4, **WHO).events == 2
    assert live_of(db, wf) == {("issue", "a", "standing", 1), ("issue", "b", "standing", 3)}
    assert wf.rewind(2, **WHO).events == 2
    assert live_of(db, wf) == {("issue", "a", "standing", 1), ("call", "c1", "standing", 2)}
    assert wf.rewind(0, **WHO).events == 2
    assert live_of(db, wf) == set()


@pytest.mark.parametrize("to", [-1, 9, 6, 8, 7, True, 2.0, "3", None])
def test_a_place_that_is_none_is_refused(wf, to):
    """SPEC §6: below 0, above the revision, abandoned, nothing behind it, no number. Nothing is written."""
    wf.append([SAY("user", f"turn {number}") for number in range(1, 9)])
    wf.rewind(5, **WHO)
    before = wf.lineage()
    with pytest.raises(strandline.InvalidInputError):
        wf.rewind(to, **WHO)
    assert wf.lineage() == before


def test_nothing_behind_is_an_error_that_says_so(wf):
    """SPEC §6."""
    wf.append(talk(2))
    with pytest.raises(strandline.InvalidInputError, match="nothing to abandon"):
        wf.rewind(4, **WHO)
    wf.rewind(2, **WHO)
    with pytest.raises(strandline.InvalidInputError, match="nothing to abandon"):
        wf.rewind(2, **WHO)
    with pytest.raises(strandline.InvalidInputError, match="last live event before it is 2"):
        wf.rewind(3, **WHO)


@pytest.mark.parametrize(
    "who", [{"by": "", "why": "x"}, {"by": "a", "why": 3}, {"by": "a" * 2_001, "why": ""}], ids=repr
)
def test_somebody_decides(wf, who):
    """C17, C22: who and why are recorded."""
    wf.append(talk(2))
    with pytest.raises(strandline.InvalidInputError):
        wf.rewind(1, **who)
    assert wf.lineage() == []


# ---------------------------------------------------------------------------------------------- keys


def test_a_key_of_an_abandoned_event_is_free(wf):
    """I3: also when a batch repeats some keys; with the same content or another."""
    wf.append([SAY("user", "one", key="k1"), SAY("user", "two", key="k2"), SAY("user", "three", key="k3")])
    wf.rewind(1, **WHO)
    mixed = [SAY("user", "one", key="k1"), SAY("user", "other", key="k2"), SAY("user", "three", key="k3")]
    appended = wf.append(mixed)
    assert (appended.seqs, appended.added) == ((1, 4, 5), 2)
    assert wf.append(mixed).seqs == (1, 4, 5)
    with pytest.raises(strandline.IdempotencyConflictError) as caught:
        wf.append(SAY("user", "two", key="k2"))
    assert caught.value.seq == 4
    wf.rewind(4, **WHO)
    assert wf.append(mixed[2]).seqs == (6,)


def test_a_stale_writer_is_refused_after_a_rewind(wf):
    """I3: the revision goes on from where it was."""
    wf.append(talk(3))
    wf.rewind(2, **WHO)
    with pytest.raises(strandline.StaleRevisionError):
        wf.append(SAY("user", "x"), expected_revision=2)
    assert wf.append(SAY("user", "x"), expected_revision=6).seqs == (7,)


# ---------------------------------------------------------------------------------------------- register


def test_facts_are_as_they_were(db, wf):
    """C22: what began is gone, what ended holds again, with its source; and the register is the fold of the log."""
    wf.append(
        [strandline.constraint("rule", "No Fridays."), strandline.issue("leak", "It leaks."), SAY("user", "pin /a/b")]
    )
    wf.append([strandline.pin("/a/b"), strandline.artifact("bucket", "bucket-1", "made")])
    before = live_of(db, wf)
    wf.append([strandline.resolve("leak", "Mended."), strandline.unpin("/a/b"), strandline.release_artifact("bucket")])
    wf.append([strandline.issue("late", "Another."), strandline.approval("ship", "ok", granter="ann")])
    wf.rewind(5, **WHO)
    assert live_of(db, wf) == before
    assert wf.verify().ok
    wf.append(strandline.resolve("leak", "Mended again."))
    with pytest.raises(strandline.InvalidInputError):
        wf.append(strandline.resolve("late", "There is none."))


def test_a_call_that_was_open_is_open_again(db, wf):
    """I8: its result may come on the new branch, and answers it."""
    wf.append([CALL("c1", "get", {}), SAY("assistant", "waiting"), RESULT("c1", "first"), SAY("user", "on")])
    wf.rewind(2, **WHO)
    assert [(call.call_id, call.seq) for call in wf.context().open_calls] == [("c1", 1)]
    wf.append(RESULT("c1", "second"))
    assert [(event.seq, event.call_seq, event.late) for event in wf.events(5)] == [(5, 1, False)]
    assert wf.context().open_calls == ()
    assert live_of(db, wf) == set()


def test_a_late_result_of_an_abandoned_call_cites_it(db, wf):
    """I8: it is late, never an error, and answers no live call of another id."""
    wf.append(
        [CALL("c0", "get", {}), SAY("assistant", "x"), CALL("c1", "pay", {}), CALL("c2", "pay", {}), RESULT("c2", "y")]
    )
    wf.rewind(2, **WHO)
    wf.append([RESULT("c1", "it went through"), RESULT("c2", "again"), strandline.abandoned("c1")])
    assert [(e.seq, e.call_seq, e.envelope.late) for e in log_of(db, wf)[5:]] == [
        (6, 3, True),
        (7, 4, True),
        (8, 3, False),
    ]
    assert [call.call_id for call in wf.context().open_calls] == ["c0"]
    assert "[late result of call c1 made at event 3]" in wf.context().text
    for provider in ("anthropic", "openai"):
        assert wf.context().messages(provider)
    with pytest.raises(strandline.InvalidInputError, match="no earlier event made"):
        wf.append(RESULT("c9", "nobody asked"))


def test_an_id_that_recurs_is_answered_on_its_own_branch(db, wf):
    """I8: the call made again after the rewind is the one that is open."""
    wf.append([SAY("user", "go"), CALL("c1", "pay", {})])
    wf.rewind(1, **WHO)
    wf.append([CALL("c1", "pay", {}), RESULT("c1", "done")])
    assert [(e.seq, e.call_seq, e.envelope.late) for e in log_of(db, wf)[2:]] == [(3, None, False), (4, 3, False)]


# ---------------------------------------------------------------------------------------------- what is never undone


def test_a_revocation_is_never_rewound(db, wf):
    """C22: the grant that it ended stays ended, and so does one that came between."""
    wf.append([strandline.approval("ship", "ok", granter="ann", key="grant"), SAY("user", "go on")])
    wf.append([strandline.revoke("ship", "Not any more: ticket-4711.", key="stop", actor="ann"), strandline.note("x")])
    wf.append(strandline.approval("ship", "ok again", granter="bob"))
    done = wf.rewind(2, **WHO)
    assert done.restated == ((6, 3),)
    assert live_of(db, wf) == {("revocation", "ship", "standing", 6)}
    again = log_of(db, wf)[5]
    assert (again.kind, again.actor, again.key, again.branch) == ("revoke", "ann", None, 1)
    assert "ticket-4711" in wf.context().text
    assert wf.lineage()[-1].detail["restated"] in ([[6, 3]], [(6, 3)])
    wf.rewind(1, **WHO)
    assert live_of(db, wf) == {("revocation", "ship", "standing", 7)}


def test_a_revocation_of_nothing_is_stated_again_too(db, wf):
    """C22: it stands by itself."""
    wf.append([SAY("user", "go"), strandline.revoke("ship", "Never.")])
    assert wf.rewind(1, **WHO).restated == ((3, 2),)
    assert live_of(db, wf) == {("revocation", "ship", "standing", 3)}


def test_a_lift_is_never_rewound(db, wf):
    """C22: where the constraint stands again. One that was set behind the place is simply gone."""
    wf.append([strandline.constraint("old", "No Fridays."), SAY("user", "go")])
    wf.append([strandline.constraint("new", "No Mondays."), strandline.lift_constraint("new", "Over.")])
    wf.append([strandline.lift_constraint("old", "Over."), strandline.constraint("old", "No Fridays again.")])
    wf.append(strandline.lift_constraint("old", "And over."))
    assert wf.rewind(2, **WHO).restated == ((8, 5),)
    assert live_of(db, wf) == set()


def test_what_is_stated_again_keeps_audience_and_references(db, wf):
    """C22, I21: the same body, actor, audience and references; a key of its own it has none."""
    wf.append([SAY("user", "go")])
    wf.append(strandline.revoke("ship", "See bucket-77aa.", audience="release", refs=["ticket 9"], key="r"))
    wf.rewind(1, **WHO)
    old, new = log_of(db, wf)[1:]
    assert (new.body, new.audience, new.sightings, new.envelope) == (old.body, "release", old.sightings, old.envelope)
    assert [hit.seq for hit in wf.recall("ticket 9")] == [3, 2]


# ---------------------------------------------------------------------------------------------- memory


def test_the_pointer_goes_back_to_a_summary_that_covers_nothing_abandoned(db, wf):
    """I13, C22: under a new generation; those that are left never come back by themselves."""
    wf.append(talk(8))
    first = wf.compact(400, quiet)
    wf.append(talk(8, start=20))
    second = wf.compact(400, quiet)
    assert (first.generation, second.generation) == (1, 2)
    done = wf.rewind(first.watermark + 1, **WHO)
    context = wf.context()
    assert (done.generations, context.generation, context.watermark) == ({"main": 3}, 3, first.watermark)
    assert [part.text for part in context.parts if part.kind == "segment"] == [
        segment.text for segment in first.summary.segments
    ]
    assert states(db, wf) == [("active", ["activated"]), ("reverted", ["activated"])]
    wf.rewind(first.watermark - 1, **WHO)
    assert (wf.context().generation, wf.context().watermark) == (4, 0)
    assert states(db, wf) == [("reverted", ["activated"]), ("reverted", ["activated"])]


def test_the_watermark_may_be_the_place_itself(wf):
    """I7: nothing abandoned is covered, and the log goes on behind it."""
    wf.append(talk(8))
    made = wf.compact(400, quiet)
    wf.rewind(made.watermark, **WHO)
    assert (wf.context().watermark, tail_of(wf)) == (made.watermark, [])
    wf.append(SAY("user", "on"))
    assert tail_of(wf) == [17]


def test_compactions_span_what_was_abandoned(wf):
    """I7, I9, I12: segments over the gap, merges that derive anew across it, and rewinds of rewinds."""
    wf.append(talk(10))
    wf.rewind(6, **WHO)
    for start in range(30, 150, 10):
        wf.append(talk(6, start=start))
        assert wf.compact(500, quiet).outcome == "activated"
        if start % 40 == 10:
            wf.append(talk(3, start=start + 6))
            revision = wf.context().revision
            wf.rewind(revision - 4, **WHO)
        assert wf.verify().problems == ()
    context = wf.context()
    spans = [(part.from_seq, part.through_seq) for part in context.parts if part.kind == "segment"]
    assert any(first <= 7 and last >= 20 for first, last in spans)


def test_a_reference_that_only_abandoned_events_hold_is_none_of_the_memorys(wf):
    """I9, I11: it is in no manifest, and a summary that speaks of it made it up; what comes back is counted anew."""
    wf.append([*talk(2), SAY("user", "bucket-77dd is ready"), *talk(1, start=5)])
    wf.rewind(4, **WHO)
    wf.append(talk(10, start=20))
    refused = wf.compact(400, lambda request: "Look at bucket-77dd." if request.from_seq else "", fallback=False)
    assert refused.outcome == "quarantined"
    assert wf.compact(500, quiet).outcome == "activated"
    assert "bucket-77dd" not in [entry.ref for entry in wf.manifest()]
    with pytest.raises(strandline.SummaryReconciliationError) as caught:
        wf.context(needs=["bucket-77dd"])
    assert caught.value.last_known is None
    with pytest.raises(strandline.SummaryReconciliationError) as caught:
        wf.recover(["bucket-77dd"])
    assert caught.value.last_known is None
    wf.append([SAY("user", "bucket-77dd is ready after all"), *talk(10, start=40)])
    assert wf.compact(500, quiet).outcome == "activated"
    assert wf.verify().problems == ()


def test_what_only_abandoned_events_hold_can_not_be_pinned(db, wf):
    """C22, I10: a pin would bring it back as a fact of the new branch; what a live event says again may be pinned."""
    wf.append([*talk(2), SAY("user", "bucket-77dd is ready")])
    wf.rewind(4, **WHO)
    before = log_of(db, wf)
    with pytest.raises(strandline.InvalidInputError, match="no earlier event holds"):
        wf.append([SAY("user", "hello"), strandline.pin("bucket-77dd")])
    assert log_of(db, wf) == before
    wf.append([SAY("user", "bucket-77dd is ready after all"), strandline.pin("bucket-77dd")])
    wf.append(strandline.pin("bucket-77dd"))


def test_a_compaction_in_flight_is_refused(db, wf):
    """I6, C22: every view is fenced, and what it brings can't become active."""
    wf.append(talk(8))

    def late(request):
        wf.rewind(4, **WHO)
        return quiet(request)

    outcome = wf.compact(400, late)
    assert outcome.outcome == "conflict"
    assert (outcome.generation, wf.context().watermark) == (1, 0)
    assert states(db, wf) == [("void", ["fenced"])]
    assert wf.lineage()[-1].detail["fenced"] == [outcome.attempts[0].attempt_id]


def test_a_validated_draft_is_void(db, wf, monkeypatch):
    """I6: it covers what is abandoned; the next compaction plans anew."""
    wf.append(talk(8))

    def unavailable(env, job, attempt):
        raise strandline.StoreUnavailableError

    with monkeypatch.context() as patch:
        patch.setattr("strandline.engine.compact.activate", unavailable)
        with pytest.raises(strandline.StoreUnavailableError):
            wf.compact(400, quiet)
    assert states(db, wf) == [("validated", ["validated"])]
    wf.rewind(4, **WHO)
    assert states(db, wf) == [("void", ["validated"])]
    wf.append(talk(8, start=20))
    assert wf.compact(400, quiet).outcome == "activated"


def test_a_comparison_is_made_over_live_events(db, wf):
    """C29: what another tool summarized before the rewind is compared with what is live; and the late result of an
    abandoned call is no result of a call that was not copied.
    """
    wf.append([*talk(6), CALL("c1", "get", {}), SAY("user", "bucket-77dd is mine")])
    wf.rewind(12, **WHO)
    wf.append([RESULT("c1", "late, of bucket-77aa"), strandline.abandoned("c1"), SAY("assistant", "bucket-0001 again")])
    wf.append([CALL("c2", "get", {"of": "bucket-77dd"}), RESULT("c2", "x")])
    theirs = [make_foreign(str(through), through, text="They did much. " * 200) for through in (14, 17)]
    with transaction(db, wf, write=True) as tx:
        tx.log.set_head(replace(tx.log.head(), foreign_summaries=tx.summaries.add_foreign(theirs)))
    compared = wf.compare().summaries
    assert [one.ours_reason for one in compared] == ["", ""]
    assert compared[0].needed.needed == 1  # bucket-0001: bucket-77dd was shown in no live event before


# ---------------------------------------------------------------------------------------------- checkpoints


def test_a_checkpoint_of_before_a_rewind_is_refused(wf):
    """I15: of the abandoned past, and of the shared one alike: the pointer moved since."""
    wf.append(talk(4))
    wf.checkpoint({"n": 1}, 1, basis=wf.context())
    wf.append(talk(2, start=9))
    wf.checkpoint({"n": 2}, 2, basis=wf.context())
    wf.rewind(9, **WHO)
    recovered = wf.recover(prior_state=True)
    assert (recovered.kind, recovered.state, recovered.prior_state.turn) == ("replay", None, 2)
    made = wf.checkpoint({"n": 3}, 3, basis=wf.context())
    assert (made.branch, made.revision) == (1, 12)
    assert wf.recover().state == {"n": 3}


def test_a_context_free_checkpoint_of_an_abandoned_past_never_passes(wf):
    """I15: its state knows of events that are not there; one of the shared past does pass."""
    wf.append(talk(4))
    wf.checkpoint({"n": 1}, 1, context_free=True)
    wf.append(talk(2, start=9))
    wf.checkpoint({"n": 2}, 2, context_free=True)
    wf.rewind(9, **WHO)
    assert wf.recover().state == {"n": 1}
    wf.checkpoint({"n": 3}, 3, context_free=True)  # of the new branch, though its revision is an abandoned one
    assert wf.recover().state == {"n": 3}
    wf.append(SAY("user", "on"))
    wf.checkpoint({"n": 4}, 4, context_free=True)
    wf.rewind(9, **WHO)
    assert wf.recover().state == {"n": 3}
    wf.rewind(6, **WHO)
    assert wf.recover().kind == "replay"


def test_a_rewind_to_a_checkpoint_restores_it(db, wf):
    """I17: its state comes back, exact, on a branch that a rewind to its revision made, with the summary of its
    generation; older and abandoned ones don't.
    """
    wf.append(talk(8))
    wf.compact(400, quiet)
    wf.checkpoint({"n": 0}, 0, basis=wf.context())
    wf.append(talk(1, start=15))
    basis = wf.context()
    wf.append(SAY("assistant", "after the basis"))
    made = wf.checkpoint({"n": 1}, 1, basis=basis)
    wf.append(talk(8, start=20))
    wf.compact(400, quiet)
    wf.checkpoint({"n": 2}, 2, basis=wf.context())
    assert wf.recover().state == {"n": 2}
    done = wf.rewind(checkpoint_seq=made.lineage_seq, **WHO)
    assert (done.to_revision, done.generations) == (19, {"main": 3})
    entry = wf.lineage()[-1]
    assert (entry.name, entry.restored_seq, entry.detail["to"]) == ("main", made.lineage_seq, 19)
    wf.append(SAY("user", "on the new branch"))
    recovered = wf.recover()
    assert (recovered.kind, recovered.state, recovered.checkpoint_seq) == ("restore", {"n": 1}, made.lineage_seq)
    assert [part.from_seq for part in recovered.context.parts if part.since_checkpoint] == [19, 36]
    assert wf.recover(name="other").kind == "replay"
    wf.checkpoint({"n": 3}, 3, basis=wf.context())
    assert wf.recover().state == {"n": 3}
    wf.append(talk(8, start=50))
    wf.compact(400, quiet)
    assert wf.recover().kind == "replay"


def test_a_rewind_to_a_checkpoint_behind_which_nothing_stands(wf):
    """I17: a compaction came, and no event: nothing is abandoned, and the pointer goes back all the same."""
    wf.append(talk(8))
    made = wf.checkpoint({"n": 1}, 1, basis=wf.context())
    wf.compact(400, quiet)
    assert wf.recover().kind == "replay"
    done = wf.rewind(checkpoint_seq=made.lineage_seq, **WHO)
    assert (done.events, done.branch, done.generations) == (0, 0, {"main": 2})
    assert (wf.recover().state, wf.context().watermark) == ({"n": 1}, 0)


def test_no_rewind_to_a_checkpoint_of_a_bad_summary(db, wf):
    """C17, I13: what a revert left as bad never comes back, and nor does a state that was made from it."""
    wf.append(talk(8))
    good = wf.checkpoint({"n": 0}, 0, basis=wf.context())
    wf.compact(400, quiet)
    bad = wf.checkpoint({"n": 1}, 1, basis=wf.context())
    wf.append(talk(8, start=20))
    wf.compact(400, quiet)
    built_on_it = wf.checkpoint({"n": 2}, 2, basis=wf.context())
    wf.revert(0, **WHO)
    entries = wf.lineage()
    for made in (bad, built_on_it):
        with pytest.raises(strandline.InvalidInputError, match="left as bad"):
            wf.rewind(checkpoint_seq=made.lineage_seq, **WHO)
    assert wf.lineage() == entries
    wf.rewind(checkpoint_seq=good.lineage_seq, **WHO)
    assert (wf.recover().state, wf.context().watermark) == ({"n": 0}, 0)


def test_a_rewind_to_a_context_free_checkpoint(wf):
    """I15, I17: those between it and the rewind are no targets any more."""
    wf.append(talk(4))
    made = wf.checkpoint({"n": 1}, 1, context_free=True)
    wf.checkpoint({"n": 2}, 2, context_free=True)
    wf.append(talk(1, start=9))
    wf.rewind(checkpoint_seq=made.lineage_seq, **WHO)
    assert wf.recover().state == {"n": 1}


def test_a_checkpoint_right_behind_a_rewind_can_be_gone_back_to(wf):
    """C22: its revision is that of an abandoned event; its past is not."""
    wf.append(talk(4))
    wf.rewind(5, **WHO)
    made = wf.checkpoint({"n": 1}, 1, basis=wf.context())
    wf.append(talk(2, start=9))
    done = wf.rewind(checkpoint_seq=made.lineage_seq, **WHO)
    assert (done.to_revision, done.events) == (5, 4)
    assert wf.recover().state == {"n": 1}


def test_no_rewind_to_a_checkpoint_of_an_abandoned_past(db, wf):
    """C22; and none to what is no checkpoint, or to another revision than its own."""
    wf.append(talk(4))
    made = wf.checkpoint({"n": 1}, 1, basis=wf.context())
    wf.rewind(5, **WHO)
    with pytest.raises(strandline.InvalidInputError, match="later rewind abandoned"):
        wf.rewind(checkpoint_seq=made.lineage_seq, **WHO)
    for seq in (0, -1, 2, 99, True, "1"):
        with pytest.raises(strandline.InvalidInputError):
            wf.rewind(checkpoint_seq=seq, **WHO)
    for arguments in ({}, {"to_revision": 1, "checkpoint_seq": 1}):
        with pytest.raises(strandline.InvalidInputError, match="not both"):
            wf.rewind(**arguments, **WHO)
    with pytest.raises(strandline.InvalidInputError, match="not 3"), transaction(db, wf, write=True) as tx:
        rewind_in(wf._env, tx, 3, checkpoint=wf.lineage()[0], **WHO)


# ---------------------------------------------------------------------------------------------- drawn histories

_ranges = st.lists(st.tuples(st.integers(1, 30), st.integers(0, 6)), max_size=5)


@given(ranges=_ranges, low=st.integers(1, 40), size=st.integers(0, 40))
@bounded(300)
def test_spans_are_what_no_range_holds(ranges, low, size):
    """C22: runs in order, without what is abandoned; by a set of numbers."""
    made = [AbandonedRange(branch=n, from_seq=a, through_seq=a + b) for n, (a, b) in enumerate(ranges, start=1)]
    gone = set(itertools.chain(*(range(r.from_seq, r.through_seq + 1) for r in made)))
    left = Abandoned(made)
    spans = list(left.live_spans(low, low + size))
    assert [seq for a, b in spans for seq in range(a, b + 1)] == [
        s for s in range(low, low + size + 1) if s not in gone
    ]
    assert all(seq in left for seq in gone)
    assert left.last_live(low) == max((s for s in range(1, low + 1) if s not in gone), default=0)


STEPS = st.one_of(
    st.tuples(st.just("say"), st.integers(0, 3), st.integers(0, 9)),
    st.tuples(
        st.sampled_from(["issue", "resolve", "constraint", "lift", "approve", "revoke"]), st.integers(0, 1), st.just(0)
    ),
    st.tuples(st.sampled_from(["call", "result"]), st.integers(0, 1), st.just(0)),
    st.tuples(st.just("rewind"), st.integers(0, 9), st.just(0)),
    st.tuples(st.just("compact"), st.just(0), st.just(0)),
)


ENDS = {"resolve": "issue", "lift": "constraint"}


class Model:
    """The live events as a list, and what they add up to."""

    def __init__(self) -> None:
        self.live: list[tuple[int, str, str, str | None]] = []  # seq, kind, subject, key
        self.revision = 0
        self.called: set[str] = set()  # on any branch

    def add(self, kind: str, subject: str, key: str | None = None) -> None:
        self.revision += 1
        if kind == "call":
            self.called.add(subject)
        self.live.append((self.revision, kind, subject, key))

    def rewind(self, to: int) -> None:
        behind = [event for event in self.live if event[0] > to]
        self.live = [event for event in self.live if event[0] <= to]
        for _, kind, subject, _ in behind:
            if kind == "revoke" or (kind == "lift" and ("constraint", subject) in self.facts()):
                self.add(kind, subject)

    def facts(self) -> dict[tuple[str, str], int]:
        held: dict[tuple[str, str], int] = {}
        for seq, kind, subject, _ in self.live:
            if kind in ("issue", "constraint"):
                held[kind, subject] = seq
            elif kind in ENDS:
                held.pop((ENDS[kind], subject), None)
            elif kind == "approve":
                held[("approval", subject)] = seq
                held.pop(("revocation", subject), None)
            elif kind == "revoke":
                held[("revocation", subject)] = seq
                held.pop(("approval", subject), None)
        return held

    def open_calls(self) -> set[tuple[str, int]]:
        opened: list[tuple[str, int]] = []
        for seq, kind, subject, _ in self.live:
            if kind == "call":
                opened.append((subject, seq))
            elif kind == "result":  # belongs to the latest open call of its id, if there is one
                mine = [call for call in opened if call[0] == subject]
                opened = [call for call in opened if call not in mine[-1:]]
        return set(opened)

    @property
    def held_keys(self) -> set[str]:
        return {key for *_, key in self.live if key is not None}


def take(wf, model: Model, step: tuple[str, int, int]) -> None:
    op, a, b = step
    subject = f"s{a}"
    if op == "say":
        key = f"k{a}{b}" if b % 2 else None
        held = key in model.held_keys
        done = wf.append(
            SAY("user", f"word {a}{b} of /srv/{a}{b}.txt and more words than that " * 4, key=key, actor="u")
        )
        assert done.added == (not held)
        if not held:
            model.add("say", subject, key)
    elif op == "rewind":
        live = [0, *(seq for seq, *_ in model.live)]
        to = live[max(0, len(live) - 1 - a)]
        if to == live[-1]:
            with pytest.raises(strandline.InvalidInputError):
                wf.rewind(to, **WHO)
        else:
            wf.rewind(to, **WHO)
            model.rewind(to)
    elif op == "compact":
        wf.compact(300, quiet)
    elif op in ENDS and (ENDS[op], subject) not in model.facts():
        return
    elif op != "result" or subject in model.called:
        wf.append(
            {
                "issue": lambda: strandline.issue(subject, "open"),
                "resolve": lambda: strandline.resolve(subject, "done"),
                "constraint": lambda: strandline.constraint(subject, "never"),
                "lift": lambda: strandline.lift_constraint(subject, "over"),
                "approve": lambda: strandline.approval(subject, "ok", granter="ann"),
                "revoke": lambda: strandline.revoke(subject, "no"),
                "call": lambda: CALL(subject, "get", {}),
                "result": lambda: RESULT(subject, "x"),
            }[op]()
        )
        model.add(op, subject)


@pytest.mark.parametrize("kind", ["sqlite", "memory"])
def test_drawn_histories_agree_with_a_list_of_live_events(kind, tmp_path):
    """C22, I3, I7, I13: register, contexts and keys; each context is one generation with its tail; verify finds
    nothing.
    """
    with open_store(kind, tmp_path) as db:

        @given(steps=st.lists(STEPS, min_size=3, max_size=25))
        @bounded(60 if kind == "memory" else 40)
        def check(steps):
            wf, model = new_workflow(db), Model()
            for step in steps:
                take(wf, model, step)
                if not model.revision:
                    continue
                context = wf.context(WHOLE)
                live = [seq for seq, *_ in model.live]
                assert context.revision == model.revision
                assert [p.from_seq for p in context.parts if p.event] == [s for s in live if s > context.watermark]
                assert context.watermark in (0, *live)
                held = {(k, s): seq for k, s, _, seq in live_of(db, wf) if k != "call"}
                assert held == model.facts()
                assert {(s, seq) for k, s, _, seq in live_of(db, wf) if k == "call"} == model.open_calls()
                moves = [entry.generation for entry in wf.lineage() if entry.kind in ("compaction", "rewind")]
                assert moves == list(range(1, context.generation + 1))
            assert wf.verify().problems == ()

        check()


def test_a_rewind_that_the_lineage_does_not_know_is_found(db):
    """C5: ranges and lineage tell the same."""
    wf = new_workflow(db)
    wf.append(talk(4))
    with transaction(db, wf, write=True) as tx:
        tx.log.abandon(AbandonedRange(branch=1, from_seq=6, through_seq=8))
        tx.log.set_head(replace(tx.log.head(), branch=1, live_events=5))
    assert "lineage" in wf.verify().problems[0].reason


def test_a_rewind_whose_range_is_gone_is_found(db):
    """C5, I4: the counter in the head tells; nothing is read as if it had never been abandoned."""
    wf = new_workflow(db)
    wf.append(talk(4))
    with transaction(db, wf, write=True) as tx:
        tx.log.set_head(replace(tx.log.head(), branch=1))
        add_entry(tx, LineageEntry(lineage_seq=0, kind=LineageKind.FENCE, op_key="x", revision=8, at_us=0))
    for read in (wf.context, wf.recover, lambda: wf.compact(300, quiet), lambda: wf.rewind(2, **WHO)):
        with pytest.raises(strandline.CorruptRecordError, match="1 rewinds were made"):
            read()
    assert not wf.verify().ok


async def _twin():
    async with strandline.aopen(":memory:") as db:
        wf = db.tenant("acme").workflow("w")
        await wf.append(talk(3))
        return await wf.rewind(2, **WHO)


def test_the_twin_for_event_loops():
    """The same verb, the same answer."""
    assert asyncio.run(_twin()).events == 4


# ---------------------------------------------------------------------------------------------- what is kept


def test_what_is_kept_is_stated_again_in_the_same_transaction(db, wf):
    """C22: who leaves turns behind keeps the facts among them; a rewind that can't keep one changes nothing."""
    wf.append([SAY("user", "a"), strandline.constraint("db", "Stay off production."), SAY("assistant", "b")])
    wf.append(strandline.issue("scope", "Too wide."))
    done = wf.rewind(0, keep=[2, 4], **WHO)
    assert done.restated == ((5, 2), (6, 4))
    assert [event.text for event in wf.events() if not event.abandoned] == ["Stay off production.", "Too wide."]
    assert live_of(db, wf) == {("constraint", "db", "standing", 5), ("issue", "scope", "standing", 6)}
    for keep in ([5], [99], [2]):
        with pytest.raises(strandline.InvalidInputError, match="is to be kept"):
            wf.rewind(5, keep=keep, **WHO)
    assert wf.basis().revision == 6
    with pytest.raises(strandline.InvalidInputError, match="go with to_revision"):
        wf.rewind(checkpoint_seq=1, keep=[6], **WHO)


def test_a_rewind_is_refused_when_somebody_appended_meanwhile(wf):
    """I3: what is decided on an old revision does not abandon what came since."""
    wf.append([SAY("user", "a"), SAY("assistant", "b")])
    with pytest.raises(strandline.StaleRevisionError) as caught:
        wf.rewind(1, expected_revision=1, **WHO)
    assert (caught.value.expected, caught.value.actual) == (1, 2)
    assert wf.rewind(1, expected_revision=2, **WHO).events == 1
