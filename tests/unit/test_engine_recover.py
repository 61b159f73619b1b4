"""Law (I13–I16): recovery goes on from a state that really existed, or stops with an error that says what is missing.

Checked on both stores by cases: which checkpoint is taken, what is handed back, what is refused, and what is written.
"""

import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest

import strandline
from strandline.engine.lineage import add_entry
from strandline.engine.reading import check_summary
from strandline.limits import LEASE_TTL_S
from strandline.model.lineage import LineageEntry, LineageKind
from tests.unit.test_engine_stage import (
    lease_of,
    new_workflow,
    open_store,
    quiet,
    seen_of,
    talk,
    transaction,
)

SAY = strandline.message


@pytest.fixture
def wf(db):
    wf = new_workflow(db)
    wf.append(talk(8))
    yield wf
    assert lease_of(db, wf) is None


def keep(wf, turn: int, **arguments) -> strandline.Checkpoint:
    """Checkpoint a state made from the context as it is now."""
    return wf.checkpoint({"turn": turn}, turn, basis=wf.context(), **arguments)


# ---------------------------------------------------------------------------------------------- checkpoint


def test_a_checkpoint_is_one_entry_of_the_lineage(db, wf):
    """I13, I14: revision, generations and lineage_seq belong together; the sequence has no gap."""
    wf.compact(400, quiet)
    made = keep(wf, 3)
    wf.compact(200, quiet)
    entries = wf.lineage()
    assert [entry.lineage_seq for entry in entries] == list(range(1, len(entries) + 1))
    assert [(entry.kind, entry.generation) for entry in entries][:2] == [("compaction", 1), ("checkpoint", 1)]
    assert (made.lineage_seq, made.revision, made.turn) == (2, 16, 3)
    assert [(view.view, view.generation, view.basis_revision) for view in made.views] == [("main", 1, 16)]


def test_a_state_from_before_a_compaction_can_not_be_stamped_after_it(wf):
    """I14: the basis generation is no longer the view's; nothing is written."""
    basis = wf.context()
    wf.compact(400, quiet)
    with pytest.raises(strandline.CompactionLineageError) as caught:
        wf.checkpoint({}, 1, basis=basis)
    assert (caught.value.basis_generation, caught.value.generation) == (0, 1)
    assert [entry.kind for entry in wf.lineage()] == ["compaction"]
    wf.checkpoint({}, 1, basis=wf.context())


def test_a_context_free_checkpoint_needs_no_basis(wf):
    """I14: control flow and references; and one of both must be given, not both."""
    wf.compact(400, quiet)
    assert wf.checkpoint({"step": "publish"}, 1, context_free=True).context_free
    with pytest.raises(strandline.InvalidInputError):
        wf.checkpoint({}, 1)
    with pytest.raises(strandline.InvalidInputError):
        wf.checkpoint({}, 1, basis=wf.context(), context_free=True)


@pytest.mark.parametrize("state", [float("nan"), {1: 2}, {"x": "\ud800"}, {"x": b"y"}, {"x": {1, 2}}], ids=repr)
def test_a_state_that_json_can_not_hold_is_refused(wf, state):
    """I14: exact state, or an error that names the place."""
    with pytest.raises(strandline.InvalidInputError):
        wf.checkpoint(state, 1, context_free=True)
    assert wf.lineage() == []


@pytest.mark.parametrize("turn", [-1, 1.5, True, "3"])
def test_a_turn_is_a_count(wf, turn):
    """SPEC §6."""
    with pytest.raises(strandline.InvalidInputError):
        wf.checkpoint({}, turn, context_free=True)


@pytest.mark.parametrize("revision", [17, -1])
def test_a_basis_that_never_was_is_refused(wf, revision):
    """I14: its revision lies between the watermark and the log's end."""
    with pytest.raises(strandline.InvalidInputError):
        wf.checkpoint({}, 1, basis=strandline.Basis(view="main", generation=0, revision=revision))
    with pytest.raises(strandline.TenantScopeError):
        wf.checkpoint({}, 1, basis=strandline.Basis(view="nobody", generation=0, revision=1))


