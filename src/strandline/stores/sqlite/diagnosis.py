"""Look at a store from outside and say what to do: nothing is migrated, and no byte of the store is changed.

A store that nobody has open has no WAL; it is read as a file that does not change, so that none is made. Otherwise it
is read as any other reader does.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import Final
from urllib.parse import quote

from strandline.limits import (
    CLOCK_BEHIND_S_MAX,
    DOCTOR_BUSY_TIMEOUT_S,
    DOCTOR_CHECK_BYTES_MAX,
    FREE_PAGES_SHARE_MAX,
    WAL_BYTES_LARGE,
)
from strandline.model.diagnosis import Check, Trouble, failed, passed, warned
from strandline.stores.migrate import read_migrations
from strandline.stores.sql.diagnosis import check_meta, check_schema, check_work
from strandline.stores.sqlite.place import in_bytes, look_at_files, look_at_place, size_of
from strandline.stores.sqlite.raw import Connection, read_pieces
from strandline.stores.sqlite.session import SQLITE_RAISES, map_error
from strandline.stores.sqlite.store import APPLICATION_ID

SQLITE_MIN: Final = (3, 39, 0)
_WAL_RESET_FIXED: Final = ((3, 44, 6), (3, 50, 7), (3, 51, 3))  # sqlite.org/wal.html, "The WAL-Reset Bug"
_MAGIC: Final = b"SQLite format 3\0"
_HEADER_BYTES: Final = 100
_BACKUP: Final = "Restore the file from a backup; nothing was changed."
_SECOND_US: Final = 1_000_000
_BUSY: Final = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def diagnose(path: Path, now_us: int, *, deep: bool = False) -> Iterator[Check]:
    """Yield the checks of a store; those that need what is not there are left out.

    Args:
        path: the store's file.
        now_us: the time, to judge leases and the clock by.
        deep: read all pages, however large the store is.
    """
    yield _library(sqlite3.sqlite_version_info)
    try:
        yield from _look(path, now_us, deep=deep)
    except OSError as error:
        value = f"can't be read: {error.strerror or error}"
        yield failed("store", value, "Correct the path, or see its permissions.", Trouble.UNAVAILABLE)


def _look(path: Path, now_us: int, *, deep: bool) -> Iterator[Check]:
    if not path.parent.is_dir():
        yield failed("store", "the folder is not there", f"Make {path.parent} first.", Trouble.UNAVAILABLE)
        return
    yield from look_at_place(path)
    if not path.exists():
        advice = "`strandline import FILE` or `append` makes it; or name another with --store."
        yield failed("store", "not there", advice, Trouble.UNAVAILABLE)
        return
    if not path.is_file():
        yield failed("store", "no file", "Give the path of a file.", Trouble.UNAVAILABLE)
        return
    header = next(read_pieces(path, _HEADER_BYTES), b"")
    if not header:
        yield warned("store", "an empty file", "The first command that writes makes a store of it.")
        return
    told = _header(header)
    yield told
    if told.trouble is None:
        yield from look_at_files(path)
        yield _durability()
        yield from _content(path, now_us, deep=deep)


def _library(version: tuple[int, int, int]) -> Check:
    """Check the SQLite that Python was built with."""
    with closing(sqlite3.connect(":memory:")) as connection:
        options = {row[0] for row in connection.execute("PRAGMA compile_options")}
    threads = next((option for option in options if option.startswith("THREADSAFE=")), "THREADSAFE=?")
    text = ".".join(map(str, version))
    value, measured = f"{text}, {threads}", {"version": text, "options": sorted(options)}
    upgrade = "Use a Python with a newer SQLite."
    if version < SQLITE_MIN or "OMIT_WAL" in options or threads == "THREADSAFE=0":
        least = ".".join(map(str, SQLITE_MIN))
        why = f"{value}; {least} or newer is needed, with WAL and threads"
        return failed("SQLite", why, upgrade, Trouble.UNAVAILABLE, **measured)
    if not any(version[:2] == fixed[:2] and version >= fixed for fixed in _WAL_RESET_FIXED) and version < (3, 51, 3):
        advice = f"{upgrade} Before 3.51.3 two processes at a checkpoint can, rarely, damage the file."
        return warned("SQLite", value, advice, **measured)
    return passed("SQLite", value, **measured)


def _header(header: bytes) -> Check:
    """Check the first bytes: whose file it is, and how it is journalled."""
    if not header.startswith(_MAGIC) or len(header) < _HEADER_BYTES:
        advice = f"If it was a store: {_BACKUP}"
        return failed("store", "no store, or its first bytes are damaged", advice, Trouble.CORRUPT)
    application = int.from_bytes(header[68:72], "big")
    if application not in (0, APPLICATION_ID):
        value = f"an SQLite file of another program (application id {application:#010x})"
        return failed("store", value, "Name another with --store.", Trouble.UNAVAILABLE)
    if header[18:20] != b"\2\2":
        value = "not in WAL mode"
        advice = "Something changed its journal mode: PRAGMA journal_mode=WAL sets it back."
        return warned("store", value, advice)
    return passed("store", "a Strandline store in WAL mode")


def _durability() -> Check:
    """Say what a commit survives. It is a setting of each process that opens the file, not of the file."""
    value = "full, unless a program opens it with durability='normal'"
    if sys.platform == "darwin":
        return warned("durability", value, "macOS may not flush its disk's own cache: power loss may cost commits.")
    return passed("durability", value)


def _content(path: Path, now_us: int, *, deep: bool) -> Iterator[Check]:
    """Look into the file. Where nobody has it open there is no WAL; if one came meanwhile, look again."""
    wal = Path(f"{path}-wal")
    checks = [] if wal.exists() else list(_opened(path, now_us, deep=deep, immutable=True))
    yield from _opened(path, now_us, deep=deep, immutable=False) if wal.exists() else checks


def _opened(path: Path, now_us: int, *, deep: bool, immutable: bool) -> Iterator[Check]:
    """Open the file for reading only, and look into it in one transaction."""
    uri = f"file:{quote(str(path.resolve()))}?mode=ro{'&immutable=1' if immutable else ''}"
    try:
        connection = sqlite3.connect(
            uri, uri=True, timeout=DOCTOR_BUSY_TIMEOUT_S, isolation_level=None, factory=Connection
        )
        with closing(connection):
            connection.enter(path)
            connection.execute("PRAGMA query_only=ON")
            connection.execute("BEGIN")
            yield from _tables(connection, path, now_us, deep=deep)
    except sqlite3.OperationalError as error:
        if (getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF in _BUSY:
            advice = "Another process holds the file for itself alone: end it, or wait."
            yield failed("lock", str(error), advice, Trouble.UNAVAILABLE)
        else:
            yield failed("read", str(error), "See permissions and file system.", Trouble.UNAVAILABLE)
    except SQLITE_RAISES as error:
        yield failed("read", str(map_error(error, str(path))), _BACKUP, Trouble.CORRUPT)


def _tables(connection: sqlite3.Connection, path: Path, now_us: int, *, deep: bool) -> Iterator[Check]:
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not tables:
        yield warned("schema", "none", "The first command that writes makes a store of it.")
        return
    if "schema_migration" not in tables:
        value = "an SQLite file of another program"
        yield failed("schema", value, "Name another with --store.", Trouble.UNAVAILABLE)
        return
    schema = _schema(connection)
    yield schema
    yield _pages(connection, path)
    yield _integrity(connection, path, deep=deep)
    if schema.trouble is None:
        yield from check_meta(dict(connection.execute("SELECT name, value FROM store_meta")), str(path))
        yield from _work(connection, now_us)


def _schema(connection: sqlite3.Connection) -> Check:
    migrations = read_migrations(resources.files("strandline.stores.sqlite").joinpath("migrations"))
    return check_schema(migrations, dict(connection.execute("SELECT number, checksum FROM schema_migration")))


def _pages(connection: sqlite3.Connection, path: Path) -> Check:
    size, count, free = (
        connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_size", "page_count", "freelist_count")
    )
    wal = size_of(Path(f"{path}-wal"))
    value = f"{count:,} of {in_bytes(size)}, {free:,} free; WAL {in_bytes(wal)}"
    measured = {"page_bytes": size, "pages": count, "free_pages": free, "wal_bytes": wal}
    if wal > WAL_BYTES_LARGE:
        advice = "A process keeps an old snapshot open, or died: end what reads, then open the store once to shrink it."
        return warned("pages", value, advice, **measured)
    if count and free / count > FREE_PAGES_SHARE_MAX:
        return warned("pages", value, "Most of the file is empty: VACUUM makes it smaller.", **measured)
    return passed("pages", value, **measured)


def _integrity(connection: sqlite3.Connection, path: Path, *, deep: bool) -> Check:
    size = size_of(path)
    if size > DOCTOR_CHECK_BYTES_MAX and not deep:
        value = f"not read: {in_bytes(size)} is more than {in_bytes(DOCTOR_CHECK_BYTES_MAX)}"
        return passed("pages read", f"{value}; --deep reads it, `strandline verify` proves it")
    pragma = "integrity_check" if deep else "quick_check"
    found = [row[0] for row in connection.execute(f"PRAGMA {pragma}(10)")]
    if found != ["ok"]:
        return failed("pages read", f"{pragma}: {found[0]}", _BACKUP, Trouble.CORRUPT, problems=found)
    return passed("pages read", f"{pragma}: ok; `strandline verify` proves the events too")


def _work(connection: sqlite3.Connection, now_us: int) -> Iterator[Check]:
    yield from check_work(lambda query: connection.execute(query).fetchall(), now_us)
    newest = connection.execute(
        "SELECT max(at_us) FROM workflow JOIN lineage USING (tenant_id, workflow_id, lineage_seq)"
    ).fetchone()[0]
    yield _clock(newest, now_us)


def _clock(newest_us: int | None, now_us: int) -> Check:
    now = datetime.fromtimestamp(now_us / _SECOND_US, UTC).isoformat(timespec="seconds")
    ahead_s = ((newest_us or 0) - now_us) / _SECOND_US
    if ahead_s > CLOCK_BEHIND_S_MAX:
        value = f"{now}, {ahead_s:,.0f} s behind the newest entry of a lineage"
        advice = "Set the clock. No order is decided by it; leases and expiry are judged by it."
        return warned("clock", value, advice, behind_s=ahead_s)
    return passed("clock", now)
