"""How time, disk and memory are measured: rounds in turn, so that what disturbs one competitor disturbs all."""

from __future__ import annotations

import gc
import os
import resource
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from strandline.bench.figures import Spread

WARM_UP_ROUNDS = 1
FSYNC_PROBES = 200
FSYNC_PROBE_BYTES = 4096
SHIM_ENVIRONMENT = "FIXED_FSYNC_US"  # set for `bench/fixed_fsync.c`, which obeys it

Work = Callable[[], object]
Prepare = Callable[[], Work]  # what it does itself is not timed; what it returns is


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """What one piece of work took."""

    wall_s: float
    cpu_s: float  # of all threads of this process


def timed(work: Work) -> Timing:
    """Do a piece of work once."""
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return Timing(wall_s=time.perf_counter() - wall, cpu_s=time.process_time() - cpu)


def middle(work: Work, calls: int) -> Timing:
    """Do a piece of work several times, and return the median of the calls."""
    timings = [timed(work) for _ in range(calls)]
    return Timing(
        wall_s=statistics.median(timing.wall_s for timing in timings),
        cpu_s=statistics.median(timing.cpu_s for timing in timings),
    )


def contest(competitors: Mapping[str, Prepare], runs: int, calls: int = 1) -> dict[str, list[Timing]]:
    """Let all do their work in turn, `runs` times; each round another one begins, and the first round is dropped."""
    names = list(competitors)
    taken: dict[str, list[Timing]] = {name: [] for name in names}
    for number in range(runs + WARM_UP_ROUNDS):
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            work = competitors[name]()
            gc.collect()
            timing = middle(work, calls)
            if number >= WARM_UP_ROUNDS:
                taken[name].append(timing)
    return taken


def walls(taken: Mapping[str, list[Timing]], scale: float) -> dict[str, list[float]]:
    """Return the elapsed times of a contest, scaled to a unit and a piece."""
    return {name: [timing.wall_s * scale for timing in timings] for name, timings in taken.items()}


def cpus(taken: Mapping[str, list[Timing]], scale: float) -> dict[str, list[float]]:
    """Return the processor times of a contest, scaled to a unit and a piece."""
    return {name: [timing.cpu_s * scale for timing in timings] for name, timings in taken.items()}


def fsync_us(folder: Path) -> Spread:
    """Return what one fsync of a page costs here: median, 10th and 90th percentile, in microseconds."""
    path = folder / "fsync.probe"
    taken = []
    with path.open("wb", buffering=0) as file:
        for _ in range(FSYNC_PROBES):
            file.write(b"\0" * FSYNC_PROBE_BYTES)
            begun = time.perf_counter()
            os.fsync(file.fileno())
            taken.append((time.perf_counter() - begun) * 1e6)
    path.unlink()
    tenths = statistics.quantiles(taken, n=10)
    return Spread(
        median=round(statistics.median(taken)), least=round(tenths[0]), most=round(tenths[-1]), rounds=FSYNC_PROBES
    )


def fsync_method() -> str:
    """Return the name of what stands for a flush to the disk in this process."""
    fixed = os.environ.get(SHIM_ENVIRONMENT)
    preloaded = "fixed_fsync" in os.environ.get("LD_PRELOAD", "")
    return f"fixed-fsync {fixed} us" if fixed and preloaded else "as is"


def peak_memory_mb() -> float:
    """Return the most memory that this process has held (RSS).

    Where /proc has it, it is that of this program alone: the figure of getrusage begins with the parent's.
    """
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024 * 1024 if sys.platform == "darwin" else 1024)
