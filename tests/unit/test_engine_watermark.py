"""Law (I7, I8): a watermark never parts a call from its result, and never covers an open call; tail and summary abut.

Checked on both stores by generated logs, compacted as they grow, against the oracle of calls that made them.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import strandline
from strandline.model.context import PartKind
from tests.unit.test_engine_stage import WHOLE, bounded, logs, new_workflow, talk

CALL, RESULT, SAY = strandline.tool_call, strandline.tool_result, strandline.message


@pytest.fixture
def wf(db):
    return new_workflow(db)


@bounded(30)
@given(log=logs(60, min_size=6), cuts=st.lists(st.tuples(st.integers(1, 25), st.integers(120, 700)), max_size=5))
def test_every_covered_call_is_closed_at_the_watermark(db, log, cuts):
    """I8: and its result, where it was in time, is covered with it. I7: segments up to it, then each later event."""
    wf = new_workflow(db)
    done = watermark = 0
    for size, budget in [*cuts, (len(log.events), 200)]:
        batch = log.events[done : done + size]
        done += len(batch)
        if batch:
            wf.append(batch)
        try:
            outcome = wf.compact(budget)
        except strandline.ContextOverflowError:
            outcome = None
        context = wf.context(WHOLE)
        assert context.watermark >= watermark
        watermark = context.watermark
        for call in log.calls:
            if call.seq <= watermark:
                assert call.closed is not None
                assert call.closed <= watermark
        if outcome is not None and outcome.outcome == "activated":
            assert outcome.watermark == watermark
            assert outcome.tokens_after <= budget
        _check_coverage(context, done)
    assert wf.verify().ok


def _check_coverage(context: strandline.Context, revision: int) -> None:
    segments = [part for part in context.parts if part.kind is PartKind.SEGMENT]
    covered = 0
    for part in segments:
        assert part.from_seq == covered + 1
        covered = part.through_seq
    assert covered == context.watermark
    tail = [part.from_seq for part in context.parts if part.kind is PartKind.EVENT]
    assert tail == list(range(context.watermark + 1, revision + 1))


def test_no_watermark_stands_where_a_call_is_open(db, wf):
    """I8: asked for by number, every place is refused but those where each call is closed."""
    wf.append(
        [SAY("user", "go"), CALL("a", "fetch", {}), CALL("b", "fetch", {}), RESULT("a", "x"), SAY("user", "stop")]
    )
    wf.append([RESULT("b", "late"), CALL("c", "fetch", {})])
    for through in (2, 3, 4, 7, 8, -1):
        with pytest.raises(strandline.InvalidInputError):
            wf.compact(through=through)
    for through in (1, 5, 6):
        assert wf.compact(through=through).watermark == through


def test_a_call_that_is_never_answered_can_not_starve_compaction(db, wf):
    """I8: once a user turn closed it, it is covered, and stands in the anchors as of unknown outcome."""
    wf.append([CALL("lost-call", "create_bucket", {"name": "x"}, actor="main"), *talk(8)])
    with pytest.raises(strandline.ContextOverflowError, match="open"):
        wf.compact(150)
    wf.append(SAY("user", "what about the bucket?", actor="main"))
    outcome = wf.compact(400)
    assert outcome.outcome == "activated"
    assert outcome.watermark > 1
    assert "outcome unknown lost-call" in outcome.summary.anchors_text


def test_open_calls_of_other_lanes_hold_the_watermark_too(db, wf):
    """I8: the log has one watermark, and every open call holds it."""
    wf.append([*talk(3), CALL("a", "fetch", {}, actor="scout"), *talk(6, start=10)])
    assert wf.compact(500).watermark <= 6


def test_what_is_appended_while_drafting_is_not_covered(db, wf):
    """I8: a watermark never passes what the summarizer was really shown."""
    wf.append(talk(10))
    shown: list[int] = []

    def draft(request: strandline.SummaryRequest) -> str:
        shown.extend(event.seq for event in request.events)
        wf.append(talk(10, start=50))
        return "The pump room was inspected."

    outcome = wf.compact(400, draft)
    assert outcome.outcome == "activated"
    assert shown == list(range(1, outcome.watermark + 1))
    assert outcome.revision == 40
