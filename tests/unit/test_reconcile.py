"""Law (I16, I17, C21): a refused recovery opens one case; an answer is explicit, recorded once, and does what it says.

Checked on both stores: what each answer does, which fit, who wins when two answer, and what a controller may do.
"""

import re
import sqlite3
from contextlib import closing

import pytest

import strandline
from strandline.engine.cases import open_case
from strandline.engine.reading import find_view
from strandline.model.case import ANSWER_NAMES, CaseKind
from strandline.rules.reconciling import FITTING
from tests.unit.test_engine_recover import tamper
from tests.unit.test_engine_stage import (
    lease_of,
    log_of,
    new_workflow,
    open_store,
    quiet,
    seen_of,
    standing,
    talk,
    transaction,
)

SAID = {"by": "ann", "why": "it still holds"}


@pytest.fixture
def wf(db):
    """A workflow whose summary does not hold `bucket-0001` and much else."""
    wf = new_workflow(db)
    wf.append([*talk(48), strandline.note("bucket-new1 was made anew")])
    wf.compact(250, quiet)
    assert {"bucket-0001", "bucket-0002"} <= {entry.ref for entry in wf.manifest()}
    yield wf
    assert lease_of(db, wf) is None
    assert wf.verify().problems == ()


def refused(wf, *needs, **arguments):
    with pytest.raises(strandline.SummaryReconciliationError) as caught:
        wf.recover(needs, **arguments)
    return caught.value


def counts(db, wf):
    with transaction(db, wf) as tx:
        return tx.log.head().cases, tx.log.head().lineage_seq, tx.log.head().revision


# ---------------------------------------------------------------------------------------------- one case a refusal


def test_a_refused_recovery_opens_exactly_one_case(db, wf):
    """C21: with all that the error says; the same recovery asked twice finds it; a dry run names it, and opens none."""
    assert refused(wf, "bucket-0001", dry_run=True).case_id is None
    error = refused(wf, "bucket-0001", "bucket-0002")
    assert refused(wf, "bucket-0002", "bucket-0001").case_id == error.case_id
    assert refused(wf, "bucket-0001", "bucket-0002", dry_run=True).case_id == error.case_id
    (case,) = wf.cases()
    assert case == wf.case(error.case_id)
    assert (case.kind, case.state, case.view, case.generation) == ("missing_dependency", "open", "main", 1)
    assert (case.missing_refs, case.logged) == (("bucket-0001", "bucket-0002"), True)
    assert (case.last_known, case.reason) == (error.last_known, "dependency_not_verbatim")
    assert case.last_known.generation_dropped == 1
    assert refused(wf, "bucket-0001").case_id != error.case_id, "another question"


def test_the_hint_of_a_refusal_can_be_typed(db, wf):
    """C21: the command says which store, tenant and workflow; where no command can open the store, the call stands."""
    error = refused(wf, "bucket-0001")
    with pytest.raises(strandline.UnreconciledSummaryError) as blocked:
        wf.compact(300, quiet)
    if db.store.path is None:
        way_out = f"`wf.reconcile('{error.case_id}', ReplayFromExact(), by=…, why=…)`"
    else:
        where = f"--store {db.store.path} --tenant acme --workflow {wf.name}"
        way_out = f"`strandline reconcile {where} {error.case_id} replay-from-exact --by WHO --why TEXT`"
    assert way_out in error.hint
    assert way_out in blocked.value.hint
    assert "fit it: replay-from-exact, accept-divergence OLD NEW, replay-from-checkpoint ID, abandon" in str(
        blocked.value.hint
    )
    unknown = strandline.EffectUnknownError("?", key="pay", case_id="c7").hint
    assert "`wf.reconcile('c7', EffectDone(result), by=…, why=…)`" in unknown


def test_the_case_names_the_checkpoint_that_would_have_been_restored(wf):
    """C21."""
    made = wf.checkpoint({}, 7, basis=wf.context(), name="agent-1")
    error = refused(wf, "bucket-0001", name="agent-1")
    case = wf.case(error.case_id)
    assert (case.checkpoint_name, case.checkpoint_seq, case.checkpoint_turn) == ("agent-1", made.lineage_seq, 7)


