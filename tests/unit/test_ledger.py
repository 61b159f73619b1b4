"""Law: the ledger never exceeds its budget, and carries each reference verbatim on a line of its own.

Declared ones come first. Scores are the same for the same log however often it was compacted in between.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.limits import LEDGER_CANDIDATES_MAX
from strandline.model.event import EventKind, Role, SourceEvent
from strandline.model.summary import LedgerEntry
from strandline.rules.ledger import LEDGER_HALF_LIFE_EVENTS, LEDGER_HEADING, score, select
from strandline.rules.verbatim import stands_verbatim


def count_bytes(text: str) -> int:
    return math.ceil(len(text.encode()) / 3)


COUNTERS: list[Callable[[str], int]] = [
    len,
    count_bytes,
    lambda text: len(text.split()),
    lambda text: len(text) ** 2 // 50,  # a whole counts more than its parts
    lambda text: 5 + len(text) // 4,
]


def event(
    seq: int,
    *refs: str,
    kind: EventKind = EventKind.TOOL_RESULT,
    declared: tuple[str, ...] = (),
    role: Role | None = None,
) -> SourceEvent:
    text = " ".join((*refs, *declared))
    return SourceEvent(seq=seq, kind=kind, role=role, actor="a", text=text, tokens=1, declared=declared, extracted=refs)


def entry(ref_id: int, text: str, **fields: object) -> LedgerEntry:
    made = LedgerEntry(ref_id=ref_id, text=text, declared=False, used_seq=0, weight=0.0, last_seq=1)
    return replace(made, **fields)  # type: ignore[arg-type]


NAMES = [f"job-{n}" for n in range(12)]
IDS = {name: n for n, name in enumerate(NAMES, 1)}
EVENTS = st.lists(
    st.tuples(
        st.lists(st.sampled_from(NAMES), max_size=5, unique=True),
        st.sampled_from([EventKind.TOOL_RESULT, EventKind.TOOL_CALL, EventKind.MESSAGE]),
        st.booleans(),
    ),
    min_size=1,
    max_size=40,
).map(
    lambda rows: [
        event(seq, *(() if declared else refs), kind=kind, declared=tuple(refs) if declared else ())
        for seq, (refs, kind, declared) in enumerate(rows, 1)
    ]
)


@given(EVENTS, st.data())
def test_scores_do_not_depend_on_where_the_compactions_lay(events: list[SourceEvent], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(events)))
    whole = {e.ref_id: e for e in score([], events, IDS)}
    parts = {e.ref_id: e for e in score(score([], events[:at], IDS), events[at:], IDS)}
    assert whole.keys() == parts.keys()
    for ref_id, one in whole.items():
        other = parts[ref_id]
        assert replace(one, weight=0.0) == replace(other, weight=0.0)
        assert one.weight == pytest.approx(other.weight)


@given(EVENTS)
def test_an_entry_says_what_was_sighted(events: list[SourceEvent]) -> None:
    for made in score([], events, IDS):
        seen = [e for e in events if made.text in (*e.declared, *e.extracted)]
        words = [e.seq for e in seen if e.kind is not EventKind.TOOL_RESULT]
        assert IDS[made.text] == made.ref_id
        assert made.declared == any(made.text in e.declared for e in seen)
        assert made.used_seq == max(words, default=0)
        assert made.last_seq == seen[-1].seq
        decayed = sum(2 ** (e.seq / LEDGER_HALF_LIFE_EVENTS) / len(set(e.declared + e.extracted)) ** 0.5 for e in seen)
        assert made.weight == pytest.approx(math.log2(decayed))


def test_weights_stay_finite_in_a_log_of_any_length() -> None:
    made = score(score([], [event(1, "job-1")], IDS), [event(10**12, "job-1", "job-2")], IDS)
    assert all(math.isfinite(e.weight) for e in made)


def test_a_reference_without_a_number_gets_no_entry() -> None:
    assert [e.text for e in score([], [event(1, "job-1", declared=("secret",))], IDS)] == ["job-1"]


def test_candidates_are_bounded_and_the_best_stay() -> None:
    refs = [f"id-{n}" for n in range(LEDGER_CANDIDATES_MAX + 50)]
    events = [event(1, *refs), event(2, refs[-1], kind=EventKind.TOOL_CALL)]
    made = score([], events, {ref: n for n, ref in enumerate(refs)})
    assert len(made) == LEDGER_CANDIDATES_MAX
    assert refs[-1] in {e.text for e in made}


def order(entries: Sequence[LedgerEntry]) -> list[int]:
    return [e.ref_id for e in select(entries, standing=(), budget_tokens=10**6, count=len)[0]]


def test_declared_then_used_then_shown() -> None:
    shown, used, declared = entry(1, "job-1"), entry(2, "job-2", used_seq=1), entry(3, "job-3", declared=True)
    assert order([shown, used, declared]) == [3, 2, 1]


def test_recent_before_old_and_short_before_long() -> None:
    assert order([entry(1, "job-1", last_seq=1), entry(2, "job-2", last_seq=90)]) == [2, 1]
    assert order([entry(1, "job-with-a-longer-name-1"), entry(2, "job-2")]) == [2, 1]
    assert order([entry(2, "job-b"), entry(1, "job-a")]) == [1, 2]


LEDGERS = st.lists(
    st.builds(
        entry,
        st.integers(1, 10**6),
        st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Zl", "Zp"]), min_size=1, max_size=40),
        declared=st.booleans(),
        used_seq=st.integers(0, 99),
        weight=st.floats(-20, 20),
        last_seq=st.integers(1, 99),
    ),
    max_size=60,
    unique_by=(lambda e: e.ref_id, lambda e: e.text),
)


@settings(deadline=None)
@given(LEDGERS, st.integers(-5, 400), st.sampled_from(COUNTERS), st.randoms())
def test_the_budget_is_never_exceeded_and_all_chosen_stand(
    entries: list[LedgerEntry], budget_tokens: int, count: Callable[[str], int], random: object
) -> None:
    standing = {e.ref_id for e in entries[::3]}
    chosen, text = select(entries, standing=standing, budget_tokens=budget_tokens, count=count)
    if chosen:
        assert count(text) <= budget_tokens
        assert text.split("\n") == [LEDGER_HEADING, *(e.text for e in chosen)]
    else:
        assert text == ""
    assert standing.isdisjoint(e.ref_id for e in chosen)
    random.shuffle(entries)  # type: ignore[attr-defined]
    assert select(entries, standing=standing, budget_tokens=budget_tokens, count=count) == (chosen, text)


def test_references_with_spaces_and_within_each_other_stand_on_their_own() -> None:
    refs = ["/srv/a b/c.txt", "/srv", "/srv/a", "$500", "$5000", "24,000 tokens"]
    entries = [entry(n, ref) for n, ref in enumerate(refs)]
    _, text = select(entries, standing=(), budget_tokens=1_000, count=count_bytes)
    assert all(stands_verbatim(ref, text) for ref in refs)


def test_what_is_left_of_the_budget_is_used() -> None:
    entries = [entry(n, f"id-{n:04}") for n in range(3_000)]
    _, text = select(entries, standing=(), budget_tokens=2_000, count=count_bytes)
    assert 1_990 <= count_bytes(text) <= 2_000


def test_nothing_fits_gives_nothing() -> None:
    assert select([entry(1, "job-1")], standing=(), budget_tokens=count_bytes(LEDGER_HEADING), count=count_bytes) == (
        [],
        "",
    )
    assert select([], standing=(), budget_tokens=1_000, count=count_bytes) == ([], "")
