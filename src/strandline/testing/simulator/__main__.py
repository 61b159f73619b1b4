"""`python -m strandline.testing.simulator`: run simulated schedules, and count what broke."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

from strandline.testing.simulator.running import Tally, run_schedules

_CHUNK = 250  # schedules that a worker runs before it reports


def main(arguments: list[str] | None = None) -> int:
    """Run, and return 0: nothing broke; 1: something did; 2: it could not run."""
    parser = argparse.ArgumentParser(prog="python -m strandline.testing.simulator", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the first seed; schedule i has the seed SEED + i")
    parser.add_argument("--count", type=int, default=1_000, help="how many schedules")
    parser.add_argument("--workers", type=int, default=1, help="processes, each with its own seeds")
    parser.add_argument("--json", action="store_true", help="nothing but stories, and the last line")
    asked = parser.parse_args(arguments)
    if asked.count < 1 or asked.workers < 1 or asked.seed < 0:
        sys.stderr.write("count and workers are at least 1, seed at least 0\n")
        return 2
    begun, tally = time.monotonic(), Tally()
    for part in _parts(asked.seed, asked.count, asked.workers):
        tally.add(part)
        sys.stdout.writelines(f"{story}\n\n" for story in part.stories)
        sys.stdout.flush()
        if not asked.json:
            rate = tally.count / max(time.monotonic() - begun, 1e-9)
            sys.stderr.write(f"{tally.count:,} of {asked.count:,} schedules, {rate:,.0f}/s, {tally.violations} broke\n")
    detail = {"crossings": tally.crossings, "interleavings": len(tally.traces), **dict(sorted(tally.met.items()))}
    seconds = round(time.monotonic() - begun, 3)
    told = {"count": tally.count, "violations": tally.violations, "seconds": seconds, "detail": detail}
    sys.stdout.write(json.dumps(told) + "\n")
    return 1 if tally.violations else 0


def _parts(seed: int, count: int, workers: int) -> Iterator[Tally]:
    chunks = [(start, min(_CHUNK, seed + count - start)) for start in range(seed, seed + count, _CHUNK)]
    if workers == 1:
        yield from (run_schedules(*chunk) for chunk in chunks)
        return
    with ProcessPoolExecutor(workers) as pool:
        yield from pool.map(run_schedules, *zip(*chunks, strict=True))


if __name__ == "__main__":
    raise SystemExit(main())
