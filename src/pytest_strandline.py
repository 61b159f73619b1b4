"""Fixtures for tests of programs that use Strandline (C40); pytest finds them where Strandline is installed.

| fixture | |
| --- | --- |
| `strandline_clock` | a `VirtualClock`, which moves when the test says so |
| `strandline_store` | a new SQLite store in a folder of the test, as a `FaultyStore`, by that clock |
| `strandline_faults` | `crash_at`, `kill_at`, `fault_at` and `points`; the test fails where one is left open |
| `scripted_summarizer` | makes a `ScriptedSummarizer` out of steps; the test fails where some were not taken |

Nothing of Strandline is imported before a test asks for one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from strandline.testing import FaultyStore, ScriptedSummarizer, VirtualClock
    from strandline.testing.fakes import ScriptStep


@pytest.fixture
def strandline_clock() -> VirtualClock:
    """Give a clock that the test moves."""
    from strandline.testing import VirtualClock

    return VirtualClock()


@pytest.fixture
def strandline_store(tmp_path: Path, strandline_clock: VirtualClock) -> Iterator[FaultyStore]:
    """Give a store that is watched; `restarted` opens it as a new process does."""
    from strandline.stores.sqlite import SqliteStore
    from strandline.testing import FaultyStore, SeededEntropy

    path = str(tmp_path / "strandline.db")
    inner = SqliteStore(path, clock=strandline_clock, entropy=SeededEntropy(), durability="normal")
    yield FaultyStore(inner, clock=strandline_clock)
    inner.close()


@pytest.fixture
def strandline_faults() -> Iterator[ModuleType]:
    """Give what lets things go wrong."""
    from strandline.testing import faults

    yield faults
    left = faults.armed()
    assert not left, f"a fault is still open: {', '.join(left)}; use it as `with …:`"


@pytest.fixture
def scripted_summarizer() -> Iterator[Callable[..., ScriptedSummarizer]]:
    """Give what makes a summarizer that follows a script."""
    from strandline.testing import ScriptedSummarizer

    made: list[ScriptedSummarizer] = []

    def make(*steps: ScriptStep, name: str = "scripted") -> ScriptedSummarizer:
        made.append(ScriptedSummarizer(steps, name=name))
        return made[-1]

    yield make
    left = [summarizer.name for summarizer in made if summarizer.steps_left]
    assert not left, f"steps of a script that no call took: {', '.join(left)}"
