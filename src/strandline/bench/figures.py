"""What a benchmark says: figures with their spread, a ratio, and the mark that the ratio or the value is to meet."""

from __future__ import annotations

import enum
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

SPEED_OF_OURS = "speed of Strandline / speed of this"
SPEED_OF_THIS = "speed of this / speed of the first"
CPU_TIME_OF_THIS = "processor time of this / processor time of the first"
BYTES = "bytes on disk / bytes of the bodies"
_DIGITS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """The median of several rounds, with the least and the most."""

    median: float
    least: float
    most: float
    rounds: int


def spread_of(values: Sequence[float]) -> Spread:
    """Return the spread of what the rounds gave."""
    return Spread(
        median=_short(statistics.median(values)),
        least=_short(min(values)),
        most=_short(max(values)),
        rounds=len(values),
    )


def _short(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


class Verdict(enum.StrEnum):
    """What is said of a figure that has a mark."""

    MET = "met"
    MISSED = "missed"
    UNSURE = "spread too wide to tell"  # the median meets it, and some round does not


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """What is demanded of a figure: bounds of its ratio, or of its value."""

    at_least: float | None = None
    at_most: float | None = None
    of: str = "ratio"  # or value

    def judge(self, spread: Spread) -> Verdict:
        """Say whether the median lies within the bounds; and where it does, whether every round did."""
        if not self._holds(spread.median):
            return Verdict.MISSED
        return Verdict.MET if self._holds(spread.least) and self._holds(spread.most) else Verdict.UNSURE

    def _holds(self, value: float) -> bool:
        low = self.at_least is None or value >= self.at_least
        return low and (self.at_most is None or value <= self.at_most)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measured line: of what, at how many events, by whom."""

    section: str
    what: str
    who: str
    unit: str
    value: Spread
    events: int | None = None
    ratio: Spread | None = None
    ratio_of: str = ""
    mark: Mark | None = None
    note: str = ""

    @property
    def verdict(self) -> Verdict | None:
        """Whether the mark is met; None without a mark."""
        if self.mark is None:
            return None
        spread = self.value if self.mark.of == "value" else self.ratio
        return self.mark.judge(spread) if spread is not None else Verdict.MISSED


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What the figures of one comparison have in common."""

    section: str
    what: str
    unit: str
    events: int | None = None


def compare(
    line: Line,
    values: Mapping[str, Sequence[float]],
    ratio_of: str,
    *,
    marks: Mapping[str, Mark] | None = None,
    notes: Mapping[str, str] | None = None,
) -> list[Figure]:
    """Return a figure for each competitor; ratios are taken round by round against the first of them.

    `values` are times, or anything else of which less is better.
    """
    first, *_ = values
    figures = []
    for who, own in values.items():
        pairs = list(zip(values[first], own, strict=True))
        ratios = [base / this if ratio_of == SPEED_OF_THIS else this / base for base, this in pairs if base and this]
        alone = single(line, who, own, (marks or {}).get(who), (notes or {}).get(who, ""))
        if who == first:
            figures.append(alone)
        else:
            figures.append(replace(alone, ratio=spread_of(ratios) if ratios else None, ratio_of=ratio_of))
    return figures


def single(line: Line, who: str, values: Sequence[float], mark: Mark | None = None, note: str = "") -> Figure:
    """Return a figure that stands alone; its mark is one of its value."""
    return Figure(
        section=line.section,
        what=line.what,
        who=who,
        unit=line.unit,
        value=spread_of(values),
        events=line.events,
        mark=mark,
        note=note,
    )
