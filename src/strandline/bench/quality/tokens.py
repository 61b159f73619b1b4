"""How near a counter comes that was calibrated on other sessions to what a provider reported (DESIGN §3).

Each session of Claude Code is judged by the counter that all others taught. A window begins at each request, and ends
where the texts added behind it count CALIBRATION_WINDOW_TOKENS; the provider's count of it is what the request grew by.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Final

from strandline import Calibration, calibrate
from strandline.bench.quality.row import Row
from strandline.limits import CALIBRATION_WINDOW_TOKENS

IDS: Final = ("tokens_bound", "tokens_median")
_SESSIONS: Final = "claude_code_*/*.jsonl"
_BOUND: Final = "windows in which the upper-bound count is at least the provider's"
_MEDIAN: Final = "the upper-bound count over the provider's, at the median"
_ABSENT: Final = "fewer than two sessions of Claude Code"


def measure(data: Path, tell: Callable[[int, int], None]) -> Iterator[Row]:
    """Measure on every session, each by what the others taught."""
    paths = sorted(data.glob(_SESSIONS))
    learnt = []
    for number, path in enumerate(paths):
        tell(number, len(paths))
        learnt.append(calibrate(path))
    ratios = list(_ratios(learnt))
    told = f"{len(ratios):,} windows of {CALIBRATION_WINDOW_TOKENS:,} tokens or more, {len(paths)} sessions"
    held = round(100 * sum(ratio >= 1 for ratio in ratios) / len(ratios), 2) if ratios else None
    middle = round(median(ratios), 3) if ratios else None
    reason = "" if ratios else _ABSENT
    yield Row(id=IDS[0], measure=_BOUND, data=told, value=held, mark=99, reason=reason)
    yield Row(id=IDS[1], measure=_MEDIAN, data=told, value=middle, mark=1.35, at_most=True, unit="×", reason=reason)


def _ratios(learnt: list[Calibration]) -> Iterator[float]:
    """Yield, for each window of a session, the upper bound that the other sessions give over what was reported."""
    for session in learnt:
        others = Calibration()
        for other in learnt:
            if other is not session:
                others.learn(other)
        if not (others.windows and session.windows):
            continue
        factor = others.upper().factor
        yield from (window.counted * factor / window.reported for window in session.windows if window.reported)
