"""Due compactions over versioned tables, and the sweep over all tenants."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice

from strandline.model.due import DueCompaction, DueKey, take_turns
from strandline.model.ids import Scope
from strandline.stores.memory.schema import Facet, Tables
from strandline.stores.memory.tables import Moment


class MemoryDue(Facet):
    """`ports.DueFacet` in memory. `others` gives the tables of the tenant's other workflows."""

    def __init__(self, tables: Tables, moment: Moment, others: Callable[[], Iterator[tuple[Tables, Moment]]]) -> None:
        super().__init__(tables, moment)
        self._others = others

    def get(self, view: str) -> DueCompaction | None:
        return self._tables.due.get(self._moment, view)

    def add(self, due: DueCompaction) -> None:
        self._tables.due.add(self._moment, due.view, due)

    def settle(self, due: DueCompaction, *, fence: int) -> bool:
        there = self.get(due.view)
        if there is None or there.fence != fence or due.fence < fence:
            return False
        self._tables.due.put(self._moment, due.view, due)
        return True

    def all(self) -> list[DueCompaction]:
        return self._tables.due.all(self._moment)

    def open_in_tenant(self, limit: int) -> int:
        beside = (tables.due.all(moment) for tables, moment in self._others())
        rows = (row for rows in chain([self.all()], beside) for row in rows if row.due_us is not None)
        return sum(1 for _ in islice(rows, limit))


def sweep(rows: Iterable[tuple[Scope, DueCompaction]], now_us: int, limit: int, per_tenant: int) -> list[DueKey]:
    """As `Store.due`; in memory it reads every row."""
    if limit < 1 or per_tenant < 1:
        return []
    queues: dict[str, list[DueKey]] = {}
    for scope, row in rows:
        if row.due_us is not None and row.offered(now_us):
            key = DueKey(
                tenant=scope.tenant, workflow=scope.workflow, view=row.view, priority=row.priority, due_us=row.due_us
            )
            queues.setdefault(scope.tenant, []).append(key)
    waited_longest_first = sorted(queues.values(), key=lambda queue: min(key.due_us for key in queue))
    in_order = (sorted(queue, key=lambda key: (-key.priority, key.due_us)) for queue in waited_longest_first)
    return take_turns([queue[:per_tenant] for queue in in_order], limit)
