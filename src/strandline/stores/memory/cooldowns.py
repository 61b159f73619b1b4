"""Cooldowns over versioned tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from strandline.model.cooldown import Cooldown
from strandline.stores.memory.schema import Facet, Tables
from strandline.stores.memory.tables import Moment


class MemoryCooldowns(Facet):
    """`ports.CooldownFacet` in memory. `others` gives the tables of the tenant's other workflows."""

    def __init__(self, tables: Tables, moment: Moment, others: Callable[[], Iterator[tuple[Tables, Moment]]]) -> None:
        super().__init__(tables, moment)
        self._others = others

    def get(self, summarizer: str) -> Cooldown | None:
        return self._tables.cooldowns.get(self._moment, summarizer)

    def others(self, summarizer: str, limit: int) -> list[Cooldown]:
        found = [tables.cooldowns.get(moment, summarizer) for tables, moment in self._others()]
        rows = [row for row in found if row is not None]
        return sorted(rows, key=lambda row: max(row.failed_us, row.answered_us), reverse=True)[:limit]

    def put(self, cooldown: Cooldown) -> None:
        self._tables.cooldowns.put(self._moment, cooldown.summarizer, cooldown)

    def all(self) -> list[Cooldown]:
        return sorted(self._tables.cooldowns.all(self._moment), key=lambda row: row.summarizer)
