"""What the facets need from a database connection, and the identity of the workflow they serve."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

from strandline.codec import row_digest
from strandline.errors import CorruptRecordError

Row = tuple[Any, ...]
UNKNOWN_ID = 0  # no row has it: a workflow that is not there reads as empty


class Session(Protocol):
    """One transaction on one connection, bound to one workflow. Statements are named as in queries.sql."""

    digest_key: bytes
    ids: tuple[int, int]  # of tenant and workflow

    def rows(self, query: str, **parameters: object) -> list[Row]:
        """Run a query and return all rows."""
        ...

    def stream(self, query: str, **parameters: object) -> Iterator[Row]:
        """Run a query and yield its rows, not holding them all."""
        ...

    def run(self, query: str, **parameters: object) -> int:
        """Run a statement and return the number of rows it changed."""
        ...

    def send(self, query: str, **parameters: object) -> None:
        """Run a statement whose answer nobody needs: it may travel with the next one, and so may its error."""
        ...

    def run_many(self, query: str, rows: Iterable[Sequence[object]]) -> None:
        """Run a statement once per row; a row gives its parameters, but for tenant and workflow, in order."""
        ...

    def relative(self, workflow: str, *, locked: bool = False) -> Session:
        """Return the session of another workflow of the tenant, in the same transaction; what is not there is empty.
        `locked`: a writing transaction takes the lock of its head, too.
        """
        ...

    def insert_events(self, rows: Sequence[Sequence[object]], *, may_wait: bool) -> None:
        """Insert events as one, as `LogFacet.insert`."""
        ...


def seal(session: Session, table: str, values: Sequence[object]) -> bytes:
    """Return the row digest of a row that is about to be written."""
    return row_digest(session.digest_key, table, (*session.ids, *values))


def check_seal(session: Session, table: str, row: Row, place: object) -> None:
    """Check a row that was read; its digest is its last column.

    Raises:
        CorruptRecordError: the row is not what was written (I4).
    """
    if seal(session, table, row[:-1]) != row[-1]:
        raise CorruptRecordError("the row does not match its digest", place=f"{table} {place!r}")
