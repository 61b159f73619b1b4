"""Copy a store to another place, and back one up while it is used (C6, ADR 0045)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from strandline.client.opening import path_of
from strandline.errors import InvalidInputError, StoreUnavailableError
from strandline.limits import COPY_PASSES_MAX
from strandline.model.moving import BackupReport, CopyReport
from strandline.ports import Store
from strandline.stores.postgres import is_postgres_url, open_postgres
from strandline.stores.postgres.place import read_url
from strandline.stores.sql.transfer import End
from strandline.stores.sql.transfer_out import begin_run
from strandline.stores.sql.transfer_pass import run_pass
from strandline.stores.sqlite import SqliteStore
from strandline.stores.sqlite.transfer import SqliteEnd, backup_file, new_file
from strandline.system import SystemClock, SystemEntropy

MoveProgress = Callable[[int, int], None]


def copy_store(
    source: str | os.PathLike[str], target: str | os.PathLike[str], *, progress: MoveProgress | None = None
) -> CopyReport:
    """Copy a store: every row keeps its ids, bytes and digests. Repeat it to go on where it was cut off, or to take
    what the source got since.

    Each pass copies one snapshot of the source; passes are made until one finds nothing new, at most COPY_PASSES_MAX.

    Args:
        source: the store, as `open` takes it.
        target: a place where no store is, an empty store, or a copy of this one.
        progress: told of how many events, of how many, a pass has walked over.

    Raises:
        InvalidInputError: the target is another store, or was written to since it was copied; it is as it was.
        StoreUnavailableError: one of them can't be opened, read or written; what was copied stays, and the target is
            refused by `open` until the copy has finished.
    """
    if _same_place(source, target):
        raise InvalidInputError("source and target are the same store")
    with _end(source, create=False) as old, _end(target, create=True) as new:
        return _copy(old, new, COPY_PASSES_MAX, progress)


def back_up(store: Store, path: str | os.PathLike[str], progress: MoveProgress | None = None) -> BackupReport:
    """Copy an open store into a new SQLite file; arguments and errors are those of `Strandline.backup`."""
    if isinstance(store, SqliteStore):
        with new_file(path) as file:
            workflows, events = backup_file(store, file, progress)
    else:
        end = _end_of(store)
        with new_file(path) as file, _end(file, create=True) as new:
            copied = _copy(end, new, 1, progress)  # one pass: one moment
            workflows, events = copied.workflows, copied.events
    size_bytes = Path(path).stat().st_size
    return BackupReport(path=os.fspath(path), size_bytes=size_bytes, workflows=workflows, events=events)


def _copy(old: End, new: End, passes_max: int, progress: MoveProgress | None) -> CopyReport:
    rows = passes = 0
    with new.writing() as writing:
        with old.reading() as reading:
            run = begin_run(reading, writing, old.place, new.place)
        while True:
            with old.reading() as reading:
                found = run_pass(reading, writing, run, progress, check=not passes)
            rows, passes = rows + found.rows, passes + 1
            settled = not found.rows
            if settled or passes == passes_max or found.differing:
                return CopyReport(
                    source=old.place,
                    target=new.place,
                    workflows=found.workflows,
                    events=found.events,
                    rows=rows,
                    passes=passes,
                    settled=settled,
                    differing=found.differing,
                    heads=found.heads,
                )


@contextmanager
def _end(url: str | os.PathLike[str], *, create: bool) -> Iterator[End]:
    path = path_of(url)
    if is_postgres_url(path):
        yield _postgres_end(path, create=create)
        return
    if path == ":memory:":
        raise InvalidInputError("a store in memory can't be copied; give a path or a URL")
    if not create and not os.path.exists(path):  # noqa: PTH110  a name that can't be is none that is there
        raise StoreUnavailableError(f"{path}: no such store", hint="Name the store that is to be copied.")
    store = SqliteStore(path, clock=SystemClock(), entropy=SystemEntropy(), unfinished=create)
    with closing(SqliteEnd(store)) as end:
        yield end


def _postgres_end(url: str, *, create: bool) -> End:
    """Open a store on PostgreSQL as any other, so that it is there and up to date, and return it as a side."""
    open_postgres(url, clock=SystemClock(), entropy=SystemEntropy(), create=create, unfinished=create).close()
    from strandline.stores.postgres.transfer import PostgresEnd

    return PostgresEnd(read_url(url))


def _end_of(store: Store) -> End:
    if store.path is not None and is_postgres_url(store.path):
        from strandline.stores.postgres.store import PostgresStore
        from strandline.stores.postgres.transfer import PostgresEnd

        if isinstance(store, PostgresStore):
            return PostgresEnd(store.place)
    raise InvalidInputError("a store in memory has no backup; nothing was written")


def _same_place(source: str | os.PathLike[str], target: str | os.PathLike[str]) -> bool:
    one, other = path_of(source), path_of(target)
    if is_postgres_url(one) or is_postgres_url(other):
        return one == other
    return os.path.realpath(one) == os.path.realpath(other)
