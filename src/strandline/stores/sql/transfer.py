"""Which rows a copy of a store takes, and what a database must offer for that (C6, ADR 0045).

Rows keep their ids, bytes and digests: these are keyed with the store's digest key, so a copy takes that key too, and
is the same store at another place. Nothing is decoded, so a damaged row is as damaged in the copy, and `verify` finds
the same there.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from typing import Final, Protocol

from strandline.codec import pack, unpack
from strandline.errors import CorruptRecordError, UnfinishedCopyError
from strandline.stores.sql.session import Row

DIGEST_KEY: Final = "digest_key"  # names of rows of store_meta
COPY_MARK: Final = "copy"
BOUND: Final = "tenant_id = :tenant_id AND workflow_id = :workflow_id"


class Change(enum.Enum):
    """How the rows of a table come and go."""

    GROWS = "grows"  # behind the last one only, in transactions that change the workflow's head
    FOLLOWS = "follows"  # anywhere, in transactions that change the head: an equal head means equal rows
    MOVES = "moves"  # at any time


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table of a workflow's rows, and how a row that changed is told and written."""

    name: str
    key: tuple[str, ...]  # behind tenant_id and workflow_id
    stamp: tuple[str, ...] = ("row_digest",)  # differ where a row does
    change: Change = Change.FOLLOWS
    fixed: bool = False  # the first of the stamp is never another one: else it is another log
    shrinks: bool = False  # an erasure takes rows away; else one that the target alone holds is not the source's
    updates: tuple[tuple[int, tuple[str, ...]], ...] = ()  # columns that one statement may change, by place in stamp

    @cache  # noqa: B019  there are as many as tables
    def select(self, what: str, *, after: bool = False) -> str:
        """Return the query for a workflow's rows in order; `after`: those behind a key, as `behind` gives it."""
        behind = f" AND ({', '.join(self.key)}) > ({', '.join(f':after_{name}' for name in self.key)})" if after else ""
        return f"SELECT {what} FROM {self.name} WHERE {BOUND}{behind} ORDER BY {', '.join(self.key)}"  # noqa: S608

    def behind(self, row: Row) -> dict[str, object]:
        """Return the parameters for the rows behind one that begins with its key."""
        return {f"after_{name}": value for name, value in zip(self.key, row, strict=False)}

    def last(self) -> str:
        """Return the query for the key of a workflow's last row."""
        ordered = ", ".join(f"{name} DESC" for name in self.key)
        return f"SELECT {', '.join(self.key)} FROM {self.name} WHERE {BOUND} ORDER BY {ordered} LIMIT 1"  # noqa: S608

    def one(self, what: str) -> str:
        """Return the query for one row."""
        return f"SELECT {what} FROM {self.name} WHERE {BOUND}{_named(self.key)}"  # noqa: S608


# Names of tables and columns are ours, or those of the schema; values are always parameters.


def forget(derived: str) -> str:
    """Return the statement that takes away what is derived from a workflow's log."""
    return f"DELETE FROM {derived} WHERE {BOUND}"  # noqa: S608


@cache
def filled(tables: tuple[Table, ...]) -> str:
    """Return the query that says of each table whether it has rows of a workflow: most have none."""
    return "SELECT " + ", ".join(f"EXISTS (SELECT 1 FROM {table.name} WHERE {BOUND})" for table in tables)  # noqa: S608


@cache
def delete(table: str, key: tuple[str, ...]) -> str:
    """Return the statement that takes a row away."""
    return f"DELETE FROM {table} WHERE {BOUND}{_named(key)}"  # noqa: S608


@cache
def insert(table: str, columns: tuple[str, ...]) -> str:
    """Return the statement that adds a row."""
    values = ", ".join(f":{name}" for name in columns)
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({values})"  # noqa: S608


@cache
def update(table: str, columns: tuple[str, ...], key: tuple[str, ...]) -> str:
    """Return the statement that changes columns of a row."""
    changed = ", ".join(f"{name} = :{name}" for name in columns)
    return f"UPDATE {table} SET {changed} WHERE {BOUND}{_named(key)}"  # noqa: S608


def _named(key: Sequence[str]) -> str:
    return "".join(f" AND {name} = :{name}" for name in key)