def test_a_reference_that_no_event_holds_opens_no_case(db, wf):
    """I11: it raises with last_known None, blocks nothing, and is named first; nothing is written, not even a fence."""
    before = counts(db, wf)
    for needs in (["never-seen-1"], ["bucket-0001", "never-seen-1"]):
        error = refused(wf, *needs)
        assert (error.missing_ref, error.last_known, error.case_id) == ("never-seen-1", None, None)
        assert "get the value from where it comes from" in error.hint
        assert not re.search("recall|pin", f"{error.message} {error.hint}", re.IGNORECASE), "neither could help"
    assert counts(db, wf) == before
    assert wf.cases() == []
    wf.append(talk(8, start=90))
    assert wf.compact(400, quiet).outcome == "activated"


def test_nothing_recorded_opens_no_case(db):
    """C21: a workflow that never was is not made by asking."""
    wf = new_workflow(db)
    assert refused(wf).case_id is None
    assert wf.name not in db.tenant("acme").workflows()


def test_a_refusal_keeps_its_fence_and_writes_it_down(db, wf):
    """I16: what was in flight is refused when it lands, and the lineage says who took the view over."""
    wf.append(talk(8, start=90))

    def drafting(request):
        refused(wf, "bucket-0001")
        return "Work went on."

    done = wf.compact(400, drafting)
    assert (done.outcome, done.generation) == ("conflict", 1)
    fence = wf.lineage()[-1]
    assert (fence.kind, fence.view) == ("fence", "main")
    assert fence.detail["attempt"].endswith(".1")


def test_compacting_meanwhile_names_the_same_case(wf):
    """I11: reads and appends go on, and the context says so."""
    error = refused(wf, "bucket-0001")
    with pytest.raises(strandline.UnreconciledSummaryError) as caught:
        wf.compact(300, quiet)
    assert caught.value.case_id == error.case_id
    assert wf.context().case_id == error.case_id
    assert wf.recover(dry_run=True).context.case_id == error.case_id
    wf.reconcile(error.case_id, strandline.Abandon(), **SAID)
    assert wf.context().case_id is None


def test_a_pin_by_hand_meets_the_need_and_leaves_the_case_open(wf):
    """I17: the older way out; the summary is still not compacted."""
    error = refused(wf, "bucket-0001")
    wf.append(strandline.pin("bucket-0001"))
    assert wf.recover(["bucket-0001"]).kind == "replay"
    assert [case.case_id for case in wf.cases()] == [error.case_id]


# ---------------------------------------------------------------------------------------------- answers


def test_replay_from_exact_pins_what_the_log_holds(db, wf):
    """I17: an anchor until it is unpinned, through later compactions; one entry of the lineage says who and why."""
    error = refused(wf, "bucket-0001", "bucket-0002")
    case = wf.reconcile(error.case_id, strandline.ReplayFromExact(), **SAID)
    assert (case.state, case.answer, case.by, case.why) == ("answered", "replay_from_exact", "ann", "it still holds")
    entry = wf.lineage()[-1]
    assert (entry.kind, entry.by, entry.why, entry.lineage_seq) == (
        "answer",
        "ann",
        "it still holds",
        case.answered_seq,
    )
    assert (entry.detail["case"], entry.detail["answer"]) == (case.case_id, "replay_from_exact")
    assert log_of(db, wf)[entry.detail["events"][0] - 1].kind == "message", "the verbatim event, not the pin"
    assert wf.recover(["bucket-0001", "bucket-0002"]).kind == "replay"
    wf.append(talk(30, start=90))
    wf.compact(400, quiet)
    anchors = next(part.text for part in wf.context().parts if part.kind == "anchors")
    assert "bucket-0001" in anchors
    assert wf.recover(["bucket-0001"]).kind == "replay"
    wf.append([strandline.unpin("bucket-0001"), *talk(30, start=190)])
    wf.compact(400, quiet)
    anchors = next(part.text for part in wf.context().parts if part.kind == "anchors")
    assert "bucket-0001" not in anchors
    assert "bucket-0002" in anchors


