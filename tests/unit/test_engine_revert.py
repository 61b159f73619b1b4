"""Law (C14, C17, I6, I11, I13, I15): a revert goes back to an earlier content as a new generation, and says what was
made from what it leaves behind.

Checked on both stores: what a reader sees, what is refused, what the lineage and `verify` say, and what can't return.
"""

import asyncio
import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest

import strandline
from strandline import limits
from strandline.engine.claim import claim
from strandline.engine.plan_job import Order, plan_job
from strandline.engine.revert import revert_in
from strandline.summarizers import as_summarizer
from tests.unit.test_engine_stage import (
    WHOLE,
    lease_of,
    new_workflow,
    open_store,
    quiet,
    seen_of,
    states,
    talk,
    transaction,
)

WHO = {"by": "ada", "why": "it lost the budget"}
BUDGET = 400


@pytest.fixture
def wf(db):
    wf = new_workflow(db)
    yield wf
    assert lease_of(db, wf) is None
    assert wf.verify().problems == ()


def grow(wf, generations: int) -> None:
    """Append and compact, until the view is at this generation."""
    for number in range(1, generations + 1):
        wf.append(talk(6, start=100 * number))
        assert wf.compact(BUDGET, quiet).outcome == "activated"


def parts_of(context) -> list[tuple[str, int, int, str]]:
    return [(part.kind.value, part.from_seq, part.through_seq, part.text) for part in context.parts]


# ---------------------------------------------------------------------------------------------- what is read


def test_the_context_is_the_old_summary_with_a_longer_tail(wf):
    """C17, I13: content of generation 1, and each later event verbatim; the number is new."""
    grow(wf, 1)
    old = wf.context(WHOLE)
    for number in (2, 3):
        wf.append(talk(6, start=100 * number))
        wf.compact(BUDGET, quiet)
    done = wf.revert(1, **WHO)
    now = wf.context(WHOLE)
    assert (done.generation, now.generation, now.watermark) == (4, 4, old.watermark)
    assert [part for part in parts_of(now) if part[0] != "event"] == [p for p in parts_of(old) if p[0] != "event"]
    assert [p.from_seq for p in now.parts if p.kind == "event"] == list(range(old.watermark + 1, now.revision + 1))
    assert done.left == (2, 3)
    assert len(wf.manifest()) == len({entry.ref_id for entry in wf.manifest()})


def test_generation_0_is_a_target(db, wf):
    grow(wf, 2)
    done = wf.revert(0, **WHO)
    now = wf.context(WHOLE)
    assert (done.generation, now.generation, now.watermark) == (3, 3, 0)
    assert [part.from_seq for part in now.parts] == list(range(1, now.revision + 1))
    assert [state for state, _ in states(db, wf)] == ["reverted", "reverted"]


def test_it_is_one_entry_of_the_lineage(wf):
    """I13: who, why, where to and what was left; the pointer moved there."""
    grow(wf, 2)
    done = wf.revert(1, **WHO)
    entry = wf.lineage()[-1]
    assert (entry.kind, entry.generation, entry.lineage_seq) == ("revert", 3, done.lineage_seq)
    assert (entry.by, entry.why) == ("ada", "it lost the budget")
    assert (entry.detail["to"], entry.detail["left_generations"], entry.detail["left_summaries"]) == (1, [2], [2])
    assert entry.detail["watermark"] == done.watermark


def test_its_entry_tells_generations_from_summaries(wf):
    """I13: generation 3 has summary 1, generation 4 has summary 3; what was left is said of both by name."""
    grow(wf, 2)
    wf.revert(1, **WHO)
    grow(wf, 1)
    done = wf.revert(0, **WHO)
    detail = wf.lineage()[-1].detail
    assert (done.left, detail["left_generations"]) == ((1, 2, 3, 4), [1, 2, 3, 4])
    assert detail["left_summaries"] == [1, 2, 3]
    assert "left" not in detail


def test_the_next_compaction_goes_on_from_the_summary_gone_back_to(db, wf):
    """I6, I12: base, depth and count follow the new chain; a job of the same events is another job."""
    grow(wf, 3)
    with transaction(db, wf) as tx:
        before = {candidate.candidate_id for candidate in tx.jobs.all_candidates()}
    wf.revert(1, **WHO)
    outcome = wf.compact(BUDGET, quiet)
    assert (outcome.outcome, outcome.generation) == ("activated", 5)
    with transaction(db, wf) as tx:
        first = tx.lineage.move_to("main", 1).detail["summary_no"]
        assert (outcome.summary.base_no, outcome.summary.compactions) == (first, 2)
        assert len({candidate.candidate_id for candidate in tx.jobs.all_candidates()} - before) == 1
    assert sorted(state for state, _ in states(db, wf)) == ["active", "reverted", "reverted", "superseded"]
    grow(wf, 2)
    assert wf.revert(5, **WHO).generation == 8


