"""The default summarizer: quotes the lines that matter, verbatim, within the budget.

No network, no model, no chance: the same request gives the same bytes in every process. Each line of the draft names
its event, in log order: `[seq] actor/kind: text`. What stands between two marks `…` stands so in the event; a mark says
that a line ended there or that something was left out. What anchors carry is not quoted again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from strandline.limits import DRAFT_BYTES_MAX, EXTRACTIVE_WINDOW_TOKENS
from strandline.model.candidate import Draft
from strandline.ports import SummaryRequest
from strandline.summarizers.candidates import Quote, Source, event_quotes, prior_quotes

USER_SHARE: Final = 0.6  # of what is left for events: user lines may take so much before the others are asked
PRIOR_SHARE_MIN: Final = 0.25
PRIOR_SHARE_MAX: Final = 0.75  # of the budget, while there are events that need the rest
MISSES_MAX: Final = 64  # quotes in a row that don't fit before the draft counts as full


class ExtractiveSummarizer:
    """Selects and quotes. Deterministic to the byte; never over the budget, as the request's counter counts it."""

    name: str = "extractive"
    version: str = "1"
    window_tokens: int | None = EXTRACTIVE_WINDOW_TOKENS

    def summarize(self, request: SummaryRequest) -> Draft:
        """Return the draft. Where no line fits it says so; where that does not fit either, it is empty."""
        draft = _Drafting(request.budget_tokens, request.counter.count)
        prior = [prior_quotes(text, draft.sources) for text in request.prior]
        spoken, others = event_quotes(request, draft.sources)
        prior_tokens = int(request.budget_tokens * _prior_share(request))
        sizes = [len(text) for text in request.prior]
        for quotes, size in zip(prior, sizes, strict=True):
            draft.fill(quotes, prior_tokens * size // max(1, sum(sizes)))
        draft.fill(spoken, int(draft.left * USER_SHARE))
        draft.fill([*spoken, *others], draft.left)
        everything = [*spoken, *others, *(quote for quotes in prior for quote in quotes)]
        draft.fill(everything, draft.left)
        text = draft.text()
        if text:  # lines counted alone come to more than the same lines together
            draft.fill(everything, request.budget_tokens - request.counter.count(text))
            text = draft.text()
        if not text:
            honest = (f"({len(request.events)} events, nothing quoted)", f"({len(request.events)} events)")
            text = next((line for line in honest if request.counter.count(line) <= request.budget_tokens), "")
        return Draft(text=text, finish="stop", model=f"{self.name}/{self.version}")


class _Drafting:
    """A draft in the making: sources in log order, and what has been picked from them, most wanted first."""

    def __init__(self, budget_tokens: int, count: Callable[[str], int]) -> None:
        self.sources: list[Source] = []
        self.left = budget_tokens
        self._budget = budget_tokens
        self._count = count
        self._picked: dict[Quote, None] = {}
        self._open: set[int] = set()  # places that have a line already
        self._costs: dict[Quote, int] = {}

    def fill(self, quotes: Iterable[Quote], tokens: int) -> None:
        """Pick the best of the quotes that fit into `tokens`."""
        misses = 0
        for quote in sorted(quotes):
            if tokens <= 0 or misses >= MISSES_MAX:
                break
            if quote in self._picked:
                continue
            cost = self._cost(quote)
            if cost > tokens:
                misses += 1
                continue
            misses = 0
            tokens -= cost
            self.left -= cost
            self._picked[quote] = None
            self._open.add(quote.place)

    def text(self) -> str:
        """Write the draft; while it is over the budget, the least wanted goes: parts need not add up to the whole."""
        picked = list(self._picked)
        while picked:
            text = self._written(picked)
            if len(text.encode()) <= DRAFT_BYTES_MAX and self._count(text) <= self._budget:
                return text
            picked = picked[: len(picked) - max(1, len(picked) // 16)]
        return ""

    def _cost(self, quote: Quote) -> int:
        source = self.sources[quote.place]
        piece = source.text[quote.start : quote.end]
        if quote.place in self._open:
            return self._count(f" … {piece}")
        cost = self._costs.get(quote)
        if cost is None:
            cost = self._costs[quote] = self._count(f"{source.label}{piece} …\n")
        return cost

    def _written(self, picked: Iterable[Quote]) -> str:
        by_place: dict[int, list[Quote]] = {}
        for quote in picked:
            by_place.setdefault(quote.place, []).append(quote)
        return "\n".join(_line(self.sources[place], by_place[place]) for place in sorted(by_place))


def _line(source: Source, quotes: list[Quote]) -> str:
    """Write the quotes of one source as one line, with a mark wherever something was left out."""
    parts = [source.label]
    at = 0
    for quote in sorted(quotes, key=lambda quote: quote.start):
        gap = source.text[at : quote.start]
        if at:
            parts.append(gap if gap == " " else " … ")
        elif gap.strip():
            parts.append("… ")
        parts.append(source.text[quote.start : quote.end])
        at = quote.end
    if source.text[at:].strip():
        parts.append(" …")
    return "".join(parts)


def _prior_share(request: SummaryRequest) -> float:
    """Return the share of the budget for older summaries: that of the seqs that they stand for, within bounds."""
    if not request.prior:
        return 0.0
    if not request.events:
        return 1.0
    covered = (request.events[0].seq - request.from_seq) / max(1, request.through_seq - request.from_seq + 1)
    return min(PRIOR_SHARE_MAX, max(PRIOR_SHARE_MIN, covered))