def test_after_its_answer_the_same_question_opens_another_case(wf):
    """C21."""
    first = refused(wf, "bucket-0001").case_id
    wf.reconcile(first, strandline.Abandon(), **SAID)
    second = refused(wf, "bucket-0001").case_id
    assert second != first
    assert [case.case_id for case in wf.cases()] == [second]
    assert [case.case_id for case in wf.cases(include_answered=True)] == [second, first]


def test_the_first_answer_wins(db, wf):
    """I11: another is refused and changes nothing; the same one again finds what was done."""
    case_id = refused(wf, "bucket-0001").case_id
    answered = wf.reconcile(case_id, strandline.ReplayFromExact(), **SAID)
    before = counts(db, wf)
    assert wf.reconcile(answered, strandline.ReplayFromExact(), by="bob", why="again") == answered
    with pytest.raises(strandline.CaseAnsweredError) as caught:
        wf.reconcile(case_id, strandline.Abandon(), by="bob", why="no")
    assert (caught.value.case_id, caught.value.answer, caught.value.by) == (case_id, "replay_from_exact", "ann")
    assert counts(db, wf) == before


@pytest.mark.parametrize("kind", CaseKind)
def test_only_answers_that_fit_are_taken(db, wf, kind):
    """C21: the refusal names those that fit; the case stays open."""
    with wf._env.write() as tx:
        case = open_case(wf._env, tx, kind, view=find_view(tx, "main", str(wf._env.scope)), reason="asked")
    made = {
        strandline.AcceptDivergence: strandline.AcceptDivergence("bucket-0001", "bucket-0002"),
        strandline.ReplayFromCheckpoint: strandline.ReplayFromCheckpoint(1),
    }
    before = counts(db, wf)
    for answer in ANSWER_NAMES:
        if answer not in FITTING[kind]:
            with pytest.raises(strandline.InvalidInputError, match=FITTING[kind][0].__name__):
                wf.reconcile(case.case_id, made.get(answer) or answer(), **SAID)
    assert counts(db, wf) == before
    if kind is not CaseKind.EFFECT_UNKNOWN:
        assert wf.reconcile(case.case_id, strandline.Abandon(), **SAID).state == "answered"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (strandline.ReplayFromExact, SAID),
        ("replay-from-exact", SAID),
        (None, SAID),
        (strandline.AcceptDivergence("bucket-0001", ""), SAID),
        (strandline.AcceptDivergence("bucket-0001", 7), SAID),
        (strandline.AcceptDivergence("bucket-0001", "bucket-0001"), SAID),
        (strandline.AcceptDivergence("bucket-0002", "bucket-new1"), SAID),
        (strandline.AcceptDivergence("bucket-0001", "never-seen-1"), SAID),
        (strandline.ReplayFromCheckpoint(1), SAID),
        (strandline.ReplayFromCheckpoint(99), SAID),
        (strandline.ReplayFromCheckpoint(True), SAID),
        (strandline.ReplayFromExact(), {"by": "", "why": "x"}),
        (strandline.ReplayFromExact(), {"by": "x" * 2_001, "why": "x"}),
        (strandline.ReplayFromExact(), {"by": "ann", "why": "\ud800"}),
        (strandline.ReplayFromExact(), {"by": "ann", "why": None}),
    ],
    ids=repr,
)
def test_a_bad_answer_writes_nothing(db, wf, answer, said):
    """SPEC §6."""
    case_id = refused(wf, "bucket-0001").case_id
    before = counts(db, wf), seen_of(wf)
    with pytest.raises(strandline.InvalidInputError):
        wf.reconcile(case_id, answer, **said)
    assert (counts(db, wf), seen_of(wf)) == before
    assert wf.case(case_id).state == "open"


@pytest.mark.parametrize("case_id", ["nobody", "", None, 7, "\0", "\ud800"])
def test_a_case_that_is_not_there_is_said(wf, case_id):
    """SPEC §6."""
    with pytest.raises(strandline.InvalidInputError):
        wf.case(case_id)
    with pytest.raises(strandline.InvalidInputError):
        wf.reconcile(case_id, strandline.Abandon(), **SAID)


# ---------------------------------------------------------------------------------------------- divergence


