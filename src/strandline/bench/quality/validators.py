"""Bad summaries accepted, verbatim facts refused, paraphrases certified, without a model (C13).

The corpus is made at run time, always the same: the facts of `validator_orders` and `validator_facts`, and short lines
of users of the data sets, each run through the operators of `validator_operators` and set into passages of the data
sets. A pair counts as bad when it was made by an operator that changes, drops or takes back what is said. Half of the
facts, by their digest, are held out: their pairs are counted by themselves too.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from strandline.bench.quality.row import Row
from strandline.bench.quality.validator_fact import Fact
from strandline.bench.quality.validator_facts import STATES
from strandline.bench.quality.validator_operators import FRAMES, MUTATIONS, SURROUNDINGS, contradicted, wrapped
from strandline.bench.quality.validator_orders import ORDERS
from strandline.rules.judging import judge_facts

TOLD_EVERY: Final = 500  # pairs
VARIANTS_MAX: Final = 4  # of one operator on one statement
REAL_FACTS_MAX: Final = 120
REAL_CHARS: Final = range(25, 161)
PASSAGES_MAX: Final = 400
BAD, VERBATIM, PARAPHRASE = "bad", "verbatim", "paraphrase"
BY_HAND, IN_TAIL, CONTRADICTED = "written by hand", "in the tail", "contradicted elsewhere"
OWN_PASSAGES: Final = (
    "The importer was rewritten in the morning.",
    "Nobody has looked at the docs.",
    "The old parser was dropped, and its tests were removed.",
    "Next: the report, then the clean-up.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A fact and a summary, with what was done."""

    fact: str
    summary: str
    tail: tuple[str, ...] = ()
    operator: str
    label: str  # BAD, VERBATIM or PARAPHRASE
    held_out: bool


def pairs(data: Path) -> Iterator[Pair]:
    """Yield the corpus."""
    lines = list(_lines(data))
    around = [line for line in lines if _is_passage(line)][:PASSAGES_MAX] or list(OWN_PASSAGES)
    number = 0
    for fact in (*ORDERS, *STATES):
        for pair in _of(fact):
            yield _set(pair, around, number)
            number += 1
    for line in [line for line in lines if _is_statement(line)][:REAL_FACTS_MAX]:
        for pair in _of_real(line):
            yield _set(pair, around, number)
            number += 1


def _of(fact: Fact) -> Iterator[Pair]:
    held_out = _is_held_out(fact.text)
    same = {fact.text, *fact.good}
    for operator, label, summary in (*_well(fact), *_badly(fact)):
        if label == BAD and summary.rpartition("\n")[2] in same and operator in (*MUTATIONS, CONTRADICTED):
            continue  # the operator made one good variant of another
        tail = (f"Hello. {fact.text}",) if operator == IN_TAIL else ()
        yield Pair(fact=fact.text, summary=summary, tail=tail, operator=operator, label=label, held_out=held_out)


def _well(fact: Fact) -> Iterator[tuple[str, str, str]]:
    """Yield operator, label and summary of what holds the fact."""
    for name, frame in FRAMES.items():
        yield from ((name, VERBATIM, text) for text in frame(fact.text))
    yield from (("wrapped", VERBATIM, text) for text in wrapped(fact.text))
    yield IN_TAIL, VERBATIM, "The work goes on."
    for text in fact.good:
        yield BY_HAND, PARAPHRASE, text
        yield BY_HAND, PARAPHRASE, f"- {text}"


def _badly(fact: Fact) -> Iterator[tuple[str, str, str]]:
    """Yield operator, label and summary of what does not."""
    yield from ((BY_HAND, BAD, text) for text in fact.bad)
    yield "dropped", BAD, "The work goes on."
    for told in (fact.text, *fact.good):
        for name, mutate in MUTATIONS.items():
            most = None if told == fact.text else VARIANTS_MAX
            yield from ((name, BAD, text) for text in islice(mutate(told), most))
        for name, surround in SURROUNDINGS.items():
            yield from ((name, BAD, text) for text in surround(told))
    yield from ((CONTRADICTED, BAD, text) for text in islice(contradicted(fact.text), 2 * VARIANTS_MAX))


