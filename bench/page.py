"""The page of a benchmark and the README's table of peers, written from what was measured.

What stands on the page below the line by hand is kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from strandline.bench.figures import Mark, Spread, Verdict

BY_HAND = "<!-- From here on by hand; `make bench` keeps it. -->"
PEERS_BEGIN, PEERS_END = "<!-- Written by `make bench`. -->", "<!-- Up to here. -->"
LOAD_QUIET_MAX = 2  # more wanted to run than the benchmark alone
LOADED = (
    "Other programs kept the processor busy meanwhile: elapsed times are longer than on an idle machine, nobody knows"
    " by how much, and ratios of them are unsure too."
)
HEADINGS = {
    "append": "Appends",
    "clients": "Several writers at once",
    "last": "The newest events",
    "context": "The working context",
    "recover": "The decision of a recovery",
    "compact": "Compaction of a tail",
    "transcript": "A transcript: import, compaction, size",
    "storage": "Bytes on the disk",
    "memory": "Memory",
    "postgres": "PostgreSQL",
    "peers": "Peers",
}
INTRODUCTION = """\
Written by `{command}`, from [store.json](store.json); `strandline bench store` measures the same without peers
and without the fixed price of fsync. What stands here is one machine on one day; ratios travel better than times.

| | |
| --- | --- |
| date | {date} |
| machine | {processor}, {cores} cores, {memory_gb:g} GB; {system} |
| versions | Strandline {strandline}, {python}, SQLite {sqlite} |
| sizes | {sizes} events in one workflow |
| rounds | {runs}, after one that is dropped; competitors take turns within each round, another one begins each time |
| a cell | median (least–most of the rounds); ratios are taken round by round |
{fsyncs}
| load | {load}: processes that wanted to run before and after; of them one or two are the benchmark's{loaded} |
| transcript | {transcript} |

**Raw** is the standard library's `sqlite3` in the same run, with the same bodies, WAL and `synchronous=FULL`, one
`BEGIN IMMEDIATE` … `COMMIT` for each durable step. *INSERT*: one row into a table with the key (workflow, seq).
*INSERT, head row, unique key*: besides, a unique key of text and an UPDATE of a head row. Raw parses, hashes,
compresses and checks nothing. On both sides the making of the row or event is timed, the making of its text is not.