# ---------------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize("generation", [-1, 3, 99, True, 1.0, "1", None], ids=repr)
def test_a_generation_that_never_was_is_refused(wf, generation):
    grow(wf, 2)
    seen = seen_of(wf)
    for verb in (wf.revert, wf.report_regression):
        with pytest.raises(strandline.InvalidInputError, match="never was at generation"):
            verb(generation, **WHO)
    assert seen_of(wf) == seen


def test_the_present_content_is_refused(wf):
    grow(wf, 2)
    with pytest.raises(strandline.InvalidInputError, match="is at generation 2 already"):
        wf.revert(2, **WHO)
    wf.revert(1, **WHO)
    seen = seen_of(wf)
    with pytest.raises(strandline.InvalidInputError, match="is the active one, as generation 3"):
        wf.revert(1, **WHO)
    assert seen_of(wf) == seen


def test_what_was_left_as_bad_is_refused(wf):
    """C17: a summary that a revert left behind does not come back."""
    grow(wf, 3)
    wf.revert(1, **WHO)
    seen = seen_of(wf)
    for generation in (2, 3):
        with pytest.raises(strandline.InvalidInputError, match="left as bad by the revert at lineage 4"):
            wf.revert(generation, **WHO)
    assert seen_of(wf) == seen
    grow(wf, 1)
    assert wf.revert(4, **WHO).left == (5,)  # generation 4 had the content of 1, which is good
    assert wf.revert(0, **WHO).left == (1, 2, 3, 4, 5, 6)


def test_what_covers_abandoned_events_is_refused(wf):
    """C22: a rewind left some of the events behind that the summary speaks of."""
    grow(wf, 2)
    behind = wf.context(WHOLE).watermark
    wf.rewind(behind - 1, **WHO)
    seen = seen_of(wf)
    with pytest.raises(strandline.InvalidInputError, match="the rewind at lineage 3 abandoned"):
        wf.revert(2, **WHO)
    assert seen_of(wf) == seen
    grow(wf, 1)
    assert wf.revert(3, **WHO).left == (4,)  # where the rewind went
    assert wf.revert(0, **WHO).left == (1, 2, 3, 4, 5)


def test_what_was_acted_on_is_listed_after_a_rewind_too(wf):
    """C17, C22: the events that it abandoned were made all the same."""
    grow(wf, 1)
    end = wf.basis().revision
    made = wf.append(strandline.artifact("report", "art-79"), basis=wf.context())
    wf.rewind(end, **WHO)
    assert [(found.kind, found.seq) for found in wf.revert(0, **WHO).acted_on] == [("artifact", made.seq)]


@pytest.mark.parametrize("by", ["", "  ", None, 7, "x" * (limits.CASE_TEXT_CHARS_MAX + 1), "\ud800"], ids=repr)
def test_nobody_decides_nothing(wf, by):
    grow(wf, 1)
    seen = seen_of(wf)
    for verb in (wf.revert, wf.report_regression):
        with pytest.raises(strandline.InvalidInputError, match="by"):
            verb(0, by=by, why="x")
        with pytest.raises(strandline.InvalidInputError, match="why"):
            verb(0, by="ada", why=None)
    assert seen_of(wf) == seen


DAMAGES = (
    "UPDATE summary SET watermark = watermark + 1 WHERE summary_no IN (2, 3)",
    "UPDATE summary SET anchors = NULL, salt = NULL WHERE summary_no IN (2, 3)",
    "DELETE FROM summary WHERE summary_no IN (2, 3)",
    "DELETE FROM dropped_ref WHERE summary_no IN (2, 3)",
    "UPDATE segment SET text_digest = x'00' WHERE made_by IN (SELECT summary_id FROM summary WHERE summary_no > 1)",
)


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_summary_is_no_target_and_no_hindrance(tmp_path, damage):
    """I16: one can't go back to it, and can go away from it."""
    with open_store("sqlite", tmp_path) as db:
        wf = new_workflow(db)
        grow(wf, 3)
        with closing(sqlite3.connect(tmp_path / "store.db")) as raw, raw:
            assert raw.execute(damage).rowcount > 0
        entries = wf.lineage()
        with pytest.raises(strandline.CorruptRecordError, match=r"summary 2|segment|dropped_ref 2") as caught:
            wf.revert(2, **WHO)
        assert "strandline verify" in caught.value.hint
        assert wf.lineage() == entries
        assert wf.revert(1, **WHO).left == (2, 3)
        assert wf.context(WHOLE).generation == 4
        assert wf.compact(BUDGET, quiet).outcome == "activated"


