"""Law (I11, I16, C21): what can't be decided is one durable question, which blocks its own summary and nothing else.

Checked on both stores: what opens a case and what does not, who finds it again, and what it keeps from being compacted.
"""

from dataclasses import replace

import pytest

import strandline
from strandline.engine.cases import open_case
from strandline.engine.reading import find_view, read_one
from strandline.limits import ATTEMPTS_MAX, COOLDOWN_BASE_S
from strandline.model.case import BLOCKING, CaseKind
from strandline.testing import ScriptedSummarizer, SeededEntropy, VirtualClock
from tests.unit.test_engine_stage import lease_of, new_workflow, open_store, quiet, seen_of, talk, transaction


@pytest.fixture
def wf(db):
    wf = new_workflow(db)
    wf.append(talk(8))
    yield wf
    assert lease_of(db, wf) is None


def ask(wf, kind=CaseKind.MISSING_DEPENDENCY, **arguments):
    """Open a case on the view as it stands."""
    with wf._env.write() as tx:
        view = find_view(tx, "main", str(wf._env.scope))
        return open_case(wf._env, tx, kind, view=view, **{"reason": "asked"} | arguments)


# ---------------------------------------------------------------------------------------------- what blocks


@pytest.mark.parametrize("compacted", [False, True])
@pytest.mark.parametrize("kind", CaseKind)
def test_a_blocking_case_stops_its_own_summary(wf, kind, compacted):
    """I11: the empty summary of generation 0 too; other kinds block nothing; reads and appends go on."""
    if compacted:
        wf.compact(400, quiet)
    wf.append(talk(8, start=20))
    case = ask(wf, kind)
    assert case.generation == int(compacted)
    if kind not in BLOCKING:
        assert wf.compact(400, quiet).outcome == "activated"
        return
    before = seen_of(wf)
    with pytest.raises(strandline.UnreconciledSummaryError, match=case.case_id) as caught:
        wf.compact(400, quiet)
    assert caught.value.case_id == case.case_id
    assert seen_of(wf) == before
    assert wf.append(strandline.note("goes on")).revision > case.revision


def test_a_case_opened_while_a_compaction_drafts_stops_its_activation(db, wf):
    """I6, I11: it is asked again in the transaction that moves the pointer; the lease goes back."""
    cases = []

    def drafting(request):
        cases.append(ask(wf))
        return "Work went on."

    before = seen_of(wf)
    with pytest.raises(strandline.UnreconciledSummaryError) as caught:
        wf.compact(400, drafting)
    assert caught.value.case_id == cases[0].case_id
    assert seen_of(wf) == before


def test_a_case_of_a_summary_that_gave_way_blocks_no_longer(wf):
    """I11: it blocks only the summary that it names."""
    ask(wf, CaseKind.QUARANTINED)
    wf.compact(400, quiet)
    wf.append(talk(8, start=20))
    with wf._env.write() as tx:
        view = find_view(tx, "main", str(wf._env.scope))
        open_case(wf._env, tx, CaseKind.REGRESSION, view=replace(view, generation=0, summary_no=0), reason="old")
    assert wf.compact(400, quiet).outcome == "activated"
    assert [case.summary_active for case in wf.cases() if case.kind == "regression"] == [False]


def test_an_old_case_is_said_to_have_escalated(tmp_path):
    """I11: past a named age; by the Clock port, and not before."""
    clock = VirtualClock()
    with open_store("memory", tmp_path, clock=clock, entropy=SeededEntropy(3)) as db:
        wf = new_workflow(db)
        wf.append(talk(8))
        ask(wf)
        clock.advance(3_600)
        with pytest.raises(strandline.UnreconciledSummaryError) as caught:
            wf.compact(400, quiet)
        assert "escalated" not in str(caught.value)
        clock.advance(1)
        with pytest.raises(strandline.UnreconciledSummaryError, match="escalated: it has been open for 3601 s"):
            wf.compact(400, quiet)


