"""Write docs/results/reliability.json from the record of the soak, and reliability.md from it.

    python -m tools.soak_page       the page alone, from the JSON that is there

The table counts what stands: of units that ran again, the last time. What ran at an older commit counts, and the table
says at which it ran. The JSON tells each run, so that another checkout's soak goes on from there.
"""

import json
import tomllib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NotRequired, TypedDict

from tools.soak_progress import PUBLISHED, Chunk, Programme, published_chunks, standing, to_publish

ROOT = Path(__file__).resolve().parents[1]
BUGS = Path("tools") / "bugs.toml"

INTRODUCTION = """\
# Reliability, measured by breaking it

Written by `make soak ARGS="--report"` from [reliability.json](reliability.json), that is from what `make soak` has run:
each programme breaks the library on purpose, unit by unit, each unit by its own seed, and looks whether a law of it was
broken. A violation is a broken law. `{seed}` and `{count}` in a command are the first seed and how many units
from there on; any single unit is repeated by its own seed and a count of 1, at its commit. How each programme shows
that it can fail stands in its test.
"""
MET_MAX = 24  # kinds of things that the page tells of one programme
HEAD = ("measure", "count", "violations", "command", "seed", "commit")


class Measure(TypedDict):
    """What one programme has done."""

    programme: str
    measure: str
    proves: str
    mark: str
    target: int
    command: str
    count: int
    violations: int
    runs: list[dict[str, Any]]  # the fields of chunks that follow each other


class Bug(TypedDict):
    """A bug that a programme found."""

    found_by: str
    seed: NotRequired[int | str]
    what: str
    fix: str
    test: str


class Found(TypedDict):
    """What the page says."""

    measures: list[Measure]
    bugs: list[Bug]


def measured(programme: Programme, target: int, chunks: Sequence[Chunk]) -> Measure:
    """Add up what stands of one programme."""
    own = [chunk for chunk in standing(chunks) if chunk.programme == programme.name]
    return {
        "programme": programme.name,
        "measure": programme.measure,
        "proves": programme.proves,
        "mark": programme.mark,
        "target": target,
        "command": programme.command.replace(" {names}", ""),
        "count": sum(chunk.count for chunk in own),
        "violations": sum(chunk.violations for chunk in own),
        "runs": to_publish(own),
    }


def read_bugs(root: Path) -> list[Bug]:
    """Read the list of what the programmes found."""
    path = root / BUGS
    bugs: list[Bug] = tomllib.loads(path.read_text(encoding="utf-8")).get("bug", []) if path.exists() else []
    return bugs


def page(found: Found) -> str:
    """Return the page."""
    lines = [INTRODUCTION, _row(HEAD), "|" + " --- |" * len(HEAD)]
    lines += [_row(_cells(measure)) for measure in found["measures"]]
    lines += ["", "## Marks", "", *map(_mark, found["measures"])]
    lines += ["", "## What was met", ""]
    lines.append("So that nobody believes in an idle run: how often each thing happened within the counted units.")
    for measure in found["measures"]:
        if measure["runs"]:
            name = measure["measure"][:1].upper() + measure["measure"][1:]
            lines += ["", f"**{name}.** {measure['proves']} Met: {_met(_runs(measure))}. {_ran(measure)}"]
    lines += ["", "## What it found", ""]
    if found["bugs"]:
        lines += ["Each was a bug of the library until then; its test holds it now.", ""]
        lines += [_row(("found by", "seed or case", "what was wrong", "mended by", "held by")), "|" + " --- |" * 5]
        lines += [_row(_told(bug)) for bug in found["bugs"]]
    else:
        lines.append("No bug is listed.")
    return "\n".join(lines) + "\n"


def _cells(measure: Measure) -> tuple[str, ...]:
    runs = _runs(measure)
    commits: Counter[str] = Counter()
    for run in runs:
        commits[run.commit] += run.count
    command = f"`{measure['command']}`"
    return (
        measure["measure"],
        f"{measure['count']:,}",
        f"{measure['violations']:,}",
        command,
        _seeds(runs) or "–",
        ", ".join(f"{commit} ({count:,})" for commit, count in commits.items()) or "–",
    )


def _runs(measure: Measure) -> list[Chunk]:
    return published_chunks(measure["programme"], measure["runs"])


def _seeds(runs: Sequence[Chunk]) -> str:
    if any(run.names for run in runs):
        return "by name"
    spans: list[tuple[int, int]] = []
    for run in runs:
        if spans and spans[-1][1] == run.seed - 1:
            spans[-1] = (spans[-1][0], run.end - 1)
        else:
            spans.append((run.seed, run.end - 1))
    return ", ".join(f"{first:,}–{last:,}" for first, last in spans)


def _mark(measure: Measure) -> str:
    reached = measure["count"] >= measure["target"] and not measure["violations"]
    if reached:
        verdict = "reached"
    elif measure["violations"]:
        verdict = f"**not reached**: {measure['violations']:,} violations stand"
    else:
        verdict = f"**not reached yet**: {measure['count']:,} of {measure['target']:,}"
    return f"- {measure['measure']}: {measure['mark']}: {verdict}."


def _ran(measure: Measure) -> str:
    runs = _runs(measure)
    seconds = sum(run.seconds for run in runs)
    rate = measure["count"] / seconds if seconds else 0.0
    first, last = min(run.date for run in runs), max(run.date for run in runs)
    when = first if first == last else f"{first} to {last}"
    machines = sorted({run.machine for run in runs})
    return f"It took {seconds:,.0f} s of one worker, {rate:,.3g} a second; {when}, on {' and '.join(machines)}."


def _met(runs: Sequence[Chunk]) -> str:
    """Return what was met, the most frequent first, as much as can be taken in."""
    detail: Counter[str] = Counter()
    for run in runs:
        detail.update(run.detail)
    often = sorted(detail.items(), key=lambda one: (-one[1], one[0]))
    told = ", ".join(f"{key} {value:,}" for key, value in often[:MET_MAX])
    more = len(often) - MET_MAX
    return f"{told}, and {more} kinds more, which the JSON lists" if more > 0 else told


def _told(bug: Bug) -> tuple[str, ...]:
    return (bug["found_by"], str(bug.get("seed", "–")), bug["what"], bug["fix"], f"`{bug['test']}`")


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def write(root: Path, programmes: Sequence[Programme], faults: int, chunks: Sequence[Chunk]) -> Path:
    """Write the JSON and the page; return where the page is. `faults`: how many the list of them has."""
    found: Found = {
        "measures": [measured(programme, programme.target or faults, chunks) for programme in programmes],
        "bugs": read_bugs(root),
    }
    path = root / PUBLISHED
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return write_page(path)


def write_page(published: Path) -> Path:
    """Write the page from the JSON beside which it is to lie."""
    found: Found = json.loads(published.read_text(encoding="utf-8"))
    path = published.with_suffix(".md")
    path.write_text(page(found), encoding="utf-8")
    return path


if __name__ == "__main__":
    print(write_page(ROOT / PUBLISHED))
