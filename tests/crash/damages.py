"""The ways in which a store's files are damaged: each takes a copy of a store, and changes it past the library.

The rows are changed by SQL without the schema's triggers and constraints, the pages and the write-ahead log as bytes.
Each answers with what it did, for the story, or None where the draw left nothing to do.
"""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROWS_MAX: Final = 5  # that one unit takes away, exchanges or doubles
TAIL_MAX: Final = 12  # events or entries that are cut off
BITS_MAX: Final = 8  # that one unit flips in the file
HEADER_BYTES: Final = 100  # of SQLite's file

Row = tuple[object, ...]


@dataclass(frozen=True)
class Stage:
    """What a damaged copy is made from."""

    whole: Path  # the store as it is at last
    older: tuple[Path, ...]  # the same store, earlier
    other: Path  # another store of the same shape
    live: Path  # the store with a write-ahead log that is not taken over yet
    logs: tuple[Path, ...]  # earlier write-ahead logs of it; the last one is that of `live`


Damage = Callable[[Path, Stage, random.Random], str | None]


@contextmanager
def rows_of(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a file for changes that no rule of its schema stops."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA ignore_check_constraints=ON")
        connection.execute("PRAGMA foreign_keys=OFF")
        connection.execute("BEGIN")
        yield connection
        connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def tables_of(connection: sqlite3.Connection) -> list[str]:
    """Return the tables, but SQLite's own."""
    found = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'")
    return sorted(name for (name,) in found)


def columns_of(connection: sqlite3.Connection, table: str) -> list[tuple[str, str, bool]]:
    """Return name, type and whether it is of the key, of each column."""
    return [(row[1], row[2], bool(row[5])) for row in connection.execute(f"PRAGMA table_info({table})")]


def _rows(connection: sqlite3.Connection, table: str) -> list[Row]:
    return connection.execute(f"SELECT * FROM {table}").fetchall()


def _where(names: Sequence[str]) -> str:
    return " AND ".join(f"{name} IS ?" for name in names)


def _names(connection: sqlite3.Connection, table: str) -> list[str]:
    return [name for name, _, _ in columns_of(connection, table)]


def _delete(connection: sqlite3.Connection, table: str, row: Row) -> None:
    connection.execute(f"DELETE FROM {table} WHERE {_where(_names(connection, table))}", row)


def _insert(connection: sqlite3.Connection, table: str, row: Row) -> bool:
    """Add a row, and tell whether what is unique let it."""
    try:
        connection.execute(f"INSERT INTO {table} VALUES ({','.join('?' * len(row))})", row)
    except sqlite3.IntegrityError:
        return False
    return True


def _draw_table(connection: sqlite3.Connection, draw: random.Random, rows: int = 1) -> str:
    """Return a table that has so many rows."""
    fit = [name for name in tables_of(connection) if len(_rows(connection, name)) >= rows]
    return draw.choice(fit)


# ---------------------------------------------------------------------------------------------- rows


def missing_rows(path: Path, stage: Stage, draw: random.Random) -> str | None:
    """Some rows of one table are gone."""
    with rows_of(path) as connection:
        table = _draw_table(connection, draw)
        rows = _rows(connection, table)
        gone = draw.sample(rows, min(len(rows), draw.randint(1, ROWS_MAX)))
        for row in gone:
            _delete(connection, table, row)
        return f"{len(gone)} rows of {table} are missing"


def missing_range(path: Path, stage: Stage, draw: random.Random) -> str | None:
    """A range of source records in the middle of the log, or of the lineage, is gone."""
    with rows_of(path) as connection:
        table, column = draw.choice([("event", "seq"), ("lineage", "lineage_seq")])
        last = connection.execute(f"SELECT max({column}) FROM {table} WHERE tenant_id = 1").fetchone()[0]
        first = draw.randint(1, last - 1)
        through = draw.randint(first, last - 1)
        statement = f"DELETE FROM {table} WHERE tenant_id = 1 AND {column} BETWEEN ? AND ?"
        connection.execute(statement, (first, through))
        return f"{table} {first}..{through} are missing"