# ---------------------------------------------------------------------------------------------- restore or replay


def test_a_checkpoint_newer_than_the_last_compaction_is_restored(wf):
    """I15, I16: the exact state, and every later event, marked; its own among them."""
    wf.compact(400, quiet)
    state = {"plan": [1, 2.5, None, "é"], "handle": "bucket-7f3a", "deep": {"a": {"b": [[]]}}}
    made = wf.checkpoint(state, 17, basis=wf.context())
    wf.append([SAY("assistant", "since then"), SAY("user", "and then")])
    recovered = wf.recover()
    assert (recovered.kind, recovered.state, recovered.turn) == ("restore", state, 17)
    assert (recovered.checkpoint_seq, recovered.generation) == (made.lineage_seq, 1)
    assert [part.from_seq for part in recovered.context.parts if part.since_checkpoint] == [17, 18]
    entry = wf.lineage()[-1]
    assert (entry.kind, entry.restored_seq, entry.lineage_seq) == ("restore", made.lineage_seq, recovered.lineage_seq)


def test_events_after_the_basis_are_marked_though_the_checkpoint_is_newer(wf):
    """I16: what counts is what the state was made from."""
    basis = wf.context()
    wf.append(SAY("assistant", "between basis and checkpoint"))
    wf.checkpoint({}, 1, basis=basis)
    wf.append(SAY("user", "after"))
    assert [part.from_seq for part in wf.recover().context.parts if part.since_checkpoint] == [17, 18]


def test_what_came_since_is_never_dropped_in_silence(wf):
    """I16: where not all of it fits, recovery stops, and writes nothing."""
    keep(wf, 1)
    wf.append(talk(8, start=50))
    before = seen_of(wf)
    with pytest.raises(strandline.ContextOverflowError):
        wf.recover(budget=200)
    assert seen_of(wf) == before


def test_a_checkpoint_older_than_a_compaction_is_not_restored(wf):
    """I15: the working context of before does not come back; recovery replays summary and tail."""
    keep(wf, 1)
    wf.compact(400, quiet)
    wf.append(SAY("user", "after"))
    recovered = wf.recover()
    assert (recovered.kind, recovered.state, recovered.checkpoint_seq) == ("replay", None, None)
    assert recovered.context == wf.context()
    assert [entry.kind for entry in wf.lineage()] == ["checkpoint", "compaction", "replay"]
    assert (recovered.generation, wf.lineage()[-1].generation) == (1, 1)


def test_wall_clocks_are_never_asked(db):
    """I15: a checkpoint that a clock calls older is restored, one that it calls newer is not."""
    wf = new_workflow(db)
    clock = wf._env.clock
    wf.append(talk(8))
    keep(wf, 1)
    clock.jump_to(clock.now_us() - 10**12)
    wf.compact(400, quiet)
    assert wf.recover(dry_run=True).kind == "replay"
    clock.jump_to(clock.now_us() - 10**12)
    keep(wf, 2)
    assert wf.recover(dry_run=True).kind == "restore"


def test_the_newest_checkpoint_of_the_name_is_taken(wf):
    """I15: per name; another name's is another agent's."""
    keep(wf, 1, name="scout")
    keep(wf, 2)
    keep(wf, 3)
    assert (wf.recover().turn, wf.recover(name="scout").turn) == (3, 1)
    nobody = wf.recover(name="nobody")
    assert (nobody.kind, nobody.state, nobody.turn) == ("replay", None, None)


def test_a_restore_leaves_checkpoints_usable_that_came_before_it(wf):
    """I15: recovering twice gives the same checkpoint twice; a newer one is taken once it is made."""
    keep(wf, 1)
    keep(wf, 2)
    assert [wf.recover().turn, wf.recover().turn] == [2, 2]
    keep(wf, 3)
    assert wf.recover().turn == 3