On PostgreSQL **raw** is `psycopg` on the same server, which was started for the run with its own defaults
(`fsync=on`, `synchronous_commit=on`) and pays the same for a flush. *INSERT*: one row by itself, or a hundred as one
statement out of arrays; prepared, in binary. *Same table and head row, RLS*: into the event table of a store with its
indexes, as `strandline_app` under row-level security, the head row locked and set, all of it sent as one pipeline.
Processor time is the client's; the server's is not in it.
"""


def write_page(folder: Path) -> None:
    """Write store.md from store.json."""
    found = json.loads((folder / "store.json").read_text(encoding="utf-8"))
    path = folder / "store.md"
    old = path.read_text(encoding="utf-8") if path.exists() else ""
    by_hand = old.partition(BY_HAND)[2].strip("\n")
    path.write_text(f"{page(found)}\n{BY_HAND}\n" + (f"\n{by_hand}\n" if by_hand else ""), encoding="utf-8")


def write_readme(path: Path, found: Mapping[str, Any]) -> None:
    """Put the table of peers into the README, between its two marks."""
    text = path.read_text(encoding="utf-8")
    before, _, rest = text.partition(PEERS_BEGIN)
    _, end, after = rest.partition(PEERS_END)
    if not end:
        raise SystemExit(f"{path}: no line {PEERS_BEGIN!r}, or none {PEERS_END!r} after it")
    path.write_text(f"{before}{peers_table(found)}{after}", encoding="utf-8")


def peers_table(found: Mapping[str, Any]) -> str:
    """Return the table: a column for each store, a row for each thing that all of them do."""
    run = found["runs"][0]
    figures = [figure for figure in run["figures"] if figure["section"] == "peers"]
    size = min((figure["events"] for figure in figures if figure["unit"] != "×"), default=0)
    figures = [figure for figure in figures if figure["unit"] == "×" or figure["events"] == size]
    stores = [figure["who"] for figure in figures if figure["unit"] == "×"]
    rows = [["", *stores], ["---"] * (len(stores) + 1)]
    for what in dict.fromkeys(figure["what"] for figure in figures):
        same = [figure for figure in figures if figure["what"] == what]
        rows.append([what, *(_plain(next((f for f in same if f["who"].startswith(who)), None)) for who in stores)])
    when = f"{run['date']}, {size:,} events, fsync {run['fsync']}, `{found['command']}`"
    load = "load {:g} before and {:g} after".format(*run["load"])
    said = [f"Measured {when}; {load}.", *filter(None, [_loaded([run])])]
    return "\n".join([PEERS_BEGIN, *map(_row, rows), "", *said, PEERS_END])


def _plain(figure: Mapping[str, Any] | None) -> str:
    return f"{_number(figure['value']['median'])} {figure['unit']}" if figure else ""


def page(found: Mapping[str, Any]) -> str:
    """Return the measured part of the page."""
    first, *others = found["runs"]
    second = others[0] if others else None
    machine = first["machine"]
    fsyncs = [f"| fsync, {run['fsync']} | {_cost(run['fsync_us'])} |" for run in found["runs"]]
    introduction = INTRODUCTION.format(
        **machine,
        command=found["command"],
        date=first["date"],
        sizes=", ".join(f"{size:,}" for size in first["sizes"]),
        runs=first["runs"],
        transcript=first["transcript"],
        fsyncs="\n".join(fsyncs),
        load="; ".join(" and ".join(map(str, run["load"])) for run in found["runs"]),
        loaded=f". {busy}" if (busy := _loaded(found["runs"])) else "",
    )
    parts = ["# The store, measured", "", introduction, *_marks(first)]
    for section, heading in HEADINGS.items():
        figures = [figure for figure in first["figures"] if figure["section"] == section]
        if figures:
            parts += ["", f"## {heading}", "", *_table(figures, first, second)]
    if first["notes"]:
        parts += ["", *(f"- {note}" for note in first["notes"])]
    return "\n".join(parts) + "\n"


def _marks(run: Mapping[str, Any]) -> list[str]:
    """Return the table of all targets, met or not, before everything else."""
    lines = ["## Targets", "", "| events | what | who | found | target | |", "| --- | --- | --- | --- | --- | --- |"]
    for figure in run["figures"]:
        mark = figure["mark"]
        if mark:
            spread = figure["value"] if mark["of"] == "value" else figure["ratio"]
            unit = f" {figure['unit']}" if mark["of"] == "value" else ""
            said = _verdict(mark, spread)
            cells = (_size(figure), figure["what"], figure["who"], _spread(spread, unit), _target(mark) + unit, said)
            lines.append(_row(cells))
    return lines


def _table(
    figures: Sequence[Mapping[str, Any]], first: Mapping[str, Any], second: Mapping[str, Any] | None
) -> list[str]:
    again = {_name(figure): figure for figure in second["figures"]} if second else {}
    both = any(_name(figure) in again for figure in figures)
    head = ["events", "what", "who", "value", "ratio"]
    if both and second:
        head[3] = f"value, fsync {first['fsync']}"
        head += [f"value, fsync {second['fsync']}", "ratio"]
    rows = [head]
    for figure in figures:
        cells = [_size(figure), figure["what"], figure["who"], *_values(figure)]
        rows.append(cells + (_values(again.get(_name(figure))) if both else []))
    used = [place for place in range(len(head)) if any(row[place] for row in rows[1:])]
    lines = [_row(row[place] for place in used) for row in (rows[0], ["---"] * len(head), *rows[1:])]
    ratios = dict.fromkeys(figure["ratio_of"] for figure in figures if figure["ratio_of"])
    lines += ["", *(f"Ratio: {ratio}." for ratio in ratios)] if ratios else []
    notes = dict.fromkeys(f"- {_noted(figure)}: {figure['note']}" for figure in figures if figure["note"])
    return [*lines, "", *notes] if notes else lines


def _noted(figure: Mapping[str, Any]) -> str:
    size = f", {figure['events']:,} events" if figure["events"] else ""
    return f"{figure['who']}, {figure['what']}{size}"


def _name(figure: Mapping[str, Any]) -> tuple[object, ...]:
    return figure["section"], figure["events"], figure["what"], figure["who"]


def _values(figure: Mapping[str, Any] | None) -> list[str]:
    if figure is None:
        return ["", ""]
    return [_spread(figure["value"], f" {figure['unit']}"), _spread(figure["ratio"])]


def _spread(spread: Mapping[str, Any] | None, unit: str = "") -> str:
    if spread is None:
        return ""
    around = f" ({_number(spread['least'])}–{_number(spread['most'])})" if spread["rounds"] > 1 else ""
    return f"{_number(spread['median'])}{unit}{around}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.3g}"


def _size(figure: Mapping[str, Any]) -> str:
    return f"{figure['events']:,}" if figure["events"] else ""


def _target(mark: Mapping[str, Any]) -> str:
    bounds = (("≥", mark["at_least"]), ("≤", mark["at_most"]))
    return " and ".join(f"{sign} {bound:g}" for sign, bound in bounds if bound is not None)


def _verdict(mark: Mapping[str, Any], spread: Mapping[str, Any]) -> str:
    verdict = Mark(**mark).judge(Spread(**spread))
    return f"**{verdict}**" if verdict is Verdict.MISSED else verdict.value


def _loaded(runs: Sequence[Mapping[str, Any]]) -> str:
    """Return what a reader must know where others kept the machine busy."""
    return LOADED if max(load for run in runs for load in run["load"]) > LOAD_QUIET_MAX else ""


def _cost(spread: Mapping[str, Any]) -> str:
    return f"{spread['median']:.0f} µs at p50, {spread['least']:.0f} at p10, {spread['most']:.0f} at p90, measured"


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
