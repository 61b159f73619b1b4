"""Law (C29): what counts as needed, what counts as kept, and which budget makes ours as long as theirs.

`uses_after` is checked against an oracle that asks one reference at a time; `budget_within` against the sums that
`rules.planning` allows.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from strandline.limits import CONTEXT_BUDGET_TOKENS_MIN
from strandline.model.candidate import Shares
from strandline.model.comparison import DECLARED, Tally
from strandline.model.event import EventKind, Role, SourceEvent
from strandline.rules.comparison import Kept, budget_within, is_by_agent, uses_after
from strandline.rules.planning import ledger_tokens
from strandline.rules.verbatim import stands_verbatim
from tests.unit.test_engine_stage import bounded

REFS = ("src/app/main.py", "main.py", "bucket-7f3a", "ORD-12", "loadOrders", "v1.2.3")
VOICES = (
    (EventKind.MESSAGE, Role.USER),
    (EventKind.MESSAGE, Role.ASSISTANT),
    (EventKind.MESSAGE, Role.SYSTEM),
    (EventKind.THINKING, None),
    (EventKind.TOOL_CALL, None),
    (EventKind.TOOL_RESULT, None),
    (EventKind.NOTE, None),
)


def event(seq: int, kind: EventKind, role: Role | None = None, *refs: str, declared: tuple[str, ...] = ()):
    return SourceEvent(
        seq=seq, kind=kind, role=role, actor="", text="", tokens=0, declared=declared, extracted=tuple(refs)
    )


later = st.lists(st.tuples(st.sampled_from(VOICES), st.lists(st.sampled_from(REFS), unique=True)), max_size=12)
texts = st.lists(st.sampled_from([*REFS, "and", "/", "x/main.py", "xmain.py"]), max_size=8).map(" ".join)


@bounded(200)
@given(covered=st.lists(st.sampled_from(REFS), unique=True), spoken=later)
def test_uses_are_those_that_each_reference_had_alone(covered, spoken):
    last_seen = {ref: number for number, ref in enumerate(covered, start=1)}
    events = [event(100 + at, kind, role, *refs) for at, ((kind, role), refs) in enumerate(spoken)]
    uses = uses_after(last_seen, events)
    assert [use.used_seq for use in uses] == sorted(use.used_seq for use in uses)
    assert len({use.ref for use in uses}) == len(uses)
    found = {use.ref: use for use in uses}
    for ref in REFS:
        by_agent = [e.seq for e in events if ref in e.extracted and is_by_agent(e)]
        if ref not in last_seen or not by_agent:
            assert ref not in found
            continue
        by_others = [e.seq for e in events if ref in e.extracted and not is_by_agent(e)]
        assert found[ref].last_seq == last_seen[ref]
        assert found[ref].used_seq == by_agent[0]
        assert found[ref].shown_first == any(seq < by_agent[0] for seq in by_others)


def test_the_agent_speaks_in_its_messages_thoughts_and_calls_only():
    speaks = [is_by_agent(event(1, kind, role)) for kind, role in VOICES]
    assert speaks == [False, True, False, True, True, False, False]


def test_a_bare_integer_counts_only_where_it_was_declared():
    call = event(9, EventKind.TOOL_CALL, None, "120000", "8,500 ms")
    assert [use.ref for use in uses_after({"120000": 1, "8,500 ms": 1}, [call])] == ["8,500 ms"]
    (use,) = uses_after({"120000": 1}, [event(9, EventKind.TOOL_CALL, declared=("120000",))])
    assert (use.ref, use.reference_class) == ("120000", DECLARED)


@bounded(200)
@given(refs=st.lists(st.sampled_from(REFS), unique=True), theirs=texts, ledger=texts, ours=texts)
def test_kept_is_what_stands_verbatim(refs, theirs, ledger, ours):
    uses = uses_after(dict.fromkeys(refs, 1), [event(2, EventKind.THINKING, None, *refs)])
    kept = Kept.of(uses, theirs=theirs, ledger=ledger, ours=ours)
    assert kept.theirs == {ref for ref in refs if stands_verbatim(ref, theirs)}
    assert kept.theirs_and_ledger == kept.theirs | {ref for ref in refs if stands_verbatim(ref, ledger)}
    assert kept.ours == {ref for ref in refs if stands_verbatim(ref, ours)}
    tally = kept.tally(uses)
    assert tally == Tally(
        needed=len(refs),
        theirs=len(kept.theirs),
        theirs_and_ledger=len(kept.theirs_and_ledger),
        ours=len(kept.ours),
    )
    assert Tally.sum(kept.by_class(uses).values()) == tally
    dropped = kept.dropped(uses, 100)
    assert [each.use.ref for each in dropped] == [ref for ref in refs if ref not in kept.theirs]
    assert all(each.in_ledger == (each.use.ref in kept.theirs_and_ledger) for each in dropped)
    assert all(each.in_ours == (each.use.ref in kept.ours) for each in dropped)
    assert kept.dropped(uses, 1) == dropped[:1]
    mildly = Kept.of(uses, theirs=theirs, ledger=ledger, ours=ours, by_name=True)
    assert kept.theirs <= mildly.theirs
    assert kept.ours <= mildly.ours
    assert {ref for ref in mildly.theirs - kept.theirs if not ref.endswith("main.py")} == set()


def test_by_name_a_path_is_kept_where_its_last_name_stands_alone():
    uses = uses_after({"src/app/main.py": 1}, [event(2, EventKind.THINKING, None, "src/app/main.py")])
    for text, stands in (("see main.py.", 1), ("in app/main.py", 1), ("xmain.py", 0), ("main.pyx", 0), ("src/app", 0)):
        kept = Kept.of(uses, theirs=text, ledger="", ours="", by_name=True)
        assert kept.tally(uses).theirs == stands, text
        assert Kept.of(uses, theirs=text, ledger="", ours="").tally(uses).theirs == 0


def most(budget: int, anchors: int, shares: Shares) -> int:
    """Return the most tokens that a summary without a tail takes by the shares of `rules.planning`."""
    segments = max(0, min(int(budget * shares.segments), budget - anchors))
    return segments + anchors + ledger_tokens(budget, shares, segments=segments, anchors=anchors, tail=0)


@bounded(300)
@given(
    tokens=st.integers(0, 20_000),
    anchors=st.integers(0, 8_000),
    shares=st.sampled_from([Shares(), Shares(segments=0.2, ledger=0.8, tail=0.0), Shares(segments=0.5, ledger=0.0)]),
)
def test_the_budget_is_the_largest_whose_summary_is_not_longer(tokens, anchors, shares):
    budget = budget_within(tokens, anchors, shares)
    if budget is None:
        assert most(CONTEXT_BUDGET_TOKENS_MIN, anchors, shares) > tokens
        return
    assert budget >= CONTEXT_BUDGET_TOKENS_MIN
    assert most(budget, anchors, shares) <= tokens < most(budget + 1, anchors, shares)
