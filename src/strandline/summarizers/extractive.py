"""The default summarizer: quotes the lines that matter, verbatim, within the budget.

No network, no model, no chance: the same request gives the same bytes in every process. Each line of the draft names
its event, in log order: `[seq] actor/kind: text`; without actor and kind where they are those of the line before, and
`[9→12]` where event 12 states anew what event 9 said, which is then not quoted (`rules.updates`). What stands between
two marks `…` stands so in the event; a mark says that a line ended there or that something was left out. Only a heading
in capitals (`FACT: `) is left out without one. What anchors carry is not quoted again.
"""

from __future__ import annotations

from bisect import bisect, insort
from collections.abc import Callable, Iterable
from typing import Final

from strandline.limits import DRAFT_BYTES_MAX, EXTRACTIVE_WINDOW_TOKENS
from strandline.model.candidate import Draft
from strandline.ports import SummaryRequest
from strandline.rules.shapes import HEADING
from strandline.summarizers.candidates import Quote, Source, event_quotes, prior_quotes

USER_SHARE: Final = 0.6  # of what is left for events: user lines may take so much before the others are asked
PRIOR_SHARE_MIN: Final = 0.25
PRIOR_SHARE_MAX: Final = 0.75  # of the budget, while there are events that need the rest
BULLETS: Final = " \t-*•"  # what may stand before a heading that is left out without a mark
REFILLS_MAX: Final = 4  # times that what is left over is used
MISSES_MAX: Final = 64  # quotes in a row that don't fit before the draft counts as full


class ExtractiveSummarizer:
    """Selects and quotes. Deterministic to the byte; never over the budget, as the request's counter counts it.

    Args:
        fold_rules: of rules that are alike but for what they are about ("Never send X", "Never send Y") quote only the
            newest, with the number of the older one. Both may hold, so this is for budgets of a few hundred tokens,
            where there is no room for both.
    """

    name: str = "extractive"
    window_tokens: int | None = EXTRACTIVE_WINDOW_TOKENS

    def __init__(self, *, fold_rules: bool = False) -> None:
        self.version = "2, rules folded" if fold_rules else "2"
        self._fold_rules = fold_rules

    def summarize(self, request: SummaryRequest) -> Draft:
        """Return the draft. Where no line fits it says so; where that does not fit either, it is empty."""
        draft = _Drafting(request.budget_tokens, request.counter.count)
        prior = [prior_quotes(text, draft.sources) for text in request.prior]
        spoken, others = event_quotes(request, draft.sources, fold=self._fold_rules)
        prior_tokens = int(request.budget_tokens * _prior_share(request))
        sizes = [len(text) for text in request.prior]
        for quotes, size in zip(prior, sizes, strict=True):
            draft.fill(quotes, prior_tokens * size // max(1, sum(sizes)))
        new = [quote for quote in (*spoken, *others) if quote.beside < 0]
        alone = sorted([*new, *(quote for quotes in prior for quote in quotes if quote.beside < 0)])
        draft.fill((quote for quote in spoken if quote.beside < 0), int(draft.left * USER_SHARE))
        draft.fill(new, draft.left)
        draft.fill(alone, draft.left)
        draft.refill(alone)
        draft.refill([*spoken, *others, *(quote for quotes in prior for quote in quotes)])
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
        self._open: dict[int, set[int]] = {}  # places that have a line already, and where its quotes begin
        self._places: list[int] = []  # the same, in order
        self._costs: dict[tuple[Quote, bool, str], int] = {}

    def fill(self, quotes: Iterable[Quote], tokens: int) -> bool:
        """Pick the best of the quotes that fit into `tokens`, and tell whether there was one."""
        misses = 0
        before = len(self._picked)
        for quote in sorted(quotes):
            if tokens <= 0 or misses >= MISSES_MAX:
                break
            if quote in self._picked or (quote.beside >= 0 and quote.beside not in self._open.get(quote.place, ())):
                continue
            cost = self._cost(quote)
            if cost > tokens:
                misses += 1
                continue
            misses = 0
            tokens -= cost
            self.left -= cost
            self._picked[quote] = None
            if quote.place not in self._open:
                insort(self._places, quote.place)
            self._open.setdefault(quote.place, set()).add(quote.start)
        return len(self._picked) > before

    def refill(self, quotes: Iterable[Quote]) -> None:
        """Pick more into what the draft leaves as it is written: lines counted alone come to more than together."""
        waiting = sorted(quotes)
        for _ in range(REFILLS_MAX):
            text = self.text()
            if not text or not self.fill(waiting, self._budget - self._count(text)):
                break

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
        """Return what a quote adds to the draft as it is now; quotes of one line may come to less together."""
        source = self.sources[quote.place]
        if quote.place in self._open:
            return self._count(f" … {source.text[quote.start : quote.end]}")
        at = bisect(self._places, quote.place)
        before = self.sources[self._places[at - 1]].voice if at else ""
        after = self.sources[self._places[at]].voice if at < len(self._places) else ""
        near = source.voice in (before, after)  # then one of the two lines needs to name the voice, as before
        line = source.label(source.voice if near else "") + _quoted(source.text, [quote])
        again = f"{after}: " if after == before != source.voice else ""  # the next line has to name its voice
        key = (quote, near, again)
        cost = self._costs.get(key)
        if cost is None:
            cost = self._costs[key] = self._count(f"{line}{again}\n")
        return cost

    def _written(self, picked: Iterable[Quote]) -> str:
        by_place: dict[int, list[Quote]] = {}
        for quote in picked:
            by_place.setdefault(quote.place, []).append(quote)
        lines = []
        voice = ""
        for place in sorted(by_place):
            source = self.sources[place]
            lines.append(source.label(voice) + _quoted(source.text, by_place[place]))
            voice = source.voice
        return "\n".join(lines)


def _quoted(text: str, quotes: list[Quote]) -> str:
    """Write the quotes of one source as one line, with a mark wherever something was left out."""
    parts = []
    at = 0
    for quote in sorted(quotes, key=lambda quote: quote.start):
        gap = text[at : quote.start]
        if at:
            parts.append(gap if gap == " " else " … ")
        elif gap.strip() and not HEADING.fullmatch(gap.lstrip(BULLETS)):
            parts.append("… ")
        parts.append(text[quote.start : quote.end])
        at = quote.end
    if text[at:].strip():
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
