"""The fallback ladder: a context that fits the budget, or none (C19). Every rung names what it leaves out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from strandline.errors import ContextOverflowError
from strandline.model.context import ContextPart, Omission, PartKind, Rung
from strandline.model.event import EventKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """What fits, in order, and what was left out."""

    parts: tuple[ContextPart, ...]
    omitted: tuple[Omission, ...]
    rung: Rung

    @property
    def tokens(self) -> int:
        """Tokens of all parts."""
        return sum(part.tokens for part in self.parts)


def fit(parts: Sequence[ContextPart], budget: int) -> Fitted:
    """Fit a context to the budget: whole; without the ledger; with the oldest events of the tail left out.

    Segments and anchors are never left out, nor is the newest event. A call and its result stay or go together.

    Raises:
        ContextOverflowError: what is never left out exceeds the budget.
    """
    total = sum(part.tokens for part in parts)
    if total <= budget:
        return Fitted(parts=tuple(parts), omitted=(), rung=Rung.WHOLE)
    without = [part for part in parts if part.kind is not PartKind.LEDGER]
    omitted = [_omission(part, Rung.WITHOUT_LEDGER) for part in parts if part.kind is PartKind.LEDGER]
    total = sum(part.tokens for part in without)
    if total <= budget:
        return Fitted(parts=tuple(without), omitted=tuple(omitted), rung=Rung.WITHOUT_LEDGER)
    head = [part for part in without if part.kind is not PartKind.EVENT]
    tail = [part for part in without if part.kind is PartKind.EVENT]
    window = _newest_window(tail, budget - sum(part.tokens for part in head))
    if window is None:
        least = sum(part.tokens for part in head) + (tail[-1].tokens if tail else 0)
        raise ContextOverflowError(
            "segments, mandatory facts and the newest event exceed the budget", needed=least, budget=budget
        )
    left_out = tail[: len(tail) - len(window)]
    omitted.append(
        Omission(
            kind=PartKind.EVENT,
            from_seq=left_out[0].from_seq,
            through_seq=left_out[-1].through_seq,
            tokens=sum(part.tokens for part in left_out),
            reason=Rung.SMALLER_WINDOW,
        )
    )
    return Fitted(parts=(*head, *window), omitted=tuple(omitted), rung=Rung.SMALLER_WINDOW)


def _omission(part: ContextPart, rung: Rung) -> Omission:
    return Omission(
        kind=part.kind, from_seq=part.from_seq, through_seq=part.through_seq, tokens=part.tokens, reason=rung
    )


def _newest_window(tail: Sequence[ContextPart], budget: int) -> list[ContextPart] | None:
    """Return the longest end of the tail that fits and parts no call from its result; None where none does."""
    suffix_tokens = 0
    best: int | None = None
    needed_from = len(tail)  # the window must begin at or before this index, for it holds a result of a call there
    index_of = {part.from_seq: index for index, part in enumerate(tail)}
    for index in range(len(tail) - 1, -1, -1):
        suffix_tokens += tail[index].tokens
        if suffix_tokens > budget:
            break
        event = tail[index].event
        if event is not None and event.kind is EventKind.TOOL_RESULT and not event.late and event.call_seq is not None:
            needed_from = min(needed_from, index_of.get(event.call_seq, needed_from))
        if index <= needed_from:
            best = index
    return None if best is None else list(tail[best:])
