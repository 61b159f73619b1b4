"""SQLite as a side of a copy, and its backup while it is written to (C6, ADR 0045)."""

from __future__ import annotations

import errno
import os
import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final

from strandline.errors import InvalidInputError, StoreUnavailableError
from strandline.limits import BACKUP_STEP_PAGES, COPY_FETCH_ROWS
from strandline.stores.sql.session import Row
from strandline.stores.sqlite.session import SQLITE_RAISES, map_error
from strandline.stores.sqlite.store import SqliteStore

_UNFINISHED: Final = ".unfinished"


class SqliteEnd:
    """`stores.sql.transfer.End` over one file."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self.place = store.path

    @contextmanager
    def reading(self) -> Iterator[_Rows]:
        with _mapped(self.place), closing(self._store.connect(read_only=True)) as connection:
            connection.execute("BEGIN")
            yield _Rows(connection, self.place)
            connection.execute("ROLLBACK")

    @contextmanager
    def writing(self) -> Iterator[_Target]:
        with _mapped(self.place), closing(self._store.connect(read_only=False)) as connection:
            yield _Target(connection, self.place)  # a transaction that is open when it closes is undone

    def close(self) -> None:
        self._store.close()


class _Rows:
    """`Reading`: one snapshot, which stands from the first statement on."""

    def __init__(self, connection: sqlite3.Connection, place: str) -> None:
        self._connection = connection
        self._place = place

    def columns(self, table: str) -> tuple[str, ...]:
        return tuple(row[0] for row in self.rows("SELECT name FROM pragma_table_info(:name)", name=table))

    def rows(self, statement: str, **parameters: object) -> list[Row]:
        with _mapped(self._place):
            return self._connection.execute(statement, parameters).fetchall()

    def stream(self, statement: str, **parameters: object) -> Iterator[Row]:
        with _mapped(self._place):
            cursor = self._connection.execute(statement, parameters)
            while page := cursor.fetchmany(COPY_FETCH_ROWS):
                yield from page


class _Target(_Rows):
    """`Writing`. SQLite knows of no tenants, and takes its numbers from the highest row."""

    def rows(self, statement: str, **parameters: object) -> list[Row]:
        with _mapped(self._place):
            self._begin()
            return self._connection.execute(statement, parameters).fetchall()

    def _begin(self) -> None:
        if not self._connection.in_transaction:
            self._connection.execute("BEGIN IMMEDIATE")

    def all_rows(self, statement: str, **parameters: object) -> list[Row]:
        return self.rows(statement, **parameters)

    def set_meta(self, name: str, value: bytes) -> None:
        statement = "INSERT OR REPLACE INTO store_meta (name, value) VALUES (:name, :value)"
        self.run_many(statement, [{"name": name, "value": value}])

    def enter(self, tenant: str, tenant_id: int) -> None:
        pass

    def run_many(self, statement: str, rows: Iterable[Mapping[str, object]]) -> None:
        with _mapped(self._place):
            self._begin()
            self._connection.executemany(statement, rows)

    def commit(self) -> None:
        with _mapped(self._place):
            if self._connection.in_transaction:
                self._connection.execute("COMMIT")

    def finish(self) -> None:
        pass


@contextmanager
def _mapped(place: str) -> Iterator[None]:
    try:
        yield
    except SQLITE_RAISES as error:
        raise map_error(error, place) from error


@contextmanager
def new_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a file that is written beside `path`; leaving normally makes it durable and gives it that name at once.

    Raises:
        InvalidInputError: something has that name; it is left alone.
        StoreUnavailableError: the folder is not there, or can't be written to; nothing has the name.
    """
    wanted = Path(path)
    if not wanted.name or os.path.lexists(wanted):
        raise _taken(wanted)
    try:
        handle, name = tempfile.mkstemp(prefix=f"{wanted.name}-", suffix=_UNFINISHED, dir=wanted.parent)
    except OSError as error:
        raise StoreUnavailableError(f"{wanted}: {error.strerror}; nothing was written") from error
    os.close(handle)  # its mode is 0600: memories of agents are nobody else's
    file = Path(name)
    try:
        yield file
        _name_it(file, wanted)
    finally:
        for left in (file, Path(f"{file}-wal"), Path(f"{file}-shm")):
            with suppress(OSError):  # it is whole under its own name, or refused: a rest changes neither
                left.unlink(missing_ok=True)


def _taken(path: Path) -> InvalidInputError:
    return InvalidInputError(f"{path} is there already; nothing was written", hint="Name a file that is not there.")


def _name_it(file: Path, wanted: Path) -> None:
    """Flush the file, give it its name, and flush that."""
    try:
        with file.open("rb+") as written:
            os.fsync(written.fileno())
        _link(file, wanted)
        try:
            _flush_folder(wanted.parent)
        except OSError:
            wanted.unlink()
            raise
    except OSError as error:
        raise StoreUnavailableError(f"{wanted}: {error.strerror}; nothing was written") from error


def _link(file: Path, wanted: Path) -> None:
    try:
        os.link(file, wanted)  # fails where something has the name by now; a rename would overwrite it
    except FileExistsError as error:
        raise _taken(wanted) from error
    except OSError:  # a file system without hard links
        if wanted.exists():
            raise _taken(wanted) from None
        file.rename(wanted)


def _flush_folder(folder: Path) -> None:
    try:
        opened = os.open(folder, os.O_RDONLY)
    except OSError:  # not every system can open a folder
        return
    try:
        os.fsync(opened)
    except OSError as error:
        if error.errno != errno.EINVAL:  # nor flush it
            raise
    finally:
        os.close(opened)


def backup_file(store: SqliteStore, path: Path, progress: Callable[[int, int], None] | None = None) -> tuple[int, int]:
    """Copy the pages of one snapshot of a store into an empty file; writers go on meanwhile.

    Returns the numbers of workflows and events in it. The read transaction is what keeps the snapshot: without it
    SQLite's backup begins anew whenever another connection writes, and never ends beside busy writers.
    """
    place = store.path
    with _mapped(place), closing(store.connect(read_only=True)) as source:
        source.execute("BEGIN")
        counted: tuple[int, int] = source.execute(
            "SELECT COUNT(*), COALESCE(SUM(revision - fork_seq), 0) FROM workflow"
        ).fetchone()
        with closing(sqlite3.connect(path, isolation_level=None)) as target:
            target.execute("PRAGMA synchronous=OFF")  # it is flushed once, at the end

            def step(_: int, left: int, total: int) -> None:
                if progress is not None:
                    progress(total - left, total)

            source.backup(target, pages=BACKUP_STEP_PAGES, progress=step, sleep=0)
        source.execute("ROLLBACK")
    return counted