def test_a_generation_whose_entry_is_gone_is_an_error(tmp_path):
    """I4, I13: it is not taken for one that never was."""
    with open_store("sqlite", tmp_path) as db:
        wf = new_workflow(db)
        grow(wf, 3)
        with closing(sqlite3.connect(tmp_path / "store.db")) as raw, raw:
            raw.execute("DROP TRIGGER entry_is_never_deleted")
            raw.execute("DELETE FROM lineage WHERE generation = 2")
        for generation in (1, 2):
            with pytest.raises(strandline.CorruptRecordError, match="moved it to generation 2 is missing"):
                wf.revert(generation, **WHO)


# ---------------------------------------------------------------------------------------------- in flight


def order() -> Order:
    return Order(
        view="main",
        budget=BUDGET,
        summarizer=as_summarizer(quiet),
        strict=False,
        through=None,
        when_tokens=None,
        deadline_s=None,
    )


def test_a_compaction_in_flight_never_becomes_active(db, wf):
    """I6: however late its draft lands, it is refused; its lease is gone."""
    grow(wf, 2)
    wf.append(talk(6, start=900))
    late = []

    def slow(request: strandline.SummaryRequest) -> str:
        if not late:
            late.append(wf.revert(1, **WHO))
        return quiet(request)

    outcome = wf.compact(BUDGET, slow)
    assert (outcome.outcome, outcome.generation) == ("conflict", 3)
    assert late[0].fenced is not None
    assert states(db, wf)[-1][1] == ["fenced"]
    assert wf.compact(BUDGET, quiet).outcome == "activated"


def test_one_that_was_validated_before_never_becomes_active(db, wf, monkeypatch):
    """I6: its draft is stored and good; the revert came between validation and activation."""
    from strandline.engine import compact as engine

    grow(wf, 2)
    wf.append(talk(6, start=900))
    activate = engine.activate

    def reverted_first(env, job, attempt):
        monkeypatch.setattr(engine, "activate", activate)
        wf.revert(1, **WHO)
        return activate(env, job, attempt)

    monkeypatch.setattr(engine, "activate", reverted_first)
    assert wf.compact(BUDGET, quiet).outcome == "conflict"
    assert wf.context(WHOLE).generation == 3
    assert "validated" in [attempts[-1] for _, attempts in states(db, wf)]
    outcome = wf.compact(BUDGET, quiet)
    assert (outcome.outcome, outcome.generation) == ("activated", 4)
    assert len(outcome.attempts) == 1


def test_a_job_delivered_again_finds_that_its_summary_was_reverted(wf):
    """C14: the row of the job says so; nothing is drafted from it."""
    wf.append(talk(6))
    job = plan_job(wf._env, order())
    assert wf.compact(BUDGET, quiet).outcome == "activated"
    wf.revert(0, **WHO)
    refused = claim(wf._env, job, background=False)
    assert refused.moved  # the base is another generation, though its content is the same
    again = claim(wf._env, replace(job, plan=replace(job.plan, base_generation=2)), background=False)
    assert again.candidate_state == "reverted"


# ---------------------------------------------------------------------------------------------- what was acted on


def test_it_lists_what_was_made_from_the_generations_left_behind(db, wf):
    """C17: by their basis; what was made from a good one, or says nothing of it, is not listed."""
    grow(wf, 1)
    good = wf.context()
    wf.append(strandline.note("from the good one", actor="bea"), basis=good)
    wf.append(talk(6, start=500))
    wf.compact(BUDGET, quiet)
    bad = wf.context()
    said = wf.append(strandline.decision("drop the budget", actor="ada"), basis=bad)
    made = wf.append(strandline.artifact("report", "art-77", actor="bot"), basis=bad)
    wf.append(strandline.note("nobody knows from what"))
    kept = wf.checkpoint({}, 7, basis=wf.context(), name="planner")
    paid = wf.effect("pay-0", "pay", {"order": 7}, lambda: "paid", basis=bad, actor="bot")
    wf.effect("pay-1", "pay", {"order": 8}, lambda: "paid", basis=good, actor="bot")
    done = wf.revert(1, **WHO)
    assert [(found.kind, found.name, found.seq, found.actor) for found in done.acted_on] == [
        ("effect", "pay-0", paid.call_seq, "bot"),
        ("artifact", "report", made.seq, "bot"),
        ("event", "decision", said.seq, "ada"),
        ("checkpoint", "planner", kept.revision, ""),
    ]
    assert done.acted_on_count == 4
    assert {found.basis.generation for found in done.acted_on} == {2}


def test_an_effect_that_is_gone_is_not_left_out_in_silence(db, wf):
    grow(wf, 1)
    with transaction(db, wf, write=True) as tx:
        tx.log.set_head(replace(tx.log.head(), effects=1))
    with pytest.raises(strandline.CorruptRecordError, match="0 are stored, 1 were written"):
        wf.revert(0, **WHO)
    with transaction(db, wf, write=True) as tx:
        tx.log.set_head(replace(tx.log.head(), effects=0))
    assert [entry.kind for entry in wf.lineage()] == ["compaction"]


