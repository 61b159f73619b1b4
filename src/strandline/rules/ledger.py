"""The ledger: which references are carried verbatim, within a share of the budget, whatever the summarizer says.

Declared references come first. The others are ranked by the likelihood that they are needed again, for the room that
they take; the logarithm of it is

    log2 Σ over sightings of 2^(seq / H) / √k   how often, and among how many in one event: k distinct references there
    + USE_GAIN      if agent or user have used it: what only a tool has shown is needed four to eight times less
    + CLASS_GAINS   paths come back more often; a name in code is spelled out again where the code is read again
    - log2(1 + age / AGE_EVENTS)   age: events since it was last sighted
    - log2(1 + length)

The sum is a logarithm over *absolute* seqs: nothing has to be aged when the log grows, entries made at different
compactions compare, and a new sighting is one log-add. Constants and form are from 18 real compactions (Claude Code).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Final

from strandline.limits import LEDGER_CANDIDATES_MAX
from strandline.model.event import EventKind, SourceEvent
from strandline.model.reference import ReferenceClass
from strandline.model.summary import LedgerEntry
from strandline.rules.reference_classes import classify

LEDGER_HALF_LIFE_EVENTS: Final = 400
LEDGER_HEADING: Final = "References, verbatim:"

AGE_EVENTS: Final = 10
USE_GAIN: Final = 3.0
CLASS_GAINS: Final[Mapping[ReferenceClass | None, float]] = {
    ReferenceClass.PATH: 1.0,
    ReferenceClass.SNAKE_CASE: -1.0,
    ReferenceClass.CAMEL_CASE: -1.0,
}
ROUNDS_MAX: Final = 4  # lines counted alone come to more than the same lines together: a round uses what is left
MISSES_MAX: Final = 64  # references in a row that don't fit before the ledger counts as full

WORDS: Final = frozenset({EventKind.MESSAGE, EventKind.THINKING, EventKind.TOOL_CALL})
"""The kinds of event in which agent or user speak, so that a reference in one of them is used, not only shown."""


def score(base: Iterable[LedgerEntry], events: Sequence[SourceEvent], ref_ids: Mapping[str, int]) -> list[LedgerEntry]:
    """Merge the entries of the base summary with the references of the events that are newly covered.

    Returns the LEDGER_CANDIDATES_MAX best. `ref_ids` numbers the references; one that it does not hold (redacted,
    erased) gets no entry.
    """
    texts: dict[int, str] = {}
    weights: dict[int, float] = {}
    used: dict[int, int] = {}
    last: dict[int, int] = {}
    declared: set[int] = set()
    for entry in base:
        texts[entry.ref_id] = entry.text
        weights[entry.ref_id] = entry.weight
        used[entry.ref_id] = entry.used_seq
        last[entry.ref_id] = entry.last_seq
        if entry.declared:
            declared.add(entry.ref_id)
    for event in events:
        sighted = dict.fromkeys((*event.declared, *event.extracted))
        if not sighted:
            continue
        seq = event.seq
        gained = seq / LEDGER_HALF_LIFE_EVENTS - math.log2(len(sighted)) / 2
        in_words = event.kind in WORDS
        for text in sighted:
            ref_id = ref_ids.get(text)
            if ref_id is None:
                continue
            known = weights.get(ref_id)
            weights[ref_id] = gained if known is None else _log2_sum(known, gained)
            texts[ref_id] = text
            last[ref_id] = max(seq, last.get(ref_id, 0))
            if in_words:
                used[ref_id] = max(seq, used.get(ref_id, 0))
        declared.update(ref_ids[text] for text in event.declared if text in ref_ids)
    entries = [
        LedgerEntry(
            ref_id=ref_id,
            text=text,
            declared=ref_id in declared,
            used_seq=used.get(ref_id, 0),
            weight=weights[ref_id],
            last_seq=last[ref_id],
        )
        for ref_id, text in texts.items()
    ]
    if len(entries) > LEDGER_CANDIDATES_MAX:
        return heapq.nsmallest(LEDGER_CANDIDATES_MAX, entries, key=_ranking(entries))
    return entries


def select(
    entries: Iterable[LedgerEntry],
    *,
    standing: Container[int],
    budget_tokens: int,
    count: Callable[[str], int],
) -> tuple[list[LedgerEntry], str]:
    """Choose the entries that the ledger carries, best first, and write its text: a heading, then one on each line.

    `standing` holds the references that stand verbatim already, in segments or anchors; they need no place.
    `count(text)` never exceeds `budget_tokens`; where nothing fits, the text is empty.
    """
    waiting = [entry for entry in entries if entry.ref_id not in standing]
    waiting.sort(key=_ranking(waiting))
    ranks = {entry.ref_id: rank for rank, entry in enumerate(waiting)}
    chosen: list[LedgerEntry] = []
    for _ in range(ROUNDS_MAX):
        added, waiting = _that_fit(waiting, budget_tokens - count(_text(chosen)), count)
        chosen = sorted((*chosen, *added), key=lambda entry: ranks[entry.ref_id])
        while chosen and count(_text(chosen)) > budget_tokens:
            chosen = chosen[: -max(1, len(chosen) // 16)]
        if not added:
            break
    return chosen, _text(chosen) if chosen else ""


def _that_fit(
    waiting: Iterable[LedgerEntry], tokens: int, count: Callable[[str], int]
) -> tuple[list[LedgerEntry], list[LedgerEntry]]:
    """Return those that fit into `tokens` when each is counted alone, and the others."""
    added: list[LedgerEntry] = []
    others: list[LedgerEntry] = []
    misses = 0
    for entry in waiting:
        if tokens > 0 and misses < MISSES_MAX:
            cost = count("\n" + entry.text)
            if cost <= tokens:
                misses = 0
                tokens -= cost
                added.append(entry)
                continue
            misses += 1
        others.append(entry)
    return added, others


def _text(chosen: Iterable[LedgerEntry]) -> str:
    return "\n".join((LEDGER_HEADING, *(entry.text for entry in chosen)))


def _ranking(entries: Sequence[LedgerEntry]) -> Callable[[LedgerEntry], tuple[bool, float, int, str]]:
    """Return the sort key that puts the best of the entries first; ages are counted from the newest of them."""
    newest = max((entry.last_seq for entry in entries), default=0)

    def key(entry: LedgerEntry) -> tuple[bool, float, int, str]:
        value = entry.weight + CLASS_GAINS.get(classify(entry.text), 0.0)
        value -= math.log2((1 + (newest - entry.last_seq) / AGE_EVENTS) * (1 + len(entry.text)))
        if entry.used_seq:
            value += USE_GAIN
        return not entry.declared, -value, -entry.last_seq, entry.text

    return key


def _log2_sum(a: float, b: float) -> float:
    """Return log2(2^a + 2^b) without leaving the range of floats."""
    low, high = (a, b) if a < b else (b, a)
    return high + math.log1p(2.0 ** max(low - high, -1000.0)) / math.log(2)