def restore_entry(db, wf, name: str, restored: int) -> None:
    """Write a restore of an older checkpoint, as a later part of the engine does after a decision by its controller."""
    with transaction(db, wf, write=True) as tx:
        seq = tx.log.head().lineage_seq + 1
        add_entry(
            tx,
            LineageEntry(
                lineage_seq=0,
                kind=LineageKind.RESTORE,
                op_key=f"recover:{seq}",
                revision=tx.log.head().revision,
                at_us=1,
                view="main",
                generation=0,
                name=name,
                restored_seq=restored,
            ),
        )


def test_checkpoints_that_a_restore_has_left_are_no_targets(db, wf):
    """I15: between X and the restore of X; X itself, other names' and later ones are."""
    keep(wf, 1)
    keep(wf, 2)
    keep(wf, 3, name="scout")
    restore_entry(db, wf, "main", restored=1)
    assert wf.recover(dry_run=True).turn == 1
    assert wf.recover(dry_run=True, name="scout").turn == 3
    keep(wf, 4)
    assert wf.recover(dry_run=True).turn == 4


def test_a_restore_says_in_the_lineage_what_it_restored(wf):
    """I13, I15: the next recovery tells by it which past was left; a replay restores nothing."""
    made = keep(wf, 1)
    wf.recover()
    wf.compact(400, quiet)
    wf.recover()
    restore, _, replay = wf.lineage()[-3:]
    assert (restore.kind, restore.name, restore.restored_seq) == ("restore", "main", made.lineage_seq)
    assert (replay.kind, replay.name, replay.restored_seq) == ("replay", "main", None)


def test_what_an_earlier_restore_has_left_stays_left(db, wf):
    """I15: a later restore does not bring the past back that an earlier one has left."""
    keep(wf, 1)
    wf.checkpoint({"turn": 2}, 2, context_free=True)
    restore_entry(db, wf, "main", restored=1)
    made = keep(wf, 4)
    restore_entry(db, wf, "main", restored=made.lineage_seq)
    wf.compact(400, quiet)
    assert (wf.recover(dry_run=True).turn, wf.recover(dry_run=True).state) == (None, None)


def test_a_context_free_state_is_paired_with_the_replayed_context(wf):
    """I14, I15: it is handed back though the pointer moved, and the kind says that the context is replayed."""
    wf.checkpoint({"step": "publish"}, 9, context_free=True)
    wf.compact(400, quiet)
    recovered = wf.recover()
    assert (recovered.kind, recovered.state, recovered.turn) == ("replay", {"step": "publish"}, 9)
    assert recovered.context.generation == 1
    assert not any(part.since_checkpoint for part in recovered.context.parts)


def test_the_prior_state_is_handed_over_on_request_only(wf):
    """I15: labelled stale, with its turn; a restored state has no prior one."""
    keep(wf, 5)
    wf.compact(400, quiet)
    assert wf.recover().prior_state is None
    prior = wf.recover(prior_state=True).prior_state
    assert (prior.turn, prior.state, prior.stale, prior.lineage_seq) == (5, {"turn": 5}, True, 1)
    keep(wf, 6)
    assert wf.recover(prior_state=True).prior_state is None


def test_of_a_workflow_that_never_was_nothing_is_recovered(db):
    """I16: there is no state that really existed: a wrong name must not look like a fresh start. Nothing is written."""
    wf = new_workflow(db)
    with pytest.raises(strandline.SummaryReconciliationError) as caught:
        wf.recover()
    assert (caught.value.reason, caught.value.checkpoint_turn) == ("nothing_recorded", None)
    assert wf.lineage() == []
    assert wf.name not in db.tenant("acme").workflows()


def test_no_recovery_brings_back_more_than_the_budget(wf):
    """I15: on replay the window grows smaller, and what is left out is named."""
    recovered = wf.recover(budget=200)
    assert recovered.context.tokens <= 200
    assert recovered.context.omitted