def test_the_same_question_finds_its_case(db, wf):
    """C21: whatever the order of what is missing; another subject, view or reason is another question."""
    first = ask(wf, missing_ids=(3, 1))
    assert ask(wf, missing_ids=(1, 3)) == first
    assert len({first.case_id, ask(wf).case_id, ask(wf, reason="other").case_id, ask(wf, subject="x").case_id}) == 4
    with transaction(db, wf) as tx:
        assert tx.log.head().cases == len(list(tx.cases.all())) == 4


def test_a_deleted_case_is_missed_before_anything_is_compacted(db, wf):
    """I4: a counter proves the rows."""
    with transaction(db, wf, write=True) as tx:
        tx.log.set_head(replace(tx.log.head(), cases=1))
    with pytest.raises(strandline.CorruptRecordError, match="0 cases are stored, and 1 were opened"):
        wf.compact(400, quiet)


# ---------------------------------------------------------------------------------------------- what a compaction asks


INVENTED = "Made up: bucket-9999 was opened."


def test_a_quarantined_candidate_is_one_case(wf):
    """C13: it names its candidate; the same job asked again finds it, and it blocks nothing."""
    done = wf.compact(400, ScriptedSummarizer([INVENTED] * ATTEMPTS_MAX), fallback=False)
    (case,) = wf.cases()
    assert (done.outcome, done.case_id) == ("quarantined", case.case_id)
    assert (case.kind, case.subject, case.blocking) == ("quarantined", done.attempts[-1].candidate_id, False)
    assert wf.compact(400, ScriptedSummarizer([]), fallback=False).case_id == case.case_id
    assert [found.case_id for found in wf.cases()] == [case.case_id]
    assert wf.compact(400, quiet).outcome == "activated"


def test_a_dead_letter_is_one_case(wf):
    """C14, C15: sent again by hand, it finds its case; a success later leaves the case to be answered."""
    silent = [strandline.TransientSummarizerError("busy")] * 6
    summarizer = ScriptedSummarizer([*silent, "Work went on."])
    first, again = wf.compact(400, summarizer), wf.compact(400, summarizer)
    assert [done.outcome for done in (first, again)] == ["dead_letter", "dead_letter"]
    (case,) = wf.cases()
    assert first.case_id == again.case_id == case.case_id
    assert (case.summary_active, case.compacted_since) == (True, False)
    wf._env.clock.advance(COOLDOWN_BASE_S)
    assert wf.compact(400, summarizer).case_id is None
    assert [(case.summary_active, case.compacted_since) for case in wf.cases()] == [(False, True)]
    wf.reconcile(case, strandline.Abandon(), by="ann", why="it works again")
    assert wf.cases() == []
    assert wf.case(case.case_id).compacted_since is False, "said of an open case only"


def test_three_quarantined_candidates_stop_automatic_compaction(wf):
    """C13: by hand it goes on; answered, it goes on by itself."""
    cases = []
    for number in range(3):
        assert wf.compact(400, quiet, when_tokens=10**9).outcome == "nothing_to_do"
        wf.append(talk(4, start=20 + 10 * number))
        cases.append(wf.compact(400, ScriptedSummarizer([INVENTED] * 9), when_tokens=1, fallback=False).case_id)
    assert wf.compact(400, quiet, when_tokens=10**9).outcome == "nothing_to_do", "it is not due"
    with pytest.raises(strandline.UnreconciledSummaryError) as caught:
        wf.compact(400, quiet, when_tokens=1)
    assert caught.value.case_id in cases
    wf.reconcile(cases[1], strandline.Abandon(), by="ann", why="another model now")
    assert wf.compact(400, quiet, when_tokens=1).outcome == "activated"