def truncated_tail(path: Path, stage: Stage, draw: random.Random) -> str | None:
    """The end of the log, of the lineage, or of both is gone; perhaps the head says so, with a digest of before."""
    with rows_of(path) as connection:
        told = []
        for table, column in draw.sample([("event", "seq"), ("lineage", "lineage_seq")], draw.randint(1, 2)):
            last = connection.execute(f"SELECT max({column}) FROM {table} WHERE tenant_id = 1").fetchone()[0]
            cut = max(0, last - draw.randint(1, TAIL_MAX))
            connection.execute(f"DELETE FROM {table} WHERE tenant_id = 1 AND {column} > ?", (cut,))
            told.append(f"{table} ends at {cut} instead of {last}")
            if draw.random() < 0.5:
                counter = "revision" if table == "event" else column
                connection.execute(f"UPDATE workflow SET {counter} = ? WHERE tenant_id = 1", (cut,))
                told.append("and the head says so")
        return ", ".join(told)


def swapped_rows(path: Path, stage: Stage, draw: random.Random) -> str | None:
    """Two rows of one table exchange all but their keys: of one workflow, of two, or of two tenants."""
    with rows_of(path) as connection:
        table = _draw_table(connection, draw, rows=2)
        is_key = [key for _, _, key in columns_of(connection, table)]
        pair = draw.sample(_rows(connection, table), 2)
        return _exchange(connection, table, [tuple(pair[0]), tuple(pair[1])], is_key)


def swapped_tenants(path: Path, stage: Stage, draw: random.Random) -> str | None:
    """A row of one tenant and a row of another exchange the columns that say whose they are."""
    with rows_of(path) as connection:
        fit = [name for name in tables_of(connection) if "tenant_id" in _names(connection, name)]
        draw.shuffle(fit)
        for table in fit:
            names = _names(connection, table)
            at = names.index("tenant_id")
            rows = _rows(connection, table)
            mine, theirs = ([row for row in rows if row[at] == number] for number in (1, 2))
            if mine and theirs and len(names) > 2:
                owner = [name in ("tenant_id", "workflow_id") for name in names]
                return _exchange(
                    connection, table, [draw.choice(mine), draw.choice(theirs)], [not own for own in owner]
                )
        return None


def _exchange(connection: sqlite3.Connection, table: str, pair: list[Row], kept: list[bool]) -> str | None:
    """Let two rows exchange the columns that are not kept."""
    exchanged = [
        tuple(mine if keep else theirs for keep, mine, theirs in zip(kept, one, other, strict=True))
        for one, other in (pair, pair[::-1])
    ]
    if sorted(map(repr, exchanged)) == sorted(map(repr, pair)):
        return None
    for row in pair:
        _delete(connection, table, row)
    added = [_insert(connection, table, row) for row in exchanged]
    if not all(added):
        return f"two rows of {table} were exchanged, and one of them had no room"
    return f"two rows of {table} were exchanged"


def between_tables(path: Path, stage: Stage, draw: random.Random) -> str | None:
    """A value of one table stands in a column of the same type of another one."""
    with rows_of(path) as connection:
        places = [
            (table, name, kind)
            for table in tables_of(connection)
            for name, kind, key in columns_of(connection, table)
            if not key and kind in ("BLOB", "TEXT") and _rows(connection, table)
        ]
        of, to = draw.sample(places, 2)
        if of[0] == to[0] or of[2] != to[2]:
            return None
        value = draw.choice(connection.execute(f"SELECT {of[1]} FROM {of[0]}").fetchall())[0]
        row = draw.choice(_rows(connection, to[0]))
        names = _names(connection, to[0])
        if value is None or row[names.index(to[1])] == value:
            return None
        try:
            connection.execute(f"UPDATE {to[0]} SET {to[1]} = ? WHERE {_where(names)}", (value, *row))
        except sqlite3.IntegrityError:
            return None
        return f"{to[0]}.{to[1]} holds a value of {of[0]}.{of[1]}"


