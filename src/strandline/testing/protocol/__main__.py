"""`python -m strandline.testing.protocol --count STATES`: search the model, and tell what was found."""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections import Counter
from collections.abc import Sequence

from strandline.testing.protocol.configurations import CONFIGURATIONS
from strandline.testing.protocol.guards import ALL_ON, Guards
from strandline.testing.protocol.search import search
from strandline.testing.protocol.story import story_of

_DESCRIPTION = """Search the model of the protocol breadth-first. A unit is a distinct state. Nothing is drawn: the same
arguments visit the same states. --seed says with which configuration the search begins; the states are shared among it
and those behind it, and what one does not need is left to the next ones. Where a guard is off, each configuration is
searched for itself, up to so many states: which law breaks first, and where, depends on the guard."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code: 0 no violation, 1 violations, 2 it could not run."""
    options = _arguments(argv)
    names = [options.configuration] if options.configuration else list(CONFIGURATIONS)
    turn = (options.seed - 1) % len(names)
    guards = ALL_ON._replace(**dict.fromkeys(options.without, False))
    began = time.perf_counter()
    states = violations = 0
    detail: Counter[str] = Counter()
    for place, name in enumerate((*names[turn:], *names[:turn])):
        left = options.count if options.without else math.ceil((options.count - states) / (len(names) - place))
        if left <= 0:
            break
        found = search(
            CONFIGURATIONS[name],
            guards,
            states_max=left,
            progress=lambda so_far, name=name: _tell(f"\r{name}: {so_far:,} states"),  # type: ignore[misc]
        )
        states += found.states
        detail[f"{name} states"] = found.states
        for what, times in found.met.items():
            detail[what] += times
        ended = "searched to the end" if found.complete else "cut off" if found.broken is None else "a law is broken"
        _tell("\r")
        if not options.json:
            line = f"{name}: {found.states:,} states, {found.steps:,} steps, depth {found.depth}, {ended}"
            sys.stdout.write(line + "\n")
        if found.broken is not None:
            violations += 1
            without = "".join(f" --without {guard}" for guard in options.without)
            again = f"python -m strandline.testing.protocol --configuration {name} --count {options.count}{without}"
            sys.stdout.write("\n".join([*story_of(found.broken), f"     again: {again}"]) + "\n")
    if options.without and not violations and not options.json:
        sys.stdout.write(
            f"no law broke without {', '.join(options.without)}: other guards see to it, or --count is small\n"
        )
    seconds = round(time.perf_counter() - began, 3)
    summary = {"count": states, "violations": violations, "seconds": seconds, "detail": dict(detail)}
    sys.stdout.write(json.dumps(summary) + "\n")
    return 1 if violations else 0


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m strandline.testing.protocol", description=_DESCRIPTION)
    parser.add_argument("--count", type=_whole, default=100_000, help="how many distinct states are visited (100,000)")
    parser.add_argument("--seed", type=_whole, default=1, help="with which configuration to begin (1, the first)")
    parser.add_argument("--configuration", choices=list(CONFIGURATIONS), help="search this one only")
    parser.add_argument(
        "--without", action="append", default=[], choices=Guards._fields, help="switch a guard off, to see it fail"
    )
    parser.add_argument("--json", action="store_true", help="print violations and the summary only")
    return parser.parse_args(argv)


def _whole(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1 on")
    return int(text)


def _tell(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
