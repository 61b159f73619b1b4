"""The configurations that are searched, by name: what each is about, and how much may happen in it.

Within its bounds each has an end, and a search that reaches it has left nothing out: `compaction` has 192,999 states,
`background` 78,316, `calls` 90,216. The others are larger, and are searched breadth-first as far as they are let.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from strandline.testing.protocol.world import Bounds

CONFIGURATIONS: Final[Mapping[str, Bounds]] = {
    "compaction": Bounds(processes=3, events=3, fences=3, partial=True, lost=True),
    "background": Bounds(processes=2, events=3, fences=3, lost=True, background=True, recoveries=1),
    "calls": Bounds(processes=2, events=4, fences=2, calls=True, rewinds=1),
    "cases": Bounds(processes=2, events=3, fences=4, reports=1, needs=True, recoveries=1),
    "checkpoints": Bounds(processes=2, events=2, fences=2, checkpoints=2, recoveries=2, free=True),
    "savers": Bounds(processes=2, events=2, fences=2, checkpoints=1, foreign=1, recoveries=2),
    "branches": Bounds(processes=2, events=3, fences=2, checkpoints=1, free=True, recoveries=1, reverts=1, rewinds=1),
    "views": Bounds(processes=2, views=2, events=2, fences=2, recoveries=1, rewinds=1),
    "together": Bounds(
        processes=2,
        events=3,
        fences=3,
        partial=True,
        lost=True,
        checkpoints=1,
        free=True,
        foreign=1,
        recoveries=1,
        needs=True,
        reverts=1,
        rewinds=1,
        reports=1,
    ),
}
