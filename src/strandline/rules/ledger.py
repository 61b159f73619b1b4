"""The ledger: which references are carried verbatim, within a share of the budget, whatever the summarizer says.

Declared references come first. The others are ranked by the likelihood that they are needed again, for the room that
they take; the logarithm of it is

    log2 Σ over sightings of 2^(seq / H) / √k   how often, and among how many in one event: k distinct references there
    + USE_GAIN      if agent or user have used it: what only a tool has shown is needed four to eight times less
    + CLASS_GAINS   a name in code is spelled out again where the code is read again; a number is mostly an outcome
    + WORD_GAIN or INTEGER_GAIN   of a plain word or a bare integer: what was a value of JSON, or a name, and is common
    + MOMENT_GAIN   of a time to the minute: it says when something happened, where a day is what is asked for
    - log2(1 + age / AGE_EVENTS)   age: events since it was last sighted
    - LENGTH_EXPONENT · log2(1 + length)   more than the room it takes: long ones are rarer in the end

The sum is a logarithm over *absolute* seqs: nothing has to be aged when the log grows, entries made at different
compactions compare, and a new sighting is one log-add. Constants and form are from 18 real compactions (Claude Code).
"""

from __future__ import annotations

import heapq
import math
from array import array
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Final

from strandline.limits import LEDGER_CANDIDATES_MAX
from strandline.model.event import EventKind, Sighting, SourceEvent
from strandline.model.reference import ReferenceClass
from strandline.model.summary import LedgerEntry
from strandline.rules.reference_classes import classify

LEDGER_HALF_LIFE_EVENTS: Final = 400
LEDGER_HEADING: Final = "Refs:"  # short: it is paid for in each ledger

AGE_EVENTS: Final = 10
USE_GAIN: Final = 3.0
LENGTH_EXPONENT: Final = 1.2
CLASS_GAINS: Final[Mapping[ReferenceClass, float]] = {
    ReferenceClass.CAMEL_CASE: -3.0,
    ReferenceClass.NUMBER: -2.0,
}
WORD_GAIN: Final = -4.0
MOMENT_GAIN: Final = -3.0
INTEGER_GAIN: Final = -4.0
ROUNDS_MAX: Final = 4  # lines counted alone come to more than the same lines together: a round uses what is left
MISSES_MAX: Final = 64  # references in a row that don't fit before the ledger counts as full

WORDS: Final = frozenset({EventKind.MESSAGE, EventKind.THINKING, EventKind.TOOL_CALL})
"""The kinds of event in which agent or user speak, so that a reference in one of them is used, not only shown."""