def accept(wf, old, new):
    return wf.reconcile(refused(wf, old).case_id, strandline.AcceptDivergence(old, new), **SAID)


def test_an_accepted_divergence_meets_the_need_and_is_marked(db, wf):
    """I17: both stay known, recalling the old one tells of the new one, and later events carry the epoch."""
    accept(wf, "bucket-0001", "bucket-new1")
    entry = wf.lineage()[-1]
    assert (entry.kind, entry.by) == ("divergence", "ann")
    seq = wf.append(strandline.note("since then")).seq
    assert [event.epoch for event in log_of(db, wf)[-3:]] == [0, entry.lineage_seq, entry.lineage_seq]
    recovered = wf.recover(["bucket-0001"])
    assert recovered.divergences == recovered.context.divergences == {"bucket-0001": "bucket-new1"}
    assert wf.context(needs=["bucket-0001"]).divergences == {"bucket-0001": "bucket-new1"}
    assert wf.context(needs=["bucket-new1"]).divergences == {}
    assert wf.recall("bucket-0001")[0].instead == "bucket-new1"
    assert wf.recall("bucket-new1")[0].instead is None
    wf.append(talk(30, start=90))
    wf.compact(400, quiet)
    assert wf.context().watermark > seq
    anchors = next(part.text for part in wf.context().parts if part.kind == "anchors")
    assert "bucket-new1 takes the place of bucket-0001 as a new fact, accepted by ann: it still holds" in anchors
    assert wf.recover(["bucket-0001"]).divergences == {"bucket-0001": "bucket-new1"}


def test_a_divergence_of_one_of_several_leaves_the_others_asked(wf):
    """I11, I17: one pair settles one reference; the rest is a case at once, and the one that recovery asks."""
    wf.checkpoint({}, 7, basis=wf.context())
    first = refused(wf, "bucket-0001", "bucket-0002", "bucket-0003")
    wf.reconcile(first.case_id, strandline.AcceptDivergence("bucket-0001", "bucket-new1"), **SAID)
    (rest,) = wf.cases()
    assert (rest.missing_refs, rest.logged, rest.blocking) == (("bucket-0002", "bucket-0003"), True, True)
    assert (rest.last_known.seq, rest.checkpoint_turn) == (wf.recall("bucket-0002")[0].seq, 7)
    assert wf.lineage()[-1].detail["left_open"] == rest.case_id
    again = refused(wf, "bucket-0001", "bucket-0002", "bucket-0003")
    assert (again.case_id, again.last_known) == (rest.case_id, rest.last_known)
    wf.append(strandline.pin("bucket-0003", "bucket-0003 is there"))
    wf.reconcile(rest, strandline.AcceptDivergence("bucket-0002", "bucket-new1"), **SAID)
    assert wf.cases() == []
    assert wf.recover(["bucket-0001", "bucket-0002", "bucket-0003"]).turn == 7


def test_divergences_make_chains_and_no_cycles(db, wf):
    """I17: the last of a chain meets the need; a reference never takes its own place."""
    with wf._env.write() as tx:
        view = find_view(tx, "main", str(wf._env.scope))
        ids = tx.refs.find(["bucket-0001", "bucket-0002", "bucket-0003"])
        cases = {
            ref: open_case(
                wf._env, tx, CaseKind.MISSING_DEPENDENCY, view=view, reason="asked", missing_ids=[ids[ref]]
            ).case_id
            for ref in ids
        }

    def given(old, new):
        wf.reconcile(cases[old], strandline.AcceptDivergence(old, new), **SAID)
        return wf.context(needs=list(ids)).divergences

    a, b, c = ids
    assert given(a, b) == {a: b}
    assert given(b, c) == {a: c, b: c}
    assert given(c, a) == {a: b, c: b}, "the link from b to c ended"
    assert {(subject, holder) for kind, subject, holder, *_ in standing(db, wf) if kind == "divergence"} == {
        (str(ids[a]), str(ids[b])),
        (str(ids[c]), str(ids[a])),
    }


