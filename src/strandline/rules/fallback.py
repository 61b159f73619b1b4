"""The fallback ladder: a context that fits the budget, or none (C19). Every rung names what it leaves out."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

from strandline.errors import ContextOverflowError
from strandline.model.context import ContextPart, Omission, PartKind, Rung
from strandline.model.event import EventKind, SourceEvent

_FACTS = frozenset(
    {
        EventKind.CONSTRAINT,
        EventKind.LIFT_CONSTRAINT,
        EventKind.APPROVAL,
        EventKind.REVOKE,
        EventKind.ISSUE,
        EventKind.RESOLVE,
        EventKind.ARTIFACT,
        EventKind.RELEASE_ARTIFACT,
        EventKind.PIN,
        EventKind.UNPIN,
        EventKind.DIVERGENCE,
    }
)


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

    Never left out are segments, anchors, the newest event, and the events of the tail that change a mandatory fact. A
    call and its result stay or go together.

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
    least = least_tokens(without)
    if least > budget:
        raise ContextOverflowError(
            "segments, mandatory facts and the newest event exceed the budget", needed=least, budget=budget
        )
    head = [part for part in without if part.kind is not PartKind.EVENT]
    tail = [part for part in without if part.kind is PartKind.EVENT]
    fixed = _mandatory(tail)
    taken = sum(part.tokens for part in without if part.kind is not PartKind.EVENT or part.from_seq in fixed)
    window, _ = _newest_window([part for part in tail if part.from_seq not in fixed], budget - taken)
    stays = fixed | {part.from_seq for part in window or ()}
    omitted += _left_out(tail, stays)
    kept = [part for part in tail if part.from_seq in stays]
    return Fitted(parts=(*head, *kept), omitted=tuple(omitted), rung=Rung.SMALLER_WINDOW)


def least_tokens(parts: Sequence[ContextPart]) -> int:
    """Return the tokens of what is never left out."""
    return sum(part.tokens for part in never_left_out(parts))


def never_left_out(parts: Sequence[ContextPart]) -> list[ContextPart]:
    """Return what is never left out: segments, anchors, the tail's mandatory events, and its newest event with those
    that a call and its result hold together.
    """
    tail = [part for part in parts if part.kind is PartKind.EVENT]
    fixed = _mandatory(tail)
    stays = set(fixed)
    if tail and tail[-1].from_seq not in fixed:
        others = [part for part in tail if part.from_seq not in fixed]
        shortest = _newest_window(others, 0)[1]
        stays |= {part.from_seq for part in others[len(others) - shortest :]}
    return [
        part
        for part in parts
        if (part.from_seq in stays if part.kind is PartKind.EVENT else part.kind is not PartKind.LEDGER)
    ]


def add_quotes(fitted: Fitted, quotes: Sequence[ContextPart], rests: Sequence[Omission]) -> Fitted:
    """Return what fits together with quotes of events that hold what is needed, behind the summary, before the tail;
    `rests` are what is left out of those events.
    """
    if not quotes:
        return fitted
    head = [part for part in fitted.parts if part.kind is not PartKind.EVENT]
    tail = [part for part in fitted.parts if part.kind is PartKind.EVENT]
    return Fitted(
        parts=(*head, *quotes, *tail),
        omitted=(*fitted.omitted, *rests),
        rung=Rung.RETRIEVED if fitted.rung is Rung.WHOLE else fitted.rung,
    )


def changes_a_fact(event: SourceEvent) -> bool:
    """Tell whether an event begins or ends a fact of the register; a late result ends one too."""
    return event.kind in _FACTS or event.late


def _mandatory(tail: Sequence[ContextPart]) -> set[int]:
    """Return the events of the tail that no window may hide (C11): without them an anchor would tell of a past.

    They are those that begin or end a fact of the register, late results among them, and calls that no result in the
    tail answers.
    """
    events = [part.event for part in tail if part.event is not None]
    answered = {event.call_seq for event in events if event.kind is EventKind.TOOL_RESULT}
    return {
        event.seq
        for event in events
        if changes_a_fact(event) or (event.kind is EventKind.TOOL_CALL and event.seq not in answered)
    }


def _left_out(tail: Sequence[ContextPart], stays: Set[int]) -> list[Omission]:
    """Name what is left out, one omission for each run of events that follow each other."""
    runs: list[list[ContextPart]] = [[]]
    for part in tail:
        if part.from_seq in stays:
            runs.append([])
        else:
            runs[-1].append(part)
    return [
        Omission(
            kind=PartKind.EVENT,
            from_seq=run[0].from_seq,
            through_seq=run[-1].through_seq,
            tokens=sum(part.tokens for part in run),
            reason=Rung.SMALLER_WINDOW,
        )
        for run in runs
        if run
    ]


def _omission(part: ContextPart, rung: Rung) -> Omission:
    return Omission(
        kind=part.kind, from_seq=part.from_seq, through_seq=part.through_seq, tokens=part.tokens, reason=rung
    )


def _newest_window(tail: Sequence[ContextPart], budget: int) -> tuple[list[ContextPart] | None, int]:
    """Return the longest end of the tail that fits and parts no call from its result, None where none does; and how
    many events the shortest such end has.
    """
    suffix_tokens = 0
    least: int | None = None
    best: int | None = None
    needed_from = len(tail)  # the window must begin at or before this index, for it holds a result of a call there
    index_of = {part.from_seq: index for index, part in enumerate(tail)}
    for index in range(len(tail) - 1, -1, -1):
        suffix_tokens += tail[index].tokens
        event = tail[index].event
        if event is not None and event.kind is EventKind.TOOL_RESULT and not event.late and event.call_seq is not None:
            needed_from = min(needed_from, index_of.get(event.call_seq, needed_from))
        if index <= needed_from:
            least = len(tail) - index if least is None else least
            if suffix_tokens <= budget:
                best = index
        if suffix_tokens > budget and least is not None:
            break
    return None if best is None else list(tail[best:]), least or 0
