"""Measure LangGraph's checkpoints here beside the stock savers, in one run: bytes, turns, reads.

    python -m bench.langgraph [--turns 2000] [--graph-turns 500] [--pairs 60] [--page-only]

Competitors take turns in blocks of a twentieth of the run, and ratios are taken block by block: what disturbs one,
disturbs all. Written to docs/results/langgraph.json and langgraph.md.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import random
import sqlite3
import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import psycopg
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import BaseCheckpointSaver, empty_checkpoint
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import _messages_delta_reducer
from typing_extensions import TypedDict

import strandline
from bench.langgraph_gate import HOW, measure_gate
from bench.langgraph_page import write_page
from strandline.bench.rounds import Timing, timed
from strandline.integrations.langgraph import StrandlineSaver
from tools.servers import start_postgres

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "docs" / "results"
POSTGRES_VERSION = 18
BLOCKS = 20
READS = 15
MESSAGE_BYTES = 1024
TurnOf = Callable[[Any, Iterator[str]], Callable[[], None]]  # of a saver and what is said
THREAD = {"configurable": {"thread_id": "bench", "checkpoint_ns": ""}}


def texts(count: int) -> list[str]:
    """Return messages of random words, one kilobyte each: made before anything is timed."""
    chance = random.Random(1)
    words = ["".join(chance.choice("abcdefghijklmnop") for _ in range(chance.randint(2, 9))) for _ in range(2_000)]
    return [" ".join(chance.choice(words) for _ in range(250))[:MESSAGE_BYTES] for _ in range(count)]


@dataclass
class Competitor:
    """A saver that is measured, and what was measured of it."""

    name: str
    saver: BaseCheckpointSaver[Any]
    turn: Callable[[], None]
    size: Callable[[], int]  # bytes, now
    fresh: Callable[[], BaseCheckpointSaver[Any]]
    empty: int = 0
    blocks: list[Timing] = field(default_factory=list)
    reads: dict[str, list[Timing]] = field(default_factory=dict)


def by_hand(saver: BaseCheckpointSaver[Any], said: Iterator[str]) -> Callable[[], None]:
    """Return a turn without a graph: one more message, one checkpoint."""
    config: Any = THREAD
    messages: list[HumanMessage] = []
    number: Any = None

    def turn() -> None:
        nonlocal config, messages, number
        messages = [*messages, HumanMessage(next(said), id=f"message-{len(messages)}")]
        number = saver.get_next_version(number, None)
        checkpoint = empty_checkpoint()
        checkpoint["id"] = str(uuid6(clock_seq=len(messages)))
        checkpoint["channel_values"] = {"messages": messages}
        checkpoint["channel_versions"] = {"messages": number}
        config = saver.put(config, checkpoint, {"source": "loop", "step": len(messages)}, {"messages": number})

    return turn


class Delta(TypedDict):
    messages: Annotated[list[Any], DeltaChannel(_messages_delta_reducer, snapshot_frequency=100)]


def by_graph(saver: BaseCheckpointSaver[Any], said: Iterator[str], state: type) -> Callable[[], None]:
    """Return a turn of a graph of one node: two more messages, three checkpoints."""
    graph: Any = StateGraph(state)
    graph.add_node("answer", lambda state: {"messages": [AIMessage(next(said))]})
    graph.add_edge(START, "answer")
    compiled = graph.compile(checkpointer=saver)
    return lambda: compiled.invoke({"messages": [HumanMessage(next(said))]}, THREAD, durability="sync") and None


def competitors(stack: ExitStack, turns: Mapping[str, TurnOf], said: list[str]) -> list[Competitor]:
    """Open a store for each; `turns` says by name what each does with what is said."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="strandline-bench-")))
    server = None
    found = []
    for number, (name, turn) in enumerate(turns.items()):
        saver: Any
        if "PostgreSQL" in name:
            server = server or stack.enter_context(start_postgres(POSTGRES_VERSION, durable=True))
            url = server.create_database(f"bench_{number}")
            size = lambda url=url: database_bytes(url)  # noqa: E731
        else:
            url = str(folder / f"{number}.db")
            size = lambda url=url: file_bytes(url)  # noqa: E731
        if name.startswith("Strandline"):
            tenant = stack.enter_context(strandline.open(url)).tenant("bench")
            saver = StrandlineSaver(tenant)
            fresh = lambda tenant=tenant: StrandlineSaver(tenant)  # noqa: E731
        else:
            kind: Any = PostgresSaver if "PostgreSQL" in name else SqliteSaver
            saver = stack.enter_context(kind.from_conn_string(url))
            saver.setup()
            fresh = lambda saver=saver: saver  # noqa: E731 - it remembers nothing
        found.append(Competitor(name, saver, turn(saver, iter(said)), size, fresh, empty=size()))
    return found


def file_bytes(path: str) -> int:
    sqlite3.connect(path).execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return Path(path).stat().st_size


def database_bytes(url: str) -> int:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM")
        row = connection.execute("SELECT pg_database_size(current_database())").fetchone()
        return row[0] if row else 0


