"""Law (C22, I3, I13, I21): a fork is its parent's past, and from there on a workflow of its own.

On both stores. What a fork must be is told by a twin: a workflow that was given the same events, one after the other.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import strandline
from strandline.engine.ancestry import compose
from strandline.engine.family import ledger
from strandline.limits import CASE_TEXT_CHARS_MAX, FORK_DEPTH_MAX
from strandline.model.case import Case, CaseKind, CaseState
from strandline.model.effect import Effect, EffectState
from strandline.model.ids import Scope
from strandline.model.register import FactKind
from strandline.model.view import ViewHead
from strandline.testing import VirtualClock
from tests.unit.test_engine_stage import (
    WHOLE,
    bounded,
    logs,
    new_workflow,
    open_store,
    quiet,
    seen_of,
    talk,
    transaction,
)

SAID = {"by": "dana", "why": "try the other way"}
SMALL = 1_500


def fork_of(db, wf, at: int | None = None, **changes) -> strandline.Workflow:
    """Fork a workflow, check what is answered, and return the fork."""
    name = new_workflow(db).name
    forked = wf.fork(at, name, **{**SAID, **changes})
    assert (forked.workflow, forked.parent) == (name, wf.name)
    assert forked.revision == (wf.basis().revision if at is None else at)
    return db.tenant("acme").workflow(name)


def twin_of(db, wf, through: int) -> strandline.Workflow:
    """Return a workflow of its own with the first events of another."""
    twin = new_workflow(db)
    with wf._env.read() as tx:
        keys = [event.key for event in tx.log.read(1, through)]
    for event, key in zip(GIVEN[wf.name], keys, strict=False):
        twin.append(replace(event, key=key))
    assert twin.basis().revision == through
    return twin


GIVEN: dict[str, list[strandline.NewEvent]] = {}  # what `give` appended, by workflow


def give(wf: strandline.Workflow, *events: strandline.NewEvent) -> strandline.Workflow:
    """Append events as one batch, and remember them for a twin."""
    GIVEN.setdefault(wf.name, []).extend(events)
    wf.append(list(events))
    return wf


def parts(wf: strandline.Workflow, budget: int = WHOLE) -> list[tuple]:
    return [(part.kind, part.from_seq, part.through_seq, part.text) for part in wf.context(budget).parts]


def facts(wf: strandline.Workflow) -> set[tuple]:
    with wf._env.read() as tx:
        return {(f.key, f.state, f.source_seq, f.audience) for f in tx.register.as_of(2**62)}


def texts(wf: strandline.Workflow) -> list[str]:
    return [event.text for event in wf.events()]


def ok(*workflows: strandline.Workflow) -> None:
    for wf in workflows:
        assert wf.verify().problems == ()


@pytest.fixture
def wf(db):
    """A workflow at generation 2, with facts of every kind and a tail."""
    wf = new_workflow(db)
    give(wf, strandline.constraint("prod", "Never touch db-prod-77."), *talk(14))
    wf.compact(400, quiet)
    give(wf, strandline.issue("scope", "The scope admin:org is too wide."), *talk(30, start=40))
    wf.compact(600, quiet)
    give(wf, *talk(2, start=90), strandline.tool_call("c1", "fetch", {"path": "/srv/in/1.csv"}))
    assert wf.basis().generation == 2
    return wf


# ---------------------------------------------------------------------------------------------- what it begins from


def test_right_after_it_a_fork_reads_as_its_parent(db, wf):
    """C22: the same context, word for word, with the same summary before the same tail."""
    fork = fork_of(db, wf)
    assert parts(fork) == parts(wf)
    assert fork.context().watermark == wf.context().watermark > 0
    assert fork.context(SMALL * 2).text == wf.context(SMALL * 2).text
    assert fork.context().open_calls == wf.context().open_calls != ()
    assert [(e.ref, e.ref_id, e.last_seq, e.reason) for e in fork.manifest()] == [
        (e.ref, e.ref_id, e.last_seq, e.reason) for e in wf.manifest()
    ]
    assert texts(fork) == texts(wf)
    ok(wf, fork)


def test_a_fork_at_any_earlier_event_is_what_the_log_was_then(db, wf):
    """C22: its facts, references and events are those of a workflow that ends there."""
    for at in (1, 2, 17, wf.context().watermark, wf.basis().revision - 4):
        fork, twin = fork_of(db, wf, at), twin_of(db, wf, at)
        assert texts(fork) == texts(twin)
        assert facts(fork) == facts(twin)
        with fork._env.read() as here, twin._env.read() as there:
            assert sorted(here.refs.all_sightings()) == sorted(there.refs.all_sightings())
            assert dict(here.refs.all_texts()) == dict(there.refs.all_texts())
            assert here.log.head().ref_id == there.log.head().ref_id
            assert here.log.head().live_events == at
        ok(fork)


def test_behind_the_fork_point_no_summary_is_taken(db, wf):
    """C22: before the watermark of the active summary it takes an older one on the chain, else the empty one."""
    with wf._env.read() as tx:
        first, second = (tx.summaries.get(number) for number in (1, 2))
    for at, expected in ((second.watermark, second), (second.watermark - 1, first), (first.watermark - 1, None)):
        fork = fork_of(db, wf, at)
        context = fork.context(WHOLE)
        assert context.watermark == (expected.watermark if expected else 0)
        assert context.generation == (1 if expected else 0)
        with fork._env.read() as tx:
            taken = tx.summaries.get(1)
        assert (taken is None) == (expected is None)
        if expected is not None:
            assert taken.segments == expected.segments
            assert (taken.anchors, taken.ledger, taken.base_no) == (expected.anchors, expected.ledger, 0)
        ok(fork)


def test_a_summary_under_a_blocking_case_is_not_taken(db, wf):
    """I11: what stands in question there is no good start here."""
    with transaction(db, wf, write=True) as tx:
        tx.cases.add(
            Case(
                case_id="case-1",
                identity="regression-1",
                kind=CaseKind.REGRESSION,
                state=CaseState.OPEN,
                view="main",
                generation=2,
                summary_no=2,
                reason="it left the door open",
                revision=wf.basis().revision,
                opened_us=1,
            )
        )
        tx.log.set_head(replace(tx.log.head(), cases=1))
    fork = fork_of(db, wf)
    assert fork.context().watermark < wf.context().watermark
    with fork._env.read() as tx:
        assert (list(tx.cases.all()), tx.log.head().cases) == ([], 0)
    ok(fork)
    with transaction(db, wf, write=True) as tx:
        tx.log.set_head(replace(tx.log.head(), cases=2))
    with pytest.raises(strandline.CorruptRecordError):  # the case that is gone might be on any of them
        wf.fork(None, "never", **SAID)


def test_the_lineage_of_a_fork_is_its_own_and_begins_with_the_fork(db, wf):
    """I13: who, why, from where; the generation that the pointer got is 1."""
    before = wf.lineage()
    fork = fork_of(db, wf, by="dana", why="the other way")
    (entry,) = fork.lineage()
    assert (entry.kind, entry.lineage_seq, entry.view, entry.generation) == ("fork", 1, "main", 1)
    assert (entry.by, entry.why, entry.revision) == ("dana", "the other way", wf.basis().revision)
    assert (entry.detail["parent"], entry.detail["at"]) == (wf.name, wf.basis().revision)
    assert wf.lineage() == before
    fork.append(talk(30, start=200))
    assert fork.compact(SMALL, quiet).generation == 2
    assert [entry.kind for entry in fork.lineage()] == ["fork", "compaction"]
    bare = fork_of(db, wf, 3)
    (entry,) = bare.lineage()
    assert (entry.kind, entry.view, entry.generation) == ("fork", None, None)
    bare.append(talk(30, start=200))
    assert bare.compact(SMALL, quiet).generation == 1
    ok(fork, bare)


def test_it_is_listed_and_knows_its_parent(db, wf):
    """C22: by the heads of the scopes an erasure finds every fork, of forks too."""
    fork = fork_of(db, wf)
    second = fork_of(db, fork)
    assert {wf.name, fork.name, second.name} <= set(db.tenant("acme").workflows())
    parents = {}
    for scope in db.store.scopes("acme"):
        with db.store.read(scope) as tx:
            parents[scope.workflow] = tx.log.head().parent
    assert (parents[wf.name], parents[fork.name], parents[second.name]) == (None, wf.name, fork.name)


# ---------------------------------------------------------------------------------------------- each its own way


def test_parent_and_fork_never_notice_each_other(db, wf):
    """C22: both append, compact and keep checkpoints; what the other one reads stays as it was."""
    fork = fork_of(db, wf)
    before, there = seen_of(fork), texts(fork)
    give(wf, strandline.tool_result("c1", "job-8841 is done"), *talk(30, start=300))
    assert wf.compact(SMALL, quiet).outcome == "activated"
    wf.checkpoint({"turn": 1}, 1, basis=wf.context())
    wf.append(strandline.lift_constraint("prod", "over"))
    assert seen_of(fork) == before
    assert texts(fork) == there
    ok(wf, fork)

    before, there = seen_of(wf), texts(wf)
    fork.append([strandline.tool_result("c1", "job-1111 is done"), *talk(30, start=500)])
    assert fork.compact(SMALL, quiet).outcome == "activated"
    fork.checkpoint({"turn": 7}, 7, basis=fork.context())
    fork.append(strandline.resolve("scope", "narrowed"))
    assert seen_of(wf) == before
    assert texts(wf) == there
    ok(wf, fork)
    assert fork.events(wf.context().watermark)[0].text
    assert "job-1111" in "".join(texts(fork))
    assert "job-8841" not in "".join(texts(fork))


def test_a_compaction_of_the_parent_that_is_in_flight_goes_on(db, wf):
    """C22: a fork fences nothing, and takes nothing that is not active."""
    forks = []

    def forking(request):
        forks.append(fork_of(db, wf))
        return quiet(request)

    give(wf, strandline.tool_result("c1", "done"), *talk(30, start=300))
    before = wf.basis().generation
    outcome = wf.compact(SMALL, forking)
    assert (outcome.outcome, outcome.generation) == ("activated", before + 1)
    assert forks
    for fork in forks:
        assert fork.context(WHOLE).watermark < outcome.watermark
        with fork._env.read() as tx:
            assert list(tx.jobs.all_candidates()) == []
            assert tx.views.get("main").lease_attempt is None
        ok(fork)


def test_two_forks_of_one_event_are_two(db, wf):
    """C22: the same key, seq and reference number mean something else in each."""
    one, two = fork_of(db, wf), fork_of(db, wf)
    one.append(strandline.note("uses vol-1111", key="k"))
    two.append(strandline.note("uses vol-2222", key="k"))
    assert (texts(one)[-1], texts(two)[-1]) == ("uses vol-1111", "uses vol-2222")
    assert one.recall("vol-2222") == two.recall("vol-1111") == wf.recall("vol-1111") == []
    assert [hit.text for hit in one.recall("vol-1111")] == ["uses vol-1111"]
    ok(wf, one, two)


# ---------------------------------------------------------------------------------------------- keys


def test_a_fork_asks_its_ancestors_keys(db):
    """I3: up to the fork point; what was used there later is free here."""
    wf = new_workflow(db)
    wf.append([strandline.note(f"number {n}", key=f"k{n}") for n in range(1, 6)])
    fork = fork_of(db, wf, 3)
    assert fork.append(strandline.note("number 2", key="k2")).seqs == (2,)
    with pytest.raises(strandline.IdempotencyConflictError) as caught:
        fork.append(strandline.note("something else", key="k2"))
    assert (caught.value.key, caught.value.seq) == ("k2", 2)
    assert fork.append(strandline.note("quite another", key="k4")).seqs == (4,)
    mixed = fork.append([strandline.note(f"number {n}", key=f"k{n}") for n in (1, 3, 5)])
    assert (mixed.seqs, mixed.added) == ((1, 3, 5), 1)
    second = fork_of(db, fork, 4)
    assert second.append(strandline.note("number 1", key="k1")).seqs == (1,)
    with pytest.raises(strandline.IdempotencyConflictError):
        second.append(strandline.note("number 4", key="k4"))  # in the fork it is something else
    assert second.append(strandline.note("new", key="k5")).seqs == (5,)
    assert wf.append(strandline.note("number 4", key="k4")).added == 0
    ok(wf, fork, second)


def test_a_stale_writer_is_refused_and_a_repeat_is_not(db, wf):
    """I3: `expected_revision` counts from the shared past."""
    revision = wf.basis().revision
    fork = fork_of(db, wf)
    fork.append(strandline.note("first", key="a"), expected_revision=revision)
    assert fork.append(strandline.note("first", key="a"), expected_revision=revision).seqs == (revision + 1,)
    with pytest.raises(strandline.StaleRevisionError):
        fork.append(strandline.note("second", key="b"), expected_revision=revision)


# ---------------------------------------------------------------------------------------------- references


def test_a_fork_in_the_middle_of_a_batch_numbers_on_from_there(db):
    """C22: the batch stays whole in the parent; its later references are unknown in the fork."""
    wf = new_workflow(db)
    give(wf, *(strandline.note(f"vol-000{n} beside vol-0001", refs=[f"ticket {n}"]) for n in range(1, 7)))
    fork = fork_of(db, wf, 3)
    with fork._env.read() as tx, wf._env.read() as there:
        known = tx.refs.find([f"ticket {n}" for n in range(1, 7)])
        assert set(known) == {"ticket 1", "ticket 2", "ticket 3"}
        assert known == there.refs.find(list(known))
        highest = max(ref_id for seq, ref_id, _ in there.refs.all_sightings() if seq <= 3)
        assert tx.log.head().ref_id == tx.log.head().fork_ref_id == highest
        assert tx.refs.texts(range(1, 100)) == {
            n: t for n, t in there.refs.texts(range(1, 100)).items() if n <= highest
        }
        assert [seq for seq, _ in tx.refs.sightings(tx.refs.find(["vol-0001"])["vol-0001"], 100, 10)] == [3, 2, 1]
    assert fork.recall("ticket 5") == []
    fork.append(strandline.note("own", refs=["ticket 9", "ticket 2", "ticket 5"]))
    with fork._env.read() as tx:
        numbers = tx.refs.find(["ticket 9", "ticket 2", "ticket 5"])
        assert sorted(set(numbers.values()) - {known["ticket 2"]}) == [highest + 1, highest + 2]
        tx.refs.check_keys()
    assert [hit.seq for hit in fork.recall("ticket 2")] == [4, 2]
    assert [hit.seq for hit in fork.recall("ticket 5")] == [4]
    assert [hit.seq for hit in wf.recall("ticket 5")] == [5]
    ok(wf, fork)


def test_a_pin_of_what_the_past_holds_is_no_invention(db, wf):
    """C22, I8: and of what the parent saw later it is one."""
    fork = fork_of(db, wf, 10)
    ref = next(ref for ref in ("bucket-0001", "bucket-0002") if wf.recall(ref))
    later = "bucket-005a"  # of step 90
    assert wf.recall(later)
    with pytest.raises(strandline.InvalidInputError, match="no earlier event holds"):
        fork.append(strandline.pin(later))
    fork.append(strandline.pin(ref))
    assert (("pin"), ref) in {
        (anchor.key.kind.value, ref) for anchor in [*fork_facts(fork)] if anchor.key.kind is FactKind.PIN
    }
    fork.append(strandline.unpin(ref))
    ok(fork)


def fork_facts(wf):
    with wf._env.read() as tx:
        return tx.register.as_of(2**62)


def test_a_need_is_quoted_from_the_past(db, wf):
    """C4, C19: recall, retrieval and `last_known` reach behind the fork point, as far as the root."""
    fork = fork_of(db, fork_of(db, wf), wf.basis().revision - 2)
    dropped = next(iter(wf.manifest()))
    context = fork.context(SMALL * 2, needs=[dropped.ref])
    assert dropped.ref in context.text
    assert [hit.seq for hit in fork.recall(dropped.ref)] == [hit.seq for hit in wf.recall(dropped.ref)]
    with pytest.raises(strandline.SummaryReconciliationError) as caught:
        fork.recover(needs=[dropped.ref])
    assert caught.value.last_known.seq == dropped.last_seq


# ---------------------------------------------------------------------------------------------- the register


def test_a_call_that_was_open_at_the_fork_point_is_open_in_the_fork(db):
    """I8, C22: though the parent answered it since; its answer here is no orphan, and cites the shared call."""
    wf = new_workflow(db)
    wf.append([strandline.note("before"), strandline.tool_call("c1", "fetch", {})])
    early = fork_of(db, wf)
    wf.append(strandline.tool_result("c1", "answered there"))
    late = fork_of(db, wf)
    middle = fork_of(db, wf, 2)
    for fork in (early, middle):
        assert [call.seq for call in fork.context().open_calls] == [2]
        assert fork.compact(64, quiet).outcome == "nothing_to_do"
        fork.append(strandline.tool_result("c1", "answered here"))
        assert (fork.events()[-1].call_seq, fork.events()[-1].late) == (2, False)
        assert fork.context().open_calls == ()
    assert late.context().open_calls == ()
    late.append(strandline.tool_result("c1", "again"))  # a second result, of a call that ended before the fork point
    assert (late.events()[-1].call_seq, late.events()[-1].late) == (2, True)
    ok(wf, early, middle, late)


def test_a_late_result_closes_an_unknown_call_of_the_past(db):
    """I8: the call became unknown in the past, and its result comes in the fork."""
    wf = new_workflow(db)
    wf.append([strandline.tool_call("c1", "fetch", {}), strandline.message("user", "what now?")])
    fork = fork_of(db, wf)
    assert {state for _, state, _, _ in facts(fork)} == {"unknown"}
    fork.append(strandline.tool_result("c1", "there it is"))
    assert (fork.events()[-1].late, fork.events()[-1].call_seq) == (True, 1)
    assert facts(fork) == set()
    assert len(facts(wf)) == 1
    with pytest.raises(strandline.InvalidInputError, match="no earlier event made"):
        fork.append(strandline.tool_result("c2", "an orphan"))
    wf.append(strandline.tool_call("c2", "fetch", {}))
    with pytest.raises(strandline.InvalidInputError, match="no earlier event made"):
        fork.append(strandline.tool_result("c2", "still an orphan here"))
    ok(wf, fork)


def test_facts_in_force_go_over_and_then_their_own_way(db, wf):
    """C22: constraints, issues, approvals, revocations, artifacts, pins; lifted there is in force here."""
    wf.append(
        [
            strandline.approval("deploy", "Go.", granter="dana", scope="staging"),
            strandline.approval("publish", "Go.", granter="dana"),
            strandline.revoke("publish", "Not any more."),
            strandline.artifact("report", "handle-77aa", "the report"),
            strandline.note("holds vol-4411", refs=["vol-4411"]),
            strandline.pin("vol-4411"),
        ]
    )
    fork = fork_of(db, wf)
    assert facts(fork) == facts(wf)
    assert len(facts(wf)) == 7
    wf.append([strandline.lift_constraint("prod", "over"), strandline.release_artifact("report", "gone")])
    wf.append([strandline.resolve("scope", "done"), strandline.unpin("vol-4411"), strandline.revoke("deploy", "no")])
    assert len(facts(fork)) == 7
    fork.append(strandline.lift_constraint("prod", "over here too"))
    with pytest.raises(strandline.InvalidInputError):
        fork.append(strandline.lift_constraint("prod", "twice"))
    fork.append([strandline.approval("publish", "Now go.", granter="eve"), strandline.unpin("vol-4411")])
    assert len(facts(fork)) == 5
    with fork._env.read() as tx:
        assert {f.source_seq for f in tx.register.as_of(1)} == {1}
    ok(wf, fork)


# ---------------------------------------------------------------------------------------------- compaction


def test_a_fork_compacts_across_the_boundary(db, wf):
    """C9, I9, I12: merges are made anew from the raw events of the past, and every reference is accounted for."""
    fork = fork_of(db, wf)
    fork.append(strandline.tool_result("c1", "job-1111 is done"))
    for turn in range(6):
        fork.append(talk(12, start=1_000 + 50 * turn))
        outcome = fork.compact(SMALL, quiet)
        assert (outcome.outcome, outcome.refs_unaccounted) == ("activated", 0)
        assert outcome.refs_seen == outcome.refs_verbatim + outcome.refs_dropped
    assert all(entry.ref for entry in fork.manifest())
    assert fork.compact(SMALL, quiet).outcome == "nothing_to_do"
    spans = [(segment.head.from_seq, segment.head.through_seq) for segment in outcome.summary.segments]
    assert any(first <= wf.basis().revision < last for first, last in spans), "a segment spans the fork point"
    assert "Never touch db-prod-77." in fork.context().text
    ok(wf, fork)


def test_a_base_that_was_taken_over_is_superseded_without_a_candidate_of_its_own(db, wf):
    """I5: its attempt is the parent's; the fork's own are all there."""
    fork = fork_of(db, wf)
    fork.append([strandline.tool_result("c1", "done"), *talk(30, start=700)])
    assert fork.compact(SMALL, quiet).generation == 2
    fork.append(talk(30, start=800))
    assert fork.compact(SMALL, quiet).generation == 3
    with fork._env.read() as tx:
        assert sorted(candidate.state for candidate in tx.jobs.all_candidates()) == ["active", "superseded"]
    ok(fork)


# ---------------------------------------------------------------------------------------------- recovery, ledger


def test_checkpoints_of_the_parent_are_no_targets_in_the_fork(db, wf):
    """C22, I15: a fork recovers by replay, until it keeps its own."""
    wf.checkpoint({"turn": 3}, 3, basis=wf.context())
    fork = fork_of(db, wf)
    recovery = fork.recover()
    assert (recovery.kind, recovery.state, recovery.turn) == ("replay", None, None)
    assert recovery.context.text == wf.context().text
    fork.checkpoint({"turn": 4}, 4, basis=fork.context())
    fork.append(strandline.note("later"))
    assert (fork.recover().kind, fork.recover().state) == ("restore", {"turn": 4})
    assert wf.recover().state == {"turn": 3}
    ok(wf, fork)


def test_a_family_has_one_ledger(db, wf):
    """C22, C23: that of its root, from whatever fork it is asked."""
    fork = fork_of(db, wf)
    second, sibling = fork_of(db, fork), fork_of(db, wf)
    effect = Effect(
        key="pay-1",
        tool="pay",
        subject="invoice-7",
        fingerprint="f" * 32,
        state=EffectState.INTENDED,
        attempt=1,
        workflow=second.name,
        call_seq=1,
        intended_us=1,
    )
    with second._env.write() as tx:
        held = ledger(tx)
        held.effects.add(effect)
        held.log.set_head(replace(held.log.head(), effects=held.log.head().effects + 1))
    for member in (wf, fork, second, sibling):
        with member._env.read() as tx:
            assert ledger(tx).effects.get("pay-1") == effect
            assert ledger(tx).log.head().effects == 1
    with second._env.read() as tx:
        assert list(tx.effects.all()) == []
    assert texts(second) == texts(wf)


# ---------------------------------------------------------------------------------------------- forks of forks


def test_a_fork_of_a_fork_reads_as_far_as_the_root(db, wf):
    """C22: at an event of its own, at its fork point, and at an event of the root."""
    fork = fork_of(db, wf, 20)
    fork.append([strandline.note(f"mine {n} vol-77{n}0", key=f"m{n}") for n in range(1, 5)])
    wf.append(strandline.note("theirs"))
    for at in (22, 20, 9):
        second = fork_of(db, fork, at)
        assert texts(second) == texts(fork)[:at]
        second.append(strandline.note("own vol-9990", key="m1" if at < 21 else "own"))
        assert texts(second)[-1] == "own vol-9990"
        assert [hit.seq for hit in second.recall("vol-7710")] == ([21] if at > 20 else [])
        third = fork_of(db, second)
        assert texts(third) == texts(second)
        ok(second, third)
    ok(wf, fork)


def test_families_have_a_depth(db):
    """I22: at the limit there is a clear error, and nothing is written."""
    wf = new_workflow(db)
    wf.append(strandline.note("the root holds vol-0001"))
    member = wf
    for _ in range(FORK_DEPTH_MAX):
        member = fork_of(db, member)
        member.append(strandline.note("one more"))
    assert len(texts(member)) == FORK_DEPTH_MAX + 1
    assert [hit.seq for hit in member.recall("vol-0001")] == [1]
    with member._env.read() as tx:
        assert ledger(tx).log.head().parent is None
    ok(member)
    held = db.tenant("acme").workflows()
    with pytest.raises(strandline.InvalidInputError, match=f"{FORK_DEPTH_MAX} ancestors"):
        member.fork(None, "one-too-many", **SAID)
    assert db.tenant("acme").workflows() == held


# ---------------------------------------------------------------------------------------------- bad input


def test_what_can_not_be_forked_is_refused_and_nothing_is_written(db, wf):
    """SPEC §6: each error says what was wrong; no row is left."""
    held, before = db.tenant("acme").workflows(), seen_of(wf)
    revision = wf.basis().revision
    empty, taken = new_workflow(db), fork_of(db, wf)
    held = db.tenant("acme").workflows()
    wrong = strandline.InvalidInputError, strandline.TenantScopeError
    for fork, message in (
        (lambda: wf.fork(0, "f", **SAID), "revision 0"),
        (lambda: wf.fork(revision + 1, "f", **SAID), f"revision {revision + 1}"),
        (lambda: wf.fork(-1, "f", **SAID), "revision -1"),
        (lambda: wf.fork("3", "f", **SAID), "whole number"),
        (lambda: wf.fork(True, "f", **SAID), "whole number"),
        (lambda: wf.fork(None, wf.name, **SAID), "another name"),
        (lambda: wf.fork(None, taken.name, **SAID), "is there already"),
        (lambda: wf.fork(None, "", **SAID), "needs a name"),
        (lambda: wf.fork(None, " f", **SAID), "spaces"),
        (lambda: wf.fork(None, 7, **SAID), "needs a name"),
        (lambda: wf.fork(None, "f", by="", why="x"), "by is empty"),
        (lambda: wf.fork(None, "f", by="dana", why=None), "why is a text"),
        (lambda: wf.fork(None, "f", by="dana", why="x" * (CASE_TEXT_CHARS_MAX + 1)), "at most"),
        (lambda: wf.fork(None, "f", by="dana\ud800", why="x"), "surrogate"),
        (lambda: empty.fork(None, "f", **SAID), "no event"),
        (lambda: empty.fork(0, "f", **SAID), "no event"),
    ):
        with pytest.raises(wrong, match=message):
            fork()
    assert db.tenant("acme").workflows() == held
    assert seen_of(wf) == before
    assert fork_of(db, wf)  # the name of a workflow that was only looked at is free
    wf.fork(None, empty.name, **SAID)
    with pytest.raises(strandline.InvalidInputError, match="is there already"):
        wf.fork(None, empty.name, **SAID)


def test_a_fork_stays_within_its_tenant(db, wf):
    """I21: the same name elsewhere is another workflow, before and after."""
    name = new_workflow(db).name
    other = db.tenant("umbrella").workflow(name)
    with pytest.raises(strandline.TenantScopeError):
        db.tenant("umbrella").workflow(wf.name).fork(None, "f", **SAID)
    wf.fork(None, name, **SAID)
    other.append(strandline.note("of another tenant"))
    assert texts(other) == ["of another tenant"]
    assert len(texts(db.tenant("acme").workflow(name))) == wf.basis().revision


def test_views_go_over_with_what_they_may_see(db):
    """I21: a narrow view of the fork sees no more of the past than it did; each has its own pointer."""
    wf = new_workflow(db)
    wf.append([strandline.note(f"secret-44{n}1", audience="staff") for n in range(5)])
    wf.append([strandline.note("door-77 is open", audience="release"), *talk(30)])
    with transaction(db, wf, write=True) as tx:
        tx.views.put(ViewHead(view_id=1, name="main"))
        tx.views.put(ViewHead(view_id=2, name="narrow", audiences=frozenset({"release"}), budget=SMALL))
    assert strandline.Workflow(wf._env, "narrow").compact(None, quiet).outcome == "activated"
    wf.append(talk(3, start=80))
    fork = fork_of(db, wf)
    narrow = strandline.Workflow(fork._env, "narrow")
    assert parts(narrow) == parts(strandline.Workflow(wf._env, "narrow"))
    assert (narrow.context(WHOLE).generation, fork.context(WHOLE).generation) == (1, 0)
    assert "secret" not in narrow.context(WHOLE).text
    assert narrow.recall("secret-4411") == []
    assert narrow.recall("door-77")[0].seq == 6
    assert [entry.view for entry in fork.lineage()] == ["narrow"]
    with fork._env.read() as tx:
        assert [(v.view_id, v.name, v.audiences, v.budget, v.generation) for v in tx.views.all()] == [
            (1, "main", None, None, 0),
            (2, "narrow", frozenset({"release"}), SMALL, 1),
        ]
    narrow.append(talk(40, start=300))
    assert narrow.compact(None, quiet).generation == 2
    ok(wf, fork)


# ---------------------------------------------------------------------------------------------- proof


DAMAGE = {
    "covered event": "UPDATE event SET body = CAST('bad' AS BLOB), codec = 0 WHERE seq = 3",
    "last shared event": "UPDATE event SET body = CAST('bad' AS BLOB), codec = 0 WHERE seq = 60",
    "event gone": "DELETE FROM event WHERE seq = 60",
    "texts of references": "UPDATE ref_block SET texts = x'00' WHERE first_id = 1",
    "row of the parent": "UPDATE workflow SET revision = 1 WHERE name = 'root'",
    "row of the fork": "UPDATE workflow SET fork_seq = 59 WHERE name = 'fork'",
    "parent gone": "DELETE FROM workflow WHERE name = 'root'",
    "parent of the fork": "UPDATE workflow SET parent = 'elsewhere' WHERE name = 'fork'",
    "fact of the fork": "DELETE FROM register_fact WHERE workflow_id = 2",
}


@pytest.mark.parametrize("statement", DAMAGE.values(), ids=DAMAGE)
def test_damage_to_the_shared_past_is_found_from_the_fork(tmp_path, statement):
    """I4: `verify` of the fork alone finds it; a context that reads there is refused."""
    import sqlite3

    with open_store("sqlite", tmp_path) as db:
        root = db.tenant("acme").workflow("root")
        root.append([strandline.constraint("rule", "Never on Fridays."), *talk(40)])
        assert root.compact(2 * SMALL, quiet, through=40).watermark == 40
        root.fork(60, "fork", **SAID)
        fork = db.tenant("acme").workflow("fork")
        fork.append(talk(2, start=99))
        ok(root, fork)
    with closing(sqlite3.connect(tmp_path / "store.db")) as connection:
        connection.execute("PRAGMA foreign_keys=OFF")
        for trigger in ("event_is_never_deleted", "event_is_never_changed"):
            connection.execute(f"DROP TRIGGER {trigger}")
        assert connection.execute(statement).rowcount
        connection.commit()
    with open_store("sqlite", tmp_path) as db:
        fork = db.tenant("acme").workflow("fork")
        assert not fork.verify().ok
        if "seq = 3" not in statement and "ref_block" not in statement:
            with pytest.raises(strandline.CorruptRecordError):
                fork.context()
        if statement.startswith("DELETE FROM workflow"):
            for asks_the_past in (lambda: fork.append(strandline.note("x", key="k")), lambda: fork.recall("r-1")):
                with pytest.raises(strandline.CorruptRecordError, match="ends before event 60"):
                    asks_the_past()


def test_a_workflow_that_is_no_fork_pays_nothing(tmp_path, monkeypatch):
    """C22: no further statement, whatever is done."""
    from strandline.stores.sqlite.session import SqliteSession

    def refuse(self, workflow):
        raise AssertionError("a relative was asked for")

    with open_store("sqlite", tmp_path) as db:
        wf = new_workflow(db)
        monkeypatch.setattr(SqliteSession, "relative", refuse)
        wf.append([strandline.note("a", key="k"), *talk(30)])
        wf.append(strandline.note("a", key="k"))
        wf.compact(SMALL, quiet)
        wf.checkpoint({}, 1, basis=wf.context())
        assert wf.recover().kind == "restore"
        ok(wf)
        with db.store.read(Scope(tenant="acme", workflow=wf.name)) as tx:
            assert compose(tx) is tx


def test_writers_of_parent_and_fork_do_not_wait_for_each_other_for_ever(db, wf):
    """I22: a fork locks itself, then its ancestors; nobody locks the other way round."""
    fork = fork_of(db, wf)
    errors = []

    def write(workflow, mark):
        try:
            for number in range(15):
                workflow.append(strandline.note(f"{mark} {number} vol-{number:04x}", key=f"{mark}{number}"))
        except Exception as error:  # noqa: BLE001
            errors.append(error)

    def forks():
        try:
            for _ in range(5):
                fork_of(db, wf, 10)
        except Exception as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=write, args=(wf, "p")), threading.Thread(target=write, args=(fork, "f"))]
    threads.append(threading.Thread(target=forks))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []
    assert [text.split()[0] for text in texts(fork)[-15:]] == ["f"] * 15
    ok(wf, fork)


def test_event_loops_fork_too(tmp_path):
    """The twin of the verb."""

    async def main():
        async with strandline.aopen(tmp_path / "s.db", clock=VirtualClock()) as db:
            wf = db.tenant("acme").workflow("root")
            await wf.append(talk(3))
            forked = await wf.fork(4, "branch", by="dana", why="look")
            assert (forked.revision, forked.parent, forked.lineage_seq) == (4, "root", 1)
            return [event.seq for event in await db.tenant("acme").workflow("branch").events()]

    assert asyncio.run(main()) == [1, 2, 3, 4]


# ---------------------------------------------------------------------------------------------- any family


STEPS = ["append", "append", "append", "fork", "fork", "compact", "rewind"]
STEP = st.tuples(st.sampled_from(STEPS), st.integers(0, 30), st.integers(0, 100))


@dataclass
class Model:
    """A workflow as a list of its own: key and text of each event, and the ranges that rewinds abandoned."""

    held: list[tuple[str | None, str]]
    ranges: list[tuple[int, int]] = field(default_factory=list)

    def left(self, seq: int) -> bool:
        return any(first <= seq <= last for first, last in self.ranges)

    def holder(self, key: str) -> int | None:
        """Return the seq of the live event with this key."""
        seqs = [seq for seq, (held, _) in enumerate(self.held, start=1) if held == key and not self.left(seq)]
        return seqs[-1] if seqs else None

    def forked(self, at: int) -> Model:
        return Model(self.held[:at], [behind for behind in self.ranges if behind[1] <= at])


@given(log=logs(40), steps=st.lists(STEP, max_size=14))
@bounded(60)
def test_any_family_is_a_family_of_lists(db, log, steps):
    """C22, I1, I3, I9: whatever is appended, forked, rewound and compacted in whatever order, each workflow's log
    is the list that a copy would be, nothing else changes it, and all is proved.
    """
    root = new_workflow(db)
    root.append([replace(event, key=f"r{n}") for n, event in enumerate(log.events)])
    family = [(root, Model([(f"r{n}", text) for n, text in enumerate(texts(root))]))]
    for step, a, b in steps:
        wf, model = family[a % len(family)]
        revision = len(model.held)
        if step == "append":
            key = f"k{b % 4}"
            text, known = f"{key} uses vol-{b % 7:04x}", model.holder(key)
            if known and model.held[known - 1][1] != text:
                with pytest.raises(strandline.IdempotencyConflictError):
                    wf.append(strandline.note(text, key=key))
                continue
            assert wf.append(strandline.note(text, key=key)).seq == (known or revision + 1)
            if not known:
                model.held.append((key, text))
        elif step == "fork":
            at = b % revision + 1
            if model.left(at) and at < revision:
                with pytest.raises(strandline.InvalidInputError, match="abandoned"):
                    wf.fork(at, "never", **SAID)
            else:
                family.append((fork_of(db, wf, at), model.forked(at)))
        elif step == "compact":
            with suppress(strandline.ContextOverflowError):
                assert wf.compact(100 + 10 * b, quiet).refs_unaccounted == 0
        else:
            to = b % revision
            if model.left(to) or all(model.left(seq) for seq in range(to + 1, revision + 1)):
                with pytest.raises(strandline.InvalidInputError):
                    wf.rewind(to, **SAID)
                continue
            done = wf.rewind(to, **SAID)
            model.ranges.append((to + 1, revision))
            model.held += [(None, model.held[old - 1][1]) for _, old in done.restated]
    for wf, model in family:
        assert texts(wf) == [text for _, text in model.held]
        assert [event.abandoned for event in wf.events()] == [model.left(n + 1) for n in range(len(model.held))]
        for n in range(7):
            seqs = [seq for seq, (_, text) in enumerate(model.held, start=1) if text.endswith(f"uses vol-{n:04x}")]
            assert [hit.seq for hit in wf.recall(f"vol-{n:04x}")] == seqs[::-1]
        ok(wf)


# ---------------------------------------------------------------------------------------------- with rewinds


def kinds(wf: strandline.Workflow) -> set[tuple[str, str]]:
    return {(key.kind.value, state.value) for key, state, _, _ in facts(wf)}


def test_a_fork_goes_back_behind_its_fork_point(db, wf):
    """C22: the range reaches into the past that it shares; the parent's events and keys stay as they are."""
    wf.append([strandline.note(f"plan {n} vol-77{n}0", key=f"p{n}") for n in range(3)])
    wf.append([strandline.lift_constraint("prod", "over"), strandline.approval("deploy", "Go.", granter="dana")])
    before, there, held = seen_of(wf), texts(wf), facts(wf)
    fork = fork_of(db, wf)
    fork.append([strandline.note("mine", key="m"), strandline.resolve("scope", "done"), *talk(2, start=600)])
    done = fork.rewind(20, **SAID)
    assert (done.to_revision, done.from_seq) == (20, 21)
    assert [fork.events(seq)[0].text for seq, _ in done.restated] == ["over"]  # the lift is never undone
    assert facts(fork) == set()
    assert [event.abandoned for event in fork.events(19, 22)] == [False, False, True, True]
    assert fork.append(strandline.note("another plan", key="p1")).added == 1
    assert fork.append(strandline.note("another of mine", key="m")).added == 1
    assert "vol-7710" not in fork.context(WHOLE).text
    assert [hit.abandoned for hit in fork.recall("vol-7710")] == [True]
    assert (seen_of(wf), texts(wf), facts(wf)) == (before, there, held)
    assert not any(event.abandoned for event in wf.events())
    with pytest.raises(strandline.IdempotencyConflictError):
        wf.append(strandline.note("another plan", key="p1"))
    second = fork_of(db, fork)
    assert second.append(strandline.note("another plan", key="p1")).added == 0
    assert parts(second) == parts(fork)
    fork.append(talk(40, start=700))
    assert fork.compact(SMALL, quiet).outcome == "activated"
    assert fork.rewind(0, **SAID).events > 80
    assert fork.context().watermark == 0
    ok(wf, fork, second)


