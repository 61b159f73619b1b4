"""Show what frameworks do in an accident, and what Strandline does: python -m bench.faults [NAME...].

Without a name all are shown. The exit code is 1 where Strandline did not hold.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import warnings
from pathlib import Path

from bench.faults.shown import NAMES, Fault, Half, Shown, fault


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--markdown", action="store_true", help="print the rows of docs/frameworks-faults.md")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES))
    asked = parser.parse_args()
    unknown = sorted(set(asked.names) - set(NAMES))
    if unknown:
        parser.error(f"there is no fault {unknown[0]!r}; there are {', '.join(NAMES)}")
    warnings.simplefilter("ignore")  # the frameworks' own
    logging.disable(logging.CRITICAL)
    kept = [show(fault(name), markdown=asked.markdown) for name in asked.names or NAMES]
    sys.exit(0 if all(kept) else 1)


def show(each: Fault, *, markdown: bool) -> bool:
    """Run and print both halves; return whether ours held."""
    version = each.version
    stock = run(each.stock) if version else None
    ours = run(each.ours)
    said = stock.said if stock else "not installed"
    if markdown:
        command = f"`python -m bench.faults {each.name}`"
        print(f"| {each.what} | {each.package} {version} | {said} | {ours.said} | {command} |")
    else:
        seen = "" if stock is None else "holds: " if stock.held else "fault: "
        print(f"{each.name}: {each.what}.")
        print(f"  {each.package} {version or ''}".rstrip() + f"\n    {seen}{said}")
        print(f"  strandline\n    {'holds' if ours.held else 'FAULT'}: {ours.said}\n", flush=True)
    return ours.held


def run(half: Half) -> Shown:
    """Run one half in a folder that is gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        return half(Path(folder))


if __name__ == "__main__":
    main()
