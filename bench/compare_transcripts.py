"""Compare the summaries of other tools in many transcripts with ours, and print Markdown: docs/results/compare.md.

python bench/compare_transcripts.py [--ledger N] FILE...
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable
from pathlib import Path

import strandline
from strandline import Comparison, Tally
from strandline.limits import COMPARE_LEDGER_TOKENS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ledger", type=int, default=COMPARE_LEDGER_TOKENS)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    asked = parser.parse_args()
    found: list[Comparison] = []
    print("| file | # | covers | until | tokens | needed | theirs | theirs + ledger | ours |")
    print("| --- | --: | --: | --: | --: | --: | --: | --: | --: |")
    begun = time.perf_counter()
    for path in asked.files:
        with strandline.open(":memory:") as db:
            workflow = db.tenant("default").workflow(path.stem)
            workflow.import_transcript(path)
            comparison = workflow.compare(ledger_tokens=asked.ledger)
        found.append(comparison)
        for number, each in enumerate(comparison.summaries, start=1):
            place = f"1–{each.foreign.through_seq} | {each.until_seq} | {each.theirs_tokens:,}"
            print(f"| {path.parent.name}/{path.stem} | {number} | {place} | {cells(each.needed)} |")
    spent_s = time.perf_counter() - begun
    summaries = [each for comparison in found for each in comparison.summaries]
    print(f"\n{len(summaries)} summaries in {len(found)} files; imported and compared in {spent_s:.1f} s.\n")
    print("| of all | needed | theirs | theirs + ledger | ours |\n| --- | --: | --: | --: | --: |")
    for name in ("needed", "needed_by_name", "used_again", "needed_to_end", "used_again_to_end"):
        print(f"| `{name}` | {cells(Tally.sum(getattr(each, name) for each in summaries))} |")
    print(f"| tokens | | {' | '.join(f'{tokens:,}' for tokens in lengths(found))} |")
    print("\n| class | needed | theirs | theirs + ledger | ours |\n| --- | --: | --: | --: | --: |")
    names = dict.fromkeys(name for comparison in found for name in comparison.needed_by_class)
    by_class = {name: Tally.sum(c.needed_by_class[name] for c in found if name in c.needed_by_class) for name in names}
    for name, tally in sorted(by_class.items(), key=lambda item: -item[1].needed):
        print(f"| {name} | {cells(tally)} |")
    lost = sum(each.needed.ours < each.needed.theirs for each in summaries)
    won = sum(each.needed.ours > each.needed.theirs for each in summaries)
    print(f"\nOurs kept more in {won}, as many in {len(summaries) - won - lost}, fewer in {lost}.")


def cells(tally: Tally) -> str:
    kept = (tally.theirs, tally.theirs_and_ledger, tally.ours)
    return " | ".join([f"{tally.needed:,}", *(f"{each:,} ({share(each, tally.needed)})" for each in kept)])


def share(kept: int, needed: int) -> str:
    return f"{100 * kept / needed:.0f} %" if needed else "–"


def lengths(found: Iterable[Comparison]) -> tuple[int, int, int]:
    summaries = [each for comparison in found for each in comparison.summaries]
    theirs = sum(each.theirs_tokens for each in summaries)
    with_ledger = theirs + sum(each.ledger_tokens for each in summaries)
    return theirs, with_ledger, sum(each.ours_tokens for each in summaries)


if __name__ == "__main__":
    main()
