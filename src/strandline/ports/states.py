"""Saved states: lines, versions, and the nodes that their values are made of."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Protocol

from strandline.model.state import StateLine, StateNode, StateRow


class StateFacet(Protocol):
    """The saved states of one workflow. Rows and lines are never taken away."""

    def line(self, name: str) -> StateLine | None:
        """Return the line of this name, or None."""
        ...

    def lines(self) -> list[StateLine]:
        """Return all lines by number."""
        ...

    def count_lines(self) -> int:
        """Return the number of lines."""
        ...

    def put_line(self, line: StateLine) -> None:
        """Add a line, or replace the one of its number."""
        ...

    def get(self, line: int, state_id: str) -> StateRow | None:
        """Return the row of this id in a line, or None."""
        ...

    def put(self, row: StateRow) -> None:
        """Add a row, or replace the one of its number."""
        ...

    def page(self, through: int, limit: int, line: int | None = None) -> list[StateRow]:
        """Return the rows that have a position at or before `through`, of one line or of all, the newest first."""
        ...

    def all(self) -> Iterator[StateRow]:
        """Yield every row by number; nothing is written meanwhile."""
        ...

    def count(self) -> int:
        """Return the number of rows."""
        ...


class NodeFacet(Protocol):
    """The parts of all values of a workflow, each once, and the blocks that hold them."""

    def find(self, digests: Collection[bytes]) -> dict[bytes, int]:
        """Return the numbers of the nodes with this content that are there, erased ones too."""
        ...

    def add(self, nodes: Sequence[StateNode]) -> None:
        """Add nodes; each has a number that was never given."""
        ...

    def get(self, node_ids: Collection[int]) -> dict[int, StateNode]:
        """Return the nodes of these numbers; one that is missing is simply not there."""
        ...

    def ids(self) -> list[int]:
        """Return the numbers of all nodes."""
        ...

    def all(self) -> Iterator[StateNode]:
        """Yield every node by number; nothing is written meanwhile."""
        ...

    def erase(self, node_ids: Collection[int]) -> None:
        """Take the bytes of these nodes away; their digests stay, so that they are never kept again (C31)."""
        ...

    def drop(self, node_ids: Collection[int]) -> None:
        """Take these nodes away as a whole."""
        ...