def _of_real(line: str) -> Iterator[Pair]:
    def pair(summary: str, operator: str, label: str) -> Pair:
        return Pair(fact=line, summary=summary, operator=operator, label=label, held_out=_is_held_out(line))

    for name, frame in FRAMES.items():
        for text in islice(frame(line), 2):
            yield pair(text, name, "verbatim")
    yield pair("The work goes on.", "dropped", "bad")
    for name in ("number", "version", "date", "identifier"):
        for text in islice(MUTATIONS[name](line), 1):
            yield pair(text, name, "bad")
    for name, surround in SURROUNDINGS.items():
        for text in islice(surround(line), 1):
            yield pair(text, name, "bad")


def _set(pair: Pair, around: Sequence[str], number: int) -> Pair:
    """Set a summary into real passages: before it, behind it, or both, in paragraphs of their own."""
    before, behind = around[number % len(around)], around[(number * 7 + 3) % len(around)]
    parts = [*([before] if number % 3 else []), pair.summary, *([behind] if number % 2 else [])]
    return Pair(
        fact=pair.fact,
        summary="\n\n".join(parts),
        tail=pair.tail,
        operator=pair.operator,
        label=pair.label,
        held_out=pair.held_out,
    )


def _is_held_out(text: str) -> bool:
    return hashlib.sha256(text.encode()).digest()[0] % 2 == 1


def _is_statement(line: str) -> bool:
    return len(line) in REAL_CHARS and line.endswith(".") and line[:1].isupper() and line.count(". ") == 0


def _is_passage(line: str) -> bool:
    """Leave out what announces the next passage: "The following is an example:" would speak of the fact behind it."""
    return len(line) > 60 and not line.endswith(":")


def _lines(data: Path) -> Iterator[str]:
    """Yield different lines of users, in the order of the sets."""
    seen: set[str] = set()
    for file in sorted(data.glob("claude_code_*/*.jsonl")):
        with file.open(encoding="utf-8") as records:
            for record in records:
                value = json.loads(record)
                said = value.get("message", {}).get("content") if value.get("type") == "user" else None
                for line in said.splitlines() if isinstance(said, str) else ():
                    line = line.strip()
                    if line and line not in seen and line[:1].isalpha():
                        seen.add(line)
                        yield line


def measure(data: Path, tell: Callable[[int, int], None]) -> Iterator[Row]:
    """Judge every pair, and count."""
    corpus = list(pairs(data))
    tally = _Tally()
    for number, pair in enumerate(corpus):
        if number % TOLD_EVERY == 0:
            tell(number, len(corpus))
        tally.add(pair, accepted=judge_facts([pair.fact], pair.summary, pair.tail).accepted)
    tell(len(corpus), len(corpus))
    yield tally.row("validator_bad", "bad summaries accepted", BAD, accepted=True)
    yield tally.row("validator_verbatim", "verbatim facts refused", VERBATIM, accepted=False)
    certified, every = tally.count(PARAPHRASE, accepted=True), tally.count(PARAPHRASE)
    held, held_every = tally.count(PARAPHRASE, accepted=True, held_out=True), tally.count(PARAPHRASE, held_out=True)
    yield Row(
        id="validator_paraphrase",
        measure="paraphrases certified",
        data=f"{every:,} pairs, by hand",
        value=round(100 * certified / every, 1),
        mark=35,
        reason=f"of those of held-out facts {100 * held / held_every:.1f} %",
    )


class _Tally:
    """Counts the pairs by label, by whether they were held out, and by whether they were accepted."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, bool, bool]] = Counter()

    def add(self, pair: Pair, *, accepted: bool) -> None:
        """Count a pair."""
        self._counts[pair.label, pair.held_out, accepted] += 1

    def count(self, label: str, *, accepted: bool | None = None, held_out: bool | None = None) -> int:
        """Return how many there are; None: of both."""
        return sum(
            n
            for (name, held, good), n in self._counts.items()
            if name == label and accepted in (None, good) and held_out in (None, held)
        )

    def row(self, name: str, measure: str, label: str, *, accepted: bool) -> Row:
        """Return the row of what should not be."""
        return Row(
            id=name,
            measure=measure,
            data=f"{self.count(label):,} pairs of {self._counts.total():,}",
            value=self.count(label, accepted=accepted),
            mark=0,
            at_most=True,
            unit="pairs",
            reason=f"{self.count(label, accepted=accepted, held_out=True)} of them of held-out facts",
        )