def doubled_rows(path: Path, stage: Stage, draw: random.Random) -> str | None:
    """Some rows stand there twice, the second time under another key: the next free number, or another workflow."""
    with rows_of(path) as connection:
        table = _draw_table(connection, draw)
        info = columns_of(connection, table)
        numbers = [at for at, (_, kind, key) in enumerate(info) if key and kind == "INTEGER"]
        if not numbers:
            return None
        at = draw.choice(numbers)
        rows = _rows(connection, table)
        highest = max(row[at] for row in rows if isinstance(row[at], int))
        picked = draw.sample(rows, min(len(rows), draw.randint(1, ROWS_MAX)))
        added = sum(
            _insert(connection, table, (*row[:at], highest + number, *row[at + 1 :]))
            for number, row in enumerate(picked, start=1)
        )
        return f"{added} rows of {table} stand there twice, with {info[at][0]} behind {highest}" if added else None


def reordered_rows(path: Path, stage: Stage, draw: random.Random) -> str | None:
    """The numbers of some events, or of some entries of the lineage, are dealt anew."""
    with rows_of(path) as connection:
        table, column = draw.choice([("event", "seq"), ("lineage", "lineage_seq")])
        rows = connection.execute(f"SELECT DISTINCT {column} FROM {table} WHERE tenant_id = 1 ORDER BY 1").fetchall()
        picked = draw.sample([number for (number,) in rows], draw.randint(2, min(len(rows), ROWS_MAX)))
        dealt = picked[1:] + picked[:1]
        for away, old in enumerate(picked):
            statement = f"UPDATE {table} SET {column} = ? WHERE tenant_id = 1 AND {column} = ?"
            connection.execute(statement, (1_000_000 + away, old))
        for away, new in enumerate(dealt):
            connection.execute(f"UPDATE {table} SET {column} = ? WHERE {column} = ?", (new, 1_000_000 + away))
        return f"the numbers {picked} of {table} are now {dealt}"


def older_row(path: Path, stage: Stage, draw: random.Random) -> str | None:
    """One row is as it once was."""
    return _put_back(path, stage, draw, 1)


def older_rows(path: Path, stage: Stage, draw: random.Random) -> str | None:
    """All rows of one table that have changed are as they once were; what came later stays."""
    return _put_back(path, stage, draw, None)


def _put_back(path: Path, stage: Stage, draw: random.Random, most: int | None) -> str | None:
    older = draw.choice(stage.older)
    with closing(sqlite3.connect(older)) as before, rows_of(path) as connection:
        tables = tables_of(connection)
        draw.shuffle(tables)
        for table in tables:
            is_key = [key for _, _, key in columns_of(connection, table)]
            now = {_key(row, is_key): row for row in _rows(connection, table)}
            changed = [row for row in _rows(before, table) if now.get(_key(row, is_key), row) != row]
            if changed:
                picked = changed if most is None else draw.sample(changed, most)
                for row in picked:
                    _delete(connection, table, now[_key(row, is_key)])
                    _insert(connection, table, row)
                return f"{len(picked)} rows of {table} are those of {older.name}"
    return None


def _key(row: Row, is_key: list[bool]) -> Row:
    return tuple(value for value, key in zip(row, is_key, strict=True) if key)


# ---------------------------------------------------------------------------------------------- pages and files


def _page_bytes(path: Path) -> int:
    size = int.from_bytes(path.read_bytes()[16:18], "big")
    return 65_536 if size == 1 else size


def _pages(path: Path) -> int:
    return path.stat().st_size // _page_bytes(path)


def _set_page(path: Path, number: int, page: bytes) -> bool:
    size = _page_bytes(path)
    with path.open("r+b") as file:
        file.seek(number * size)
        if file.read(size) == page:
            return False
        file.seek(number * size)
        file.write(page)
    return True


def nul_pages(path: Path, stage: Stage, draw: random.Random) -> str | None:
    """A run of pages is full of NULs."""
    size, first = _page_bytes(path), draw.randrange(_pages(path))
    last = min(_pages(path) - 1, first + draw.randint(0, 2))
    changed = [_set_page(path, number, bytes(size)) for number in range(first, last + 1)]
    return f"pages {first + 1}..{last + 1} are NULs" if any(changed) else None


