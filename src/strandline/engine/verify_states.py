"""The part of `verify` that walks saved states, and the nodes of their values (C5, I4)."""

from __future__ import annotations

from strandline.codec import NodeDigests
from strandline.engine.environment import Environment
from strandline.engine.load_state import check_lines_whole, check_states_whole
from strandline.engine.state_values import PART, nodes_in, read_nodes
from strandline.engine.verify_log import Notes
from strandline.model.state import StateLine, StateRow, StateStatus
from strandline.ports import Transaction


def check_states(env: Environment, tx: Transaction, notes: Notes) -> int:
    """Every line, state and node is there and what was written; positions have no gap; each value can be read.

    Returns how many states are there.
    """
    check_lines_whole(tx)
    check_states_whole(tx)
    levels = _check_nodes(env, tx, notes)
    rows = _Rows(tx.states.lines(), levels, notes)
    found = 0
    for row in tx.states.all():
        rows.check(row)
        found += row.status is StateStatus.SAVED
    rows.end(tx.log.head().state_positions)
    return found


def _check_nodes(env: Environment, tx: Transaction, notes: Notes) -> dict[int, int]:
    """Check each node against the digest by which its content is known, and return the level of each."""
    digests, highest, levels = NodeDigests(env.store.digest_key), tx.log.head().state_nodes, dict[int, int]()
    for node in tx.nodes.all():
        place = f"state_node {node.node_id}"
        levels[node.node_id] = node.level
        if not 0 < node.node_id <= highest:
            notes.say(place, f"its number lies outside 1..{highest}")
        if node.level == PART:
            if node.data is not None and digests.part(node.kind, node.data) != node.digest:
                notes.say(place, "it is not the content of its digest")
            continue
        held = nodes_in(node)
        inner = {one.node_id: one.digest for one in read_nodes(tx, set(held), node.level - 1)}
        if digests.block(node.level, [inner[number] for number in held]) != node.digest:
            notes.say(place, "it does not hold the nodes of its digest")
    return levels


class _Rows:
    """The rows of saved states, by number."""

    def __init__(self, lines: list[StateLine], levels: dict[int, int], notes: Notes) -> None:
        self._lines = {line.number: line for line in lines}
        self._levels = levels
        self._notes = notes
        self._number = 0
        self._places: dict[int, tuple[int, int, bool]] = {}  # position -> line, previous, whether it is left
        self._known: set[tuple[int, str]] = set()
        self._parents: list[tuple[str, tuple[int, str]]] = []

    def check(self, row: StateRow) -> None:
        self._number += 1
        place = f"saved_state {row.number}"
        if row.number != self._number:
            self._notes.say(place, f"it follows state {self._number - 1}")
            self._number = row.number
        if row.line not in self._lines:
            self._notes.say(place, f"its line {row.line} is not there")
        if row.position in self._places:
            self._notes.say(place, f"position {row.position} is that of another state")
        if row.position is not None:
            self._places[row.position] = (row.line, row.previous, row.status is not StateStatus.DELETED)
        self._known.add((row.line, row.state_id))
        if row.parent is not None:
            self._parents.append((place, (row.line, row.parent)))
        saved = row.status in (StateStatus.SAVED, StateStatus.ERASED)
        if (saved and row.position is None) or (row.status is StateStatus.AWAITED and row.position is not None):
            self._notes.say(place, f"it is {row.status}, at position {row.position}")
        if row.status is not StateStatus.SAVED and (row.values or row.meta):
            self._notes.say(place, f"it is {row.status}, and holds values")
        for value in [value for _, value in row.values] + [write.value for write in row.writes]:
            for level, nodes in enumerate(value.digits):
                for node in nodes:
                    if self._levels.get(node) != level:
                        self._notes.say(place, f"its node {node} of level {level} is not there")

    def end(self, positions: int) -> None:
        for place, parent in self._parents:
            if parent not in self._known:
                self._notes.say(place, f"its parent {parent[1]!r} is not there")
        for position in range(1, positions + 1):
            if position not in self._places:
                self._notes.say(f"saved_state at position {position}", "it is missing")
        saved, newest = dict[int, int](), dict[int, int]()
        for position, (line, previous, left) in sorted(self._places.items()):
            if previous != saved.get(line, 0):
                self._notes.say(f"saved_state at position {position}", f"position {previous} is not the one before it")
            saved[line] = position
            newest[line] = position if left else newest.get(line, 0)
        for one in self._lines.values():
            if (one.saved, one.newest) != (saved.get(one.number, 0), newest.get(one.number, 0)):
                self._notes.say(f"state_line {one.name!r}", "its newest state is not the one that it names")