def test_a_rewind_of_the_parent_leaves_its_forks_alone(db, wf):
    """C22: also to before their fork points; what it frees there stays taken here."""
    wf.append([strandline.note("plan", key="p"), strandline.issue("late", "It leaks.")])
    fork, held = fork_of(db, wf), facts(wf)
    before, there = seen_of(fork), texts(fork)
    wf.rewind(15, **SAID)
    wf.append(strandline.note("another plan", key="p"))
    assert (seen_of(fork), texts(fork), facts(fork)) == (before, there, held)
    assert fork.append(strandline.note("plan", key="p")).added == 0
    assert not any(event.abandoned for event in fork.events())
    fork.append([strandline.tool_result("c1", "there it is"), *talk(40, start=800)])
    assert fork.compact(SMALL, quiet).outcome == "activated"
    with pytest.raises(strandline.InvalidInputError, match="abandoned"):
        wf.fork(17, "never", **SAID)
    ok(wf, fork)
    after = fork_of(db, wf)
    assert parts(after) == parts(wf)
    assert after.append(strandline.note("another plan", key="p")).added == 0
    ok(after)


def test_a_fork_right_behind_a_rewind_begins_with_what_is_live(db, wf):
    """C22: the newest revision is abandoned, and stands for what is live now; the fork may go back further."""
    wf.append(strandline.issue("late", "It leaks."))
    wf.rewind(25, **SAID)
    fork = fork_of(db, wf)
    assert parts(fork) == parts(wf)
    assert facts(fork) == facts(wf)
    assert [event.abandoned for event in fork.events(24, 27)] == [False, False, True, True]
    ok(fork)
    again = fork_of(db, fork)
    fork.rewind(1, **SAID)
    assert kinds(fork) == {("constraint", "standing")}
    ok(fork)
    fork.rewind(0, **SAID)
    assert facts(fork) == set()
    fork.append([strandline.constraint("prod", "Never touch db-prod-77."), *talk(3)])
    ok(wf, fork, again, fork_of(db, fork))
    assert facts(again) == facts(wf)


def test_a_revert_in_a_fork_goes_back_to_what_it_took_over(db, wf):
    """C17, C22: generation 1 is the one that the fork point had; what was made before the fork is not listed."""
    fork = fork_of(db, wf)
    fork.append([strandline.tool_result("c1", "done"), *talk(30, start=900)])
    before = [part for part in parts(fork) if part[0] == "segment"]
    assert fork.compact(SMALL, quiet).generation == 2
    reverted = fork.revert(1, **SAID)
    assert [part for part in parts(fork) if part[0] == "segment"] == before
    assert fork.basis().generation == 3
    assert reverted
    fork.append(talk(30, start=990))
    assert fork.compact(SMALL, quiet).generation == 4
    ok(wf, fork)