def foreign_page(path: Path, stage: Stage, draw: random.Random) -> str | None:
    """A page is that of another store."""
    return _take_page(path, stage.other, draw)


def older_page(path: Path, stage: Stage, draw: random.Random) -> str | None:
    """A page is as it once was."""
    return _take_page(path, draw.choice(stage.older), draw)


def moved_page(path: Path, stage: Stage, draw: random.Random) -> str | None:
    """A page holds what another one of the same file holds: a write that went to the wrong place."""
    return _take_page(path, path, draw, moved=True)


def _take_page(path: Path, source: Path, draw: random.Random, *, moved: bool = False) -> str | None:
    size, number = _page_bytes(path), draw.randrange(min(_pages(path), _pages(source)))
    of = draw.randrange(_pages(source)) if moved else number
    page = source.read_bytes()[of * size : (of + 1) * size]
    return f"page {number + 1} is page {of + 1} of {source.name}" if _set_page(path, number, page) else None


def flipped_bits(path: Path, stage: Stage, draw: random.Random) -> str | None:
    """Some bits of one page are flipped."""
    size, number = _page_bytes(path), draw.randrange(_pages(path))
    data = bytearray(path.read_bytes())
    for _ in range(draw.randint(1, BITS_MAX)):
        data[number * size + draw.randrange(size)] ^= 1 << draw.randrange(8)
    changed = bytes(data) != path.read_bytes()
    path.write_bytes(bytes(data))
    return f"bits of page {number + 1} are flipped" if changed else None


def cut_file(path: Path, stage: Stage, draw: random.Random) -> str | None:
    """The file ends early: anywhere, or behind a whole page."""
    size = path.stat().st_size
    keep = draw.randrange(size) if draw.random() < 0.5 else draw.randrange(_pages(path)) * _page_bytes(path)
    with path.open("r+b") as file:
        file.truncate(keep)
    return f"the file ends at byte {keep} of {size}"


def older_file(path: Path, stage: Stage, draw: random.Random) -> str | None:
    """The whole file is as it once was."""
    older = draw.choice(stage.older)
    shutil.copy(older, path)
    return f"the whole file is {older.name}"


def _with_log(path: Path, stage: Stage, log: Path) -> None:
    shutil.copy(stage.live, path)
    shutil.copy(log, f"{path}-wal")


def older_log(path: Path, stage: Stage, draw: random.Random) -> str | None:
    """The write-ahead log is one of before, beside the file of now: without it, or with it taken over."""
    log = draw.choice(stage.logs[:-1])
    if draw.random() < 0.5:
        _with_log(path, stage, log)
        return f"{log.name} stands in the place of the last log"
    shutil.copy(log, f"{path}-wal")
    return f"{log.name} stands beside a file that has taken over what came later"


def damaged_log(path: Path, stage: Stage, draw: random.Random) -> str | None:
    """The write-ahead log ends early, is gone, or has flipped bits."""
    _with_log(path, stage, stage.logs[-1])
    log = Path(f"{path}-wal")
    data = bytearray(log.read_bytes())
    way = draw.choice(["cut", "gone", "flipped"])
    if way == "gone":
        log.unlink()
        return "the log is gone"
    if way == "cut":
        keep = draw.randrange(len(data))
        log.write_bytes(bytes(data[:keep]))
        return f"the log ends at byte {keep} of {len(data)}"
    at = draw.randrange(len(data))
    data[at] ^= 1 << draw.randrange(8)
    log.write_bytes(bytes(data))
    return f"a bit of byte {at} of the log is flipped"


KINDS: Final[dict[str, Damage]] = {
    damage.__name__: damage
    for damage in (
        missing_rows,
        missing_range,
        truncated_tail,
        swapped_rows,
        swapped_tenants,
        between_tables,
        doubled_rows,
        reordered_rows,
        older_row,
        older_rows,
        nul_pages,
        foreign_page,
        older_page,
        moved_page,
        flipped_bits,
        cut_file,
        older_file,
        older_log,
        damaged_log,
    )
}