# In the order in which they are written: what a foreign key names comes first.
TABLES: Final = (
    Table(
        name="event",
        key=("seq",),
        stamp=("chain", "abandoned_by", "body IS NULL"),
        change=Change.GROWS,
        fixed=True,
        updates=((1, ("abandoned_by",)), (2, ("codec", "body", "salt", "body_digest"))),  # as its trigger permits
    ),
    Table(name="abandoned_range", key=("branch",)),
    Table(name="ref_block", key=("first_id",), change=Change.GROWS),
    Table(name="ref_key", key=("digest", "ref_id"), stamp=("proof",), shrinks=True),
    Table(name="ref_sighting", key=("ref_id", "first_seq"), stamp=("proof",)),
    Table(name="register_fact", key=("from_seq", "ordinal")),
    Table(name="view_head", key=("view_id",), change=Change.MOVES),
    Table(name="candidate", key=("candidate_id",), change=Change.MOVES),
    Table(name="attempt", key=("attempt_id",), change=Change.MOVES),
    Table(name="segment", key=("segment_id",)),
    Table(name="summary", key=("summary_no",), change=Change.GROWS),
    Table(name="dropped_ref", key=("summary_no",), change=Change.GROWS),
    Table(name="lineage", key=("lineage_seq",), stamp=("chain",), change=Change.GROWS, fixed=True),
    Table(name="checkpoint", key=("lineage_seq",), stamp=("digest", "state IS NULL"), change=Change.GROWS),
    Table(name="foreign_summary", key=("key",)),
    Table(name="case_file", key=("case_id",), change=Change.MOVES),
    Table(name="effect", key=("key",), change=Change.MOVES),
    Table(name="permit", key=("permit_id",), change=Change.MOVES),
    Table(name="approval_use", key=("workflow", "seq"), change=Change.MOVES),
    Table(name="due_compaction", key=("view",), change=Change.MOVES),
    Table(name="cooldown", key=("summarizer",), change=Change.MOVES),
    Table(name="state_line", key=("number",)),
    Table(name="state_node", key=("node_id",), stamp=("proof",), change=Change.GROWS, shrinks=True),
    Table(name="saved_state", key=("number",)),
    Table(name="reader_watermark", key=("name",), change=Change.MOVES),
)
DERIVED: Final = ("search_mark", "search_posting")  # made anew from the log, behind it; never copied
# Written beside the tables: the store's own, and one row for each tenant and workflow.
APART: Final = frozenset({"store_meta", "schema_migration", "tenant", "workflow"})


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyMark:
    """What a store that is a copy says of itself, in store_meta."""

    source: str  # where the rows came from, as it was named
    run: int  # a fencing token: a run that finds a higher one has been taken over by another
    whole: bool  # the rows are those of one moment of the source

    def packed(self) -> bytes:
        """Return it as store_meta holds it."""
        return pack(self)


def read_mark(value: bytes | None, place: str) -> CopyMark | None:
    """Return the mark of a store; None: it is no copy."""
    return None if value is None else unpack(value, CopyMark, f"{place}: store_meta")


def refuse_unfinished(value: bytes | None, place: str) -> None:
    """Refuse to open a store whose copy has not finished.

    Raises:
        UnfinishedCopyError: it holds a part of the rows.
    """
    mark = read_mark(value, place)
    if mark is not None and not mark.whole:
        raise UnfinishedCopyError(place=place, source=mark.source)


class Reading(Protocol):
    """One snapshot of a whole store, of every tenant."""

    def columns(self, table: str) -> tuple[str, ...]:
        """Return the names of a table's columns, in order; none: there is no such table."""
        ...

    def rows(self, statement: str, **parameters: object) -> list[Row]:
        """Run a query and return all rows."""
        ...

    def stream(self, statement: str, **parameters: object) -> Iterator[Row]:
        """Run a query that gives rows in an order and yield them, not holding them all; several may be open at once."""
        ...


class Writing(Protocol):
    """The store that is written to. A transaction is open from the first call behind a commit."""

    def columns(self, table: str) -> tuple[str, ...]:
        """As `Reading.columns`."""
        ...

    def all_rows(self, statement: str, **parameters: object) -> list[Row]:
        """Run a query over the rows of every tenant, and over those of none."""
        ...

    def set_meta(self, name: str, value: bytes) -> None:
        """Write a row of store_meta."""
        ...

    def enter(self, tenant: str, tenant_id: int) -> None:
        """Work on the rows of a tenant from now on."""
        ...

    def rows(self, statement: str, **parameters: object) -> list[Row]:
        """Run a query over the tenant's rows."""
        ...

    def run_many(self, statement: str, rows: Iterable[Mapping[str, object]]) -> None:
        """Run a statement once per row."""
        ...

    def commit(self) -> None:
        """Make durable what was written."""
        ...

    def finish(self) -> None:
        """Set what the database itself counts (numbers of tenants and workflows) behind the highest that was copied."""
        ...


class End(Protocol):
    """One side of a copy: a store at its place."""

    place: str

    def reading(self) -> AbstractContextManager[Reading]:
        """Open a snapshot."""
        ...

    def writing(self) -> AbstractContextManager[Writing]:
        """Open it to be written to; what was not committed when it is left is undone."""
        ...

    def close(self) -> None:
        """Release everything."""
        ...


def digest_key_of(meta: Mapping[str, bytes], place: str) -> bytes:
    """Return the digest key out of the rows of store_meta."""
    try:
        return meta[DIGEST_KEY]
    except KeyError as error:
        raise CorruptRecordError("the store's digest key is missing", place=f"{place}: store_meta") from error
