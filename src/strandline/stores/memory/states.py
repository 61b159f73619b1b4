"""Saved states over versioned tables."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from strandline.model.state import StateLine, StateNode, StateRow
from strandline.stores.memory.schema import Facet
from strandline.stores.memory.tables import ONLY


class MemoryStates(Facet):
    """`ports.StateFacet` in memory."""

    def line(self, name: str) -> StateLine | None:
        found = self._tables.state_names.get(self._moment, name)
        return None if found is None else self._tables.state_lines.get(self._moment, found)

    def lines(self) -> list[StateLine]:
        return self._tables.state_lines.all(self._moment)

    def count_lines(self) -> int:
        return len(self.lines())

    def put_line(self, line: StateLine) -> None:
        self._tables.state_names.put(self._moment, line.name, line.number)
        self._tables.state_lines.put(self._moment, line.number, line)

    def get(self, line: int, state_id: str) -> StateRow | None:
        return next(iter(self._tables.states.newest(self._moment, "named", (line, state_id))), None)

    def put(self, row: StateRow) -> None:
        self._tables.states.put(self._moment, row.number, row)
        if row.position is not None:
            self._tables.state_places.put(self._moment, row.position, (row.line, row.number))

    def page(self, through: int, limit: int, line: int | None = None) -> list[StateRow]:
        index, group = ("all", ONLY) if line is None else ("line", line)
        places = self._tables.state_places.newest(self._moment, index, group, through, limit)
        return [self._tables.states.expect(self._moment, number) for _, number in places]

    def all(self) -> Iterator[StateRow]:
        return iter(self._tables.states.all(self._moment))

    def count(self) -> int:
        return len(self._tables.states.all(self._moment))


class MemoryNodes(Facet):
    """`ports.NodeFacet` in memory. A node that was dropped leaves an empty row."""

    def find(self, digests: Collection[bytes]) -> dict[bytes, int]:
        found = ((digest, self._tables.nodes.newest(self._moment, "digest", digest)) for digest in digests)
        return {digest: nodes[0].node_id for digest, nodes in found if nodes and nodes[0] is not None}

    def add(self, nodes: Sequence[StateNode]) -> None:
        for node in nodes:
            self._tables.nodes.add(self._moment, node.node_id, node)

    def get(self, node_ids: Collection[int]) -> dict[int, StateNode]:
        found = ((node_id, self._tables.nodes.get(self._moment, node_id)) for node_id in node_ids)
        return {node_id: node for node_id, node in found if node is not None}

    def ids(self) -> list[int]:
        return [node.node_id for node in self.all()]

    def all(self) -> Iterator[StateNode]:
        return filter(None, self._tables.nodes.all(self._moment))

    def erase(self, node_ids: Collection[int]) -> None:
        for node_id in node_ids:
            node = self._tables.nodes.expect(self._moment, node_id)
            self._tables.nodes.put(self._moment, node_id, node and replace(node, data=None))

    def drop(self, node_ids: Collection[int]) -> None:
        for node_id in node_ids:
            self._tables.nodes.expect(self._moment, node_id)
            self._tables.nodes.put(self._moment, node_id, None)
