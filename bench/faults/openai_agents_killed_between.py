"""A kill between clear and add empties the session.

A manual compaction clears the stored items and adds the compacted ones in a second transaction. An exception in
between is rolled back by hand; `kill -9` leaves nobody to do so. Ours has no such place: it is killed before and after
the commit of each transaction that its compaction makes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from agents import SQLiteSession
from agents.memory import OpenAIResponsesCompactionSession

import strandline
from bench.faults.shown import Shown, die, killed
from strandline.integrations.agent_memory import AgentMemory
from strandline.integrations.openai_agents import StrandlineSession

PACKAGE = "openai-agents"
FILLER = "It was looked at, and all was well. " * 20
ITEMS = [{"role": role, "content": f"Message {n}. {FILLER}"} for n in range(4) for role in ("user", "assistant")]


def stock(folder: Path) -> Shown:
    killed(compact_stock, folder)
    left = asyncio.run(SQLiteSession("release-42", folder / "agent.db").get_items())
    return Shown(held=bool(left), said=f"items before: {len(ITEMS)}; after the kill: {len(left)}")


def compact_stock(folder: Path) -> None:
    """Compact, and die as the compacted items are about to be added."""

    async def run() -> None:
        stored = SQLiteSession("release-42", folder / "agent.db")
        session = OpenAIResponsesCompactionSession("release-42", stored, client=compacting())
        await session.add_items(ITEMS)
        stored.add_items = dying
        await session.run_compaction({"force": True})

    asyncio.run(run())


async def dying(items: object) -> None:
    die()


def compacting() -> Any:
    """Return a client whose service answers with one compacted item."""

    async def compact(**request: object) -> object:
        return SimpleNamespace(output=[{"type": "compaction", "encrypted_content": "…"}], usage=None)

    return SimpleNamespace(responses=SimpleNamespace(compact=compact))


def ours(folder: Path) -> Shown:
    left = []
    for after in (False, True):
        for number in count(1):
            path = folder / f"{number}-{after}.db"
            if not killed(compact_ours, path, number, after):
                break
            with strandline.open(path) as db:
                left.append(len(asyncio.run(session_on(db).history())))
    said = f"items before: {len(ITEMS)}; after each of {len(left)} kills: {set(left)}"
    return Shown(held=set(left) == {len(ITEMS)}, said=said)


def compact_ours(path: Path, number: int, after: bool) -> None:
    """Compact, and die at the commit of a transaction, before or after it; with fewer transactions end by itself."""
    with strandline.open(path) as opened:
        asyncio.run(session_on(opened).add_items(ITEMS))
        session = session_on(strandline.Strandline(DyingStore(opened.store, number, after)))
        asyncio.run(session.run_compaction({"force": True}))


def session_on(db: strandline.Strandline) -> StrandlineSession:
    return StrandlineSession(AgentMemory(db.tenant("acme").workflow("release-42"), budget=500))


class DyingStore:
    """A store whose process dies at one of its commits; all else is the store's that it wraps."""

    def __init__(self, store: strandline.Store, number: int, after: bool) -> None:
        self._store, self._left, self._after = store, number, after

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    @contextmanager
    def write(self, scope: Any, *, joins: bool = True) -> Iterator[Any]:
        self._left -= 1
        with self._store.write(scope, joins=joins) as transaction:
            yield transaction
            if self._left == 0 and not self._after:
                die()
        if self._left == 0:
            die()
