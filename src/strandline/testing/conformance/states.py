"""Saved states: lines and rows that are never taken away, and nodes of which each content is kept once."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from strandline.model.ids import Scope
from strandline.model.state import HeldValue, HeldWrite, StateLine, StateNode, StateRow, StateStatus
from strandline.ports import Store
from strandline.testing.conformance.base import StoreLaws
from strandline.testing.conformance.stage import FAR, SCOPE, append

LINE: Final = StateLine(number=1, name="", saved=3, newest=2)
ROW: Final = StateRow(
    number=1,
    line=1,
    state_id="1ef4f797-8335-6428-8001-8a1503f9b875",
    status=StateStatus.SAVED,
    position=1,
    previous=0,
    parent="a parent's \n name",
    run="run-1",
    values=(("a", HeldValue(False, ((7,),))), ("b", HeldValue(True, ((1, 2), (), (3,))))),
    meta=bytes(range(256)),
    writes=(HeldWrite("task", -1, "channel", "path", HeldValue(True, ((),))),),
)
AWAITED: Final = StateRow(number=2, line=1, state_id="s2")
LAST_PART: Final = 40


def node(number: int, level: int = 0, data: bytes | None = None) -> StateNode:
    """Return a node of its own content."""
    body = b"what part %d says, " % number * number if data is None else data
    return StateNode(number, level, "msgpack" if level == 0 else "", body, number.to_bytes(16, "big"))


class StateLaws(StoreLaws):
    """Laws of `StateFacet` and `NodeFacet`."""

    def test_lines_and_rows_come_back_whole(self, store: Store) -> None:
        """I4: every column is kept; written again under its number, a row is another."""
        other = StateLine(number=2, name="sub:1|x")
        with store.write(SCOPE) as tx:
            append(tx)
            for line in (LINE, other):
                tx.states.put_line(line)
            for row in (ROW, AWAITED):
                tx.states.put(row)
            assert tx.states.get(1, ROW.state_id) == ROW
        with store.read(SCOPE) as tx:
            assert (tx.states.lines(), tx.states.count_lines()) == ([LINE, other], 2)
            assert (tx.states.line(""), tx.states.line("sub:1|x"), tx.states.line("x")) == (LINE, other, None)
            assert list(tx.states.all()) == [ROW, AWAITED]
            assert tx.states.get(1, "s2") == AWAITED
            assert tx.states.get(2, ROW.state_id) is None
            assert tx.states.count() == 2
        saved, moved = replace(AWAITED, status=StateStatus.SAVED, position=2, previous=1), replace(LINE, newest=3)
        with store.write(SCOPE) as tx:
            tx.states.put(saved)
            tx.states.put_line(moved)
        with store.read(SCOPE) as tx:
            assert (tx.states.get(1, "s2"), tx.states.line(""), tx.states.count()) == (saved, moved, 2)

    def test_pages_are_by_position_the_newest_first(self, store: Store) -> None:
        """I15: no id and no number of a row decides; a row without a position is on no page."""
        with store.write(SCOPE) as tx:
            append(tx)
            for number, position in ((1, 3), (2, 1), (3, None), (4, 2), (5, 4)):
                line = 2 if position == 2 else 1
                tx.states.put(replace(ROW, number=number, state_id=f"s{number}", position=position, line=line))
        with store.read(SCOPE) as tx:
            assert [row.position for row in tx.states.page(FAR, 9)] == [4, 3, 2, 1]
            assert [row.position for row in tx.states.page(3, 2)] == [3, 2]
            assert [row.position for row in tx.states.page(FAR, 9, 1)] == [4, 3, 1]
            assert [row.position for row in tx.states.page(3, 1, 1)] == [3]
            assert tx.states.page(FAR, 9, 7) == []

    def test_nodes_are_found_by_number_and_by_content(self, store: Store) -> None:
        """I4: parts of every size, and blocks; what is missing is not there."""
        nodes = [node(number) for number in range(1, LAST_PART + 1)]
        nodes += [node(LAST_PART + 1, 0, b""), node(LAST_PART + 2, 1, bytes(range(1, 17)))]
        with store.write(SCOPE) as tx:
            append(tx)
            tx.nodes.add(nodes)
            assert tx.nodes.find([nodes[0].digest]) == {nodes[0].digest: 1}
        with store.read(SCOPE) as tx:
            assert list(tx.nodes.all()) == nodes
            assert tx.nodes.ids() == [one.node_id for one in nodes]
            assert tx.nodes.get([1, 3, LAST_PART, 99]) == {number: node(number) for number in (1, 3, LAST_PART)}
            assert tx.nodes.get([]) == {}
            wanted = [one.digest for one in nodes]
            assert tx.nodes.find([*wanted, bytes(16)]) == {one.digest: one.node_id for one in nodes}
        with store.read(Scope(tenant="other", workflow=SCOPE.workflow)) as tx:
            assert (tx.nodes.find(wanted), tx.nodes.ids(), tx.states.lines()) == ({}, [], [])

    def test_what_is_erased_leaves_its_digest_and_what_is_dropped_nothing(self, store: Store) -> None:
        """C31: an erased content is found, and holds nothing; a dropped one may be kept again."""
        nodes = [node(number) for number in range(1, LAST_PART + 1)]
        with store.write(SCOPE) as tx:
            append(tx)
            tx.nodes.add(nodes)
        with store.write(SCOPE) as tx:
            tx.nodes.erase([2])
            tx.nodes.drop([3, 4, 9])
        with store.read(SCOPE) as tx:
            assert tx.nodes.get([1, 2, 3]) == {1: nodes[0], 2: replace(nodes[1], data=None)}
            assert tx.nodes.find([nodes[1].digest, nodes[2].digest]) == {nodes[1].digest: 2}
            assert len(tx.nodes.ids()) == LAST_PART - 3
        with store.write(SCOPE) as tx:
            again = replace(nodes[2], node_id=LAST_PART + 1)
            tx.nodes.add([again])
            assert tx.nodes.find([again.digest]) == {again.digest: again.node_id}
