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

    def rows(self, query: str, **parameters: object) -> list[Row]:
        """Run a query and return all rows."""
        ...

    def stream(self, query: str, **parameters: object) -> Iterator[Row]:
        """Run a query and yield its rows, not holding them all."""
        ...

    def run(self, query: str, **parameters: object) -> int:
        """Run a statement and return the number of rows it changed."""
        ...

    def run_many(self, query: str, rows: Iterable[Sequence[object]]) -> None:
        """Run a statement once per row; a row gives its parameters, but for tenant and workflow, in order."""
        ...

    def insert_events(self, rows: Sequence[Sequence[object]]) -> None:
        """Insert events as one. Raises KeyTakenError, with nothing inserted, when a key is taken."""
        ...


def seal(session: Session, table: str, values: Sequence[object]) -> bytes:
    """Return the row digest of a row that is about to be written."""
    return row_digest(session.digest_key, table, values)


def check_seal(session: Session, table: str, row: Row, place: object) -> None:
    """Check a row that was read; its digest is its last column.

    Raises:
        CorruptRecordError: the row is not what was written (I4).
    """
    if row_digest(session.digest_key, table, row[:-1]) != row[-1]:
        raise CorruptRecordError("the row does not match its digest", place=f"{table} {place!r}")


class Names:
    """The dictionary of names of one workflow, read once per transaction."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._by_id: dict[int, str] | None = None
        self._by_name: dict[str, int] = {}

    def _load(self) -> dict[int, str]:
        if self._by_id is None:
            self._by_id = dict(self._session.rows("names"))
            self._by_name = {name: name_id for name_id, name in self._by_id.items()}
        return self._by_id

    def name(self, name_id: int) -> str:
        """Return the name with this number."""
        try:
            return self._load()[name_id]
        except KeyError:
            raise CorruptRecordError("the name is missing", place=f"name_dict {name_id}") from None

    def number(self, name: str) -> int:
        """Return the number of a name, giving it one if it has none."""
        by_id = self._load()
        if name not in self._by_name:
            name_id = max(by_id, default=0) + 1
            self._session.run("add_name", name_id=name_id, name=name)
            by_id[name_id] = name
            self._by_name[name] = name_id
        return self._by_name[name]