def test_a_dry_run_writes_nothing(db, wf):
    """C20: the same decision, no entry, no fence."""
    keep(wf, 1)
    with transaction(db, wf) as tx:
        before = (tx.log.head(), tx.views.all())
    recovered = wf.recover(dry_run=True)
    assert (recovered.kind, recovered.lineage_seq, recovered.dry_run) == ("restore", None, True)
    with transaction(db, wf) as tx:
        assert (tx.log.head(), tx.views.all()) == before
    assert wf.recover().lineage_seq == 2


def test_a_recovery_fences_first(db, wf):
    """I15: whoever drafts now is refused later, also when no view was ever written."""
    with transaction(db, wf) as tx:
        assert tx.views.all() == []
    wf.recover()
    with transaction(db, wf) as tx:
        assert [(view.name, view.fence, view.lease_attempt) for view in tx.views.all()] == [("main", 1, None)]


def test_a_checkpoint_taken_while_a_compaction_drafts_says_so_and_is_not_torn(wf):
    """I15: ours can't be torn, so it is restored when it passes the gate, and is not when the compaction activates."""
    taken = []

    def drafting(request):
        taken.append(keep(wf, 1))
        return "Work went on."

    wf.compact(400, drafting)
    assert taken[0].in_flight
    assert wf.recover(dry_run=True).kind == "replay"
    assert not keep(wf, 2).in_flight
    assert wf.recover(dry_run=True).turn == 2


def test_a_lease_further_ahead_than_its_ttl_is_no_compaction_in_flight(db, wf):
    """DESIGN §5: a clock that once jumped to 2100 does not keep a lease for ever."""
    wf.compact(400, quiet)
    far_us = 4_102_444_800_000_000
    for until_us, held in ((far_us, False), (wf._env.clock.now_us() + int(LEASE_TTL_S * 1_000_000), True)):
        with transaction(db, wf, write=True) as tx:
            view = tx.views.get("main")
            tx.views.put(replace(view, lease_attempt="somebody.1", lease_until_us=until_us))
        assert keep(wf, 1).in_flight == held
    wf.recover()


# ---------------------------------------------------------------------------------------------- dependencies


def test_a_need_in_the_state_alone_is_met(wf):
    """I16: summary, tail or the checkpoint's own state; keys, strings and numbers of it."""
    wf.checkpoint({"handle-key-1": ["bucket-7f3a", 40417, {"x": "C:\\tmp\\a"}]}, 1, basis=wf.context())
    assert wf.recover(["bucket-7f3a", "40417", "handle-key-1", "C:\\tmp\\a"]).kind == "restore"
    with pytest.raises(strandline.SummaryReconciliationError):
        wf.recover(["bucket-7f3"])


def test_a_state_that_is_not_restored_meets_no_need(wf):
    """I16: on replay the old state is not looked at."""
    wf.checkpoint({"handle": "bucket-only-in-state"}, 1, basis=wf.context())
    wf.compact(400, quiet)
    with pytest.raises(strandline.SummaryReconciliationError):
        wf.recover(["bucket-only-in-state"], prior_state=True)


def test_a_missing_dependency_fails_closed(db, wf):
    """I16: the error says generation, turn, what is missing and where it was last seen; nothing is written."""
    wf.append(talk(40, start=20))
    wf.compact(250, quiet)
    dropped = {entry.ref: entry for entry in wf.manifest()}
    missing = next(iter(dropped))
    made = keep(wf, 17)
    before = seen_of(wf)
    with pytest.raises(strandline.SummaryReconciliationError) as caught:
        wf.recover([missing, "never-seen-1"])
    error = caught.value
    assert (error.summary_generation, error.checkpoint_turn) == (1, made.turn)
    assert (error.missing_ref, error.missing_refs) == ("never-seen-1", ("never-seen-1", missing))
    assert (error.reason, error.last_known) == ("dependency_not_verbatim", None)
    assert seen_of(wf) == before
    with pytest.raises(strandline.SummaryReconciliationError) as caught:
        wf.recover([missing])
    error = caught.value
    assert (error.missing_ref, error.missing_refs) == (missing, (missing,))
    assert error.last_known.seq == dropped[missing].last_seq
    assert (error.last_known.generation_dropped, error.last_known.event_kind) == (1, "message")
    assert seen_of(wf) == before