def test_the_list_is_bounded_and_the_count_is_not(wf, monkeypatch):
    """I22: what has consequences outside comes first."""
    monkeypatch.setattr("strandline.engine.acted_on.ACTED_ON_LISTED_MAX", 3)
    grow(wf, 1)
    basis = wf.context()
    wf.append([strandline.note(f"note {number}") for number in range(5)], basis=basis)
    wf.append(strandline.artifact("report", "art-78"), basis=basis)
    done = wf.revert(0, **WHO)
    assert [found.kind for found in done.acted_on] == ["artifact", "event", "event"]
    assert done.acted_on_count == 6


def test_what_is_read_follows_what_came_since(db, wf, monkeypatch):
    """C17: not the whole log; the events behind the first bad activation."""
    from strandline.engine import acted_on as engine

    grow(wf, 3)
    asked = []
    read_log = engine.read_log
    monkeypatch.setattr(engine, "read_log", lambda tx, a, b, name: asked.append((a, b)) or read_log(tx, a, b, name))
    with transaction(db, wf) as tx:
        at = tx.lineage.move_to("main", 3).revision
        last = tx.log.head().revision
    wf.revert(2, **WHO)
    assert asked == [(at + 1, last)]


# ---------------------------------------------------------------------------------------------- case, recovery


def test_a_revert_opens_a_case_on_the_bad_summary_and_blocks_nothing(db, wf):
    """I11: the case names the summary that is left; compaction of the good one goes on."""
    grow(wf, 2)
    done = wf.revert(1, **WHO)
    with transaction(db, wf) as tx:
        (case,) = tx.cases.all()
    assert (case.case_id, case.kind, case.generation, case.blocking) == (done.case_id, "regression", 2, True)
    grow(wf, 1)


def test_a_reported_regression_blocks_until_it_is_reverted(db, wf):
    """I11: the same question asked again finds its case; reads and appends go on."""
    grow(wf, 2)
    seen = [entry.lineage_seq for entry in wf.lineage()]
    case = wf.report_regression(2, **WHO)
    assert wf.report_regression(2, by="bea", why="seen again").case_id == case.case_id
    assert [entry.lineage_seq for entry in wf.lineage()] == seen
    wf.append(talk(6, start=900))
    wf.context(WHOLE)
    with pytest.raises(strandline.UnreconciledSummaryError) as caught:
        wf.compact(BUDGET, quiet)
    assert caught.value.case_id == case.case_id
    assert wf.revert(1, **WHO).case_id == case.case_id
    assert wf.compact(BUDGET, quiet).outcome == "activated"


def test_the_empty_summary_can_not_be_bad(wf):
    grow(wf, 1)
    for _ in range(2):
        with pytest.raises(strandline.InvalidInputError, match="empty summary"):
            wf.report_regression(0, **WHO)


def test_a_checkpoint_of_before_does_not_pass_the_gate(wf):
    """I15: its state was built from what is left behind, or from a shorter tail."""
    grow(wf, 1)
    wf.checkpoint({"at": 1}, 1, basis=wf.context())
    wf.append(talk(6, start=500))
    wf.compact(BUDGET, quiet)
    wf.checkpoint({"at": 2}, 2, basis=wf.context())
    stale = wf.context()
    wf.revert(1, **WHO)
    with pytest.raises(strandline.CompactionLineageError):
        wf.checkpoint({"at": 3}, 3, basis=stale)
    found = wf.recover()
    assert (found.kind, found.state, found.generation) == ("replay", None, 3)
    wf.checkpoint({"at": 4}, 4, basis=wf.context())
    assert wf.recover().state == {"at": 4}


def test_it_is_undone_with_its_transaction(db, wf):
    """All of it or nothing: for who does it within a larger decision."""
    grow(wf, 2)
    seen, before = seen_of(wf), states(db, wf)

    def revert_and_fail() -> None:
        with wf._env.write() as tx:
            revert_in(wf._env, tx, "main", 1, **WHO)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        revert_and_fail()
    assert (seen_of(wf), states(db, wf)) == (seen, before)


def test_the_verbs_for_event_loops(tmp_path):
    async def all_of_it():
        async with strandline.aopen(tmp_path / "store.db") as db:
            wf = db.tenant("acme").workflow("run")
            await wf.append(talk(6))
            await wf.compact(BUDGET, quiet)
            case = await wf.report_regression(1, **WHO)
            return case, await wf.revert(0, **WHO)

    case, done = asyncio.run(all_of_it())
    assert (done.generation, done.case_id) == (2, case.case_id)
