"""Peers in the same run, each as its documentation shows it, on a file, with the durability that it sets itself.

They are no dependencies of Strandline: those that are not installed are named and left out. `make bench` installs all.
What each does with an event differs: the table's notes say it.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from itertools import count
from pathlib import Path
from typing import Protocol
from uuid import uuid4

import strandline
from strandline.bench import corpus
from strandline.bench.figures import BYTES, SPEED_OF_OURS, Figure, Line, compare, single
from strandline.bench.raw import bytes_on_disk
from strandline.bench.rounds import Prepare, Work, contest, walls
from strandline.bench.stage import Stage
from strandline.bench.writing import OURS

SIZES = (10_000, 100_000)
STATE_MESSAGES = 1_000  # of a peer that writes all of its state at each step
STORED_STEPS = 300  # so that such a peer's file stays below 100 MB
ROUND_EVENTS = 20
BATCH_EVENTS = 100
LAST_EVENTS = 200
LAST_CALLS = 10
FILL_EVENTS = 1_000

_SYNCHRONOUS = ("OFF", "NORMAL", "FULL", "EXTRA")


class Peer(Protocol):
    """What the comparison needs of a store of events."""

    note: str
    whole_state: bool  # each step writes all that there is

    def append(self, texts: Sequence[str]) -> None:
        """Store each text by a durable step of its own."""
        ...

    def append_many(self, texts: Sequence[str]) -> None:
        """Store the texts by one durable step."""
        ...

    def last(self, amount: int) -> int:
        """Read the newest events, and return how many came back."""
        ...

    def pragma(self, name: str) -> object:
        """Ask the connection that it writes with."""
        ...

    def close(self) -> None:
        """Release the file."""
        ...


class Ours:
    """Strandline, as in the other sections."""

    note = "keys, references, register, digests, chain; what is read is checked"
    whole_state = False

    def __init__(self, path: Path) -> None:
        self._path = path
        self._db = strandline.open(path)
        self._workflow = corpus.workflow(self._db)
        self._numbers = count()

    def _event(self, text: str) -> strandline.NewEvent:
        return strandline.message("assistant", text, key=f"e-{next(self._numbers)}")

    def append(self, texts: Sequence[str]) -> None:
        """Append one by one."""
        for text in texts:
            self._workflow.append(self._event(text))

    def append_many(self, texts: Sequence[str]) -> None:
        """Append all at once."""
        self._workflow.append([self._event(text) for text in texts])

    def last(self, amount: int) -> int:
        """Read a range of events."""
        newest = self._workflow.basis().revision
        return len(self._workflow.events(max(1, newest - amount + 1), newest))

    def pragma(self, name: str) -> object:
        """Ask the file; the level is that of `strandline.open`, FULL unless it is told otherwise."""
        if name == "synchronous":
            return "FULL"
        with closing(sqlite3.connect(self._path)) as connection:
            return _ask(connection, name)

    def close(self) -> None:
        """Close the store."""
        self._db.close()


class Eventsourcing:
    """The application recorder of `eventsourcing`, without its mapper."""

    note = "the recorder alone: bytes in, bytes out; optimistic concurrency by version"
    whole_state = False

    def __init__(self, path: Path) -> None:
        self._stored = import_module("eventsourcing.persistence").StoredEvent
        environment = import_module("eventsourcing.utils").Environment
        factory = import_module("eventsourcing.sqlite").SQLiteFactory
        self._factory = factory(environment(env={"SQLITE_DBNAME": str(path)}))
        self._recorder = self._factory.application_recorder()
        self._id = uuid4()
        self._versions = count(1)

    def _event(self, text: str) -> object:
        state = json.dumps({"role": "assistant", "text": text}).encode()
        return self._stored(self._id, next(self._versions), "bench:Message", state)

    def append(self, texts: Sequence[str]) -> None:
        """Insert one by one."""
        for text in texts:
            self._recorder.insert_events([self._event(text)])

    def append_many(self, texts: Sequence[str]) -> None:
        """Insert all at once."""
        self._recorder.insert_events([self._event(text) for text in texts])

    def last(self, amount: int) -> int:
        """Select the newest, and decode them."""
        found = self._recorder.select_events(self._id, desc=True, limit=amount)
        return len([json.loads(event.state) for event in found])

    def pragma(self, name: str) -> object:
        """Ask its connection."""
        with self._recorder.datastore.transaction(commit=False) as cursor:
            cursor.execute(f"PRAGMA {name}")
            return cursor.fetchone()[0]

    def close(self) -> None:
        """Close the factory."""
        self._factory.close()


class AgentsSession:
    """`SQLiteSession` of the OpenAI Agents SDK."""

    note = "JSON items; async over a thread; a row that is no JSON is skipped on reading"
    whole_state = False

    def __init__(self, path: Path) -> None:
        self._session = import_module("agents.memory.sqlite_session").SQLiteSession("bench", path)
        self._loop = asyncio.new_event_loop()

    def append(self, texts: Sequence[str]) -> None:
        """Add one by one."""

        async def each() -> None:
            for text in texts:
                await self._session.add_items([_item(text)])

        self._loop.run_until_complete(each())

    def append_many(self, texts: Sequence[str]) -> None:
        """Add all at once."""
        self._loop.run_until_complete(self._session.add_items([_item(text) for text in texts]))

    def last(self, amount: int) -> int:
        """Get the newest items."""
        return len(self._loop.run_until_complete(self._session.get_items(limit=amount)))

    def pragma(self, name: str) -> object:
        """Ask a connection as it makes them."""
        return _ask(self._session._get_connection(), name)

    def close(self) -> None:
        """Close the session and its loop."""
        self._session.close()
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()


class LangGraphSaver:
    """`SqliteSaver` of LangGraph, with a state that is a list of messages, as a graph hands it over at each step."""

    note = "put() writes the whole state at each step, get_tuple() reads it whole; only its newest version is read"
    whole_state = True

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, check_same_thread=False)
        self._saver = import_module("langgraph.checkpoint.sqlite").SqliteSaver(self._connection)
        self._empty = import_module("langgraph.checkpoint.base").empty_checkpoint
        self._config: object = {"configurable": {"thread_id": "bench", "checkpoint_ns": ""}}
        self._messages: list[dict[str, str]] = []

    def append(self, texts: Sequence[str]) -> None:
        """Put a checkpoint after each message."""
        for text in texts:
            self.append_many([text])

    def append_many(self, texts: Sequence[str]) -> None:
        """Put one checkpoint after all messages."""
        self._messages = [*self._messages, *map(_item, texts)]
        step = len(self._messages)
        checkpoint = {
            **self._empty(),
            "channel_values": {"messages": self._messages},
            "channel_versions": {"messages": step},
        }
        metadata = {"source": "loop", "step": step, "parents": {}}
        self._config = self._saver.put(self._config, checkpoint, metadata, {"messages": step})

    def last(self, amount: int) -> int:
        """Get the newest checkpoint, and take the end of its messages."""
        found = self._saver.get_tuple({"configurable": {"thread_id": "bench", "checkpoint_ns": ""}})
        return len(found.checkpoint["channel_values"]["messages"][-amount:])

    def pragma(self, name: str) -> object:
        """Ask its connection."""
        return _ask(self._connection, name)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


PEERS: dict[str, tuple[str, Callable[[Path], Peer]]] = {
    "eventsourcing": ("eventsourcing", Eventsourcing),
    "OpenAI Agents SDK SQLiteSession": ("openai-agents", AgentsSession),
    "LangGraph SqliteSaver": ("langgraph-checkpoint-sqlite", LangGraphSaver),
}


def _item(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}


def _ask(connection: sqlite3.Connection, name: str) -> object:
    return connection.execute(f"PRAGMA {name}").fetchone()[0]


def peers(stage: Stage) -> list[Figure]:
    """Measure the peers that are installed, beside Strandline."""
    makers: dict[str, Callable[[Path], Peer]] = {OURS: Ours}
    for name, (package, maker) in PEERS.items():
        try:
            makers[f"{name} {version(package)}"] = maker
        except PackageNotFoundError:
            stage.notes.append(f"{name} is not installed and was left out: pip install {package}")
            stage.say(stage.notes[-1])
    if len(makers) == 1:
        return []
    figures = []
    for size in sorted({stage.near(size) for size in SIZES}):
        figures += _at(stage, makers, size)
    return [*figures, *_storage(stage, makers)]


def _at(stage: Stage, makers: dict[str, Callable[[Path], Peer]], size: int) -> list[Figure]:
    stage.say(f"peers at {size:,} events")
    with ExitStack() as stack:
        there: dict[str, Peer] = {}
        for name, maker in makers.items():
            peer = maker(stage.fresh("peer"))
            stack.callback(peer.close)
            amount = min(size, STATE_MESSAGES) if peer.whole_state else size
            for first in range(0, amount, FILL_EVENTS):
                peer.append_many([corpus.text_of(number) for number in range(first, min(first + FILL_EVENTS, amount))])
            there[f"{name}, {amount:,} messages" if peer.whole_state else name] = peer
        notes = {name: f"{peer.note}; {_durability(peer)}" for name, peer in there.items()}
        numbers = count(size)

        def after_texts(amount: int, do: Callable[[Sequence[str]], None]) -> Prepare:
            def prepare() -> Work:
                texts = [corpus.text_of(next(numbers)) for _ in range(amount)]
                return lambda: do(texts)

            return prepare

        def newest(peer: Peer) -> Prepare:
            return lambda: lambda: peer.last(LAST_EVENTS)

        # Reads first: the appends make the state of a peer that keeps it whole grow.
        read = contest({name: newest(peer) for name, peer in there.items()}, stage.runs, LAST_CALLS)
        one = contest({name: after_texts(ROUND_EVENTS, peer.append) for name, peer in there.items()}, stage.runs)
        many = contest({name: after_texts(BATCH_EVENTS, peer.append_many) for name, peer in there.items()}, stage.runs)
    one_line = Line(section="peers", what="store one event of 1 KB, durable", unit="µs", events=size)
    many_line = Line(section="peers", what=f"store {BATCH_EVENTS} events of 1 KB at once", unit="µs", events=size)
    read_line = Line(section="peers", what=f"read the last {LAST_EVENTS} events, decoded", unit="µs", events=size)
    return [
        *compare(one_line, walls(one, 1e6 / ROUND_EVENTS), SPEED_OF_OURS, notes=notes),
        *compare(many_line, walls(many, 1e6), SPEED_OF_OURS),
        *compare(read_line, walls(read, 1e6), SPEED_OF_OURS),
    ]


def _durability(peer: Peer) -> str:
    level = peer.pragma("synchronous")
    named = _SYNCHRONOUS[level] if isinstance(level, int) and level < len(_SYNCHRONOUS) else level
    return f"journal_mode={peer.pragma('journal_mode')}, synchronous={named}"


def _storage(stage: Stage, makers: dict[str, Callable[[Path], Peer]]) -> list[Figure]:
    """Measure the file after one durable step per event."""
    figures = []
    for name, maker in makers.items():
        path = stage.fresh("peer-storage")
        texts = [corpus.text_of(number) for number in range(STORED_STEPS)]
        peer = maker(path)
        peer.append(texts)
        peer.close()
        plain = sum(len(text.encode()) for text in texts)
        line = Line(section="peers", what=f"{BYTES}, one step per event", unit="×", events=STORED_STEPS)
        figures.append(single(line, name, [bytes_on_disk(path) / plain]))
    return figures
