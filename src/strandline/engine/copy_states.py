"""Copy the saved states of a workflow to another one, under the same ids and in the same order."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from itertools import islice

from strandline.codec import encode_varints
from strandline.engine.environment import Environment
from strandline.engine.load_state import SAVED, check_lines_whole, check_states_whole
from strandline.engine.save_state import put_state
from strandline.engine.state_values import PART, add_nodes, nodes_in
from strandline.engine.watching import watched
from strandline.errors import InvalidInputError, StateConflictError
from strandline.limits import COPY_PAGE_ROWS
from strandline.model.ids import check_workflow
from strandline.model.state import HeldValue, StateNode, StateRow
from strandline.ports import Transaction
from strandline.rules.states import StateRefusal


@watched("copy_states")
def copy_states(env: Environment, name: str) -> int:
    """Copy what is not deleted, with what was written behind it, in one transaction. Return how many were not there.

    Raises:
        TenantScopeError: no workflow can have this name.
        InvalidInputError: it is this workflow.
        StateConflictError: an id is taken there by another content, or was deleted, or a line there holds a state
            that it has not here: the copies would come behind it, and hide it. Nothing was written.
        CorruptRecordError: one is missing, or is not what was written; nothing was written.
    """
    if check_workflow(name) == env.scope.workflow:
        raise InvalidInputError(f"{name!r} is where the states are; nothing was written")
    target = replace(env, scope=replace(env.scope, workflow=name))
    with env.read() as source:
        if not source.log.head().states:
            return 0  # a name that was misspelt makes no workflow
    with env.read() as source, target.write(joins=False) as tx:
        check_lines_whole(source)
        check_states_whole(source)
        nodes = _copy_nodes(source, tx)
        names = {line.number: line.name for line in source.states.lines()}
        saved = [row for row in source.states.all() if row.position is not None]  # tombstones too: they are parents
        _check_own(tx, name, {(names[row.line], row.state_id) for row in saved})
        in_order = sorted(saved, key=lambda row: row.position or 0)
        return sum(put_state(tx, names[row.line], _moved(row, nodes)).created for row in in_order)


def _check_own(tx: Transaction, name: str, copied: Collection[tuple[str, str]]) -> None:
    """Refuse a target that holds a state of its own in a line that is copied."""
    copied_lines = {line for line, _ in copied}
    lines = {line.number: line.name for line in tx.states.lines() if line.name in copied_lines}
    for row in tx.states.all() if lines else ():
        place = (lines.get(row.line, ""), row.state_id)
        if row.line in lines and row.status in SAVED and place not in copied:
            said = f"{name!r} holds the state {place[1]!r} of line {place[0]!r}, which is not among those to be copied"
            hint = "Copy them to a workflow that holds none, or delete what that one holds."
            raise StateConflictError(
                said, line=place[0], state_id=place[1], reason=StateRefusal.MOVED.value, newest=place[1], hint=hint
            )


def _copy_nodes(source: Transaction, tx: Transaction) -> dict[int, int]:
    """Copy the nodes that the target does not hold, and return the number of each there.

    A block is numbered after all that it holds, so that comes first.
    """
    numbers: dict[int, int] = {}
    nodes = source.nodes.all()
    while page := list(islice(nodes, COPY_PAGE_ROWS)):
        there = tx.nodes.find([node.digest for node in page])
        first_id, new = tx.log.head().state_nodes + 1, list[StateNode]()
        for node in page:
            numbers[node.node_id] = there.get(node.digest, first_id + len(new))
            if node.digest not in there:
                held = node.data if node.level == PART else encode_varints(numbers[inner] for inner in nodes_in(node))
                new.append(replace(node, node_id=numbers[node.node_id], data=held))
        add_nodes(tx, new)
    return numbers


def _moved(row: StateRow, nodes: dict[int, int]) -> StateRow:
    """Return a row with the numbers that its nodes have in the target."""

    def moved(value: HeldValue) -> HeldValue:
        return HeldValue(value.many, tuple(tuple(nodes[node] for node in level) for level in value.digits))

    return replace(
        row,
        values=tuple((name, moved(value)) for name, value in row.values),
        writes=tuple(replace(write, value=moved(write.value)) for write in row.writes),
    )