def run(all_of_them: list[Competitor], turns: int) -> None:
    """Let all do their turns, block by block, another one first each time; then let all read the newest."""
    gc.collect()
    gc.freeze()  # what was imported is not looked through again
    for block in range(BLOCKS):
        first = block % len(all_of_them)
        for one in all_of_them[first:] + all_of_them[:first]:
            one.blocks.append(timed(lambda one=one: [one.turn() for _ in range(turns // BLOCKS)]))
        if (block + 1) % (BLOCKS // 4) == 0:
            print(f"  {(block + 1) * turns // BLOCKS:,} of {turns:,} turns", flush=True)
    for _ in range(READS):
        for one in all_of_them:
            for how, saver in (("again", one.saver), ("first", one.fresh())):
                one.reads.setdefault(how, []).append(timed(lambda saver=saver: saver.get_tuple(THREAD)))


def spread(values: list[float]) -> dict[str, float]:
    return {"median": statistics.median(values), "least": min(values), "most": max(values)}


def figures(all_of_them: list[Competitor], turns: int, payload: int) -> list[dict[str, Any]]:
    """Return what was measured of each, and beside the stock saver of the same database and channel."""
    found = []
    for one in all_of_them:
        where = one.name.partition(", ")[2]  # the database, and the channel
        stock = next(o for o in all_of_them if o.name.startswith("stock") and o.name.endswith(where))
        per_turn = {how: [took(block) * BLOCKS / turns * 1e3 for block in one.blocks] for how, took in HOW.items()}
        decile = BLOCKS // 10
        found.append(
            {
                "who": one.name,
                "beside": stock.name,
                "storage_x_payload": (one.size() - one.empty) / payload,
                "turns_per_s": turns / sum(block.wall_s for block in one.blocks),
                "ms_per_turn": {how: spread(blocks) for how, blocks in per_turn.items()},
                "last_to_first_decile": {
                    how: sum(blocks[-decile:]) / sum(blocks[:decile]) for how, blocks in per_turn.items()
                },
                "run_faster_x": {
                    how: sum(map(took, stock.blocks)) / sum(map(took, one.blocks)) for how, took in HOW.items()
                },
                "read_ms": {
                    which: {how: spread([took(read) * 1e3 for read in reads]) for how, took in HOW.items()}
                    for which, reads in one.reads.items()
                },
                "read_faster_x": {
                    which: spread([s.wall_s / o.wall_s for s, o in zip(stock.reads[which], reads, strict=True)])
                    for which, reads in one.reads.items()
                },
            }
        )
    return found


def measure(turns: int, graph_turns: int, pairs: int, keep: Callable[[dict[str, Any]], object]) -> None:
    """Measure, and keep what there is after each part."""
    names = (
        "Strandline, SQLite",
        "stock SqliteSaver, SQLite",
        "Strandline, PostgreSQL",
        "stock PostgresSaver, PostgreSQL",
    )
    graphs: dict[str, TurnOf] = {
        "Strandline, SQLite, messages": lambda saver, said: by_graph(saver, said, MessagesState),
        "Strandline, SQLite, DeltaChannel": lambda saver, said: by_graph(saver, said, Delta),
        "stock SqliteSaver, SQLite, messages": lambda saver, said: by_graph(saver, said, MessagesState),
        "stock SqliteSaver, SQLite, DeltaChannel": lambda saver, said: by_graph(saver, said, Delta),
    }
    load = [round(os.getloadavg()[0], 1)]
    packages = ("langgraph", "langgraph-checkpoint", "langgraph-checkpoint-sqlite", "langgraph-checkpoint-postgres")
    parts: dict[str, Any] = {}
    found = {
        "command": "make bench-langgraph",
        "date": datetime.now(UTC).date().isoformat(),
        "cores": os.cpu_count(),
        "load": load,
        "versions": {
            "Python": platform.python_version(),
            "SQLite": sqlite3.sqlite_version,
            "PostgreSQL": str(POSTGRES_VERSION),
            **{name: version(name) for name in packages},
        },
        "parts": parts,
    }
    if pairs:
        print(f"gate: {pairs} pairs of turns, with the middleware and without", flush=True)
        parts["gate"] = measure_gate(pairs)
        keep({**found, "load": [*load, round(os.getloadavg()[0], 1)]})
    for part, turns_of, count, messages in (
        ("put", dict.fromkeys(names, by_hand), turns, turns),
        ("graph", graphs, graph_turns, 2 * graph_turns),
    ):
        if count:
            print(f"{part}: {count:,} turns of {len(turns_of)}", flush=True)
            with ExitStack() as stack:
                ours = competitors(stack, turns_of, texts(messages))
                run(ours, count)
                parts[part] = {"turns": count, "figures": figures(ours, count, messages * MESSAGE_BYTES)}
            keep({**found, "load": [*load, round(os.getloadavg()[0], 1)]})


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=2_000, help="without a graph; 0: none")
    parser.add_argument("--graph-turns", type=int, default=500, help="of a graph; 0: none")
    parser.add_argument("--pairs", type=int, default=60, help="of turns with the middleware and without; 0: none")
    parser.add_argument("--page-only", action="store_true", help="write the page from langgraph.json, measure nothing")
    asked = parser.parse_args()
    path = RESULTS / "langgraph.json"
    if not asked.page_only:
        measure(asked.turns, asked.graph_turns, asked.pairs, lambda found: path.write_text(json.dumps(found, indent=1)))
    write_page(RESULTS)


if __name__ == "__main__":
    main()