def test_a_call_past_its_limits_is_closed_by_a_case(tmp_path):
    """I8: its outcome stays unknown, compaction goes on, and a late result is taken."""
    clock = VirtualClock()
    with open_store("sqlite", tmp_path, clock=clock) as db:
        wf = new_workflow(db)
        wf.append([strandline.tool_call("c1", "make", {}), *talk(8)])
        wf.append([strandline.tool_call("c2", "make", {}, actor="other"), *talk(8, start=20)])
        clock.advance(86_400)
        wf.append(strandline.tool_call("c3", "young", {}, actor="third"))
        wf.compact(400, quiet, when_tokens=10**9)
        assert wf.cases() == [], "not yet"
        clock.advance(1)
        wf.compact(400, quiet, when_tokens=10**9)
        assert [(case.kind, case.subject, case.detail["call_seq"]) for case in wf.cases()] == [("open_call", "c2", 18)]
        closing = [event for event in wf.events() if event.kind == "abandoned"]
        assert {event.actor for event in closing} == {"strandline"}
        assert [event.call_seq for event in closing if event.call_id == "c2"] == [18]
        assert [call.call_id for call in wf.context(100_000).open_calls] == ["c3"]
        wf.append([strandline.tool_result("c3", "made"), strandline.tool_result("c2", "late bucket-77")])
        assert [event.late for event in wf.events()[-2:]] == [False, True]
        assert wf.compact(400, quiet).outcome == "activated"
        assert wf.verify().ok


def test_a_call_with_too_many_events_behind_it_is_closed(wf, monkeypatch):
    """I8: by count, too."""
    monkeypatch.setattr("strandline.engine.close_calls.OPEN_CALL_EVENTS_MAX", 16)
    wf.append([strandline.tool_call("c1", "make", {}, actor="other"), *talk(8, start=20)])
    wf.compact(400, quiet, when_tokens=10**9)
    assert wf.cases() == []
    wf.append(strandline.note("one more"))
    wf.compact(400, quiet)
    assert [(case.kind, case.subject) for case in wf.cases()] == [("open_call", "c1")]


def test_many_calls_past_their_limits_are_closed_in_one_pass(tmp_path, monkeypatch):
    """I8, I22: each once, also those that share an id; what is read follows their number, and not its square."""
    read = []
    monkeypatch.setattr(
        "strandline.engine.close_calls.read_one", lambda tx, seq, name: read.append(seq) or read_one(tx, seq, name)
    )
    clock = VirtualClock()
    with open_store("sqlite", tmp_path, clock=clock) as db:
        wf = new_workflow(db)
        wf.append([strandline.tool_call(f"c{number % 20}", "make", {"x": number}) for number in range(40)])
        clock.advance(86_401)
        wf.append(strandline.tool_call("c7", "young", {}))
        wf.compact(400, quiet, when_tokens=10**9)
        closed = [event.call_seq for event in wf.events() if event.kind == "abandoned"]
        assert sorted(closed) == [seq for seq in range(1, 41) if seq not in (8, 28)], "the latest of its id is open"
        assert sorted(case.detail["call_seq"] for case in wf.cases()) == sorted(closed)
        assert {call.seq for call in wf.context(100_000).open_calls} == {8, 28, 41}
        assert len(read) < 3 * 41
        assert wf.verify().ok


# ---------------------------------------------------------------------------------------------- what a context asks


def test_needs_that_can_not_be_retrieved_open_one_case(wf):
    """C19: beyond the limits the call is blocked and a case opened; one for each view and generation."""
    many = [f"part-{number:05d}" for number in range(200)]
    wf.append([strandline.note(" ".join(many[start : start + 5])) for start in range(0, 200, 5)])
    wf.append(talk(30, start=90))
    wf.compact(250, quiet)
    ids = set()
    for needs in (many, many[:120]):
        with pytest.raises(strandline.ContextOverflowError) as caught:
            wf.context(400, needs=needs)
        ids.add(caught.value.case_id)
    (case,) = wf.cases()
    assert ids == {case.case_id}
    assert (case.kind, case.blocking) == ("blocked_context", False)
    assert wf.context().case_id is None


def test_a_small_budget_alone_opens_no_case(wf):
    """C19: nothing was needed that could not be had."""
    wf.append(strandline.note("x" * 3_000))
    for needs in ([], ["bucket-0001"]):
        with pytest.raises(strandline.ContextOverflowError) as caught:
            wf.context(100, needs=needs)
        assert (caught.value.case_id is not None) == bool(caught.value.needs)
    with pytest.raises(strandline.ContextOverflowError) as caught:
        wf.context(100)
    assert caught.value.case_id is None