def test_a_refused_replay_names_no_turn_that_never_was(wf):
    """I16: the turn in the error is a checkpoint's, or none."""
    keep(wf, 17)
    wf.compact(400, quiet)
    with pytest.raises(strandline.SummaryReconciliationError) as caught:
        wf.recover(["never-seen-1"])
    assert caught.value.checkpoint_turn in (17, None)


def test_a_recovery_that_no_answer_could_help_does_not_fence(db, wf):
    """I16: no event holds the reference, so nothing is written, and what was in flight goes on."""
    outcomes = []

    def drafting(request):
        with pytest.raises(strandline.SummaryReconciliationError):
            wf.recover(["never-seen-1"])
        return "Work went on."

    outcomes.append(wf.compact(400, drafting).outcome)
    assert outcomes == ["activated"]


# ---------------------------------------------------------------------------------------------- damage


@pytest.fixture
def file(tmp_path):
    """A store in a file of its own, at generation 1, with a checkpoint that passes the gate."""
    with open_store("sqlite", tmp_path) as db:
        wf = new_workflow(db)
        wf.append(talk(8))
        wf.compact(400, quiet)
        keep(wf, 16)
        keep(wf, 17)
        yield tmp_path / "store.db", wf


def tamper(path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute(statement).rowcount > 0
        connection.commit()


def test_a_context_free_checkpoint_that_is_gone_is_missed(file):
    """I15: it passes however far below the last move it stands; an older one never slips into its place."""
    path, wf = file
    for turn in (18, 19):
        gone = wf.checkpoint({"turn": turn}, turn, name="flow", context_free=True)
    wf.append(talk(16, start=60))
    assert wf.compact(400, quiet).outcome == "activated"
    assert wf.recover(name="flow").state == {"turn": 19}
    with closing(sqlite3.connect(path)) as connection:
        for (trigger,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {trigger}")
        connection.commit()
    tamper(path, f"DELETE FROM checkpoint WHERE lineage_seq = {gone.lineage_seq}")
    tamper(path, f"DELETE FROM lineage WHERE lineage_seq = {gone.lineage_seq}")
    with pytest.raises(strandline.CorruptRecordError, match="the entry is missing"):
        wf.recover(name="flow")


def test_a_checkpoint_that_fails_its_digest_is_a_reconciliation(file):
    """I15: it passes the gate, and is never skipped in silence for an older one."""
    path, wf = file
    tamper(path, "UPDATE checkpoint SET state = CAST(replace(CAST(state AS TEXT), '17', '71') AS BLOB) WHERE turn = 17")
    before = seen_of(wf)
    with pytest.raises(strandline.SummaryReconciliationError) as caught:
        wf.recover()
    assert (caught.value.reason, caught.value.checkpoint_turn) == ("checkpoint_digest", 17)
    assert seen_of(wf) == before
    assert not wf.verify().ok


@pytest.mark.parametrize(
    "change", ["turn = 18", "revision = 15", "in_flight = 1", "views = CAST('[]' AS BLOB)", "salt = x'00'"]
)
def test_the_digest_of_a_checkpoint_covers_all_of_it(file, change):
    """I14: whatever of its row is changed."""
    path, wf = file
    tamper(path, f"UPDATE checkpoint SET {change} WHERE turn = 17")
    with pytest.raises((strandline.SummaryReconciliationError, strandline.CorruptRecordError)):
        wf.recover()
    assert not wf.verify().ok


@pytest.mark.parametrize("change", ["name = 'other'", "context_free = 1"])
def test_a_checkpoint_can_not_be_hidden_from_its_name(file, change):
    """I14, C5: a row that is no longer found under its name is found by verify."""
    path, wf = file
    tamper(path, f"UPDATE checkpoint SET {change} WHERE turn = 17")
    assert not wf.verify().ok


def test_a_corrupt_summary_is_a_reconciliation(file):
    """I16: recovery does not go on from it, and says which summary it is."""
    path, wf = file
    tamper(path, "UPDATE segment SET text = CAST('Work went on from event 9.' AS BLOB)")
    with pytest.raises(strandline.SummaryReconciliationError) as caught:
        wf.recover()
    assert (caught.value.reason, caught.value.summary_generation) == ("corrupt_summary", 1)
    with pytest.raises(strandline.CorruptRecordError):
        wf.context()


def test_who_reads_a_damaged_summary_is_sent_to_recover(file):
    """I16: a loop that never recovers finds the way out; what several summaries share is damaged once."""
    path, wf = file
    wf.append(talk(8, start=30))
    wf.compact(800, quiet)
    tamper(path, "UPDATE segment SET text = CAST('Work went on from event 9.' AS BLOB)")
    wf.append(talk(8, start=50))
    for read in (wf.context, lambda: wf.compact(400, quiet)):
        with pytest.raises(strandline.CorruptRecordError, match="segment") as damaged:
            read()
        assert "`strandline recover`" in damaged.value.hint
    problems = wf.verify().problems
    assert problems
    assert len(set(problems)) == len(problems)
    with pytest.raises(strandline.SummaryReconciliationError) as refused:
        wf.recover()
    wf.reconcile(refused.value.case_id, strandline.ReplayFromExact(), by="ann", why="the log is whole")
    assert wf.recover().generation == 3
    assert wf.context().generation == 3
    assert wf.verify().problems == problems, "what nothing reads any more is still not what was written"


BROKEN = {
    "the first segment gone": lambda s: {"segments": s.segments[1:]},
    "a segment in the middle gone": lambda s: {"segments": (s.segments[0], *s.segments[2:])},
    "the last segment gone": lambda s: {"segments": s.segments[:-1]},
    "a segment twice": lambda s: {"segments": (s.segments[0], *s.segments)},
    "another text": lambda s: {"segments": (replace(s.segments[0], text="It went well."), *s.segments[1:])},
    "another ledger": lambda s: {"ledger_text": ""},
    "other anchors": lambda s: {"anchors_text": "Facts in force, verbatim from the log:"},
}


@pytest.mark.parametrize("change", BROKEN.values(), ids=BROKEN)
def test_a_summary_with_a_gap_is_not_read(db, change):
    """I7: also where every row is what was written; a summary covers 1..watermark, with the texts of its digests."""
    wf = new_workflow(db)
    for number in range(7):
        wf.append(talk(10, start=20 * number))
        wf.compact(700, quiet)
    with transaction(db, wf) as tx:
        summary = tx.summaries.get(tx.views.get("main").summary_no)
    assert len(summary.segments) > 2
    assert summary.ledger_text
    check_summary(summary, "summary 7")
    with pytest.raises(strandline.CorruptRecordError):
        check_summary(replace(summary, **change(summary)), "summary 7")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE segment SET through_seq = through_seq - 1",
        "UPDATE summary SET segments = x''",
        "UPDATE summary SET ledger_text = CAST('References, verbatim:' AS BLOB)",
        "UPDATE segment SET row_digest = x'00'",
    ],
)
def test_a_summary_that_is_not_what_was_activated_is_a_reconciliation(file, statement):
    """I5, I7, I16: half of it, another range, another ledger."""
    path, wf = file
    tamper(path, statement)
    with pytest.raises(strandline.SummaryReconciliationError) as caught:
        wf.recover()
    assert caught.value.reason == "corrupt_summary"