def test_nobody_appends_a_divergence(wf):
    """I17: it is explicit and recorded, as the answer to a case."""
    with pytest.raises(strandline.InvalidInputError, match="answer to a case"):
        wf.append(strandline.NewEvent(kind=strandline.EventKind.DIVERGENCE, body="x", refs=("a-1", "b-1")))


# ---------------------------------------------------------------------------------------------- damage


@pytest.fixture
def file(tmp_path):
    """A store in a file, at generation 2, with two checkpoints that pass the gate."""
    with open_store("sqlite", tmp_path) as db:
        wf = new_workflow(db)
        wf.append(talk(8))
        wf.compact(400, quiet)
        wf.append(talk(16, start=30))
        wf.compact(400, quiet)
        wf.checkpoint({"turn": 16}, 16, basis=wf.context())
        wf.checkpoint({"turn": 17}, 17, basis=wf.context())
        yield tmp_path / "store.db", wf


def test_a_damaged_checkpoint_is_passed_over_once_that_is_answered(file):
    """I15, I17: recorded, not silent; recovery replays, and a later checkpoint is taken again."""
    path, wf = file
    tamper(path, "UPDATE checkpoint SET turn = 18 WHERE turn = 17")
    error = refused(wf)
    case = wf.case(error.case_id)
    assert (case.kind, case.checkpoint_turn, case.blocking) == ("checkpoint_digest", 17, False)
    wf.reconcile(case, strandline.ReplayFromExact(), **SAID)
    assert wf.lineage()[-1].detail["passed_over"] == case.checkpoint_seq
    assert (wf.recover().kind, wf.recover(prior_state=True).prior_state) == ("replay", None)
    wf.checkpoint({"turn": 19}, 19, basis=wf.context())
    assert wf.recover().turn == 19


def test_a_corrupt_summary_gives_way_to_the_newest_verified_one(file):
    """I16, I17: with a longer tail; the pointer moves on, and the answer is one entry beside it."""
    path, wf = file
    tamper(path, "UPDATE summary SET ledger_text = CAST('References, verbatim:' AS BLOB) WHERE summary_no = 2")
    error = refused(wf)
    assert wf.case(error.case_id).kind == "corrupt_summary"
    with pytest.raises(strandline.UnreconciledSummaryError, match=r"\(corrupt_summary\)"):
        wf.compact(400, quiet)
    wf.reconcile(error.case_id, strandline.ReplayFromExact(), **SAID)
    assert [entry.kind for entry in wf.lineage()[-2:]] == ["revert", "answer"]
    context = wf.context()
    assert (context.generation, context.case_id) == (3, None)
    assert wf.recover().kind == "replay"
    assert wf.cases() == []


def test_where_every_summary_is_corrupt_the_empty_one_is_left(file):
    """I16: the log needs none of them."""
    path, wf = file
    tamper(path, "UPDATE summary SET ledger_text = CAST('References, verbatim:' AS BLOB)")
    wf.reconcile(refused(wf).case_id, strandline.ReplayFromExact(), **SAID)
    assert (wf.context().watermark, wf.context().generation) == (0, 3)
    assert wf.compact(400, quiet).outcome == "activated"


