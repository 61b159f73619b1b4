"""Open the store that a URL means."""

from __future__ import annotations

import os
from pathlib import Path

from strandline.errors import InvalidInputError, StoreUnavailableError
from strandline.ports import Clock, Entropy, Store
from strandline.stores.memory import MemoryStore
from strandline.stores.postgres import is_postgres_url, migrate_postgres, open_postgres
from strandline.stores.postgres.place import read_url
from strandline.stores.sqlite import SqliteStore
from strandline.system import SystemClock, SystemEntropy


def open_store(url: str | os.PathLike[str], *, create: bool, durability: str, clock: Clock, entropy: Entropy) -> Store:
    """Open the store that a URL means. Arguments and errors are those of `strandline.open`."""
    path = path_of(url)
    if is_postgres_url(path):
        if durability != "full":
            raise InvalidInputError("the durability of a store on PostgreSQL is the server's: synchronous_commit")
        return open_postgres(path, clock=clock, entropy=entropy, create=create)
    if path == ":memory:":
        return MemoryStore(digest_key=entropy.salt() + entropy.salt())
    if not create and not os.path.exists(path):  # noqa: PTH110  a name that can't be is none that is there
        raise StoreUnavailableError(f"{path}: no such store", hint="Append to it or import a file to make it.")
    return SqliteStore(path, clock=clock, entropy=entropy, durability=durability)


def migrate_store(url: str, *, post: bool) -> list[str]:
    """Bring a store up to date; `post`: also with what waits until every process runs this version. On PostgreSQL,
    where who uses it may not make it, a missing one is made. Return the migrations that were applied there.

    Raises:
        StoreUnavailableError: as `strandline.open`; of a file also that it is not there.
    """
    clock, entropy = SystemClock(), SystemEntropy()
    path = path_of(url)
    if is_postgres_url(path):
        return migrate_postgres(path, clock=clock, entropy=entropy, post=post)
    open_store(path, create=False, durability="full", clock=clock, entropy=entropy).close()
    return []


def shown_url(url: str) -> str:
    """Return a store's URL as it may be shown: without its password."""
    return read_url(url).shown if is_postgres_url(url) else url


def file_of(url: str) -> Path | None:
    """Return the file of a store; None where it has none."""
    path = path_of(url)
    return None if path == ":memory:" or is_postgres_url(path) else Path(path)


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
