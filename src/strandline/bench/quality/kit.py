"""A public kit's conversations, compacted by the product: which facts survive a budget, and what became of updates?

`compaction-conformance-kit` plants ten facts in a generated conversation, updates three of them later, sets beside them
statements that nobody asks for, and looks in what a compactor returns, round after round. A budget is a share of the
conversation's characters, so characters are what is counted here. The kit is no dependency: `make bench-quality`
installs it beside Strandline.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Final, Protocol

import strandline
from strandline.bench.quality.characters import Characters
from strandline.bench.quality.row import Row

PACKAGE: Final = "compaction_kit"
DISTRIBUTION: Final = "compaction-conformance-kit"
SEEDS: Final = range(1, 13)
ROUNDS: Final = 5  # the context of each is what the next one is given
TIGHT: Final = 10  # percent of the conversation
WIDE: Final = (20, 30)
SURVIVAL_MARKS: Final = {10: 60.0, 20: 97.0, 30: 99.0}
LATEST_MARK: Final = 98.0
LATEST_MARK_TIGHT: Final = 90.0
STALE_MARK: Final = 2.0

TIGHT_SHARES: Final = strandline.Shares(segments=0.8, ledger=0.2, tail=0.0)
"""At a tenth half of the sentences don't fit: a fifth of it goes to bare values."""
WIDE_SHARES: Final = strandline.Shares(segments=1.0, ledger=0.0, tail=0.0)


class Turn(Protocol):
    """A turn of the kit's conversations."""

    role: str
    text: str


class Fact(Protocol):
    """A fact that the kit planted."""

    id: str
    content: str
    required_tokens: Sequence[str]
    superseded_tokens: Sequence[str]


class Compactor:
    """The product as the kit calls it: one workflow for a conversation, however often it is compacted.

    Args:
        answer: makes what the kit takes back.
        shares: what the budget is spent on.
        subjects: from a statement to its key; such a statement is declared, as a decision.
    """

    name = "strandline"

    def __init__(self, answer: Callable[..., object], shares: strandline.Shares, subjects: Mapping[str, str]) -> None:
        self._answer = answer
        self._shares = shares
        self._subjects = subjects
        self._db = strandline.open(":memory:", counter=Characters())
        self._workflow = self._db.tenant("kit").workflow("conversation")
        self._context = ""

    def compact(self, turns: Sequence[Turn], round_num: int = 1, budget_chars: int = 0) -> object:
        """Append what is new, compact, and return the context as one text.

        From the second round on the only turn is the context of the round before. That is no event: the log has what it
        speaks of, and a program tells the log what was said, not what it was handed.
        """
        if [turn.text for turn in turns] != [self._context]:
            self._workflow.append([self._event(turn) for turn in turns])
        self._workflow.compact(
            budget=budget_chars,
            summarizer=strandline.ExtractiveSummarizer(fold_rules=True),
            through=self._workflow.context().revision,
            shares=self._shares,
        )
        self._context = self._workflow.context(budget=budget_chars).text
        return self._answer(text=self._context, compactor_name=self.name, round_num=round_num)

    def close(self) -> None:
        """Close the store."""
        self._db.close()

    def _event(self, turn: Turn) -> strandline.NewEvent:
        subject = self._subjects.get(turn.text)
        return strandline.decision(turn.text, subject=subject) if subject else strandline.message(turn.role, turn.text)


def measure(data: Path, tell: Callable[[int, int], None]) -> Iterator[Row]:  # noqa: ARG001  the kit brings its own
    """Run the kit's generated conversations at each budget, as they are said and with their facts declared by key."""
    try:
        import_module(PACKAGE)
    except ModuleNotFoundError:
        yield from _rows(None)
        return
    found: Counter[tuple[str, int]] = Counter()
    for number, seed in enumerate(SEEDS):
        tell(number, len(SEEDS))
        for percent in SURVIVAL_MARKS:
            found.update(of_conversation(seed, percent))
            found.update({("keyed", percent): of_conversation(seed, percent, keyed=True)["stale", percent]})
    yield from _rows(found)