class Tally:
    """What the sightings of references add up to, by the number of each: columns of numbers, no texts."""

    def __init__(self, base: Iterable[LedgerEntry] = ()) -> None:
        self._last = array("q")  # the newest seq; 0: not sighted
        self._used = array("q")
        self._weights = array("d")
        self._declared = bytearray()
        for entry in base:
            self._reach(entry.ref_id)
            self._last[entry.ref_id] = entry.last_seq
            self._used[entry.ref_id] = entry.used_seq
            self._weights[entry.ref_id] = entry.weight
            self._declared[entry.ref_id] = entry.declared

    def see(self, seq: int, kind: EventKind, sightings: Iterable[Sighting], among: int | None = None) -> None:
        """Take the references of an event. `among`: how many it holds, where some of them have no number."""
        declared: dict[int, bool] = {}
        for ref_id, is_declared in sightings:
            declared[ref_id] = is_declared or declared.get(ref_id, False)
        if not declared:
            return
        self._reach(max(declared))
        gained = seq / LEDGER_HALF_LIFE_EVENTS - math.log2(len(declared) if among is None else among) / 2
        last, weights, used = self._last, self._weights, self._used
        in_words = kind in WORDS
        for ref_id, is_declared in declared.items():
            known = last[ref_id]
            weights[ref_id] = _log2_sum(weights[ref_id], gained) if known else gained
            last[ref_id] = max(seq, known)
            if in_words:
                used[ref_id] = max(seq, used[ref_id])
            if is_declared:
                self._declared[ref_id] = True

    def _reach(self, ref_id: int) -> None:
        """Make room for a number."""
        if ref_id >= len(self._last):
            more = bytes(8 * (ref_id + 1 + len(self._last) // 8 - len(self._last)))
            for column in (self._last, self._used, self._weights):
                column.frombytes(more)
            self._declared.extend(bytes(len(more) // 8))

    def __contains__(self, ref_id: int) -> bool:
        return ref_id < len(self._last) and self._last[ref_id] != 0

    def __iter__(self) -> Iterator[int]:
        """Yield the numbers of the references that were sighted, in order."""
        return (ref_id for ref_id, seq in enumerate(self._last) if seq)

    def last_seq(self, ref_id: int) -> int:
        """Return the newest sighting; 0: none."""
        return self._last[ref_id] if ref_id < len(self._last) else 0

    def best(self, texts: Iterable[Mapping[int, str]]) -> list[LedgerEntry]:
        """Return the entries of the LEDGER_CANDIDATES_MAX best of the references.

        `texts` are the texts by number, in pages, for one walk; a reference without one gets no entry.
        """
        entries = (
            LedgerEntry(
                ref_id=ref_id,
                text=text,
                declared=bool(self._declared[ref_id]),
                used_seq=self._used[ref_id],
                weight=self._weights[ref_id],
                last_seq=self._last[ref_id],
            )
            for page in texts
            for ref_id, text in page.items()
            if ref_id in self
        )
        some = list(islice(entries, LEDGER_CANDIDATES_MAX + 1))
        if len(some) <= LEDGER_CANDIDATES_MAX:
            return some
        return heapq.nsmallest(LEDGER_CANDIDATES_MAX, chain(some, entries), key=_ranking(max(self._last)))


def score(base: Iterable[LedgerEntry], events: Sequence[SourceEvent], ref_ids: Mapping[str, int]) -> list[LedgerEntry]:
    """Merge the entries of the base summary with the references of the events that are newly covered.

    Returns the LEDGER_CANDIDATES_MAX best. `ref_ids` numbers the references; one that it does not hold (redacted,
    erased) gets no entry.
    """
    base = list(base)
    tally = Tally(base)
    texts = {entry.ref_id: entry.text for entry in base}
    for event in events:
        seen = [Sighting(ref_ids[text], True) for text in event.declared if text in ref_ids]
        seen += [Sighting(ref_ids[text], False) for text in event.extracted if text in ref_ids]
        tally.see(event.seq, event.kind, seen, among=len({*event.declared, *event.extracted}))
        texts.update((ref_ids[text], text) for text in (*event.declared, *event.extracted) if text in ref_ids)
    return tally.best([texts])


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
    waiting.sort(key=_ranking(max((entry.last_seq for entry in waiting), default=0)))
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


def _ranking(newest: int) -> Callable[[LedgerEntry], tuple[bool, float, int, str]]:
    """Return the sort key that puts the best entries first; ages are counted from the newest sighting of all."""

    def key(entry: LedgerEntry) -> tuple[bool, float, int, str]:
        value = entry.weight + _form_gain(entry.text)
        value -= math.log2(1 + (newest - entry.last_seq) / AGE_EVENTS)
        value -= LENGTH_EXPONENT * math.log2(1 + len(entry.text))
        if entry.used_seq:
            value += USE_GAIN
        return not entry.declared, -value, -entry.last_seq, entry.text

    return key


def _form_gain(text: str) -> float:
    """Return what a reference gains by its form alone."""
    kind = classify(text)
    if kind is ReferenceClass.TIMESTAMP and ":" in text:
        return MOMENT_GAIN
    if kind is not None:
        return CLASS_GAINS.get(kind, 0.0)
    if text.isalpha():
        return WORD_GAIN
    return INTEGER_GAIN if text.lstrip("-").isdigit() else 0.0


def _log2_sum(a: float, b: float) -> float:
    """Return log2(2^a + 2^b) without leaving the range of floats."""
    low, high = (a, b) if a < b else (b, a)
    return high + math.log1p(2.0 ** max(low - high, -1000.0)) / math.log(2)
