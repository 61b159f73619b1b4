"""`strandline bench store`: measure the store on this machine, beside the raw driver and the peers that are there."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from strandline.cli.bench_quality import quality
from strandline.cli.command import number
from strandline.cli.output import emit, table_of, tell, to_json

if TYPE_CHECKING:
    from strandline.bench.figures import Figure, Spread
    from strandline.bench.store import Report

EVENTS_MIN: Final = 100
RUNS_MAX: Final = 1_000

app = typer.Typer(help="Measure Strandline on this machine.", rich_markup_mode=None, invoke_without_command=True)

_EVENTS_HELP: Final = f"Sizes of the workflow, in events, from {EVENTS_MIN}.  [default: 1000,10000,100000,1000000]"
_ONLY_HELP: Final = (
    "This section only, of context, recover, last, storage, compact, append, clients, transcript, peers, "
    "postgres, memory. Repeatable.  [default: all]"
)
_FOLDER_HELP: Final = (
    "Where to measure, and keep the stores: a folder on the disk that is meant.  [default: a temporary folder, deleted "
    "at the end]"
)
_POSTGRES_HELP: Final = (
    "Measure PostgreSQL, too, in schemas of its own in this database, which are dropped at the end.  [default: don't]"
)
_RUNS_HELP: Final = "Rounds that count, after one that is dropped.  [default: 7]"
Events = Annotated[str | None, typer.Option(metavar="N,N,…", help=_EVENTS_HELP)]
Only = Annotated[list[str] | None, typer.Option(metavar="NAME", help=_ONLY_HELP)]
File = Annotated[
    Path | None, typer.Option(metavar="TRANSCRIPT", help="Import and compact this one.  [default: one is made]")
]
Folder = Annotated[Path | None, typer.Option("--dir", metavar="FOLDER", help=_FOLDER_HELP)]
Postgres = Annotated[str | None, typer.Option(metavar="URL", help=_POSTGRES_HELP)]
Reuse = Annotated[bool, typer.Option("--reuse", help="Take large stores that an earlier run left in --dir.")]
Runs = Annotated[int | None, typer.Option(metavar="N", parser=number(1, RUNS_MAX), help=_RUNS_HELP)]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object, also on failure.")]


app.command()(quality)


@app.callback(invoke_without_command=True)
def bench(ctx: typer.Context) -> None:
    """Measure Strandline on this machine."""
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())


@app.command()
def store(
    events: Events = None,
    only: Only = None,
    file: File = None,
    folder: Folder = None,
    reuse: Reuse = False,
    runs: Runs = None,
    postgres: Postgres = None,
    as_json: AsJson = False,
) -> None:
    """Measure the store beside the raw driver and the peers that are installed.

    With --events 1000 --runs 3 it takes some minutes; every larger size is built first, and takes far longer.
    """
    from strandline.bench.stage import Stage
    from strandline.bench.store import RUNS, SECTIONS, SIZES, run

    unknown = sorted(set(only or ()) - set(SECTIONS))
    if unknown:
        raise typer.BadParameter(f"no section {unknown[0]!r}; there are {', '.join(SECTIONS)}", param_hint="--only")
    sizes = SIZES if events is None else _sizes(events)
    if file is not None and not file.is_file():
        raise typer.BadParameter(f"{file} is no file", param_hint="--file")
    if folder is not None and not folder.is_dir():
        raise typer.BadParameter(f"{folder} is no folder", param_hint="--dir")
    with ExitStack() as stack:
        where = folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="strandline-bench-")))
        stage = Stage(
            folder=where,
            sizes=sizes,
            runs=runs or RUNS,
            say=lambda text: tell("bench", text, "cyan"),
            file=file,
            reuse=reuse,
            postgres=postgres,
        )
        report = run(stage, only or ())
    emit(to_json(report) if as_json else "\n".join(_lines(report)))


def _sizes(text: str) -> tuple[int, ...]:
    parse = number(EVENTS_MIN)
    return tuple(sorted({parse(part.strip().replace("_", "")) for part in text.split(",")}))


def _lines(report: Report) -> list[str]:
    machine, cost = report.machine, report.fsync_us
    lines = [
        f"{machine.processor}, {machine.cores} cores, {machine.memory_gb:g} GB; {machine.system}",
        f"Strandline {machine.strandline}, {machine.python}, SQLite {machine.sqlite}; {report.date}",
        f"fsync {report.fsync}: {cost.median:.0f} µs (p10 {cost.least:.0f}, p90 {cost.most:.0f});"
        f" load {report.load[0]:g} before, {report.load[1]:g} after",
        f"rounds {report.runs}, after one that is dropped; a cell is the median, and least–most of the rounds",
    ]
    for section in dict.fromkeys(figure.section for figure in report.figures):
        figures = [figure for figure in report.figures if figure.section == section]
        head = ("", "value", "", "ratio", "", "target", "")
        lines += ["", section.upper(), table_of([head, *_rows(figures)])]
        notes = dict.fromkeys(f"{figure.who}, {_name(figure)}: {figure.note}" for figure in figures if figure.note)
        lines += [f"  {note}" for note in notes]
        ratios = dict.fromkeys(figure.ratio_of for figure in figures if figure.ratio_of)
        lines += [f"  ratio: {ratio}" for ratio in ratios]
    return [*lines, "", *report.notes]


def _rows(figures: Sequence[Figure]) -> list[tuple[object, ...]]:
    """Return a row for each figure; those of one comparison stand under their name."""
    rows: list[tuple[object, ...]] = []
    for name, group in groupby(figures, _name):
        same = list(group)
        if len(same) == 1:
            rows.append(_row(name, same[0]))
        else:
            rows += [(name, *[""] * 6), *(_row(f"  {figure.who}", figure) for figure in same)]
    return rows


def _name(figure: Figure) -> str:
    return f"{figure.what}, {figure.events:,} events" if figure.events else figure.what


def _row(label: str, figure: Figure) -> tuple[object, ...]:
    verdict = figure.verdict or ""
    value, around = _spread(figure.value)
    return (label, f"{value} {figure.unit}", around, *_spread(figure.ratio), _mark(figure), verdict)


def _spread(spread: Spread | None) -> tuple[str, str]:
    if spread is None:
        return "", ""
    around = f"{spread.least:,g}–{spread.most:,g}" if spread.rounds > 1 else ""
    return f"{spread.median:,g}", around


def _mark(figure: Figure) -> str:
    mark = figure.mark
    if mark is None:
        return ""
    bounds = [f"≥ {mark.at_least:g}"] if mark.at_least is not None else []
    bounds += [f"≤ {mark.at_most:g}"] if mark.at_most is not None else []
    return " ".join(bounds) + (f" {figure.unit}" if mark.of == "value" else "")
