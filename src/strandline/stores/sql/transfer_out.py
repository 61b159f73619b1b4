"""The target of a copy: who may write to it, and in what portions (C6, ADR 0045)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from strandline.errors import InvalidInputError, OutcomeUnknownError
from strandline.limits import COPY_BATCH_BYTES_MAX, COPY_BATCH_ROWS_MAX
from strandline.stores.sql.transfer import (
    COPY_MARK,
    DIGEST_KEY,
    CopyMark,
    Reading,
    Writing,
    digest_key_of,
    read_mark,
)

_META: Final = "SELECT name, value FROM store_meta"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One call of the command: it has a fencing token, and names both sides in what it says."""

    source: str
    target: str
    mark: CopyMark


def begin_run(source: Reading, target: Writing, source_place: str, target_place: str) -> Run:
    """Take the target: an empty store becomes a copy, a copy of this store is gone on with.

    Raises:
        InvalidInputError: it is neither; nothing was written.
    """
    key = digest_key_of(dict(source.rows(_META)), source_place)
    meta: dict[str, bytes] = dict(target.all_rows(_META))
    mark = read_mark(meta.get(COPY_MARK), target_place)
    if mark is not None and meta[DIGEST_KEY] != key:
        raise InvalidInputError(
            f"{target_place}: a copy of another store, {mark.source}; nothing was written",
            hint="Name the store that it is a copy of, or an empty target.",
        )
    if mark is None:
        if target.all_rows("SELECT 1 FROM tenant LIMIT 1"):
            raise InvalidInputError(
                f"{target_place}: it holds workflows and is no copy of {source_place}; nothing was written",
                hint="Name an empty target: a file that is not there, a database or schema without a store.",
            )
        target.set_meta(DIGEST_KEY, key)
        mark = CopyMark(source=source_place, run=0, whole=False)
    mark = replace(mark, run=mark.run + 1, source=source_place)
    target.set_meta(COPY_MARK, mark.packed())
    target.commit()
    return Run(source=source_place, target=target_place, mark=mark)


class Out:
    """What is written: rows of one statement together, several statements in one transaction, up to the limits."""

    def __init__(self, target: Writing, run: Run) -> None:
        self._target = target
        self._run = run
        self.mark = run.mark
        current = _mark_of(target, run.target)
        if current is not None and current.run == run.mark.run:
            self.mark = current
        self.rows = 0
        self._statement = ""
        self._held: list[Mapping[str, object]] = []
        self._size = self._written = self._bytes = 0
        self._begun = False
        self._tenant: tuple[str, int] | None = None

    def enter(self, tenant: str, tenant_id: int) -> None:
        """Write for a tenant from now on."""
        if self._tenant != (tenant, tenant_id):
            self.flush()
            self._tenant = (tenant, tenant_id)
        self._target.enter(tenant, tenant_id)

    def add(self, statement: str, row: Mapping[str, object]) -> None:
        """Write a row, at the latest when the limits are reached."""
        if statement != self._statement:
            self.flush()
            self._statement = statement
        self._held.append(row)
        self._size += sum(len(value) for value in row.values() if isinstance(value, bytes | str))
        if len(self._held) + self._written >= COPY_BATCH_ROWS_MAX or self._size + self._bytes >= COPY_BATCH_BYTES_MAX:
            self.settle()

    def flush(self) -> None:
        """Send the rows that are held, into the open transaction."""
        if not self._held:
            return
        if not self._begun:
            self._begin()
        self._target.run_many(self._statement, self._held)
        self.rows += len(self._held)
        self._written, self._bytes = self._written + len(self._held), self._bytes + self._size
        self._held, self._size = [], 0

    def _begin(self) -> None:
        """Look whether this run is still the one that writes; from the first row on, the copy is not whole."""
        self._begun = True
        current = _mark_of(self._target, self._run.target)
        if current is None or current.run != self._run.mark.run:
            raise OutcomeUnknownError(
                f"{self._run.target}: another copy goes on in this one's place; what was copied stays",
                hint="Let the other one end; one copy at a time writes to a target.",
            )
        if current.whole:
            self.mark = replace(current, whole=False)
            self._target.set_meta(COPY_MARK, self.mark.packed())
        if self._tenant is not None:
            self._target.enter(*self._tenant)

    def settle(self) -> None:
        """Make durable what was written."""
        self.flush()
        if self._begun:
            self._target.commit()
        self._begun, self._written, self._bytes = False, 0, 0
        if self._tenant is not None:
            self._target.enter(*self._tenant)

    def finish(self) -> None:
        """Say that the copy is whole."""
        if not self.mark.whole:
            self._begin()
            self._target.finish()
            self.mark = replace(self.mark, whole=True)
            self._target.set_meta(COPY_MARK, self.mark.packed())
        self._target.commit()


def _mark_of(target: Writing, place: str) -> CopyMark | None:
    meta: dict[str, bytes] = dict(target.all_rows(_META))
    return read_mark(meta.get(COPY_MARK), place)