def test_a_damaged_log_is_no_case(file):
    """I4: the log itself has no other source."""
    path, wf = file
    with closing(sqlite3.connect(path)) as connection:
        for (trigger,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {trigger}")
        connection.commit()
    tamper(path, "DELETE FROM event WHERE seq = (SELECT max(seq) FROM event)")
    with pytest.raises(strandline.CorruptRecordError):
        wf.recover()
    assert wf.cases() == []


def test_a_regression_that_is_active_is_left_by_its_answer(wf):
    """C14: and one that is not is closed."""
    case = wf.report_regression(1, by="ann", why="it lost a constraint")
    assert wf.reconcile(case, strandline.ReplayFromExact(), **SAID).state == "answered"
    assert (wf.context().generation, wf.context().watermark) == (2, 0)
    again = wf.report_regression(1, by="bob", why="once more")
    wf.reconcile(again, strandline.ReplayFromExact(), **SAID)
    assert wf.context().generation == 2


def test_an_answer_says_what_it_did(wf):
    """C14, C17: as the lineage tells it; what was made from the bad summary is listed to who left it."""
    wf.append(strandline.artifact("report", "report-2.pdf", actor="bot"), basis=wf.context())
    case = wf.report_regression(1, by="ann", why="bad")
    assert (case.done, case.acted_on, case.summary_active) == ({}, (), True)
    done = wf.reconcile(case, strandline.ReplayFromExact(), **SAID)
    assert done.done == {"to_generation": 0, "generation": 2, "acted_on": 1}
    assert [(made.kind, made.name) for made in done.acted_on] == [("artifact", "report")]
    again = wf.reconcile(case, strandline.ReplayFromExact(), **SAID)
    assert (again, again.done, again.acted_on) == (done, done.done, ())
    pinned = wf.reconcile(open_missing(wf), strandline.ReplayFromExact(), **SAID).done["pins"]
    assert [event.kind for seq in pinned for event in wf.events(seq, seq)] == ["pin"]


def open_missing(wf):
    wf.append(talk(30, start=90))
    wf.compact(250, quiet)
    return refused(wf, "bucket-0001").case_id


def test_a_regression_under_the_active_summary_is_left_too(wf):
    """C14: a summary that was built on the bad one holds its text."""
    wf.append(talk(16, start=90))
    wf.compact(250, quiet)
    case = wf.report_regression(1, by="ann", why="it lost a constraint")
    wf.reconcile(case, strandline.ReplayFromExact(), **SAID)
    assert (wf.context().generation, wf.context().watermark) == (3, 0)


def test_a_bad_summary_never_gives_way_to_another_bad_one(wf):
    """C14, I11: what stands under an open blocking case is passed over."""
    wf.append(talk(16, start=90))
    wf.compact(250, quiet)
    cases = [wf.report_regression(generation, by="ann", why="it is bad") for generation in (1, 2)]
    wf.reconcile(cases[1], strandline.ReplayFromExact(), **SAID)
    assert (wf.context().generation, wf.context().watermark, wf.context().case_id) == (3, 0, None)


def test_a_regression_is_not_answered_by_a_checkpoint_of_the_bad_summary(wf):
    """I17, C14: the bad summary would be active again, and its case closed."""
    good = wf.checkpoint({}, 1, context_free=True)
    bad = wf.checkpoint({"turn": 2}, 2, basis=wf.context())
    wf.append(talk(16, start=90))
    wf.compact(250, quiet)
    built_on_it = wf.checkpoint({"turn": 3}, 3, basis=wf.context())
    case = wf.report_regression(1, by="ann", why="it lost a constraint")
    before = wf.lineage()
    for made in (bad, built_on_it, good):
        with pytest.raises(strandline.InvalidInputError, match="the bad summary"):
            wf.reconcile(case, strandline.ReplayFromCheckpoint(made.lineage_seq), **SAID)
    assert (wf.lineage(), wf.case(case.case_id).state) == (before, "open")


# ---------------------------------------------------------------------------------------------- an earlier checkpoint


def test_replay_from_a_checkpoint_begins_a_branch_on_which_it_is_restored(db, wf):
    """I17: an earlier exact state, though a compaction came after it; the answer is one entry beside the rewind."""
    made = wf.checkpoint({"handle": "bucket-0001"}, 7, basis=wf.context())
    wf.append(talk(16, start=90))
    wf.compact(250, quiet)
    error = refused(wf, "bucket-0001")
    case = wf.reconcile(error.case_id, strandline.ReplayFromCheckpoint(made.lineage_seq), **SAID)
    assert case.answer == "replay_from_checkpoint"
    assert [entry.kind for entry in wf.lineage()[-2:]] == ["rewind", "answer"]
    recovered = wf.recover(["bucket-0001"])
    assert (recovered.kind, recovered.turn, recovered.checkpoint_seq) == ("restore", 7, made.lineage_seq)
    assert wf.cases() == []
    assert wf.context().case_id is None


def test_what_only_abandoned_events_hold_can_not_be_replayed(db, wf):
    """I17, C22: nothing is written, the case stays open; the policy leaves it open, too."""
    end = wf.append(talk(8, start=90)).revision
    wf.append(strandline.note("vol-77aa was made"))
    wf.append(talk(8, start=120))
    wf.compact(250, quiet)
    error = refused(wf, "vol-77aa")
    assert wf.case(error.case_id).logged
    wf.rewind(end, by="ann", why="a dead end")
    assert not wf.case(error.case_id).logged
    assert strandline.ReplayWhenLogged().decide(wf.case(error.case_id)) is None
    before = counts(db, wf)
    with pytest.raises(strandline.InvalidInputError, match="no live event"):
        wf.reconcile(error.case_id, strandline.ReplayFromExact(), **SAID)
    assert counts(db, wf) == before
    assert refused(wf, "vol-77aa").case_id is None, "as unknown as what no event holds"


# ---------------------------------------------------------------------------------------------- controllers


class Scripted:
    """A controller that does as it is told, and remembers what it was asked."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []

    def decide(self, case):
        self.asked.append(case)
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer


def test_the_policy_replays_what_the_log_holds(wf):
    """C21: by its name; without it the same recovery raises."""
    refused(wf, "bucket-0001")
    recovered = wf.recover(["bucket-0001"], controller=strandline.ReplayWhenLogged())
    assert recovered.kind == "replay"
    (case,) = wf.cases(include_answered=True)
    assert (case.answer, case.by) == ("replay_from_exact", "policy:replay-when-logged")
    assert refused(wf, "never-seen-1", controller=strandline.ReplayWhenLogged()).case_id is None


def test_a_controller_is_asked_about_the_case_and_may_leave_it_open(wf):
    """C21."""
    controller = Scripted(None)
    error = refused(wf, "bucket-0001", controller=controller)
    assert [case.case_id for case in controller.asked] == [error.case_id]
    assert wf.case(error.case_id).state == "open"


@pytest.mark.parametrize(
    ("fault", "named"),
    [
        (ValueError("out of tea"), "ValueError: out of tea"),
        ("replay", "str is no answer"),
        (strandline.ReplayFromExact, "ReplayFromExact is no answer"),
        (strandline.EffectDone(1), "EffectDone is no answer to a case of kind missing_dependency"),
        (strandline.AcceptDivergence("bucket-0001", "never-seen-1"), "no live event"),
    ],
    ids=repr,
)
def test_a_controller_that_fails_leaves_the_refusal_as_it_is(wf, fault, named):
    """C21: the case stays open, and the fault is named."""
    error = refused(wf, "bucket-0001", controller=Scripted(fault))
    assert error.reason == "dependency_not_verbatim"
    assert "The controller controller:Scripted " in error.hint
    assert named in error.hint
    assert wf.case(error.case_id).state == "open"


def test_an_answer_that_leaves_the_question_open_ends_the_asking(wf):
    """I22: the refusal names the case that is open now."""
    controller = Scripted(*[strandline.Abandon()] * 20)
    error = refused(wf, "bucket-0001", controller=controller)
    (asked,) = controller.asked
    assert (wf.case(error.case_id).state, wf.case(asked.case_id).answer) == ("open", "abandon")
    assert wf.case(error.case_id).identity == asked.identity
    assert len(wf.cases(include_answered=True)) == 2


def test_a_controller_answers_a_bounded_number_of_cases(wf):
    """I22: also where each answer raises another question."""

    class Compacting(Scripted):
        def decide(self, case):
            wf.append(strandline.note(f"bucket-{len(self.asked)}x is not it"))
            wf.append(talk(10, start=90 + 10 * len(self.asked)))
            answer = super().decide(case)
            wf.reconcile(case, strandline.Abandon(), **SAID)
            assert wf.compact(250, quiet).outcome == "activated"
            return answer

    controller = Compacting(*[strandline.Abandon()] * 20)
    error = refused(wf, "bucket-0001", controller=controller)
    assert len(controller.asked) == 8
    assert wf.case(error.case_id).state == "open"
    assert len(wf.cases(include_answered=True)) == 9


@pytest.mark.parametrize("controller", ["replay", 7, object()])
def test_what_can_not_decide_is_no_controller(wf, controller):
    """SPEC §6."""
    with pytest.raises(strandline.InvalidInputError):
        wf.recover(controller=controller)
