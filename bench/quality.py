"""Measure the quality of memory for its page: `make bench-quality DATA=path`.

Runs `strandline bench quality`, adds the commit that was measured, and writes `docs/results/quality.json` and, from it,
`docs/results/quality.md`. With `--only` the other rows stay as they were measured, each with its own date and commit.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from strandline.bench.quality.row import Row
from strandline.bench.quality.table import IDS

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "results"
BY_HAND = "<!-- From here on by hand; `make bench-quality` keeps it. -->"
INTRODUCTION = """\
# The quality of memory, measured

Written by `make bench-quality`, from [quality.json](quality.json); `strandline bench quality --data FOLDER` measures
the same on data sets of yours that have the same form. A row that misses its mark says so, and why below the table.

| | |
| --- | --- |
| machine | {processor}, {cores} cores, {memory_gb:g} GB; {system} |
| versions | {python}, SQLite {sqlite} |
"""
REACHED = {True: "reached", False: "**missed**", None: "not measured"}


def main() -> None:
    """Measure, and write the page."""
    asked = _arguments()
    path = RESULTS / "quality.json"
    if not asked.page_only:
        old = json.loads(path.read_text(encoding="utf-8"))["rows"] if path.exists() else []
        found = measure(asked.data, asked.only)
        found["rows"] = merged(old if asked.only else [], found["rows"])
        path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    write_page(RESULTS)


def measure(data: str, only: Sequence[str]) -> dict[str, Any]:
    """Run the command with the Python that runs this; each row gets the date and the commit."""
    program = "from strandline.cli import main; main()"
    words = [sys.executable, "-c", program, "bench", "quality", "--json", "--data", data]
    words += [word for name in only for word in ("--only", name)]
    done = subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"the benchmark ended with {done.returncode}: {done.stdout}")
    found: dict[str, Any] = json.loads(done.stdout)
    when = {"date": found.pop("date"), "commit": commit()}
    return {"machine": found["machine"], "rows": [{**row, **when} for row in found["rows"]]}


def merged(old: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the rows in the table's order, where one was measured again the new one."""
    rows = {row["id"]: row for row in (*old, *new)}
    return [rows[name] for name in IDS if name in rows]


def commit() -> str:
    """Return the commit that is measured; a plus where files differ from it."""
    words = ["git", "describe", "--always", "--dirty=+", "--exclude=*"]
    return subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def write_page(folder: Path) -> None:
    """Write quality.md from quality.json; what stands there by hand is kept."""
    found = json.loads((folder / "quality.json").read_text(encoding="utf-8"))
    path = folder / "quality.md"
    by_hand = path.read_text(encoding="utf-8").partition(BY_HAND)[2].strip("\n") if path.exists() else ""
    path.write_text(f"{page(found)}\n{BY_HAND}\n" + (f"\n{by_hand}\n" if by_hand else ""), encoding="utf-8")


def page(found: Mapping[str, Any]) -> str:
    """Return the measured part of the page."""
    lines = [
        INTRODUCTION.format(**found["machine"]),
        "| row | measure | on | value | mark | | measured |",
        "| --- | --- | --- | --: | --: | --- | --- |",
    ]
    for measured in found["rows"]:
        row, when = row_of(measured), f"{measured['date']}, `{measured['commit']}`"
        cells = (f"`{row.id}`", row.measure, row.data, row.value_text, row.mark_text, REACHED[row.reached], when)
        lines.append(f"| {' | '.join(cells)} |")
    reasons = [f"- `{row['id']}`: {row['reason']}" for row in found["rows"] if row["reason"]]
    return "\n".join([*lines, *(["", *reasons] if reasons else [])]) + "\n"


def row_of(measured: Mapping[str, Any]) -> Row:
    """Return a row as it was measured."""
    return Row(**{field.name: measured[field.name] for field in fields(Row)})


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="the folder of the data sets")
    parser.add_argument("--only", action="append", default=[], help="this row only; the others stay as they are")
    parser.add_argument("--page-only", action="store_true", help="write the page from quality.json, measure nothing")
    asked = parser.parse_args()
    if asked.data is None and not asked.page_only:
        parser.error("--data names the folder of the data sets")
    return asked


if __name__ == "__main__":
    main()
