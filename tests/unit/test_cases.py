"""Law (I11, I16, C21): what can't be decided is one durable question, which blocks its own summary and nothing else.

Checked on both stores: what opens a case and what does not, who finds it again, and what it keeps from being compacted.
"""

from dataclasses import replace

import pytest

import strandline
from strandline.engine.cases import open_case
from strandline.engine.reading import find_view
from strandline.model.case import BLOCKING, CaseKind
from strandline.testing import SeededEntropy, VirtualClock
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
