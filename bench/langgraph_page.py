"""Write docs/results/langgraph.md from langgraph.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

INTRODUCTION = """\
# LangGraph's checkpoints, measured

Written by `{command}` from [langgraph.json](langgraph.json), on {date}, {cores} cores, load {load[0]} before and
{load[1]} after; {versions}. All competitors run in one process and take turns, a twentieth of the run at a time;
another one begins each time. A cell is the median of these blocks (least–most); a ratio over the run is of the sums.
Processor time is this process's own, without the database server's. Messages are 1 KB of random words; payload is their
text. *First read*: a saver that remembers nothing; *read again*: the one that saved, as in a process that serves the
thread's next turn. *× stock*: beside the stock saver of the same database and channel; below 1 it is slower.

What is dear is told, too: a first read is about three times slower than the stock saver's, since each part of the state
is read by itself, inflated and verified against its digest (I4), where the stock saver decodes one value. A process
pays it once for each thread.
"""
PUT = "## {turns:,} turns, one message and one checkpoint each, without a graph"
GRAPH = "## {turns:,} turns of a graph of one node: two messages, three checkpoints and their writes each"
GATE = """\
## What the middleware adds to a turn: {pairs} pairs

A turn of an agent of LangChain is two calls of a model that takes {model_ms:.0f} ms, and one of a tool; both agents
keep their checkpoints with `StrandlineSaver` on SQLite, durability "sync", and take turns. With `StrandlineMiddleware`
the context comes from the log, and the tool goes through the ledger of effects: four commits more. Beside it, on
the same disk: one row of 500 bytes that SQLite alone commits. A cell is the median (the middle two thirds).
"""
GATE_HEAD = "| a turn without, ms | more with it, ms | more processor ms | more, % | one commit alone, ms |"
HEAD = (
    "| who | on disk, × payload | turns/s | ms a turn | processor ms | last tenth ÷ first, processor | run, × stock"
    " | … processor | read again ms | × stock | first read ms | × stock |"
)


def write_page(folder: Path) -> None:
    """Write the page."""
    found = json.loads((folder / "langgraph.json").read_text(encoding="utf-8"))
    versions = ", ".join(f"{name} {number}" for name, number in found["versions"].items())
    lines = [INTRODUCTION.format(**{**found, "versions": versions})]
    for name, title in (("put", PUT), ("graph", GRAPH)):
        part = found["parts"].get(name)
        if part:
            lines += [
                title.format(**part),
                "",
                HEAD,
                "|" + " --- |" * HEAD.count(" |"),
                *map(_row, part["figures"]),
                "",
            ]
        if part and name == "put":
            lines += [*_marks(part["figures"]), ""]
    if gate := found["parts"].get("gate"):
        lines += _gate(gate)
    (folder / "langgraph.md").write_text("\n".join(lines), encoding="utf-8")


def _row(figure: dict[str, Any]) -> str:
    cells = [
        figure["who"],
        f"{figure['storage_x_payload']:.3g}",
        f"{figure['turns_per_s']:.0f}",
        _spread(figure["ms_per_turn"]["wall"]),
        _spread(figure["ms_per_turn"]["cpu"]),
        f"{figure['last_to_first_decile']['cpu']:.2g}",
        f"{figure['run_faster_x']['wall']:.2g}",
        f"{figure['run_faster_x']['cpu']:.2g}",
    ]
    for how in ("again", "first"):
        cells += [_spread(figure["read_ms"][how]["wall"]), _spread(figure["read_faster_x"][how])]
    return f"| {' | '.join(cells)} |"


def _gate(gate: dict[str, Any]) -> list[str]:
    cells = [gate["wall"]["without_ms"], gate["wall"]["more_ms"], gate["cpu"]["more_ms"]]
    share = gate["more_share"]
    row = [*map(_spread, cells), f"{share * 100:.1f}", _spread(gate["raw_commit_ms"])]
    return [
        GATE.format(**gate),
        GATE_HEAD,
        "|" + " --- |" * len(row),
        f"| {' | '.join(row)} |",
        "",
        "| mark | found | |",
        "| --- | --- | --- |",
        f"| at most 2 % of the turn | {share * 100:.1f} % | {'met' if share <= 0.02 else '**missed**'} |",
        "",
    ]


def _spread(spread: dict[str, float]) -> str:
    return "{median:.3g} ({least:.3g}–{most:.3g})".format(**spread)


def _marks(figures: list[dict[str, Any]]) -> list[str]:
    """Return the table of marks, met or not."""
    lines = ["| mark | who | found | |", "| --- | --- | --- | --- |"]
    for figure in figures:
        if figure["who"].startswith("Strandline"):
            for mark, value, met in (
                ("on disk at most 2 × payload", figure["storage_x_payload"], figure["storage_x_payload"] <= 2),
                (
                    "run at least 5 × the stock saver's",
                    figure["run_faster_x"]["wall"],
                    figure["run_faster_x"]["wall"] >= 5,
                ),
                *(
                    (f"{what} at least 5 × the stock saver's", one["median"], one["median"] >= 5)
                    for what, one in (
                        ("read again", figure["read_faster_x"]["again"]),
                        ("first read", figure["read_faster_x"]["first"]),
                    )
                ),
                (
                    "flat: last tenth at most 1.5 × the first, processor time",
                    figure["last_to_first_decile"]["cpu"],
                    figure["last_to_first_decile"]["cpu"] <= 1.5,
                ),
            ):
                lines.append(f"| {mark} | {figure['who']} | {value:.3g} | {'met' if met else '**missed**'} |")
    return lines
