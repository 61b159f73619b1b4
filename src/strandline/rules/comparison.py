"""What an agent needed after a compaction, and which texts hold it: the rule behind `strandline compare`.

A reference was *used again* when covered events hold it and the agent uses it after the compaction: in a tool call, a
thought, or a message of its own. It was *needed from the summary* when nobody else had shown it again before that first
use: no user, no tool result, no system line. A bare integer that nobody declared is left out: in a call's arguments it
is a timeout or a line number, which recurs by habit. `docs/compare.md` says what the counts can't see.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from strandline.limits import CONTEXT_BUDGET_TOKENS_MIN
from strandline.model.candidate import Shares
from strandline.model.comparison import DECLARED, DroppedUse, Tally, Use
from strandline.model.event import EventKind, Role, SourceEvent
from strandline.model.reference import ReferenceClass
from strandline.rules.planning import ledger_tokens
from strandline.rules.reference_classes import classify
from strandline.rules.verbatim import verbatim_subset


def is_by_agent(event: SourceEvent) -> bool:
    """Tell whether the agent speaks in an event; every other event only shows it something."""
    if event.kind is EventKind.MESSAGE:
        return event.role is Role.ASSISTANT
    return event.kind in (EventKind.TOOL_CALL, EventKind.THINKING)


def uses_after(last_seen: Mapping[str, int], later: Iterable[SourceEvent]) -> tuple[Use, ...]:
    """Return which of the covered references the agent used again, in the order of their first use.

    Args:
        last_seen: the references of covered events, each with the seq of its newest sighting there.
        later: the events after the compaction, in log order.
    """
    shown: set[str] = set()
    uses: dict[str, Use] = {}
    for event in later:
        named = (*event.declared, *(ref for ref in event.extracted if classify(ref) is not None))
        sighted = [ref for ref in named if ref in last_seen]
        if not is_by_agent(event):
            shown.update(sighted)
            continue
        for ref in sighted:
            if ref not in uses:
                uses[ref] = Use(
                    ref=ref,
                    reference_class=classify(ref) or DECLARED,
                    last_seq=last_seen[ref],
                    used_seq=event.seq,
                    shown_first=ref in shown,
                )
    return tuple(uses.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Which of the references that were used again stand in which text."""

    theirs: frozenset[str]
    theirs_and_ledger: frozenset[str]
    ours: frozenset[str]

    @staticmethod
    def of(uses: Iterable[Use], *, theirs: str, ledger: str, ours: str, by_name: bool = False) -> Kept:
        """Look for the references in the texts.

        `by_name` is the mild measure: a path also counts where only the name at its end stands, for whoever knows the
        folder can put it together again.
        """
        found = _found_by_name if by_name else verbatim_subset
        refs = {use.ref: use.reference_class for use in uses}
        in_theirs = found(refs, theirs)
        return Kept(
            theirs=frozenset(in_theirs),
            theirs_and_ledger=frozenset(in_theirs | found(refs, ledger)),
            ours=frozenset(found(refs, ours)),
        )

    def tally(self, uses: Iterable[Use]) -> Tally:
        """Count."""
        refs = {use.ref for use in uses}
        return Tally(
            needed=len(refs),
            theirs=len(refs & self.theirs),
            theirs_and_ledger=len(refs & self.theirs_and_ledger),
            ours=len(refs & self.ours),
        )

    def by_class(self, uses: Iterable[Use]) -> dict[str, Tally]:
        """Count each class of reference alone."""
        classes: dict[str, list[Use]] = {}
        for use in uses:
            classes.setdefault(use.reference_class, []).append(use)
        return {name: self.tally(classes[name]) for name in sorted(classes)}

    def dropped(self, uses: Collection[Use], most: int) -> tuple[DroppedUse, ...]:
        """Return those that theirs does not hold, at most so many, in the order of the uses."""
        missing = [use for use in uses if use.ref not in self.theirs]
        return tuple(
            DroppedUse(use=use, in_ledger=use.ref in self.theirs_and_ledger, in_ours=use.ref in self.ours)
            for use in missing[:most]
        )


def _found_by_name(refs: Mapping[str, str], text: str) -> set[str]:
    names = {ref: ref.rstrip("/").rsplit("/", 1)[-1] for ref, name in refs.items() if name == ReferenceClass.PATH}
    stand = verbatim_subset(names.values(), text.replace("/", " "))  # a name ends at the slash before it
    return verbatim_subset(refs, text) | {ref for ref, name in names.items() if name in stand}


def budget_within(tokens: int, anchors: int, shares: Shares) -> int | None:
    """Return the largest budget at which a summary without a tail takes at most `tokens`; None: there is no such one.

    It follows from the shares that `rules.planning` gives to segments and ledger, beside so many tokens of anchors.
    """

    def most(budget: int) -> int:
        segments = max(0, min(int(budget * shares.segments), budget - anchors))
        return segments + anchors + ledger_tokens(budget, shares, segments=segments, anchors=anchors, tail=0)

    too_large = int((tokens + 1) / (shares.segments + shares.ledger)) + 1
    budgets = range(CONTEXT_BUDGET_TOKENS_MIN, too_large + 1)
    fitting = bisect_right(budgets, tokens, key=most)
    return budgets[fitting - 1] if fitting else None
