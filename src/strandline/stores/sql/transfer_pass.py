"""One pass of a copy: make a store hold the rows of one snapshot of another (C6, ADR 0045).

What is there already is passed over, by the head's digest for a whole workflow, by keys and digests within one. So a
pass that was cut off is gone on with by the next, and a pass over a store that moved on takes what is new.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

from strandline.errors import InvalidInputError
from strandline.limits import COPY_HEADS_LISTED_MAX, COPY_PAGE_ROWS
from strandline.model.moving import CopiedHead, HeadState
from strandline.stores.sql.session import Row
from strandline.stores.sql.transfer import (
    BOUND,
    DERIVED,
    TABLES,
    Change,
    Reading,
    Table,
    Writing,
    delete,
    filled,
    forget,
    insert,
    update,
)
from strandline.stores.sql.transfer_out import Out, Run

Progress = Callable[[int, int], None]
_UNFINISHED: Final = b"unfinished"  # the row digest of a head whose workflow is not whole: who reads it is refused
_EVENTS: Final = TABLES[0]
_EMPTY_ONE: Final = "A target that is in use stays as it is: copy into an empty one."
_HEAD: Final = tuple(field.name for field in fields(HeadState))


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """What one pass found and wrote."""

    workflows: int
    events: int
    rows: int  # written: 0 if the two were alike
    differing: int  # heads that are not as in the snapshot; none, unless the target is damaged
    heads: tuple[CopiedHead, ...]  # at most COPY_HEADS_LISTED_MAX, those that differ first


def run_pass(
    source: Reading, target: Writing, run: Run, progress: Progress | None = None, *, check: bool = True
) -> Pass:
    """Make the target hold what the source's snapshot holds; it is whole again when this returns.

    `check`: look first whether a whole copy was written to since.

    Raises:
        InvalidInputError: it was.
    """
    copying = _Pass(source, target, run, progress)
    if check:
        copying.check_unused()
    return copying.run()


class _Pass:
    def __init__(self, source: Reading, target: Writing, run: Run, progress: Progress | None) -> None:
        self._source = source
        self._target = target
        self._run = run
        self._out = Out(target, run)
        self._progress = progress
        self._dry = False  # look for what the target alone holds, and write nothing
        self._events = 0
        self._total = source.rows("SELECT COALESCE(SUM(revision - fork_seq), 0) FROM workflow")[0][0]
        self._tenants: dict[int, str] = dict(source.rows("SELECT tenant_id, name FROM tenant"))
        self._heads = _columns(source, target, "workflow")
        self._columns = {table.name: _columns(source, target, table.name) for table in TABLES}

    def run(self) -> Pass:
        self._copy_tenants()
        workflows = 0
        for head in self._source_heads():
            self._copy_workflow(head)
            workflows += 1
            self._tell(head)
        self._out.settle()
        self._check_counts(workflows)
        differing, heads = self._compare_heads()
        if not differing:
            self._out.finish()
        rows = self._out.rows
        return Pass(workflows=workflows, events=self._events, rows=rows, differing=differing, heads=heads)

    def _source_heads(self) -> Iterator[dict[str, object]]:
        text = f"SELECT {', '.join(self._heads)} FROM workflow ORDER BY tenant_id, workflow_id"  # noqa: S608  our names
        for row in self._source.stream(text):
            yield dict(zip(self._heads, row, strict=True))

    def _tell(self, head: Mapping[str, object]) -> None:
        self._events += _number(head, "revision") - _number(head, "fork_seq")
        if self._progress is not None:
            self._progress(self._events, self._total)

    # ------------------------------------------------------------------------------------------ is it still a copy

    def check_unused(self) -> None:
        """Refuse a whole copy that was written to since, before a row of it is changed: that would be lost."""
        if not self._out.mark.whole:
            return
        self._dry = True
        known = set(self._tenants.items())
        for tenant_id, name in self._target.all_rows("SELECT tenant_id, name FROM tenant"):
            if (tenant_id, name) not in known and name in self._tenants.values():
                raise self._diverged(f"tenant {name!r}")
            if (tenant_id, name) not in known:
                raise InvalidInputError(
                    f"{self._run.target}: the target holds the tenant {name!r}, which {self._run.source} does not: it "
                    "is in use, or a copy of another store; no row was changed",
                    hint=_EMPTY_ONE,
                )
        for head in self._source_heads():
            self._copy_workflow(head)
        self._dry = False

    def _check_counts(self, workflows: int) -> None:
        if self._target.all_rows("SELECT COUNT(*) FROM workflow")[0][0] != workflows:
            raise self._diverged("a workflow")

    def _diverged(self, what: str) -> InvalidInputError:
        return InvalidInputError(
            f"{self._run.target}: {what} is not that of {self._run.source}: somebody wrote to the target since, or one "
            "of the two is damaged; no row was changed"
            if self._dry
            else f"{self._run.target}: {what} is not that of {self._run.source}; the copy is not finished",
            hint=f"Prove both with `strandline verify`. {_EMPTY_ONE}",
        )

    # ------------------------------------------------------------------------------------------ rows

    def _copy_tenants(self) -> None:
        held: dict[int, str] = dict(self._target.all_rows("SELECT tenant_id, name FROM tenant"))
        for tenant_id, name in sorted(self._tenants.items()):
            if held.get(tenant_id, name) != name:
                raise self._diverged(f"tenant {name!r}")
            if tenant_id not in held:
                self._out.enter(name, tenant_id)
                self._out.add(
                    "INSERT INTO tenant (tenant_id, name) VALUES (:tenant_id, :name)",
                    {"tenant_id": tenant_id, "name": name},
                )

    def _copy_workflow(self, head: dict[str, object]) -> None:
        tenant_id = _number(head, "tenant_id")
        ids = {"tenant_id": tenant_id, "workflow_id": head["workflow_id"]}
        self._out.enter(self._tenants[tenant_id], tenant_id)
        held = self._target.rows(f"SELECT name, row_digest FROM workflow WHERE {BOUND}", **ids)  # noqa: S608
        if held and held[0][0] != head["name"]:
            raise self._diverged(f"workflow {held[0][0]!r}")
        if not held:
            if self._dry:
                return
            self._out.add(insert("workflow", self._heads), {**head, "row_digest": _UNFINISHED})
        alike = bool(held) and held[0][1] == head["row_digest"]
        looked_at = tuple(table for table in TABLES if not alike or table.change is Change.MOVES)
        theirs = _filled(self._source.rows(filled(looked_at), **ids), looked_at)
        ours = _filled(self._target.rows(filled(looked_at), **ids), looked_at) if held else set()
        for table in looked_at:
            if table in theirs or table in ours:
                self._copy_table(table, ids, f"workflow {head['name']!r}", fresh=table not in ours)
        if not alike and not self._dry:
            for derived in DERIVED if held else ():  # whoever reads the copy between two passes may have made it
                self._out.add(forget(derived), ids)
            changed = tuple(name for name in self._heads if name not in ids)
            self._out.add(update("workflow", changed, ()), head)

    def _copy_table(self, table: Table, ids: dict[str, object], workflow: str, *, fresh: bool) -> None:
        """Change first, then add: so no unique key is in the way of a new row."""
        missing = fresh or self._change_rows(table, ids, workflow)
        self._out.flush()
        if not missing or self._dry:
            return
        columns = self._columns[table.name]
        added = insert(table.name, columns)
        behind: dict[str, object] = {}
        if table.change is Change.GROWS and not fresh:
            last = self._target.rows(table.last(), **ids)
            behind = table.behind(last[0]) if last else {}
        rows = self._source.stream(table.select(", ".join(columns), after=bool(behind)), **ids, **behind)
        if table.change is Change.GROWS or fresh:
            for number, row in enumerate(rows, start=1):
                self._out.add(added, dict(zip(columns, row, strict=True)))
                if table is _EVENTS and number % COPY_PAGE_ROWS == 0 and self._progress is not None:
                    self._progress(self._events + number, self._total)
            return
        places = [columns.index(name) for name in table.key]
        keyed = ((*(row[place] for place in places), row) for row in rows)
        for _, theirs, ours in _merged(keyed, self._target_stamps(table, ids), len(table.key)):
            if ours is None and theirs is not None:
                self._out.add(added, dict(zip(columns, theirs[0], strict=True)))

    def _change_rows(self, table: Table, ids: dict[str, object], workflow: str) -> bool:
        """Change what differs, and tell whether anything is missing."""
        missing = False
        stamps = self._source.stream(table.select(", ".join((*table.key, *table.stamp))), **ids)
        for key, theirs, ours in _merged(stamps, self._target_stamps(table, ids), len(table.key)):
            if ours is None:
                missing = True
                if table.change is Change.GROWS:
                    break
            elif theirs is None and table.shrinks:
                if not self._dry:
                    self._out.add(delete(table.name, table.key), {**ids, **dict(zip(table.key, key, strict=True))})
            elif theirs is None or (table.fixed and theirs[0] != ours[0]):
                raise self._diverged(f"{table.name} {key!r} of {workflow}")
            elif theirs != ours and not self._dry:
                self._change_row(table, {**ids, **dict(zip(table.key, key, strict=True))}, theirs, ours)
        return missing

    def _change_row(self, table: Table, places: dict[str, object], theirs: Row, ours: Row) -> None:
        columns = self._columns[table.name]
        (row,) = self._source.rows(table.one(", ".join(columns)), **places)
        values = dict(zip(columns, row, strict=True))
        others = tuple(name for name in columns if name not in places)
        for place, changed in table.updates or ((-1, others),):
            if place < 0 or theirs[place] != ours[place]:
                self._out.add(update(table.name, changed, table.key), values)

    def _target_stamps(self, table: Table, ids: dict[str, object]) -> Iterator[Row]:
        """Yield keys and stamps, in pages: no cursor is open while rows are written."""
        behind: dict[str, object] = {}
        wanted = ", ".join((*table.key, *table.stamp))
        while True:
            text = f"{table.select(wanted, after=bool(behind))} LIMIT {COPY_PAGE_ROWS}"
            page = self._target.rows(text, **ids, **behind)
            yield from page
            if len(page) < COPY_PAGE_ROWS:
                return
            behind = table.behind(page[-1])

    def _compare_heads(self) -> tuple[int, tuple[CopiedHead, ...]]:
        """Read the heads back, and return how many are not those of the snapshot, and the first ones."""
        text = f"SELECT {', '.join(_HEAD)} FROM workflow WHERE {BOUND}"  # noqa: S608
        differing: list[CopiedHead] = []
        same: list[CopiedHead] = []
        count = 0
        for head in self._source_heads():
            tenant_id = _number(head, "tenant_id")
            self._target.enter(self._tenants[tenant_id], tenant_id)
            found = self._target.rows(text, tenant_id=tenant_id, workflow_id=head["workflow_id"])
            compared = CopiedHead(
                tenant=self._tenants[tenant_id],
                workflow=str(head["name"]),
                source=_state([head[name] for name in _HEAD]),
                target=_state(found[0]) if found else None,
            )
            count += not compared.same
            listed = same if compared.same else differing
            if len(listed) < COPY_HEADS_LISTED_MAX:
                listed.append(compared)
        return count, tuple([*differing, *same][:COPY_HEADS_LISTED_MAX])


def _filled(answer: list[Row], tables: Sequence[Table]) -> set[Table]:
    return {table for table, has_rows in zip(tables, answer[0], strict=True) if has_rows}


def _state(row: Sequence[Any]) -> HeadState:
    return HeadState(**dict(zip(_HEAD, row, strict=True)))


def _number(head: Mapping[str, object], name: str) -> int:
    return int(str(head[name]))


def _columns(source: Reading, target: Writing, table: str) -> tuple[str, ...]:
    columns = source.columns(table)
    if not columns or set(columns) != set(target.columns(table)):
        raise InvalidInputError(
            f"the table {table} is not the same in both stores; nothing was copied",
            hint="Bring both to the schema of this version: open each with it once.",
        )
    return columns


def _merged(left: Iterator[Row], right: Iterator[Row], width: int) -> Iterator[tuple[Row, Row | None, Row | None]]:
    """Walk two lists of rows in the order of their keys, the first `width` values: yield key, and what follows it in
    each, None where there is none.
    """
    a, b = next(left, None), next(right, None)
    while a is not None or b is not None:
        if b is None or (a is not None and a[:width] <= b[:width]):
            assert a is not None
            same = b is not None and a[:width] == b[:width]
            yield a[:width], a[width:], b[width:] if same and b is not None else None
            a, b = next(left, None), next(right, None) if same else b
        else:
            yield b[:width], None, b[width:]
            b = next(right, None)