def of_conversation(seed: int, percent: int, *, keyed: bool = False) -> Counter[tuple[str, int]]:
    """Count, in one conversation at one budget, facts and survivors, updates, their newest and their stale values."""
    session, facts = _part("generated").build_generated_session(seed)
    subjects = _keys(session.turns, facts) if keyed else {}
    compactor = Compactor(
        _part("compacted").CompactedContext, TIGHT_SHARES if percent == TIGHT else WIDE_SHARES, subjects
    )
    try:
        run = _part("runner").run_conformance(
            session, compactor, rounds=ROUNDS, canaries=facts, budget_fraction=percent / 100
        )
    finally:
        compactor.close()
    last = run.rounds[-1]
    text = last.context.text.lower() if all(one.within_budget for one in run.rounds) else ""
    updated = [fact for fact in facts if fact.superseded_tokens]
    return Counter(
        {
            ("facts", percent): len(facts),
            ("survivors", percent): sum(last.survived.values()) if text else 0,
            ("updates", percent): len(updated),
            ("latest", percent): sum(all(value.lower() in text for value in fact.required_tokens) for fact in updated),
            ("stale", percent): sum(any(old.lower() in text for old in fact.superseded_tokens) for fact in updated),
        }
    )


def _keys(turns: Iterable[Turn], facts: Sequence[Fact]) -> dict[str, str]:
    """Return the key of each statement: of a fact as it stands at last, and as it stood before."""
    return {
        turn.text: fact.id
        for turn in turns
        for fact in facts
        if turn.text == fact.content or any(value in turn.text.lower() for value in fact.superseded_tokens)
    }


def _part(name: str) -> ModuleType:
    return import_module(f"{PACKAGE}.{name}")


def _rows(found: Counter[tuple[str, int]] | None) -> Iterator[Row]:
    """Yield the rows; None: nothing was measured."""
    data = f"{DISTRIBUTION}{f' {version(DISTRIBUTION)}' if found is not None else ''}, seeds {SEEDS[0]} to {SEEDS[-1]}"
    reason = "" if found is not None else f"{DISTRIBUTION} is not installed here; `make bench-quality` installs it"

    def share(of: str, among: str, *percents: int) -> float | None:
        return (
            None if found is None else min(100.0 * found[of, percent] / found[among, percent] for percent in percents)
        )

    def most(of: str, *percents: int) -> float | None:
        return None if found is None else float(max(found[of, percent] for percent in percents))

    def row(name: str, measure: str, value: float | None, mark: float) -> Row:
        return Row(id=name, measure=measure, data=data, value=value, mark=mark, reason=reason)

    def count(name: str, measure: str, value: float | None, mark: float) -> Row:
        unit = "" if found is None else f"of {found['updates', WIDE[0]]}"
        return replace(row(name, measure, value, mark), at_most=True, unit=unit)

    for percent, mark in SURVIVAL_MARKS.items():
        measure = f"facts that survive {ROUNDS} rounds at {percent} % of the characters"
        yield row(f"kit_{percent}", measure, share("survivors", "facts", percent), mark)
    newest = "updated facts whose newest value stands at"
    yield row("kit_latest", f"{newest} 20 and 30 %", share("latest", "updates", *WIDE), LATEST_MARK)
    yield row("kit_latest_10", f"{newest} 10 %", share("latest", "updates", TIGHT), LATEST_MARK_TIGHT)
    stale = "replaced values that still stand at 20 or 30 %"
    yield count("kit_stale", f"{stale}, rules folded", most("stale", *WIDE), STALE_MARK)
    yield count(
        "kit_stale_keyed", "the same of facts declared with a key, at 10 to 30 %", most("keyed", TIGHT, *WIDE), 0.0
    )
