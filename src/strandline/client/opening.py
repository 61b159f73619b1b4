"""Open the store that a URL means."""

from __future__ import annotations

import os
from pathlib import Path

from strandline.errors import InvalidInputError, StoreUnavailableError
from strandline.ports import Clock, Entropy, Store
from strandline.stores.memory import MemoryStore
from strandline.stores.postgres import is_postgres_url, open_postgres
from strandline.stores.sqlite import SqliteStore


def open_store(url: str | os.PathLike[str], *, create: bool, durability: str, clock: Clock, entropy: Entropy) -> Store:
    """Open the store that a URL means. Arguments and errors are those of `strandline.open`."""
    if isinstance(url, str) and is_postgres_url(url):
        if durability != "full":
            raise InvalidInputError("the durability of a store on PostgreSQL is the server's: synchronous_commit")
        return open_postgres(url, clock=clock, entropy=entropy, create=create)
    path = path_of(url)
    if path == ":memory:":
        return MemoryStore(digest_key=entropy.salt() + entropy.salt())
    if not create and not Path(path).exists():
        raise StoreUnavailableError(f"{path}: no such store", hint="Append to it or import a file to make it.")
    return SqliteStore(path, clock=clock, entropy=entropy, durability=durability)


def path_of(url: str | os.PathLike[str]) -> str:
    """Return the path that a URL means; of a store on PostgreSQL, its URL.

    Raises:
        InvalidInputError: a URL of another kind.
    """
    text = os.fspath(url) if isinstance(url, str | os.PathLike) else url
    if not isinstance(text, str) or not text or "\0" in text:
        raise InvalidInputError(f"{url!r} is no path and no store URL")
    if text.startswith("sqlite:///"):
        return text.removeprefix("sqlite:///")
    if is_postgres_url(text):
        return text
    if "://" in text:
        kind = text.partition("://")[0]
        raise InvalidInputError(
            f"a store URL of another kind: {kind!r}; give a path, sqlite:///path, postgresql://… or :memory:"
        )
    return text
